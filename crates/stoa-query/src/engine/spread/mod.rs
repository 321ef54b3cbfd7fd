//! Large plans are computed by all daemons of a cluster.
//!
//! ```text
//! plan, about to run here ─► leaves marked ─► does it travel? ─► who takes part? ─► tasks, exchanges ─► rows
//!                               (leaves)          (codec)           (enlist)         (the library)
//! ```
//!
//! The plan is that of one daemon. The library cuts it where rows are exchanged between plan partitions anyway, so
//! that a stage of several tasks is the same stage with more plan partitions. Each stage has its first task on
//! the daemon of the statement, without a detour over bytes; the others have one each, in the order of their ids.
//!
//! A snapshot is exact as on one daemon: versions of tables are those of the plan, and rows that are in no file yet are
//! read from the memory of the daemon that has the statement. Rights were checked when the plan was made.
//!
//! While it runs, the daemon of the statement asks the others what they have done (`done`), so that its progress, and the
//! limits of its pool, are those of all parts together.
//!
//! **Invariant:** where anything is in doubt, the plan runs here ([`crate::run::spread`]).

mod codec;
mod done;
mod enlist;
mod leaves;
mod parts;
mod plan;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use datafusion::common::config::ConfigOptions;
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{DistributedExec, NetworkBoundaryExt, Worker, WorkerQueryContext};
use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_cluster::DaemonId;
use stoa_distributed::{Channels, Network, build, received, serve, url_of};
use stoa_env::{random, task};
use stoa_error::{Error, Result};
use stoa_member::ServiceKind;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::codec::{LeafCodec, travels};
use self::done::DoneService;
pub(super) use self::enlist::Daemons;
use self::enlist::{Enlist, EnlistService, Enlisted, ReleaseService};
use self::leaves::with_leaves_marked;
use self::parts::{Options, Part, PartId, PartOptions, Parts, headers_of, there};
use self::plan::{InParts, in_parts, is_cut_anywhere, rows_of};
use self::tasks::first_task;
use crate::run::cooperate::make_part_cooperative;
use crate::run::memory;
use crate::run::runner::Runner;
use crate::run::spread::{Ask, DoneByDaemon, Held, Spread, SpreadCounts, SpreadPlan};
use crate::tables::data::Data;

/// Has other daemons compute parts of plans, and computes parts of theirs.
pub(super) struct Spreading {
    daemons: Arc<dyn Daemons>,
    parts: Arc<Parts>,
    worker: Worker,
    /// On which this daemon computes parts of others' statements.
    port: u16,
    /// Bytes from which on a plan is spread.
    bytes_min: u64,
    runner: Weak<Runner>,
    build: Arc<OnceLock<Option<u64>>>,
    counted: Counted,
    /// Ends the port.
    _serving: DropGuard,
}

#[derive(Default)]
struct Counted {
    spread: AtomicU64,
    failed: AtomicU64,
    for_others: AtomicU64,
}

/// With what an engine takes part.
pub(super) struct Taking {
    pub(super) daemons: Arc<dyn Daemons>,
    pub(super) network: Arc<dyn Network>,
    pub(super) listener: TcpListener,
    pub(super) bytes_min: u64,
    /// With what sessions begin.
    pub(super) base: SessionState,
    pub(super) data: Weak<Data>,
}

