//! Errors of this crate: [`stoa_error::Error`], with helpers that name the place.
//!
//! A damaged file is `Corrupt` and names stripe, column, stream and offset: each layer puts its
//! own part in front with [`stoa_error::Error::at`].

pub use stoa_error::{Error, Result};

/// Bytes contradict the format.
#[cold]
pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::corrupt(message)
}

/// The format allows it, we do not.
#[cold]
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported(message)
}

/// Something would grow beyond a declared limit.
#[cold]
pub(crate) fn exhausted(message: impl Into<String>) -> Error {
    Error::new(stoa_error::ErrorKind::Exhausted, message)
}
