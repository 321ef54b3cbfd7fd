//! Roles and grants as they are stored: exact codes, counts, versions, several openers of one file.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;
use stoa_access::{Access, Grant, Grantee, Membership, Object, Privilege, Role, ScramSecret};
use stoa_catalog::{Catalog, RoleChange, TableIdent};
use uuid::Uuid;

use self::common::Database;

mod common;

over_both!(
    errors_have_their_exact_codes,
    a_role_lives_from_create_to_drop,
    a_role_is_not_dropped_while_it_owns_or_was_granted_something,
    what_keeps_a_role_is_named_up_to_a_limit,
    memberships_never_form_a_cycle,
    columns_and_the_whole_are_revoked_as_in_postgresql,
    of_several_grants_all_hold_or_none,
    a_table_changes_hands_and_is_forgotten,
    grants_on_a_namespace_go_with_it,
    the_version_is_of_the_policy_and_everybody_sees_it,
    databases_made_before_and_other_catalogs_in_them_have_their_own_policy,
    damage_is_told_and_hides_secrets,
    changes_of_two_openers_at_once_are_all_there_and_counted,
    of_two_memberships_that_form_a_cycle_one_is_refused,
    a_policy_is_of_one_version,
);

/// A catalog with the namespaces `public` and `sales` and the roles given.
async fn with_roles(database: &Database, names: &[&str]) -> Catalog {
    let catalog = database.open().await;
    for namespace in ["public", "sales"] {
        catalog.create_namespace(namespace, &BTreeMap::new()).await.unwrap();
    }
    for name in names {
        catalog.create_role(&Role::new(*name)).await.unwrap();
    }
    catalog
}

fn to(name: &str) -> Grantee {
    Grantee::Role(name.to_owned())
}

fn table(number: u128) -> Object {
    Object::Table(Uuid::from_u128(number))
}

fn namespace(name: &str) -> Object {
    Object::Namespace(name.to_owned())
}

fn select_on(grantee: &str, object: Object) -> Grant {
    Grant::new(to(grantee), Privilege::Select, object)
}

fn secret(password: &str) -> ScramSecret {
    ScramSecret::from_password(password, b"0123456789abcdef", 2.try_into().unwrap())
}

async fn grants(catalog: &Catalog) -> Vec<Grant> {
    catalog.policy().await.unwrap().grants().cloned().collect()
}

async fn errors_have_their_exact_codes(database: Database) {
    let catalog = with_roles(&database, &["ann", "staff"]).await;
    let code = |error: stoa_error::Error| error.sqlstate();
    let version = catalog.policy_version().await.unwrap();
    let change = RoleChange::default();

    assert_eq!(code(catalog.create_role(&Role::new("ann")).await.unwrap_err()), "42710");
    assert_eq!(code(catalog.create_role(&Role::new("public")).await.unwrap_err()), "42939");
    assert_eq!(code(catalog.alter_role("nob", &change).await.unwrap_err()), "42704");
    assert_eq!(code(catalog.drop_role("nob").await.unwrap_err()), "42704");
    assert_eq!(code(catalog.grant_role("nob", "ann").await.unwrap_err()), "42704");
    assert_eq!(code(catalog.grant_role("ann", "nob").await.unwrap_err()), "42704");
    assert_eq!(code(catalog.revoke_role("nob", "ann").await.unwrap_err()), "42704");
    assert_eq!(code(catalog.revoke_role("ann", "nob").await.unwrap_err()), "42704");
    assert_eq!(code(catalog.set_owner(Uuid::nil(), "nob").await.unwrap_err()), "42704");

    let of = |grant: Grant| [grant];
    let unknown = of(select_on("nob", table(1)));
    assert_eq!(code(catalog.grant(&unknown).await.unwrap_err()), "42704");
    assert_eq!(code(catalog.revoke(&unknown).await.unwrap_err()), "42704");
    let nowhere = of(select_on("ann", namespace("nowhere")));
    assert_eq!(code(catalog.grant(&nowhere).await.unwrap_err()), "3F000");
    let columns = of(select_on("ann", namespace("sales")).on_columns([1]));
    assert_eq!(code(catalog.grant(&columns).await.unwrap_err()), "0LP01");
    assert_eq!(code(catalog.revoke(&columns).await.unwrap_err()), "0LP01");
    // The name that stands for PUBLIC in the database is no way around its being a role's.
    assert_eq!(code(catalog.grant(&of(select_on("", table(1)))).await.unwrap_err()), "42704");

    let hint = catalog.drop_role("staf").await.unwrap_err();
    assert_eq!(hint.hint(), Some("did you mean \"staff\"?"));
    assert_eq!(catalog.policy_version().await.unwrap(), version);
    assert!(grants(&catalog).await.is_empty());
}

