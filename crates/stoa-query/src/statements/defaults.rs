//! Defaults of columns: whether an expression can be one, and statements with the values that they leave out.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::sql::parser::Statement as EngineStatement;
use stoa_env::random;
use stoa_error::{Error, Result};
use stoa_sql::StatementKind;
use stoa_sql::defaults::{Column, fill, refuse_given, table_of};
use stoa_sql::identity::{IDENTITY_KEY, Identity};
use stoa_table::{DEFAULT_KEY, Table};
use uuid::Uuid;

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::statements::show::sql_type;
use crate::statements::{allowed, uuid_texts};
use stoa_semantics::errors::from_datafusion;

/// A statement with the values that it leaves to the defaults of its table, and with casts of its texts for UUIDs; `None` where
/// it has neither.
///
/// # Errors
/// 42501 where the table is not to be known.
pub(crate) async fn filled(
    session: &Session,
    parsed: &EngineStatement,
) -> Result<Option<EngineStatement>> {
    let Some(name) = table_of(parsed) else { return Ok(None) };
    let Ok(ident) = session.table_ident(name) else { return Ok(None) };
    // Whoever plans the statement says what is wrong with its table.
    let Ok(table) = session.data.warehouse().table(&ident).await else { return Ok(None) };
    session.caller.must_know(&table)?;
    let mut defaults = table.defaults();
    let schema = table.schema();
    let column =
        |field: &Arc<Field>| -> Column { (field.name().clone(), defaults.remove(field.name())) };
    let columns: Vec<Column> = schema.fields().iter().map(column).collect();
    refuse_given(parsed, &columns)?;
    let filled = fill(parsed, &columns)?;
    let typed = uuid_texts::typed(filled.as_ref().unwrap_or(parsed), &schema);
    Ok(typed.or(filled))
}

/// Columns as the table gets them: those that are identities have the next number of a new sequence as their default.
///
/// # Errors
/// The catalog's.
pub(crate) async fn with_sequences(session: &Session, columns: &[Field]) -> Result<Vec<Field>> {
    let mut made = Vec::with_capacity(columns.len());
    for field in columns {
        let mut field = field.clone();
        if let Some(written) = field.metadata_mut().remove(IDENTITY_KEY) {
            let identity = Identity::read(&written)
                .ok_or_else(|| Error::internal("the identity of a column is not read"))?;
            let id = Uuid::from_bytes(random::bytes());
            let catalog = session.data.warehouse().catalog();
            catalog.create_sequence(id, identity.start, identity.step).await?;
            let default = Identity::default_of(&written, &id.to_string());
            field.metadata_mut().insert(DEFAULT_KEY.to_owned(), default);
        }
        made.push(field);
    }
    Ok(made)
}

/// Whether the defaults of new columns can be computed.
///
/// # Errors
/// As [`check`].
pub(crate) async fn check_all(
    session: &Session,
    columns: &[Field],
    guard: &QueryGuard,
) -> Result<()> {
    for field in columns {
        if let Some(text) = field.metadata().get(DEFAULT_KEY) {
            check(session, field.name(), field.data_type(), text, guard).await?;
        }
    }
    Ok(())
}

/// Whether an expression can be the default of a column: it is computed once, as a value of the column.
///
/// # Errors
/// 0A000 for one that reads tables, and what planning and computing it find: names of columns (42703), values that are
/// none of the column's type (22P02), and so on.
pub(crate) async fn check(
    session: &Session,
    column: &str,
    data_type: &DataType,
    text: &str,
    guard: &QueryGuard,
) -> Result<()> {
    let plan = planned(session, data_type, text).await?;
    let mut reads = false;
    plan.apply_with_subqueries(|node| {
        reads |= matches!(node, LogicalPlan::TableScan(_));
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    if reads {
        return Err(Error::unsupported(format!("the default of column \"{column}\" reads tables"))
            .with_hint("defaults are expressions of constants and functions"));
    }
    session.collect(&plan, guard).await.map(drop)
}

/// The query of one row that has the default as a value of the column's type.
async fn planned(session: &Session, data_type: &DataType, text: &str) -> Result<LogicalPlan> {
    let no_expression = || Error::internal("the default of a column is no expression");
    let sql = format!("SELECT CAST(({text}) AS {})", sql_type(data_type));
    let statement = stoa_sql::parse(&sql, stoa_pg_catalog::parse)?.pop();
    let Some(StatementKind::Plan(statement)) = statement.map(|statement| statement.kind) else {
        return Err(no_expression());
    };
    let plan = session.plan_parsed(&session.state(), *statement).await?;
    allowed::check(&plan)?;
    Ok(plan)
}

/// The defaults of columns for which rows that are sent have no value.
pub(crate) struct ColumnDefaults(HashMap<String, Arc<dyn PhysicalExpr>>);

impl ColumnDefaults {
    /// As many values of a column: its default, or NULL.
    ///
    /// # Errors
    /// What computing the default finds.
    pub(crate) fn array(&self, field: &Field, rows: usize) -> Result<ArrayRef> {
        let Some(expr) = self.0.get(field.name()) else {
            return Ok(new_null_array(field.data_type(), rows));
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let none =
            RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
                .map_err(|source| Error::internal("rows without columns").with_source(source))?;
        let values = expr
            .evaluate(&none)
            .and_then(|values| values.into_array(rows))
            .map_err(from_datafusion)?;
        arrow::compute::cast(&values, field.data_type())
            .map_err(|source| Error::internal("a default has another type").with_source(source))
    }
}

/// The defaults of the columns of `table` that are not in `have`.
///
/// # Errors
/// What planning them finds.
pub(crate) async fn of_missing(
    session: &Session,
    table: &Table,
    have: &Schema,
) -> Result<ColumnDefaults> {
    let mut exprs = HashMap::new();
    for (name, text) in table.defaults() {
        let schema = table.schema();
        if have.field_with_name(&name).is_ok() {
            continue;
        }
        let Ok(field) = schema.field_with_name(&name) else { continue };
        let state = session.state();
        let plan = planned(session, field.data_type(), &text).await?;
        let plan = stoa_semantics::analyzed(&state, &plan).map_err(from_datafusion)?;
        let expr = match &plan {
            LogicalPlan::Projection(projection) => projection.expr.first().cloned(),
            _ => None,
        };
        let expr = expr.ok_or_else(|| Error::internal("the default of a column has no value"))?;
        let expr = state.create_physical_expr(expr.unalias(), &DFSchema::empty());
        exprs.insert(name, expr.map_err(from_datafusion)?);
    }
    Ok(ColumnDefaults(exprs))
}
