//! Plans as bytes, for daemons of the same build.
//!
//! The library writes operators and expressions; here are the leaves. **Invariant:** a plan is sent only if it comes
//! back from its bytes as it was ([`travels`]): the same operators, options and types, and functions that are those of
//! every daemon and depend on their arguments only. What a session knows, or the library does not write, stays here.

use std::sync::{Arc, Weak};

use arrow::datatypes::Schema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as EngineResult;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Volatility;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion_distributed::{DistributedCodec, DistributedExt};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use datafusion_proto::physical_plan::{
    DeduplicatingProtoConverter, PhysicalExtensionCodec, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf;
use prost::Message;
use stoa_error::{Error, Result};
use stoa_semantics::errors::{from_datafusion, to_datafusion};

use super::leaves::HereExec;
use crate::tables::data::Data;
use crate::tables::scan::{OrcScanExec, SentScanExec};

/// What the bytes of a leaf begin with.
const SCAN: u8 = 0;
const NOTHING: u8 = 1;

/// Operators that may be computed in parts; the library has rules for each.
const OPERATORS: [&str; 19] = [
    "AggregateExec",
    "BoundedWindowAggExec",
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "CrossJoinExec",
    "FilterExec",
    "GlobalLimitExec",
    "HashJoinExec",
    "InterleaveExec",
    "LocalLimitExec",
    "NestedLoopJoinExec",
    "ProjectionExec",
    "RepartitionExec",
    "SortExec",
    "SortMergeJoinExec",
    "SortPreservingMergeExec",
    "UnionExec",
    "WindowAggExec",
];

/// Leaves as bytes, and leaves of other daemons.
#[derive(Debug)]
pub(super) struct LeafCodec {
    pub(super) data: Weak<Data>,
}

impl LeafCodec {
    fn decode(&self, bytes: &[u8]) -> Result<Arc<dyn ExecutionPlan>> {
        let unreadable = || Error::invalid("a part of a plan cannot be read");
        match bytes.split_first() {
            Some((&SCAN, scan)) => {
                let data = self.data.upgrade();
                let data = data.ok_or_else(|| Error::unavailable("the server is shutting down"))?;
                Ok(Arc::new(SentScanExec::decode(data, scan)?))
            }
            Some((&NOTHING, leaf)) => {
                let leaf = LeafMessage::decode(leaf).map_err(|e| unreadable().with_source(e))?;
                let schema: Schema =
                    (&leaf.schema.ok_or_else(unreadable)?).try_into().map_err(|_| unreadable())?;
                let partitions = leaf.partitions as usize;
                Ok(Arc::new(HereExec::nothing(Arc::new(schema), partitions)))
            }
            _ => Err(unreadable()),
        }
    }
}

/// A leaf without rows.
#[derive(Clone, PartialEq, Message)]
struct LeafMessage {
    #[prost(message, optional, tag = "1")]
    schema: Option<protobuf::Schema>,
    #[prost(uint32, tag = "2")]
    partitions: u32,
}

impl PhysicalExtensionCodec for LeafCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        _inputs: &[Arc<dyn ExecutionPlan>],
        _ctx: &TaskContext,
        _proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        self.decode(buf).map_err(to_datafusion)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        _proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> EngineResult<()> {
        if let Some(scan) = node.downcast_ref::<OrcScanExec>()
            && let Some(bytes) = scan.encode()
        {
            buf.push(SCAN);
            buf.extend(bytes);
            return Ok(());
        }
        if let Some(leaf) = node.downcast_ref::<HereExec>() {
            let schema = Some(leaf.schema().as_ref().try_into()?);
            let partitions = u32::try_from(leaf.partitions()).unwrap_or(u32::MAX);
            buf.push(NOTHING);
            buf.extend(LeafMessage { schema, partitions }.encode_to_vec());
            return Ok(());
        }
        let what = format!("{} is not sent to other daemons", node.name());
        Err(to_datafusion(Error::unsupported(what)))
    }
}

/// Whether other daemons compute a plan as this one does.
///
/// # Errors
/// What of the plan other daemons would not compute as this one does; `there` is a session of theirs.
pub(super) fn travels(
    plan: &Arc<dyn ExecutionPlan>,
    there: &SessionState,
    codec: &Arc<LeafCodec>,
) -> Result<()> {
    plan.apply(|node| {
        check_operator(node)?;
        check_functions(node, there)?;
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    let mut config = there.config().clone();
    config.set_distributed_user_codec_arc(Arc::clone(codec) as _);
    let codec = DistributedCodec::new_combined_with_user(&config);
    let converter = DeduplicatingProtoConverter::default();
    let bytes = physical_plan_to_bytes_with_proto_converter(Arc::clone(plan), &codec, &converter);
    let bytes = bytes.map_err(from_datafusion)?;
    let converter = DeduplicatingProtoConverter::default();
    let tasks = there.task_ctx();
    let back = physical_plan_from_bytes_with_proto_converter(&bytes, &tasks, &codec, &converter);
    let back = back.map_err(from_datafusion)?;
    match format!("{plan:?}") == format!("{back:?}") {
        true => Ok(()),
        false => Err(stays("the plan is not the same when it comes back from its bytes")),
    }
}

fn check_operator(node: &Arc<dyn ExecutionPlan>) -> EngineResult<()> {
    // Some say more in their name: `SortExec(TopK)`.
    let name = node.name().split('(').next().unwrap_or_default();
    let is_known = node.children().is_empty() || OPERATORS.contains(&name);
    match is_known {
        true => Ok(()),
        false => Err(to_datafusion(stays(&format!("{name} is computed by one daemon")))),
    }
}

fn check_functions(node: &Arc<dyn ExecutionPlan>, there: &SessionState) -> EngineResult<()> {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        for call in aggregate.aggr_expr() {
            let known = there.aggregate_functions().get(call.fun().name());
            if known.is_none_or(|known| known.as_ref() != call.fun()) {
                return Err(to_datafusion(own_function(call.fun().name())));
            }
        }
    }
    node.apply_expressions(&mut |expr: &Arc<dyn PhysicalExpr>| {
        expr.apply(|expr| {
            let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else {
                return Ok(TreeNodeRecursion::Continue);
            };
            let known = there.scalar_functions().get(call.fun().name());
            let is_immutable = call.fun().signature().volatility == Volatility::Immutable;
            match is_immutable && known.is_some_and(|known| known.as_ref() == call.fun()) {
                true => Ok(TreeNodeRecursion::Continue),
                false => Err(to_datafusion(own_function(call.fun().name()))),
            }
        })
    })?;
    Ok(())
}

fn own_function(name: &str) -> Error {
    stays(&format!("{name}() is a function of this session, or depends on more than its arguments"))
}

fn stays(why: &str) -> Error {
    Error::unsupported(why)
}
