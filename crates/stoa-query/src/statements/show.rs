//! `SHOW …` and `DESCRIBE`: small tables about tables.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use stoa_external::Definition;
use stoa_orc::Predicate;
use stoa_sql::identity::Identity;
use stoa_table::{DeclaredType, Table};
use stoa_workload::ResourcePlans;

use crate::session::Session;
use crate::settings::shown_name;
use crate::statements::{partitions, resource_plans};
use crate::tables::external::{self, ExternalFiles};
use crate::tables::table::StoaTable;
use stoa_sql::StatementKind;
use stoa_sql::temporary::is_temporary;
use stoa_sql::{ShowStatement, name_parts};

/// A result column: its name, and whether it holds numbers.
type Column = (&'static str, bool);

const TEXT: bool = false;
const NUMBER: bool = true;

/// Columns of the result of a statement that this module answers.
pub(crate) fn schema_of(kind: &StatementKind) -> Option<SchemaRef> {
    match kind {
        StatementKind::Show(show) => Some(schema(&columns(show))),
        _ => None,
    }
}

fn columns(show: &ShowStatement) -> Vec<Column> {
    match show {
        ShowStatement::Tables { .. } => vec![("namespace", TEXT), ("table_name", TEXT)],
        ShowStatement::Schemas { .. } => vec![("namespace", TEXT)],
        ShowStatement::ScriptFiles => vec![("resource", TEXT)],
        ShowStatement::ResourcePlans => {
            vec![("rp_name", TEXT), ("status", TEXT), ("query_parallelism", NUMBER)]
        }
        ShowStatement::ResourcePlan { .. } => vec![("line", TEXT)],
        ShowStatement::ResourcePlanProblems { .. } => vec![("error", TEXT)],
        ShowStatement::Columns { .. } | ShowStatement::Describe { .. } => {
            vec![("column_name", TEXT), ("data_type", TEXT), ("nullable", TEXT), ("comment", TEXT)]
        }
        ShowStatement::PartitionNames { .. } => vec![("partition", TEXT)],
        ShowStatement::CreateTable { .. } => vec![("create_statement", TEXT)],
        ShowStatement::Files { .. } => vec![
            ("file_path", TEXT),
            ("partition", TEXT),
            ("record_count", NUMBER),
            ("file_size_in_bytes", NUMBER),
        ],
        ShowStatement::Partitions { .. } => vec![
            ("partition", TEXT),
            ("files", NUMBER),
            ("record_count", NUMBER),
            ("file_size_in_bytes", NUMBER),
        ],
        ShowStatement::Snapshots { .. } => vec![
            ("snapshot_id", NUMBER),
            ("committed_at", TEXT),
            ("operation", TEXT),
            ("total_records", TEXT),
            ("summary", TEXT),
        ],
        ShowStatement::Setting { name } if name == "all" => {
            vec![("name", TEXT), ("setting", TEXT), ("description", TEXT)]
        }
        ShowStatement::Setting { name } => vec![(shown_name(name).unwrap_or("setting"), TEXT)],
    }
}

fn schema(columns: &[Column]) -> SchemaRef {
    let field = |(name, number): &Column| {
        let data_type = if *number { DataType::Int64 } else { DataType::Utf8 };
        Field::new(*name, data_type, true)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// A cell of a result.
enum Cell {
    Text(String),
    Number(i64),
    Null,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Answers the statement.
pub(crate) async fn run(
    session: &Session,
    show: &ShowStatement,
) -> Result<SendableRecordBatchStream> {
    let rows = match show {
        ShowStatement::Tables { namespace, like } => {
            let namespace = match namespace {
                Some(name) => name_parts(name)?.pop().unwrap_or_default(),
                None => session.namespace(),
            };
            let tables = session.data.warehouse().tables(&namespace).await?;
            let wanted =
                tables.into_iter().filter(|ident| matches_like(&ident.name, like.as_deref()));
            let known = known_tables(session, wanted.collect()).await;
            known.into_iter().map(|ident| vec![ident.namespace.into(), ident.name.into()]).collect()
        }
        ShowStatement::Schemas { like } => {
            let names = session.data.warehouse().namespaces().await?;
            let names = names.into_iter().filter(|name| !is_temporary(name));
            let wanted = names.filter(|name| matches_like(name, like.as_deref()));
            wanted.map(|name| vec![name.into()]).collect()
        }
        ShowStatement::ScriptFiles => {
            session.scripts.files().into_iter().map(|path| vec![path.into()]).collect()
        }
        ShowStatement::ResourcePlans => resource_plan_rows(&resource_plans::all(session).await?),
        ShowStatement::ResourcePlan { name } => {
            text_rows(resource_plans::lines(session, name).await?)
        }
        ShowStatement::ResourcePlanProblems { name } => {
            text_rows(resource_plans::problems(session, name).await?)
        }
        ShowStatement::Columns { table } => {
            column_rows(session, &find_known(session, table).await?)
        }
        ShowStatement::PartitionNames { table, only } => {
            let names = partitions::names(session, table, only).await?;
            names.into_iter().map(|name| vec![name.into()]).collect()
        }
        ShowStatement::Describe { table, extended, partition } => {
            let table = find_known(session, table).await?;
            if !partition.is_empty() {
                partitions::must_exist(session, &table, partition).await?;
            }
            let mut rows = column_rows(session, &table);
            let has_layout = !table.partition_terms().is_empty() || !table.sort_terms().is_empty();
            if *extended || has_layout || !table.identifiers().is_empty() {
                rows.extend(layout_rows(&table, *extended));
            }
            rows
        }
        ShowStatement::CreateTable { table } => {
            let table = find_known(session, table).await?;
            // It names all columns.
            let columns = table.schema();
            if session.caller.known_columns(&table, &columns).len() < columns.fields().len() {
                session.caller.may_select_all(&table)?;
            }
            vec![vec![create_statement(&table).into()]]
        }
        ShowStatement::Files { table } => {
            let table = find_read(session, table).await?;
            match external::is_external(&table) {
                true => external_file_rows(&session.data.as_engine_table(table)).await?,
                false => file_rows(&table).await?,
            }
        }
        ShowStatement::Partitions { table } => {
            let table = find_read(session, table).await?;
            match external::is_external(&table) {
                true => external_partition_rows(&session.data.as_engine_table(table)).await?,
                false => partition_rows(&table).await?,
            }
        }
        ShowStatement::Snapshots { table } => snapshot_rows(&find(session, table).await?),
        ShowStatement::Setting { name } if name == "all" => {
            let settings = session.settings.lock();
            let row = |(name, value, what): (&str, String, &str)| {
                vec![name.into(), value.into(), what.into()]
            };
            settings.all().into_iter().map(row).collect()
        }
        ShowStatement::Setting { name } => vec![vec![setting(session, name)?.into()]],
    };
    batch_stream(&columns(show), rows)
}

fn text_rows(texts: Vec<String>) -> Vec<Vec<Cell>> {
    texts.into_iter().map(|text| vec![text.into()]).collect()
}

fn resource_plan_rows(plans: &ResourcePlans) -> Vec<Vec<Cell>> {
    let row = |plan: &stoa_workload::ResourcePlan| {
        let parallelism = plan.parallelism.map_or(Cell::Null, |most| Cell::Number(most.into()));
        vec![plan.name.as_str().into(), plan.status.name().into(), parallelism]
    };
    plans.iter().map(row).collect()
}

fn setting(session: &Session, name: &str) -> Result<String> {
    if name.starts_with("datafusion.") {
        let state = session.state();
        let entries = state.config_options().entries();
        let found = entries.into_iter().find(|entry| entry.key == name);
        return found.map(|entry| entry.value.unwrap_or_default()).ok_or_else(|| {
            Error::not_found(format!("unrecognized configuration parameter \"{name}\""))
                .with_sqlstate("42704")
        });
    }
    session.setting(name)
}

/// The tables of which the caller may know.
async fn known_tables(session: &Session, idents: Vec<TableIdent>) -> Vec<TableIdent> {
    if session.caller.may_everything() {
        return idents;
    }
    let mut known = Vec::new();
    for ident in idents {
        // One that cannot be read is nobody's.
        if let Ok(table) = session.data.warehouse().table(&ident).await
            && session.caller.may_know(&table)
        {
            known.push(ident);
        }
    }
    known
}

/// A table whose columns are told, as far as they may be known.
pub(super) async fn find_known(
    session: &Session,
    name: &datafusion::sql::sqlparser::ast::ObjectName,
) -> Result<Table> {
    let table = session.data.warehouse().table(&session.table_ident(name)?).await?;
    session.caller.must_know(&table)?;
    Ok(table)
}

async fn find(
    session: &Session,
    name: &datafusion::sql::sqlparser::ast::ObjectName,
) -> Result<Table> {
    let table = session.data.warehouse().table(&session.table_ident(name)?).await?;
    session.caller.may_see(&table)?;
    Ok(table)
}

/// A table whose values are shown.
async fn find_read(
    session: &Session,
    name: &datafusion::sql::sqlparser::ast::ObjectName,
) -> Result<Table> {
    let table = find(session, name).await?;
    session.caller.may_select_all(&table)?;
    Ok(table)
}

fn column_rows(session: &Session, table: &Table) -> Vec<Vec<Cell>> {
    let schema = table.schema();
    let known = session.caller.known_columns(table, &schema);
    let row = |field: &Arc<Field>| {
        let comment = field.metadata().get(stoa_sql::COMMENT_KEY);
        vec![
            field.name().as_str().into(),
            column_type(field).into(),
            if field.is_nullable() { "YES" } else { "NO" }.into(),
            comment.map_or(Cell::Null, |text| text.as_str().into()),
        ]
    };
    let columns = schema.fields().iter().enumerate();
    columns.filter(|(place, _)| known.contains(place)).map(|(_, field)| row(field)).collect()
}

fn layout_rows(table: &Table, extended: bool) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    let mut add = |name: &str, value: String| {
        rows.push(vec![name.into(), value.into(), Cell::Null, Cell::Null]);
    };
    if !table.identifiers().is_empty() {
        add("# primary key (not enforced)", table.identifiers().join(", "));
    }
    add("# partitioned by", joined(&table.partition_terms()));
    add("# ordered by", joined(&table.sort_terms()));
    if extended {
        if let Ok(Some(definition)) = external::definition_of(table) {
            add("# location", definition.location.clone());
            add("# format", format!("external, {}", definition.format.name().to_lowercase()));
            if definition.format.has_lines() {
                add("# serde", definition.serde.class().to_owned());
            }
            for (name, value) in &definition.serde_properties {
                add(&format!("# serde property {name}"), value.clone());
            }
        } else {
            add("# location", table.location().to_owned());
            add("# format", format!("iceberg v{}, orc", table.format_version()));
            let rows = table.row_count();
            add("# rows", rows.map_or_else(|| "unknown".to_owned(), |n| n.to_string()));
        }
        let all = table.properties().into_iter();
        for (name, value) in all.filter(|(name, _)| !Definition::is_own_property(name)) {
            add(&format!("# property {name}"), value.clone());
        }
    }
    rows
}

async fn file_rows(table: &Table) -> Result<Vec<Vec<Cell>>> {
    let plan = table.plan_scan(&Predicate::always()).await?;
    let row = |file: Arc<stoa_table::ScanFile>| {
        vec![
            file.location.as_str().into(),
            file.partition_text.as_str().into(),
            file.rows.into(),
            file.file_bytes.into(),
        ]
    };
    Ok(plan.files.into_iter().map(row).collect())
}

async fn partition_rows(table: &Table) -> Result<Vec<Vec<Cell>>> {
    let plan = table.plan_scan(&Predicate::always()).await?;
    let mut partitions = std::collections::BTreeMap::<String, (u64, u64, u64)>::new();
    for file in plan.files {
        let sums = partitions.entry(file.partition_text.clone()).or_default();
        *sums = (sums.0 + 1, sums.1 + file.rows, sums.2 + file.file_bytes);
    }
    let row = |(name, (files, rows, bytes)): (String, (u64, u64, u64))| {
        vec![name.into(), files.into(), rows.into(), bytes.into()]
    };
    Ok(partitions.into_iter().map(row).collect())
}

/// Of external tables, nobody counts the rows.
async fn external_file_rows(table: &StoaTable) -> Result<Vec<Vec<Cell>>> {
    let files = ExternalFiles::of(table)?;
    let mut rows = Vec::new();
    for partition in files.partitions(&external::partition_columns(&table.table)).await? {
        for file in files.files(&partition).await? {
            let place = files.location.literal_of(&file.path);
            let name = partition.name.as_str().into();
            rows.push(vec![place.into(), name, Cell::Null, file.bytes.into()]);
        }
    }
    Ok(rows)
}

async fn external_partition_rows(table: &StoaTable) -> Result<Vec<Vec<Cell>>> {
    let files = ExternalFiles::of(table)?;
    let mut rows = Vec::new();
    for partition in files.partitions(&external::partition_columns(&table.table)).await? {
        let found = files.files(&partition).await?;
        let bytes: u64 = found.iter().map(|file| file.bytes).sum();
        let count = found.len() as u64;
        rows.push(vec![partition.name.into(), count.into(), Cell::Null, bytes.into()]);
    }
    Ok(rows)
}

fn snapshot_rows(table: &Table) -> Vec<Vec<Cell>> {
    let row = |snapshot: stoa_table::SnapshotInfo| {
        let at = chrono::DateTime::from_timestamp_millis(snapshot.timestamp_ms);
        let text = |key: &str| snapshot.summary.get(key).map_or(Cell::Null, |v| v.as_str().into());
        let summary: Vec<String> =
            snapshot.summary.iter().map(|(key, value)| format!("{key}={value}")).collect();
        vec![
            Cell::Number(snapshot.id),
            at.map_or(Cell::Null, |at| at.to_rfc3339().into()),
            snapshot.operation.as_str().into(),
            text("total-records"),
            summary.join(", ").into(),
        ]
    };
    table.snapshots().into_iter().map(row).collect()
}

/// A statement that makes a table like this one.
fn create_statement(table: &Table) -> String {
    let quoted = |name: &str| match is_plain_name(name) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    };
    let defaults = table.defaults();
    let column = |field: &Arc<Field>| {
        let default = defaults.get(field.name());
        let default = default.map_or_else(String::new, |text| match Identity::of_default(text) {
            Some((identity, _)) => format!(" {}", identity.clause()),
            None => format!(" DEFAULT {text}"),
        });
        let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
        let comment = field.metadata().get(stoa_sql::COMMENT_KEY);
        let comment = comment
            .map_or_else(String::new, |text| format!(" COMMENT '{}'", text.replace('\'', "''")));
        format!("  {} {}{not_null}{default}{comment}", quoted(field.name()), column_type(field))
    };
    let mut columns: Vec<String> = table.schema().fields().iter().map(column).collect();
    let key: Vec<String> = table.identifiers().iter().map(|name| quoted(name)).collect();
    if !key.is_empty() {
        columns.push(format!("  PRIMARY KEY ({})", key.join(", ")));
    }
    let ident = table.ident();
    let definition = external::definition_of(table).ok().flatten();
    // Partition columns of external tables are declared where the partitions are.
    let partitions = table.partition_terms().len();
    let of_partitions = match &definition {
        Some(_) => columns.split_off(columns.len().saturating_sub(partitions)),
        None => Vec::new(),
    };
    let mut text = format!(
        "CREATE {}TABLE {}.{} (\n{}\n)",
        if definition.is_some() { "EXTERNAL " } else { "" },
        quoted(&ident.namespace),
        quoted(&ident.name),
        columns.join(",\n")
    );
    if !of_partitions.is_empty() {
        text.push_str(&format!("\nPARTITIONED BY (\n{}\n)", of_partitions.join(",\n")));
    } else if !table.partition_terms().is_empty() {
        text.push_str(&format!("\nPARTITIONED BY ({})", joined(&table.partition_terms())));
    }
    if let Some(definition) = &definition {
        text.push_str(&file_clauses(definition));
    }
    if !table.sort_terms().is_empty() {
        text.push_str(&format!("\nORDER BY ({})", joined(&table.sort_terms())));
    }
    let properties: Vec<String> = table
        .properties()
        .iter()
        .filter(|(key, _)| !Definition::is_own_property(key))
        .map(|(key, value)| format!("  '{key}' = '{}'", value.replace('\'', "''")))
        .collect();
    if !properties.is_empty() {
        text.push_str(&format!("\nTBLPROPERTIES (\n{}\n)", properties.join(",\n")));
    }
    text
}

/// The clauses of an external table that say where and what its files are.
fn file_clauses(definition: &Definition) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut text = String::new();
    if definition.format.has_lines() {
        text.push_str(&format!("\nROW FORMAT SERDE {}", quoted(definition.serde.class())));
        let properties = definition.serde_properties.iter();
        let properties: Vec<String> = properties
            .map(|(key, value)| format!("  {} = {}", quoted(key), quoted(value)))
            .collect();
        if !properties.is_empty() {
            text.push_str(&format!("\nWITH SERDEPROPERTIES (\n{}\n)", properties.join(",\n")));
        }
    }
    text.push_str(&format!("\nSTORED AS {}", definition.format.name()));
    text.push_str(&format!("\nLOCATION {}", quoted(&definition.location)));
    text
}

fn is_plain_name(name: &str) -> bool {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    starts_well && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn joined(terms: &[impl ToString]) -> String {
    terms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The type of a column as it was declared.
fn column_type(field: &Field) -> String {
    match DeclaredType::of(field) {
        Some(DeclaredType::Varchar(None)) => "varchar".to_owned(),
        Some(DeclaredType::Varchar(Some(length))) => format!("varchar({length})"),
        Some(DeclaredType::Char(length)) => format!("char({length})"),
        Some(DeclaredType::SmallInt) => "smallint".to_owned(),
        None => sql_type(field.data_type()),
    }
}

/// The SQL name of a column's type, as `CREATE TABLE` takes it.
pub fn sql_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 | DataType::Int16 | DataType::Int32 => "integer".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float32 => "real".to_owned(),
        DataType::Float64 => "double precision".to_owned(),
        of if *of == stoa_semantics::NUMERIC => "numeric".to_owned(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("decimal({precision}, {scale})")
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytea".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Time64(_) => "time".to_owned(),
        DataType::Timestamp(_, None) => "timestamp".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone".to_owned(),
        DataType::FixedSizeBinary(16) => "uuid".to_owned(),
        DataType::FixedSizeBinary(bytes) => format!("fixed({bytes})"),
        DataType::List(item) => format!("array<{}>", sql_type(item.data_type())),
        DataType::Struct(fields) => {
            let field = |f: &Arc<Field>| format!("{} {}", f.name(), sql_type(f.data_type()));
            format!("struct<{}>", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                let types: Vec<String> = fields.iter().map(|f| sql_type(f.data_type())).collect();
                format!("map({})", types.join(", "))
            }
            other => format!("map<{other}>"),
        },
        other => other.to_string(),
    }
}

/// SQL's LIKE with `%` and `_`; no pattern takes everything. `*` is `%`, as in Hive.
fn matches_like(name: &str, pattern: Option<&str>) -> bool {
    fn matches(name: &[char], pattern: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('%' | '*', rest)) => (0..=name.len()).any(|skip| matches(&name[skip..], rest)),
            Some(('_', rest)) => !name.is_empty() && matches(&name[1..], rest),
            Some((c, rest)) => name.first() == Some(c) && matches(&name[1..], rest),
        }
    }
    pattern.is_none_or(|pattern| {
        let (name, pattern): (Vec<char>, Vec<char>) =
            (name.chars().collect(), pattern.chars().collect());
        pattern.len() <= 256 && matches(&name, &pattern)
    })
}

