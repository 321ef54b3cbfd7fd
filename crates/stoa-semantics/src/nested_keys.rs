//! Groups by a constant that holds lists within lists, or within rows.
//!
//! Rows that come ordered are grouped by comparing values, and the engine takes a constant for ordered. It cannot compare
//! such values; keys that are no constants are hashed, which it can do.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::call::unsupported;

/// Refuses what cannot be compared, before it is executed.
#[derive(Debug)]
pub(super) struct ComparableKeys;

impl PhysicalOptimizerRule for ComparableKeys {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.apply(|node| {
            let aggregate = node.downcast_ref::<AggregateExec>();
            match aggregate.map(compares_nested) {
                Some(true) => Err(unsupported(
                    "GROUP BY and DISTINCT of a constant that holds lists of lists are not supported",
                    "leave the constant out of the groups",
                )),
                _ => Ok(TreeNodeRecursion::Continue),
            }
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "stoa_comparable_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn compares_nested(aggregate: &AggregateExec) -> bool {
    let places: Vec<usize> = match aggregate.input_order_mode() {
        InputOrderMode::Linear => return false,
        InputOrderMode::PartiallySorted(places) => places.clone(),
        InputOrderMode::Sorted => (0..aggregate.group_expr().expr().len()).collect(),
    };
    let schema = aggregate.schema();
    places.iter().any(|place| schema.fields().get(*place).is_some_and(|f| nests(f.data_type())))
}

/// Whether lists stand within lists, or within rows.
fn nests(of: &DataType) -> bool {
    match of {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            item.data_type().is_nested()
        }
        DataType::Struct(fields) => fields.iter().any(|field| holds_list(field.data_type())),
        DataType::Map(..) => true,
        _ => false,
    }
}

fn holds_list(of: &DataType) -> bool {
    match of {
        DataType::Struct(fields) => fields.iter().any(|field| holds_list(field.data_type())),
        of => of.is_nested(),
    }
}
