//! HiveServer2's messages: Thrift's binary protocol, SASL frames, calls and answers.
//!
//! In: bytes of a connection. Out: how many of them are one message, which [`Request`] that is, and the
//! bytes of an [`Answer`].
//!
//! ```text
//!  bytes ─► sasl: frames, PLAIN       (or none of it)
//!       └─► extent: where does the message end? ─► message: name, number ─► request
//!                                                    answer ─► writer ─► bytes
//! ```
//!
//! **Invariants:**
//! - No I/O, no allocation that a length in the input asks for: lengths are compared with the bytes that are
//!   there.
//! - No input panics, recurses deeper than [`DEPTH_MAX`] or is walked over for more than [`VALUES_MAX`] values.
//! - A field that is not known, or is of another type than it should be, is skipped.
//!
//! Ids of fields are those of Hive's `TCLIService.thrift`; they are written down once, where a struct is read
//! or written.
//!
//! Not here: sockets, sessions, and how columns become row sets (`stoa-hs2`).

mod answer;
mod extent;
mod handle;
mod message;
mod reader;
mod request;
pub mod sasl;
mod type_id;
mod writer;

pub use answer::{
    Answer, Column, Failure, InfoValue, OperationKind, OperationState, OperationStatus, Progress,
    RowSet,
};
pub use extent::{Extent, extent};
pub use handle::{HANDLE_PART_BYTES, Handle};
pub use message::{Header, UnknownMethod, exception, read_header};
pub use reader::{DEPTH_MAX, Reader, VALUES_MAX};
pub use request::{FetchKind, Orientation, Request};
pub use type_id::{Kind, TypeId};
pub use writer::Writer;

#[cfg(test)]
mod tests;
