//! `MERGE INTO table USING source ON condition WHEN …`.
//!
//! The source is read once, into memory, so that every plan sees the same rows. Then
//!
//! - a row of the table that has a partner in the source for which a WHEN MATCHED clause holds is
//!   changed or deleted by the first such clause; more than one such partner is an error;
//! - a row without any partner is changed or deleted by the first WHEN NOT MATCHED BY SOURCE
//!   clause that holds;
//! - a source row without a partner in the table is inserted by the first WHEN NOT MATCHED clause
//!   that holds.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::common::{Column, JoinType, ScalarValue};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::Result as EngineResult;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::dml::{
    MergeIntoAction, MergeIntoClause, MergeIntoClauseKind, MergeIntoOp,
};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::utils::{disjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, WriteOp, col, lit,
};
use stoa_error::{Error, Result};

use super::{Applied, Files, RowChange, scan};
use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::tables::table::StoaTable;
use stoa_semantics::errors::from_datafusion;

/// Name of the source's rows in memory, where the source has none of its own.
const SOURCE: &str = "__source";

pub(super) struct Merge {
    table: StoaTable,
    name: TableReference,
    on: Expr,
    matched: Vec<MergeIntoClause>,
    unmatched: Vec<MergeIntoClause>,
    inserting: Vec<MergeIntoClause>,
    source: LogicalPlan,
    rows_inserted: u64,
}

impl Merge {
    pub(super) async fn of(
        session: &Session,
        dml: &DmlStatement,
        table: &StoaTable,
        guard: &QueryGuard,
    ) -> Result<Self> {
        let WriteOp::MergeInto(operation) = &dml.op else {
            return Err(Error::internal("MERGE is planned as something else"));
        };
        let MergeIntoOp { on, clauses } = operation.as_ref();
        let of_kind = |kinds: &[MergeIntoClauseKind]| {
            clauses.iter().filter(|clause| kinds.contains(&clause.kind)).cloned().collect()
        };
        let source = read_source(session, &dml.input, guard).await?;
        let mut merge = Self {
            table: table.clone(),
            name: dml.table_name.clone(),
            on: on.clone(),
            matched: of_kind(&[MergeIntoClauseKind::Matched]),
            unmatched: of_kind(&[MergeIntoClauseKind::NotMatchedBySource]),
            inserting: of_kind(&[
                MergeIntoClauseKind::NotMatched,
                MergeIntoClauseKind::NotMatchedByTarget,
            ]),
            source,
            rows_inserted: 0,
        };
        merge.rows_inserted =
            session.count_rows(merge.inserted().map_err(from_datafusion)?, guard).await?;
        Ok(merge)
    }

    fn rows(&self, files: Files) -> EngineResult<LogicalPlanBuilder> {
        Ok(LogicalPlanBuilder::from(scan(&self.table, &self.name, files)?))
    }

    /// Rows of the table joined with their partners in the source, on `conditions`.
    fn join(
        &self,
        rows: LogicalPlanBuilder,
        kind: JoinType,
        conditions: Vec<Expr>,
    ) -> EngineResult<LogicalPlanBuilder> {
        rows.join_on(self.source.clone(), kind, conditions)
    }

    fn partners(&self) -> Vec<Expr> {
        vec![self.on.clone()]
    }

    /// The condition on a pair of partners under which the table's row is changed.
    fn acting_partners(&self) -> Vec<Expr> {
        vec![self.on.clone(), holds_any(&self.matched)]
    }

    /// The table's columns after the first clause that holds; rows that it deletes are left out.
    fn after(
        &self,
        rows: LogicalPlanBuilder,
        clauses: &[MergeIntoClause],
    ) -> EngineResult<LogicalPlan> {
        let stays = first_of(clauses, lit(true), |action| {
            Ok(Some(lit(!matches!(action, MergeIntoAction::Delete))))
        })?;
        let values = self.columns().into_iter().map(|(column, data_type)| {
            let old = Expr::Column(column.clone());
            let new = first_of(clauses, old, |action| match action {
                MergeIntoAction::Update(set) => {
                    let value = set.iter().find(|(name, _)| *name == column.name);
                    Ok(value.map(|(_, value)| cast(value.clone(), data_type.clone())))
                }
                _ => Ok(None),
            })?;
            Ok(new.alias(column.name))
        });
        let values = values.collect::<EngineResult<Vec<_>>>()?;
        rows.filter(stays)?.project(values)?.build()
    }

