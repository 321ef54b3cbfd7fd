//! Statements, as they were written.

use crate::schema::{AlterAction, TableDefinitions, TableOptions};

/// A statement of HQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `USE`: another namespace.
    Use(String),
    /// `CREATE NAMESPACE`.
    CreateNamespace {
        /// The namespace.
        name: String,
        /// Whether one that exists is no error.
        if_not_exists: bool,
    },
    /// `DROP NAMESPACE`.
    DropNamespace {
        /// The namespace.
        name: String,
        /// Whether one that does not exist is no error.
        if_exists: bool,
    },
    /// `CREATE TABLE`.
    CreateTable {
        /// The table.
        name: String,
        /// What it is made of.
        source: TableSource,
    },
    /// `ALTER TABLE`.
    AlterTable {
        /// The table.
        name: String,
        /// What changes.
        change: TableChange,
    },
    /// `RENAME TABLE`.
    RenameTable {
        /// The table.
        from: String,
        /// Its new name.
        to: String,
    },
    /// `DROP TABLE`.
    DropTable {
        /// The table.
        name: String,
        /// Whether one that does not exist is no error.
        if_exists: bool,
    },
    /// `EXISTS TABLE`.
    ExistsTable(String),
    /// `DESCRIBE TABLE`.
    DescribeTable {
        /// The table.
        name: String,
        /// Whether generation and ids are shown.
        with_ids: bool,
    },
    /// `SHOW CREATE TABLE`.
    ShowCreateTable(String),
    /// `SHOW TABLES`.
    ShowTables,
    /// `GET LISTING`.
    GetListing,
    /// `INSERT INTO`.
    Insert {
        /// The table.
        table: String,
        /// The cells.
        cells: Vec<InsertCell>,
    },
    /// `DELETE`.
    Delete(Delete),
    /// `SELECT`.
    Select(Select),
    /// `LOAD DATA INFILE`.
    LoadData(LoadData),
    /// `DUMP TABLE`.
    DumpTable(DumpTable),
    /// `COMPACT`.
    Compact(Compact),
    /// `REBUILD INDICES`.
    RebuildIndices {
        /// The table.
        table: String,
        /// Which indices.
        indices: IndexSet,
    },
    /// `SET READONLY=`.
    SetReadonly(bool),
    /// `STATUS`.
    Status,
    /// `WAIT FOR MAINTENANCE`.
    WaitForMaintenance,
    /// `CLOSE`.
    Close,
    /// `HELP`, with what it is asked about.
    Help(String),
    /// Commands to Hypertable's cluster.
    Cluster {
        /// Which.
        command: ClusterCommand,
        /// What follows it.
        arguments: String,
    },
}

/// What a new table is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableSource {
    /// `( … ) …`
    Definitions(TableDefinitions, TableOptions),
    /// `LIKE`: the schema of this table.
    Like(String),
    /// `WITH`: the schema in this file.
    SchemaFile(String),
}

/// What changes in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableChange {
    /// `ADD (…)` and so on, one after the other.
    Actions(Vec<AlterAction>),
    /// `WITH`: to the schema in this file.
    SchemaFile(String),
}

/// A cell of INSERT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertCell {
    /// When, if it says so.
    pub timestamp: Option<String>,
    /// The row.
    pub row: Text,
    /// Family, and qualifier behind a colon.
    pub column: String,
    /// The value.
    pub value: Text,
}

/// Text, or a call that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// As it stands.
    Literal(String),
    /// `GUID()`: a new random identifier.
    Guid,
}

/// `DELETE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// Families, with a qualifier behind a colon or none; empty is the whole row.
    pub columns: Vec<String>,
    /// The table.
    pub table: String,
    /// The row.
    pub row: String,
    /// Which versions.
    pub versions: DeleteVersions,
}

/// Which versions DELETE hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteVersions {
    /// All that exist.
    All,
    /// Those that are not newer than this.
    UpTo(String),
    /// The one with this timestamp.
    Exactly(String),
}

/// `SELECT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    /// `CELLS`: cells that meet a condition on a column, rather than their rows.
    pub cells: bool,
    /// Columns; empty is all.
    pub columns: Vec<ColumnExpr>,
    /// The table.
    pub table: String,
    /// `WHERE`.
    pub conditions: Conditions,
    /// What follows.
    pub options: SelectOptions,
}

/// A column of SELECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnExpr {
    /// The family.
    pub family: String,
    /// Which qualifiers.
    pub qualifier: QualifierExpr,
}

/// Which qualifiers of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QualifierExpr {
    /// `cf` or `cf:*`: all.
    Any,
    /// `cf:q`.
    Exact(String),
    /// `cf:^q`.
    Prefix(String),
    /// `cf:/q/`.
    Regexp(String),
}

/// `WHERE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Rows or cells; all of these must hold.
    pub keys: Vec<KeyCondition>,
    /// `ROW REGEXP`.
    pub row_regexp: Option<String>,
    /// `TIMESTAMP`.
    pub time: Option<Interval<String>>,
    /// `VALUE REGEXP`.
    pub value_regexp: Option<String>,
    /// Conditions on columns.
    pub columns: Vec<ColumnCondition>,
    /// Whether one condition on a column is enough (`OR`).
    pub any_column: bool,
}

/// Rows or cells, one of which must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCondition {
    /// `ROW`.
    Rows(Vec<Interval<String>>),
    /// `CELL`.
    Cells(Vec<Interval<CellExpr>>),
}

/// A place in a table: row and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellExpr {
    /// The row.
    pub row: String,
    /// Family, and qualifier behind a colon.
    pub column: String,
}

