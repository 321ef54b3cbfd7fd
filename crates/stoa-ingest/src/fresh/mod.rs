//! The fresh rows of one table, in log order.
//!
//! In: batches, each with the log position it gets. Out: what a reader of a given version of the
//! table must add, and what the next flush shall write.
//!
//! ```text
//!          floor        sealed             durable
//!      gone  │  in a flush │   mergeable      │  not visible yet
//! ───────────┴─────────────┴──────────────────┴──────────────────► position
//!              [ chunk ][c]  [ chunk ][c][c][c] [c][c][c]
//! ```
//! Bounds are those of `stoa-table`: the first position that is *not* flushed, sealed, durable.
//!
//! **Invariants:**
//! 1. Positions are given out under this store's lock and pushed before it is released. So whoever
//!    holds the lock and reads that the log is durable before W sees every chunk before W.
//! 2. Chunks before the *floor* are gone; they were in a committed snapshot before they went.
//! 3. A chunk never spans a position at which a flush may end: chunks merge only behind *sealed*,
//!    which a flush sets first of all ([`Fresh::mark`]). Copies of another daemon's rows know where each append
//!    begins, and are divided where a flush of that daemon has ended. A chunk is visible as a whole or not at all: those that merge are all durable, or
//!    all relaxed, which are visible in any case.

mod chunk;
mod merge;
mod rows;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Instant;

use arrow_array::RecordBatch;
use parking_lot::Mutex;
use stoa_env::Env;
use stoa_error::Result;

pub use chunk::memory_bytes;
pub(crate) use chunk::{Chunk, detach};
pub use rows::{FreshBatchId, FreshRows};

/// Rows that get a position.
pub(crate) struct NewRows {
    pub(crate) batch: RecordBatch,
    pub(crate) schema_id: i32,
    /// Room that was taken for them.
    pub(crate) bytes: usize,
    /// Visible before they are durable.
    pub(crate) relaxed: bool,
}

/// What an append changed.
pub(crate) struct Pushed<T> {
    pub(crate) position: u64,
    /// What the log gave beside the position.
    pub(crate) ticket: T,
    /// Rows and bytes that are there now.
    pub(crate) totals: Totals,
    /// Room that merging chunks set free.
    pub(crate) freed_bytes: usize,
}

/// Rows and bytes of a table that are not in a data file yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) rows: u64,
    pub(crate) bytes: usize,
    /// When the oldest of them came in.
    pub(crate) oldest: Option<Instant>,
}

/// Rows for one flush, after which the table is at position `to`.
pub(crate) struct FlushSet {
    pub(crate) chunks: Vec<Arc<Chunk>>,
    pub(crate) to: u64,
}

/// The fresh rows of one table.
pub(crate) struct Fresh {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Tells how old rows are.
    env: Env,
    /// By position.
    chunks: VecDeque<Arc<Chunk>>,
    floor: u64,
    sealed: u64,
    rows: u64,
    bytes: usize,
    /// Chunks added since small ones were last merged.
    unmerged: usize,
    closed: bool,
}

impl Fresh {
    /// A store without rows, in the world `env`.
    pub(crate) fn new(env: Env) -> Self {
        Self { state: Mutex::new(State { env, ..State::default() }) }
    }

    /// Adds rows at the position that `append` gives them, and merges small chunks now and then.
    /// `None` where the store is closed. `durable` tells how far the log is durable.
    ///
    /// `append` is polled under this store's lock, which is free while it waits: so the position is
    /// given out and used under one lock (invariant 1). Dropped on the way, nothing is added.
    ///
    /// # Errors
    /// Those of `append`; nothing is added then.
    pub(crate) async fn push<T>(
        &self,
        rows: NewRows,
        append: impl Future<Output = Result<(u64, T)>>,
        durable: impl Fn() -> u64,
    ) -> Result<Option<Pushed<T>>> {
        let mut append = pin!(append);
        let mut rows = Some(rows);
        poll_fn(|context| {
            let mut state = self.state.lock();
            if state.closed {
                return Poll::Ready(Ok(None));
            }
            let (position, ticket) = ready!(append.as_mut().poll(context))?;
            let freed_bytes = rows.take().map_or(0, |rows| state.add(rows, position, &durable));
            let totals = state.totals();
            Poll::Ready(Ok(Some(Pushed { position, ticket, totals, freed_bytes })))
        })
        .await
    }

