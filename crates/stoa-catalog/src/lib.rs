//! Namespaces and table pointers, in the layout of the Iceberg JDBC catalog (schema version V1).
//!
//! In: names and metadata locations. Out: the location that a table's name points to now, and the
//! compare-and-swap that moves it. Spark's JDBC catalog and PyIceberg's SQL catalog open the same
//! database file when they use the same catalog name.
//!
//! **Invariants:** a pointer moves only from the location that the caller has seen; every change is
//! one SQL transaction, durable when the call returns; any number of processes may use the file.
//! Not here: what a metadata location holds (`stoa-table`).

mod catalog;
mod error;
mod ident;
mod namespaces;
mod pointers;
mod schema;
mod tables;

pub use catalog::Catalog;
pub use ident::TableIdent;
