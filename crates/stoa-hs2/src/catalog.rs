//! What there is: databases, tables, columns, functions, for calls and for Hive's own statements.
//!
//! All of it is asked of the session, in SQL: so a client is told of what its role may know. Types of columns are those of
//! a plan that reads them.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, SchemaRef};
use stoa_error::{Error, ErrorKind, Result};
use stoa_query::{Engine, Outcome, Session};

use crate::column_type::{ColumnType, comment, type_name};
use crate::dialect::{DEFAULT_DATABASE, database_of, literal, namespace_of, quoted};
use crate::like::{matches, matches_hive};
use crate::small_table::{Cell, Of, small_table};

/// Columns of GetSchemas (`GetSchemasOperation.java`; the others likewise).
const SCHEMAS: [(&str, Of); 2] = [("TABLE_SCHEM", Of::Text), ("TABLE_CATALOG", Of::Text)];
const TABLES: [(&str, Of); 10] = [
    ("TABLE_CAT", Of::Text),
    ("TABLE_SCHEM", Of::Text),
    ("TABLE_NAME", Of::Text),
    ("TABLE_TYPE", Of::Text),
    ("REMARKS", Of::Text),
    ("TYPE_CAT", Of::Text),
    ("TYPE_SCHEM", Of::Text),
    ("TYPE_NAME", Of::Text),
    ("SELF_REFERENCING_COL_NAME", Of::Text),
    ("REF_GENERATION", Of::Text),
];
const COLUMNS: [(&str, Of); 23] = [
    ("TABLE_CAT", Of::Text),
    ("TABLE_SCHEM", Of::Text),
    ("TABLE_NAME", Of::Text),
    ("COLUMN_NAME", Of::Text),
    ("DATA_TYPE", Of::Int),
    ("TYPE_NAME", Of::Text),
    ("COLUMN_SIZE", Of::Int),
    ("BUFFER_LENGTH", Of::TinyInt),
    ("DECIMAL_DIGITS", Of::Int),
    ("NUM_PREC_RADIX", Of::Int),
    ("NULLABLE", Of::Int),
    ("REMARKS", Of::Text),
    ("COLUMN_DEF", Of::Text),
    ("SQL_DATA_TYPE", Of::Int),
    ("SQL_DATETIME_SUB", Of::Int),
    ("CHAR_OCTET_LENGTH", Of::Int),
    ("ORDINAL_POSITION", Of::Int),
    ("IS_NULLABLE", Of::Text),
    ("SCOPE_CATALOG", Of::Text),
    ("SCOPE_SCHEMA", Of::Text),
    ("SCOPE_TABLE", Of::Text),
    ("SOURCE_DATA_TYPE", Of::SmallInt),
    ("IS_AUTO_INCREMENT", Of::Text),
];
const FUNCTIONS: [(&str, Of); 6] = [
    ("FUNCTION_CAT", Of::Text),
    ("FUNCTION_SCHEM", Of::Text),
    ("FUNCTION_NAME", Of::Text),
    ("REMARKS", Of::Text),
    ("FUNCTION_TYPE", Of::Int),
    ("SPECIFIC_NAME", Of::Text),
];
const PRIMARY_KEYS: [(&str, Of); 6] = [
    ("TABLE_CAT", Of::Text),
    ("TABLE_SCHEM", Of::Text),
    ("TABLE_NAME", Of::Text),
    ("COLUMN_NAME", Of::Text),
    ("KEY_SEQ", Of::Int),
    ("PK_NAME", Of::Text),
];
const CROSS_REFERENCE: [(&str, Of); 14] = [
    ("PKTABLE_CAT", Of::Text),
    ("PKTABLE_SCHEM", Of::Text),
    ("PKTABLE_NAME", Of::Text),
    ("PKCOLUMN_NAME", Of::Text),
    ("FKTABLE_CAT", Of::Text),
    ("FKTABLE_SCHEM", Of::Text),
    ("FKTABLE_NAME", Of::Text),
    ("FKCOLUMN_NAME", Of::Text),
    ("KEY_SEQ", Of::Int),
    ("UPDATE_RULE", Of::Int),
    ("DELETE_RULE", Of::Int),
    ("FK_NAME", Of::Text),
    ("PK_NAME", Of::Text),
    ("DEFERRABILITY", Of::Int),
];
const DESCRIPTION: [(&str, Of); 3] =
    [("col_name", Of::Text), ("data_type", Of::Text), ("comment", Of::Text)];

