//! What a cluster of a given size costs: balance, caches, requests, statements.
//!
//! In: nothing; the figures are constants of `model`. Out: [`document`], the text of `docs/scale.md`. Homes are
//! computed by the real code ([`Homes`]); the rest are formulas.

mod document;
mod jump;
mod model;
mod placement;

pub use document::document;
pub use jump::jump;
pub use placement::{BUCKETS_EACH, Homes};

/// The sizes of clusters in the tables.
pub const SIZES: [usize; 6] = [3, 10, 45, 100, 300, 700];

/// The reports per hour in the tables.
pub const REPORTS_PER_HOUR: [f64; 4] = [1e5, 1e6, 1e7, 1e8];
