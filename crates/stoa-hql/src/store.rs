//! What HQL needs of whoever keeps the cells: [`CellStore`].
//!
//! A store knows namespaces, tables with their schemas, and cells. It is not asked to know HQL:
//! statements come to it as schemas, batches and [`ScanSpec`]s. [`MemoryCells`](crate::MemoryCells)
//! is the smallest one.
//!
//! **What a store promises**
//! - When a call that changes something returns, the change is durable and every later call sees
//!   it. A call that fails changed nothing.
//! - A scan sees one state of the table: that of some moment after the call.
//! - Of two writes of cells that are equal in everything but the value, the later one is seen.
//! - The root namespace exists.
//! - Errors have the words of [`errors`], because scripts and tests compare them.
//!
//! Not here: the text of statements (`lang`), what they mean (`session`).

pub mod errors;

use std::sync::Arc;

use async_trait::async_trait;
use stoa_error::Result;

use crate::batch::CellBatch;
use crate::lang::ast::CompactKind;
use crate::name::{NamespacePath, TableName};
use crate::read::CellStream;
use crate::scan::ScanSpec;
use crate::schema::TableSchema;
use crate::timestamp::TimestampSource;

/// Something in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListingEntry {
    /// Its name there.
    pub name: String,
    /// Whether it is a namespace rather than a table.
    pub is_namespace: bool,
}

/// What is compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactScope {
    /// A table, or what holds one of its rows.
    Table {
        /// The table.
        table: TableName,
        /// The row.
        row: Option<Vec<u8>>,
    },
    /// All tables.
    Everything,
}

/// Keeps cells. See the module's doc for what it promises.
///
/// Errors that every method may return besides its own:
/// [`Unavailable`](stoa_error::ErrorKind::Unavailable) and
/// [`Exhausted`](stoa_error::ErrorKind::Exhausted), which may go away.
#[async_trait]
pub trait CellStore: Send + Sync {
    /// The source of timestamps for cells that are written without one. Its `now_ns` is also the
    /// moment by which a scan decides which cells are too old.
    fn timestamps(&self) -> &TimestampSource;

    /// Whether the namespace exists.
    async fn namespace_exists(&self, namespace: &NamespacePath) -> Result<bool>;

    /// Makes a namespace.
    ///
    /// # Errors
    /// [`AlreadyExists`](stoa_error::ErrorKind::AlreadyExists), also if a table has the name;
    /// [`NotFound`](stoa_error::ErrorKind::NotFound) if the namespace above does not exist.
    async fn create_namespace(&self, namespace: &NamespacePath) -> Result<()>;

    /// Drops a namespace.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound);
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) if something is in it, or it is the root.
    async fn drop_namespace(&self, namespace: &NamespacePath) -> Result<()>;

    /// What is in a namespace, by name.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound).
    async fn listing(&self, namespace: &NamespacePath) -> Result<Vec<ListingEntry>>;

    /// The schema of a table; none if there is no such table.
    async fn schema(&self, table: &TableName) -> Result<Option<Arc<TableSchema>>>;

    /// Makes a table.
    ///
    /// # Errors
    /// [`AlreadyExists`](stoa_error::ErrorKind::AlreadyExists), also if a namespace has the name;
    /// [`NotFound`](stoa_error::ErrorKind::NotFound) if its namespace does not exist.
    async fn create_table(&self, table: &TableName, schema: TableSchema) -> Result<()>;

    /// Gives a table another schema, one generation on from the one it has.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound);
    /// [`Conflict`](stoa_error::ErrorKind::Conflict) if it has another generation by now.
    async fn alter_table(&self, table: &TableName, schema: TableSchema) -> Result<()>;

    /// Gives a table another name, perhaps in another namespace.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound),
    /// [`AlreadyExists`](stoa_error::ErrorKind::AlreadyExists).
    async fn rename_table(&self, from: &TableName, to: &TableName) -> Result<()>;

    /// Drops a table with its cells.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound).
    async fn drop_table(&self, table: &TableName) -> Result<()>;

    /// Writes cells, in any order; values and markers.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound).
    async fn mutate(&self, table: &TableName, cells: CellBatch) -> Result<()>;

    /// Begins to write many cells at once. `logged` says whether they should go the way of small
    /// writes, too, rather than straight into files; a store may then let a load that is too large for
    /// one write become visible piece by piece.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound).
    async fn bulk_load(&self, table: &TableName, logged: bool) -> Result<Box<dyn BulkLoad>>;

    /// The cells that `spec` asks for, in the order of cells.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound); later, in the stream,
    /// [`Corrupt`](stoa_error::ErrorKind::Corrupt) and what a
    /// [`CellReader`](crate::CellReader) returns.
    async fn scan(&self, table: &TableName, spec: ScanSpec) -> Result<CellStream>;

    /// Compacts, or makes sure that it is done soon; none lets the store choose how.
    ///
    /// # Errors
    /// [`NotFound`](stoa_error::ErrorKind::NotFound).
    async fn compact(&self, scope: CompactScope, kind: Option<CompactKind>) -> Result<()>;

    /// Waits until compactions and the like that are due are done.
    async fn wait_for_maintenance(&self) -> Result<()>;

    /// Refuses cells ([`mutate`](Self::mutate), [`bulk_load`](Self::bulk_load)) from now on, or takes
    /// them again. Namespaces and tables can be changed all the same, and compacted. Lasts until it is
    /// changed.
    async fn set_readonly(&self, readonly: bool) -> Result<()>;
}

/// Cells that become visible together, when [`finish`](Self::finish) returns. Dropping it instead
/// leaves the table as it was. (Of large loads that are logged, pieces may have become visible; see
/// [`CellStore::bulk_load`].)
#[async_trait]
pub trait BulkLoad: Send {
    /// Adds cells, in any order; of equal cells the later one stays.
    ///
    /// # Errors
    /// Those of [`CellStore`]; the load cannot be finished then.
    async fn write(&mut self, cells: CellBatch) -> Result<()>;

    /// Ends the load early: how many of its cells are visible and stay.
    async fn abandon(&mut self) -> u64;

    /// Makes all of the cells durable and visible.
    ///
    /// # Errors
    /// Those of [`CellStore`]; none of the cells is visible then.
    async fn finish(self: Box<Self>) -> Result<()>;
}
