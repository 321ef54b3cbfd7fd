//! What other daemons are sent of this one's log: records, from when they have a position until they
//! are in files.
//!
//! Not here: to whom records go and who has been told (`stoa-cluster`), how (`stoa-peers`).

use std::sync::Arc;

use bytes::Bytes;

use crate::copies::ShippedTable;
use crate::ingest::Ingest;
use crate::inner::Inner;
use crate::outbox::Outbox;

/// The log of this daemon, for whoever sends it to others. From [`Ingest::shipping`].
#[derive(Clone)]
pub struct Shipping {
    inner: Arc<Inner>,
    outbox: Arc<Outbox>,
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
        self.outbox.last()
    }

    /// The last record that is durable.
    pub fn durable(&self) -> u64 {
        self.inner.log.durable_end().saturating_sub(1)
    }

    /// The last record of those, all of which are in files.
    pub fn in_files(&self) -> u64 {
        self.outbox.first() - 1
    }

    /// Records from `from` to `to`, inclusive, in order, as many as have `bytes_max` bytes together, and one at
    /// least; none where the first is in files already.
    pub fn records(&self, from: u64, to: u64, bytes_max: usize) -> Vec<Bytes> {
        self.outbox.records(from, to, bytes_max)
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
        self.outbox.bytes()
    }

    /// Returns when there may be more to send than before.
    pub async fn changed(&self) {
        self.outbox.changed().await;
    }

    /// Allows everything up to `to`, inclusive, to be acknowledged.
    pub fn acknowledge(&self, to: u64) {
        self.outbox.acknowledge(to);
    }

    /// Acknowledges nothing any more, for the reason that clients are told.
    pub fn stop(&self, why: &str) {
        self.outbox.stop(why);
    }
}

impl std::fmt::Debug for Shipping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shipping(log {})", self.inner.log.id())
    }
}
