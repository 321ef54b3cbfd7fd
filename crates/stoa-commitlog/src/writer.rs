//! Writes groups and syncs them: the log's own thread, or a simulation step by step.
//!
//! ```text
//! take a group ─► new segment? ─► seal ─► write ─► tell relaxed ─► sync ─► tell all
//!                                                                    └─ nothing queued: mark
//! ```
//! **Invariants:** nobody is told `Durable` before a sync that covers the frame has returned; after
//! any error nothing is written or synced again, and everybody who waits is told.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use stoa_error::Result;

use crate::appended::Progress;
use crate::core::Core;
use crate::failpoint;
use crate::frame;
use crate::poison::Poison;
use crate::queue::Group;
use crate::recover::SegmentInfo;
use crate::segment::{self, SegmentHeader};
use crate::storage::{SegmentWriter, StorageKind, StorageLock};

/// The one who writes a log.
pub(crate) struct Writer {
    core: Arc<Core>,
    header: SegmentHeader,
    segment: Box<dyn SegmentWriter>,
    segment_bytes: u64,
    written: u64,
    durable: u64,
    /// Up to where a mark says that frames are durable.
    marked: u64,
    unsynced_bytes: u64,
    /// Groups that are written but not durable.
    unsynced: Vec<Group>,
    last_sync: Option<Instant>,
    finished: bool,
    /// Held as long as there is a writer.
    lock: StorageLock,
}

impl Writer {
    pub(crate) fn new(
        core: Arc<Core>,
        header: SegmentHeader,
        segment: Box<dyn SegmentWriter>,
        lock: StorageLock,
    ) -> Self {
        Self {
            core,
            header,
            segment,
            segment_bytes: segment::HEADER_BYTES as u64,
            written: header.after,
            durable: header.after,
            marked: header.after,
            unsynced_bytes: 0,
            unsynced: Vec::new(),
            last_sync: None,
            finished: false,
            lock,
        }
    }

    /// Writes until the log is closed or an error has stopped it.
    pub(crate) fn run(mut self) {
        while let Some(group) = self.next_group() {
            if !self.write(group) {
                return;
            }
        }
        self.finish();
    }

    fn next_group(&mut self) -> Option<Group> {
        if self.core.queue.is_empty() && !self.idle() {
            return None;
        }
        self.core.queue.take(self.not_before())
    }

    /// When the next group may be written at the earliest.
    fn not_before(&self) -> Option<Instant> {
        let interval = self.core.queue.options.sync_interval_min;
        self.last_sync.filter(|_| !interval.is_zero()).map(|at| at + interval)
    }