async fn a_role_lives_from_create_to_drop(database: Database) {
    let catalog = with_roles(&database, &["staff"]).await;
    let ann = Role { can_login: true, secret: Some(secret("old")), ..Role::new("ann") };
    catalog.create_role(&ann).await.unwrap();
    catalog.grant_role("staff", "ann").await.unwrap();
    let policy = database.open().await.policy().await.unwrap();
    assert_eq!(policy.role("ann"), Some(&ann));
    assert!(policy.memberships().iter().eq([Membership::new("staff", "ann")]));

    let change = RoleChange { secret: Some(Some(secret("new"))), ..RoleChange::default() };
    assert!(catalog.alter_role("ann", &change).await.unwrap());
    assert!(!catalog.alter_role("ann", &change).await.unwrap());
    let change = RoleChange { is_superuser: Some(true), ..RoleChange::default() };
    assert!(catalog.alter_role("ann", &change).await.unwrap());
    let policy = catalog.policy().await.unwrap();
    let role = policy.role("ann").unwrap();
    assert!(role.can_login && role.is_superuser);
    assert!(role.secret.as_ref().unwrap().verify("new"));
    let change =
        RoleChange { secret: Some(None), can_login: Some(false), is_superuser: Some(false) };
    assert!(catalog.alter_role("ann", &change).await.unwrap());
    assert_eq!(catalog.policy().await.unwrap().role("ann"), Some(&Role::new("ann")));

    catalog.drop_role("ann").await.unwrap();
    let policy = catalog.policy().await.unwrap();
    assert!(policy.roles().map(|role| role.name.as_str()).eq(["staff"]));
    assert_eq!(policy.memberships().iter().count(), 0);
    assert_eq!(policy.version(), 7);
    // A later role of this name begins with nothing.
    catalog.create_role(&Role::new("ann")).await.unwrap();
    assert!(catalog.grant_role("staff", "ann").await.unwrap());
}

async fn a_role_is_not_dropped_while_it_owns_or_was_granted_something(database: Database) {
    let catalog = with_roles(&database, &["ann"]).await;
    let uuid = Uuid::from_u128(1);
    let held = [
        select_on("ann", table(1)).on_columns([1, 2]),
        Grant::new(to("ann"), Privilege::Insert, namespace("sales")),
    ];
    catalog.grant(&held).await.unwrap();
    catalog.set_owner(uuid, "ann").await.unwrap();
    let error = catalog.drop_role("ann").await.unwrap_err();
    assert_eq!(error.sqlstate(), "2BP01");
    assert_eq!(
        error.detail().unwrap(),
        format!("owner of table {uuid}; INSERT on schema sales; SELECT on table {uuid}")
    );
    catalog.revoke(&held).await.unwrap();
    assert_eq!(catalog.drop_role("ann").await.unwrap_err().sqlstate(), "2BP01");
    assert_eq!(catalog.forget_table(uuid).await.unwrap(), 1);
    catalog.drop_role("ann").await.unwrap();
}

async fn what_keeps_a_role_is_named_up_to_a_limit(database: Database) {
    let catalog = with_roles(&database, &["ann"]).await;
    let many: Vec<_> = (0..12).map(|number| select_on("ann", table(number))).collect();
    catalog.grant(&many).await.unwrap();
    let error = catalog.drop_role("ann").await.unwrap_err();
    assert!(error.detail().unwrap().ends_with("; and 2 more"), "{error:?}");
}

async fn memberships_never_form_a_cycle(database: Database) {
    let catalog = with_roles(&database, &["a", "b", "c"]).await;
    assert!(catalog.grant_role("a", "b").await.unwrap());
    assert!(!catalog.grant_role("a", "b").await.unwrap());
    assert!(catalog.grant_role("b", "c").await.unwrap());
    for (role, member) in [("c", "a"), ("b", "a"), ("a", "a")] {
        let error = catalog.grant_role(role, member).await.unwrap_err();
        assert_eq!(error.sqlstate(), "0LP01");
        assert_eq!(error.message(), format!("role \"{role}\" is a member of role \"{member}\""));
    }
    assert!(catalog.revoke_role("b", "c").await.unwrap());
    assert!(!catalog.revoke_role("b", "c").await.unwrap());
    assert!(catalog.grant_role("c", "a").await.unwrap());
}

