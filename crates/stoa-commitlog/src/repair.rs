//! Makes a damaged log usable again, at the price of what cannot be read: behind `stoa log repair`.
//!
//! ```text
//! before   1 [1..40]   2 [41..60 ✗ 64..90]              3 [91..120]
//! after    1 [1..40]   2 [41..60]   3 [64..90 91..120]  4 [next: 121]   2.damaged  3.damaged
//! ```
//! Two steps, so that a person decides in between: [`plan_repair`] says what would be lost,
//! [`RepairPlan::apply`] does it. Whole segments are kept under other names, whatever happens.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use stoa_env::Env;
use stoa_error::{Error, Result};

use crate::LogId;
use crate::frame;
use crate::salvage::{headers_behind, intact_behind};
use crate::segment::SegmentHeader;
use crate::storage::{LogStorage, SegmentWriter};
use crate::verify::{LogReport, verify};
use crate::walk::Damage;

/// What becomes of whole frames behind the damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// They stay in the log; only what cannot be read is given up.
    Kept,
    /// They are given up too, so that the log is a prefix of what was written.
    GivenUp,
}

/// What a repair would do.
#[derive(Clone, Debug)]
pub struct RepairPlan {
    storage: Arc<dyn LogStorage>,
    report: LogReport,
    /// Where the log is damaged.
    pub damage: Damage,
    /// Whole frames behind the damage.
    pub frames_behind: u64,
    /// The highest sequence that anything behind the damage names.
    pub highest: u64,
    /// Sequences that cannot be read, ascending.
    pub unreadable: Vec<RangeInclusive<u64>>,
    /// The log, and the highest epoch seen.
    log: LogId,
    epoch: u64,
}

/// What a repair has done.
#[derive(Clone, Debug)]
pub struct RepairOutcome {
    /// Sequences that are lost, ascending.
    pub lost: Vec<RangeInclusive<u64>>,
    /// Names of the copies of damaged segments and of those behind them.
    pub copies: Vec<String>,
    /// The next sequence that the log will give.
    pub next: u64,
}

/// Looks at the log in `storage` and says what a repair would do; nothing where it needs none.
/// Blocks.
///
/// # Errors
/// The storage's.
pub fn plan_repair(storage: &Arc<dyn LogStorage>) -> Result<Option<RepairPlan>> {
    let report = verify(storage)?;
    let Some(damage) = report.damage.clone().filter(|damage| !damage.torn) else { return Ok(None) };
    let headers = headers_behind(storage.as_ref(), &damage)?;
    let epoch = headers.iter().map(|header| header.epoch);
    let epoch = epoch.chain(report.segments.iter().map(|segment| segment.epoch)).max();
    let log = report.log.or_else(|| headers.first().map(|header| header.log));
    let mut plan = RepairPlan {
        storage: storage.clone(),
        frames_behind: 0,
        highest: headers.iter().map(|header| header.first.saturating_sub(1)).max().unwrap_or(0),
        unreadable: Vec::new(),
        log: log.unwrap_or_else(|| LogId::random(&Env::real())),
        epoch: epoch.unwrap_or(0),
        damage: damage.clone(),
        report,
    };
    plan.highest = plan.highest.max(damage.sequence.saturating_sub(1));
    let mut due = damage.sequence;
    intact_behind(storage.as_ref(), &damage, |_, found| {
        plan.highest = plan.highest.max(found.sequence);
        if found.payload.is_some() {
            plan.frames_behind += 1;
            plan.give_up(due, found.sequence);
            due = found.sequence.saturating_add(1);
        }
        Ok(())
    })?;
    plan.give_up(due, plan.highest.saturating_add(1));
    Ok(Some(plan))
}

impl RepairPlan {
    fn give_up(&mut self, from: u64, before: u64) {
        if from < before {
            self.unreadable.push(from..=before - 1);
        }
    }

    /// Sequences that would be lost.
    pub fn lost(&self, behind: Behind) -> Vec<RangeInclusive<u64>> {
        match behind {
            Behind::Kept => self.unreadable.clone(),
            Behind::GivenUp if self.highest < self.damage.sequence => Vec::new(),
            Behind::GivenUp => vec![self.damage.sequence..=self.highest],
        }
    }

    /// Does it: keeps copies, cuts the damaged segment, and begins a segment from which the log
    /// goes on, behind every sequence that was ever seen and behind `published`, the highest that
    /// a snapshot carries. Blocks.
    ///
    /// Interrupted, it leaves the copies and a log that is whole as far as it goes.
    ///
    /// # Errors
    /// `Unavailable` (55006) where a process has the log open; `Conflict` where it is not what it
    /// was when the plan was made; the storage's.
    pub fn apply(&self, behind: Behind, published: u64) -> Result<RepairOutcome> {
        let storage = self.storage.as_ref();
        let _lock = storage.lock()?;
        if verify(&self.storage)?.damage.as_ref() != Some(&self.damage) {
            return Err(Error::conflict(format!("the log {} has changed", storage.place()))
                .with_hint("look at it again before repairing it"));
        }
        let kept = match behind {
            Behind::Kept => self.frames_to_keep()?,
            Behind::GivenUp => Vec::new(),
        };
        let copies = self.set_aside()?;
        let next = self.highest.max(published).saturating_add(1);
        self.write_again(kept, next)?;
        Ok(RepairOutcome { lost: self.lost(behind), copies, next })
    }

