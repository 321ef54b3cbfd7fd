//! Errors of storage as Stoa's own.

use std::io;

use stoa_error::{Error, ErrorKind};

/// What the operating system said about doing `what` to `name` in `place`.
pub(crate) fn disk_error(place: &str, what: &str, name: &str, source: io::Error) -> Error {
    let message = format!("cannot {what} {place}/{name}");
    let error = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::new(ErrorKind::Exhausted, message)
                .with_sqlstate("53100")
                .with_hint("the disk is full: make room, then start again")
        }
        io::ErrorKind::NotFound => Error::not_found(message),
        io::ErrorKind::PermissionDenied => Error::new(ErrorKind::Forbidden, message),
        _ => Error::unavailable(message)
            .with_sqlstate("58030")
            .with_hint("look at the disk and at the system's log, then start again"),
    };
    error.with_source(source)
}

/// What an object store said about doing `what` to `name`.
pub(crate) fn object_error(what: &str, name: &str, source: object_store::Error) -> Error {
    use object_store::Error as Store;
    let kind = match &source {
        Store::NotFound { .. } => ErrorKind::NotFound,
        Store::AlreadyExists { .. } | Store::Precondition { .. } => ErrorKind::Conflict,
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => ErrorKind::Forbidden,
        Store::NotSupported { .. } | Store::NotImplemented { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("cannot {what} {name}")).with_source(source)
}