async fn columns_and_the_whole_are_revoked_as_in_postgresql(database: Database) {
    let catalog = with_roles(&database, &["ann"]).await;
    let whole = select_on("ann", table(1));
    let columns = whole.clone().on_columns([1, 2, 3]);
    assert_eq!(catalog.grant(std::slice::from_ref(&whole)).await.unwrap(), 1);
    assert_eq!(catalog.revoke(std::slice::from_ref(&columns)).await.unwrap(), 0);
    assert_eq!(grants(&catalog).await, std::slice::from_ref(&whole));
    // Columns stand beside the whole, and go with it.
    assert_eq!(catalog.grant(&[columns]).await.unwrap(), 3);
    assert_eq!(catalog.revoke(&[whole.clone().on_columns([2, 9])]).await.unwrap(), 1);
    assert_eq!(grants(&catalog).await, [whole.clone(), whole.clone().on_columns([1, 3])]);
    assert_eq!(catalog.revoke(&[whole]).await.unwrap(), 3);
    assert!(grants(&catalog).await.is_empty());
}

async fn of_several_grants_all_hold_or_none(database: Database) {
    let catalog = with_roles(&database, &["ann"]).await;
    let good = select_on("ann", table(1));
    let version = catalog.policy_version().await.unwrap();
    catalog.grant(&[good.clone(), select_on("nob", table(1))]).await.unwrap_err();
    assert!(grants(&catalog).await.is_empty());
    catalog.grant(std::slice::from_ref(&good)).await.unwrap();
    catalog.revoke(&[good.clone(), select_on("nob", table(1))]).await.unwrap_err();
    assert_eq!(grants(&catalog).await, [good]);
    assert_eq!(catalog.policy_version().await.unwrap(), version + 1);
}

async fn a_table_changes_hands_and_is_forgotten(database: Database) {
    let catalog = with_roles(&database, &["ann", "bob"]).await;
    let uuid = Uuid::from_u128(1);
    assert!(catalog.set_owner(uuid, "ann").await.unwrap());
    assert!(!catalog.set_owner(uuid, "ann").await.unwrap());
    assert!(catalog.set_owner(uuid, "bob").await.unwrap());
    let others = [select_on("ann", table(2)), select_on("ann", namespace("sales"))];
    catalog.grant(&others).await.unwrap();
    catalog.grant(&[select_on("ann", table(1)).on_columns([4, 5])]).await.unwrap();
    let policy = catalog.policy().await.unwrap();
    assert!(policy.access("bob", "public", uuid).is_owner);
    assert!(policy.access("ann", "public", uuid).select.allows(4));

    assert_eq!(catalog.forget_table(uuid).await.unwrap(), 3);
    assert_eq!(catalog.forget_table(uuid).await.unwrap(), 0);
    let policy = catalog.policy().await.unwrap();
    assert_eq!(policy.access("bob", "public", uuid), Access::default());
    assert!(policy.grants().eq(&others));
}

async fn grants_on_a_namespace_go_with_it(database: Database) {
    let catalog = with_roles(&database, &["ann"]).await;
    let kept = select_on("ann", namespace("public"));
    catalog.grant(&[kept.clone(), select_on("ann", namespace("sales"))]).await.unwrap();
    let version = catalog.policy_version().await.unwrap();
    catalog.drop_namespace("sales").await.unwrap();
    assert_eq!(catalog.policy_version().await.unwrap(), version + 1);
    catalog.create_namespace("sales", &BTreeMap::new()).await.unwrap();
    assert_eq!(grants(&catalog).await, [kept]);
    catalog.drop_namespace("sales").await.unwrap();
    assert_eq!(catalog.policy_version().await.unwrap(), version + 1);
}

async fn the_version_is_of_the_policy_and_everybody_sees_it(database: Database) {
    let first = with_roles(&database, &[]).await;
    let second = database.open().await;
    for expected in 0..5 {
        for catalog in [&first, &second] {
            assert_eq!(catalog.policy_version().await.unwrap(), expected);
            assert_eq!(catalog.policy_version().await.unwrap(), expected);
            assert_eq!(catalog.policy().await.unwrap().version(), expected);
        }
        let name = format!("t{expected}");
        first.create_table(&TableIdent::new("public", &name), "a").await.unwrap();
        assert_eq!(second.policy_version().await.unwrap(), expected);
        let by = if expected % 2 == 0 { &first } else { &second };
        by.create_role(&Role::new(name)).await.unwrap();
    }
}

