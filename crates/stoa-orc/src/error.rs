//! Errors of this crate: [`stoa_error::Error`], with helpers that name the place.
//!
//! A damaged file is `Corrupt` and names stripe, column, stream and offset: each layer puts its
//! own [`Place`] in front with [`stoa_error::Error::at`].

use stoa_error::{Place, StreamPart};

use crate::proto::StreamKind;

pub use stoa_error::{Error, Result};

/// A stream of a column, or a part of it.
#[cold]
pub(crate) fn stream_place(kind: StreamKind, part: StreamPart) -> Place {
    Place::Stream { kind: kind_name(kind), part }
}

/// Name of a kind as the specification writes it.
fn kind_name(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::Present => "PRESENT",
        StreamKind::Data => "DATA",
        StreamKind::Length => "LENGTH",
        StreamKind::DictionaryData => "DICTIONARY_DATA",
        StreamKind::DictionaryCount => "DICTIONARY_COUNT",
        StreamKind::Secondary => "SECONDARY",
        StreamKind::RowIndex => "ROW_INDEX",
        StreamKind::BloomFilter => "BLOOM_FILTER",
        StreamKind::BloomFilterUtf8 => "BLOOM_FILTER_UTF8",
        StreamKind::EncryptedIndex => "ENCRYPTED_INDEX",
        StreamKind::EncryptedData => "ENCRYPTED_DATA",
        StreamKind::StripeStatistics => "STRIPE_STATISTICS",
        StreamKind::FileStatistics => "FILE_STATISTICS",
    }
}

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