fn batch_stream(columns: &[Column], rows: Vec<Vec<Cell>>) -> Result<SendableRecordBatchStream> {
    let mut rows = rows;
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for (index, (_, number)) in columns.iter().enumerate() {
        let cells = rows.iter_mut().map(|row| match row.get_mut(index) {
            Some(cell) => std::mem::replace(cell, Cell::Null),
            None => Cell::Null,
        });
        arrays.push(match number {
            true => Arc::new(cells.map(cell_number).collect::<Int64Array>()),
            false => Arc::new(cells.map(cell_text).collect::<StringArray>()),
        });
    }
    let schema = schema(columns);
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)
        .map_err(|e| Error::internal("cannot make a result").with_source(e))?;
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter([Ok(batch)]))))
}

fn cell_number(cell: Cell) -> Option<i64> {
    match cell {
        Cell::Number(number) => Some(number),
        _ => None,
    }
}

fn cell_text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text),
        Cell::Number(number) => Some(number.to_string()),
        Cell::Null => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_knows_both_wildcards() {
        assert!(matches_like("ad_report", Some("ad%")));
        assert!(matches_like("ad_report", Some("ad_report")));
        assert!(matches_like("ad_report", Some("*port")));
        assert!(!matches_like("ad_report", Some("report")));
        assert!(matches_like("anything", None));
    }

    #[test]
    fn types_are_named_as_create_table_takes_them() {
        let list = DataType::List(Arc::new(Field::new("element", DataType::Int64, true)));
        assert_eq!(sql_type(&list), "array<bigint>");
        assert_eq!(sql_type(&DataType::Decimal128(10, 2)), "decimal(10, 2)");
    }
}
