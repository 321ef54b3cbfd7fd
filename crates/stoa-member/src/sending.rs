//! Sending this daemon's log to each of its peers, one task per life of a peer.
//!
//! A part is sent as soon as there is something new, and while its answer is awaited the next one grows. What
//! a peer has not confirmed is sent again.

use std::sync::Arc;
use std::time::Duration;

use stoa_cluster::lease::Holder;
use stoa_cluster::membership::MemberEvent;
use stoa_env::{task, timer};
use stoa_error::Result;
use stoa_ingest::{CopyStatus, LogPart};

use crate::event::Event;
use crate::member::Inner;
use crate::messages::{Push, decode_status, kind};

/// Bytes of records in one part; a single larger one goes alone.
const PART_BYTES: usize = 4 << 20;

/// How long the answer to a part may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The wait after a part that was not answered.
const RETRY_WAIT: Duration = Duration::from_millis(100);

/// The longest time without a look whether the peer still is one.
const LOOK_EACH: Duration = Duration::from_secs(1);

/// What a peer has been sent.
#[derive(Default)]
struct Sent {
    status: CopyStatus,
    base: u64,
    durable: u64,
    /// Whether it has answered at all.
    answered: bool,
}

impl Inner {
    /// Begins to send to this life of a peer, unless that is done already.
    pub(crate) fn send_records_to(self: &Arc<Self>, peer: Holder) {
        if self.machines.lock().sending.insert(peer) {
            let inner = Arc::clone(self);
            task::spawn(async move {
                inner.send_records(peer).await;
                inner.machines.lock().sending.remove(&peer);
            });
        }
    }

    async fn send_records(&self, peer: Holder) {
        let mut moved = self.moved.subscribe();
        let mut sent = Sent::default();
        while self.is_peer(&self.machines.lock(), peer) {
            moved.mark_unchanged();
            let Some(part) = self.next_part(&sent) else {
                let _ = timer::timeout(LOOK_EACH, moved.changed()).await;
                continue;
            };
            let (base, durable) = (part.base, part.durable);
            let (from, has_records) = (part.from, !part.records.is_empty());
            match self.push(peer, part).await {
                Ok(status) => {
                    if has_records && status.has < from {
                        // It misses something before: not at full speed until it says what.
                        timer::sleep(RETRY_WAIT).await;
                    }
                    sent = Sent { status, base, durable, answered: true };
                    self.send(Event::Told { peer, to: status.shown });
                }
                Err(error) => {
                    tracing::debug!(%error, peer = %peer.daemon, "part of the log was not sent");
                    if stoa_peers::is_unreachable(&error) {
                        self.send(Event::Member(MemberEvent::Failed { peer: peer.daemon }));
                    }
                    timer::sleep(RETRY_WAIT).await;
                }
            }
        }
    }

    /// What there is to send to a peer who has been sent that; `None` for nothing.
    fn next_part(&self, sent: &Sent) -> Option<LogPart> {
        // How far files go is read first: records behind it are there, or files go further by now.
        let base = self.shipping.in_files();
        let (last, durable) = (self.shipping.last(), self.shipping.durable());
        let from = sent.status.has.max(base) + 1;
        let has_news = from <= last || durable > sent.durable || base > sent.base;
        if !has_news && sent.answered {
            return None;
        }
        let records = self.shipping.records(from, last, PART_BYTES);
        let tables = self.shipping.tables();
        Some(LogPart { log: self.own.log.clone(), base, from, records, durable, tables })
    }

    async fn push(&self, peer: Holder, part: LogPart) -> Result<CopyStatus> {
        let message = Push { to: peer, part }.encode();
        let answer = self.peers.call(peer.daemon, kind::PUSH, message, ANSWER_LIMIT).await?;
        decode_status(answer)
    }
}
