//! What other daemons are sent of this one's log: records, from when they have a position until they
//! are in files.
//!
//! In: records as they are appended, in any order; how far the log is durable and in files. Out: records
//! in the log's order, for whoever sends them; and the permission to acknowledge, from whoever knows
//! that all others show them.
//!
//! ```text
//! append ─► position ─► records ─► sent beside the write of the log ─► told ─┐
//!              └─► durable ───────────────────────────────────────────────┴─► acknowledged
//! ```
//!
//! **Invariants:** records leave in order and without gaps; a record stays until all tables have its rows in
//! files; once stopped, nothing is acknowledged any more.
//!
//! Not here: to whom records go and who has been told (`stoa-cluster`), how (`stoa-peers`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use stoa_error::{Error, Result};
use stoa_table::TableIdent;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::ingest::Ingest;
use crate::inner::Inner;

/// Records on their way, and appends that wait for it.
pub(crate) struct Outbox {
    records: Mutex<Records>,
    changed: Notify,
    gate: watch::Sender<Gate>,
}

struct Records {
    /// The sequence of the first of `queue`.
    first: u64,
    /// Without a gap.
    queue: VecDeque<Bytes>,
    /// Behind a gap: those in it have a position and are about to come.
    early: BTreeMap<u64, Bytes>,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Gate {
    /// Everything up to this sequence may be acknowledged.
    Open(u64),
    Stopped(String),
}

impl Outbox {
    /// For a log whose last record is `last`.
    pub(crate) fn new(last: u64) -> Self {
        let records =
            Records { first: last + 1, queue: VecDeque::new(), early: BTreeMap::new(), bytes: 0 };
        Self {
            records: Mutex::new(records),
            changed: Notify::new(),
            gate: watch::Sender::new(Gate::Open(last)),
        }
    }

    /// Takes the record at `sequence`. To be called in the poll that gave the position out.
    pub(crate) fn add(&self, sequence: u64, record: Bytes) {
        self.records.lock().add(sequence, record);
        self.changed.notify_one();
    }

    /// Says that the log may be durable further than it was.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Forgets what is in files: everything before `end`.
    pub(crate) fn drop_before(&self, end: u64) {
        let is_changed = self.records.lock().drop_before(end);
        if is_changed {
            self.changed.notify_one();
        }
    }

    /// Waits until the record at `sequence` may be acknowledged.
    ///
    /// # Errors
    /// `Unavailable` (08007) once no more is acknowledged: nobody knows of the rows then.
    pub(crate) async fn acknowledged(&self, sequence: u64) -> Result<()> {
        let mut gate = self.gate.subscribe();
        let is_over = |gate: &Gate| match gate {
            Gate::Open(to) => *to >= sequence,
            Gate::Stopped(_) => true,
        };
        // The sender lives as long as this value.
        let over = gate.wait_for(is_over).await.map(|gate| gate.clone());
        match over {
            Ok(Gate::Open(_)) => Ok(()),
            Ok(Gate::Stopped(why)) => Err(stopped(&why)),
            Err(_) => Err(stopped("it is shutting down")),
        }
    }
}

impl Records {
    fn add(&mut self, sequence: u64, record: Bytes) {
        self.bytes += record.len();
        self.early.insert(sequence, record);
        while let Some(next) = self.early.remove(&(self.first + self.queue.len() as u64)) {
            self.queue.push_back(next);
        }
    }

    /// The last record without a gap before it.
    fn last(&self) -> u64 {
        self.first + self.queue.len() as u64 - 1
    }

    fn drop_before(&mut self, end: u64) -> bool {
        let before = self.first;
        while self.first < end
            && let Some(record) = self.queue.pop_front()
        {
            self.bytes -= record.len();
            self.first += 1;
        }
        self.first != before
    }
}

/// The log of this daemon, for whoever sends it to others. From [`Ingest::shipping`].
#[derive(Clone)]
pub struct Shipping {
    inner: Arc<Inner>,
    outbox: Arc<Outbox>,
}

/// A table with rows of this log, for those who keep copies of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShippedTable {
    /// Its identity.
    pub uuid: Uuid,
    /// Its name, as it was last seen.
    pub ident: TableIdent,
    /// All of its rows before this position are in files.
    pub in_files_before: u64,
}