    /// The rows that the first clause that holds deletes, as they were; `None` where no clause deletes.
    fn deleted(
        &self,
        rows: LogicalPlanBuilder,
        clauses: &[MergeIntoClause],
    ) -> EngineResult<Option<LogicalPlan>> {
        let deletes = |action: &MergeIntoAction| matches!(action, MergeIntoAction::Delete);
        if !clauses.iter().any(|clause| deletes(&clause.action)) {
            return Ok(None);
        }
        let goes = first_of(clauses, lit(false), |action| Ok(Some(lit(deletes(action)))))?;
        rows.filter(goes)?.project(self.table_columns())?.build().map(Some)
    }

    /// The table's columns under the name that the statement uses, with their types.
    fn columns(&self) -> Vec<(Column, arrow::datatypes::DataType)> {
        let schema = self.table.schema();
        let column = |field: &Arc<arrow::datatypes::Field>| {
            let column = Column::new(Some(self.name.clone()), field.name());
            (column, field.data_type().clone())
        };
        schema.fields().iter().map(column).collect()
    }

    /// Source rows without a partner, as rows of the table.
    fn inserted(&self) -> EngineResult<LogicalPlan> {
        let all = Arc::new(self.table.clone());
        let rows = LogicalPlanBuilder::scan(self.name.clone(), provider_as_source(all), None)?;
        let alone = LogicalPlanBuilder::from(self.source.clone())
            .join_on(rows.build()?, JoinType::LeftAnti, self.partners())?
            .filter(holds_any(&self.inserting))?;
        let columns = self.columns();
        let names: Vec<String> = columns.iter().map(|(column, _)| column.name.clone()).collect();
        let values = columns.into_iter().map(|(column, data_type)| {
            let value = first_of(&self.inserting, lit(ScalarValue::Null), |action| match action {
                MergeIntoAction::Insert { columns, values } => {
                    let given = if columns.is_empty() { &names } else { columns };
                    let place = given.iter().position(|name| *name == column.name);
                    Ok(Some(
                        place.and_then(|place| values.get(place)).cloned().unwrap_or_else(null),
                    ))
                }
                _ => Ok(None),
            })?;
            Ok(cast(value, data_type).alias(column.name))
        });
        let values = values.collect::<EngineResult<Vec<_>>>()?;
        alone.project(values)?.build()
    }

    fn table_columns(&self) -> Vec<Expr> {
        let named = |(column, _): (Column, _)| {
            let name = column.name.clone();
            Expr::Column(column).alias(name)
        };
        self.columns().into_iter().map(named).collect()
    }
}

impl RowChange for Merge {
    fn conditions(&self) -> Vec<Expr> {
        // A row without a partner may be changed, too.
        if !self.unmatched.is_empty() {
            return Vec::new();
        }
        let mut conditions = split_conjunction_owned(self.on.clone());
        // What is asked of the source says nothing of a column of the table that has the same name.
        conditions.retain(|condition| {
            condition
                .column_refs()
                .iter()
                .all(|column| column.relation.as_ref() == Some(&self.name))
        });
        conditions
    }

    fn changed(&self, files: Files) -> EngineResult<LogicalPlan> {
        let matched =
            self.join(self.rows(Arc::clone(&files))?, JoinType::LeftSemi, self.acting_partners())?;
        if self.unmatched.is_empty() {
            return matched.build();
        }
        let alone = self.join(self.rows(files)?, JoinType::LeftAnti, self.partners())?;
        matched.union(alone.filter(holds_any(&self.unmatched))?.build()?)?.build()
    }

    fn rewritten(&self, files: Files) -> EngineResult<LogicalPlan> {
        let rows = || self.rows(Arc::clone(&files));
        let changed = self.join(rows()?, JoinType::Inner, self.acting_partners())?;
        let changed = LogicalPlanBuilder::from(self.after(changed, &self.matched)?);
        if self.unmatched.is_empty() {
            let kept = self.join(rows()?, JoinType::LeftAnti, self.acting_partners())?;
            return changed.union(kept.project(self.table_columns())?.build()?)?.build();
        }
        let accompanied = self.join(rows()?, JoinType::LeftSemi, self.partners())?;
        let kept = self.join(accompanied, JoinType::LeftAnti, self.acting_partners())?;
        let alone = self.join(rows()?, JoinType::LeftAnti, self.partners())?;
        let alone = self.after(alone, &self.unmatched)?;
        changed.union(kept.project(self.table_columns())?.build()?)?.union(alone)?.build()
    }

    fn added(&self) -> EngineResult<Option<LogicalPlan>> {
        match self.rows_inserted {
            0 => Ok(None),
            _ => self.inserted().map(Some),
        }
    }

