//! What the tables of `pg_catalog` are made of.

use crate::relations::Relations;
use crate::server::Setting;

/// What the tables are built from.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Name of the one database, and of the one role that all belongs to.
    pub(super) database: String,
    pub(super) settings: Vec<Setting>,
    pub(super) relations: Relations,
}
