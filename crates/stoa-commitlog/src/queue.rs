//! Where appends become groups: sequences are given out here, in order, and bytes in flight are
//! bounded.
//!
//! ```text
//! append ─ room? ─► [frame frame frame] [frame …] ─► take, in order ─► writer
//!                    a group ≤ group_bytes_max
//! ```
//! **Invariants:** the order of sequences is the order in the groups; a group that is taken, or
//! that was queued when the log stopped, gets exactly one final [`Progress`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use stoa_env::Env;
use stoa_error::{Error, ErrorKind, Result};
use tokio::sync::{Semaphore, TryAcquireError, watch};

use crate::LogId;
use crate::appended::{Appended, Durability, Progress};
use crate::blocking::block_on;
use crate::frame::{self, Magic};
use crate::options::LogOptions;
use crate::poison::Poison;
use crate::status::{Stats, count};

/// Frames from this size on are copied outside the lock and written on their own.
const LARGE_BYTES: usize = 128 << 10;

/// Frames to be written, and perhaps synced, together.
#[derive(Debug)]
pub(crate) struct Group {
    /// Whole frames each, in order; sealed by the writer.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Whether the last chunk takes more frames.
    open: bool,
    pub(crate) last: u64,
    pub(crate) frames: u64,
    pub(crate) bytes: usize,
    pub(crate) wants_sync: bool,
    permits: usize,
    progress: watch::Sender<Progress>,
}

impl Group {
    fn new(last: u64) -> Self {
        Self {
            chunks: Vec::new(),
            open: false,
            last,
            frames: 0,
            bytes: 0,
            wants_sync: false,
            permits: 0,
            progress: watch::Sender::new(Progress::Queued),
        }
    }

    fn fits(&self, bytes: usize, options: &LogOptions) -> bool {
        self.bytes == 0 || self.bytes + bytes <= options.group_bytes_max
    }

    /// Tells those who wait for this group. What they were told last stays.
    pub(crate) fn tell(&self, progress: Progress) {
        self.progress.send_if_modified(|now| {
            let open = !now.is_final();
            if open {
                *now = progress;
            }
            open
        });
    }
}

/// An append before it has its place.
struct Frame<'a> {
    parts: &'a [&'a [u8]],
    payload_bytes: u32,
    bytes: usize,
    crc: u32,
    /// The frame with an empty header, where it is large.
    own: Option<Vec<u8>>,
}

#[derive(Debug)]
struct State {
    groups: VecDeque<Group>,
    last: u64,
    queued_bytes: usize,
    /// A buffer of an earlier group, to be used again.
    spare: Option<Vec<u8>>,
    end: Option<End>,
    writer_waits: bool,
}

#[derive(Debug)]
enum End {
    Closed,
    Failed(Arc<Poison>),
}

/// The queue of a log.
#[derive(Debug)]
pub(crate) struct Queue {
    log: LogId,
    place: String,
    magic: Magic,
    pub(crate) options: LogOptions,
    pub(crate) stats: Stats,
    pub(crate) env: Env,
    state: Mutex<State>,
    arrived: Condvar,
    room: Semaphore,
}

impl Queue {
    /// A queue whose next sequence is `last + 1`.
    pub(crate) fn new(
        log: LogId,
        place: String,
        magic: Magic,
        last: u64,
        options: LogOptions,
        env: Env,
    ) -> Self {
        let state = State {
            groups: VecDeque::new(),
            last,
            queued_bytes: 0,
            spare: None,
            end: None,
            writer_waits: false,
        };
        Self {
            log,
            place,
            magic,
            options,
            stats: Stats::default(),
            env,
            state: Mutex::new(state),
            arrived: Condvar::new(),
            room: Semaphore::new(options.in_flight_bytes_max),
        }
    }

    /// Queues an append once there is room.
    pub(crate) async fn append(&self, parts: &[&[u8]], durability: Durability) -> Result<Appended> {
        let frame = self.prepare(parts)?;
        if !self.has_room(&frame)? {
            let wait = self.options.append_wait_max;
            let room = self.room.acquire_many(self.permits(&frame));
            match self.env.timeout(wait, room).await {
                Some(room) => room.map_err(|_| self.ended())?.forget(),
                None => return Err(self.full(wait)),
            }
        }
        self.push(frame, durability)
    }