impl Inner {
    /// # Errors
    /// `Unsupported` for a log with rows that are in no file: nobody has been sent them.
    pub(crate) fn new_outbox(&self) -> Result<Arc<Outbox>> {
        if !self.is_all_in_files() {
            return Err(Error::unsupported(
                "a log with rows of an earlier start cannot be shipped",
            )
            .with_hint("bring its rows into files first, and begin a new log"));
        }
        Ok(Arc::new(Outbox::new(self.log.durable_end().saturating_sub(1))))
    }
}

impl Ingest {
    /// The log as others are sent it; `None` where [`crate::IngestOptions::ships`] is off.
    pub fn shipping(&self) -> Option<Shipping> {
        let outbox = self.inner.outbox.clone()?;
        Some(Shipping { inner: self.inner.clone(), outbox })
    }
}

impl Shipping {
    /// The last record that can be sent.
    pub fn last(&self) -> u64 {
        self.outbox.records.lock().last()
    }

    /// The last record that is durable.
    pub fn durable(&self) -> u64 {
        self.inner.log.durable_end().saturating_sub(1)
    }

    /// The last record of those, all of which are in files.
    pub fn in_files(&self) -> u64 {
        self.outbox.records.lock().first - 1
    }

    /// Records from `from` to `to`, inclusive, in order, as many as have `bytes_max` bytes together, and one at
    /// least; none where the first is in files already.
    pub fn records(&self, from: u64, to: u64, bytes_max: usize) -> Vec<Bytes> {
        let records = self.outbox.records.lock();
        let Some(start) = from.checked_sub(records.first) else { return Vec::new() };
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let count = usize::try_from((to + 1).saturating_sub(from)).unwrap_or(usize::MAX);
        let mut bytes = 0_usize;
        let queue = records.queue.iter().skip(start).take(count);
        let fitting = queue.take_while(|record| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(record.len().max(1));
            is_first || bytes <= bytes_max
        });
        fitting.cloned().collect()
    }

    /// The tables with rows of this log.
    pub fn tables(&self) -> Vec<ShippedTable> {
        let tables = self.inner.tables.all();
        let shipped = tables.iter().map(|state| ShippedTable {
            uuid: state.uuid(),
            ident: state.ident(),
            in_files_before: state.fresh.floor(),
        });
        shipped.collect()
    }

    /// Bytes that records hold until they are in files.
    pub fn bytes(&self) -> usize {
        self.outbox.records.lock().bytes
    }

    /// Returns when there may be more to send than before.
    pub async fn changed(&self) {
        self.outbox.changed.notified().await;
    }

    /// Allows everything up to `to`, inclusive, to be acknowledged.
    pub fn acknowledge(&self, to: u64) {
        self.outbox.gate.send_if_modified(|gate| match gate {
            Gate::Open(before) if *before < to => {
                *before = to;
                true
            }
            _ => false,
        });
    }

    /// Acknowledges nothing any more, for the reason that clients are told.
    pub fn stop(&self, why: &str) {
        self.outbox.gate.send_replace(Gate::Stopped(why.to_owned()));
    }
}

impl std::fmt::Debug for Shipping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shipping(log {})", self.inner.log.id())
    }
}

fn stopped(why: &str) -> Error {
    Error::unavailable(format!("it is not known whether the rows are kept: {why}"))
        .with_condition(stoa_error::Condition::UnknownOutcome)
        .with_hint("look for the rows before they are sent again")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn records_leave_in_order_and_stay_until_they_are_in_files() {
        let mut records = Outbox::new(4).records.into_inner();
        records.add(6, bytes("six"));
        assert_eq!(records.last(), 4, "five is to come");
        records.add(5, bytes("five"));
        records.add(7, bytes("seven"));
        assert_eq!((records.last(), records.bytes), (7, 12));
        assert!(records.drop_before(7));
        assert_eq!((records.first, records.last(), records.bytes), (7, 7, 5));
        assert!(!records.drop_before(7));
        assert!(records.drop_before(100));
        assert_eq!((records.first, records.last(), records.bytes), (8, 7, 0));
    }

    #[tokio::test]
    async fn appends_wait_until_they_may_be_acknowledged() {
        let outbox = Outbox::new(0);
        outbox.gate.send_replace(Gate::Open(3));
        outbox.acknowledged(3).await.unwrap();
        let mut waiting = Box::pin(outbox.acknowledged(4));
        assert!(futures::poll!(&mut waiting).is_pending());
        outbox.gate.send_replace(Gate::Stopped("the lease is lost".to_owned()));
        assert_eq!(waiting.await.unwrap_err().sqlstate(), "08007");
        assert!(outbox.acknowledged(1).await.is_err());
    }
}