const TABLE: &str = "TABLE";
const VIEW: &str = "VIEW";
/// A function whose result is no table (`java.sql.DatabaseMetaData.functionNoTable`).
const NO_TABLE: i32 = 1;

/// A table or view.
struct Relation {
    namespace: String,
    name: String,
    is_view: bool,
}

impl Relation {
    /// Its kind, as JDBC calls it.
    fn kind(&self) -> &'static str {
        if self.is_view { VIEW } else { TABLE }
    }

    fn full_name(&self) -> String {
        format!("{}.{}", quoted(&self.namespace), quoted(&self.name))
    }
}

/// A pattern of a call: what is left out stands for everything; impyla writes `.*`, as Hive takes it.
fn is_wanted(pattern: Option<&str>, name: &str) -> bool {
    let is_all = |pattern: &str| matches!(pattern, "" | "*" | ".*");
    pattern.is_none_or(|pattern| is_all(pattern) || matches(pattern, name))
}

/// Names of the databases that match a pattern of Hive; the default one first.
///
/// # Errors
/// The catalog's.
pub(crate) async fn databases(engine: &Engine, like: Option<&str>) -> Result<Vec<String>> {
    let namespaces = engine.namespaces().await?;
    let mut names: Vec<_> = namespaces.iter().map(|name| database_of(name).to_owned()).collect();
    names.retain(|name| like.is_none_or(|pattern| matches_hive(pattern, name)));
    names.sort_by_key(|name| (name != DEFAULT_DATABASE, name.clone()));
    Ok(names)
}

/// Names of tables and views that match a pattern of Hive.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) async fn table_names(
    session: &Session,
    namespace: &str,
    like: Option<&str>,
    only_views: bool,
) -> Result<Vec<String>> {
    let mut relations = relations(session, Some(namespace)).await?;
    relations.retain(|one| one.is_view || !only_views);
    let names = relations.into_iter().map(|one| one.name);
    Ok(names.filter(|name| like.is_none_or(|pattern| matches_hive(pattern, name))).collect())
}

/// The answer to GetSchemas.
///
/// # Errors
/// The catalog's.
pub(crate) async fn schemas(engine: &Engine, pattern: Option<&str>) -> Result<RecordBatch> {
    let names = databases(engine, None).await?;
    let wanted = names.into_iter().filter(|name| is_wanted(pattern, name));
    let rows: Vec<_> = wanted.map(|name| vec![name.into(), "".into()]).collect();
    small_table(&SCHEMAS, &rows)
}

/// The answer to GetTables.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) async fn tables(
    engine: &Engine,
    session: &Session,
    schema: Option<&str>,
    table: Option<&str>,
    kinds: Option<&[String]>,
) -> Result<RecordBatch> {
    let is_kind = |kind: &str| {
        kinds.is_none_or(|kinds| {
            kinds.is_empty() || kinds.iter().any(|one| one.eq_ignore_ascii_case(kind))
        })
    };
    let found = matching(engine, session, schema, table).await?;
    let rows: Vec<_> = found
        .iter()
        .filter(|one| is_kind(one.kind()))
        .map(|one| {
            let database = database_of(&one.namespace);
            vec!["".into(), database.into(), one.name.as_str().into(), one.kind().into(), "".into()]
        })
        .collect();
    small_table(&TABLES, &rows)
}

/// The answer to GetTableTypes.
///
/// # Errors
/// None but Internal.
pub(crate) fn table_types() -> Result<RecordBatch> {
    small_table(&[("TABLE_TYPE", Of::Text)], &[vec![TABLE.into()], vec![VIEW.into()]])
}

/// The answer to GetCatalogs: Hive has none.
///
/// # Errors
/// None but Internal.
pub(crate) fn catalogs() -> Result<RecordBatch> {
    small_table(&[("TABLE_CAT", Of::Text)], &[])
}

/// The answer to GetPrimaryKeys: keys of tables are not enforced, and not told.
///
/// # Errors
/// None but Internal.
pub(crate) fn primary_keys() -> Result<RecordBatch> {
    small_table(&PRIMARY_KEYS, &[])
}

