//! Errors as bytes, from the daemon where one ends to the one that asked.
//!
//! ```text
//! kind u8 | retryable u8 | SQLSTATE 5 bytes | position u32, 0 if none
//! length u32 | message | length u32 | detail | length u32 | hint       u32::MAX: there is none
//! ```
//!
//! What follows is from a later version, and ignored. Sources are part of the message.

use std::collections::BTreeSet;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use stoa_error::{Error, ErrorKind};

/// In the order of their numbers: only ever add to the end.
const KINDS: [ErrorKind; 12] = [
    ErrorKind::Invalid,
    ErrorKind::Unsupported,
    ErrorKind::NotFound,
    ErrorKind::AlreadyExists,
    ErrorKind::Forbidden,
    ErrorKind::Conflict,
    ErrorKind::Exhausted,
    ErrorKind::Unavailable,
    ErrorKind::Cancelled,
    ErrorKind::Timeout,
    ErrorKind::Corrupt,
    ErrorKind::Internal,
];

/// Bytes of the longest text that is sent; the rest is cut off.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// SQLSTATEs of peers that are kept for ever; PostgreSQL has about 270.
const SQLSTATES_MAX: usize = 1000;

/// Stands for a text that is not there.
const NONE: u32 = u32::MAX;

/// An error as bytes, for [`decode`] in another daemon.
pub fn encode(error: &Error) -> Bytes {
    let mut bytes = BytesMut::with_capacity(128);
    let kind = KINDS.iter().position(|kind| *kind == error.kind());
    bytes.put_u8(kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(u8::MAX));
    bytes.put_u8(error.is_retryable().into());
    bytes.put_slice(error.sqlstate().as_bytes());
    let position = error.position().and_then(|position| u32::try_from(position).ok());
    bytes.put_u32(position.unwrap_or_default());
    for text in [Some(error.message_with_sources().as_str()), error.detail(), error.hint()] {
        put_text(&mut bytes, text);
    }
    bytes.freeze()
}

fn put_text(bytes: &mut BytesMut, text: Option<&str>) {
    let Some(text) = text else { return bytes.put_u32(NONE) };
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    bytes.put_u32(u32::try_from(text.len()).unwrap_or_default());
    bytes.put_slice(text.as_bytes());
}

/// The error again; `None` if the bytes are damaged.
pub fn decode(mut bytes: &[u8]) -> Option<Error> {
    let (kind, retryable) = (bytes.try_get_u8().ok()?, bytes.try_get_u8().ok()?);
    // A kind of a later version is one of two for its caller.
    let unknown = if retryable != 0 { ErrorKind::Unavailable } else { ErrorKind::Internal };
    let kind = KINDS.get(usize::from(kind)).copied().unwrap_or(unknown);
    let (sqlstate, rest) = bytes.split_first_chunk::<5>()?;
    bytes = rest;
    let position = bytes.try_get_u32().ok()?;
    let mut error = Error::new(kind, take_text(&mut bytes)?.unwrap_or_default());
    if let Some(sqlstate) = kept(sqlstate) {
        error = error.with_sqlstate(sqlstate);
    }
    if position > 0 {
        error = error.with_position(usize::try_from(position).ok()?);
    }
    if let Some(detail) = take_text(&mut bytes)? {
        error = error.with_detail(detail);
    }
    if let Some(hint) = take_text(&mut bytes)? {
        error = error.with_hint(hint);
    }
    Some(error)
}

fn take_text(bytes: &mut &[u8]) -> Option<Option<String>> {
    let length = bytes.try_get_u32().ok()?;
    if length == NONE {
        return Some(None);
    }
    let (text, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(Some(String::from_utf8_lossy(text).into_owned()))
}

/// The same SQLSTATE, for as long as the process lives; `None` if it is none, or one too many.
fn kept(sqlstate: &[u8; 5]) -> Option<&'static str> {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let text = std::str::from_utf8(sqlstate).ok()?;
    if !text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
        return None;
    }
    let mut kept = KEPT.lock();
    if let Some(known) = kept.get(text) {
        return Some(known);
    }
    if kept.len() >= SQLSTATES_MAX {
        return None;
    }
    let new: &'static str = Box::leak(text.to_owned().into_boxed_str());
    kept.insert(new);
    Some(new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stoa_error::Condition;

    use super::*;

    fn check(error: &Error) {
        let again = decode(&encode(error)).unwrap();
        assert_eq!(again.kind(), error.kind());
        assert_eq!(again.sqlstate(), error.sqlstate());
        assert_eq!(again.message(), error.message_with_sources());
        assert_eq!(again.detail(), error.detail());
        assert_eq!(again.hint(), error.hint());
        assert_eq!(again.position(), error.position());
        assert_eq!(again.is_retryable(), error.is_retryable());
    }

    #[test]
    fn errors_are_the_same_at_the_other_end() {
        for kind in KINDS {
            check(&Error::new(kind, "what was wrong"));
        }
        check(&Error::unavailable("who knows").with_condition(Condition::UnknownOutcome));
        check(&Error::not_found("no table t").with_sqlstate("42P01").with_position(15));
        check(&Error::invalid("x").with_detail("y").with_hint("").at("line 3"));
        check(&Error::unavailable("cannot write").with_source(std::io::Error::other("disk full")));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let error = decode(&encode(&Error::invalid("ä".repeat(TEXT_BYTES_MAX)))).unwrap();
        assert_eq!(error.message().len(), TEXT_BYTES_MAX);
        let error = decode(&encode(&Error::invalid("€".repeat(TEXT_BYTES_MAX)))).unwrap();
        assert_eq!(error.message().len(), TEXT_BYTES_MAX / 3 * 3);
    }

    #[test]
    fn what_a_later_version_adds_is_ignored() {
        let mut bytes = encode(&Error::invalid("x").with_hint("y")).to_vec();
        bytes.extend_from_slice(b"later");
        assert_eq!(decode(&bytes).unwrap().hint(), Some("y"));
        bytes[..2].copy_from_slice(&[200, 1]);
        assert_eq!(decode(&bytes).unwrap().kind(), ErrorKind::Unavailable);
        bytes[..2].copy_from_slice(&[200, 0]);
        assert_eq!(decode(&bytes).unwrap().kind(), ErrorKind::Internal);
    }

    #[test]
    fn damaged_bytes_are_no_error() {
        let whole = encode(&Error::invalid("x").with_detail("y").with_hint("z"));
        for end in 0..whole.len() {
            assert!(decode(&whole[..end]).is_none());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn texts_survive(message in ".*", detail in proptest::option::of(".*")) {
            let mut error = Error::conflict(message);
            if let Some(detail) = detail {
                error = error.with_detail(detail);
            }
            check(&error);
        }
    }
}
