//! `INSERT … ON CONFLICT`, which is written as the MERGE that means the same.
//!
//! ```text
//! INSERT INTO t (k, n) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n
//!   MERGE INTO t USING (…) AS excluded ON t.k = excluded.k
//!     WHEN MATCHED THEN UPDATE SET n = t.n + excluded.n WHEN NOT MATCHED THEN INSERT (k, n) VALUES (…)
//! ```
//! In: the statement, and the table's key and columns, which are known elsewhere. The values are cast to the types of
//! the columns first. Of rows with one key, DO NOTHING takes one, and DO UPDATE refuses all ([`ONCE`]).

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    ConflictTarget, Expr, Ident, Insert, ObjectName, OnConflict, OnConflictAction, OnInsert,
    SetExpr, Statement, TableObject,
};
use stoa_error::{Error, Result};

use crate::{normalise, reread};

/// The function that refuses a key that comes more than once.
pub const ONCE: &str = "stoa_once";

/// A column that no table has: how often the key comes, or which of these rows it is.
const TIMES: &str = "\u{2063}times";

/// What is known of the table.
pub struct Target<'a> {
    /// The columns that identify a row; empty for none.
    pub key: &'a [String],
    /// Names and SQL types of all columns, in order.
    pub columns: &'a [(String, String)],
}

/// The table of an `INSERT … ON CONFLICT`; `None` for any other statement.
pub fn table_of(statement: &EngineStatement) -> Option<&ObjectName> {
    let (insert, _) = parts_of(statement)?;
    match &insert.table {
        TableObject::TableName(name) => Some(name),
        _ => None,
    }
}

fn parts_of(statement: &EngineStatement) -> Option<(&Insert, &OnConflict)> {
    let EngineStatement::Statement(statement) = statement else { return None };
    let Statement::Insert(insert) = statement.as_ref() else { return None };
    match &insert.on {
        Some(OnInsert::OnConflict(conflict)) => Some((insert, conflict)),
        _ => None,
    }
}

/// The statement as a MERGE; as an INSERT where nothing can be in conflict.
///
/// # Errors
/// 42P10 where the columns are not the key of the table; 42601 for DO UPDATE without columns; 0A000 for what MERGE
/// cannot have.
pub fn write_as_merge(statement: &EngineStatement, target: &Target<'_>) -> Result<EngineStatement> {
    let unsupported = || Error::unsupported("this form of ON CONFLICT is not supported");
    let EngineStatement::Statement(written) = statement else { return Err(unsupported()) };
    let mut written = written.clone();
    reread::bracket_signs(&mut *written);
    let statement = &EngineStatement::Statement(written);
    let (insert, conflict) = parts_of(statement).ok_or_else(unsupported)?;
    check_key(conflict, target)?;
    if target.key.is_empty() {
        let mut plain = insert.clone();
        plain.on = None;
        plain.table_alias = None;
        return Ok(EngineStatement::Statement(Box::new(Statement::Insert(plain))));
    }
    let is_plain = insert.partitioned.is_none()
        && insert.returning.is_none()
        && insert.assignments.is_empty()
        && !insert.overwrite
        && !insert.ignore
        && !insert.replace_into;
    let (TableObject::TableName(name), Some(source), true) =
        (&insert.table, &insert.source, is_plain)
    else {
        return Err(unsupported());
    };
    let columns = columns_of(insert, source, target)?;
    if let Some(missing) =
        target.key.iter().find(|key| !columns.iter().any(|(name, _)| name == *key))
    {
        let what = format!("null value in column \"{missing}\" violates not-null constraint");
        return Err(Error::invalid(what)
            .with_sqlstate("23502")
            .with_hint("give a value to each column of the primary key"));
    }
    let names: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
    let key = target.key.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ");
    let rows = cast_rows(&source.to_string(), &source.body, &columns, &names)?;
    let alias = insert.table_alias.as_ref().map(|alias| alias.alias.clone());
    let own = alias.as_ref().map_or_else(|| name.to_string(), ToString::to_string);
    let on = target.key.iter().map(|column| {
        let column = quoted(column);
        format!("{own}.{column} = excluded.{column}")
    });
    let on = on.collect::<Vec<_>>().join(" AND ");
    let listed = names.join(", ");
    let values: Vec<String> = names.iter().map(|name| format!("excluded.{name}")).collect();
    let insert_row = format!("INSERT ({listed}) VALUES ({})", values.join(", "));
    let into = alias.map_or_else(|| name.to_string(), |alias| format!("{name} AS {alias}"));
    let times = quoted(TIMES);
    let merge = match &conflict.action {
        OnConflictAction::DoNothing => format!(
            "MERGE INTO {into} USING (SELECT {listed} FROM (SELECT *, row_number() OVER (PARTITION BY {key}) \
             AS {times} FROM ({rows}) AS r) AS r WHERE {times} = 1) AS excluded ON {on} \
             WHEN NOT MATCHED THEN {insert_row}"
        ),
        OnConflictAction::DoUpdate(update) => {
            let set: Vec<String> = update.assignments.iter().map(ToString::to_string).collect();
            // `excluded` has all columns; those that have a default are among the given ones.
            let missing = target.columns.iter().filter(|column| !columns.contains(column));
            let missing: String = missing
                .map(|(name, data_type)| format!(", CAST(NULL AS {data_type}) AS {}", quoted(name)))
                .collect();
            let and = update.selection.as_ref().map(|condition| format!(" AND ({condition})"));
            format!(
                "MERGE INTO {into} USING (SELECT *{missing}, count(*) OVER (PARTITION BY {key}) AS {times} \
                 FROM ({rows}) AS r) AS excluded ON {on} \
                 WHEN MATCHED{} THEN UPDATE SET {} \
                 WHEN NOT MATCHED AND {ONCE}(excluded.{times}) THEN {insert_row}",
                and.unwrap_or_default(),
                set.join(", "),
            )
        }
    };
    let parsed = reread::statement(&merge)
        .map_err(|error| Error::internal("a MERGE is not read").with_source(error))?;
    Ok(EngineStatement::Statement(Box::new(parsed)))
}