/// The answer to GetCrossReference: there are no foreign keys.
///
/// # Errors
/// None but Internal.
pub(crate) fn cross_reference() -> Result<RecordBatch> {
    small_table(&CROSS_REFERENCE, &[])
}

/// The answer to GetColumns.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) async fn columns(
    engine: &Engine,
    session: &Session,
    schema: Option<&str>,
    table: Option<&str>,
    column: Option<&str>,
) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for relation in matching(engine, session, schema, table).await? {
        let Some(known) = known_columns(session, &relation).await? else { continue };
        for (field, position) in known.fields().iter().zip(1..) {
            if is_wanted(column, field.name()) {
                rows.push(column_row(&relation, field, position));
            }
        }
    }
    small_table(&COLUMNS, &rows)
}

fn column_row(relation: &Relation, field: &arrow_schema::Field, position: i32) -> Vec<Cell> {
    let of = ColumnType::of(field);
    let is_number = of.decimal_digits().is_some() && of.jdbc_type() != 93;
    let nullable = if field.is_nullable() { "YES" } else { "NO" };
    vec![
        Cell::Null,
        database_of(&relation.namespace).into(),
        relation.name.as_str().into(),
        field.name().as_str().into(),
        of.jdbc_type().into(),
        type_name(field).to_uppercase().into(),
        of.column_size().into(),
        Cell::Null,
        of.decimal_digits().into(),
        is_number.then_some(10).into(),
        i32::from(field.is_nullable()).into(),
        comment(field).unwrap_or_default().into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        position.into(),
        nullable.into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        "NO".into(),
    ]
}

/// The answer to GetFunctions.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) async fn functions(session: &Session, pattern: Option<&str>) -> Result<RecordBatch> {
    let sql = "SELECT DISTINCT proname FROM pg_catalog.pg_proc ORDER BY proname";
    let names = texts(session, sql).await?.into_iter().filter_map(|mut row| row.swap_remove(0));
    let wanted = names.filter(|name| is_wanted(pattern, name));
    let row = |name: String| {
        vec![Cell::Null, Cell::Null, name.as_str().into(), "".into(), NO_TABLE.into(), name.into()]
    };
    let rows: Vec<_> = wanted.map(row).collect();
    small_table(&FUNCTIONS, &rows)
}

/// The answer to DESCRIBE; `None` where there is no such table.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) async fn describe(
    session: &Session,
    namespace: &str,
    table: &str,
    is_detailed: bool,
) -> Result<Option<RecordBatch>> {
    let (namespace, name) = (namespace.to_owned(), table.to_owned());
    let relation = Relation { namespace, name, is_view: false };
    let Some(columns) = known_columns(session, &relation).await? else { return Ok(None) };
    let line = |name: &str, of: &str, comment: &str| vec![name.into(), of.into(), comment.into()];
    let mut rows: Vec<Vec<Cell>> = columns
        .fields()
        .iter()
        .map(|field| line(field.name(), &type_name(field), comment(field).unwrap_or_default()))
        .collect();
    let layout = layout(session, &relation, is_detailed).await?;
    let partitions = layout.iter().find(|(name, _)| name == "partitioned by");
    if let Some((_, terms)) = partitions {
        rows.push(line("", "", ""));
        rows.push(line("# Partition Information", "", ""));
        rows.push(line("# col_name", "data_type", "comment"));
        for field in columns.fields().iter().filter(|field| is_in_terms(terms, field.name())) {
            rows.push(line(field.name(), &type_name(field), ""));
        }
    }
    if is_detailed {
        rows.push(line("", "", ""));
        rows.push(line("# Detailed Table Information", "", ""));
        rows.push(line("Database:", database_of(&relation.namespace), ""));
        rows.extend(layout.iter().map(|(name, value)| line(&format!("{name}:"), value, "")));
    }
    small_table(&DESCRIPTION, &rows).map(Some)
}

/// Whether a list of partition terms, such as `day, bucket(8, account)`, is of the column.
fn is_in_terms(terms: &str, column: &str) -> bool {
    let words = terms.split(|char: char| !(char.is_alphanumeric() || char == '_'));
    words.into_iter().any(|word| word == column)
}

