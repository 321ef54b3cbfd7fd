//! Reads a whole log and says what is in it and what is wrong: behind `stoa log verify`.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use stoa_error::Result;

use crate::storage::LogStorage;
use crate::walk::{Damage, Event, Walk};
use crate::{LogId, segment};

/// What a log holds.
#[derive(Clone, Debug, Default)]
pub struct LogReport {
    /// The directory or URL.
    pub place: String,
    /// The log; nothing where there is none, or where its first header is damaged.
    pub log: Option<LogId>,
    /// Segments up to the damage, if there is any.
    pub segments: Vec<SegmentReport>,
    /// Frames that can be replayed.
    pub frames: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Sequence of the first of them.
    pub first: Option<u64>,
    /// The last sequence of the log so far; 0 before the first frame.
    pub last: u64,
    /// Whether the last writer closed the log.
    pub clean: bool,
    /// Sequences that earlier repairs gave up.
    pub gaps: Vec<RangeInclusive<u64>>,
    /// Where the log stops being readable: a torn tail, or damage.
    pub damage: Option<Damage>,
}

/// What a segment holds.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// Its number.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// The opening that wrote it.
    pub epoch: u64,
    /// The last sequence before it.
    pub after: u64,
    /// The last sequence in it; `after` where it has no frames.
    pub last: u64,
    /// Frames in it.
    pub frames: u64,
    /// Bytes that are whole, its header included.
    pub bytes: u64,
}

impl LogReport {
    /// Whether the log can be opened: it is whole, or only torn at its end.
    pub fn can_be_opened(&self) -> bool {
        self.damage.as_ref().is_none_or(|damage| damage.torn)
    }

    fn note(&mut self, storage: &dyn LogStorage, event: Event) {
        match event {
            Event::Segment(header) => {
                let behind = header.after.saturating_add(1);
                if header.first > behind {
                    self.gaps.push(behind..=header.first - 1);
                }
                self.log = Some(header.log);
                self.last = header.first.saturating_sub(1);
                self.clean = false;
                self.segments.push(SegmentReport {
                    number: header.number,
                    name: storage.segment_name(header.number),
                    epoch: header.epoch,
                    after: header.after,
                    last: self.last,
                    frames: 0,
                    bytes: segment::HEADER_BYTES as u64,
                });
            }
            Event::Frame(frame) => {
                self.first.get_or_insert(frame.sequence);
                self.last = frame.sequence;
                self.frames += 1;
                self.payload_bytes += frame.payload.len() as u64;
                self.clean = false;
                if let Some(segment) = self.segments.last_mut() {
                    segment.last = frame.sequence;
                    segment.frames += 1;
                    segment.bytes = frame.end();
                }
            }
            Event::Mark(end) => {
                self.clean = true;
                if let Some(segment) = self.segments.last_mut() {
                    segment.bytes = end;
                }
            }
            Event::SegmentEnd => {}
            Event::Damage(damage) => {
                self.clean = false;
                self.damage = Some(damage);
            }
        }
    }
}

/// Reads all of the log in `storage`, up to the first damage. Blocks.
///
/// The log may be open elsewhere: what is being written then looks like a torn tail.
///
/// # Errors
/// The storage's. Damage is no error here, but in the report.
pub fn verify(storage: &Arc<dyn LogStorage>) -> Result<LogReport> {
    let mut report = LogReport { place: storage.place(), ..LogReport::default() };
    let mut walk = Walk::new(storage.clone())?;
    while let Some(event) = walk.next()? {
        report.note(storage.as_ref(), event);
    }
    Ok(report)
}

impl fmt::Display for LogReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.log {
            Some(log) => writeln!(f, "log {log} in {}", self.place)?,
            None => writeln!(f, "no log in {}", self.place)?,
        }
        for segment in &self.segments {
            writeln!(f, "  {segment}")?;
        }
        writeln!(f, "frames: {}, payload bytes: {}", self.frames, self.payload_bytes)?;
        match self.first {
            Some(first) => writeln!(f, "sequences: {first} to {}", self.last)?,
            None => writeln!(f, "sequences: none behind {}", self.last)?,
        }
        for gap in &self.gaps {
            writeln!(f, "given up by a repair: {} to {}", gap.start(), gap.end())?;
        }
        match &self.damage {
            Some(damage) => write!(f, "{damage}"),
            None if self.clean => write!(f, "whole, and closed in order"),
            None => write!(f, "whole, not closed"),
        }
    }
}

impl fmt::Display for SegmentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: epoch {}, {} frames", self.name, self.epoch, self.frames)?;
        if self.frames > 0 {
            write!(f, " up to {}", self.last)?;
        }
        write!(f, ", {} bytes", self.bytes)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.torn { "TORN TAIL" } else { "DAMAGED" };
        write!(f, "{kind}: {} at offset {}: {}", self.name, self.offset, self.what)?;
        write!(f, "; from sequence {} on", self.sequence)?;
        if self.torn {
            return write!(f, "; opening cuts {} bytes off, which nobody relies on", self.bytes);
        }
        write!(f, "; {} whole frames behind it in the segment", self.frames_behind)
    }
}