    /// Frames behind the damage. All of them in memory: as much as was not yet released.
    fn frames_to_keep(&self) -> Result<Vec<(u64, Bytes)>> {
        let mut kept = Vec::new();
        intact_behind(self.storage.as_ref(), &self.damage, |_, found| {
            kept.extend(found.payload.map(|payload| (found.sequence, payload)));
            Ok(())
        })?;
        Ok(kept)
    }

    /// Newest first, so that what is interrupted is still found damaged.
    fn set_aside(&self) -> Result<Vec<String>> {
        let storage = self.storage.as_ref();
        let mut copies = Vec::new();
        let numbers = storage.segments()?;
        for &number in numbers.iter().rev().filter(|&&number| number >= self.damage.segment) {
            let damaged = number == self.damage.segment;
            let whole = damaged && self.damage.offset > 0 && self.damage.bytes == 0;
            let keep = if damaged { self.damage.offset } else { 0 };
            if !whole {
                copies.push(storage.set_aside(number, keep)?);
            }
        }
        copies.reverse();
        Ok(copies)
    }

    /// Writes the frames kept into new segments, one per run of sequences, and an empty one that
    /// says where the log goes on.
    fn write_again(&self, kept: Vec<(u64, Bytes)>, next: u64) -> Result<()> {
        let segments = self.storage.segments()?;
        let mut again = Again {
            storage: self.storage.as_ref(),
            header: SegmentHeader {
                log: self.log,
                epoch: self.epoch.saturating_add(1),
                number: segments.last().map_or(self.damage.segment, |last| last.saturating_add(1)),
                after: self.report.last,
                first: 0,
                frame_magic: frame::random_magic(&Env::real()),
            },
            segment: None,
            due: 0,
        };
        for (sequence, payload) in kept {
            again.put(sequence, &payload)?;
        }
        again.begin(next)?;
        again.finish()
    }
}

/// Writes frames anew under their old sequences.
struct Again<'a> {
    storage: &'a dyn LogStorage,
    /// Of the next segment.
    header: SegmentHeader,
    segment: Option<Box<dyn SegmentWriter>>,
    due: u64,
}

impl Again<'_> {
    fn put(&mut self, sequence: u64, payload: &[u8]) -> Result<()> {
        if self.segment.is_none() || sequence != self.due {
            self.begin(sequence)?;
        }
        let Some(segment) = &mut self.segment else { return Ok(()) };
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let crc = frame::payload_crc(&[payload]);
        let mut bytes = frame::open_header(self.header.frame_magic, length, sequence, crc).to_vec();
        bytes.extend_from_slice(payload);
        frame::seal(&mut bytes, 0);
        segment.append(&bytes, 0)?;
        self.due = sequence.saturating_add(1);
        self.header.after = sequence;
        Ok(())
    }

    /// Ends the segment and begins one whose first frame is `first`.
    fn begin(&mut self, first: u64) -> Result<()> {
        self.finish()?;
        self.header.first = first;
        let header = self.header;
        self.segment = Some(self.storage.create(header.number, &header.to_bytes())?);
        self.header.number += 1;
        self.due = first;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.segment.take().map_or(Ok(()), |mut segment| segment.sync())
    }
}

impl fmt::Display for RepairPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.damage)?;
        let before = self.damage.sequence.saturating_sub(1);
        writeln!(f, "kept: everything up to sequence {before}")?;
        writeln!(f, "whole frames behind the damage: {}", self.frames_behind)?;
        writeln!(f, "lost if these are kept: {}", ranges(&self.lost(Behind::Kept)))?;
        write!(f, "lost if these are given up: {}", ranges(&self.lost(Behind::GivenUp)))
    }
}

impl fmt::Display for RepairOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "lost: {}", ranges(&self.lost))?;
        writeln!(f, "kept as copies: {}", self.copies.join(", "))?;
        write!(f, "the log goes on with sequence {}", self.next)
    }
}

fn ranges(ranges: &[RangeInclusive<u64>]) -> String {
    match ranges {
        [] => "nothing that is known of".to_owned(),
        _ => {
            let each = ranges.iter().map(|range| match range.start() == range.end() {
                true => format!("sequence {}", range.start()),
                false => format!("sequences {} to {}", range.start(), range.end()),
            });
            each.collect::<Vec<_>>().join(", ")
        }
    }
}