/// What Stoa's own DESCRIBE says besides columns: how a table is partitioned, ordered and stored. A view has none.
async fn layout(
    session: &Session,
    relation: &Relation,
    is_detailed: bool,
) -> Result<Vec<(String, String)>> {
    let extended = if is_detailed { "EXTENDED " } else { "" };
    let sql = format!("DESCRIBE {extended}{}", relation.full_name());
    let rows = match texts(session, &sql).await {
        Err(error) if error.kind() != ErrorKind::Internal => return Ok(Vec::new()),
        rows => rows?,
    };
    let told = rows.into_iter().filter_map(|row| {
        let mut cells = row.into_iter();
        let (name, value) = (cells.next()??, cells.next()??);
        let name = name.strip_prefix("# ")?.to_owned();
        (!value.is_empty()).then_some((name, value))
    });
    Ok(told.collect())
}

/// Tables and views that match patterns of JDBC, in databases that are listed.
async fn matching(
    engine: &Engine,
    session: &Session,
    schema: Option<&str>,
    table: Option<&str>,
) -> Result<Vec<Relation>> {
    let namespaces = engine.namespaces().await?;
    // Most clients ask for one database, or one table.
    let one =
        schema.filter(|pattern| !pattern.is_empty() && !pattern.contains(['%', '_', '*', '\\']));
    let mut found = relations(session, one.map(namespace_of)).await?;
    found.retain(|relation| {
        namespaces.contains(&relation.namespace)
            && is_wanted(schema, database_of(&relation.namespace))
            && is_wanted(table, &relation.name)
    });
    Ok(found)
}

async fn relations(session: &Session, namespace: Option<&str>) -> Result<Vec<Relation>> {
    let only = namespace.map(|name| format!("WHERE table_schema = {} ", literal(name)));
    let sql = format!(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables {}ORDER BY 1, 2",
        only.unwrap_or_default()
    );
    let rows = texts(session, &sql).await?.into_iter().filter_map(|row| {
        let [Some(namespace), Some(name), kind] = <[_; 3]>::try_from(row).ok()? else {
            return None;
        };
        let is_view = kind.is_some_and(|kind| kind.contains(VIEW));
        Some(Relation { namespace, name, is_view })
    });
    Ok(rows.collect())
}

/// The columns of a table of which the session's role may know; `None` where there are none.
async fn known_columns(session: &Session, relation: &Relation) -> Result<Option<SchemaRef>> {
    let sql = format!(
        "SELECT column_name FROM information_schema.columns \
         WHERE table_schema = {} AND table_name = {} ORDER BY ordinal_position",
        literal(&relation.namespace),
        literal(&relation.name)
    );
    let names = texts(session, &sql).await?.into_iter().filter_map(|mut row| row.swap_remove(0));
    let names: Vec<_> = names.map(|name| quoted(&name)).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let sql = format!("SELECT {} FROM {}", names.join(", "), relation.full_name());
    let Some(statement) = session.parse_sql(&sql).await?.pop() else { return Ok(None) };
    match session.prepare(statement, Vec::new()).await {
        Ok(prepared) => Ok(prepared.schema()),
        // Dropped meanwhile, or a view of what is not there any more: it must not hide the others.
        Err(_) => Ok(None),
    }
}

/// All rows of a statement of Stoa's SQL, as texts.
pub(crate) async fn texts(session: &Session, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
    let Outcome::Rows(rows) = session.stoa_sql(sql).await? else { return Ok(Vec::new()) };
    let mut texts = Vec::new();
    for batch in rows.collect().await? {
        let as_text = |column: &arrow_array::ArrayRef| cast(column, &DataType::Utf8);
        let columns = batch.columns().iter().map(as_text).collect::<Result<Vec<_>, _>>();
        let columns = columns
            .map_err(|e| Error::internal("a column of a catalog is no text").with_source(e))?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| {
                let column = column.as_string::<i32>();
                column.is_valid(row).then(|| column.value(row).to_owned())
            });
            texts.push(cells.collect());
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_terms_name_columns() {
        assert!(is_in_terms("day, bucket(8, account)", "account"));
        assert!(!is_in_terms("day, bucket(8, account)", "count"));
        assert!(is_wanted(None, "x") && is_wanted(Some(""), "x") && is_wanted(Some("x%"), "xy"));
    }
}
