//! Tables of cells as SQL sees them.
//!
//! | name | rows | columns |
//! |---|---|---|
//! | `t` | one per row key | `row`, and one per family: the newest value |
//! | `t$cells` | one per cell that can be seen, newest first | `row`, `family`, `qualifier`, `timestamp`, `timestamp_ns`, `value` |
//! | `t$raw` | one per cell that was written, delete markers too | those of the data files |
//!
//! In: filters on rows, families and times, which become a [`ScanSpec`](stoa_hql::scan::ScanSpec).
//! Out: Arrow batches. **Invariant:** what cells are seen is decided by `stoa-hql` alone; filters only
//! narrow what is read. Keys and values that are not UTF-8 are shown with replacement characters.
//!
//! Not here: merging and pruning (`stoa-cells`), the language that writes cells (`stoa-hql`).

mod filter;
mod history;
mod pivot;
mod scan;
mod unreadable;
mod view;

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::TableSource;
use stoa_catalog::TableIdent;
use stoa_cells::CellTables;
use stoa_error::{Error, Result};
use stoa_table::Table;

use history::CellHistory;
use unreadable::Unreadable;
use view::CellView;

/// Behind the name of a table: its cells one by one.
const CELLS: &str = "$cells";

/// Behind the name of a table: what its data files hold.
const RAW: &str = "$raw";

/// Name of the column with the row key.
const ROW: &str = "row";

/// How a table of cells is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Cells,
    Raw,
}

/// The table and the form that a name asks for.
pub(crate) fn split_name(name: &str) -> Option<(&str, Form)> {
    let cells = name.strip_suffix(CELLS).map(|table| (table, Form::Cells));
    cells.or_else(|| name.strip_suffix(RAW).map(|table| (table, Form::Raw)))
}

/// A table of cells with a column per family; `None` if it holds no cells. Where its schema of cells cannot
/// be read, a table that says so when it is read.
pub(crate) fn view(cells: &CellTables, table: &Table) -> Option<Arc<dyn TableProvider>> {
    match stoa_cells::schema_of(table) {
        Ok(None) => None,
        Ok(Some(schema)) => Some(Arc::new(CellView::new(cells.clone(), table.clone(), &schema))),
        Err(_) => Some(Arc::new(Unreadable::new(table.clone()))),
    }
}

/// The columns that [`view`] has; `None` if the table holds no cells.
///
/// # Errors
/// `Corrupt` where the table's schema of cells cannot be read.
pub(crate) fn view_columns(table: &Table) -> Result<Option<SchemaRef>> {
    Ok(stoa_cells::schema_of(table)?.map(|schema| view::columns(&schema).0))
}

/// The columns that a table's rows have in SQL: its own, or a table of cells' as SQL sees it.
///
/// # Errors
/// `Corrupt` where the table's schema of cells cannot be read.
pub fn sql_columns(table: &Table) -> Result<SchemaRef> {
    Ok(view_columns(table)?.unwrap_or_else(|| table.schema()))
}

/// The cells of a table one by one; `None` if it holds no cells.
///
/// # Errors
/// As [`view_columns`].
pub(crate) fn history(cells: &CellTables, table: &Table) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(schema) = stoa_cells::schema_of(table)? else { return Ok(None) };
    Ok(Some(Arc::new(CellHistory::new(cells.clone(), table.clone(), schema))))
}

/// Refuses rows from SQL for a table of cells, whose versions and markers SQL does not know.
///
/// # Errors
/// `Unsupported` (42809) for a table of cells.
pub(crate) fn refuse_rows(table: &Table) -> Result<()> {
    match table.property(stoa_cells::KIND_PROPERTY) {
        Some(kind) if kind == stoa_cells::KIND_CELLS => Err(holds_cells(table.ident())),
        _ => Ok(()),
    }
}

/// As [`refuse_rows`], for what a plan names.
///
/// # Errors
/// As [`refuse_rows`].
pub(crate) fn refuse_source(source: &Arc<dyn TableSource>) -> Result<()> {
    let Ok(provider) = source_as_provider(source) else { return Ok(()) };
    let any = provider.as_ref() as &dyn Any;
    table_behind(any).map_or(Ok(()), |table| Err(holds_cells(table.ident())))
}

/// The table of cells that a provider shows, if it shows one.
pub(crate) fn table_behind(provider: &dyn Any) -> Option<&Table> {
    let view = provider.downcast_ref::<CellView>().map(CellView::table);
    view.or_else(|| provider.downcast_ref::<CellHistory>().map(CellHistory::table))
}

fn holds_cells(ident: &TableIdent) -> Error {
    Error::unsupported(format!("{ident} is a table of cells, which SQL reads and HQL writes"))
        .with_sqlstate("42809")
        .with_hint("write cells with `stoa hql` or POST /v1/hql: INSERT, LOAD DATA INFILE, DELETE")
}
