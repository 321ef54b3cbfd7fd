//! Statements as HQL.

use std::fmt::{self, Display, Formatter};

use super::ast::{
    CellExpr, ClusterCommand, ColumnCondition, ColumnExpr, Compact, CompactKind, CompactTarget,
    Conditions, Delete, DeleteVersions, DumpTable, IndexSet, InsertCell, Interval, KeyColumn,
    KeyCondition, KeyFormat, Limit, LoadData, LoadOptions, LoadTarget, QualifierExpr, Select,
    SelectOptions, Statement, TableChange, TableSource, Text, ValueTest,
};
use crate::schema::{
    AlterAction, GroupDefinition, IndexDefinition, TableDefinitions, TableOptions,
    family_options_text, group_options_text, name_text,
};

/// Text in the quotes that it does not hold; a literal of HQL never holds both.
fn quoted(text: &str) -> String {
    if text.contains('"') { format!("'{text}'") } else { format!("\"{text}\"") }
}

fn joined<T>(items: &[T], separator: &str, text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(separator)
}

fn names(names: &[String]) -> String {
    joined(names, ", ", |name| name_text(name))
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let flag = |on: &bool, text: &'static str| if *on { text } else { "" };
        match self {
            Self::Use(name) => write!(f, "USE {}", name_text(name)),
            Self::CreateNamespace { name, if_not_exists } => {
                let end = flag(if_not_exists, " IF NOT EXISTS");
                write!(f, "CREATE NAMESPACE {}{end}", name_text(name))
            }
            Self::DropNamespace { name, if_exists } => {
                let which = flag(if_exists, "IF EXISTS ");
                write!(f, "DROP NAMESPACE {which}{}", name_text(name))
            }
            Self::CreateTable { name, source } => {
                write!(f, "CREATE TABLE {} {source}", name_text(name))
            }
            Self::AlterTable { name, change } => {
                write!(f, "ALTER TABLE {} {change}", name_text(name))
            }
            Self::RenameTable { from, to } => {
                write!(f, "RENAME TABLE {} TO {}", name_text(from), name_text(to))
            }
            Self::DropTable { name, if_exists } => {
                write!(f, "DROP TABLE {}{}", flag(if_exists, "IF EXISTS "), name_text(name))
            }
            Self::ExistsTable(name) => write!(f, "EXISTS TABLE {}", name_text(name)),
            Self::DescribeTable { name, with_ids } => {
                write!(f, "DESCRIBE TABLE {}{}", flag(with_ids, "WITH IDS "), name_text(name))
            }
            Self::ShowCreateTable(name) => write!(f, "SHOW CREATE TABLE {}", name_text(name)),
            Self::ShowTables => f.write_str("SHOW TABLES"),
            Self::GetListing => f.write_str("GET LISTING"),
            Self::Insert { table, cells } => {
                let cells = joined(cells, ", ", InsertCell::to_string);
                write!(f, "INSERT INTO {} VALUES {cells}", name_text(table))
            }
            Self::Delete(delete) => delete.fmt(f),
            Self::Select(select) => select.fmt(f),
            Self::LoadData(load) => load.fmt(f),
            Self::DumpTable(dump) => dump.fmt(f),
            Self::Compact(compact) => compact.fmt(f),
            Self::RebuildIndices { table, indices } => {
                let which = match indices {
                    IndexSet::All => "",
                    IndexSet::Value => "VALUE ",
                    IndexSet::Qualifier => "QUALIFIER ",
                };
                write!(f, "REBUILD {which}INDICES {}", name_text(table))
            }
            Self::SetReadonly(on) => write!(f, "SET READONLY={on}"),
            Self::Status => f.write_str("STATUS"),
            Self::WaitForMaintenance => f.write_str("WAIT FOR MAINTENANCE"),
            Self::Close => f.write_str("CLOSE"),
            Self::Help(topic) => f.write_str(format!("HELP {topic}").trim_end()),
            Self::Cluster { command, arguments } => {
                f.write_str(format!("{command} {arguments}").trim_end())
            }
        }
    }
}

impl Display for ClusterCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Balance => "BALANCE",
            Self::Stop => "STOP",
            Self::Shutdown => "SHUTDOWN",
            Self::Heapcheck => "HEAPCHECK",
        })
    }
}

