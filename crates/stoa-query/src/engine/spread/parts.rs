//! The parts of statements that this daemon computes, its own and those of others.
//!
//! A part begins when its statement's daemon asks for it, by a number that nobody can guess, and ends when that
//! daemon says so, or is no member any more. The number goes along with every task. **Invariant:** a task without a
//! part is refused; one whose part has ended stops.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedExt, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse, WorkerQueryContext,
};
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use stoa_distributed::Channels;
use stoa_error::{Error, Result};
use stoa_semantics::errors::to_datafusion;
use stoa_semantics::with_functions_of_plans;

use super::codec::LeafCodec;
use super::tasks::prepared;
use crate::run::admission::Slot;
use crate::run::analyzed::with_figures;
use crate::run::progress::Progress;
use crate::run::spread::DoneByDaemon;
use crate::run::stop::{Stop, Waiting};

/// The header that names the part of a task.
const HEADER: &str = "x-stoa-part";

/// Options of a session that differ from those with which sessions begin.
pub(super) type Options = Vec<(String, Option<String>)>;

/// Names a part of a statement; nobody can guess it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PartId(pub(super) u128);

/// A part of a statement.
pub(super) struct Part {
    stop: Arc<Stop>,
    memory: Arc<dyn MemoryPool>,
    options: Options,
    progress: Arc<Progress>,
    /// The plans of its tasks, where they are wanted: they may keep whole tables in memory.
    plans: Option<Mutex<Vec<Arc<dyn ExecutionPlan>>>>,
}

/// With what a part runs.
pub(super) struct PartOptions {
    /// It runs until this is asked for.
    pub(super) stop: Arc<Stop>,
    /// From where it takes memory.
    pub(super) memory: Arc<dyn MemoryPool>,
    /// What it counts.
    pub(super) progress: Arc<Progress>,
    pub(super) options: Options,
    /// Whether the plans of its tasks are wanted in the end.
    pub(super) is_analyzed: bool,
}

impl Part {
    pub(super) fn new(with: PartOptions) -> Self {
        let PartOptions { stop, memory, progress, options, is_analyzed } = with;
        let plans = is_analyzed.then(Mutex::default);
        Self { stop, memory, options, progress, plans }
    }

    /// What it counts.
    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Notes the plan of a task that begins.
    pub(super) fn note_plan(&self, plan: &Arc<dyn ExecutionPlan>) {
        let Some(plans) = &self.plans else { return };
        let mut plans = plans.lock();
        if !plans.iter().any(|known| Arc::ptr_eq(known, plan)) {
            plans.push(Arc::clone(plan));
        }
    }

    /// What this daemon has done of it.
    pub(super) fn done(&self, with_plans: bool) -> DoneByDaemon {
        let plans = self.plans.iter().filter(|_| with_plans).flat_map(|plans| plans.lock().clone());
        let plans = plans.map(|plan| with_figures(plan.as_ref())).collect();
        DoneByDaemon { plans, ..self.progress.done_here() }
    }

    /// Whether it is to stop.
    pub(super) fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// From where it takes memory.
    pub(super) fn memory(&self) -> &Arc<dyn MemoryPool> {
        &self.memory
    }
}

/// The parts that there are, and with what their tasks run.
pub(super) struct Parts {
    all: Mutex<HashMap<PartId, Begun>>,
    /// With what sessions begin, and the functions of all plans.
    base: SessionState,
    codec: Arc<LeafCodec>,
    channels: Channels,
}

/// A part that has not ended. The library may hold on to its tasks for longer, so what others wait for is here.
struct Begun {
    part: Arc<Part>,
    _taken: Option<Taken>,
}

/// What a part of another daemon's statement takes until it ends.
pub(super) struct Taken {
    /// Whoever waits for the part: it is asked to stop when this is dropped.
    pub(super) _waiting: Waiting,
    pub(super) _slot: Slot,
}

