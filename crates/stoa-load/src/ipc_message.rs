//! What an Arrow IPC message says of its body is checked before anybody believes it.
//!
//! In: a message's metadata (a flatbuffer) and the length of its body, then the body. Out: nothing, or
//! an error. Arrow's own reader makes room for as many bytes as a message says, and slices buffers
//! where it says they are: a few bytes could end the process.
//!
//! **Invariants:** after the checks all buffers lie in the body; what they decompress to is bounded,
//! and so is the number of rows by what the body can hold.
//!
//! Not here: reading (`arrow_ipc`), and whether values fit their types (Arrow validates them).

use arrow_ipc::{CompressionType, Message, MessageHeader, RecordBatch, root_as_message};
use stoa_error::{Error, Result};

/// Bytes of the largest body that is read from a stream, and of what one may decompress to.
pub(crate) const BODY_BYTES_MAX: u64 = 256 << 20;
/// Bytes of the largest metadata: a schema of 100,000 columns has a tenth of it.
pub(crate) const METADATA_BYTES_MAX: u64 = 64 << 20;
/// Rows of a batch whose columns need no bytes, all NULL.
const ROWS_WITHOUT_BYTES_MAX: u64 = 64 << 10;
/// Bytes before a compressed buffer: its length when decompressed, or -1.
const PREFIX_BYTES: usize = 8;

/// Checks a message that is there as a whole. `metadata` may be empty: then it has no body.
///
/// # Errors
/// Invalid: 08P01 where it says what cannot be, 54000 where it is too large.
pub fn check_ipc_message(metadata: &[u8], body: &[u8]) -> Result<()> {
    if metadata.is_empty() {
        return Ok(());
    }
    let message = parse(metadata)?;
    check_layout(&message, body.len() as u64)?;
    check_compressed(&message, body)
}

/// # Errors
/// As [`check_ipc_message`].
pub(crate) fn parse(metadata: &[u8]) -> Result<Message<'_>> {
    root_as_message(metadata)
        .map_err(|error| damaged(&format!("a message has no Arrow header: {error}")))
}

/// The length of the body that follows.
///
/// # Errors
/// As [`check_ipc_message`].
pub(crate) fn body_bytes(message: &Message<'_>) -> Result<u64> {
    u64::try_from(message.bodyLength())
        .map_err(|_| damaged("a message's body has an impossible length"))
}

/// # Errors
/// 54000: the body is longer than those that are read.
pub(crate) fn check_body_bytes(bytes: u64) -> Result<()> {
    if bytes <= BODY_BYTES_MAX {
        return Ok(());
    }
    Err(too_large(format!("a batch of {bytes} bytes is larger than {BODY_BYTES_MAX}")))
}

/// Whether the body must be there before it can be checked wholly.
pub(crate) fn is_compressed(message: &Message<'_>) -> bool {
    batch_of(message).is_some_and(|batch| batch.compression().is_some())
}

/// Checks that what a batch describes is in a body of so many bytes.
///
/// # Errors
/// As [`check_ipc_message`].
pub(crate) fn check_layout(message: &Message<'_>, body_bytes: u64) -> Result<()> {
    let batch = match (message.header_type(), batch_of(message)) {
        (_, Some(batch)) => batch,
        (MessageHeader::RecordBatch | MessageHeader::DictionaryBatch, None) => {
            return Err(damaged("a batch has no description"));
        }
        _ => return Ok(()),
    };
    let inside = |offset: i64, length: i64| {
        let end = offset.checked_add(length).and_then(|end| u64::try_from(end).ok());
        offset >= 0 && length >= 0 && end.is_some_and(|end| end <= body_bytes)
    };
    let buffers = batch.buffers();
    if buffers.is_some_and(|all| all.iter().any(|part| !inside(part.offset(), part.length()))) {
        return Err(damaged("a buffer lies outside of its message"));
    }
    let counts = |length: i64, nulls: i64| length >= 0 && (0..=length).contains(&nulls);
    let nodes = batch.nodes();
    if nodes.is_some_and(|all| all.iter().any(|node| !counts(node.length(), node.null_count()))) {
        return Err(damaged("a column has an impossible length"));
    }
    let Ok(rows) = u64::try_from(batch.length()) else {
        return Err(damaged("a batch has an impossible number of rows"));
    };
    if batch.compression().is_none() { check_rows(&batch, rows, body_bytes) } else { Ok(()) }
}

/// A bit is the least that a row takes, of a column that takes anything.
fn check_rows(batch: &RecordBatch<'_>, rows: u64, bytes: u64) -> Result<()> {
    let longest = batch.nodes().and_then(|all| all.iter().map(|node| node.length()).max());
    let rows = rows.max(u64::try_from(longest.unwrap_or_default()).unwrap_or(u64::MAX));
    if rows <= ROWS_WITHOUT_BYTES_MAX.saturating_add(bytes.saturating_mul(8)) {
        return Ok(());
    }
    Err(damaged(&format!("a batch of {bytes} bytes says that it has {rows} rows")))
}

