//! Walks a whole log: all segments, all frames, in order, up to the first thing that is wrong.
//!
//! Opening, checking, dumping, replaying and repairing all go this way, so that they agree on what
//! is a torn tail and what is damage:
//!
//! | bad frame | is |
//! |---|---|
//! | in the newest segment of appendable storage, no frame behind it written after a sync that covers it | a torn tail |
//! | anywhere else, also a bad segment header, a missing segment, a gap between two | damage |

use std::collections::VecDeque;
use std::sync::Arc;

use stoa_error::{Error, Result};

use crate::LogId;
use crate::scan::{Evidence, Frame, Item, SegmentScan, evidence_after};
use crate::segment::{self, SegmentHeader};
use crate::storage::{LogStorage, SegmentBytes, StorageKind};

/// Where a log stops being readable, and what that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the segment.
    pub segment: u64,
    /// Its name.
    pub name: String,
    /// Bytes into the segment.
    pub offset: u64,
    /// Bytes from there to the segment's end.
    pub bytes: u64,
    /// The first sequence that cannot be read.
    pub sequence: u64,
    /// What is wrong.
    pub what: String,
    /// Whether this is what a crash leaves: no frame from here on was acknowledged as durable.
    pub torn: bool,
    /// Whole frames behind it in the same segment, which cannot be reached any more.
    pub frames_behind: u64,
    /// The highest sequence among them.
    pub highest_behind: Option<u64>,
}

impl Damage {
    /// The error with which such a log is refused.
    pub(crate) fn refusal(&self) -> Error {
        Error::corrupt(format!(
            "the commit log is damaged in {} at offset {}: {}",
            self.name, self.offset, self.what
        ))
        .with_detail(format!(
            "sequence {} and what follows cannot be read; before it everything is whole",
            self.sequence
        ))
        .with_hint(
            "restore the file, or run `stoa log verify` to see the extent and `stoa log repair` \
             to go on without the damaged part",
        )
    }
}

/// What a walk comes by.
#[derive(Debug)]
pub(crate) enum Event {
    /// A segment begins.
    Segment(SegmentHeader),
    Frame(Frame),
    /// A mark, which ends at this offset.
    Mark(u64),
    /// A segment ends, well.
    SegmentEnd,
    /// Nothing can be read from here on; the walk is over.
    Damage(Damage),
}

/// A walk over segments.
pub(crate) struct Walk {
    storage: Arc<dyn LogStorage>,
    numbers: VecDeque<u64>,
    current: Option<(SegmentHeader, SegmentScan)>,
    /// The segment before, its end, and the last sequence so far.
    before: Option<(SegmentHeader, u64)>,
    last: u64,
    frames: u64,
}

impl Walk {
    /// A walk over all segments.
    pub(crate) fn new(storage: Arc<dyn LogStorage>) -> Result<Self> {
        let numbers = storage.segments()?.into();
        Ok(Self::over(storage, numbers))
    }

    /// A walk over the segments given.
    pub(crate) fn over(storage: Arc<dyn LogStorage>, numbers: VecDeque<u64>) -> Self {
        Self { storage, numbers, current: None, before: None, last: 0, frames: 0 }
    }

    /// The last sequence so far, given up or read.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The next event; nothing at the end of the log.
    pub(crate) fn next(&mut self) -> Result<Option<Event>> {
        let Some((header, mut scan)) = self.current.take() else { return self.next_segment() };
        let event = match scan.next()? {
            Item::Frame(frame) => {
                self.last = frame.sequence;
                self.frames += 1;
                Event::Frame(frame)
            }
            Item::Mark => Event::Mark(scan.offset()),
            Item::End => return self.end_segment(header, scan).map(Some),
            Item::Bad(what) => {
                let evidence = evidence(&header, &scan)?;
                return Ok(Some(self.bad_frame(&header, &scan, what, evidence)));
            }
        };
        self.current = Some((header, scan));
        Ok(Some(event))
    }

    fn next_segment(&mut self) -> Result<Option<Event>> {
        let Some(number) = self.numbers.pop_front() else { return Ok(None) };
        let bytes = self.storage.open(number)?;
        let mut head = vec![0; segment::HEADER_BYTES];
        let count = bytes.read_at(0, &mut head)?;
        let header = match SegmentHeader::from_bytes(head.get(..count).unwrap_or_default()) {
            Ok(header) => header,
            Err(what) => return self.damaged_segment(number, bytes.len(), 0, what),
        };
        if let Some(event) = self.misplaced(number, &header, bytes.len())? {
            return Ok(Some(event));
        }
        self.last = header.first.saturating_sub(1);
        let scan = self.scan(header, bytes);
        self.current = Some((header, scan));
        Ok(Some(Event::Segment(header)))
    }