/// What `[k relop] X relop k` asks of X.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interval<K> {
    /// `X = k`.
    Equal(K),
    /// `X =^ k`.
    Prefix(K),
    /// `k < X`, `X <= k`, and both.
    Between {
        /// Where it starts.
        start: Option<Limit<K>>,
        /// Where it ends.
        end: Option<Limit<K>>,
    },
}

/// A limit of an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit<K> {
    /// The limit.
    pub key: K,
    /// Whether it belongs to the interval.
    pub inclusive: bool,
}

/// A condition on a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnCondition {
    /// The column.
    pub column: ColumnExpr,
    /// What is asked of its value.
    pub test: ValueTest,
}

/// What is asked of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueTest {
    /// `EXISTS(cf)`.
    Exists,
    /// `cf = v`.
    Equal(String),
    /// `cf =^ v`.
    Prefix(String),
    /// `cf =~ /re/`.
    Regexp(String),
}

/// What follows the conditions of SELECT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectOptions {
    /// `MAX_VERSIONS`.
    pub max_versions: Option<u32>,
    /// `OFFSET`.
    pub row_offset: Option<u64>,
    /// `LIMIT`.
    pub row_limit: Option<u64>,
    /// `CELL_OFFSET`.
    pub cell_offset: Option<u64>,
    /// `CELL_LIMIT`.
    pub cell_limit: Option<u64>,
    /// `CELL_LIMIT_PER_FAMILY`.
    pub cell_limit_per_family: Option<u64>,
    /// `INTO FILE`.
    pub into_file: Option<String>,
    /// `FS`.
    pub field_separator: Option<u8>,
    /// `DISPLAY_TIMESTAMPS`.
    pub display_timestamps: bool,
    /// `DISPLAY_REVISIONS`.
    pub display_revisions: bool,
    /// `KEYS_ONLY`.
    pub keys_only: bool,
    /// `NO_CACHE`.
    pub no_cache: bool,
    /// `NO_ESCAPE`.
    pub no_escape: bool,
    /// `RETURN_DELETES`.
    pub return_deletes: bool,
    /// `SCAN_AND_FILTER_ROWS`.
    pub scan_and_filter_rows: bool,
}

/// `LOAD DATA INFILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadData {
    /// How the file is read.
    pub options: LoadOptions,
    /// The file; `-` is standard input.
    pub source: String,
    /// Where the cells go.
    pub target: LoadTarget,
}

/// Where loaded cells go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadTarget {
    /// `INTO TABLE`.
    Table(String),
    /// `INTO FILE`: one cell per line.
    File(String),
}

/// How a load file is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// `ROW_KEY_COLUMN`; empty is the first column.
    pub row_key_columns: Vec<KeyColumn>,
    /// `TIMESTAMP_COLUMN`.
    pub timestamp_column: Option<String>,
    /// `HEADER_FILE`.
    pub header_file: Option<String>,
    /// `ROW_UNIQUIFY_CHARS`: random characters behind each row key, 0–21.
    pub row_uniquify_chars: u8,
    /// `FS`.
    pub field_separator: Option<u8>,
    /// `DUP_KEY_COLS`.
    pub duplicate_key_columns: bool,
    /// `IGNORE_UNKNOWN_COLUMNS`.
    pub ignore_unknown_columns: bool,
    /// `SINGLE_CELL_FORMAT`.
    pub single_cell_format: bool,
    /// `NO_ESCAPE`.
    pub no_escape: bool,
    /// `NO_LOG`.
    pub no_log: bool,
}

/// A column that is part of the row key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its name in the header.
    pub name: String,
    /// How it is brought to a width.
    pub format: KeyFormat,
}

/// How a part of a row key is brought to a width, in bytes; longer parts stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFormat {
    /// As it is.
    Plain,
    /// `%0n`: to the right, zeros before it.
    ZeroPadded(u8),
    /// `%-n`: to the left, blanks behind it.
    Left(u8),
    /// `%n`: to the right, blanks before it.
    Right(u8),
}

/// `DUMP TABLE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpTable {
    /// The table.
    pub table: String,
    /// `COLUMNS`; empty is all.
    pub columns: Vec<ColumnExpr>,
    /// `WHERE`; no conditions on columns.
    pub conditions: Conditions,
    /// `MAX_VERSIONS`.
    pub max_versions: Option<u32>,
    /// `BUCKETS`.
    pub buckets: Option<u32>,
    /// `INTO FILE`.
    pub into_file: Option<String>,
    /// `FS`.
    pub field_separator: Option<u8>,
    /// `NO_TIMESTAMPS`.
    pub no_timestamps: bool,
    /// `NO_ESCAPE`.
    pub no_escape: bool,
}

/// `COMPACT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compact {
    /// `TYPE`.
    pub kind: Option<CompactKind>,
    /// What is compacted.
    pub target: CompactTarget,
}

/// `TYPE` of COMPACT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactKind {
    /// Fresh cells become files.
    Minor,
    /// All files become one.
    Major,
    /// Small files become one.
    Merging,
    /// Files with much that is hidden are written again.
    Gc,
}

/// What is compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactTarget {
    /// A table, or the part that holds a row.
    Table {
        /// The table.
        name: String,
        /// The row.
        row: Option<String>,
    },
    /// `RANGES`: all tables of these kinds, such as `ALL` and `USER`.
    Ranges(Vec<String>),
}

/// Which indices are rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexSet {
    /// All.
    All,
    /// Those over values.
    Value,
    /// Those over qualifiers.
    Qualifier,
}

/// Commands that Hypertable's cluster knows and Stoa does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterCommand {
    /// Moves ranges between servers.
    Balance,
    /// Stops a range server.
    Stop,
    /// Stops everything.
    Shutdown,
    /// Writes a heap profile.
    Heapcheck,
}
