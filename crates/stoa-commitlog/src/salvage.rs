//! Finds what is still whole behind damage.

use stoa_error::Result;

use crate::frame::Magic;
use crate::scan::{FrameBehind, frames_behind};
use crate::segment::{self, SegmentHeader};
use crate::storage::{LogStorage, SegmentBytes};
use crate::walk::Damage;

/// Gives the whole frames and marks behind `damage` to `visit`, in order, each with the number of
/// its segment: those of later segments too. Holds one segment in memory.
pub(crate) fn intact_behind(
    storage: &dyn LogStorage,
    damage: &Damage,
    mut visit: impl FnMut(u64, FrameBehind) -> Result<()>,
) -> Result<()> {
    let mut due = damage.sequence;
    for number in storage.segments()?.into_iter().filter(|&number| number >= damage.segment) {
        let bytes = storage.open(number)?;
        let from = if number == damage.segment { damage.offset } else { 0 };
        let from = from.max(segment::HEADER_BYTES as u64);
        for found in frames_behind(bytes.as_ref(), frame_magic(bytes.as_ref())?, from, due)? {
            due = found.sequence.saturating_add(u64::from(found.payload.is_some()));
            visit(number, found)?;
        }
    }
    Ok(())
}

/// The headers behind `damage` that can be read, that of the damaged segment included.
pub(crate) fn headers_behind(
    storage: &dyn LogStorage,
    damage: &Damage,
) -> Result<Vec<SegmentHeader>> {
    let mut headers = Vec::new();
    for number in storage.segments()?.into_iter().filter(|&number| number >= damage.segment) {
        headers.extend(header(storage.open(number)?.as_ref())?);
    }
    Ok(headers)
}

fn header(bytes: &dyn SegmentBytes) -> Result<Option<SegmentHeader>> {
    let mut head = [0; segment::HEADER_BYTES];
    let count = bytes.read_at(0, &mut head)?;
    Ok(SegmentHeader::from_bytes(head.get(..count).unwrap_or_default()).ok())
}

/// What frames of this segment begin with: its header says so, or else its first frame.
fn frame_magic(bytes: &dyn SegmentBytes) -> Result<Magic> {
    if let Some(header) = header(bytes)? {
        return Ok(header.frame_magic);
    }
    let mut magic = Magic::default();
    bytes.read_at(segment::HEADER_BYTES as u64, &mut magic)?;
    Ok(magic)
}