impl Display for TableSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Like(name) => write!(f, "LIKE {}", name_text(name)),
            Self::SchemaFile(file) => write!(f, "WITH {}", quoted(file)),
            Self::Definitions(definitions, options) => {
                write!(f, "{}{}", definitions_text(definitions), table_options_text(options))
            }
        }
    }
}

fn table_options_text(options: &TableOptions) -> String {
    let interval = options.group_commit_interval_ms;
    let mut text = interval.map_or(String::new(), |ms| format!(" GROUP_COMMIT_INTERVAL {ms}"));
    text.push_str(&group_options_text(&options.group));
    text.push_str(&family_options_text(&options.family));
    text
}

fn definitions_text(definitions: &TableDefinitions) -> String {
    let TableDefinitions { families, indices, groups } = definitions;
    let family = families.iter().map(|family| {
        format!("{}{}", name_text(&family.name), family_options_text(&family.options))
    });
    let index = indices.iter().map(|IndexDefinition { family, of_qualifiers }| {
        let kind = if *of_qualifiers { "QUALIFIER INDEX" } else { "INDEX" };
        format!("{kind} {}", name_text(family))
    });
    let all: Vec<String> = family.chain(index).chain(groups.iter().map(group_text)).collect();
    format!("({})", all.join(", "))
}

fn group_text(group: &GroupDefinition) -> String {
    let options = group_options_text(&group.options);
    let defaults = family_options_text(&group.family_defaults);
    let name = name_text(&group.name);
    format!("ACCESS GROUP {name} ({}){options}{defaults}", names(&group.families))
}

impl Display for TableChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::SchemaFile(file) => write!(f, "WITH {}", quoted(file)),
            Self::Actions(actions) => f.write_str(&joined(actions, " ", action_text)),
        }
    }
}

fn action_text(action: &AlterAction) -> String {
    match action {
        AlterAction::Add(definitions) => format!("ADD {}", definitions_text(definitions)),
        AlterAction::Modify(definitions) => format!("MODIFY {}", definitions_text(definitions)),
        AlterAction::DropFamilies(list) => format!("DROP ({})", names(list)),
        AlterAction::DropValueIndex(list) => format!("DROP INDEX ({})", names(list)),
        AlterAction::DropQualifierIndex(list) => format!("DROP QUALIFIER INDEX ({})", names(list)),
        AlterAction::RenameFamily { from, to } => {
            format!("RENAME COLUMN FAMILY ({}, {})", name_text(from), name_text(to))
        }
    }
}

impl Display for InsertCell {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = |text: &Text| match text {
            Text::Literal(text) => quoted(text),
            Text::Guid => "GUID()".to_owned(),
        };
        let time = self.timestamp.as_ref().map_or(String::new(), |t| format!("{}, ", quoted(t)));
        let (row, column) = (text(&self.row), quoted(&self.column));
        write!(f, "({time}{row}, {column}, {})", text(&self.value))
    }
}

impl Display for Delete {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let columns = match self.columns.is_empty() {
            true => "*".to_owned(),
            false => joined(&self.columns, ", ", |column| quoted(column)),
        };
        let (table, row) = (name_text(&self.table), quoted(&self.row));
        write!(f, "DELETE {columns} FROM {table} WHERE ROW = {row}")?;
        match &self.versions {
            DeleteVersions::All => Ok(()),
            DeleteVersions::UpTo(time) => write!(f, " TIMESTAMP {}", quoted(time)),
            DeleteVersions::Exactly(time) => write!(f, " VERSION {}", quoted(time)),
        }
    }
}

fn columns_text(columns: &[ColumnExpr]) -> String {
    if columns.is_empty() { "*".to_owned() } else { joined(columns, ", ", column_text) }
}

fn column_text(column: &ColumnExpr) -> String {
    let family = quoted(&column.family);
    match &column.qualifier {
        // Behind a colon all the same: a quoted name may hold one.
        QualifierExpr::Any if column.family.contains(':') => format!("{family}:*"),
        QualifierExpr::Any => name_text(&column.family),
        QualifierExpr::Exact(qualifier) => format!("{family}:{}", quoted(qualifier)),
        QualifierExpr::Prefix(prefix) => format!("{family}:^{}", quoted(prefix)),
        QualifierExpr::Regexp(regexp) => format!("{family}:{}", slashed(regexp)),
    }
}

fn slashed(regexp: &str) -> String {
    format!("/{}/", regexp.replace('/', "\\/"))
}