    /// Adds rows that are in the log at `position`, and durable. Whoever had the log before may still commit up to any
    /// append, so these rows can be divided again between any two.
    pub(crate) fn restore(&self, rows: NewRows, position: u64) {
        let mut state = self.state.lock();
        let chunk = Chunk::divisible(rows, position, state.env.monotonic());
        state.push_back(chunk);
        state.unmerged += 1;
        if state.unmerged >= merge::FAN_IN {
            state.merge(u64::MAX);
        }
    }

    /// Adds rows of another daemon's log, at `position` there, which are not visible yet. All rows of this store must
    /// come this way.
    pub(crate) fn copy(&self, rows: NewRows, position: u64) {
        let mut state = self.state.lock();
        let chunk = Chunk::divisible(rows, position, state.env.monotonic());
        state.push_back(chunk);
        state.unmerged += 1;
    }

    /// Merges small copies now and then. Those before `end` are visible.
    pub(crate) fn merge_copies(&self, end: u64) {
        let mut state = self.state.lock();
        if state.unmerged >= merge::FAN_IN {
            state.merge(end);
        }
    }

    /// [`look_at_all`] for one store.
    #[cfg(test)]
    pub(crate) fn since(&self, seen: u64, durable: impl Fn() -> u64) -> Option<Vec<Arc<Chunk>>> {
        let state = self.state.lock();
        match state.chunks.is_empty() {
            true => (seen >= state.floor).then(Vec::new),
            // Read under the lock: chunks merge as far as the log was durable then.
            false => state.since(seen, durable()),
        }
    }

    /// The end of the rows that are here: where a flush of all of them ends. Chunks that come later
    /// do not merge with them.
    pub(crate) fn mark(&self) -> u64 {
        self.state.lock().mark()
    }

    /// Where a chunk begins that goes on behind `position` and cannot be divided there: a flush from there on would leave
    /// its rows out.
    pub(crate) fn torn(&self, position: u64) -> Option<u64> {
        let state = self.state.lock();
        let is_torn = |chunk: &&Arc<Chunk>| {
            chunk.first() < position && position < chunk.end() && !chunk.is_divisible()
        };
        state.chunks.iter().find(is_torn).map(|chunk| chunk.first())
    }

    /// Durable rows from position `from` on, oldest first, up to about `bytes_max` (at least one
    /// chunk). `None` where there are none. Not for where the rows are [`Self::torn`].
    pub(crate) fn seal(
        &self,
        from: u64,
        bytes_max: usize,
        durable: impl Fn() -> u64,
    ) -> Option<FlushSet> {
        let mut state = self.state.lock();
        let durable = durable();
        let mut chunks: Vec<Arc<Chunk>> = Vec::new();
        let mut bytes = 0_usize;
        for chunk in state.chunks.iter().filter(|chunk| chunk.first() >= from) {
            bytes = bytes.saturating_add(chunk.bytes());
            if chunk.end() > durable || (!chunks.is_empty() && bytes > bytes_max) {
                break;
            }
            chunks.push(chunk.clone());
        }
        let to = chunks.last()?.end();
        state.sealed = state.sealed.max(to);
        Some(FlushSet { chunks, to })
    }

    /// Drops the rows before `position`, which are in a committed snapshot. Returns the room they
    /// had.
    pub(crate) fn committed(&self, position: u64) -> usize {
        let mut state = self.state.lock();
        state.floor = state.floor.max(position);
        state.sealed = state.sealed.max(position);
        let mut freed = 0;
        while state.chunks.front().is_some_and(|chunk| chunk.end() <= position) {
            freed += state.remove_first();
        }
        freed + state.divide_first(position)
    }

    /// Drops the copies of a log all of whose rows are in files, those before `shown` having been visible. Readers who
    /// lack any of these are sent back.
    pub(crate) fn retire(&self, shown: u64) {
        let mut state = self.state.lock();
        let last = state.chunks.iter().rev().find(|chunk| chunk.end() <= shown);
        let end = last.map_or(0, |chunk| chunk.end());
        state.floor = state.floor.max(end);
        while !state.chunks.is_empty() {
            state.remove_first();
        }
    }

