//! Holding tables for others, and having them held by others: all daemons flush a table, and none flushes it again,
//! while a statement of one rewrites it.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use stoa_catalog::ClusterState;
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_env::{clock, task, timer};
use stoa_error::{Error, Result};
use stoa_ingest::{OtherHold, Others, Turn};
use stoa_table::{Table, TableIdent};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::directory::living;
use crate::member::Inner;
use crate::messages::{Held, HoldTable, kind, number};
use crate::names::log_of;

/// Time between words that keep a hold.
const KEEP_EACH: Duration = Duration::from_secs(2);

/// How long another daemon may take to hold a table: a statement of its own may have it.
const HOLD_WAIT: Duration = Duration::from_secs(600);

/// How long one request about a hold may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// How long a daemon that does not answer, or a log without an owner, is waited for.
const DEATH_WAIT: Duration = Duration::from_secs(30);

/// The wait before it is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Inner {
    /// Holds a table for another daemon, once the logs that this one takes over are in files.
    pub(crate) async fn hold_for(
        &self,
        by: Holder,
        uuid: Uuid,
        ident: &TableIdent,
    ) -> Result<Held> {
        self.settled(|log, holder, state| self.is_orphan(log, holder, state)).await?;
        let table = self.warehouse.table(ident).await?;
        if table.uuid() != uuid {
            return Err(Error::conflict(format!("table {ident} was replaced"))
                .with_hint("nothing was changed; run the statement again"));
        }
        let hold = self.ingest.hold_own(&table).await?;
        let settled = hold.settled();
        Ok(Held { number: self.holds.add(by, hold), settled })
    }

    async fn hold_everywhere(
        self: &Arc<Self>,
        table: &Table,
        turn: Turn,
    ) -> Result<Vec<Box<dyn OtherHold>>> {
        // Read now: who has joined since the last read may have acknowledged rows.
        let state = self.settled(|log, holder, state| self.is_orphan(log, holder, state)).await?;
        let me = self.me.daemon;
        let is_in_turn = |daemon: &DaemonId| match turn {
            Turn::Before => *daemon < me,
            Turn::After => *daemon > me,
        };
        let mut holds: Vec<Box<dyn OtherHold>> = Vec::new();
        let living = living(&state);
        for (_, holder) in living.into_iter().filter(|(daemon, _)| is_in_turn(daemon)) {
            if let Some(hold) = self.hold_at(holder, table, &state).await? {
                holds.push(Box::new(hold));
            }
        }
        Ok(holds)
    }

    /// `None` where that life of the daemon is dead: its rows are in files.
    async fn hold_at(
        self: &Arc<Self>,
        peer: Holder,
        table: &Table,
        state: &ClusterState,
    ) -> Result<Option<PeerHold>> {
        let began = clock::monotonic();
        let message = HoldTable { uuid: table.uuid(), ident: table.ident().clone() }.encode();
        loop {
            let held = self.peers.call(peer.daemon, kind::HOLD, message.clone(), HOLD_WAIT).await;
            match held {
                Ok(answer) => {
                    let held = Held::decode(answer)?;
                    return Ok(Some(PeerHold::new(Arc::clone(self), peer, held)));
                }
                Err(error) if stoa_peers::is_unreachable(&error) => {
                    if !self.cluster.state().await?.members.lives(peer) {
                        // Whoever takes its logs over: they are retired once all of their rows are in files.
                        let logs = logs_of(state, peer);
                        self.settled(|log, _, _| logs.contains(log)).await?;
                        return Ok(None);
                    }
                    if began.elapsed() > DEATH_WAIT {
                        return Err(error);
                    }
                    timer::sleep(LOOK_AGAIN).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether rows of a log may be in no file and nobody can be asked to bring them there: its owner is dead, or
    /// this daemon is about to take it over.
    fn is_orphan(&self, log: &str, holder: Holder, state: &ClusterState) -> bool {
        log != self.own.log && (holder == self.me || !state.members.lives(holder))
    }

    /// Waits until the database has no log that is `open`; gives what it has then.
    async fn settled(
        &self,
        is_open: impl Fn(&str, Holder, &ClusterState) -> bool,
    ) -> Result<ClusterState> {
        let began = clock::monotonic();
        loop {
            let state = self.cluster.state().await?;
            let open = state.leases.iter().any(|(name, lease)| {
                log_of(name).is_some_and(|log| is_open(log, lease.row.holder, &state))
            });
            if !open {
                return Ok(state);
            }
            if began.elapsed() > DEATH_WAIT {
                return Err(Error::unavailable(
                    "rows of a daemon that has died are not in files yet",
                )
                .with_sqlstate("57P03")
                .with_hint("nothing was changed; run the statement again in a few seconds"));
            }
            timer::sleep(LOOK_AGAIN).await;
        }
    }
}

/// The logs that a life of a daemon has.
fn logs_of(state: &ClusterState, holder: Holder) -> BTreeSet<String> {
    let leases = state.leases.iter().filter(|(_, lease)| lease.row.holder == holder);
    leases.filter_map(|(name, _)| log_of(name)).map(str::to_owned).collect()
}

/// The other daemons, for statements of this one.
pub(crate) struct OtherDaemons(pub(crate) Weak<Inner>);

impl Others for OtherDaemons {
    fn epoch(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(inner) => Ok(inner.cluster.state().await?.members.epoch()),
                None => Ok(0),
            }
        })
    }

    fn hold<'a>(
        &'a self,
        table: &'a Table,
        turn: Turn,
    ) -> BoxFuture<'a, Result<Vec<Box<dyn OtherHold>>>> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(inner) => inner.hold_everywhere(table, turn).await,
                None => Ok(Vec::new()),
            }
        })
    }
}

/// A table that a peer holds for us.
struct PeerHold {
    inner: Arc<Inner>,
    peer: Holder,
    number: u64,
    settled: Option<i64>,
    keeping: JoinHandle<()>,
}

impl PeerHold {
    fn new(inner: Arc<Inner>, peer: Holder, held: Held) -> Self {
        let Held { number: held, settled } = held;
        let keeper = Arc::clone(&inner);
        let keeping = task::spawn(async move {
            loop {
                timer::sleep(KEEP_EACH).await;
                let kept = keeper.peers.call(peer.daemon, kind::KEEP, number(held), KEEP_EACH);
                if let Err(error) = kept.await {
                    tracing::debug!(%error, "a hold was not kept");
                }
            }
        });
        Self { inner, peer, number: held, settled, keeping }
    }
}

impl OtherHold for PeerHold {
    fn settled(&self) -> Option<i64> {
        self.settled
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        let (peer, number) = (self.peer.daemon, number(self.number));
        Box::pin(async move {
            let flushed = self.inner.peers.call(peer, kind::FLUSH, number, ANSWER_LIMIT).await;
            match flushed {
                // Its log is taken over: its rows come into files all the same.
                Err(error) if stoa_peers::is_unreachable(&error) => Ok(()),
                answer => answer.map(drop),
            }
        })
    }
}

impl Drop for PeerHold {
    fn drop(&mut self) {
        self.keeping.abort();
        let (inner, peer, number) = (Arc::clone(&self.inner), self.peer, number(self.number));
        task::spawn(async move {
            let released: Result<Bytes> =
                inner.peers.call(peer.daemon, kind::RELEASE, number, ANSWER_LIMIT).await;
            if let Err(error) = released {
                tracing::debug!(%error, "a hold was not released; it ends by itself");
            }
        });
    }
}
