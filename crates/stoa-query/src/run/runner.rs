//! What all statements of an engine run with: threads, slots, memory, and the registry of those that run.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use stoa_env::executors::Executors;
use stoa_error::{Error, Result};
use stoa_sql::fingerprint::Fingerprint;

use crate::run::execution::{self, Work};
use crate::run::kept::KeptMemory;
use crate::run::planners::Planners;
use crate::run::pools::Pools;
use crate::run::registry::{Asker, QueryGuard, QueryRegistry};
use crate::run::spread::Spread;
use crate::run::stop::Stops;

/// Work that was asked to stop and is there so much later does not answer.
const OVERDUE_AFTER: Duration = Duration::from_secs(1);

/// The threads that plan and compute, and what is known of their work.
pub(crate) struct Runner {
    pub(super) executors: Executors,
    pub(super) planners: Planners,
    pub(crate) stops: Arc<Stops>,
    pools: Pools,
    queries: QueryRegistry,
    memory: Arc<dyn MemoryPool>,
    kept: Arc<KeptMemory>,
    /// What has other daemons compute parts of large plans, if any.
    spread: OnceLock<Arc<dyn Spread>>,
}

impl Runner {
    /// Starts so many executors, and the threads that plan for them; queries draw on `memory`, what clients keep on
    /// `kept`.
    ///
    /// # Errors
    /// The operating system refused them.
    pub(crate) fn start(
        threads: usize,
        pools: Pools,
        memory: Arc<dyn MemoryPool>,
        kept: KeptMemory,
    ) -> Result<Self> {
        let executors = Executors::start(threads)
            .map_err(|e| Error::unavailable("cannot start executors").with_source(e))?;
        let stops = Arc::<Stops>::default();
        let planners = Planners::start(threads, Arc::clone(&stops))
            .map_err(|e| Error::unavailable("cannot start planners").with_source(e))?;
        let (queries, kept) = (QueryRegistry::default(), Arc::new(kept));
        let spread = OnceLock::new();
        Ok(Self { executors, planners, stops, pools, queries, memory, kept, spread })
    }

    /// The threads that compute.
    pub(crate) fn executors(&self) -> &Executors {
        &self.executors
    }

    /// The threads that parse and plan.
    pub(crate) fn planners(&self) -> &Planners {
        &self.planners
    }

    /// Whose slots, queue and memory statements share.
    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// What runs and ran.
    pub(crate) fn queries(&self) -> &QueryRegistry {
        &self.queries
    }

    /// The memory that all sessions share.
    pub(crate) fn memory(&self) -> &Arc<dyn MemoryPool> {
        &self.memory
    }

    /// What clients keep from call to call.
    pub(crate) fn kept(&self) -> &Arc<KeptMemory> {
        &self.kept
    }

    /// From now on, other daemons compute parts of large plans.
    pub(crate) fn set_spread(&self, spread: Arc<dyn Spread>) {
        let _ = self.spread.set(spread);
    }

    /// What has other daemons compute parts of large plans, if any.
    pub(crate) fn spread(&self) -> Option<&Arc<dyn Spread>> {
        self.spread.get()
    }

    /// Registers a statement of no session.
    pub(crate) fn start_query(&self, text: &str, user: &str, protocol: &'static str) -> QueryGuard {
        let fingerprint = Fingerprint::shared(text);
        let pool = self.pools.find(user, "", protocol);
        let asker = Asker { user, protocol, backend_id: 0 };
        self.queries.start(text, fingerprint.as_ref(), asker, pool)
    }

    /// Runs a plan; returns with the answer, or when it is on its way.
    ///
    /// # Errors
    /// Those of planning, and of admission.
    pub(crate) async fn run(&self, work: Work) -> Result<SendableRecordBatchStream> {
        execution::start(self, work).await
    }

    /// Pieces of work that nobody waits for any more, of which a part still computes a second later.
    pub(crate) fn overdue(&self) -> usize {
        self.stops.overdue(OVERDUE_AFTER)
    }

    /// Waits until no statement runs, waits or is planned; whether that was so within `limit`.
    pub(crate) async fn wait_until_idle(&self, limit: Duration) -> bool {
        let idle = async {
            while !self.queries.is_idle() {
                stoa_env::timer::sleep(Duration::from_millis(5)).await;
            }
        };
        stoa_env::timer::timeout(limit, idle).await.is_ok()
    }
}
