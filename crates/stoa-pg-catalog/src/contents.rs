//! What the tables of `pg_catalog` are made of.

use std::sync::Arc;

use stoa_access::Policy;

use crate::relations::{RelationInfo, Relations};
use crate::roles::{self, OWNER_OID, Roles};
use crate::server::{Running, Setting};

/// What the tables are built from.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Name of the one database, and of the role that all belongs to that has no owner of its own.
    pub(super) database: String,
    pub(super) settings: Vec<Setting>,
    pub(super) relations: Relations,
    pub(super) policy: Arc<Policy>,
    pub(super) roles: Roles,
    pub(super) running: Vec<Running>,
}

impl Contents {
    /// The name of a relation's owner.
    pub(super) fn owner(&self, relation: &RelationInfo) -> &str {
        relation.uuid.and_then(|uuid| self.policy.owner(uuid)).unwrap_or(&self.database)
    }

    /// Its OID.
    pub(super) fn owner_oid(&self, relation: &RelationInfo) -> i32 {
        self.roles.oid(self.owner(relation)).unwrap_or(OWNER_OID)
    }

    /// What others may do with a relation, or with one of its columns.
    pub(super) fn acl(
        &self,
        relation: &RelationInfo,
        field_id: Option<i32>,
    ) -> Option<Vec<String>> {
        roles::acl(&self.policy, relation.uuid?, field_id, self.owner(relation))
    }
}
