//! Records of this daemon's log on their way to others, and appends that wait for it.
//!
//! In: records as they are appended, in any order; how far they are in files. Out: records in the log's
//! order, for whoever sends them ([`crate::Shipping`]); and the permission to acknowledge, from whoever
//! knows that all others show them.
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

use bytes::Bytes;
use parking_lot::Mutex;
use stoa_error::{Condition, Error, Result};
use tokio::sync::{Notify, watch};

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

impl Outbox {
    /// The last record that can be sent.
    pub(crate) fn last(&self) -> u64 {
        self.records.lock().last()
    }

    /// The sequence of the first record that is kept.
    pub(crate) fn first(&self) -> u64 {
        self.records.lock().first
    }

    /// Bytes of the records that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.records.lock().bytes
    }

    /// Records from `from` to `to`, inclusive, in order, as many as have `bytes_max` bytes together, and one at
    /// least; none where the first is not kept any more.
    pub(crate) fn records(&self, from: u64, to: u64, bytes_max: usize) -> Vec<Bytes> {
        let records = self.records.lock();
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

    /// Returns when there may be more to send than before.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Allows everything up to `to`, inclusive, to be acknowledged.
    pub(crate) fn acknowledge(&self, to: u64) {
        self.gate.send_if_modified(|gate| match gate {
            Gate::Open(before) if *before < to => {
                *before = to;
                true
            }
            _ => false,
        });
    }

    /// Acknowledges nothing any more.
    pub(crate) fn stop(&self, why: &str) {
        self.gate.send_replace(Gate::Stopped(why.to_owned()));
    }
}

fn stopped(why: &str) -> Error {
    Error::unavailable(format!("it is not known whether the rows are kept: {why}"))
        .with_condition(Condition::UnknownOutcome)
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
