//! What a role could read at one time, to be held against a later policy.
//!
//! In: a [`Policy`](crate::Policy) and a role. Out: whether another version of it still lets the role read all of that. For
//! what was read under the earlier one and is given again under the later one.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::{Columns, Object, Policy};

/// All that a role could read under one version of the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    role: String,
    is_known: bool,
    is_superuser: bool,
    /// Tables and views that it owned, or a role that it is a member of.
    owned: BTreeSet<Uuid>,
    /// What it was granted `SELECT` on. The flag: whether the table had an owner.
    select: BTreeMap<Object, (Columns, bool)>,
}

impl Standing {
    /// What `role` can read under `policy`.
    pub fn of(policy: &Policy, role: &str) -> Self {
        let known = policy.role(role);
        let has_owner = |object: &Object| match object {
            Object::Table(table) => policy.owner(*table).is_some(),
            Object::Namespace(_) => false,
        };
        let granted = policy.selectable(role).into_iter();
        Self {
            role: role.to_owned(),
            is_known: known.is_some(),
            is_superuser: known.is_some_and(|role| role.is_superuser),
            owned: policy.owned_by(role),
            select: granted
                .map(|(object, columns)| {
                    let had_owner = has_owner(&object);
                    (object, (columns, had_owner))
                })
                .collect(),
        }
    }

    /// Whether the role can read under `later` whatever it could read: then nothing has been taken away from it that
    /// an earlier answer may be made of. Tables that were dropped meanwhile (they had an owner, and have none) were not
    /// taken away from anybody.
    pub fn holds_under(&self, later: &Policy) -> bool {
        let Some(role) = later.role(&self.role) else { return !self.is_known };
        if role.is_superuser {
            return true;
        }
        if self.is_superuser {
            return false;
        }
        let (owned, select) = (later.owned_by(&self.role), later.selectable(&self.role));
        let is_dropped = |table: &Uuid| later.owner(*table).is_none();
        let reads_all = |object: &Object| select.get(object) == Some(&Columns::All);
        let owns = self.owned.iter().all(|table| {
            owned.contains(table) || reads_all(&Object::Table(*table)) || is_dropped(table)
        });
        owns && self.select.iter().all(|(object, (columns, had_owner))| {
            let now = select.get(object).unwrap_or(&Columns::None);
            match object {
                Object::Table(table) => {
                    columns.is_within(now)
                        || owned.contains(table)
                        || (*had_owner && is_dropped(table))
                }
                Object::Namespace(_) => columns.is_within(now),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grant, Grantee, Membership, PolicyParts, Privilege, Role};

    fn grant(grantee: &str, table: u128, columns: Option<&[i32]>) -> Grant {
        let grantee = match grantee {
            "" => Grantee::Public,
            name => Grantee::Role(name.to_owned()),
        };
        let mut grant =
            Grant::new(grantee, Privilege::Select, Object::Table(Uuid::from_u128(table)));
        grant.columns = columns.map(|ids| ids.iter().copied().collect());
        grant
    }

    fn parts() -> PolicyParts {
        PolicyParts {
            roles: ["ann", "staff", "bob"].map(Role::new).into(),
            memberships: vec![Membership::new("staff", "ann")],
            grants: vec![
                grant("ann", 1, None),
                grant("staff", 2, Some(&[1, 2])),
                grant("", 3, None),
            ],
            owners: [(1, "bob"), (2, "bob"), (3, "bob"), (4, "ann")]
                .map(|(table, owner)| (Uuid::from_u128(table), owner.to_owned()))
                .into(),
        }
    }

    fn holds(earlier: PolicyParts, later: impl FnOnce(&mut PolicyParts)) -> bool {
        let mut parts = earlier.clone();
        later(&mut parts);
        let earlier = Policy::new(1, earlier).unwrap();
        Standing::of(&earlier, "ann").holds_under(&Policy::new(2, parts).unwrap())
    }

    #[test]
    fn what_is_taken_away_is_noticed() {
        assert!(holds(parts(), |_| {}));
        assert!(!holds(parts(), |later| drop(later.grants.remove(0))), "of a table");
        assert!(
            !holds(parts(), |later| later.grants[1] = grant("staff", 2, Some(&[1]))),
            "of a column"
        );
        assert!(!holds(parts(), |later| drop(later.grants.remove(2))), "of PUBLIC");
        assert!(!holds(parts(), |later| later.memberships.clear()), "with a membership");
        let drop_role = |later: &mut PolicyParts| {
            later.roles.retain(|role| role.name != "ann");
            later.memberships.clear();
            later.grants.remove(0);
            later.owners.remove(&Uuid::from_u128(4));
        };
        assert!(!holds(parts(), drop_role), "with the role");
        let give = |later: &mut PolicyParts| {
            later.owners.insert(Uuid::from_u128(4), "bob".to_owned());
        };
        assert!(!holds(parts(), give), "with a table");
        let mut boss = parts();
        boss.roles[0].is_superuser = true;
        assert!(
            !holds(boss.clone(), |later| later.roles[0].is_superuser = false),
            "with everything"
        );
        assert!(holds(boss, |later| later.grants.clear()));
    }

    #[test]
    fn what_is_given_or_dropped_or_others_is_not() {
        assert!(holds(parts(), |later| later.grants.push(grant("ann", 2, None))));
        assert!(holds(parts(), |later| later.roles[0].is_superuser = true));
        assert!(holds(parts(), |later| later.grants.push(grant("bob", 4, None))));
        // A table is dropped, with its owner and grants.
        assert!(holds(parts(), |later| {
            later.owners.remove(&Uuid::from_u128(1));
            later.owners.remove(&Uuid::from_u128(4));
            later.grants.remove(0);
        }));
        // The same right by another way.
        assert!(holds(parts(), |later| later.grants[0] = grant("staff", 1, None)));
        let own = |later: &mut PolicyParts| {
            later.grants.remove(0);
            later.owners.insert(Uuid::from_u128(1), "ann".to_owned());
        };
        assert!(holds(parts(), own));
    }
}
