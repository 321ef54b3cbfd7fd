//! `FROM hive_transform('command', 'description', (SELECT …))`.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, ObjectNamePart, Query, TableFactor, Value,
};
use stoa_error::Error;
use stoa_script::Spec;
use stoa_semantics::errors::to_datafusion;

use super::node::ScriptNode;

/// The relation's name.
const NAME: &str = "hive_transform";
/// What makes the text of a value, as Hive writes it.
const TEXT_OF: &str = "hive_to_string";

/// Plans programs as relations.
#[derive(Debug)]
pub(super) struct ScriptRelation;

impl RelationPlanner for ScriptRelation {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, args: Some(args), alias, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let is_ours = matches!(
            name.0.as_slice(), [ObjectNamePart::Identifier(name)] if name.value.eq_ignore_ascii_case(NAME)
        );
        if !is_ours {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let [command, spec, rows] = args.args.as_slice() else { return Err(wrong()) };
        let (Some(command), Some(spec)) = (text_of(command), text_of(spec)) else {
            return Err(wrong());
        };
        let subquery = query_of(rows).ok_or_else(wrong)?;
        let spec: Spec = spec.parse().map_err(to_datafusion)?;
        let rows = TableFactor::Derived { lateral: false, subquery, alias: None, sample: None };
        let rows = texts(context.plan(rows)?, &spec, context)?;
        let node = Arc::new(ScriptNode::new(command, spec, rows)?);
        let plan = LogicalPlan::Extension(Extension { node });
        let planned = PlannedRelation::new(plan, alias.clone());
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

/// The rows, with the texts of the values that the program gets: `a0`, `a1`, …; the keys behind them as they are.
fn texts(
    rows: LogicalPlan,
    spec: &Spec,
    context: &dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let text_of = context.context_provider().get_function_meta(TEXT_OF);
    let text_of = text_of.ok_or_else(|| to_datafusion(Error::internal("a function is missing")))?;
    let columns = rows.schema().columns();
    let Some(arguments) = columns.len().checked_sub(spec.keys()).filter(|count| *count > 0) else {
        return Err(wrong());
    };
    let places = columns.into_iter().enumerate();
    let expr = |(at, column): (usize, datafusion::common::Column)| {
        let value = Expr::Column(column);
        match at < arguments {
            true => text_of.call(vec![value]).alias(format!("a{at}")),
            false => value.alias(format!("a{at}")),
        }
    };
    let exprs: Vec<Expr> = places.map(expr).collect();
    LogicalPlanBuilder::from(rows).project(exprs)?.build()
}

fn text_of(operand: &FunctionArg) -> Option<String> {
    match operand {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Value(value))) => {
            match &value.value {
                Value::SingleQuotedString(text) => Some(text.clone()),
                _ => None,
            }
        }
        _ => None,
    }
}

fn query_of(operand: &FunctionArg) -> Option<Box<Query>> {
    match operand {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Subquery(query))) => {
            Some(query.clone())
        }
        _ => None,
    }
}

fn wrong() -> datafusion::error::DataFusionError {
    to_datafusion(
        Error::invalid("hive_transform takes a command, a description of rows, and a query")
            .with_sqlstate("42883")
            .with_hint("write SELECT TRANSFORM (…) USING '…' in HiveQL (SET dialect = hive)"),
    )
}
