//! What EXPLAIN says of a report.
//!
//! In: the form of a report, and what it took. Out: the line of an operator in the style of the engine's
//! plans, so that whoever reads those reads this.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{Schema, SchemaRef};
use stoa_error::{Error, Result};
use stoa_report::{Answer, Item as ReportItem, ReportWork};
use stoa_sql::lexer::{Lexer, Token};
use stoa_store::Charged;

use super::shape::ReportShape;
use crate::run::live_plan::{
    DescribeWork, PlanMetric, PlanNode, PlanUnit, name_and_detail, nanoseconds, unit_of,
};

/// Name of the operator.
pub(crate) const OPERATOR: &str = "ReportExec";

/// The query that EXPLAIN explains, and whether it is executed for that; `None` for other statements.
pub(crate) fn explained(sql: &str) -> Option<(&str, bool)> {
    let explain = stoa_sql::explain::read(sql).ok()??;
    let first = Lexer::new(explain.statement).find(Token::is_significant)?;
    ["select", "with"]
        .iter()
        .any(|word| first.is_word(word))
        .then_some((explain.statement, explain.analyzes))
}

/// One row of EXPLAIN, in the columns of the engine's.
///
/// # Errors
/// `Internal` where these are not two texts.
pub(crate) fn row(plan_type: &str, plan: String) -> Result<RecordBatch> {
    let text = |text: String| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
    let columns = [("plan_type", text(plan_type.to_owned())), ("plan", text(plan))];
    RecordBatch::try_from_iter(columns)
        .map_err(|e| Error::internal("EXPLAIN has other columns").with_source(e))
}

/// The operator; `table` has the table's columns.
pub(crate) fn operator(shape: &ReportShape, table: &Schema) -> String {
    let name = |column: usize| {
        let column = shape.columns.get(column);
        let field = column.and_then(|column| table.fields().get(column.position));
        field.map_or("?", |field| field.name().as_str())
    };
    let names =
        |columns: &mut dyn Iterator<Item = usize>| columns.map(name).collect::<Vec<_>>().join(", ");
    let mut text = format!("{OPERATOR}: table={}, short_path=yes", shape.table.ident);
    let read = names(&mut (0..shape.columns.len()));
    let _ = write!(text, ", columns=[{read}]");
    let tested = names(&mut shape.conditions.iter().map(|condition| condition.column));
    let _ = write!(text, ", conditions=[{tested}]");
    if shape.grouped {
        let _ = write!(text, ", group_by=[{}]", names(&mut shape.group_by.iter().copied()));
        let aggregates = shape.items.iter().filter(|item| matches!(item, ReportItem::Aggregate(_)));
        let _ = write!(text, ", aggregates={}", aggregates.count());
    }
    text
}

/// The operator with what it took: files, row groups and rows from all to those that count, then where
/// the columns came from.
pub(crate) fn analysed(
    shape: &ReportShape,
    table: &Schema,
    answer: &Answer,
    store: &Charged,
    elapsed: Duration,
) -> String {
    let rows = ("output_rows", answer.batch.num_rows() as u64);
    let metrics = std::iter::once(rows).chain(metrics(&answer.work, store));
    let metrics: Vec<_> = metrics.map(|(name, value)| format!("{name}={value}")).collect();
    let operator = operator(shape, table);
    format!("{operator}, metrics=[{}, elapsed_compute={elapsed:?}]", metrics.join(", "))
}

/// What a report took, by the names that operators have for it.
pub(crate) fn metrics(work: &ReportWork, store: &Charged) -> [(&'static str, u64); 15] {
    [
        ("files_total", work.files_total),
        ("files_pruned", work.files_total.saturating_sub(work.files_read)),
        ("row_groups_total", work.row_groups_total),
        ("row_groups_pruned", work.row_groups_total.saturating_sub(work.row_groups_read)),
        ("rows_read", work.rows_read),
        ("rows_selected", work.rows_selected),
        ("chunk_hits", work.chunk_hits),
        ("disk_hits", work.disk_hits),
        ("chunk_misses", work.chunk_misses),
        ("read_requests", work.requests),
        ("bytes_read", work.bytes_read),
        ("hedges", work.hedges),
        ("store_requests", store.totals.requests()),
        ("store_retries", store.totals.retries),
        ("cost_nanodollars", (store.dollars * 1e9).round() as u64),
    ]
}

/// A report, and what it took once it is answered.
#[derive(Clone, Debug)]
pub(crate) struct ReportRun {
    pub(crate) shape: Arc<ReportShape>,
    /// Columns of its table.
    pub(crate) columns: SchemaRef,
    pub(crate) answered: Option<Answered>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) rows: u64,
    pub(crate) work: ReportWork,
    pub(crate) store: Charged,
    pub(crate) elapsed: Duration,
}

impl DescribeWork for ReportRun {
    fn describe(&self) -> PlanNode {
        let text = operator(&self.shape, &self.columns);
        let (name, detail) = name_and_detail(&text, OPERATOR);
        let count = |(name, value): (&str, u64)| PlanMetric {
            name: name.to_owned(),
            value,
            unit: unit_of(name, PlanUnit::Count),
        };
        let answered = self.answered.as_ref();
        let work = answered.map(|answered| metrics(&answered.work, &answered.store));
        let some = work.into_iter().flatten().filter(|(_, value)| *value > 0);
        let mut metrics: Vec<_> = some.map(count).collect();
        metrics.sort_by(|a, b| a.name.cmp(&b.name));
        PlanNode {
            name,
            detail,
            rows: answered.map(|answered| answered.rows),
            compute_ns: answered.map(|answered| nanoseconds(answered.elapsed)),
            metrics,
            inputs: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_behind_explain_is_found() {
        assert_eq!(explained("EXPLAIN SELECT 1"), Some(("SELECT 1", false)));
        assert_eq!(explained(" explain\n analyze select 1"), Some(("select 1", true)));
        assert_eq!(explained("EXPLAIN (ANALYZE) SELECT 1"), Some(("SELECT 1", true)));
        for other in ["EXPLAIN VALUES (1)", "EXPLAIN (SELECT 1)", "SELECT 1", "EXPLAIN"] {
            assert_eq!(explained(other), None, "{other}");
        }
    }
}
