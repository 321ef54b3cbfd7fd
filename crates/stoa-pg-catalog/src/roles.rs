//! Roles under OIDs, and what they may do as PostgreSQL writes it.

use std::collections::BTreeMap;

use stoa_access::{Grant, Grantee, Object, Policy, Privilege};
use uuid::Uuid;

use crate::relations::role_oids;

/// OID of the role that everything belongs to that has no owner of its own.
pub(super) const OWNER_OID: i32 = 10;

/// What an owner may do, in PostgreSQL's letters.
const ALL: &str = "arwdDxt";

/// A role.
#[derive(Debug)]
pub(super) struct RoleInfo {
    pub(super) oid: i32,
    pub(super) name: String,
    pub(super) is_superuser: bool,
    pub(super) can_login: bool,
}

/// The roles of a policy, by name.
#[derive(Debug, Default)]
pub(super) struct Roles {
    pub(super) all: Vec<RoleInfo>,
    /// Role and member.
    pub(super) memberships: Vec<(i32, i32)>,
}

impl Roles {
    /// Those of `policy`, and the one that is called as the database.
    pub(super) fn of(database: &str, policy: &Policy) -> Self {
        let mut named: BTreeMap<&str, (bool, bool)> =
            policy.roles().map(|role| (&*role.name, (role.is_superuser, role.can_login))).collect();
        named.entry(database).or_insert((true, true));
        let oids = role_oids(named.keys().copied().filter(|name| *name != database));
        let oid = |name: &str| oids.get(name).copied().unwrap_or(OWNER_OID);
        let all = named.iter().map(|(name, (is_superuser, can_login))| RoleInfo {
            oid: oid(name),
            name: (*name).to_owned(),
            is_superuser: *is_superuser,
            can_login: *can_login,
        });
        let memberships = policy.memberships().iter();
        let memberships = memberships.map(|m| (oid(&m.role), oid(&m.member)));
        Self { memberships: memberships.collect(), all: all.collect() }
    }

    pub(super) fn oid(&self, name: &str) -> Option<i32> {
        self.all.iter().find(|role| role.name == name).map(|role| role.oid)
    }

    /// The name of an OID; as PostgreSQL has it for one that is none.
    pub(super) fn name(&self, oid: i64) -> String {
        let found = self.all.iter().find(|role| i64::from(role.oid) == oid);
        found.map_or_else(|| format!("unknown (OID={oid})"), |role| role.name.clone())
    }
}

/// Who may do what with one table, or with one of its columns: `{stoa=arwdDxt/stoa,alice=r/stoa}`; `None` where nobody but
/// the owner may.
pub(super) fn acl(
    policy: &Policy,
    table: Uuid,
    field_id: Option<i32>,
    owner: &str,
) -> Option<Vec<String>> {
    let mut letters: BTreeMap<&Grantee, String> = BTreeMap::new();
    for privilege in [Privilege::Insert, Privilege::Select, Privilege::Update, Privilege::Delete] {
        let is_meant = |grant: &&Grant| {
            let columns = match (&grant.columns, field_id) {
                (None, None) => true,
                (Some(ids), Some(id)) => ids.contains(&id),
                _ => false,
            };
            grant.privilege == privilege && columns && grant.object == Object::Table(table)
        };
        for grant in policy.grants().filter(is_meant) {
            letters.entry(&grant.grantee).or_default().push(match privilege {
                Privilege::Insert => 'a',
                Privilege::Select => 'r',
                Privilege::Update => 'w',
                Privilege::Delete => 'd',
            });
        }
    }
    if letters.is_empty() {
        return None;
    }
    let item = |name: &str, letters: &str| format!("{}={letters}/{}", quoted(name), quoted(owner));
    let owners = field_id.is_none().then(|| item(owner, ALL));
    let others = letters.iter().map(|(grantee, letters)| match grantee {
        Grantee::Role(name) => item(name, letters),
        Grantee::Public => format!("={letters}/{}", quoted(owner)),
    });
    Some(owners.into_iter().chain(others).collect())
}

/// A name as items of such lists have it.
fn quoted(name: &str) -> String {
    match name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use stoa_access::{Membership, PolicyParts, Role};

    use super::*;

    #[test]
    fn roles_and_grants_are_those_of_the_policy() {
        let table = Uuid::from_u128(7);
        let grant = |to: Grantee, what| Grant::new(to, what, Object::Table(table));
        let alice = || Grantee::Role("alice".to_owned());
        let parts = PolicyParts {
            roles: ["alice", "readers"].map(Role::new).to_vec(),
            memberships: vec![Membership::new("readers", "alice")],
            grants: vec![
                grant(alice(), Privilege::Delete),
                grant(alice(), Privilege::Select),
                grant(Grantee::Public, Privilege::Insert),
                grant(alice(), Privilege::Select).on_columns([3]),
            ],
            ..PolicyParts::default()
        };
        let policy = Policy::new(1, parts).unwrap();
        let roles = Roles::of("stoa", &policy);
        let names: Vec<_> = roles.all.iter().map(|role| role.name.as_str()).collect();
        assert_eq!(names, ["alice", "readers", "stoa"]);
        assert_eq!(roles.oid("stoa"), Some(OWNER_OID));
        let oid = |name: &str| roles.oid(name).unwrap();
        assert_eq!(roles.memberships, [(oid("readers"), oid("alice"))]);
        assert_eq!(roles.name(oid("alice").into()), "alice");
        assert_eq!(roles.name(9), "unknown (OID=9)");
        let of_table = acl(&policy, table, None, "my role").unwrap();
        let expected =
            ["\"my role\"=arwdDxt/\"my role\"", "alice=rd/\"my role\"", "=a/\"my role\""];
        assert_eq!(of_table, expected);
        assert_eq!(acl(&policy, table, Some(3), "stoa").unwrap(), ["alice=r/stoa"]);
        assert_eq!(acl(&policy, table, Some(4), "stoa"), None);
        assert_eq!(acl(&policy, Uuid::from_u128(8), None, "stoa"), None);
    }
}
