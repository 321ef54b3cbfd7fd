//! VALUES in FROM: one type for each column, as PostgreSQL resolves it.
//!
//! The engine settles these types while it plans, by rules of its own: a double beside a decimal would
//! become a decimal of 30 digits. [`ValuesPlanner`] plans the rows as they are written; [`unified`] casts
//! them once the types of their expressions are known.
//! **Invariant:** no value loses digits; what does not fit together is an error (42804).
//!
//! A row with a subquery in it is planned as a SELECT without FROM: the engine has no subqueries in VALUES.
//!
//! Not here: types of the rows of `INSERT … VALUES`, each of which is cast to the columns of its table.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::logical_plan::{EmptyRelation, Projection, Union, Values};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, cast};
use datafusion::sql::sqlparser::ast::{self, SetExpr, TableAlias, TableFactor};

use super::call::failure;
use super::operators::name;
use super::unify::{self, Branch};
use super::whole_literals;

/// Plans `(VALUES …)` in FROM, its rows as they are written.
#[derive(Debug)]
pub(super) struct ValuesPlanner;

impl RelationPlanner for ValuesPlanner {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let Some((rows, alias)) = rows_of(&mut relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let nothing = DFSchema::empty();
        let mut planned = Vec::with_capacity(rows.len());
        for row in rows {
            let values = row.into_iter().map(|value| context.sql_to_expr(value, &nothing));
            let mut values = values.collect::<Result<Vec<_>>>()?;
            for value in &mut values {
                whole_literals::to_integers(value);
            }
            planned.push(values);
        }
        let planned = PlannedRelation::new(plan_of(planned)?, alias);
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

/// Takes the rows and the alias out of a relation that is nothing but VALUES.
fn rows_of(relation: &mut TableFactor) -> Option<(Vec<Vec<ast::Expr>>, Option<TableAlias>)> {
    let TableFactor::Derived { subquery, alias, sample: None, .. } = relation else { return None };
    if !stoa_sql::adapt::is_only_values(subquery) {
        return None;
    }
    let SetExpr::Values(values) = subquery.body.as_mut() else { return None };
    let rows = std::mem::take(&mut values.rows).into_iter().map(|row| row.content).collect();
    Some((rows, alias.take()))
}

/// The rows, with the types that their columns will have as far as is known yet.
///
/// # Errors
/// Rows of different lengths, or without values (42601).
fn plan_of(mut rows: Vec<Vec<Expr>>) -> Result<LogicalPlan> {
    let width = rows.first().map_or(0, Vec::len);
    if width == 0 || rows.iter().any(|row| row.len() != width) {
        return Err(failure("42601", "VALUES lists must all be the same length"));
    }
    let nothing = DFSchema::empty();
    let mut fields = Vec::with_capacity(width);
    for column in 0..width {
        // An expression that has no type for the engine may have one for the rules to come.
        let of = |row: &Vec<Expr>| {
            let value = &row[column];
            Branch::of(value, value.get_type(&nothing).unwrap_or(DataType::Null))
        };
        let branches: Vec<Branch> = rows.iter().map(of).collect();
        let common = common_type(&branches).unwrap_or_else(|_| first_known(&branches));
        for row in &mut rows {
            if matches!(&row[column], Expr::Placeholder(parameter) if parameter.field.is_none()) {
                row[column] = cast(std::mem::take(&mut row[column]), common.clone());
            }
        }
        let may_be_null = |row: &Vec<Expr>| row[column].nullable(&nothing).unwrap_or(true);
        let is_nullable = rows.iter().any(may_be_null);
        fields.push(Field::new(format!("column{}", column + 1), common, is_nullable));
    }
    let schema = DFSchema::from_unqualified_fields(fields.into(), HashMap::new())?;
    Ok(LogicalPlan::Values(Values { schema: schema.into(), values: rows }))
}

/// Rows whose values have the types of their columns.
///
/// # Errors
/// Types that do not fit together (42804), a literal that is not of the type of the others (22P02).
pub(super) fn unified(values: Values, options: &ConfigOptions) -> Result<Transformed<LogicalPlan>> {
    let nothing = DFSchema::empty();
    let Values { schema, values: mut rows } = values;
    let mut fields = Vec::with_capacity(schema.fields().len());
    let mut is_changed = false;
    for (column, own) in schema.fields().iter().enumerate() {
        let branch = |row: &Vec<Expr>| {
            let value = &row[column];
            Ok(Branch::of(value, value.get_type(&nothing)?))
        };
        let branches = rows.iter().map(branch).collect::<Result<Vec<_>>>()?;
        if branches.iter().all(|branch| branch.of == *own.data_type()) {
            fields.push(own.as_ref().clone());
            continue;
        }
        let of = common_type(&branches)?;
        for (row, branch) in rows.iter_mut().zip(&branches) {
            let value = std::mem::take(&mut row[column]);
            row[column] = as_common(value, branch, &of, options)?;
        }
        fields.push(Field::new(own.name(), of, true).with_metadata(own.metadata().clone()));
        is_changed = true;
    }
    let schema = match is_changed {
        true => DFSchema::from_unqualified_fields(fields.into(), schema.metadata().clone())?.into(),
        false => schema,
    };
    if rows.iter().any(|row| has_subquery(row)) {
        return as_union(&schema, rows).map(Transformed::yes);
    }
    let plan = LogicalPlan::Values(Values { schema, values: rows });
    Ok(Transformed::new_transformed(plan, is_changed))
}

fn has_subquery(row: &[Expr]) -> bool {
    let is_query = |part: &Expr| matches!(part, Expr::ScalarSubquery(_));
    // The walk itself cannot fail.
    row.iter().any(|value| value.exists(|part| Ok(is_query(part))).unwrap_or(false))
}

/// Rows of which some have subqueries: these one by one, all others together.
fn as_union(schema: &DFSchemaRef, rows: Vec<Vec<Expr>>) -> Result<LogicalPlan> {
    let mut parts = Vec::new();
    let mut plain = Vec::new();
    for row in rows {
        if !has_subquery(&row) {
            plain.push(row);
            continue;
        }
        let values = row.into_iter().zip(schema.fields());
        let values = values.map(|(value, field)| value.unalias().alias(field.name())).collect();
        let nothing = LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: true,
            schema: Arc::new(DFSchema::empty()),
        });
        let row = Projection::try_new(values, Arc::new(nothing))?;
        parts.push(Arc::new(LogicalPlan::Projection(row)));
    }
    if !plain.is_empty() {
        let plain = Values { schema: Arc::clone(schema), values: plain };
        parts.push(Arc::new(LogicalPlan::Values(plain)));
    }
    match parts.as_slice() {
        [row] => Ok(row.as_ref().clone()),
        _ => Union::try_new(parts).map(LogicalPlan::Union),
    }
}

