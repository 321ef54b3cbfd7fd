//! Opens warehouse locations as object stores.
//!
//! In: a location as a user or an Iceberg manifest writes it (`./dir`, `file:///…`). Out: an
//! [`object_store::ObjectStore`] and the path inside it, metered.
//!
//! **Invariants:** what a completed `put` or multipart upload wrote survives a power cut (file and
//! directory are fsynced before the call returns); a file is never changed in place: bytes go to a
//! temporary name first.
//! Not here: which ranges of a file to read (`stoa-rangeio`), what the files mean (`stoa-table`).

mod durable;
mod error;
mod local;
mod location;
mod meter;
mod stores;

pub use error::from_object_store;
pub use local::LocalStore;
pub use location::{Location, literal_of, parse_location};
pub use meter::{Metered, StoreMetrics, StoreTotals};
pub use stores::Stores;
