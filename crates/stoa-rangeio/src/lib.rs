//! Turns required byte ranges into few reads, and runs them.
//!
//! In: the byte ranges a decoder asks for, in any order, and a store. Out: the bytes, each asked
//! range whole inside one returned chunk.
//!
//! - [`plan`] decides, without I/O, which reads cover the ranges. Two rules: a fixed gap
//!   (ORC-1136: gaps up to `min_seek_size` are read over), or the plan that costs least on a
//!   store of given latency, bandwidth, parallelism and price ([`StoreProfile`]).
//! - [`RangeReader`] runs plans on an [`object_store`]: bounded parallelism, retries, a second
//!   request for stragglers; it measures the store and plans the next reads by that.
//! - [`Pin`] makes a reader fail where an object is not the one that was read first.
//! - [`ReadMetrics`] counts requests, bytes needed, bytes read and time.
//! - [`throttle`] makes any store as slow as wanted, for tests and benches.
//!
//! # Which preset
//!
//! | store | [`ReaderOptions`] | what it does |
//! |---|---|---|
//! | memory | `memory()` | one call, nothing merged, nothing copied |
//! | local disk | `local_file()` | one call, gaps up to 64 KiB read over |
//! | S3 and the like | `object_store()` | adaptive, ten at a time, retries, hedges |
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
//! use stoa_rangeio::{RangeReader, ReaderOptions};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
//! let path = Path::from("data.orc");
//! store.put(&path, vec![7_u8; 100_000].into()).await.unwrap();
//!
//! let reader = RangeReader::new(store, ReaderOptions::object_store());
//! for (offset, bytes) in reader.read(&path, &[0..10, 500..510, 90_000..90_100]).await.unwrap() {
//!     println!("{} bytes from {offset}", bytes.len());
//! }
//! let counts = reader.metrics().counts();
//! println!("{} requests for {} bytes", counts.requests, counts.bytes_needed);
//! # });
//! ```
//!
//! **Invariants:** every byte asked for is covered by exactly one read of a plan; no read is
//! larger than `max_read_bytes`; a plan's extra bytes stay within `max_over_read`. This crate
//! knows nothing of ORC or any other format, and holds no cache.

mod adaptive;
mod chunks;
mod measure;
mod metrics;
mod options;
mod pack;
mod pin;
mod plan;
mod reader;
mod request;
pub mod throttle;

pub use metrics::{ReadCounts, ReadMetrics};
pub use options::{HedgeOptions, PlanOptions, ReaderOptions, StoreProfile};
pub use pack::PlannedRead;
pub use pin::Pin;
pub use plan::plan;
pub use reader::RangeReader;