async fn databases_made_before_and_other_catalogs_in_them_have_their_own_policy(
    database: Database,
) {
    database
        .run(
            "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL,
                table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
                metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),
                iceberg_type VARCHAR(5),
                PRIMARY KEY (catalog_name, table_namespace, table_name));
             INSERT INTO iceberg_tables VALUES ('stoa', 'db', 't', 'here', NULL, 'TABLE')",
        )
        .await;
    let catalog = database.open().await;
    let other = database.open_as("other").await;
    assert_eq!(catalog.policy().await.unwrap().version(), 0);
    catalog.create_role(&Role::new("ann")).await.unwrap();
    catalog.grant(&[select_on("ann", namespace("db"))]).await.unwrap();
    catalog.set_owner(Uuid::nil(), "ann").await.unwrap();
    assert_eq!(other.policy_version().await.unwrap(), 0);
    let policy = other.policy().await.unwrap();
    assert_eq!((policy.roles().len(), policy.owners().len(), policy.grants().count()), (0, 0, 0));
    other.create_role(&Role::new("ann")).await.unwrap();
    other.drop_role("ann").await.unwrap();
    let again = database.open().await.policy().await.unwrap();
    assert_eq!((again.version(), again.roles().len(), again.grants().count()), (3, 1, 1));
}

