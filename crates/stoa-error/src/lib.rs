//! Errors of Stoa: one type, sorted by what the caller should do, with one code per protocol.
//!
//! In: facts about what went wrong (message, place, hint, source). Out: [`Error`], which every
//! crate's own error turns into, and whose [`ErrorKind`] each protocol maps exactly once. Code that
//! decides something by an error looks at its kind, its [`Condition`] and its [`Place`]s.
//!
//! **Invariant:** this crate knows nothing else; it has no dependencies.
//! Not here: how an error is rendered in a protocol (that is in the protocol's crate).

mod condition;
mod disk;
mod error;
mod kind;
mod place;
mod subject;

pub use condition::Condition;
pub use disk::{is_disk_full, is_io_error};
pub use error::{Error, Result};
pub use kind::ErrorKind;
pub use place::{Place, RecordNumber, StreamPart};
pub use subject::Subject;