/// A regular expression where quotes are as good as slashes.
fn regexp_text(regexp: &str) -> String {
    if regexp.contains('"') && regexp.contains('\'') { slashed(regexp) } else { quoted(regexp) }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cells = if self.cells { "CELLS " } else { "" };
        let (columns, table) = (columns_text(&self.columns), name_text(&self.table));
        write!(f, "SELECT {cells}{columns} FROM {table}{}{}", self.conditions, self.options)
    }
}

impl Display for Conditions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.keys.iter().map(KeyCondition::to_string).collect();
        parts.extend(self.row_regexp.iter().map(|re| format!("ROW REGEXP {}", regexp_text(re))));
        let time = self.time.iter();
        parts.extend(time.map(|time| interval_text("TIMESTAMP", time, |text| quoted(text))));
        let value = self.value_regexp.iter();
        parts.extend(value.map(|re| format!("VALUE REGEXP {}", regexp_text(re))));
        let columns: Vec<String> = self.columns.iter().map(condition_text).collect();
        match self.any_column {
            true => parts.push(format!("({})", columns.join(" OR "))),
            false => parts.extend(columns),
        }
        match parts.is_empty() {
            true => Ok(()),
            false => write!(f, " WHERE {}", parts.join(" AND ")),
        }
    }
}

impl Display for KeyCondition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cell = |cell: &CellExpr| format!("{}, {}", quoted(&cell.row), quoted(&cell.column));
        let all = match self {
            Self::Rows(rows) => {
                joined(rows, " OR ", |row| interval_text("ROW", row, |text| quoted(text)))
            }
            Self::Cells(cells) => joined(cells, " OR ", |i| interval_text("CELL", i, cell)),
        };
        write!(f, "({all})")
    }
}

fn interval_text<K>(what: &str, interval: &Interval<K>, key: impl Fn(&K) -> String) -> String {
    let relation = |limit: &Limit<K>, with: &'static str, without: &'static str| {
        if limit.inclusive { with } else { without }
    };
    match interval {
        Interval::Equal(equal) => format!("{what} = {}", key(equal)),
        Interval::Prefix(prefix) => format!("{what} =^ {}", key(prefix)),
        Interval::Between { start: Some(start), end: Some(end) } => {
            let (left, right) = (relation(start, "<=", "<"), relation(end, "<=", "<"));
            format!("{} {left} {what} {right} {}", key(&start.key), key(&end.key))
        }
        Interval::Between { start: Some(start), end: None } => {
            format!("{what} {} {}", relation(start, ">=", ">"), key(&start.key))
        }
        Interval::Between { start: None, end: Some(end) } => {
            format!("{what} {} {}", relation(end, "<=", "<"), key(&end.key))
        }
        Interval::Between { start: None, end: None } => String::new(),
    }
}

fn condition_text(condition: &ColumnCondition) -> String {
    let column = match (&condition.column.qualifier, condition.column.family.contains(':')) {
        (QualifierExpr::Any, false) => quoted(&condition.column.family),
        _ => column_text(&condition.column),
    };
    match &condition.test {
        ValueTest::Exists => format!("EXISTS({column})"),
        ValueTest::Equal(value) => format!("{column} = {}", quoted(value)),
        ValueTest::Prefix(value) => format!("{column} =^ {}", quoted(value)),
        ValueTest::Regexp(regexp) => format!("{column} =~ {}", regexp_text(regexp)),
    }
}

impl Display for SelectOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(versions) = self.max_versions {
            write!(f, " MAX_VERSIONS {versions}")?;
        }
        let counts = [
            (" OFFSET", self.row_offset),
            (" LIMIT", self.row_limit),
            (" CELL_OFFSET", self.cell_offset),
            (" CELL_LIMIT", self.cell_limit),
            (" CELL_LIMIT_PER_FAMILY", self.cell_limit_per_family),
        ];
        for (word, count) in counts {
            if let Some(count) = count {
                write!(f, "{word} {count}")?;
            }
        }
        let flags = [
            (" DISPLAY_TIMESTAMPS", self.display_timestamps),
            (" DISPLAY_REVISIONS", self.display_revisions),
            (" KEYS_ONLY", self.keys_only),
            (" NO_CACHE", self.no_cache),
            (" NO_ESCAPE", self.no_escape),
            (" RETURN_DELETES", self.return_deletes),
            (" SCAN_AND_FILTER_ROWS", self.scan_and_filter_rows),
        ];
        write_flags(f, &flags)?;
        write_file(f, self.into_file.as_ref(), self.field_separator)
    }
}

