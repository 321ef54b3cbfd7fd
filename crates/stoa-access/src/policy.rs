//! One version of roles, memberships, grants and owners, and what follows from them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use stoa_error::Result;
use uuid::Uuid;

use crate::error::unknown_role;
use crate::{Access, Columns, Grant, Grantee, Membership, Memberships, Object, Privilege, Role};

/// What a [`Policy`] is made of, in any order.
#[derive(Clone, Debug, Default)]
pub struct PolicyParts {
    /// The roles, each name once; of two, the later holds.
    pub roles: Vec<Role>,
    /// Who is a member of what.
    pub memberships: Vec<Membership>,
    /// The grants; those of one grantee on columns of one table may be split.
    pub grants: Vec<Grant>,
    /// The owner of each table that has one.
    pub owners: HashMap<Uuid, String>,
}

/// Everything there is to know for saying who may do what, as of one version. Immutable; share it
/// in an `Arc`.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    version: u64,
    roles: BTreeMap<String, Role>,
    memberships: Memberships,
    /// The grants on each object, in order, at most two per grantee and privilege: one of the
    /// whole, one of columns.
    grants: BTreeMap<Object, Vec<Grant>>,
    owners: BTreeMap<Uuid, String>,
}

impl Policy {
    /// Builds version `version` of the policy.
    ///
    /// # Errors
    /// `NotFound` (42704) where parts name a role that is not among them, `Invalid` (0LP01) for
    /// memberships that form a cycle, and what [`Grant::check`] says.
    pub fn new(version: u64, parts: PolicyParts) -> Result<Self> {
        let roles = parts.roles.into_iter().map(|role| (role.name.clone(), role)).collect();
        let mut policy = Self { version, roles, ..Self::default() };
        for membership in parts.memberships {
            policy.require(&membership.role)?;
            policy.require(&membership.member)?;
            policy.memberships.add(membership)?;
        }
        for grant in &parts.grants {
            grant.check()?;
            if let Grantee::Role(name) = &grant.grantee {
                policy.require(name)?;
            }
        }
        policy.grants = by_object(parts.grants);
        for (table, owner) in parts.owners {
            policy.require(&owner)?;
            policy.owners.insert(table, owner);
        }
        Ok(policy)
    }

    /// Which version this is; a greater one is newer.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What `role` may do with `table`, which is in `namespace` now: the union of what was granted
    /// to it, to PUBLIC, and to the roles it is a member of. Superusers and owners (members of the
    /// owning role among them) may do everything; a role that does not exist nothing.
    pub fn access(&self, role: &str, namespace: &str, table: Uuid) -> Access {
        let Some(known) = self.roles.get(role) else { return Access::default() };
        if known.is_superuser {
            return Access::everything();
        }
        let roles = self.memberships.roles_of(role);
        if self.owners.get(&table).is_some_and(|owner| roles.contains(owner.as_str())) {
            return Access::everything();
        }
        let mut access = Access::default();
        let objects = [Object::Table(table), Object::Namespace(namespace.to_owned())];
        let grants = objects.iter().filter_map(|object| self.grants.get(object)).flatten();
        for grant in grants {
            let holds = match &grant.grantee {
                Grantee::Public => true,
                Grantee::Role(name) => roles.contains(name.as_str()),
            };
            if holds {
                access.add(grant);
            }
        }
        access
    }

    /// What `role` owns, by itself or as a member of the owner.
    pub(crate) fn owned_by(&self, role: &str) -> BTreeSet<Uuid> {
        let roles = self.memberships.roles_of(role);
        let owned = self.owners.iter().filter(|(_, owner)| roles.contains(owner.as_str()));
        owned.map(|(table, _)| *table).collect()
    }

    /// What `role`, a role of its, or everybody was granted `SELECT` on.
    pub(crate) fn selectable(&self, role: &str) -> BTreeMap<Object, Columns> {
        let roles = self.memberships.roles_of(role);
        let mut all: BTreeMap<Object, Columns> = BTreeMap::new();
        for grant in self.grants().filter(|grant| grant.privilege == Privilege::Select) {
            let holds = match &grant.grantee {
                Grantee::Public => true,
                Grantee::Role(name) => roles.contains(name.as_str()),
            };
            if holds {
                all.entry(grant.object.clone()).or_default().add(grant.columns.as_ref());
            }
        }
        all
    }

    /// The role of this name.
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.get(name)
    }

    /// The role of this name, for statements that need it.
    ///
    /// # Errors
    /// `NotFound` (42704) with the nearest name as hint.
    pub fn require(&self, name: &str) -> Result<&Role> {
        self.roles
            .get(name)
            .ok_or_else(|| unknown_role(name, self.roles.keys().map(String::as_str)))
    }

    /// All roles, by name.
    pub fn roles(&self) -> impl ExactSizeIterator<Item = &Role> {
        self.roles.values()
    }

    /// Who is a member of what.
    pub fn memberships(&self) -> &Memberships {
        &self.memberships
    }

    /// All grants, by object, grantee and privilege; that of the whole before that of columns.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values().flatten()
    }

    /// All tables that have an owner, by UUID, and the owner.
    pub fn owners(&self) -> impl ExactSizeIterator<Item = (Uuid, &str)> {
        self.owners.iter().map(|(table, owner)| (*table, owner.as_str()))
    }

    /// The owner of `table`.
    pub fn owner(&self, table: Uuid) -> Option<&str> {
        self.owners.get(&table).map(String::as_str)
    }
}

/// Sorts grants under their objects; those on columns become one per grantee and privilege.
fn by_object(mut grants: Vec<Grant>) -> BTreeMap<Object, Vec<Grant>> {
    grants.sort();
    let mut sorted: BTreeMap<Object, Vec<Grant>> = BTreeMap::new();
    for grant in grants {
        let held = sorted.entry(grant.object.clone()).or_default();
        match held.last_mut().filter(|last| differs_in_columns_only(last, &grant)) {
            Some(last) => {
                if let (Some(columns), Some(more)) = (&mut last.columns, grant.columns) {
                    columns.extend(more);
                }
            }
            None => held.push(grant),
        }
    }
    sorted
}

/// Whether both are of one grantee and privilege, and both of the whole or both of columns.
fn differs_in_columns_only(a: &Grant, b: &Grant) -> bool {
    (&a.grantee, a.privilege, a.columns.is_some()) == (&b.grantee, b.privilege, b.columns.is_some())
}

#[cfg(test)]
mod tests;