fn as_common(value: Expr, branch: &Branch, of: &DataType, options: &ConfigOptions) -> Result<Expr> {
    match value {
        Expr::Literal(ScalarValue::Null, metadata) => {
            Ok(Expr::Literal(ScalarValue::try_new_null(of)?, metadata))
        }
        value if branch.of == *of => Ok(value),
        value => unify::to_common(value, &branch.of, of, options),
    }
}

/// The type of a column; that of texts where all its values are literals of no type.
fn common_type(branches: &[Branch]) -> Result<DataType> {
    if let Some(of) = unify::common_type("VALUES", branches)? {
        return Ok(of);
    }
    let known = branches.iter().filter(|branch| !branch.is_unknown);
    let types: Vec<DataType> = known.map(|branch| branch.of.clone()).collect();
    if types.is_empty() {
        return Ok(DataType::Utf8);
    }
    type_union_resolution(&types).ok_or_else(|| {
        let other = types.iter().find(|of| **of != types[0]).unwrap_or(&types[0]);
        let (one, other) = (name(&types[0]), name(other));
        failure("42804", format!("VALUES types {one} and {other} cannot be matched"))
    })
}

fn first_known(branches: &[Branch]) -> DataType {
    let known = branches.iter().find(|branch| !branch.is_unknown);
    known.map_or(DataType::Utf8, |branch| branch.of.clone())
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::lit;

    use super::*;

    fn column_of(values: Vec<Expr>) -> Result<DataType> {
        let rows = values.into_iter().map(|value| vec![value]).collect();
        let LogicalPlan::Values(values) = plan_of(rows)? else { panic!("rows are VALUES") };
        let plan = unified(values, &ConfigOptions::default())?.data;
        Ok(plan.schema().field(0).data_type().clone())
    }

    fn decimal(digits: i128, precision: u8, scale: i8) -> Expr {
        Expr::Literal(ScalarValue::Decimal128(Some(digits), precision, scale), None)
    }

    #[test]
    fn a_float_beside_other_numbers_stays_a_float() {
        let of = |one: Expr, other: Expr| column_of(vec![one, other]).unwrap();
        assert_eq!(of(lit(0.5_f64), decimal(15, 2, 1)), DataType::Float64);
        assert_eq!(of(decimal(15, 2, 1), lit(0.5_f32)), DataType::Float32);
        assert_eq!(of(lit(1_i64), lit(0.5_f64)), DataType::Float64);
        assert_eq!(of(lit(1_i64), decimal(15, 2, 1)), DataType::Decimal128(20, 1));
    }

    #[test]
    fn literals_of_no_type_take_that_of_the_others() {
        let null = || lit(ScalarValue::Null);
        assert_eq!(column_of(vec![lit("5"), lit(1_i64)]).unwrap(), DataType::Int64);
        assert_eq!(column_of(vec![null(), lit(0.5_f64)]).unwrap(), DataType::Float64);
        assert_eq!(column_of(vec![null(), null()]).unwrap(), DataType::Utf8);
        assert!(column_of(vec![lit("x"), lit(1_i64)]).is_err());
        assert!(column_of(vec![lit(true), lit(1_i64)]).is_err());
    }

    #[test]
    fn rows_are_of_one_length() {
        assert!(plan_of(vec![vec![lit(1)], vec![lit(1), lit(2)]]).is_err());
        assert!(plan_of(vec![vec![]]).is_err());
    }
}
