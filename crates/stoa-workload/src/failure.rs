//! Errors that changes of plans have in common.

use stoa_error::Error;

/// The status of a plan, or what still uses a part of it, forbids a change.
pub(crate) fn state(message: String) -> Error {
    Error::invalid(message).with_sqlstate("55000")
}

/// There is one of this name.
pub(crate) fn exists(what: &str, name: &str) -> Error {
    Error::already_exists(format!("{what} \"{name}\" already exists")).with_sqlstate("42710")
}
