//! Small writes, over every protocol that takes them: what `ingest` measures and `torture` kills.
//!
//! In: a [`Parcel`] of rows, which is one acknowledged unit (a statement, a `COPY`, a request).
//! Out: the acknowledgement, or an error, after which the parcel may or may not be there.
//!
//! **Invariant:** every column of a row is a pure function of its parcel's number and its place in
//! it, so that whoever knows which parcels should be there can check the rows by sums.

mod parcel;
mod writer;

pub use parcel::Parcel;
pub(crate) use parcel::{PARCEL_BYTES_PER_ROW, columns_sql};
pub(crate) use writer::acknowledged;
pub use writer::{Payload, ServerAddress, WritePath, Writer};
