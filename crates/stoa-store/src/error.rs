//! Errors of object stores as Stoa's own.

use stoa_error::{Error, ErrorKind, Place, is_disk_full, is_io_error};

use crate::s3::explain;

/// Turns an object store's error about `place` (a location, as the user knows it) into Stoa's.
pub fn from_object_store(place: &str, error: object_store::Error) -> Error {
    use object_store::Error as Store;
    if let Some(known) = explain(&error) {
        return Error::new(known.kind, known.what)
            .at(Place::file(place))
            .with_hint(known.hint)
            .with_source(error);
    }
    if is_disk_full(&error) {
        return Error::new(ErrorKind::Exhausted, "the disk is full")
            .at(Place::file(place))
            .with_sqlstate("53100")
            .with_hint("make room on that disk, and repeat what failed")
            .with_source(error);
    }
    if is_io_error(&error) {
        return Error::unavailable("the disk has met an I/O error")
            .at(Place::file(place))
            .with_sqlstate("58030")
            .with_hint("look at the disk and at the system's log")
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
    Error::new(kind, what).at(Place::file(place)).with_source(error)
}
