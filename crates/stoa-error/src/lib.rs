//! Errors of Stoa: one type, sorted by what the caller should do, with one code per protocol.
//!
//! In: facts about what went wrong (message, place, hint, source). Out: [`Error`], which every
//! crate's own error turns into, and whose [`ErrorKind`] each protocol maps exactly once.
//!
//! **Invariant:** this crate knows nothing else; it has no dependencies.
//! Not here: how an error is rendered in a protocol (that is in the protocol's crate).

mod disk;
mod error;
mod kind;

pub use disk::{is_disk_full, is_io_error};
pub use error::{Error, Result};
pub use kind::ErrorKind;