/// Checks what compressed buffers say they decompress to.
///
/// # Errors
/// As [`check_ipc_message`].
pub(crate) fn check_compressed(message: &Message<'_>, body: &[u8]) -> Result<()> {
    let Some(batch) = batch_of(message) else { return Ok(()) };
    let Some(compression) = batch.compression() else { return Ok(()) };
    let mut sum = 0_u64;
    for part in batch.buffers().iter().flat_map(|all| all.iter()) {
        let (start, length) = (part.offset() as usize, part.length() as usize);
        let bytes = start.checked_add(length).and_then(|end| body.get(start..end));
        let bytes = bytes.ok_or_else(|| damaged("a buffer lies outside of its message"))?;
        if bytes.is_empty() {
            continue;
        }
        let (declared, compressed) = bytes
            .split_first_chunk::<PREFIX_BYTES>()
            .ok_or_else(|| damaged("a compressed buffer has no length"))?;
        let declared = match i64::from_le_bytes(*declared) {
            -1 => compressed.len() as u64,
            declared => {
                let declared = u64::try_from(declared)
                    .map_err(|_| damaged("a compressed buffer has an impossible length"))?;
                if compression.codec() == CompressionType::LZ4_FRAME {
                    check_lz4(compressed, declared)?;
                }
                declared
            }
        };
        sum = sum.saturating_add(declared);
        if sum > BODY_BYTES_MAX {
            return Err(too_large(format!(
                "a batch that decompresses to {sum} bytes or more is larger than {BODY_BYTES_MAX}"
            )));
        }
    }
    check_rows(&batch, u64::try_from(batch.length()).unwrap_or_default(), sum)
}

/// Checks that LZ4 frames do not decompress to more than they should: their decoder goes on to their
/// end, however long that is.
fn check_lz4(mut frames: &[u8], declared: u64) -> Result<()> {
    const MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
    let wrong = || damaged("a buffer is no LZ4 frame");
    let (mut most, mut block_max) = (0_u64, 0_u64);
    while !frames.is_empty() {
        let rest = frames.strip_prefix(&MAGIC).ok_or_else(wrong)?;
        let [flags, block, rest @ ..] = rest else { return Err(wrong()) };
        let has = |bit: u8| flags & (1 << bit) != 0;
        block_max = match (block >> 4) & 7 {
            size @ 4..=7 => 1 << (8 + 2 * u32::from(size)),
            _ => return Err(wrong()),
        };
        // Content size, dictionary, checksum of the header.
        let skipped = 8 * usize::from(has(3)) + 4 * usize::from(has(0)) + 1;
        let mut rest = rest.get(skipped..).ok_or_else(wrong)?;
        loop {
            let (size, blocks) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
            let size = u32::from_le_bytes(*size);
            if size == 0 {
                rest = blocks;
                break;
            }
            most = most.saturating_add(block_max);
            let bytes = (size & 0x7FFF_FFFF) as usize + 4 * usize::from(has(4));
            rest = blocks.get(bytes..).ok_or_else(wrong)?;
        }
        frames = rest.get(4 * usize::from(has(2))..).ok_or_else(wrong)?;
    }
    // All blocks but the last are full.
    if most > declared.saturating_add(block_max) {
        return Err(damaged("a buffer decompresses to more than it says"));
    }
    Ok(())
}

fn batch_of<'a>(message: &Message<'a>) -> Option<RecordBatch<'a>> {
    match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => {
            message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data())
        }
        _ => None,
    }
}

pub(crate) fn damaged(what: &str) -> Error {
    Error::invalid(format!("the rows sent are not Arrow data: {}", what.trim_end()))
        .with_sqlstate("08P01")
}

pub(crate) fn too_large(message: String) -> Error {
    Error::invalid(message).with_sqlstate("54000").with_hint("send batches of fewer rows")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of blocks of these sizes, with blocks of 64 KiB when decompressed.
    fn frame(sizes: &[u32]) -> Vec<u8> {
        let mut frame = 0x184D_2204_u32.to_le_bytes().to_vec();
        frame.extend([0x60, 0x40, 0]);
        for size in sizes {
            frame.extend(size.to_le_bytes());
            frame.extend(vec![0; *size as usize]);
        }
        frame.extend([0; 4]);
        frame
    }

    #[test]
    fn lz4_frames_are_bounded_by_their_blocks() {
        assert!(check_lz4(&frame(&[9, 9]), 100_000).is_ok());
        let bomb = frame(&[9; 100]);
        assert!(check_lz4(&bomb, 100_000).is_err());
        assert!(check_lz4(&[frame(&[9]), bomb].concat(), 1).is_err());
        for cut in 1..20 {
            let whole = frame(&[9]);
            assert!(check_lz4(&whole[..whole.len() - cut.min(whole.len() - 1)], 9).is_err());
        }
        assert!(check_lz4(b"", 9).is_ok());
    }
}
