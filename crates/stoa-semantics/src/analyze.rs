//! The rule: each expression of a plan, bottom-up, with the types of what it reads.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::expr::{BinaryExpr, Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, Subquery, WindowFunctionDefinition};
use datafusion::optimizer::AnalyzerRule;

use crate::scope::Scope;
use crate::{
    arithmetic, bounded, casts, compare, concatenation, conditions, filtered, functions, hive,
    refused, relational, unify, values, windows,
};

/// Gives operators, casts and CASE the meaning that they have in PostgreSQL.
#[derive(Debug)]
pub(super) struct PostgresMeaning {
    /// What large results draw on.
    memory: Arc<dyn MemoryPool>,
}

impl PostgresMeaning {
    pub(super) fn new(memory: &Arc<dyn MemoryPool>) -> Self {
        Self { memory: Arc::clone(memory) }
    }
}

impl AnalyzerRule for PostgresMeaning {
    fn name(&self) -> &str {
        "postgres_meaning"
    }

    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
        analyze_plan(plan, &[], options, &self.memory)
    }
}

/// `outer`: what the queries around this one read, the nearest last.
fn analyze_plan(
    plan: LogicalPlan,
    outer: &[DFSchemaRef],
    options: &ConfigOptions,
    memory: &Arc<dyn MemoryPool>,
) -> Result<LogicalPlan> {
    Ok(plan.transform_up(|node| analyze_node(node, outer, options, memory))?.data)
}

fn analyze_node(
    node: LogicalPlan,
    outer: &[DFSchemaRef],
    options: &ConfigOptions,
    memory: &Arc<dyn MemoryPool>,
) -> Result<Transformed<LogicalPlan>> {
    let node = match node {
        LogicalPlan::Union(union) => return unify::union(union, options).map(Transformed::yes),
        LogicalPlan::Join(join) if unify::is_set_operation(&join) => {
            return unify::set_operation(join, options);
        }
        node => node,
    };
    let mut schema = merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = &node {
        let read = scan.source.schema();
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &read)?);
    }
    let scope = Scope { schema: Arc::new(schema), outer, options, memory };
    let names = NamePreserver::new(&node);
    let is_filter = matches!(node, LogicalPlan::Filter(_));
    let node = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let expr = concatenation::balanced(expr, &scope.schema)?;
        let expr = expr.transform_up(|expr| scope.rewrite(expr))?;
        let expr = match is_filter {
            true => expr.transform_data(|expr| conditions::condition("WHERE", expr, &scope))?,
            false => expr,
        };
        Ok(expr.update_data(|expr| name.restore(expr)))
    })?;
    node.transform_data(|node| match node {
        LogicalPlan::Join(mut join) => {
            let Some(filter) = join.filter.take() else {
                return LogicalPlan::Join(join).recompute_schema().map(Transformed::no);
            };
            let filter = conditions::condition("JOIN/ON", filter, &scope)?;
            join.filter = Some(filter.data);
            let join = LogicalPlan::Join(join).recompute_schema()?;
            Ok(Transformed::new_transformed(join, filter.transformed))
        }
        LogicalPlan::Values(rows) => values::unified(rows, options),
        // What it reads may have other types than it was planned with.
        node => node.recompute_schema().map(Transformed::no),
    })
}

