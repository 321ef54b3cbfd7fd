//! Single rules, and a policy against rules applied one by one to random parts.

use std::collections::{BTreeSet, HashSet};

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::{Columns, Privilege};

const NAMES: [&str; 6] = ["ann", "bob", "company", "night", "root", "staff"];
const NAMESPACES: [&str; 2] = ["public", "sales"];

fn table(number: u128) -> Object {
    Object::Table(Uuid::from_u128(number))
}

fn to(name: &str) -> Grantee {
    Grantee::Role(name.to_owned())
}

fn superuser(name: &str) -> Role {
    Role { is_superuser: true, ..Role::new(name) }
}

fn policy(parts: PolicyParts) -> Policy {
    Policy::new(7, parts).unwrap()
}

fn code(parts: PolicyParts) -> &'static str {
    Policy::new(1, parts).unwrap_err().sqlstate()
}

#[test]
fn grants_of_the_role_its_roles_and_public_add_up() {
    let sales = Object::Namespace("sales".to_owned());
    let policy = policy(PolicyParts {
        roles: ["ann", "staff", "company"].map(Role::new).into(),
        memberships: vec![Membership::new("staff", "ann"), Membership::new("company", "staff")],
        grants: vec![
            Grant::new(to("ann"), Privilege::Select, table(1)).on_columns([1]),
            Grant::new(to("company"), Privilege::Select, table(1)).on_columns([3, 4]),
            Grant::new(to("staff"), Privilege::Insert, sales),
            Grant::new(Grantee::Public, Privilege::Delete, table(1)),
        ],
        owners: HashMap::new(),
    });
    let of = |role, namespace| policy.access(role, namespace, Uuid::from_u128(1));
    let ann = Access {
        select: Columns::Some(BTreeSet::from([1, 3, 4])),
        insert: true,
        update: false,
        delete: true,
        is_owner: false,
    };
    assert_eq!(of("ann", "sales"), ann);
    assert_eq!(of("ann", "public"), Access { insert: false, ..ann });
    // Membership goes one way.
    assert_eq!(of("company", "sales").select, Columns::Some(BTreeSet::from([3, 4])));
    assert!(of("company", "sales").delete);
    assert_eq!(policy.access("ann", "public", Uuid::from_u128(2)), Access::default());
}

#[test]
fn a_role_that_is_not_known_may_do_nothing_at_all() {
    let grants = Privilege::ALL.map(|p| Grant::new(Grantee::Public, p, table(1)));
    let parts = PolicyParts { grants: grants.into(), ..PolicyParts::default() };
    let access = policy(parts).access("ann", "public", Uuid::from_u128(1));
    assert_eq!(access, Access::default());
    assert!(!access.select.allows(1));
}

#[test]
fn superusers_may_do_everything_but_members_of_them_may_not() {
    let policy = policy(PolicyParts {
        roles: vec![superuser("root"), Role::new("ann")],
        memberships: vec![Membership::new("root", "ann")],
        ..PolicyParts::default()
    });
    assert_eq!(policy.access("root", "public", Uuid::nil()), Access::everything());
    assert_eq!(policy.access("ann", "public", Uuid::nil()), Access::default());
}

#[test]
fn members_of_the_owner_are_owners() {
    let policy = policy(PolicyParts {
        roles: ["ann", "bob", "staff"].map(Role::new).into(),
        memberships: vec![Membership::new("staff", "ann")],
        owners: HashMap::from([(Uuid::from_u128(1), "staff".to_owned())]),
        ..PolicyParts::default()
    });
    let of = |role, number| policy.access(role, "public", Uuid::from_u128(number));
    assert_eq!(of("staff", 1), Access::everything());
    assert_eq!(of("ann", 1), Access::everything());
    assert_eq!(of("bob", 1), Access::default());
    assert_eq!(of("ann", 2), Access::default());
    assert_eq!(policy.owner(Uuid::from_u128(1)), Some("staff"));
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let roles = || vec![Role::new("ann"), Role::new("bob")];
    let with =
        |memberships, grants, owners| PolicyParts { roles: roles(), memberships, grants, owners };
    let none = HashMap::new;
    let member = Membership::new;
    assert_eq!(code(with(vec![member("ann", "nob")], vec![], none())), "42704");
    assert_eq!(code(with(vec![member("nob", "ann")], vec![], none())), "42704");
    let cycle = vec![member("ann", "bob"), member("bob", "ann")];
    assert_eq!(code(with(cycle, vec![], none())), "0LP01");
    let grant = Grant::new(to("nob"), Privilege::Select, table(1));
    assert_eq!(code(with(vec![], vec![grant.clone()], none())), "42704");
    let grant = Grant { grantee: to("ann"), ..grant }.on_columns([]);
    assert_eq!(code(with(vec![], vec![grant], none())), "0LP01");
    let owners = HashMap::from([(Uuid::nil(), "nob".to_owned())]);
    assert_eq!(code(with(vec![], vec![], owners)), "42704");
}