    /// Drops everything and takes nothing any more. Returns the room that the rows had, and how
    /// many there were.
    pub(crate) fn close(&self) -> (usize, u64) {
        let mut state = self.state.lock();
        state.closed = true;
        let rows = state.rows;
        let mut freed = 0;
        while !state.chunks.is_empty() {
            freed += state.remove_first();
        }
        (freed, rows)
    }

    /// The position before which rows are gone.
    pub(crate) fn floor(&self) -> u64 {
        self.state.lock().floor
    }

    /// The position of the oldest row that is here.
    pub(crate) fn first_position(&self) -> Option<u64> {
        self.state.lock().chunks.front().map(|chunk| chunk.first())
    }

    /// How much is here.
    pub(crate) fn totals(&self) -> Totals {
        self.state.lock().totals()
    }
}

/// What an append to several stores changed.
pub(crate) struct PushedAll<T> {
    pub(crate) position: u64,
    /// What the log gave beside the position.
    pub(crate) ticket: T,
    /// Room that merging chunks set free.
    pub(crate) freed_bytes: usize,
}

/// Adds rows to several stores at one position, as [`Fresh::push`] does to one. An `Err` inside is
/// the index of a store that is closed; nothing is added then.
///
/// The stores must be different ones, in an order that all callers keep to.
///
/// # Errors
/// Those of `append`; nothing is added then.
pub(crate) async fn push_all<T>(
    stores: &[&Fresh],
    rows: Vec<NewRows>,
    append: impl Future<Output = Result<(u64, T)>>,
    durable: impl Fn() -> u64,
) -> Result<std::result::Result<PushedAll<T>, usize>> {
    let mut append = pin!(append);
    let mut rows = Some(rows);
    poll_fn(|context| {
        let mut states: Vec<_> = stores.iter().map(|store| store.state.lock()).collect();
        if let Some(closed) = states.iter().position(|state| state.closed) {
            return Poll::Ready(Ok(Err(closed)));
        }
        let (position, ticket) = ready!(append.as_mut().poll(context))?;
        let mut freed_bytes = 0;
        for (state, rows) in states.iter_mut().zip(rows.take().unwrap_or_default()) {
            freed_bytes += state.add(rows, position, &durable);
        }
        Poll::Ready(Ok(Ok(PushedAll { position, ticket, freed_bytes })))
    })
    .await
}

/// One of several stores that are looked at together.
pub(crate) struct Look<'a> {
    pub(crate) fresh: &'a Fresh,
    /// The reader has everything before it.
    pub(crate) seen: u64,
    /// Whether to take note of where the visible rows end, so that chunks that come later do not merge with them.
    pub(crate) mark: bool,
}

/// What a store had at the moment of a look.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// The end of the visible rows; 0 where it was not asked for, or there are none.
    pub(crate) end: u64,
    /// Whether rows before `end` are not visible: those of others, not durable yet, before relaxed ones.
    pub(crate) hides: bool,
}

