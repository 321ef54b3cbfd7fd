//! The frame of a `CopyData` message.

use stoa_error::Result;

/// Begins a message; returns where it starts.
pub(super) fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
    start
}

/// Ends the message that starts at `start`.
///
/// # Errors
/// It has more than the 2 GiB that a message can have; nothing of it stays.
pub(super) fn finish(start: usize, out: &mut Vec<u8>) -> Result<()> {
    let Ok(length) = i32::try_from(out.len() - start - 1) else {
        out.truncate(start);
        return Err(super::row_too_large());
    };
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
