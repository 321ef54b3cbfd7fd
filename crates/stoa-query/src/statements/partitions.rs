//! The partitions of a table by name, and statements about them.
//!
//! In: conditions on partition columns (`day = '2025-01-01'`). Out: the names of the partitions, as Hive writes them
//! (`day=2025-01-01/hour=1`), or the statement that changes their rows. A partition is there while it has rows, be they
//! in files or not yet.
//!
//! **Invariant:** conditions are on columns by whose values the table is partitioned, so that none of them deletes only
//! a part of a partition.

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::logical_expr::{Expr, cast, lit};
use datafusion::sql::sqlparser::ast::ObjectName;
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use stoa_orc::Predicate;
use stoa_sql::{
    Comparison, NULL_PARTITION, PartitionSpec, PartitionStatement, PartitionTerm, PartitionWork,
};
use stoa_table::{Table, TableChange, Transform};

use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::show::sql_type;
use crate::tables::table::StoaTable;
use crate::tables::{cells, external};

/// Values of the partition columns; `None` is NULL.
type Values = Vec<Option<String>>;

/// What a statement about partitions comes to.
pub(crate) enum Change {
    /// It is done.
    Done(Completion),
    /// These rows are to be deleted: a DELETE, and the tag of the whole.
    Delete(String, &'static str),
}

/// Checks a statement about partitions.
///
/// # Errors
/// Columns that are none of the partitions' (42703), values that are not of their types (22P02), partitions that are
/// there (42710) or not there (42704), and rights.
pub(crate) async fn change(session: &Session, statement: &PartitionStatement) -> Result<Change> {
    let ident = session.table_ident(&statement.table)?;
    let table = session.data.table(&ident).await?;
    session.caller.must_know(&table.table)?;
    cells::refuse_rows(&table.table)?;
    let columns = Columns::of(&table.table);
    if table.is_external() {
        return external_change(session, &table, &columns, statement).await;
    }
    if statement.work == PartitionWork::Recover {
        let notice = "partitions come with their rows: there is nothing to recover";
        return Ok(Change::Done(Completion::of("ALTER TABLE").with_notice(notice)));
    }
    columns.must_be_some(&table.table)?;
    let mut specs = Vec::with_capacity(statement.specs.len());
    for spec in &statement.specs {
        specs.push(columns.checked(spec)?);
    }
    match statement.work {
        PartitionWork::Add { if_not_exists } => {
            session.caller.must_own(&table.table)?;
            for spec in &specs {
                columns.must_be_whole(spec)?;
                if !if_not_exists && exists(session, &table, &columns, spec).await? {
                    return Err(Error::already_exists(format!(
                        "partition {} is there already",
                        shown(spec)
                    ))
                    .with_sqlstate("42710")
                    .with_hint("write ADD IF NOT EXISTS"));
                }
            }
            let notice = "a partition is there when it has rows: INSERT … PARTITION writes them";
            Ok(Change::Done(Completion::of("ALTER TABLE").with_notice(notice)))
        }
        PartitionWork::Truncate => {
            for spec in &specs {
                if columns.is_whole(spec) && !exists(session, &table, &columns, spec).await? {
                    return Err(not_found(spec));
                }
            }
            Ok(Change::Delete(columns.delete(&ident, &specs), "TRUNCATE TABLE"))
        }
        PartitionWork::Drop | PartitionWork::Recover => {
            Ok(Change::Delete(columns.delete(&ident, &specs), "ALTER TABLE"))
        }
    }
}

/// The names of the partitions for which `only` holds, in order.
///
/// # Errors
/// As [`change`]; 42809 for a table without partitions.
pub(crate) async fn names(
    session: &Session,
    name: &ObjectName,
    only: &PartitionSpec,
) -> Result<Vec<String>> {
    let table = session.data.table(&session.table_ident(name)?).await?;
    session.caller.may_select_all(&table.table)?;
    let columns = Columns::of(&table.table);
    columns.must_be_some(&table.table)?;
    let only = columns.checked(only)?;
    let all = values(&table, &columns).await?;
    let mut names: Vec<String> = all
        .iter()
        .filter(|values| columns.meet(&only, values))
        .map(|values| columns.path(values))
        .collect();
    names.sort();
    Ok(names)
}

/// Refuses a partition that is not there.
///
/// # Errors
/// As [`change`].
pub(super) async fn must_exist(
    session: &Session,
    table: &Table,
    spec: &PartitionSpec,
) -> Result<()> {
    session.caller.may_select_all(table)?;
    let columns = Columns::of(table);
    columns.must_be_some(table)?;
    let spec = columns.checked(spec)?;
    columns.must_be_whole(&spec)?;
    let table = session.data.table(table.ident()).await?;
    match exists(session, &table, &columns, &spec).await? {
        true => Ok(()),
        false => Err(not_found(&spec)),
    }
}

/// The conditions of a partition, all of whose columns they name; none for the whole table.
///
/// # Errors
/// As [`change`].
pub(super) fn whole(table: &Table, spec: &PartitionSpec) -> Result<PartitionSpec> {
    if spec.is_empty() {
        return Ok(Vec::new());
    }
    let columns = Columns::of(table);
    columns.must_be_some(table)?;
    let spec = columns.checked(spec)?;
    columns.must_be_whole(&spec)?;
    Ok(spec)
}

/// The DELETE of a partition's rows, or of all rows of the table.
///
/// # Errors
/// As [`change`].
pub(super) fn delete(table: &Table, spec: &PartitionSpec) -> Result<String> {
    let spec = whole(table, spec)?;
    Ok(Columns::of(table).delete(table.ident(), &[spec]))
}

fn not_found(spec: &PartitionSpec) -> Error {
    Error::not_found(format!("partition {} does not exist", shown(spec)))
        .with_sqlstate("42704")
        .with_hint("SHOW PARTITIONS lists the partitions of a table")
}

fn shown(spec: &PartitionSpec) -> String {
    let term = |term: &PartitionTerm| {
        let value = term.value.as_deref().unwrap_or(NULL_PARTITION);
        format!("{}{}{value}", term.column, term.comparison.sql())
    };
    spec.iter().map(term).collect::<Vec<_>>().join("/")
}

async fn exists(
    session: &Session,
    table: &StoaTable,
    columns: &Columns,
    spec: &PartitionSpec,
) -> Result<bool> {
    // It tells of values.
    session.caller.may_select_all(&table.table)?;
    Ok(values(table, columns).await?.iter().any(|values| columns.meet(spec, values)))
}

/// The values of all partitions, of files and of rows that are in none yet.
async fn values(table: &StoaTable, columns: &Columns) -> Result<BTreeSet<Values>> {
    if table.is_external() {
        let found = external_partitions(table, columns).await?;
        return Ok(found.into_iter().map(|(_, values)| values).collect());
    }
    let mut all = BTreeSet::new();
    let plan = table.table.plan_scan(&Predicate::always()).await?;
    for file in plan.files {
        let value = |column: &Column| {
            let of = file.partition.iter().find(|value| value.name == column.field);
            of.and_then(stoa_table::PartitionValue::text)
        };
        all.insert(columns.0.iter().map(value).collect());
    }
    for batch in table.fresh_batches() {
        let batch = batch?;
        // Of other transforms, the values are in files only.
        let of = |column: &Column| match column.transform {
            Transform::Identity => batch.column_by_name(&column.name).and_then(|of| texts(of).ok()),
            _ => None,
        };
        let Some(arrays) = columns.0.iter().map(of).collect::<Option<Vec<StringArray>>>() else {
            break;
        };
        for row in 0..batch.num_rows() {
            let value =
                |array: &StringArray| array.is_valid(row).then(|| array.value(row).to_owned());
            all.insert(arrays.iter().map(value).collect());
        }
    }
    Ok(all)
}

/// The partitions of an external table, with their values as names of partitions have them.
async fn external_partitions(
    table: &StoaTable,
    columns: &Columns,
) -> Result<Vec<(stoa_external::Partition, Values)>> {
    let names: Vec<String> = columns.0.iter().map(|column| column.name.clone()).collect();
    let found = external::ExternalFiles::of(table)?.partitions(&names).await?;
    let mut arrays = Vec::with_capacity(names.len());
    for (at, column) in columns.0.iter().enumerate() {
        let values: Vec<Option<&str>> = found.iter().map(|one| one.values[at].as_deref()).collect();
        let field = Field::new(&column.name, column.data_type.clone(), true);
        arrays.push(texts(&stoa_external::partition_array(&values, &field)?)?);
    }
    let value =
        |array: &StringArray, row: usize| array.is_valid(row).then(|| array.value(row).to_owned());
    let with_values = |(row, one)| (one, arrays.iter().map(|array| value(array, row)).collect());
    Ok(found.into_iter().enumerate().map(with_values).collect())
}

/// `ADD` makes the directory, `DROP` leaves out partitions whose files stay, and `RECOVER` takes them in again.
async fn external_change(
    session: &Session,
    table: &StoaTable,
    columns: &Columns,
    statement: &PartitionStatement,
) -> Result<Change> {
    session.caller.must_own(&table.table)?;
    let files = external::ExternalFiles::of(table)?;
    let mut dropped = files.definition.dropped.clone();
    if statement.work == PartitionWork::Recover {
        dropped.clear();
        return set_dropped(table, &files, dropped).await;
    }
    columns.must_be_some(&table.table)?;
    for spec in &statement.specs {
        let spec = columns.checked(spec)?;
        match statement.work {
            PartitionWork::Add { if_not_exists } => {
                columns.must_be_whole(&spec)?;
                if exists(session, table, columns, &spec).await? {
                    if if_not_exists {
                        continue;
                    }
                    return Err(Error::already_exists(format!(
                        "partition {} is there already",
                        shown(&spec)
                    ))
                    .with_sqlstate("42710")
                    .with_hint("write ADD IF NOT EXISTS"));
                }
                let value = |column: &Column| {
                    spec.iter()
                        .find(|term| term.column == column.name)
                        .and_then(|term| term.value.clone())
                };
                let name = columns.path(&columns.0.iter().map(value).collect());
                stoa_external::make_partition(&files.location, &name).await?;
                dropped.retain(|known| *known != name);
            }
            PartitionWork::Drop => {
                let names: Vec<String> =
                    columns.0.iter().map(|column| column.name.clone()).collect();
                let all = files.partitions(&names).await?;
                let schema = datafusion::catalog::TableProvider::schema(table);
                let fields = names
                    .iter()
                    .filter_map(|name| schema.fields().iter().find(|field| field.name() == name));
                let fields: Vec<_> = fields.cloned().collect();
                let conditions: Vec<Expr> =
                    spec.iter().map(|term| columns.condition(term)).collect();
                let kept = external::kept(&all, &fields, &conditions, session.state().as_ref())?;
                let gone = all
                    .into_iter()
                    .zip(kept)
                    .filter_map(|(one, is_met)| is_met.then_some(one.name));
                dropped.extend(gone);
            }
            PartitionWork::Truncate | PartitionWork::Recover => {
                return Err(Error::unsupported(format!(
                    "TRUNCATE of the external table {} is not supported",
                    table.table.ident()
                ))
                .with_hint("its files are others'; INSERT OVERWRITE replaces them"));
            }
        }
    }
    set_dropped(table, &files, dropped).await
}

async fn set_dropped(
    table: &StoaTable,
    files: &external::ExternalFiles,
    mut dropped: Vec<String>,
) -> Result<Change> {
    dropped.sort();
    dropped.dedup();
    if dropped != files.definition.dropped {
        let property = stoa_external::Definition::dropped_property(&dropped);
        table.table.alter(vec![TableChange::SetProperties([property].into())]).await?;
    }
    Ok(Change::Done(Completion::of("ALTER TABLE")))
}

/// The values of a column as names of partitions have them.
fn texts(column: &dyn Array) -> Result<StringArray> {
    let cannot = |e| Error::internal("values of partitions have no text").with_source(e);
    let texts =
        cast_with_options(column, &DataType::Utf8, &CastOptions::default()).map_err(cannot)?;
    Ok(texts.as_string::<i32>().clone())
}

/// A column by which a table is partitioned.
struct Column {
    name: String,
    /// The partition field's name, which differs for other transforms than the identity.
    field: String,
    transform: Transform,
    data_type: DataType,
}

/// All of them, in order.
struct Columns(Vec<Column>);

impl Columns {
    fn of(table: &Table) -> Self {
        let schema: SchemaRef = table.schema();
        let column = |term: stoa_table::PartitionTerm| {
            let field = term.field_name();
            let data_type = schema.field_with_name(&term.column).ok()?.data_type().clone();
            Some(Column { name: term.column, field, transform: term.transform, data_type })
        };
        Self(table.partition_terms().into_iter().filter_map(column).collect())
    }