fn write_flags(f: &mut Formatter<'_>, flags: &[(&str, bool)]) -> fmt::Result {
    flags.iter().filter(|(_, on)| *on).try_for_each(|(word, _)| f.write_str(word))
}

fn write_file(f: &mut Formatter<'_>, file: Option<&String>, separator: Option<u8>) -> fmt::Result {
    if let Some(separator) = separator {
        f.write_str(&separator_text(separator))?;
    }
    match file {
        Some(file) => write!(f, " INTO FILE {}", quoted(file)),
        None => Ok(()),
    }
}

fn separator_text(separator: u8) -> String {
    match separator {
        b'\t' => " FS='\\t'".to_owned(),
        separator => format!(" FS={}", quoted(&char::from(separator).to_string())),
    }
}

impl Display for LoadData {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "LOAD DATA INFILE{} {} INTO ", self.options, quoted(&self.source))?;
        match &self.target {
            LoadTarget::Table(name) => write!(f, "TABLE {}", name_text(name)),
            LoadTarget::File(file) => write!(f, "FILE {}", quoted(file)),
        }
    }
}

impl Display for LoadOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.row_key_columns.is_empty() {
            let columns = joined(&self.row_key_columns, "+", key_column_text);
            write!(f, " ROW_KEY_COLUMN={columns}")?;
        }
        if let Some(column) = &self.timestamp_column {
            write!(f, " TIMESTAMP_COLUMN={}", quoted(column))?;
        }
        if let Some(file) = &self.header_file {
            write!(f, " HEADER_FILE={}", quoted(file))?;
        }
        if self.row_uniquify_chars > 0 {
            write!(f, " ROW_UNIQUIFY_CHARS={}", self.row_uniquify_chars)?;
        }
        if let Some(separator) = self.field_separator {
            f.write_str(&separator_text(separator))?;
        }
        let flags = [
            (" DUP_KEY_COLS", self.duplicate_key_columns),
            (" IGNORE_UNKNOWN_COLUMNS", self.ignore_unknown_columns),
            (" SINGLE_CELL_FORMAT", self.single_cell_format),
            (" NO_ESCAPE", self.no_escape),
            (" NO_LOG", self.no_log),
        ];
        write_flags(f, &flags)
    }
}

fn key_column_text(column: &KeyColumn) -> String {
    let name = &column.name;
    quoted(&match column.format {
        KeyFormat::Plain if name.starts_with('%') => format!("\\{name}"),
        KeyFormat::Plain => name.clone(),
        KeyFormat::ZeroPadded(width) => format!("%0{width}{name}"),
        KeyFormat::Left(width) => format!("%-{width}{name}"),
        KeyFormat::Right(width) => format!("%{width}{name}"),
    })
}

impl Display for DumpTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "DUMP TABLE {}", name_text(&self.table))?;
        if !self.columns.is_empty() {
            write!(f, " COLUMNS {}", columns_text(&self.columns))?;
        }
        write!(f, "{}", self.conditions)?;
        if let Some(versions) = self.max_versions {
            write!(f, " MAX_VERSIONS {versions}")?;
        }
        if let Some(buckets) = self.buckets {
            write!(f, " BUCKETS {buckets}")?;
        }
        let flags = [(" NO_TIMESTAMPS", self.no_timestamps), (" NO_ESCAPE", self.no_escape)];
        write_flags(f, &flags)?;
        write_file(f, self.into_file.as_ref(), self.field_separator)
    }
}

impl Display for Compact {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            None => "COMPACT",
            Some(CompactKind::Minor) => "COMPACT TYPE=MINOR",
            Some(CompactKind::Major) => "COMPACT TYPE=MAJOR",
            Some(CompactKind::Merging) => "COMPACT TYPE=MERGING",
            Some(CompactKind::Gc) => "COMPACT TYPE=GC",
        })?;
        match &self.target {
            CompactTarget::Ranges(kinds) => write!(f, " RANGES {}", kinds.join("|")),
            CompactTarget::Table { name, row } => {
                let row = row.as_ref().map_or(String::new(), |row| format!(" {}", quoted(row)));
                write!(f, " TABLE {}{row}", name_text(name))
            }
        }
    }
}