    fn affected(&self, applied: &Applied) -> u64 {
        applied.rows_changed + self.rows_inserted
    }

    fn returned(&self, files: Files) -> EngineResult<Option<LogicalPlan>> {
        let rows = || self.rows(Arc::clone(&files));
        let changed = self.join(rows()?, JoinType::Inner, self.acting_partners())?;
        let mut returned = LogicalPlanBuilder::from(self.after(changed.clone(), &self.matched)?);
        if let Some(gone) = self.deleted(changed, &self.matched)? {
            returned = returned.union(gone)?;
        }
        if !self.unmatched.is_empty() {
            let alone = self.join(rows()?, JoinType::LeftAnti, self.partners())?;
            let alone = alone.filter(holds_any(&self.unmatched))?;
            returned = returned.union(self.after(alone.clone(), &self.unmatched)?)?;
            if let Some(gone) = self.deleted(alone, &self.unmatched)? {
                returned = returned.union(gone)?;
            }
        }
        match self.rows_inserted {
            0 => returned.build().map(Some),
            _ => returned.union(self.inserted()?)?.build().map(Some),
        }
    }

    fn violation(&self, files: Files) -> EngineResult<Option<(LogicalPlan, Error)>> {
        if self.matched.is_empty() {
            return Ok(None);
        }
        let one = |alias: &str| vec![count(lit(1)).alias(alias)];
        let pairs =
            self.join(self.rows(Arc::clone(&files))?, JoinType::Inner, self.acting_partners())?;
        let pairs = pairs.aggregate(Vec::<Expr>::new(), one("pairs"))?.build()?;
        let rows = self.join(self.rows(files)?, JoinType::LeftSemi, self.acting_partners())?;
        let more = rows
            .aggregate(Vec::<Expr>::new(), one("changed"))?
            .cross_join(pairs)?
            .filter(col("pairs").gt(col("changed")))?
            .build()?;
        let error = Error::invalid("MERGE command cannot affect row a second time")
            .with_sqlstate("21000")
            .with_hint("ensure that not more than one source row matches any one target row");
        Ok(Some((more, error)))
    }
}

fn null() -> Expr {
    lit(ScalarValue::Null)
}

/// The condition of a clause; without one it always holds. NULL counts as false.
fn holds(clause: &MergeIntoClause) -> Expr {
    match &clause.predicate {
        Some(condition) => Expr::IsTrue(Box::new(condition.clone())),
        None => lit(true),
    }
}

/// Whether any of the clauses holds.
fn holds_any(clauses: &[MergeIntoClause]) -> Expr {
    disjunction(clauses.iter().map(holds)).unwrap_or_else(|| lit(false))
}

/// What `value` says of the action of the first clause that holds; `otherwise` where none does or
/// `value` says nothing.
fn first_of(
    clauses: &[MergeIntoClause],
    otherwise: Expr,
    value: impl Fn(&MergeIntoAction) -> EngineResult<Option<Expr>>,
) -> EngineResult<Expr> {
    if clauses.is_empty() {
        return Ok(otherwise);
    }
    let cases = clauses.iter().map(|clause| {
        let then = value(&clause.action)?.unwrap_or_else(|| otherwise.clone());
        Ok((Box::new(holds(clause)), Box::new(then)))
    });
    let cases = cases.collect::<EngineResult<Vec<_>>>()?;
    Ok(Expr::Case(Case::new(None, cases, Some(Box::new(otherwise)))))
}

/// Reads the source into memory and gives it back under the same names.
async fn read_source(
    session: &Session,
    plan: &LogicalPlan,
    guard: &QueryGuard,
) -> Result<LogicalPlan> {
    let (schema, batches) = session.collect(plan, guard).await?;
    let provider = MemTable::try_new(schema, vec![batches]).map_err(from_datafusion)?;
    let source = provider_as_source(Arc::new(provider));
    let qualifier = plan.schema().iter().find_map(|(qualifier, _)| qualifier.cloned());
    let scan = |name: TableReference| {
        LogicalPlanBuilder::scan(name, source, None).map_err(from_datafusion)
    };
    let rows = match qualifier {
        Some(name) => scan(name)?,
        None => {
            let bare = |field: &Arc<arrow::datatypes::Field>| {
                let column = Column::new(Some(SOURCE), field.name());
                Expr::Column(column).alias(field.name())
            };
            let columns: Vec<Expr> = plan.schema().fields().iter().map(bare).collect();
            scan(TableReference::bare(SOURCE))?.project(columns).map_err(from_datafusion)?
        }
    };
    rows.build().map_err(from_datafusion)
}
