//! What a query takes of the engine's memory.
//!
//! In: an engine's memory pool, a query. Out: a task context whose operators draw on the same pool, and
//! whose part of it is counted for the query and for its pool of queries; the same for what is no operator: a report
//! on the short path, the text of a statement.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::error::Result as EngineResult;
use datafusion::execution::TaskContext;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use stoa_error::Result;

use crate::run::progress::Progress;
use crate::run::query_pool::QueryPool;
use stoa_semantics::errors::{from_datafusion, to_datafusion};

/// The part of the engine's memory that one query takes.
#[derive(Clone)]
struct QueryMemory {
    shared: Arc<dyn MemoryPool>,
    pool: Arc<QueryPool>,
    progress: Arc<Progress>,
}

/// What plans of a session run with. Functions are not looked up by name any more, and their lists are long.
pub(crate) fn tasks_of(state: &SessionState) -> Arc<TaskContext> {
    let id = state.session_id().to_owned();
    Arc::new(without_functions(None, id, state.config().clone(), Arc::clone(state.runtime_env())))
}

/// `tasks` for one query, which counts its memory.
pub(crate) fn counted(
    tasks: &TaskContext,
    pool: &Arc<QueryPool>,
    progress: &Arc<Progress>,
) -> Arc<TaskContext> {
    let runtime = tasks.runtime_env();
    drawing_on(tasks, &of_query(&runtime.memory_pool, pool, progress))
}

/// The part of `shared` that a query takes, counted for it and for its pool.
pub(crate) fn of_query(
    shared: &Arc<dyn MemoryPool>,
    pool: &Arc<QueryPool>,
    progress: &Arc<Progress>,
) -> Arc<dyn MemoryPool> {
    Arc::new(QueryMemory::new(shared, pool, progress))
}

/// `tasks` that take their memory from `memory`.
pub(crate) fn drawing_on(tasks: &TaskContext, memory: &Arc<dyn MemoryPool>) -> Arc<TaskContext> {
    let runtime = tasks.runtime_env();
    let runtime = RuntimeEnv { memory_pool: Arc::clone(memory), ..runtime.as_ref().clone() };
    let config = tasks.session_config().clone();
    Arc::new(without_functions(tasks.task_id(), tasks.session_id(), config, Arc::new(runtime)))
}

/// `tasks` with another configuration.
pub(crate) fn configured(tasks: &TaskContext, config: SessionConfig) -> Arc<TaskContext> {
    let runtime = tasks.runtime_env();
    Arc::new(without_functions(tasks.task_id(), tasks.session_id(), config, runtime))
}

fn without_functions(
    task: Option<String>,
    session: String,
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
) -> TaskContext {
    let (scalar, nested) = (HashMap::new(), HashMap::new());
    let (aggregate, window) = (HashMap::new(), HashMap::new());
    TaskContext::new(task, session, config, scalar, nested, aggregate, window, runtime)
}

impl QueryMemory {
    fn new(shared: &Arc<dyn MemoryPool>, pool: &Arc<QueryPool>, progress: &Arc<Progress>) -> Self {
        Self { shared: Arc::clone(shared), pool: Arc::clone(pool), progress: Arc::clone(progress) }
    }
}

/// Texts from which on what they take is counted, bytes.
const LONG_TEXT_BYTES: usize = 1 << 20;

/// What a value takes that is parsed and planned, about, bytes.
const PARSED_VALUE_BYTES: usize = 512;

/// Memory for what a long text of statements becomes when it is parsed and planned; `None` for a short one.
///
/// # Errors
/// There is too little (53200).
pub(crate) fn of_text(
    shared: &Arc<dyn MemoryPool>,
    text: &str,
) -> Result<Option<Arc<MemoryReservation>>> {
    if text.len() < LONG_TEXT_BYTES {
        return Ok(None);
    }
    // Nearly all of a long text is lists of values.
    let values = text.bytes().filter(|byte| *byte == b',').count();
    let bytes = values.saturating_mul(PARSED_VALUE_BYTES).saturating_add(2 * text.len());
    let memory = MemoryConsumer::new("text of a statement").register(shared);
    memory.try_grow(bytes).map_err(|error| {
        from_datafusion(error).with_hint(
            "load many rows with COPY, or INSERT fewer at a time; memory_limit bounds all of them",
        )
    })?;
    Ok(Some(Arc::new(memory)))
}

/// What a report takes of the engine's memory, given back when this is dropped. One that takes nothing
/// asks nobody.
pub(crate) struct ReportMemory {
    source: Source,
    reservation: OnceLock<MemoryReservation>,
}

/// Where the memory of a report comes from.
enum Source {
    /// A statement on the short path.
    Statement(QueryMemory),
    /// A scan, whose pool counts for its query already.
    Scan(Arc<dyn MemoryPool>),
}

impl ReportMemory {
    /// For a statement on the short path.
    pub(crate) fn of_statement(
        shared: &Arc<dyn MemoryPool>,
        pool: &Arc<QueryPool>,
        progress: &Arc<Progress>,
    ) -> Self {
        let source = Source::Statement(QueryMemory::new(shared, pool, progress));
        Self { source, reservation: OnceLock::new() }
    }

    /// For a scan that looks for rows in the memory of reports.
    pub(crate) fn of_scan(tasks: &TaskContext) -> Self {
        let source = Source::Scan(Arc::clone(tasks.memory_pool()));
        Self { source, reservation: OnceLock::new() }
    }
}