impl Spreading {
    /// Begins to compute parts of others' statements, on the executors, and to spread this daemon's own.
    ///
    /// # Errors
    /// The port cannot be used.
    pub(super) fn start(runner: &Arc<Runner>, taking: Taking) -> Result<Arc<Self>> {
        let Taking { daemons, network, listener, bytes_min, base, data } = taking;
        let address = listener.local_addr();
        let no_port = |e| Error::unavailable("the port for tasks has no address").with_source(e);
        let port = address.map_err(no_port)?.port();
        let channels = Channels::new(Arc::clone(&network));
        let parts = Arc::new(Parts::new(base, Arc::new(LeafCodec { data }), channels));
        let sessions = Arc::clone(&parts);
        let worker = Worker::from_session_builder(move |query: WorkerQueryContext| {
            let session = sessions.session(query);
            async move { session }
        })
        .with_runtime_env(Arc::clone(parts.base().runtime_env()));
        let ending = CancellationToken::new();
        let until = ending.clone().cancelled_owned();
        let serving = serve(listener, network, worker.clone(), until);
        // Tasks run where they are served. The handle is dropped: serving goes on.
        drop(runner.executors().spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "this daemon takes no part in statements of others");
            }
        }));
        let of_executable = Arc::<OnceLock<Option<u64>>>::default();
        let known = Arc::clone(&of_executable);
        task::spawn_blocking(move || {
            let _ = known.set(build());
        });
        let spreading = Arc::new(Self {
            daemons,
            parts,
            worker,
            port,
            bytes_min,
            runner: Arc::downgrade(runner),
            build: of_executable,
            counted: Counted::default(),
            _serving: ending.drop_guard(),
        });
        runner.set_spread(Arc::clone(&spreading) as _);
        Ok(spreading)
    }

    /// What answers other daemons that ask this one to take part.
    pub(super) fn services(self: &Arc<Self>) -> [(ServiceKind, Arc<dyn stoa_member::Service>); 3] {
        let weak = Arc::downgrade(self);
        [
            (ServiceKind::Enlist, Arc::new(EnlistService(Weak::clone(&weak))) as _),
            (ServiceKind::Release, Arc::new(ReleaseService(Weak::clone(&weak)))),
            (ServiceKind::Done, Arc::new(DoneService(weak))),
        ]
    }

    /// Which build this is; `None` as long as that is not known.
    fn build(&self) -> Option<u64> {
        self.build.get().copied().flatten()
    }

    /// The plan with its leaves marked, and the options of its session; `None` where nobody could help.
    fn checked(&self, ask: Ask<'_>) -> Result<Option<(Arc<dyn ExecutionPlan>, Options)>> {
        let options = difference(self.parts.base().config_options(), ask.state.config_options());
        let marked = with_leaves_marked(ask.plan).map_err(from_engine)?;
        if !is_cut_anywhere(&marked) || self.daemons.others().is_empty() {
            return Ok(None);
        }
        let there = there(self.parts.base(), &options).map_err(from_engine)?;
        travels(&marked, &there, self.parts.codec())?;
        Ok(Some((marked, options)))
    }

    async fn try_spread(&self, ask: Ask<'_>) -> Result<Option<SpreadPlan>> {
        let Some(build) = self.build() else { return Ok(None) };
        let Some((marked, options)) = self.checked(ask)? else { return Ok(None) };
        let part = PartId(u128::from(random::u64()) << 64 | u128::from(random::u64()));
        let is_analyzed = ask.is_analyzed;
        let enlist = Enlist { part, build, bytes: ask.bytes, is_analyzed, options };
        let enlisted = Enlisted::ask(&self.daemons, &enlist).await;
        if enlisted.helpers.is_empty() {
            return Ok(None);
        }
        let own = OwnPart::begin(self, part, ask, enlist.options);
        self.plan(marked, ask, part, HeldParts { enlisted, own }).await
    }

    /// The plan in parts; `None` where it has none that others could compute.
    async fn plan(
        &self,
        marked: Arc<dyn ExecutionPlan>,
        ask: Ask<'_>,
        part: PartId,
        held: HeldParts,
    ) -> Result<Option<SpreadPlan>> {
        let me = self.daemons.me();
        let mut daemons = vec![(me, self.port)];
        daemons.extend(&held.enlisted.helpers);
        let urls = daemons.iter().map(|(daemon, port)| url_of(*daemon, *port));
        let in_parts_of = InParts {
            daemons: daemons.iter().map(|(daemon, _)| *daemon).collect(),
            urls: urls.collect::<Result<_>>()?,
            worker: &self.worker,
            codec: self.parts.codec(),
            channels: self.parts.channels(),
            headers: headers_of(part),
        };
        let (plan, config) = in_parts(marked, ask, in_parts_of).await.map_err(from_engine)?;
        if !plan.is::<DistributedExec>() {
            return Ok(None);
        }
        let rows = rows_of(&plan);
        // The tasks see to themselves.
        let ends = |node: &dyn ExecutionPlan| node.is_network_boundary();
        let plan = make_part_cooperative(plan, ask.stop, ends).map_err(from_engine)?;
        let plan = match held.own.part().filter(|_| ask.is_analyzed) {
            Some(part) => first_task(plan, &part).map_err(from_engine)?,
            None => plan,
        };
        let tasks = memory::configured(ask.tasks, config);
        Ok(Some(SpreadPlan { plan, tasks, rows, held: Arc::new(held) }))
    }
}

