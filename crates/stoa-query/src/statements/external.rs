//! `CREATE EXTERNAL TABLE`, and `INSERT OVERWRITE DIRECTORY`.
//!
//! In: what a statement says of files. Out: a table whose properties hold its definition, or files. Who defines one
//! must be a superuser, and the directory one of `file_access`; reading and writing then go by rights on the table.
//!
//! Not here: scans and sinks (`tables::external`), what clauses there are (`stoa-sql`).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder};
use stoa_error::{Error, ErrorKind, Result};
use stoa_external::{Definition, FileFormat, Serde, WriteTarget};
use stoa_sql::{AlterAction, CreateTableStatement, ExternalFiles, WriteDirectoryStatement};
use stoa_table::{DECLARED_TYPE_KEY, DEFAULT_KEY, Table, TableSpec, Transform};

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::allowed::check as check_plan;
use crate::statements::columns::{cast_to, named, storable_schema};
use crate::statements::outcome::count_written;
use crate::tables::external::{self, DirectoryTarget, Overwrite, OverwriteTarget};
use crate::tables::properties;
use crate::tables::table::StoaTable;
use stoa_semantics::errors::from_datafusion;

/// Defines an external table.
///
/// # Errors
/// 42501 for who may not, 0A000 and 22023 for what cannot be followed, 42P07 for a name that is taken.
pub(crate) async fn create(
    session: &Session,
    table: &CreateTableStatement,
    files: &ExternalFiles,
) -> Result<Completion> {
    let ident = session.table_ident(&table.name)?;
    session.caller.must_be_superuser("create tables")?;
    let own = table.properties.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    properties::check(own)?;
    let properties: BTreeMap<String, String> = table.properties.iter().cloned().collect();
    let definition = definition(session, files)?;
    definition.check(&properties)?;
    let mut all = definition.properties();
    all.extend(properties);
    // A user's property says whether the directory is the same on all machines.
    let known = Definition::of(|key| all.get(key).map(String::as_str), || all.clone())?;
    if let Some(known) = known {
        external::refuse_elsewhere(&known, &ident, session.data.member())?;
    }
    let schema = columns(table, &definition)?;
    let spec = TableSpec {
        partition_by: table.partition_by.clone(),
        properties: all,
        comment: table.comment.clone(),
        ..TableSpec::new(schema)
    };
    match session.data.warehouse().create_table(&ident, spec).await {
        Ok(_) => Ok(Completion::of("CREATE TABLE")),
        Err(error) if table.if_not_exists && error.kind() == ErrorKind::AlreadyExists => {
            Ok(Completion::of("CREATE TABLE").with_notice(format!("{error}, skipping")))
        }
        Err(error) => Err(error),
    }
}

/// What a statement says of files, checked.
fn definition(session: &Session, files: &ExternalFiles) -> Result<Definition> {
    let location = files.location.as_deref().unwrap_or_default();
    let access = &session.engine_options().file_access;
    let warehouse = session.data.warehouse();
    let location = external::location_of(location, access, warehouse.location())?;
    // Other schemes are refused here, not when rows are read.
    warehouse.stores().resolve(&location)?;
    let format = match &files.stored_as {
        Some(name) => Some(FileFormat::of_name(name)?),
        None => None,
    };
    let serde = match &files.serde {
        Some(class) => Serde::of_class(class)?,
        None => None,
    };
    let class = files.serde.as_deref().unwrap_or_default();
    let of_serde = [("OrcSerde", FileFormat::Orc), ("ParquetHiveSerDe", FileFormat::Parquet)];
    let of_serde = of_serde.into_iter().find(|(name, _)| class.ends_with(name)).map(|(_, of)| of);
    let format = format.or(of_serde).unwrap_or(FileFormat::Text);
    let is_at_odds = match of_serde {
        Some(of) => of != format,
        None => (files.is_delimited || serde.is_some()) && !format.has_lines(),
    };
    if is_at_odds {
        return Err(Error::invalid(format!(
            "ROW FORMAT and STORED AS {} do not go together",
            format.name()
        ))
        .with_sqlstate("42601")
        .with_hint("ROW FORMAT says how lines of TEXTFILE and SEQUENCEFILE are written"));
    }
    Ok(Definition {
        location,
        format,
        serde: serde.unwrap_or(Serde::Delimited),
        serde_properties: files.serde_properties.iter().cloned().collect(),
        header_lines: 0,
        is_shared: false,
        dropped: Vec::new(),
    })
}