    /// Writes the next group, if one is queued; whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        match self.core.queue.try_take().filter(|_| !self.finished) {
            Some(group) => self.write(group),
            None => {
                self.idle();
                false
            }
        }
    }

    /// Writes a group and, if it asks for that, syncs. False when the log has stopped.
    fn write(&mut self, group: Group) -> bool {
        let written = self.try_write(group);
        self.poison_on_error(written)
    }

    fn poison_on_error(&mut self, result: Result<()>) -> bool {
        let Err(error) = result else { return true };
        let poison = self.core.poison(&error);
        self.stop(&poison);
        false
    }

    /// Fails everybody who waits for a group that was taken.
    fn stop(&mut self, poison: &Arc<Poison>) {
        self.finished = true;
        for group in self.unsynced.drain(..) {
            group.tell(Progress::Unknown(poison.clone()));
        }
    }

    fn try_write(&mut self, group: Group) -> Result<()> {
        // From here on the group is told by whatever happens to `unsynced`.
        let (bytes, frames, last) = (group.bytes as u64, group.frames, group.last);
        let wants_sync = group.wants_sync;
        self.unsynced.push(group);
        if frames > 0 {
            self.make_room(bytes)?;
            self.append_newest()?;
            self.written = last;
            self.unsynced_bytes += bytes;
            self.grown(bytes, frames);
            self.core.written.store(last, Ordering::Release);
            self.core.queue.stats.group_bytes.record(bytes);
            self.core.queue.stats.group_frames.record(frames);
            failpoint::at("log.written")?;
        }
        let overdue = self.unsynced_bytes >= self.core.queue.options.unsynced_bytes_max;
        if wants_sync || overdue || self.core.storage.kind() == StorageKind::PutIfAbsent {
            return self.sync();
        }
        self.tell_written();
        Ok(())
    }

    /// Goes on to the next segment if this one takes no more.
    fn make_room(&mut self, bytes: u64) -> Result<()> {
        let empty = self.segment_bytes <= segment::HEADER_BYTES as u64;
        let full = self.segment_bytes + bytes > self.core.queue.options.segment_bytes;
        if self.segment.takes_more() && (empty || !full) {
            return Ok(());
        }
        // An older segment is durable as a whole, marks included: that is what makes a bad frame in
        // it damage.
        self.sync()?;
        self.segment.sync()?;
        self.next_segment()
    }

    fn next_segment(&mut self) -> Result<()> {
        let header = SegmentHeader {
            number: self.header.number.saturating_add(1),
            after: self.written,
            first: self.written.saturating_add(1),
            ..self.header
        };
        self.segment = self.core.storage.create(header.number, &header.to_bytes())?;
        failpoint::at("log.segment_created")?;
        self.header = header;
        self.segment_bytes = segment::HEADER_BYTES as u64;
        self.marked = self.durable;
        self.core.segments.lock().push_back(SegmentInfo {
            number: header.number,
            epoch: header.epoch,
            after: header.after,
            last: self.written,
            frames: 0,
            bytes: self.segment_bytes,
        });
        Ok(())
    }

    /// Hands the group that came last to the storage.
    fn append_newest(&mut self) -> Result<()> {
        let Some(group) = self.unsynced.last_mut() else { return Ok(()) };
        let mut left = group.chunks.len();
        for chunk in &mut group.chunks {
            left -= 1;
            frame::seal(chunk, self.durable);
            let blank = if left == 0 { frame::BLANK.len() } else { 0 };
            chunk.extend_from_slice(frame::BLANK.get(..blank).unwrap_or_default());
            self.segment.append(chunk, blank)?;
        }
        Ok(())
    }

    fn grown(&mut self, bytes: u64, frames: u64) {
        self.segment_bytes += bytes;
        if let Some(info) = self.core.segments.lock().back_mut() {
            info.bytes = self.segment_bytes;
            info.frames += frames;
            info.last = self.written;
        }
    }

    /// Tells those for whom written is enough, and gives room back to others.
    fn tell_written(&mut self) {
        if let Some(group) = self.unsynced.last_mut() {
            group.tell(Progress::Written);
            self.core.queue.recycle(group);
        }
    }

    /// Makes everything written durable and tells those who wait for it.
    fn sync(&mut self) -> Result<()> {
        if self.durable < self.written {
            let env = self.core.queue.env.clone();
            let started = env.monotonic();
            self.segment.sync()?;
            failpoint::at("log.synced")?;
            self.last_sync = Some(started);
            self.core.queue.stats.synced(env.monotonic() - started);
            self.durable = self.written;
            self.core.durable.store(self.durable, Ordering::Release);
        }
        self.unsynced_bytes = 0;
        // The group in whose favour a segment is being ended is not written yet.
        let durable = self.durable;
        for mut group in self.unsynced.extract_if(.., |group| group.last <= durable) {
            group.tell(Progress::Durable);
            self.core.queue.recycle(&mut group);
        }
        Ok(())
    }

    /// With nothing to do, notes in the segment what is durable, so that damage to it is not taken
    /// for a torn tail. Not synced: a mark that is lost claims nothing.
    fn idle(&mut self) -> bool {
        if self.finished || self.core.queue.poison().is_some() {
            return false;
        }
        let marked = self.mark();
        self.poison_on_error(marked)
    }

    fn mark(&mut self) -> Result<()> {
        let appendable = self.core.storage.kind() == StorageKind::Appendable;
        if !appendable || self.marked == self.durable || self.durable != self.written {
            return Ok(());
        }
        let mark = frame::mark(self.header.frame_magic, self.durable);
        self.segment.append(&[mark, frame::BLANK].concat(), frame::BLANK.len())?;
        self.marked = self.durable;
        self.grown(frame::HEADER_BYTES as u64, 0);
        Ok(())
    }

    /// Ends the log in order: everything durable, and a mark that says so.
    pub(crate) fn finish(&mut self) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if let Some(poison) = self.core.queue.poison() {
            return self.stop(&poison);
        }
        let ended = self.sync().and_then(|()| self.mark()).and_then(|()| self.segment.sync());
        self.poison_on_error(ended);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished {
            let poison = Arc::new(Poison::abandoned(&self.core.place));
            self.core.queue.fail(&poison);
            self.stop(&poison);
        }
        // Whoever waits for the end may open the log again at once.
        self.lock = StorageLock::none();
        self.core.stopped.send_replace(true);
    }
}
