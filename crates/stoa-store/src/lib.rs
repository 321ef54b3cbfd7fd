//! Opens warehouse locations as object stores.
//!
//! In: a location as a user or an Iceberg manifest writes it (`./dir`, `file:///…`,
//! `s3://bucket/…`, Spark's `s3a://…`), and [`S3Options`]. Out: an [`object_store::ObjectStore`],
//! the path inside it, and the store's one [`stoa_rangeio::RangeReader`], metered per store.
//!
//! **Invariants:** what a completed `put` or multipart upload wrote survives a power cut (file and
//! directory are fsynced before the call returns, or the object store has acknowledged it); a file
//! is never changed in place: on disk bytes go to a temporary name first.
//! Not here: which ranges of a file to read (`stoa-rangeio`), what the files mean (`stoa-table`).

mod charge;
mod durable;
mod error;
mod local;
mod location;
mod meter;
mod prices;
mod put_new;
mod s3;
mod stores;
mod upload;

pub use charge::{Charge, Charged, also_charged, charged};
pub use durable::{
    create_directory, make_directory, remove_empty_directory, remove_hidden_directory,
};
pub use error::from_object_store;
pub use local::LocalStore;
pub use location::{Location, literal_of, parse_location};
pub use meter::{Metered, StoreMetrics, StoreTotals};
pub use prices::Prices;
pub use s3::{Credentials, S3Options, Secret};
pub use stores::{StoreUsage, Stores};
pub use upload::Upload;