impl Scope<'_> {
    /// An expression whose parts were rewritten.
    fn rewrite(&self, expr: Expr) -> Result<Transformed<Expr>> {
        match expr {
            Expr::OuterReferenceColumn(..) => Ok(self.retyped(expr)),
            Expr::ScalarSubquery(subquery) => {
                Ok(Transformed::yes(Expr::ScalarSubquery(self.subquery(subquery)?)))
            }
            Expr::Exists(Exists { subquery, negated }) => {
                let subquery = self.subquery(subquery)?;
                Ok(Transformed::yes(Expr::Exists(Exists { subquery, negated })))
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let subquery = self.subquery(subquery)?;
                let compared = InSubquery { expr, subquery, negated };
                Ok(Transformed::yes(Expr::InSubquery(compared)))
            }
            Expr::SetComparison(comparison) => {
                let subquery = self.subquery(comparison.subquery)?;
                let comparison = SetComparison { subquery, ..comparison };
                Ok(Transformed::yes(Expr::SetComparison(comparison)))
            }
            Expr::BinaryExpr(binary) if relational::compares(binary.op) => {
                match hive::binary(&binary, self)? {
                    Some(same_kind) => Ok(Transformed::yes(same_kind)),
                    None => compare::binary(binary, self),
                }
            }
            Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. })
            | Expr::Not(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_) => conditions::logical(expr, self),
            Expr::BinaryExpr(binary) => self.checked(arithmetic::rewrite(binary, self)?),
            Expr::Negative(inner) => arithmetic::negate(*inner, self),
            Expr::Cast(cast) => self.checked(casts::rewrite(cast, self)?),
            Expr::Case(case) => unify::case(case, self),
            Expr::ScalarFunction(function) => {
                refused::function(&function, self)?;
                self.checked(functions::rewrite(function, self)?)
            }
            // What is too large for a bigint is a decimal.
            Expr::Literal(ScalarValue::UInt64(Some(value)), metadata)
                if i64::try_from(value).is_err() =>
            {
                let decimal = ScalarValue::Decimal128(Some(value.into()), 20, 0);
                Ok(Transformed::yes(Expr::Literal(decimal, metadata)))
            }
            Expr::Like(like) if like.escape_char.is_some_and(|escape| escape != '\\') => {
                Ok(functions::like(like))
            }
            Expr::SimilarTo(like) => functions::similar(like, self),
            Expr::Between(between) => match hive::between(&between, self)? {
                Some(same_kind) => Ok(Transformed::yes(same_kind)),
                None => compare::between(between, self),
            },
            Expr::InList(list) => match hive::in_list(&list, self)? {
                Some(same_kind) => Ok(Transformed::yes(same_kind)),
                None => compare::in_list(list, self),
            },
            Expr::AggregateFunction(mut aggregate) => {
                let args = &mut aggregate.params.args;
                let is_hives = hive::as_sum(&mut aggregate.func, args, self)?;
                refused::aggregate(&aggregate, self)?;
                let filtered = filtered::aggregate(aggregate);
                Ok(Transformed::new_transformed(filtered.data, filtered.transformed || is_hives))
            }
            Expr::WindowFunction(mut function) => {
                let mut is_hives = false;
                if let WindowFunctionDefinition::AggregateUDF(of) = &mut function.fun {
                    is_hives = hive::as_sum(of, &mut function.params.args, self)?;
                }
                let rewritten = windows::rewrite(function, self)?;
                Ok(Transformed::new_transformed(rewritten.data, rewritten.transformed || is_hives))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    fn checked(&self, rewritten: Transformed<Expr>) -> Result<Transformed<Expr>> {
        rewritten.transform_data(|expr| bounded::checked(expr, self.memory))
    }

    /// A column of a query around this one, with the type that it has there now.
    fn retyped(&self, expr: Expr) -> Transformed<Expr> {
        let Expr::OuterReferenceColumn(_, column) = &expr else { return Transformed::no(expr) };
        let found = |schema: &DFSchemaRef| field_of(schema, column);
        match self.outer.iter().rev().find_map(found) {
            Some(field) => Transformed::yes(Expr::OuterReferenceColumn(field, column.clone())),
            None => Transformed::no(expr),
        }
    }

    fn subquery(&self, subquery: Subquery) -> Result<Subquery> {
        let mut outer = self.outer.to_vec();
        outer.push(Arc::clone(&self.schema));
        let (options, memory) = (self.options, self.memory);
        let plan = Arc::unwrap_or_clone(subquery.subquery);
        let plan = analyze_plan(plan, &outer, options, memory)?;
        let inner = Scope { schema: Arc::clone(&self.schema), outer: &outer, options, memory };
        let outer_ref_columns = subquery
            .outer_ref_columns
            .into_iter()
            .map(|column| inner.retyped(column).data)
            .collect();
        Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, ..subquery })
    }
}

fn field_of(schema: &DFSchemaRef, column: &Column) -> Option<arrow::datatypes::FieldRef> {
    let (_, field) = schema.qualified_field_from_column(column).ok()?;
    Some(Arc::clone(field))
}