/// The columns of an external table: those of its files, then those of its partitions.
fn columns(table: &CreateTableStatement, definition: &Definition) -> Result<SchemaRef> {
    let is_partition =
        |field: &Field| table.partition_by.iter().any(|term| term.column == *field.name());
    if let Some(term) = table.partition_by.iter().find(|term| term.transform != Transform::Identity)
    {
        return Err(Error::unsupported(format!(
            "PARTITIONED BY ({term}) of an external table is not supported"
        ))
        .with_hint("partitions are directories column=value: write PARTITIONED BY (column type)"));
    }
    let mut fields: Vec<Field> = Vec::with_capacity(table.columns.len());
    for field in &table.columns {
        let mut field = field.clone().with_nullable(true);
        if field.metadata().contains_key(DEFAULT_KEY)
            || field.metadata().contains_key(stoa_sql::identity::IDENTITY_KEY)
        {
            return Err(Error::unsupported(format!(
                "a DEFAULT of column \"{}\" of an external table is not supported",
                field.name()
            ))
            .with_hint("leave it out"));
        }
        let is_csv = definition.serde == Serde::OpenCsv && definition.format.has_lines();
        if is_csv && !is_partition(&field) {
            // As in Hive, whatever is declared.
            field.metadata_mut().remove(DECLARED_TYPE_KEY);
            field = field.with_data_type(DataType::Utf8);
        }
        if is_partition(&field) && !external::can_partition(field.data_type()) {
            return Err(Error::unsupported(format!(
                "\"{}\" cannot be a partition column",
                field.name()
            ))
            .with_hint("partition columns are texts, numbers, dates or times"));
        }
        fields.push(field);
    }
    let of_partitions = fields.iter().filter(|field| is_partition(field)).count();
    let stand_last = fields.iter().rev().take(of_partitions).all(is_partition);
    if of_partitions == fields.len() || !stand_last || of_partitions != table.partition_by.len() {
        return Err(Error::invalid(
            "an external table has columns in its files, and partition columns behind them",
        )
        .with_sqlstate("42601")
        .with_hint("write (columns) PARTITIONED BY (column type, …), each column once"));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// Refuses changes that external tables have not.
///
/// # Errors
/// 0A000; 22023 for values of properties.
pub(crate) fn check_changes(table: &Table, actions: &[AlterAction]) -> Result<()> {
    let Some(definition) = external::definition_of(table)? else { return Ok(()) };
    let partitions = external::partition_columns(table);
    for action in actions {
        let of_column = match action {
            AlterAction::RenameColumn { from, .. } => Some(from),
            AlterAction::DropColumn { name, .. } | AlterAction::ChangeType { name, .. } => {
                Some(name)
            }
            AlterAction::AddColumn { .. } | AlterAction::UnsetProperties(_) => None,
            AlterAction::SetProperties(set) => {
                definition.check(&set.iter().cloned().collect())?;
                None
            }
            _ => {
                return Err(Error::unsupported(
                    "this change of an external table is not supported",
                )
                .with_hint("drop it and create it again: its files stay"));
            }
        };
        if of_column.is_some_and(|column| partitions.contains(column)) {
            return Err(Error::unsupported("changing a partition column is not supported")
                .with_hint("its name is that of directories: create another external table"));
        }
    }
    Ok(())
}

/// Runs a statement other than INSERT INTO on an external table: INSERT OVERWRITE. `condition` is that on the static
/// partition.
///
/// # Errors
/// 0A000 for UPDATE, DELETE, MERGE and TRUNCATE; those of writing.
pub(crate) async fn overwrite(
    session: &Session,
    table: StoaTable,
    plan: LogicalPlan,
    condition: Option<&Expr>,
    guard: &QueryGuard,
) -> Result<Completion> {
    let LogicalPlan::Dml(mut dml) = plan else {
        return Err(Error::internal("a statement that changes rows has no such plan"));
    };
    if !matches!(dml.op, datafusion::logical_expr::WriteOp::Insert(_)) {
        return Err(Error::unsupported(format!(
            "rows of the external table {} cannot be changed or deleted",
            table.table.ident()
        ))
        .with_sqlstate("0A000")
        .with_hint("INSERT OVERWRITE … SELECT replaces rows of partitions, or of the table"));
    }
    for privilege in external::privileges(true) {
        session.caller.may_write(&table.table, *privilege)?;
    }
    let partitions = replaced(session, &table, condition).await?;
    let target = OverwriteTarget { table, overwrite: Overwrite { partitions } };
    dml.target = provider_as_source(Arc::new(target));
    dml.op = datafusion::logical_expr::WriteOp::Insert(InsertOp::Append);
    written(session, dml, guard).await
}

/// What goes even if no rows come: the whole table without partitions, or the partition that all conditions name.
async fn replaced(
    session: &Session,
    table: &StoaTable,
    condition: Option<&Expr>,
) -> Result<Vec<String>> {
    let names = external::partition_columns(&table.table);
    if names.is_empty() {
        return Ok(vec![String::new()]);
    }
    let Some(condition) = condition else { return Ok(Vec::new()) };
    let named =
        condition.column_refs().iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    if !names.iter().all(|name| named.contains(name)) {
        return Ok(Vec::new());
    }
    let files = external::ExternalFiles::of(table)?;
    let all = files.partitions(&names).await?;
    let schema = datafusion::catalog::TableProvider::schema(table);
    let fields =
        names.iter().filter_map(|name| schema.fields().iter().find(|field| field.name() == name));
    let fields: Vec<_> = fields.cloned().collect();
    let state = session.state();
    let condition = std::slice::from_ref(condition);
    let kept = external::kept(&all, &fields, condition, state.as_ref())?;
    Ok(all.into_iter().zip(kept).filter_map(|(one, is_kept)| is_kept.then_some(one.name)).collect())
}

async fn written(session: &Session, dml: DmlStatement, guard: &QueryGuard) -> Result<Completion> {
    let plan = session.pin_snapshots(LogicalPlan::Dml(dml)).await?;
    let rows = count_written(session.stream(&plan, guard).await?).await?;
    Ok(Completion::rows("INSERT", rows))
}

/// Writes the rows of a query into a directory, in place of the files that are there.
///
/// # Errors
/// 42501 for who may not, and what planning and writing find; the directory is as it was then.
pub(crate) async fn write_directory(
    session: &Session,
    statement: &WriteDirectoryStatement,
    guard: &QueryGuard,
) -> Result<Completion> {
    session.caller.must_be_superuser("write files of the server")?;
    let definition = definition(session, &statement.files)?;
    definition.check(&BTreeMap::new())?;
    let query = &statement.query;
    let state = session.state();
    if stoa_pg_catalog::lists_names(&query.statement) {
        session.data.refresh().await?;
    }
    let with_names = session.with_temporary_names(&query.statement, &query.text)?;
    let parsed = with_names.as_ref().unwrap_or(&query.statement);
    let plan = session.plan_defining(&state, parsed, &[]).await?;
    let expanded = session.expand_views(plan).await?;
    session.check_views(&expanded.views)?;
    check_plan(&expanded.plan)?;
    let plan = stoa_semantics::analyzed(&state, &expanded.plan).map_err(from_datafusion)?;
    let schema = storable_schema(&named(plan.schema().as_arrow(), &[])?)?;
    let plan = cast_to(plan, &schema)?;
    let location = session.data.warehouse().stores().resolve(&definition.location)?;
    let plain = schema.fields().iter();
    let plain = plain.map(|field| Field::new(field.name(), field.data_type().clone(), true));
    let target = WriteTarget {
        location,
        definition,
        schema: Arc::new(Schema::new(plain.collect::<Vec<_>>())),
        partition_columns: Vec::new(),
        overwrites: true,
        replaced: vec![String::new()],
    };
    let source = provider_as_source(Arc::new(DirectoryTarget { target }));
    let plan = LogicalPlanBuilder::insert_into(plan, "directory", source, InsertOp::Append)
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)?;
    let plan = session.pin_snapshots(plan).await?;
    let rows = count_written(session.stream(&plan, guard).await?).await?;
    Ok(Completion::rows("INSERT", rows))
}