    fn must_be_some(&self, table: &Table) -> Result<()> {
        match self.0.is_empty() {
            false => Ok(()),
            true => Err(Error::invalid(format!("table {} is not partitioned", table.ident()))
                .with_sqlstate("42809")
                .with_hint("CREATE TABLE … PARTITIONED BY makes a partitioned table")),
        }
    }

    /// The same conditions, with values as names of partitions have them.
    fn checked(&self, spec: &PartitionSpec) -> Result<PartitionSpec> {
        spec.iter().map(|term| self.checked_term(term)).collect()
    }

    fn checked_term(&self, term: &PartitionTerm) -> Result<PartitionTerm> {
        let Some(column) = self.0.iter().find(|column| column.name == term.column) else {
            let names: Vec<&str> = self.0.iter().map(|column| column.name.as_str()).collect();
            return Err(Error::invalid(format!(
                "column \"{}\" is no partition column",
                term.column
            ))
            .with_sqlstate("42703")
            .with_hint(format!("the table is partitioned by {}", names.join(", "))));
        };
        if column.transform != Transform::Identity {
            return Err(Error::unsupported(format!(
                "naming partitions by {}, of which the table uses a part, is not supported",
                column.name
            ))
            .with_hint("use DELETE FROM … WHERE"));
        }
        let Some(text) = &term.value else { return Ok(term.clone()) };
        let given = StringArray::from(vec![text.as_str()]);
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let wrong = |source| {
            let of = sql_type(&column.data_type);
            Error::invalid(format!("\"{text}\" is no {of}, which column \"{}\" is", column.name))
                .with_sqlstate("22P02")
                .with_source(source)
        };
        let value = cast_with_options(&given, &column.data_type, &strict).map_err(wrong)?;
        let value = texts(&value)?.value(0).to_owned();
        Ok(PartitionTerm { value: Some(value), ..term.clone() })
    }