    /// [`Self::append`] for threads that may block.
    pub(crate) fn append_blocking(
        &self,
        parts: &[&[u8]],
        durability: Durability,
    ) -> Result<Appended> {
        let frame = self.prepare(parts)?;
        if !self.has_room(&frame)? {
            let wait = self.options.append_wait_max;
            let room = self.room.acquire_many(self.permits(&frame));
            match block_on(room, Some((&self.env, self.env.monotonic() + wait))) {
                Some(room) => room.map_err(|_| self.ended())?.forget(),
                None => return Err(self.full(wait)),
            }
        }
        self.push(frame, durability)
    }

    /// An empty append that is done when everything queued before it is durable.
    pub(crate) fn sync(&self) -> Result<Appended> {
        let mut state = self.state.lock();
        self.check_open(&state)?;
        if state.groups.is_empty() {
            let last = state.last;
            state.groups.push_back(Group::new(last));
        }
        let position = self.log.at(state.last);
        let group = state.groups.back_mut().ok_or_else(|| Error::internal("no group"))?;
        group.wants_sync = true;
        let progress = group.progress.subscribe();
        self.wake_writer(&mut state);
        Ok(Appended { position, durability: Durability::Sync, progress })
    }

    fn prepare<'a>(&self, parts: &'a [&'a [u8]]) -> Result<Frame<'a>> {
        let payload = parts.iter().map(|part| part.len()).sum::<usize>();
        let limit = self.options.payload_bytes_max;
        let payload_bytes = u32::try_from(payload).ok().filter(|_| payload <= limit);
        let payload_bytes = payload_bytes.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("{payload} bytes are too much for one append to the log {}", self.place),
            )
            .with_sqlstate("54000")
            .with_hint(format!("write at most {limit} bytes at a time"))
        })?;
        let bytes = frame::HEADER_BYTES + payload;
        let own = (bytes >= LARGE_BYTES).then(|| {
            let mut own = Vec::with_capacity(bytes);
            own.extend_from_slice(&[0; frame::HEADER_BYTES]);
            parts.iter().for_each(|part| own.extend_from_slice(part));
            own
        });
        Ok(Frame { parts, payload_bytes, bytes, crc: frame::payload_crc(parts), own })
    }

    /// What a frame takes of the room: all of it where it is larger.
    fn permits(&self, frame: &Frame<'_>) -> u32 {
        let permits = frame.bytes.min(self.options.in_flight_bytes_max);
        u32::try_from(permits).unwrap_or(u32::MAX)
    }

    /// Takes room at once, if there is any.
    fn has_room(&self, frame: &Frame<'_>) -> Result<bool> {
        match self.room.try_acquire_many(self.permits(frame)) {
            Ok(room) => {
                room.forget();
                Ok(true)
            }
            Err(TryAcquireError::NoPermits) => {
                count(&self.stats.waits, 1);
                Ok(false)
            }
            Err(TryAcquireError::Closed) => Err(self.ended()),
        }
    }

    fn push(&self, frame: Frame<'_>, durability: Durability) -> Result<Appended> {
        let permits = self.permits(&frame) as usize;
        let payload_bytes = u64::from(frame.payload_bytes);
        let mut state = self.state.lock();
        self.check_open(&state)?;
        let state_mut = &mut *state;
        let sequence = state_mut.last + 1;
        state_mut.last = sequence;
        state_mut.queued_bytes += frame.bytes;
        let fits = state_mut.groups.back().is_some_and(|g| g.fits(frame.bytes, &self.options));
        if !fits {
            state_mut.groups.push_back(Group::new(sequence - 1));
        }
        let group = state_mut.groups.back_mut().ok_or_else(|| Error::internal("no group"))?;
        group.last = sequence;
        group.frames += 1;
        group.bytes += frame.bytes;
        group.permits += permits;
        group.wants_sync |= durability == Durability::Sync;
        let progress = group.progress.subscribe();
        let header = frame::open_header(self.magic, frame.payload_bytes, sequence, frame.crc);
        place(group, frame, header, &mut state_mut.spare);
        self.wake_writer(&mut state);
        drop(state);
        count(&self.stats.appends, 1);
        count(&self.stats.payload_bytes, payload_bytes);
        Ok(Appended { position: self.log.at(sequence), durability, progress })
    }

    fn check_open(&self, state: &State) -> Result<()> {
        match &state.end {
            None => Ok(()),
            Some(end) => Err(self.end_error(end)),
        }
    }

    fn end_error(&self, end: &End) -> Error {
        match end {
            End::Closed => Error::unavailable(format!("the commit log {} is closed", self.place)),
            End::Failed(poison) => poison.refusal(),
        }
    }

    fn ended(&self) -> Error {
        let state = self.state.lock();
        self.end_error(state.end.as_ref().unwrap_or(&End::Closed))
    }

    fn full(&self, waited: Duration) -> Error {
        count(&self.stats.refusals, 1);
        Error::new(
            ErrorKind::Exhausted,
            format!(
                "the commit log {} has {} bytes in flight and took no more for {} ms",
                self.place,
                self.in_flight_bytes(),
                waited.as_millis()
            ),
        )
        .with_hint("the disk does not keep up; write less at once, or try again later")
    }

    fn wake_writer(&self, state: &mut State) {
        if std::mem::take(&mut state.writer_waits) {
            self.arrived.notify_one();
        }
    }

    /// Bytes of frames that hold room.
    pub(crate) fn in_flight_bytes(&self) -> usize {
        self.options.in_flight_bytes_max.saturating_sub(self.room.available_permits())
    }

    /// Whether no group is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().groups.is_empty()
    }

    /// The next group, if one is queued.
    pub(crate) fn try_take(&self) -> Option<Group> {
        let mut state = self.state.lock();
        let group = state.groups.pop_front()?;
        state.queued_bytes -= group.bytes;
        Some(group)
    }

    /// Waits for a group, and then, unless it is full or the log is closing, until `not_before`.
    /// Nothing when the log is closed and the queue empty.
    pub(crate) fn take(&self, not_before: Option<Instant>) -> Option<Group> {
        let mut state = self.state.lock();
        loop {
            let ended = state.end.is_some();
            let nothing = state.groups.is_empty() && !ended;
            let urgent = ended || state.queued_bytes >= self.options.group_bytes_max;
            let early = not_before.map(|at| self.env.park_time(at));
            let early = early.filter(|wait| !urgent && !wait.is_zero());
            state.writer_waits = true;
            match early {
                _ if nothing => self.arrived.wait(&mut state),
                Some(wait) => drop(self.arrived.wait_for(&mut state, wait)),
                None => break,
            }
        }
        state.writer_waits = false;
        let group = state.groups.pop_front()?;
        state.queued_bytes -= group.bytes;
        Some(group)
    }

    /// Gives back what a group held: room for others, and a buffer.
    pub(crate) fn recycle(&self, group: &mut Group) {
        self.room.add_permits(std::mem::take(&mut group.permits));
        let largest = 2 * self.options.group_bytes_max;
        let buffer = std::mem::take(&mut group.chunks).into_iter().next();
        if let Some(mut buffer) = buffer.filter(|buffer| buffer.capacity() <= largest) {
            buffer.clear();
            self.state.lock().spare.get_or_insert(buffer);
        }
    }

    /// Takes no more appends; what is queued is still written.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.end.get_or_insert(End::Closed);
        self.room.close();
        self.wake_writer(&mut state);
    }

    /// Takes no more appends and fails what is queued. The first cause is the one that is told.
    pub(crate) fn fail(&self, poison: &Arc<Poison>) {
        let mut state = self.state.lock();
        if !matches!(state.end, Some(End::Failed(_))) {
            state.end = Some(End::Failed(poison.clone()));
        }
        self.room.close();
        let groups = std::mem::take(&mut state.groups);
        state.queued_bytes = 0;
        self.wake_writer(&mut state);
        drop(state);
        groups.iter().for_each(|group| group.tell(Progress::NotWritten(poison.clone())));
    }

    /// Why the log has stopped, if an error has stopped it.
    pub(crate) fn poison(&self) -> Option<Arc<Poison>> {
        match &self.state.lock().end {
            Some(End::Failed(poison)) => Some(poison.clone()),
            _ => None,
        }
    }
}

/// Copies a frame to the end of a group.
fn place(
    group: &mut Group,
    frame: Frame<'_>,
    header: [u8; frame::HEADER_BYTES],
    spare: &mut Option<Vec<u8>>,
) {
    if let Some(mut own) = frame.own {
        if let Some(place) = own.first_chunk_mut() {
            *place = header;
        }
        group.chunks.push(own);
        group.open = false;
        return;
    }
    if !group.open {
        group.chunks.push(spare.take().unwrap_or_default());
        group.open = true;
    }
    if let Some(chunk) = group.chunks.last_mut() {
        chunk.extend_from_slice(&header);
        frame.parts.iter().for_each(|part| chunk.extend_from_slice(part));
    }
}