    fn scan(&self, header: SegmentHeader, bytes: Box<dyn SegmentBytes>) -> SegmentScan {
        SegmentScan::new(bytes, header.frame_magic, segment::HEADER_BYTES as u64, header.first)
    }

    /// Whether a segment does not follow the one before it.
    fn misplaced(
        &mut self,
        number: u64,
        header: &SegmentHeader,
        bytes: u64,
    ) -> Result<Option<Event>> {
        if header.number != number {
            let what = format!("the segment says it is number {}", header.number);
            return self.damaged_segment(number, bytes, 0, what);
        }
        let Some((before, end)) = self.before else { return Ok(None) };
        if header.log != before.log || header.epoch < before.epoch {
            let what = format!(
                "the segment is of log {}, epoch {}; the one before of log {}, epoch {}",
                header.log, header.epoch, before.log, before.epoch
            );
            return self.damaged_segment(number, bytes, 0, what);
        }
        // Claims of old openings outlive what they stood among.
        let claims = self.storage.kind() == StorageKind::PutIfAbsent && self.frames == 0;
        let adjacent = before.number.checked_add(1) == Some(number);
        if claims && !adjacent {
            return Ok(None);
        }
        if !adjacent {
            let what = format!("the segment is missing; the next there is has number {number}");
            return self.damaged_segment(before.number.saturating_add(1), 0, 0, what);
        }
        if header.after != self.last {
            let what = format!(
                "the segment ends with sequence {}, but the next one follows {}",
                self.last, header.after
            );
            return self.damaged_segment(before.number, end, end, what);
        }
        Ok(None)
    }

    fn damaged_segment(
        &mut self,
        segment: u64,
        bytes: u64,
        offset: u64,
        what: String,
    ) -> Result<Option<Event>> {
        self.numbers.clear();
        Ok(Some(Event::Damage(Damage {
            segment,
            name: self.storage.segment_name(segment),
            offset,
            bytes: bytes - offset,
            sequence: self.last.saturating_add(1),
            what,
            torn: false,
            frames_behind: 0,
            highest_behind: None,
        })))
    }

    /// Ends a segment, unless it is the newest and frames stand behind its end. Whether an older
    /// one ends where it should, the next one's header tells.
    fn end_segment(&mut self, header: SegmentHeader, scan: SegmentScan) -> Result<Event> {
        if self.numbers.is_empty() && scan.bytes_left() > 0 {
            let evidence = evidence(&header, &scan)?;
            if evidence.highest.is_some() {
                let what = "the log ends here, but frames follow".to_owned();
                return Ok(self.bad_frame(&header, &scan, what, evidence));
            }
        }
        self.before = Some((header, scan.offset()));
        Ok(Event::SegmentEnd)
    }

    fn bad_frame(
        &mut self,
        header: &SegmentHeader,
        scan: &SegmentScan,
        what: String,
        evidence: Evidence,
    ) -> Event {
        let newest = self.numbers.is_empty();
        self.numbers.clear();
        let may_tear = newest && self.storage.kind() == StorageKind::Appendable;
        Event::Damage(Damage {
            segment: header.number,
            name: self.storage.segment_name(header.number),
            offset: scan.offset(),
            bytes: scan.bytes_left(),
            sequence: scan.due(),
            what: explained(what, &evidence),
            torn: may_tear && evidence.proof.is_none(),
            frames_behind: evidence.frames,
            highest_behind: evidence.highest,
        })
    }
}

fn evidence(header: &SegmentHeader, scan: &SegmentScan) -> Result<Evidence> {
    evidence_after(scan.bytes(), header.frame_magic, scan.offset(), scan.due())
}

/// Adds what proves that the bytes were once whole.
fn explained(what: String, evidence: &Evidence) -> String {
    match evidence.proof {
        Some((offset, sequence)) => format!(
            "{what}; it was durable before sequence {sequence} at offset {offset} was written"
        ),
        None => what,
    }
}

/// What identifies a log: its id and the highest epoch and number in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) log: LogId,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
}

impl Identity {
    pub(crate) fn of(header: &SegmentHeader) -> Self {
        Self { log: header.log, epoch: header.epoch, number: header.number }
    }
}