fn check_key(conflict: &OnConflict, target: &Target<'_>) -> Result<()> {
    let no_such = || {
        Error::invalid("there is no unique constraint matching the ON CONFLICT specification")
            .with_sqlstate("42P10")
            .with_hint("name the columns of the table's PRIMARY KEY")
    };
    match &conflict.conflict_target {
        None if matches!(conflict.action, OnConflictAction::DoNothing) => Ok(()),
        None => {
            Err(Error::invalid("ON CONFLICT DO UPDATE requires columns, or a constraint's name")
                .with_sqlstate("42601")
                .with_hint("for example, ON CONFLICT (column_name)"))
        }
        Some(ConflictTarget::OnConstraint(name)) => {
            Err(Error::not_found(format!("constraint \"{name}\" does not exist"))
                .with_sqlstate("42704")
                .with_hint("constraints have no names: write ON CONFLICT (columns)"))
        }
        Some(ConflictTarget::Columns(columns)) => {
            let mut named: Vec<String> = columns.iter().map(normalise).collect();
            let mut key = target.key.to_vec();
            named.sort_unstable();
            named.dedup();
            key.sort_unstable();
            match named == key && !key.is_empty() {
                true => Ok(()),
                false => Err(no_such()),
            }
        }
    }
}

/// The columns that get values, with their types.
fn columns_of(
    insert: &Insert,
    source: &datafusion_sql::sqlparser::ast::Query,
    target: &Target<'_>,
) -> Result<Vec<(String, String)>> {
    if insert.columns.is_empty() {
        let width = match source.body.as_ref() {
            SetExpr::Values(values) => values.rows.first().map_or(0, |row| row.content.len()),
            _ => target.columns.len(),
        };
        return match width <= target.columns.len() {
            true => Ok(target.columns.iter().take(width).cloned().collect()),
            false => Err(Error::invalid("INSERT has more expressions than target columns")
                .with_sqlstate("42601")),
        };
    }
    let column = |name: &ObjectName| {
        let name = name.0.last().and_then(|part| part.as_ident()).map(normalise);
        let name = name.unwrap_or_default();
        let known = target.columns.iter().find(|(column, _)| *column == name).cloned();
        known.ok_or_else(|| {
            Error::not_found(format!("column \"{name}\" does not exist")).with_sqlstate("42703")
        })
    };
    insert.columns.iter().map(column).collect()
}

/// A query of the rows, with the names and types of their columns.
fn cast_rows(
    text: &str,
    body: &SetExpr,
    columns: &[(String, String)],
    names: &[String],
) -> Result<String> {
    let SetExpr::Values(values) = body else {
        let cast = |((_, data_type), name): (&(String, String), &String)| {
            format!("CAST({name} AS {data_type}) AS {name}")
        };
        let cast: Vec<String> = columns.iter().zip(names).map(cast).collect();
        let (cast, names) = (cast.join(", "), names.join(", "));
        return Ok(format!("SELECT {cast} FROM ({text}) AS s ({names})"));
    };
    let mut rows = Vec::with_capacity(values.rows.len());
    for row in &values.rows {
        if row.content.len() != columns.len() {
            return Err(Error::invalid(format!(
                "INSERT names {} columns, and a row has {} values",
                columns.len(),
                row.content.len()
            ))
            .with_sqlstate("42601"));
        }
        if row.content.iter().any(is_default) {
            return Err(Error::unsupported("DEFAULT beside ON CONFLICT is not supported")
                .with_hint("leave the column out"));
        }
        let cast = |(value, (_, data_type)): (&Expr, &(String, String))| {
            format!("CAST({value} AS {data_type})")
        };
        let cast: Vec<String> = row.content.iter().zip(columns).map(cast).collect();
        rows.push(format!("({})", cast.join(", ")));
    }
    Ok(format!("SELECT * FROM (VALUES {}) AS v ({})", rows.join(", "), names.join(", ")))
}

fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

fn quoted(name: &str) -> String {
    Ident::with_quote('"', name).to_string()
}
