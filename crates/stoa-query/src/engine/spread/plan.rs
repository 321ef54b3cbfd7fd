//! A plan is cut into tasks, which the library does: this tells it how leaves are cut, and where tasks go.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session as EngineSession;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as EngineResult;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedExt, DistributedLeafExec,
    RouteTasksEvent, RouteTasksEventResponse, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse,
    SessionStateBuilderExt, Worker, WorkerResolver,
};
use http::HeaderMap;
use stoa_cluster::DaemonId;
use stoa_distributed::Channels;
use stoa_semantics::errors::to_datafusion;
use url::Url;

use super::codec::LeafCodec;
use super::leaves::{HereExec, is_cut};
use crate::run::spread::Ask;
use crate::tables::scan::OrcScanExec;

/// Among whom a plan is cut.
pub(super) struct InParts<'a> {
    /// This daemon, then the others.
    pub(super) daemons: Arc<[DaemonId]>,
    /// Their workers.
    pub(super) urls: Arc<[Url]>,
    /// This daemon's worker.
    pub(super) worker: &'a Worker,
    pub(super) codec: &'a Arc<LeafCodec>,
    pub(super) channels: &'a Channels,
    pub(super) headers: HeaderMap,
}

/// The plan with exchanges between daemons, and the configuration with which it runs. The plan itself if there is
/// nothing to exchange.
///
/// # Errors
/// The library's, and those of operators that get other inputs.
pub(super) async fn in_parts(
    plan: Arc<dyn ExecutionPlan>,
    ask: Ask<'_>,
    parts: InParts<'_>,
) -> EngineResult<(Arc<dyn ExecutionPlan>, SessionConfig)> {
    let mut config = ask.tasks.session_config().clone();
    configure(&mut config, &parts)?;
    let state = SessionStateBuilder::new_from_existing(ask.state.clone())
        .with_config(config)
        .with_query_planner(Arc::new(Ready(plan)))
        .with_distributed_planner()
        .build();
    let nothing = EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) };
    let nothing = LogicalPlan::EmptyRelation(nothing);
    let plan = state.query_planner().create_physical_plan(&nothing, &state).await?;
    Ok((plan, state.config().clone()))
}

fn configure(config: &mut SessionConfig, parts: &InParts<'_>) -> EngineResult<()> {
    let (daemons, urls) = (Arc::clone(&parts.daemons), Arc::clone(&parts.urls));
    config.set_distributed_worker_resolver(Workers(Arc::clone(&urls)));
    config.set_distributed_channel_resolver(parts.channels.clone());
    config.set_distributed_user_codec_arc(Arc::clone(parts.codec) as _);
    config.set_distributed_passthrough_headers(parts.headers.clone())?;
    if let Some(own) = urls.first() {
        let local = parts.worker.to_local_worker_context(own.clone());
        config.set_distributed_local_worker_context(local);
    }
    // Of files and of rows in none yet, together: their order of daemons is the same anyway.
    config.set_distributed_children_isolator_unions(false)?;
    // Tasks have more operators there than here, and the library counts on their places.
    config.set_distributed_metrics_collection(false)?;
    let count = daemons.len();
    config.set_distributed_desired_task_count_handler(move |event: DesiredTaskCountEvent<'_>| {
        desired(event.plan, count).map(Ok)
    });
    config.set_distributed_scale_up_leaf_node_handler(move |event: ScaleUpLeafNodeEvent<'_>| {
        let daemons = daemons.get(..event.task_count)?;
        cut_leaf(event.plan, daemons).transpose()
    });
    config.set_distributed_route_tasks_handler(move |event: RouteTasksEvent<'_>| {
        let urls = urls.get(..event.task_count)?;
        Some(Ok(RouteTasksEventResponse::new(urls.to_vec())))
    });
    Ok(())
}

/// How many tasks there are to be because of a leaf; one for all leaves that are not named here.
fn desired(leaf: &Arc<dyn ExecutionPlan>, daemons: usize) -> Option<DesiredTaskCountEventResponse> {
    if !leaf.children().is_empty() {
        return None;
    }
    if is_cut(leaf) {
        return Some(DesiredTaskCountEventResponse::desired(daemons));
    }
    let here = leaf.downcast_ref::<HereExec>()?;
    here.is_shared().then(|| DesiredTaskCountEventResponse::desired(1))
}

/// A leaf of a stage that several daemons compute, for each of them.
fn cut_leaf(
    leaf: &Arc<dyn ExecutionPlan>,
    daemons: &[DaemonId],
) -> EngineResult<Option<ScaleUpLeafNodeEventResponse>> {
    if daemons.len() < 2 {
        return Ok(None);
    }
    let of_each: Vec<Arc<dyn ExecutionPlan>> =
        if let Some(scan) = leaf.downcast_ref::<OrcScanExec>() {
            let shares = scan.shares(daemons).map_err(to_datafusion)?;
            shares.into_iter().map(|share| Arc::new(share) as _).collect()
        } else if let Some(here) = leaf.downcast_ref::<HereExec>() {
            let nothing = || Arc::new(HereExec::nothing(here.schema(), here.partitions())) as _;
            let others = (1..daemons.len()).map(|_| nothing());
            std::iter::once(Arc::clone(leaf)).chain(others).collect()
        } else {
            return Ok(None);
        };
    let leaf = DistributedLeafExec::try_new(Arc::clone(leaf), of_each)?;
    Ok(Some(ScaleUpLeafNodeEventResponse::new(Arc::new(leaf))))
}

/// Whether any leaf of a plan is cut.
pub(super) fn is_cut_anywhere(plan: &Arc<dyn ExecutionPlan>) -> bool {
    is_cut(plan) || plan.children().into_iter().any(is_cut_anywhere)
}

/// Rows of files that the daemons read of a plan in parts, all together.
pub(super) fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let mut rows = 0;
    let rows_of_leaf = |leaf: &Arc<dyn ExecutionPlan>| {
        leaf.downcast_ref::<OrcScanExec>().map_or(0, OrcScanExec::rows)
    };
    let walked = plan.apply(|node| {
        rows += match node.downcast_ref::<DistributedLeafExec>() {
            Some(cut) => cut.variants().iter().map(rows_of_leaf).sum(),
            None => rows_of_leaf(node),
        };
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_or(0, |_| rows)
}

/// The workers of a statement.
struct Workers(Arc<[Url]>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> EngineResult<Vec<Url>> {
        Ok(self.0.to_vec())
    }
}

/// A plan that is made already.
#[derive(Debug)]
struct Ready(Arc<dyn ExecutionPlan>);

#[async_trait]
impl QueryPlanner for Ready {
    async fn create_physical_plan(
        &self,
        _logical_plan: &LogicalPlan,
        _session: &dyn EngineSession,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.0))
    }
}
