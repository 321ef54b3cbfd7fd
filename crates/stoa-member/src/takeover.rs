//! Logs of the dead: opened, which fences their owners off; replayed and flushed; retired.
//!
//! The steps are those of [`stoa_cluster::takeover`]. Opening a log claims it, replays it and flushes what no
//! table has; closing it afterwards makes sure of that. Positions in the tables make a row that two daemons
//! flush at once come into files once.
//!
//! A log on a local disk is locked by its process: while a frozen one has it, taking over waits. Segments that claim
//! a log stay in the store, so that a writer that sleeps for long is refused.

use std::sync::Arc;
use std::time::Duration;

use stoa_catalog::{ClusterState, Lease};
use stoa_cluster::takeover::is_due;
use stoa_cluster::{LogId, Monotonic};
use stoa_env::{clock, task, timer};
use stoa_error::{Condition, Error, Result};
use stoa_ingest::{Ingest, IngestOptions};
use url::Url;

use crate::event::Event;
use crate::happened::{MemberEventKind, MemberHappened};
use crate::member::Inner;
use crate::names::log_of;

/// How long a log that its process still has open is left alone.
const LOCKED_WAIT: Duration = Duration::from_secs(2);

impl Inner {
    /// Begins to take over the logs that are ours to take.
    pub(crate) fn look_for_orphans(self: &Arc<Self>, state: &ClusterState, now: Monotonic) {
        for (name, lease) in &state.leases {
            let Some(log) = log_of(name).filter(|log| *log != self.own.log) else { continue };
            let Ok(bits) = u64::from_str_radix(log, 16) else { continue };
            let mut machines = self.machines.lock();
            machines.leases.see(
                name.clone(),
                (lease.row.holder, lease.row.epoch, lease.row.until),
                now,
            );
            let unchanged = machines.leases.unchanged_for(name);
            let options = self.options.lease;
            let members = &machines.membership;
            // An earlier life of this daemon has ended for certain: its id was locked.
            let is_own = lease.row.holder.daemon == self.me.daemon && lease.row.holder != self.me;
            let id = LogId::from_bits(bits);
            let is_due = is_own || is_due(id, &lease.row, self.me, members, unchanged, options);
            if is_due && machines.taking.insert(name.clone()) {
                let (inner, name, lease) = (Arc::clone(self), name.clone(), lease.clone());
                task::spawn(async move { inner.take_over(name, lease).await });
            }
        }
    }

    async fn take_over(self: Arc<Self>, name: String, lease: Lease) {
        let taken = self.taken(&name, &lease).await;
        if let Err(error) = &taken {
            tracing::warn!(%error, log = name, place = lease.about, "a log was not taken over yet");
        }
        self.send(Event::Taken { lease: name, is_done: matches!(taken, Ok(true)) });
    }

    /// `false` where somebody else takes it over.
    async fn taken(self: &Arc<Self>, name: &str, lease: &Lease) -> Result<bool> {
        let ttl = self.options.lease.ttl;
        let observed = Some(lease.row.until);
        let granted = self.cluster.acquire(name, &lease.about, self.me, observed, ttl).await?;
        let Some(epoch) = granted else { return Ok(false) };
        let log = log_of(name).unwrap_or_default();
        tracing::info!(log, place = lease.about, of = %lease.row.holder.daemon, "taking a log over");
        let work = self.bring_into_files(&lease.about);
        tokio::select! {
            done = work => done?,
            () = self.keep_lease(name, epoch) => return Ok(false),
        }
        self.cluster.forget_lease(name, self.me, epoch).await?;
        self.warehouse.catalog().forget_log(log).await?;
        self.ingest.forget_copy(log);
        tracing::info!(log, "took a log over; its rows are in files");
        self.happened.add(MemberHappened {
            at_ms: clock::unix_ms(),
            kind: MemberEventKind::TookOver,
            daemon: Some(lease.row.holder.daemon),
            incarnation: Some(lease.row.holder.incarnation),
            host: self.known.state().and_then(|state| {
                state.daemons.get(&lease.row.holder.daemon).map(|info| info.name.clone())
            }),
            by: Some(self.me.daemon),
            detail: Some(format!("log {log}")),
        });
        Ok(true)
    }

    async fn bring_into_files(&self, place: &str) -> Result<()> {
        let location = Url::parse(place).map_err(|source| {
            Error::corrupt(format!("the place of a log, {place:?}, is no URL")).with_source(source)
        })?;
        let options = IngestOptions { ships: false, ..self.ingest_options.clone() };
        match Ingest::open(self.warehouse.clone(), &location, options).await {
            Ok((left, report)) => {
                tracing::info!(%location, ?report, "opened the log of another daemon");
                left.close(true).await?;
                match report.records_unresolved {
                    0 => Ok(()),
                    unresolved => Err(Error::unavailable(format!(
                        "{unresolved} records may be of a table whose metadata cannot be read"
                    ))),
                }
            }
            Err(error) => {
                if error.is(Condition::ObjectInUse) {
                    timer::sleep(LOCKED_WAIT).await;
                }
                Err(error)
            }
        }
    }

    /// Renews the lease; returns once another has it.
    async fn keep_lease(&self, name: &str, epoch: u64) {
        let options = self.options.lease;
        loop {
            timer::sleep(options.renew_each).await;
            match self.cluster.renew_lease(name, self.me, epoch, options.ttl).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::debug!(%error, "the lease of a log was not renewed"),
            }
        }
    }
}
