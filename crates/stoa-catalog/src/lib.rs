//! Namespaces, and pointers of tables and views, in the layout of the Iceberg JDBC catalog (schema
//! version V1), and beside them roles, grants and resource plans, in tables of Stoa's own; in SQLite or PostgreSQL.
//!
//! In: names and metadata locations; roles, grants and owners. Out: the location that the name of a
//! table or view points to now, the compare-and-swap that moves it, and the
//! [`Policy`](stoa_access::Policy) that holds now; which commit logs have rows for the tables; and, in
//! PostgreSQL, which daemons are members of the cluster and who has which lease.
//! Spark's JDBC catalog and PyIceberg's SQL catalog open the same database when they use the same
//! catalog name; they know nothing of roles.
//!
//! **Invariants:** a name is a table or a view, never both; a pointer moves only from the location that the caller has seen; every change is
//! one SQL transaction, durable when the call returns; the policy's version counts its changes; any
//! number of processes may use the database. Not here: what a metadata location holds (`stoa-table`),
//! what follows from a policy (`stoa-access`), what changes of resource plans mean (`stoa-workload`), who may make them
//! (`stoa-query`).

mod catalog;
mod cluster;
mod copy;
mod database;
mod error;
mod grants;
mod ident;
mod known;
mod login_key;
mod logs;
mod lookup;
mod namespaces;
mod place;
mod pointers;
mod policy;
mod postgres;
mod relation;
mod resource_plans;
mod roles;
mod schema;
mod sequences;
mod sql_text;
mod sqlite;
mod state;
mod tables;
mod views;

pub use catalog::Catalog;
pub use cluster::{Cluster, ClusterHints, ClusterState, DaemonInfo, DaemonLife, Lease};
pub use copy::Copied;
pub use ident::TableIdent;
pub use logs::KnownLog;
pub use namespaces::Listing;
pub use place::CatalogPlace;
pub use relation::{Relation, RelationKind};
pub use roles::RoleChange;
pub use state::CatalogState;
pub use tables::Swap;