async fn damage_is_told_and_hides_secrets(database: Database) {
    for (damage, expected) in [
        ("UPDATE stoa_roles SET secret = 'hunter2'", "the secret of role \"ann\" cannot be read"),
        ("UPDATE stoa_grants SET privilege = 'FLY'", "there is a grant of \"FLY\""),
        ("UPDATE stoa_grants SET object = 'x'", "\"x\" is no UUID of a table"),
        ("UPDATE stoa_grants SET object_type = 'moon'", "there is a grant on a \"moon\""),
        ("UPDATE stoa_policy_version SET version = -5", "the policy has version -5"),
        ("DELETE FROM stoa_roles", "what it holds of roles and grants is no policy"),
    ] {
        let database = database.another();
        let catalog = with_roles(&database, &["ann"]).await;
        catalog.grant(&[select_on("ann", table(1))]).await.unwrap();
        database.run(damage).await;
        let error = catalog.policy().await.unwrap_err();
        assert_eq!(error.sqlstate(), "XX001");
        assert!(error.message().ends_with(expected), "{error:?}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}

async fn changes_of_two_openers_at_once_are_all_there_and_counted(database: Database) {
    const TABLES: u128 = 40;
    let first = with_roles(&database, &["ann", "bob"]).await;
    let before = first.policy_version().await.unwrap();
    let openers = [("ann", database.open().await), ("bob", database.open().await)];
    let writers = openers.map(|(name, catalog)| {
        stoa_env::task::spawn(async move {
            let mut shared = 0;
            for number in 0..TABLES {
                assert_eq!(catalog.grant(&[select_on(name, table(number))]).await.unwrap(), 1);
                let public = Grant::new(Grantee::Public, Privilege::Insert, table(number));
                shared += catalog.grant(&[public]).await.unwrap();
                if number % 2 == 0 {
                    assert_eq!(catalog.revoke(&[select_on(name, table(number))]).await.unwrap(), 1);
                }
            }
            shared
        })
    });
    let mut shared = 0;
    for writer in writers {
        shared += writer.await.unwrap();
    }
    // What both grant is new to one of them.
    assert_eq!(u128::from(shared), TABLES);
    let policy = first.policy().await.unwrap();
    assert_eq!(u128::from(policy.version() - before), 2 * TABLES + TABLES + TABLES);
    assert_eq!(first.policy_version().await.unwrap(), policy.version());
    for number in 0..TABLES {
        for name in ["ann", "bob"] {
            let access = policy.access(name, "public", Uuid::from_u128(number));
            assert_eq!((access.select.allows(1), access.insert), (number % 2 == 1, true));
        }
    }
}

async fn of_two_memberships_that_form_a_cycle_one_is_refused(database: Database) {
    let first = with_roles(&database, &["a", "b"]).await;
    let second = database.open().await;
    for _ in 0..20 {
        let (one, other) = tokio::join!(first.grant_role("a", "b"), second.grant_role("b", "a"));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        assert_eq!(one.and(other).unwrap_err().sqlstate(), "0LP01");
        let gone = (first.revoke_role("a", "b").await, first.revoke_role("b", "a").await);
        assert!(gone.0.unwrap() != gone.1.unwrap());
    }
}

async fn a_policy_is_of_one_version(database: Database) {
    let reader = with_roles(&database, &["ann"]).await;
    let before = reader.policy_version().await.unwrap();
    let writer = database.open().await;
    let both = [select_on("ann", table(1)), select_on("ann", namespace("sales"))];
    let writing = stoa_env::task::spawn(async move {
        for _ in 0..40 {
            writer.grant(&both).await.unwrap();
            writer.revoke(&both).await.unwrap();
        }
    });
    let mut last = before;
    let mut finished = false;
    while !finished {
        // Asked first, so that the last policy is one of after the last change.
        finished = writing.is_finished();
        let policy = reader.policy().await.unwrap();
        assert!(policy.version() >= last);
        last = policy.version();
        let expected = if (last - before) % 2 == 1 { 2 } else { 0 };
        assert_eq!(policy.grants().count(), expected, "version {last}");
    }
    writing.await.unwrap();
    assert_eq!(last, before + 80);
}

const NAMES: [&str; 3] = ["ann", "bob", "staff"];

/// A row as the documentation counts them.
type Entry = (Object, Grantee, Privilege, Option<i32>);

fn entries(grant: &Grant) -> Vec<Entry> {
    let entry = |field| (grant.object.clone(), grant.grantee.clone(), grant.privilege, field);
    match &grant.columns {
        None => vec![entry(None)],
        Some(columns) => columns.iter().map(|field| entry(Some(*field))).collect(),
    }
}

fn any_grant() -> impl Strategy<Value = Grant> {
    let grantee = prop_oneof![3 => select(&NAMES[..]).prop_map(to), 1 => Just(Grantee::Public)];
    let object = prop_oneof![3 => (0u128..2).prop_map(table), 1 => Just(namespace("sales"))];
    let privilege = prop_oneof![3 => Just(Privilege::Select), 1 => select(&Privilege::ALL[..])];
    let columns = proptest::option::of(proptest::collection::btree_set(0..5, 1..4));
    (grantee, privilege, object, columns).prop_map(|(grantee, privilege, object, columns)| {
        let may_have = privilege == Privilege::Select && matches!(object, Object::Table(_));
        Grant { columns: columns.filter(|_| may_have), grantee, privilege, object }
    })
}

fn some_grants() -> impl Strategy<Value = Vec<Grant>> {
    proptest::collection::vec(any_grant(), 0..4)
}

fn blocking<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn grants_and_revokes_are_those_of_a_set(
        changes in proptest::collection::vec((any::<bool>(), some_grants()), 1..16),
    ) {
        for database in Database::each() { blocking(async {
            let catalog = with_roles(&database, &NAMES).await;
            let mut model: BTreeSet<Entry> = BTreeSet::new();
            let mut version = catalog.policy_version().await.unwrap();
            for (granting, grants) in changes.clone() {
                let mut count = 0;
                for grant in &grants {
                    let before = model.len();
                    match (granting, &grant.columns) {
                        (true, _) => model.extend(entries(grant)),
                        (false, Some(_)) => entries(grant).iter().for_each(|e| { model.remove(e); }),
                        (false, None) => model.retain(|(object, grantee, privilege, _)| {
                            (object, grantee, *privilege)
                                != (&grant.object, &grant.grantee, grant.privilege)
                        }),
                    }
                    count += before.abs_diff(model.len());
                }
                let done = match granting {
                    true => catalog.grant(&grants).await.unwrap(),
                    false => catalog.revoke(&grants).await.unwrap(),
                };
                version += u64::from(count > 0);
                let policy = catalog.policy().await.unwrap();
                prop_assert_eq!((done, policy.version()), (count as u64, version));
                let stored: BTreeSet<Entry> = policy.grants().flat_map(entries).collect();
                prop_assert_eq!(&stored, &model);
            }
            Ok(())
        })?; }
    }

    #[test]
    fn revoking_what_was_granted_gives_what_was_before(old in some_grants(), new in some_grants()) {
        for database in Database::each() { blocking(async {
            let catalog = with_roles(&database, &NAMES).await;
            catalog.grant(&old).await.unwrap();
            let before = grants(&catalog).await;
            // What is held in part is another matter: revoking takes the old part, too.
            let is_held = |new: &Grant| old.iter().any(|old| {
                (&old.object, &old.grantee, old.privilege) == (&new.object, &new.grantee, new.privilege)
            });
            let new: Vec<_> = new.iter().filter(|new| !is_held(new)).cloned().collect();
            let granted = catalog.grant(&new).await.unwrap();
            prop_assert_eq!(catalog.revoke(&new).await.unwrap(), granted);
            prop_assert_eq!(grants(&catalog).await, before);
            Ok(())
        })?; }
    }
}
