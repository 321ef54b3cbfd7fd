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
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::RuntimeEnv;
use stoa_error::Result;

use crate::error::{from_datafusion, to_datafusion};
use crate::pools::Pool;
use crate::progress::Progress;

/// The part of the engine's memory that one query takes.
#[derive(Clone)]
struct QueryMemory {
    shared: Arc<dyn MemoryPool>,
    pool: Arc<Pool>,
    progress: Arc<Progress>,
}

/// `tasks` for one query, which counts its memory. Functions are not looked up by name any more.
pub(crate) fn counted(
    tasks: &TaskContext,
    pool: &Arc<Pool>,
    progress: &Arc<Progress>,
) -> Arc<TaskContext> {
    let runtime = tasks.runtime_env();
    let memory = QueryMemory::new(&runtime.memory_pool, pool, progress);
    let runtime = RuntimeEnv { memory_pool: Arc::new(memory), ..runtime.as_ref().clone() };
    Arc::new(TaskContext::new(
        tasks.task_id(),
        tasks.session_id(),
        tasks.session_config().clone(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        Arc::new(runtime),
    ))
}

impl QueryMemory {
    fn new(shared: &Arc<dyn MemoryPool>, pool: &Arc<Pool>, progress: &Arc<Progress>) -> Self {
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
        pool: &Arc<Pool>,
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
