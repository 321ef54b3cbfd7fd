//! What a table's metadata says, as rows: its snapshots, their history, tags and branches, data files and partitions.
//!
//! In: the table as it is when the rows are asked for. Out: batches. Names of tables and columns are those that other
//! engines on Iceberg have for the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::{Session as EngineSession, TableProvider};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use stoa_error::{Error, Result};
use stoa_orc::Predicate;
use stoa_table::Table;

use crate::access::Caller;
use crate::tables::fresh::plan_batches;
use stoa_semantics::errors::to_datafusion;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Snapshots,
    History,
    References,
    Files,
    Partitions,
}

/// What stands behind the name of the table for each.
const SUFFIXES: [(&str, Fact); 5] = [
    ("$snapshots", Fact::Snapshots),
    ("$history", Fact::History),
    ("$refs", Fact::References),
    ("$files", Fact::Files),
    ("$partitions", Fact::Partitions),
];

/// The table and what a name asks of it; `None` for names that ask for nothing.
pub(crate) fn split_name(name: &str) -> Option<(&str, Fact)> {
    SUFFIXES.iter().find_map(|(suffix, fact)| Some((name.strip_suffix(suffix)?, *fact)))
}

/// A table of facts about another one.
#[derive(Clone, Debug)]
pub(crate) struct TableFacts {
    table: Table,
    fact: Fact,
    schema: SchemaRef,
}

/// Columns of facts as they are filled.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Time,
}

impl Fact {
    fn columns(self) -> &'static [(&'static str, Kind)] {
        match self {
            Self::Snapshots => &[
                ("committed_at", Kind::Time),
                ("snapshot_id", Kind::Number),
                ("parent_id", Kind::Number),
                ("operation", Kind::Text),
                ("total_records", Kind::Number),
                ("summary", Kind::Text),
            ],
            Self::History => &[("made_current_at", Kind::Time), ("snapshot_id", Kind::Number)],
            Self::References => {
                &[("name", Kind::Text), ("type", Kind::Text), ("snapshot_id", Kind::Number)]
            }
            Self::Files => &[
                ("file_path", Kind::Text),
                ("partition", Kind::Text),
                ("record_count", Kind::Number),
                ("file_size_in_bytes", Kind::Number),
            ],
            Self::Partitions => &[
                ("partition", Kind::Text),
                ("file_count", Kind::Number),
                ("record_count", Kind::Number),
                ("file_size_in_bytes", Kind::Number),
            ],
        }
    }

    /// Whether it tells values of rows: those of partitions.
    fn tells_values(self) -> bool {
        matches!(self, Self::Files | Self::Partitions)
    }
}

impl TableFacts {
    pub(crate) fn new(table: Table, fact: Fact) -> Self {
        let field = |(name, kind): &(&str, Kind)| {
            let data_type = match kind {
                Kind::Text => DataType::Utf8,
                Kind::Number => DataType::Int64,
                Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            };
            Field::new(*name, data_type, true)
        };
        let fields: Vec<Field> = fact.columns().iter().map(field).collect();
        Self { table, fact, schema: Arc::new(Schema::new(fields)) }
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The rows, for a caller who may see them of the table that has the name now.
    async fn rows(&self, caller: &Caller) -> Result<RecordBatch> {
        let table = self.table.reload().await?;
        match self.fact.tells_values() {
            true => caller.may_select_all(&table)?,
            false => caller.may_see(&table)?,
        }
        let columns =
            match self.fact {
                Fact::Snapshots => snapshots(&table),
                Fact::History => {
                    let history = table.history();
                    vec![
                        times(history.iter().map(|(ms, _)| *ms)),
                        numbers(history.iter().map(|(_, id)| Some(*id))),
                    ]
                }
                Fact::References => {
                    let named = table.named_snapshots()?;
                    vec![
                        texts(named.iter().map(|named| named.name.clone())),
                        texts(named.iter().map(|named| {
                            if named.is_branch { "BRANCH" } else { "TAG" }.to_owned()
                        })),
                        numbers(named.iter().map(|named| Some(named.snapshot_id))),
                    ]
                }
                Fact::Files => files(&table).await?,
                Fact::Partitions => partitions(&table).await?,
            };
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|source| Error::internal("facts do not fit their columns").with_source(source))
    }
}

fn snapshots(table: &Table) -> Vec<ArrayRef> {
    let all = table.snapshots();
    let number = |text: Option<&String>| text.and_then(|text| text.parse().ok());
    let summary =
        |summary: &BTreeMap<String, String>| serde_json::to_string(summary).unwrap_or_default();
    vec![
        times(all.iter().map(|snapshot| snapshot.timestamp_ms)),
        numbers(all.iter().map(|snapshot| Some(snapshot.id))),
        numbers(all.iter().map(|snapshot| snapshot.parent_id)),
        texts(all.iter().map(|snapshot| snapshot.operation.clone())),
        numbers(all.iter().map(|snapshot| number(snapshot.summary.get("total-records")))),
        texts(all.iter().map(|snapshot| summary(&snapshot.summary))),
    ]
}

async fn files(table: &Table) -> Result<Vec<ArrayRef>> {
    let files = table.plan_scan(&Predicate::always()).await?.files;
    Ok(vec![
        texts(files.iter().map(|file| file.location.clone())),
        texts(files.iter().map(|file| file.partition_text.clone())),
        numbers(files.iter().map(|file| i64::try_from(file.rows).ok())),
        numbers(files.iter().map(|file| i64::try_from(file.file_bytes).ok())),
    ])
}

async fn partitions(table: &Table) -> Result<Vec<ArrayRef>> {
    let mut sums = BTreeMap::<String, [u64; 3]>::new();
    for file in table.plan_scan(&Predicate::always()).await?.files {
        let of = sums.entry(file.partition_text.clone()).or_default();
        *of = [of[0] + 1, of[1] + file.rows, of[2] + file.file_bytes];
    }
    let sum = |place: usize| numbers(sums.values().map(|of| i64::try_from(of[place]).ok()));
    Ok(vec![texts(sums.keys().cloned()), sum(0), sum(1), sum(2)])
}

fn texts(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn numbers(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

/// Of milliseconds since 1970-01-01 UTC.
fn times(values: impl Iterator<Item = i64>) -> ArrayRef {
    let micros = values.map(|ms| ms.saturating_mul(1000));
    Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("+00:00"))
}

#[async_trait]
impl TableProvider for TableFacts {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn EngineSession,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let caller = Caller::of(state).map_err(to_datafusion)?;
        let rows = self.rows(&caller).await.map_err(to_datafusion)?;
        plan_batches(&[rows], &self.schema, projection).map_err(to_datafusion)
    }
}
