//! Reads a log's frames again, in order.

use std::collections::VecDeque;

use bytes::Bytes;
use stoa_error::{Error, Result};

use crate::core::Core;
use crate::walk::{Event, Walk};
use crate::{LogId, LogPosition};

/// Frames of a log behind a position, up to what was durable when the replay began.
///
/// Blocks while it reads: for threads that may. Memory is bounded by one frame and a read buffer.
/// Ends after the first error.
pub struct Replay {
    log: LogId,
    after: u64,
    end: u64,
    walk: Option<Walk>,
}

impl Replay {
    pub(crate) fn new(core: &Core, after: LogPosition) -> Result<Self> {
        core.check_own(after)?;
        let end = core.durable().sequence;
        if after.sequence > end {
            return Err(Error::corrupt(format!(
                "replay behind {after} is asked for, but the log {} ends at sequence {end}",
                core.place
            ))
            .with_hint("acknowledged frames are missing: restore the log's newest segments"));
        }
        let numbers = needed_segments(core, after)?;
        let walk = Walk::over(core.storage.clone(), numbers);
        Ok(Self { log: core.log, after: after.sequence, end, walk: Some(walk) })
    }

    fn next_frame(&mut self) -> Result<Option<(LogPosition, Bytes)>> {
        let Some(walk) = &mut self.walk else { return Ok(None) };
        while self.after < self.end {
            match walk.next()? {
                Some(Event::Frame(frame)) if frame.sequence > self.after => {
                    self.after = frame.sequence;
                    return Ok(Some((self.log.at(frame.sequence), frame.payload)));
                }
                Some(Event::Damage(damage)) => return Err(damage.refusal()),
                Some(_) => {}
                None if walk.last() >= self.end => break,
                None => {
                    return Err(Error::corrupt(format!(
                        "the commit log ends before sequence {}, which was durable",
                        self.end
                    )));
                }
            }
        }
        Ok(None)
    }
}

impl Iterator for Replay {
    type Item = Result<(LogPosition, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_frame();
        if !matches!(next, Ok(Some(_))) {
            self.walk = None;
        }
        next.transpose()
    }
}

/// The segments that hold what is behind `after`.
fn needed_segments(core: &Core, after: LogPosition) -> Result<VecDeque<u64>> {
    let segments = core.segments.lock();
    let needed = segments.iter().skip_while(|segment| segment.last <= after.sequence);
    let mut needed = needed.peekable();
    if let Some(first) = needed.peek().filter(|first| first.after > after.sequence) {
        return Err(Error::not_found(format!(
            "replay behind {after} is asked for, but the log {} begins behind sequence {}",
            core.place, first.after
        ))
        .with_hint("what is before was released, as it had been published"));
    }
    Ok(needed.map(|segment| segment.number).collect())
}
