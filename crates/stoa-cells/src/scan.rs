//! Reading: fresh cells and files as sorted inputs of one merge.
//!
//! ```text
//! pushdown ─► predicate ─► files that may hold cells ─► chains of files that do not overlap ─┐
//! fresh rows of the same moment ─► wanted rows, sorted ──────────────────────────────────────┼─► CellReader
//!                                                                                            ┘
//! ```
//! In: a table with its fresh rows, a [`ScanSpec`]. Out: the cells that it asks for.
//!
//! **Invariants:** memory is bounded by [`scan_memory_bytes`](crate::CellOptions::scan_memory_bytes)
//! and a few batches per chain, however large the files are. What is left out beforehand is only what
//! [`ScanSpec::pushdown`] allows. Nothing more is read once nobody takes the answer.
//!
//! Not here: which of the cells are seen (`stoa-hql`).

mod chain;
mod file;
mod fresh;
mod predicate;

use std::sync::Arc;

use futures::StreamExt;
use stoa_error::Result;
use stoa_hql::scan::{Pushdown, ScanSpec};
use stoa_hql::{CellReader, CellStream, TableSchema, read_stream};

use crate::layout::{REVISION, ROW_BYTES};
use crate::state::Inner;
use crate::table::{CellSnapshot, CellTable};
use chain::chains;
use file::ReadPlan;
use stoa_hql::batch::VALUE;

/// Encoded bytes that are read of a chain at a time, at least and at most.
const WINDOW_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=8 << 20;

/// Answers `spec` from one state of a table.
pub(crate) async fn scan(
    inner: &Arc<Inner>,
    snapshot: CellSnapshot,
    spec: ScanSpec,
) -> Result<CellStream> {
    let CellSnapshot { cells, fresh } = snapshot;
    let pushdown = spec.pushdown(&cells.schema);
    let mut inputs = file_inputs(inner, &cells, &spec, &pushdown).await?;
    if let Some(fresh) = fresh {
        inputs.extend(fresh::inputs(&fresh, &pushdown));
    }
    let now_ns = inner.options.timestamps.now_ns();
    let reader = CellReader::new(&cells.schema, &spec, now_ns, inputs.len());
    Ok(read_stream(reader, inputs))
}

async fn file_inputs(
    inner: &Arc<Inner>,
    cells: &CellTable,
    spec: &ScanSpec,
    pushdown: &Pushdown,
) -> Result<Vec<CellStream>> {
    let predicate = predicate::predicate(&cells.layout, pushdown)?;
    let plan = cells.table.plan_scan(&predicate).await?;
    plan.check_plain()?;
    let chains = chains(plan.files, &cells.layout)?;
    let share = inner.options.scan_memory_bytes as u64 / (2 * chains.len().max(1) as u64);
    let read = Arc::new(ReadPlan {
        layout: cells.layout.clone(),
        predicate,
        picks_rows: predicate::picks_rows(pushdown),
        is_merged: chains.len() > 1,
        without: columns_nobody_wants(spec, &cells.schema),
        window_bytes: share.clamp(*WINDOW_BYTES.start(), *WINDOW_BYTES.end()),
        sort_bytes_max: inner.options.scan_memory_bytes,
    });
    Ok(chains.into_iter().map(|chain| chain.stream(inner, &read)).collect())
}

/// Values are not read where only keys are asked for and nothing depends on them.
fn columns_nobody_wants(spec: &ScanSpec, schema: &TableSchema) -> Vec<&'static str> {
    let counts = schema.living().any(|family| family.options.is_counter());
    let tested = spec.value_pattern.is_some() || !spec.predicates.is_empty();
    if spec.keys_only && !tested && !counts { vec![VALUE] } else { Vec::new() }
}

/// Columns that a file need not be asked for because it holds nothing but NULL in them.
fn optional_columns() -> [&'static str; 2] {
    [ROW_BYTES, REVISION]
}

/// A stream that ends with its first error.
fn fused(
    stream: impl futures::Stream<Item = Result<stoa_hql::CellBatch>> + Send + 'static,
) -> CellStream {
    stream.boxed()
}
