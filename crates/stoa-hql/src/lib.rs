//! Hypertable's cells and its language HQL, over any store of cells.

pub mod batch;
mod cell;
mod escape;
mod files;
pub mod lang;
mod load;
mod memory;
mod name;
mod output;
mod pattern;
mod read;
pub mod scan;
mod schema;
mod session;
mod shell;
mod store;
mod time_text;
mod timestamp;

pub use batch::{CellBatch, CellBatchBuilder};
pub use cell::{Cell, CellKind, CellRef, FamilyId, WHOLE_ROW};
pub use files::{Files, LocalFiles, NoFiles, ReadFile};
pub use memory::MemoryCells;
pub use name::{NamespacePath, TableName};
pub use output::{BufferOutput, CellFormat, ConsoleOutput, Output};
pub use pattern::Pattern;
pub use read::{
    BUFFER_BYTES_MAX, CellReader, CellStream, Compaction, ReadStep, is_counter_value, read_stream,
};
pub use schema::{
    AccessGroup, AlterAction, ColumnFamily, FAMILIES_MAX, FamilyDefinition, FamilyOptions,
    GroupDefinition, GroupOptions, IndexDefinition, TableDefinitions, TableOptions, TableSchema,
    TimeOrder,
};
pub use session::{Session, SessionOptions};
pub use shell::{EXIT_ERROR, LineSource, ReaderLines, Shell, ShellOptions, TextLines, error_text};
pub use store::{BulkLoad, CellStore, CompactScope, ListingEntry};
pub use time_text::{TimestampFormat, Zone};
pub use timestamp::TimestampSource;
