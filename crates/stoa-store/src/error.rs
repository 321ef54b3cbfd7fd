//! Errors of object stores as Stoa's own.

use stoa_error::{Error, ErrorKind};

use crate::s3::explain;

/// Turns an object store's error about `place` (a location, as the user knows it) into Stoa's.
pub fn from_object_store(place: &str, error: object_store::Error) -> Error {
    use object_store::Error as Store;
    if let Some(known) = explain(&error) {
        return Error::new(known.kind, format!("{place}: {}", known.what))
            .with_hint(known.hint)
            .with_source(error);
    }
    let (kind, what) = match &error {
        Store::NotFound { .. } => (ErrorKind::NotFound, "there is no such file"),
        Store::AlreadyExists { .. } => (ErrorKind::AlreadyExists, "the file exists already"),
        Store::Precondition { .. } => (ErrorKind::Conflict, "the file has changed"),
        Store::PermissionDenied { .. } => (ErrorKind::Forbidden, "access is denied"),
        Store::Unauthenticated { .. } => (ErrorKind::Forbidden, "the credentials are refused"),
        Store::NotSupported { .. } | Store::NotImplemented { .. } => {
            (ErrorKind::Unsupported, "the store does not do this")
        }
        Store::InvalidPath { .. } => (ErrorKind::Invalid, "the path is not valid"),
        _ => (ErrorKind::Unavailable, "the store failed"),
    };
    Error::new(kind, format!("{place}: {what}")).with_source(error)
}
