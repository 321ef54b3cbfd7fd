//! What opening a log finds, and what it does about a torn tail.
//!
//! ```text
//! walk all segments ─► damage? refuse ─► torn tail? cut ─► write the unproven end again, sync
//!                                                        ─► claim: a new segment, a new epoch
//! ```
//! A new segment at each opening, because the old one's end may hold frames of a torn group: they
//! must never come to stand behind new frames as if they followed them.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use stoa_env::Env;
use stoa_error::{Error, ErrorKind, Result};

use crate::frame;
use crate::segment::{self, SegmentHeader};
use crate::storage::{LogStorage, SegmentWriter, StorageKind};
use crate::walk::{Damage, Event, Identity, Walk};
use crate::{LogId, LogPosition};

/// How often a claim is tried again because another writer took the number.
const CLAIMS_MAX: usize = 16;

/// What opening a log has found.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The log.
    pub log: LogId,
    /// This opening's number.
    pub epoch: u64,
    /// Whether the log did not exist before.
    pub created: bool,
    /// The first frame that can be replayed; nothing where there is none.
    pub first: Option<LogPosition>,
    /// Everything up to here is in the log and durable, or was released.
    pub last: LogPosition,
    /// Frames that can be replayed.
    pub frames: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Whether the last writer closed the log; else it crashed, or was killed.
    pub clean: bool,
    /// The torn tail that was cut off, if there was one.
    pub torn: Option<Damage>,
    /// Sequences that a repair gave up.
    pub gaps: Vec<RangeInclusive<u64>>,
}

/// A segment and the frames in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentInfo {
    pub(crate) number: u64,
    pub(crate) epoch: u64,
    /// The last sequence before this segment.
    pub(crate) after: u64,
    pub(crate) last: u64,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

/// A log that is ready to be written.
pub(crate) struct Opened {
    pub(crate) header: SegmentHeader,
    pub(crate) writer: Box<dyn SegmentWriter>,
    pub(crate) segments: VecDeque<SegmentInfo>,
    pub(crate) recovery: Recovery,
}

/// Recovers the log in `storage`, which this process holds, or makes one.
pub(crate) fn open(storage: &Arc<dyn LogStorage>, env: &Env) -> Result<Opened> {
    let mut lost = None;
    for _ in 0..CLAIMS_MAX {
        let found = survey(storage)?;
        found.settle(storage.as_ref())?;
        match claim(storage.as_ref(), found, env) {
            Err(error) if error.kind() == ErrorKind::Conflict => lost = Some(error),
            other => return other,
        }
    }
    let place = storage.place();
    let error = Error::unavailable(format!("others keep writing to the commit log {place}"))
        .with_hint("stop the other daemons that use this log");
    Err(match lost {
        Some(cause) => error.with_source(cause),
        None => error,
    })
}

/// What a walk has found.
#[derive(Default)]
struct Survey {
    identity: Option<Identity>,
    segments: VecDeque<SegmentInfo>,
    first: Option<u64>,
    last: u64,
    frames: u64,
    bytes: u64,
    gaps: Vec<RangeInclusive<u64>>,
    /// How much of the newest segment is whole, where its last frame ends (marks may follow), and
    /// from where on it may be on no disk yet.
    end: u64,
    end_of_frames: u64,
    unproven: u64,
    durable_before: u64,
    clean: bool,
    torn: Option<Damage>,
}

fn survey(storage: &Arc<dyn LogStorage>) -> Result<Survey> {
    let mut walk = Walk::new(storage.clone())?;
    let mut found = Survey::default();
    while let Some(event) = walk.next()? {
        found.note(event)?;
    }
    Ok(found)
}

impl Survey {
    fn note(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Segment(header) => self.begin(&header),
            Event::Frame(frame) => {
                self.first.get_or_insert(frame.sequence);
                self.last = frame.sequence;
                self.frames += 1;
                if frame.durable_before != self.durable_before {
                    self.durable_before = frame.durable_before;
                    self.unproven = self.end_of_frames;
                }
                self.end = frame.end();
                self.end_of_frames = self.end;
                self.clean = false;
                self.grow();
            }
            Event::Mark(end) => {
                // It proves the frames before it, not itself.
                (self.end, self.unproven, self.clean) = (end, self.end_of_frames, true);
                self.grow();
            }
            Event::SegmentEnd => {}
            Event::Damage(damage) if damage.torn => self.torn = Some(damage),
            Event::Damage(damage) => return Err(damage.refusal()),
        }
        Ok(())
    }

    fn begin(&mut self, header: &SegmentHeader) {
        self.bytes += self.end;
        let behind = header.after.saturating_add(1);
        if header.first > behind {
            self.gaps.push(behind..=header.first - 1);
        }
        self.identity = Some(Identity::of(header));
        self.last = header.first.saturating_sub(1);
        self.end = segment::HEADER_BYTES as u64;
        (self.end_of_frames, self.unproven) = (self.end, self.end);
        (self.durable_before, self.clean) = (0, false);
        self.segments.push_back(SegmentInfo {
            number: header.number,
            epoch: header.epoch,
            after: header.after,
            last: self.last,
            frames: 0,
            bytes: self.end,
        });
    }

    fn grow(&mut self) {
        if let Some(segment) = self.segments.back_mut() {
            segment.frames += self.last - segment.last;
            segment.last = self.last;
            segment.bytes = self.end;
        }
    }

    /// Cuts a torn tail off and makes what is whole durable before anybody relies on it.
    fn settle(&self, storage: &dyn LogStorage) -> Result<()> {
        match &self.identity {
            // Also where nothing seems to be left to do: an earlier opening may have failed to
            // sync what it cut off.
            Some(identity) if storage.kind() == StorageKind::Appendable => {
                storage.settle(identity.number, self.end, self.unproven)
            }
            _ => Ok(()),
        }
    }
}

/// Begins the segment with which this opening takes the log over.
fn claim(storage: &dyn LogStorage, found: Survey, env: &Env) -> Result<Opened> {
    let created = found.identity.is_none();
    let before =
        found.identity.unwrap_or_else(|| Identity { log: LogId::random(env), epoch: 0, number: 0 });
    let header = SegmentHeader {
        log: before.log,
        epoch: before.epoch.saturating_add(1),
        number: before.number.saturating_add(1),
        after: found.last,
        first: found.last.saturating_add(1),
        frame_magic: frame::random_magic(env),
    };
    let mut writer = storage.create(header.number, &header.to_bytes())?;
    writer.sync()?;
    let mut segments = found.segments;
    segments.push_back(SegmentInfo {
        number: header.number,
        epoch: header.epoch,
        after: header.after,
        last: found.last,
        frames: 0,
        bytes: segment::HEADER_BYTES as u64,
    });
    let recovery = Recovery {
        log: header.log,
        epoch: header.epoch,
        created,
        first: found.first.map(|sequence| header.log.at(sequence)),
        last: header.log.at(found.last),
        frames: found.frames,
        bytes: found.bytes + found.end,
        clean: created || found.clean,
        torn: found.torn,
        gaps: found.gaps,
    };
    Ok(Opened { header, writer, segments, recovery })
}
