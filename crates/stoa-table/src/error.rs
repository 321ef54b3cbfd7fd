//! Errors of the Iceberg library as Stoa's own.

use stoa_error::{Error, ErrorKind};

/// An Iceberg error about `place` (a table or a metadata file).
pub(crate) fn from_iceberg(place: impl std::fmt::Display, error: iceberg::Error) -> Error {
    use iceberg::ErrorKind as Iceberg;
    let (kind, what) = match error.kind() {
        Iceberg::DataInvalid => (ErrorKind::Corrupt, "the Iceberg metadata is not valid"),
        Iceberg::FeatureUnsupported => {
            (ErrorKind::Unsupported, "the Iceberg metadata uses a feature that is not supported")
        }
        _ => (ErrorKind::Internal, "the Iceberg metadata could not be handled"),
    };
    let detail = error.message().to_owned();
    Error::new(kind, what).at(place.to_string()).with_detail(detail).with_source(error)
}

/// An Iceberg error that the caller's request caused.
pub(crate) fn invalid_request(place: impl std::fmt::Display, error: iceberg::Error) -> Error {
    let message = error.message().to_owned();
    Error::invalid(lower_first(&message)).at(place.to_string()).with_source(error)
}

/// A column that the table does not have.
pub(crate) fn undefined_column(table: impl std::fmt::Display, column: &str) -> Error {
    Error::not_found(format!("table {table} has no column {column:?}"))
        .with_sqlstate("42703")
        .with_hint("DESCRIBE lists the columns")
}

/// A column that the table has already.
pub(crate) fn duplicate_column(table: impl std::fmt::Display, column: &str) -> Error {
    Error::already_exists(format!("table {table} has a column {column:?} already"))
        .with_sqlstate("42701")
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
