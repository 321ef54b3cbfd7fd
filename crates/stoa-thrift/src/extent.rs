//! Where a message ends: on a connection without frames, nothing but the message itself says so.

use stoa_error::Result;

use crate::reader::{Reader, Stop};

/// How far bytes are a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The first so many bytes are one.
    Whole(usize),
    /// There must be at least so many bytes; no fewer than are there now plus one.
    Partial {
        /// Bytes from the message's begin.
        at_least: usize,
    },
}

/// How many of `bytes` are one call; nothing is copied.
///
/// # Errors
/// 08P01: whatever follows, it will be none.
pub fn extent(bytes: &[u8]) -> Result<Extent> {
    let mut reader = Reader::new(bytes);
    let walked = reader.message_begin().and_then(|_| reader.skip_arguments());
    match walked {
        Ok(()) => Ok(Extent::Whole(reader.position())),
        Err(Stop::Short { at_least }) => Ok(Extent::Partial { at_least }),
        Err(stop) => Err(stop.into()),
    }
}