#[test]
fn a_missing_role_is_told_with_the_nearest_name() {
    let roles = ["reporting", "loading"].map(Role::new).into();
    let policy = policy(PolicyParts { roles, ..PolicyParts::default() });
    let error = policy.require("reportng").unwrap_err();
    assert_eq!(error.message(), "role \"reportng\" does not exist");
    assert_eq!(error.hint(), Some("did you mean \"reporting\"?"));
    assert_eq!(policy.require("x").unwrap_err().hint(), Some("CREATE ROLE \"x\" makes it"));
    assert_eq!(policy.require("loading").unwrap().name, "loading");
}

#[test]
fn lists_are_in_order_and_merged() {
    let select = |name, object| Grant::new(to(name), Privilege::Select, object);
    let parts = |reversed: bool| {
        let mut grants = vec![
            select("ann", table(1)),
            select("ann", table(1)).on_columns([1, 2]),
            select("bob", table(1)).on_columns([2]),
            select("ann", table(2)),
            select("ann", Object::Namespace("public".to_owned())),
        ];
        grants.push(select("ann", table(1)).on_columns([3]));
        grants.push(select("ann", table(2)));
        let mut roles = vec![Role::new("ann"), Role::new("bob")];
        if reversed {
            grants.reverse();
            roles.reverse();
        }
        PolicyParts { roles, grants, ..PolicyParts::default() }
    };
    let expected = [
        select("ann", table(1)),
        select("ann", table(1)).on_columns([1, 2, 3]),
        select("bob", table(1)).on_columns([2]),
        select("ann", table(2)),
        select("ann", Object::Namespace("public".to_owned())),
    ];
    for reversed in [false, true] {
        let policy = policy(parts(reversed));
        assert!(policy.grants().eq(&expected), "{:?}", policy.grants().collect::<Vec<_>>());
        assert!(policy.roles().map(|role| role.name.as_str()).eq(["ann", "bob"]));
        assert_eq!(policy.version(), 7);
    }
}

fn any_grant() -> impl Strategy<Value = Grant> {
    let grantee = prop_oneof![4 => select(&NAMES[..]).prop_map(to), 1 => Just(Grantee::Public)];
    let object = prop_oneof![
        3 => (0u128..3).prop_map(table),
        1 => select(&NAMESPACES[..]).prop_map(|name| Object::Namespace(name.to_owned())),
    ];
    let columns = proptest::option::of(proptest::collection::btree_set(1..6, 1..4));
    (grantee, select(&Privilege::ALL[..]), object, columns).prop_map(
        |(grantee, privilege, object, columns)| {
            let may_have = privilege == Privilege::Select && matches!(object, Object::Table(_));
            Grant { columns: columns.filter(|_| may_have), grantee, privilege, object }
        },
    )
}

/// Any parts over [`NAMES`], but memberships only from an earlier name to a later one: no cycles.
fn any_parts() -> impl Strategy<Value = PolicyParts> {
    let pairs: Vec<_> = NAMES
        .iter()
        .enumerate()
        .flat_map(|(i, role)| NAMES[i + 1..].iter().map(|member| Membership::new(*role, *member)))
        .collect();
    let all = pairs.len();
    let roles = proptest::collection::vec(proptest::bool::weighted(0.1), NAMES.len());
    let owners = proptest::collection::hash_map(
        (0u128..3).prop_map(Uuid::from_u128),
        select(&NAMES[..]),
        0..3,
    );
    let grants = proptest::collection::vec(any_grant(), 0..12);
    (roles, subsequence(pairs, 0..=all.min(6)), grants, owners).prop_map(
        |(superusers, memberships, grants, owners)| PolicyParts {
            roles: NAMES
                .iter()
                .zip(superusers)
                .map(|(name, is_superuser)| Role { is_superuser, ..Role::new(*name) })
                .collect(),
            memberships,
            grants,
            owners: owners.into_iter().map(|(table, name)| (table, name.to_owned())).collect(),
        },
    )
}