    /// A term as the engine computes it.
    fn condition(&self, term: &PartitionTerm) -> Expr {
        let column = Expr::Column(datafusion::common::Column::from_name(&term.column));
        let of = self.0.iter().find(|column| column.name == term.column);
        let Some((value, of)) = term.value.as_ref().zip(of) else {
            return match term.comparison {
                Comparison::Equal => column.is_null(),
                Comparison::NotEqual => column.is_not_null(),
                _ => lit(false),
            };
        };
        let value = cast(lit(value.as_str()), of.data_type.clone());
        match term.comparison {
            Comparison::Equal => column.eq(value),
            Comparison::NotEqual => column.not_eq(value),
            Comparison::Less => column.lt(value),
            Comparison::LessOrEqual => column.lt_eq(value),
            Comparison::Greater => column.gt(value),
            Comparison::GreaterOrEqual => column.gt_eq(value),
        }
    }

    fn is_whole(&self, spec: &PartitionSpec) -> bool {
        let is_named = |column: &Column| {
            spec.iter()
                .any(|term| term.column == column.name && term.comparison == Comparison::Equal)
        };
        self.0.iter().all(is_named)
    }

    fn must_be_whole(&self, spec: &PartitionSpec) -> Result<()> {
        match self.is_whole(spec) {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "partition {} does not name all {} partition columns",
                shown(spec),
                self.0.len()
            ))
            .with_sqlstate("42601")
            .with_hint("write column = value for each column of PARTITIONED BY")),
        }
    }

    /// Whether equalities hold for a partition; other comparisons are the engine's.
    fn meet(&self, spec: &PartitionSpec, values: &Values) -> bool {
        spec.iter().all(|term| {
            let at = self.0.iter().position(|column| column.name == term.column);
            let value = at.and_then(|at| values.get(at));
            let is_equal = value.is_some_and(|value| *value == term.value);
            is_equal == (term.comparison != Comparison::NotEqual)
        })
    }

    /// `day=2025-01-01/hour=1`.
    fn path(&self, values: &Values) -> String {
        let part = |(column, value): (&Column, &Option<String>)| {
            let value = value.as_deref().map_or_else(|| NULL_PARTITION.to_owned(), escaped);
            format!("{}={value}", escaped(&column.field))
        };
        self.0.iter().zip(values).map(part).collect::<Vec<_>>().join("/")
    }

    /// The DELETE of the partitions for which one of `specs` holds.
    fn delete(&self, ident: &TableIdent, specs: &[PartitionSpec]) -> String {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let term = |term: &PartitionTerm| {
            let column = self.0.iter().find(|column| column.name == term.column);
            let name = quoted(&term.column);
            match (&term.value, column) {
                (Some(value), Some(column)) => {
                    let (of, value) = (sql_type(&column.data_type), value.replace('\'', "''"));
                    format!("{name} {} CAST('{value}' AS {of})", term.comparison.sql())
                }
                (None, _) if term.comparison == Comparison::Equal => format!("{name} IS NULL"),
                (None, _) if term.comparison == Comparison::NotEqual => {
                    format!("{name} IS NOT NULL")
                }
                // Nothing is greater or less than NULL.
                _ => "false".to_owned(),
            }
        };
        let spec = |spec: &PartitionSpec| {
            format!("({})", spec.iter().map(term).collect::<Vec<_>>().join(" AND "))
        };
        let name = format!("{}.{}", quoted(&ident.namespace), quoted(&ident.name));
        if specs.iter().any(Vec::is_empty) {
            return format!("DELETE FROM {name}");
        }
        let conditions: Vec<String> = specs.iter().map(spec).collect();
        format!("DELETE FROM {name} WHERE {}", conditions.join(" OR "))
    }
}

/// A name or value as Hive writes it in paths.
fn escaped(text: &str) -> String {
    const ESCAPED: &str = "\"#%'*/:=?\\\u{7f}{[]^";
    let mut all = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            char if char < ' ' || ESCAPED.contains(char) => {
                all.push_str(&format!("%{:02X}", u32::from(char)));
            }
            char => all.push(char),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_hive_escapes_them() {
        assert_eq!(escaped("x y/z:1"), "x y%2Fz%3A1");
        assert_eq!(escaped("a=b%\n"), "a%3Db%25%0A");
        assert_eq!(escaped("ü{}"), "ü%7B}");
    }
}
