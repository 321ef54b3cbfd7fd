//! What there is: catalogs, namespaces, tables, keys; the answers' columns are the specification's.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_flight::sql::{
    Command, CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_error::{Error, ErrorKind, Result};
use stoa_query::{DATABASE, Engine, Session, plain_schema, sql_columns, sql_type};
use stoa_table::TableIdent;

use crate::not_built::not_built;
use crate::{sql_info, type_info};

/// The only kind of table there is.
const TABLE: &str = "TABLE";
/// Where clients look for a column's SQL type and comment.
const TYPE_NAME_KEY: &str = "ARROW:FLIGHT:SQL:TYPE_NAME";
const REMARKS_KEY: &str = "ARROW:FLIGHT:SQL:REMARKS";
const PRECISION_KEY: &str = "ARROW:FLIGHT:SQL:PRECISION";
const SCALE_KEY: &str = "ARROW:FLIGHT:SQL:SCALE";
/// Where a column's comment is kept among its field's metadata.
const COMMENT_KEY: &str = "comment";

/// The columns of the answer to a metadata command; `None` for any other command.
///
/// # Errors
/// Internal: the answer cannot be built.
pub(crate) fn schema_of(command: &Command) -> Result<Option<SchemaRef>> {
    Ok(Some(match command.clone() {
        Command::CommandGetCatalogs(command) => command.into_builder().schema(),
        Command::CommandGetDbSchemas(command) => command.into_builder().schema(),
        Command::CommandGetTables(command) => command.into_builder().schema(),
        Command::CommandGetTableTypes(command) => command.into_builder().schema(),
        Command::CommandGetSqlInfo(_) => sql_info::data()?.schema(),
        Command::CommandGetXdbcTypeInfo(_) => type_info::data()?.schema(),
        Command::CommandGetPrimaryKeys(_) => primary_keys(),
        Command::CommandGetExportedKeys(_)
        | Command::CommandGetImportedKeys(_)
        | Command::CommandGetCrossReference(_) => foreign_keys(),
        _ => return Ok(None),
    }))
}

/// The answer to a metadata command; `None` for any other command.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) async fn answer(
    engine: &Engine,
    session: &Session,
    command: Command,
) -> Result<Option<RecordBatch>> {
    let empty = schema_of(&command)?.map(RecordBatch::new_empty);
    match command {
        Command::CommandGetCatalogs(command) => catalogs(command).map(Some),
        Command::CommandGetDbSchemas(command) => namespaces(engine, command).await.map(Some),
        Command::CommandGetTables(command) => tables(engine, session, command).await.map(Some),
        Command::CommandGetTableTypes(command) => table_types(command).map(Some),
        Command::CommandGetSqlInfo(command) => {
            command.into_builder(sql_info::data()?).build().map(Some).map_err(not_built)
        }
        Command::CommandGetXdbcTypeInfo(command) => {
            command.into_builder(type_info::data()?).build().map(Some).map_err(not_built)
        }
        // There are no keys.
        _ => Ok(empty),
    }
}

fn catalogs(command: CommandGetCatalogs) -> Result<RecordBatch> {
    let mut builder = command.into_builder();
    builder.append(DATABASE);
    builder.build().map_err(not_built)
}

async fn namespaces(engine: &Engine, command: CommandGetDbSchemas) -> Result<RecordBatch> {
    let mut builder = command.into_builder();
    for namespace in engine.namespaces().await? {
        builder.append(DATABASE, namespace);
    }
    builder.build().map_err(not_built)
}

fn table_types(command: CommandGetTableTypes) -> Result<RecordBatch> {
    let mut builder = command.into_builder();
    builder.append(TABLE);
    builder.build().map_err(not_built)
}

/// The tables that match, of which the session's user may know; only those are read whose columns are
/// wanted, unless rights must be asked.
async fn tables(
    engine: &Engine,
    session: &Session,
    command: CommandGetTables,
) -> Result<RecordBatch> {
    let knows_all = session.may_everything().await?;
    let warehouse = engine.warehouse();
    let include_schema = command.include_schema;
    let mut builder = CommandGetTables { include_schema: false, ..command }.into_builder();
    for ident in engine.tables().await? {
        // One that cannot be read is nobody's.
        if !knows_all {
            match warehouse.table(&ident).await {
                Ok(table) if session.may_know_table(&table).await? => {}
                _ => continue,
            }
        }
        builder
            .append(DATABASE, &ident.namespace, &ident.name, TABLE, &Schema::empty())
            .map_err(not_built)?;
    }
    let names = builder.build().map_err(not_built)?;
    if !include_schema {
        return Ok(names);
    }
    let mut builder = CommandGetTables { include_schema, ..Default::default() }.into_builder();
    let (namespaces, tables) = (names.column(1).as_string::<i32>(), names.column(2));
    for (namespace, table) in namespaces.iter().zip(tables.as_string::<i32>()) {
        let (Some(namespace), Some(table)) = (namespace, table) else { continue };
        let table = match warehouse.table(&TableIdent::new(namespace, table)).await {
            // Dropped meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            other => other?,
        };
        // A table whose columns of cells cannot be read must not hide the others.
        let columns = sql_columns(&table).unwrap_or_else(|_| table.schema());
        let known: Vec<usize> = session.known_columns(&table, &columns).into_iter().collect();
        let columns = columns
            .project(&known)
            .map_err(|e| Error::internal("columns cannot be chosen").with_source(e))?;
        let (ident, schema) = (table.ident(), described(&columns));
        builder
            .append(DATABASE, &ident.namespace, &ident.name, TABLE, &schema)
            .map_err(not_built)?;
    }
    builder.build().map_err(not_built)
}

/// Columns in types that every client reads, with what clients show of them.
pub(crate) fn described(schema: &Schema) -> SchemaRef {
    let plain = plain_schema(schema);
    let fields = plain.fields().iter().map(|field| {
        let mut metadata = field.metadata().clone();
        metadata.insert(TYPE_NAME_KEY.to_owned(), sql_type(field.data_type()));
        if let Some(comment) = field.metadata().get(COMMENT_KEY) {
            metadata.insert(REMARKS_KEY.to_owned(), comment.clone());
        }
        if let DataType::Decimal128(precision, scale) = field.data_type() {
            metadata.insert(PRECISION_KEY.to_owned(), precision.to_string());
            metadata.insert(SCALE_KEY.to_owned(), scale.to_string());
        }
        field.as_ref().clone().with_metadata(metadata)
    });
    SchemaRef::new(Schema::new(fields.collect::<Vec<Field>>()))
}

fn primary_keys() -> SchemaRef {
    SchemaRef::new(Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_name", DataType::Utf8, true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

fn foreign_keys() -> SchemaRef {
    SchemaRef::new(Schema::new(vec![
        Field::new("pk_catalog_name", DataType::Utf8, true),
        Field::new("pk_db_schema_name", DataType::Utf8, true),
        Field::new("pk_table_name", DataType::Utf8, false),
        Field::new("pk_column_name", DataType::Utf8, false),
        Field::new("fk_catalog_name", DataType::Utf8, true),
        Field::new("fk_db_schema_name", DataType::Utf8, true),
        Field::new("fk_table_name", DataType::Utf8, false),
        Field::new("fk_column_name", DataType::Utf8, false),
        Field::new("key_sequence", DataType::Int32, false),
        Field::new("fk_key_name", DataType::Utf8, true),
        Field::new("pk_key_name", DataType::Utf8, true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}