impl stoa_report::Memory for ReportMemory {
    fn resize(&self, bytes: usize) -> bool {
        if bytes == 0 && self.reservation.get().is_none() {
            return true;
        }
        let reservation = self.reservation.get_or_init(|| {
            let memory: Arc<dyn MemoryPool> = match &self.source {
                Source::Statement(memory) => Arc::new(memory.clone()),
                Source::Scan(memory) => Arc::clone(memory),
            };
            MemoryConsumer::new("report").register(&memory)
        });
        reservation.try_resize(bytes).is_ok()
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        self.shared.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.shared.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.shared.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.take_anyway(additional);
        self.progress.take_memory(additional);
        self.shared.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.shared.shrink(reservation, shrink);
        self.progress.give_memory_back(shrink);
        self.pool.give_back(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> EngineResult<()> {
        // Whoever can spill does so after this error as after the shared pool's.
        self.pool.take(additional).map_err(|error| {
            let text = to_datafusion(error).to_string();
            datafusion::error::DataFusionError::ResourcesExhausted(text)
        })?;
        let grown = self.shared.try_grow(reservation, additional);
        match &grown {
            Ok(()) => self.progress.take_memory(additional),
            Err(_) => self.pool.give_back(additional),
        }
        grown
    }

    fn reserved(&self) -> usize {
        self.shared.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.shared.memory_limit()
    }
}

impl fmt::Debug for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryMemory").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use stoa_report::Memory as _;

    use super::*;
    use crate::run::pool::PoolOptions;
    use crate::run::pools::{Pools, WorkloadRule};

    fn shared(bytes: usize) -> Arc<dyn MemoryPool> {
        Arc::new(GreedyMemoryPool::new(bytes))
    }

    /// A pool of queries with a bound of its own.
    fn pool(bytes: usize) -> Arc<QueryPool> {
        let name = "small".to_owned();
        let options = PoolOptions {
            name: name.clone(),
            memory_bytes_max: Some(bytes),
            ..PoolOptions::default()
        };
        let rule = WorkloadRule { user: None, application: None, protocol: None, pool: name };
        let pools = Pools::new(&[options], &[rule], 4, 10, 1000).unwrap();
        QueryPool::new(pools.find("ann", "psql", "http"))
    }

    fn used(progress: &Progress) -> (u64, u64) {
        let load = |bytes: &std::sync::atomic::AtomicU64| bytes.load(Ordering::Relaxed);
        (load(&progress.memory_bytes), load(&progress.memory_peak_bytes))
    }

    #[test]
    fn a_query_is_bounded_by_its_pool_and_by_the_engine() {
        let (shared, small, large) = (shared(1000), pool(300), pool(10_000));
        let (one, other) = (Arc::new(Progress::default()), Arc::new(Progress::default()));
        let register = |pool: &Arc<QueryPool>, progress: &Arc<Progress>| {
            let memory: Arc<dyn MemoryPool> = Arc::new(QueryMemory::new(&shared, pool, progress));
            MemoryConsumer::new("sort").register(&memory)
        };
        let (first, second) = (register(&small, &one), register(&large, &other));
        first.try_grow(200).unwrap();
        let refused = from_datafusion(first.try_grow(200).unwrap_err());
        assert_eq!(refused.sqlstate(), "53200");
        assert_eq!((used(&one), shared.reserved()), ((200, 200), 200));

        // What the engine refuses is not counted for the pool, either.
        assert!(second.try_grow(900).is_err());
        assert_eq!((used(&other), shared.reserved()), ((0, 0), 200));
        second.try_grow(800).unwrap();
        assert!(first.try_grow(1).is_err());
        drop(second);
        first.try_grow(100).unwrap();
        drop(first);
        assert_eq!((used(&one), used(&other), shared.reserved()), ((0, 300), (0, 800), 0));
    }

    #[test]
    fn a_long_text_takes_memory_while_it_is_planned() {
        let shared = shared(64 << 20);
        assert!(of_text(&shared, "SELECT 1").unwrap().is_none());
        let of_values = |values: usize| {
            let mut text = "1,".repeat(values);
            text.push_str(&" ".repeat(LONG_TEXT_BYTES));
            text
        };
        let memory = of_text(&shared, &of_values(1000)).unwrap().unwrap();
        assert!(shared.reserved() >= 1000 * PARSED_VALUE_BYTES, "{}", shared.reserved());
        drop(memory);
        assert_eq!(shared.reserved(), 0);
        let error = of_text(&shared, &of_values(200_000)).unwrap_err();
        assert_eq!(error.sqlstate(), "53200");
        assert!(error.hint().is_some_and(|hint| hint.contains("COPY")));
    }

    #[test]
    fn a_report_gives_back_what_it_took() {
        let shared = shared(1000);
        let (pool, progress) = (pool(500), Arc::new(Progress::default()));
        let memory = ReportMemory::of_statement(&shared, &pool, &progress);
        assert!(memory.resize(0) && memory.reservation.get().is_none());
        assert!(memory.resize(400));
        assert!(!memory.resize(501));
        assert_eq!((used(&progress), shared.reserved()), ((400, 400), 400));
        assert!(memory.resize(100));
        assert_eq!((used(&progress), shared.reserved()), ((100, 400), 100));
        drop(memory);
        assert_eq!((used(&progress), shared.reserved()), ((0, 400), 0));
    }
}