/// `role`, and what it is a member of: by going over all pairs until nothing is added.
fn naive_roles(parts: &PolicyParts, role: &str) -> HashSet<String> {
    let mut roles = HashSet::from([role.to_owned()]);
    loop {
        let before = roles.len();
        for pair in &parts.memberships {
            if roles.contains(&pair.member) {
                roles.insert(pair.role.clone());
            }
        }
        if roles.len() == before {
            return roles;
        }
    }
}

/// Whether `role` may do `privilege` with the column `field` of a table.
fn naive(
    parts: &PolicyParts,
    role: &str,
    (namespace, uuid): (&str, Uuid),
    privilege: Privilege,
    field: i32,
) -> bool {
    let Some(known) = parts.roles.iter().find(|known| known.name == role) else { return false };
    let roles = naive_roles(parts, role);
    let owns = parts.owners.get(&uuid).is_some_and(|owner| roles.contains(owner));
    let granted = parts.grants.iter().any(|grant| {
        let on = match &grant.object {
            Object::Table(table) => *table == uuid,
            Object::Namespace(name) => name == namespace,
        };
        let held = match &grant.grantee {
            Grantee::Public => true,
            Grantee::Role(name) => roles.contains(name),
        };
        let column = grant.columns.as_ref().is_none_or(|columns| columns.contains(&field));
        on && held && column && grant.privilege == privilege
    });
    known.is_superuser || owns || granted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn access_is_what_the_rules_say_one_by_one(parts in any_parts(), number in 0u128..4) {
        let policy = Policy::new(1, parts.clone()).unwrap();
        let uuid = Uuid::from_u128(number);
        for role in NAMES.into_iter().chain(["nobody"]) {
            for namespace in NAMESPACES {
                let access = policy.access(role, namespace, uuid);
                let may = |p, field| naive(&parts, role, (namespace, uuid), p, field);
                for field in 0..7 {
                    prop_assert_eq!(access.select.allows(field), may(Privilege::Select, field));
                }
                // No grant names this column: who may read it may read all.
                let all = may(Privilege::Select, 1000);
                prop_assert_eq!(access.select == Columns::All, all);
                prop_assert_eq!(access.insert, may(Privilege::Insert, 1));
                prop_assert_eq!(access.update, may(Privilege::Update, 1));
                prop_assert_eq!(access.delete, may(Privilege::Delete, 1));
                let alone = PolicyParts { grants: Vec::new(), ..parts.clone() };
                let owner = naive(&alone, role, (namespace, uuid), Privilege::Delete, 1);
                prop_assert_eq!(access.is_owner, owner);
            }
        }
    }

    #[test]
    fn the_order_of_parts_does_not_matter(parts in any_parts()) {
        let mut turned = parts.clone();
        turned.roles.reverse();
        turned.memberships.reverse();
        turned.grants.reverse();
        let (a, b) = (Policy::new(1, parts).unwrap(), Policy::new(1, turned).unwrap());
        prop_assert!(a.grants().eq(b.grants()));
        prop_assert!(a.roles().eq(b.roles()));
        prop_assert_eq!(a.memberships(), b.memberships());
        prop_assert!(a.owners().eq(b.owners()));
    }

    #[test]
    fn a_membership_is_refused_exactly_if_it_closes_a_cycle(
        parts in any_parts(),
        role in select(&NAMES[..]),
        member in select(&NAMES[..]),
    ) {
        let closes = naive_roles(&parts, role).contains(member);
        let mut memberships = Policy::new(1, parts).unwrap().memberships().clone();
        let added = memberships.add(Membership::new(role, member));
        prop_assert_eq!(added.err().map(|error| error.sqlstate()), closes.then_some("0LP01"));
    }
}