/// What readers add of several stores who have seen everything before [`Look::seen`], all at one moment. `None`
/// where later rows are gone already from one of them, so that the reader must look at a newer version of the
/// table. `ends` gives the end of what is visible of each, at that moment; `still` says
/// whether the look counts.
///
/// The stores must be different ones, in an order that all callers keep to.
pub(crate) fn look_at_all(
    looks: &[Look<'_>],
    ends: impl FnOnce() -> Vec<u64>,
    still: impl FnOnce() -> bool,
) -> Option<Vec<Seen>> {
    let mut states: Vec<_> = looks.iter().map(|look| look.fresh.state.lock()).collect();
    if !still() {
        return None;
    }
    let ends = ends();
    type Locked<'a> = parking_lot::MutexGuard<'a, State>;
    let look = |((state, look), durable): ((&mut Locked<'_>, &Look<'_>), u64)| {
        let chunks = state.since(look.seen, durable)?;
        let (end, hides) = if look.mark { state.mark_visible(durable) } else { (0, false) };
        Some(Seen { chunks, end, hides })
    };
    states.iter_mut().zip(looks).zip(ends).map(look).collect()
}

fn is_visible(chunk: &Chunk, durable: u64) -> bool {
    chunk.end() <= durable || chunk.relaxed()
}

impl State {
    fn since(&self, seen: u64, durable: u64) -> Option<Vec<Arc<Chunk>>> {
        if seen < self.floor {
            return None;
        }
        let start = self.chunks.partition_point(|chunk| chunk.end() <= seen);
        let visible = self.chunks.range(start..).filter(|chunk| is_visible(chunk, durable));
        let unseen =
            visible.filter_map(|chunk| match chunk.first() < seen && chunk.is_divisible() {
                true => chunk.behind(seen).map(Arc::new),
                false => Some(chunk.clone()),
            });
        Some(unseen.collect())
    }

    /// The end of the visible rows, and whether others are before it.
    fn mark_visible(&mut self, durable: u64) -> (u64, bool) {
        let Some(last) = self.chunks.iter().rposition(|chunk| is_visible(chunk, durable)) else {
            return (0, false);
        };
        let hides = self.chunks.range(..last).any(|chunk| !is_visible(chunk, durable));
        let end = self.chunks[last].end();
        self.sealed = self.sealed.max(end);
        (end, hides)
    }

    fn mark(&mut self) -> u64 {
        let end = self.chunks.back().map_or(0, |chunk| chunk.end());
        self.sealed = self.sealed.max(end);
        end
    }

    /// Returns the room that merging small chunks has freed.
    fn add(&mut self, rows: NewRows, position: u64, durable: impl Fn() -> u64) -> usize {
        self.add_alone(rows, position);
        self.unmerged += 1;
        match self.unmerged >= merge::FAN_IN {
            true => self.merge(durable()),
            false => 0,
        }
    }

    fn add_alone(&mut self, rows: NewRows, position: u64) {
        let chunk = Chunk::new(rows, position, self.env.monotonic());
        self.push_back(chunk);
    }

    fn push_back(&mut self, chunk: Chunk) {
        self.rows += chunk.rows() as u64;
        self.bytes += chunk.bytes();
        self.chunks.push_back(Arc::new(chunk));
    }

    /// Drops the rows before `position` of a chunk that goes on behind it. Returns the room they had.
    fn divide_first(&mut self, position: u64) -> usize {
        let is_inside = |chunk: &&Arc<Chunk>| chunk.first() < position && chunk.is_divisible();
        let Some(left) = self.chunks.front().filter(is_inside).map(|chunk| chunk.behind(position))
        else {
            return 0;
        };
        let before = self.remove_first();
        let Some(left) = left else { return before };
        self.rows += left.rows() as u64;
        self.bytes += left.bytes();
        let freed = before - left.bytes();
        self.chunks.push_front(Arc::new(left));
        freed
    }

    fn remove_first(&mut self) -> usize {
        let Some(chunk) = self.chunks.pop_front() else { return 0 };
        self.rows -= chunk.rows() as u64;
        self.bytes -= chunk.bytes();
        chunk.bytes()
    }

    fn totals(&self) -> Totals {
        let oldest = self.chunks.front().map(|chunk| chunk.since());
        Totals { rows: self.rows, bytes: self.bytes, oldest }
    }

    /// Merges small chunks that are visible and behind what flushes have sealed. Returns the room
    /// that became free.
    fn merge(&mut self, durable: u64) -> usize {
        self.unmerged = 0;
        let start = self.chunks.partition_point(|chunk| chunk.first() < self.sealed);
        let end = self.chunks.partition_point(|chunk| chunk.end() <= durable);
        let end = end + self.chunks.range(end..).take_while(|chunk| chunk.relaxed()).count();
        if start >= end {
            return 0;
        }
        let before = self.bytes;
        let tail = self.chunks.split_off(end);
        let mut merging: Vec<Arc<Chunk>> = self.chunks.split_off(start).into();
        merge::merge(&mut merging);
        self.chunks.extend(merging);
        self.chunks.extend(tail);
        self.bytes = self.chunks.iter().map(|chunk| chunk.bytes()).sum();
        before.saturating_sub(self.bytes)
    }
}

#[cfg(test)]
mod tests;