impl Spread for Spreading {
    fn is_worth(&self, bytes: u64) -> bool {
        bytes >= self.bytes_min
    }

    fn could(&self, ask: Ask<'_>) -> bool {
        self.build().is_some() && self.checked(ask).is_ok_and(|checked| checked.is_some())
    }

    fn spread<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Option<SpreadPlan>> {
        async move {
            match self.try_spread(ask).await {
                Ok(plan) => plan,
                Err(why) => {
                    tracing::debug!(%why, "a plan runs on one daemon");
                    None
                }
            }
        }
        .boxed()
    }

    fn received(&self, error: DataFusionError) -> DataFusionError {
        received(error)
    }

    fn count_begun(&self) {
        self.counted.spread.fetch_add(1, Ordering::Relaxed);
    }

    fn count_failure(&self) {
        self.counted.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> SpreadCounts {
        let Counted { spread, failed, for_others } = &self.counted;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SpreadCounts { spread: load(spread), failed: load(failed), for_others: load(for_others) }
    }
}

/// What a statement keeps while it runs in parts.
struct HeldParts {
    enlisted: Enlisted,
    own: OwnPart,
}

impl Held for HeldParts {
    fn done(&self, with_plans: bool) -> BoxFuture<'static, Vec<DoneByDaemon>> {
        let (here, there) = (self.own.done(with_plans), self.enlisted.done(with_plans));
        async move {
            let mut all = vec![here];
            all.extend(there.await);
            all
        }
        .boxed()
    }
}

/// This daemon's own part of a statement; it ends when this is dropped.
struct OwnPart {
    parts: Arc<Parts>,
    id: PartId,
    me: DaemonId,
}

impl OwnPart {
    fn begin(spreading: &Spreading, id: PartId, ask: Ask<'_>, options: Options) -> Self {
        let with = PartOptions {
            stop: Arc::clone(ask.stop),
            memory: Arc::clone(ask.tasks.memory_pool()),
            progress: Arc::clone(ask.progress),
            options,
            is_analyzed: ask.is_analyzed,
        };
        // Its slot is the statement's.
        spreading.parts.begin(id, Part::new(with), None);
        Self { parts: Arc::clone(&spreading.parts), id, me: spreading.daemons.me() }
    }

    fn part(&self) -> Option<Arc<Part>> {
        self.parts.find(self.id)
    }

    fn done(&self, with_plans: bool) -> DoneByDaemon {
        let done = self.parts.done(self.id, with_plans).unwrap_or_default();
        DoneByDaemon { daemon: self.me.to_string(), ..done }
    }
}

impl Drop for OwnPart {
    fn drop(&mut self) {
        self.parts.end(self.id);
    }
}

/// The options of a session that new sessions do not have.
fn difference(base: &ConfigOptions, options: &ConfigOptions) -> Options {
    let entries = base.entries().into_iter().map(|entry| (entry.key, entry.value));
    let base: BTreeMap<_, _> = entries.collect();
    let entries = options.entries().into_iter().map(|entry| (entry.key, entry.value));
    entries.filter(|(key, value)| base.get(key) != Some(value)).collect()
}

fn from_engine(error: DataFusionError) -> Error {
    stoa_semantics::errors::from_datafusion(error)
}