impl Parts {
    pub(super) fn new(base: SessionState, codec: Arc<LeafCodec>, channels: Channels) -> Self {
        let base = with_functions_of_plans(base);
        Self { all: Mutex::default(), base, codec, channels }
    }

    /// With what sessions begin.
    pub(super) fn base(&self) -> &SessionState {
        &self.base
    }

    /// Leaves as bytes.
    pub(super) fn codec(&self) -> &Arc<LeafCodec> {
        &self.codec
    }

    /// The way to other daemons.
    pub(super) fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Begins a part, which runs until [`Self::end`]; what it has `taken` is given back then.
    pub(super) fn begin(&self, id: PartId, part: Part, taken: Option<Taken>) {
        self.all.lock().insert(id, Begun { part: Arc::new(part), _taken: taken });
    }

    /// Ends a part, if it has not ended.
    pub(super) fn end(&self, id: PartId) {
        let ended = self.all.lock().remove(&id);
        drop(ended);
    }

    /// What this daemon has done of a part; `None` if there is no such part.
    pub(super) fn done(&self, id: PartId, with_plans: bool) -> Option<DoneByDaemon> {
        self.find(id).map(|part| part.done(with_plans))
    }

    /// A part that has not ended.
    pub(super) fn find(&self, id: PartId) -> Option<Arc<Part>> {
        self.all.lock().get(&id).map(|begun| Arc::clone(&begun.part))
    }

    /// Whether a part has not ended.
    pub(super) fn is_there(&self, id: PartId) -> bool {
        self.all.lock().contains_key(&id)
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.all.lock().len()
    }

    /// The session in which a task runs.
    ///
    /// # Errors
    /// It is of no part that there is.
    pub(super) fn session(&self, mut query: WorkerQueryContext) -> EngineResult<SessionState> {
        let part = self.part_of(&query.headers).map_err(to_datafusion)?;
        let mut config = query.builder.config().take().unwrap_or_default();
        let state = there(&self.base, &part.options)?;
        let extensions = config.options().extensions.clone();
        *config.options_mut() = state.config_options().as_ref().clone();
        config.options_mut().extensions = extensions;
        config.set_distributed_user_codec_arc(Arc::clone(&self.codec) as _);
        config.set_distributed_channel_resolver(self.channels.clone());
        config.set_distributed_passthrough_headers(passed_on(&query.headers))?;
        config.set_distributed_worker_plan_rewrite_handler(
            move |event: WorkerPlanRewriteEvent<'_>| {
                prepared(event.plan, &part).map(WorkerPlanRewriteEventResponse::new)
            },
        );
        let mut state = state;
        *state.config_mut() = config;
        Ok(state)
    }

    fn part_of(&self, headers: &HeaderMap) -> Result<Arc<Part>> {
        let id = headers.get(HEADER).and_then(|value| value.to_str().ok());
        let id = id.and_then(|id| u128::from_str_radix(id, 16).ok()).map(PartId);
        let all = self.all.lock();
        let begun = id.and_then(|id| all.get(&id));
        begun.map(|begun| Arc::clone(&begun.part)).ok_or_else(|| {
            Error::unavailable("the part of a statement to which a task belongs has ended")
                .with_sqlstate("57P03")
        })
    }
}

/// The headers of the tasks of a part.
pub(super) fn headers_of(id: PartId) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // Digits are always a value.
    if let Ok(value) = HeaderValue::from_str(&format!("{:x}", id.0)) {
        headers.insert(HEADER, value);
    }
    headers
}

fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut passed_on = HeaderMap::new();
    if let Some(value) = headers.get(HEADER) {
        passed_on.insert(HEADER, value.clone());
    }
    passed_on
}

/// A session of another daemon with these options.
///
/// # Errors
/// An option is unknown there.
pub(super) fn there(
    base: &SessionState,
    options: &Options,
) -> EngineResult<SessionState, DataFusionError> {
    let mut state = base.clone();
    for (key, value) in options {
        let value = value.as_deref().unwrap_or_default();
        state.config_mut().options_mut().set(key, value)?;
    }
    Ok(state)
}
