//! A statement made ready: planned by the engine, or one of this protocol's own.

use std::sync::Arc;

use arrow_schema::{DataType, Field, SchemaRef};
use stoa_error::{Error, Result};
use stoa_query::{Kept, Prepared, Session, TransactionControl};
use stoa_sql::first_word;

use crate::command::{Command, CursorOptions};
use crate::types::{PgType, field_type, to_arrow};

/// A statement of this protocol's own, without the texts in it.
const COMMAND_BYTES: usize = 1 << 10;

/// A statement that can be executed any number of times.
pub(crate) struct Parsed {
    pub(crate) plan: Plan,
    /// Wire types of the parameters.
    pub(crate) parameter_types: Vec<PgType>,
    text_bytes: usize,
    /// What it counts for under its name.
    pub(crate) kept: Option<Kept>,
}

/// What executing it means.
pub(crate) enum Plan {
    /// Nothing but blanks and comments.
    Empty,
    /// The engine runs it.
    Engine(Box<Prepared>),
    /// A cursor over what the engine runs.
    Declare { name: String, options: CursorOptions, query: Box<Prepared> },
    /// The connection runs it; with its text.
    Command(Command, String),
}

impl Parsed {
    /// Plans the one statement in `text`; `declared` are the parameter types a client named.
    ///
    /// # Errors
    /// Syntax (42601), more than one statement, and what planning finds.
    pub(crate) async fn new(
        session: &Session,
        text: &str,
        declared: &[Option<PgType>],
    ) -> Result<Self> {
        match Command::parse(text)? {
            Some(Command::Declare { name, options, query }) => {
                let prepared = prepare(session, &query, declared).await;
                let query = prepared.map_err(|error| within(error, text, &query))?;
                let Some(query) = query.filter(|query| query.schema().is_some()) else {
                    return Err(Error::invalid("a cursor needs a query that returns rows")
                        .with_sqlstate("42P11"));
                };
                let parameter_types = wire_types(text, declared, query.parameter_types());
                let query = Box::new(query);
                Ok(Self::of(Plan::Declare { name, options, query }, parameter_types, text))
            }
            Some(command) => {
                Ok(Self::of(Plan::Command(command, text.to_owned()), Vec::new(), text))
            }
            None => match prepare(session, text, declared).await? {
                None => Ok(Self::of(Plan::Empty, Vec::new(), text)),
                Some(prepared) => {
                    let parameter_types = wire_types(text, declared, prepared.parameter_types());
                    Ok(Self::of(Plan::Engine(Box::new(prepared)), parameter_types, text))
                }
            },
        }
    }

    fn of(plan: Plan, parameter_types: Vec<PgType>, text: &str) -> Self {
        Self { plan, parameter_types, text_bytes: text.len(), kept: None }
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let plan = match &self.plan {
            Plan::Engine(prepared) | Plan::Declare { query: prepared, .. } => prepared.bytes(),
            Plan::Command(..) | Plan::Empty => COMMAND_BYTES,
        };
        plan.saturating_add(self.text_bytes)
    }

    /// Transaction control, if it is that.
    pub(crate) fn transaction(&self) -> Option<&TransactionControl> {
        match &self.plan {
            Plan::Engine(prepared) => prepared.statement().transaction(),
            _ => None,
        }
    }

    /// Columns of the rows that go out as `DataRow`; `None` for COPY and for no rows.
    pub(crate) fn row_schema(&self) -> Option<SchemaRef> {
        match &self.plan {
            Plan::Engine(prepared) if prepared.statement().copy().is_none() => prepared.schema(),
            _ => None,
        }
    }
}

async fn prepare(
    session: &Session,
    text: &str,
    declared: &[Option<PgType>],
) -> Result<Option<Prepared>> {
    // The parts of a message come without blanks around them.
    let placed = |error| within(error, text, text.trim_start());
    let mut statements = session.parse(text).await.map_err(placed)?;
    if statements.len() > 1 {
        return Err(Error::invalid("cannot insert multiple commands into a prepared statement")
            .with_sqlstate("42601")
            .with_hint("send them one by one, or all as one simple query"));
    }
    let Some(statement) = statements.pop().filter(|statement| !statement.is_empty()) else {
        return Ok(None);
    };
    let types = declared.iter().map(|of| of.and_then(to_arrow)).collect();
    session.prepare(statement, types).await.map(Some).map_err(placed)
}

/// An error that points into `part`, which ends `text`, pointing into `text`.
pub(crate) fn within(error: Error, text: &str, part: &str) -> Error {
    let before = text.rfind(part).and_then(|at| text.get(..at));
    match (error.position(), before) {
        (Some(position), Some(before)) => error.with_position(position + before.chars().count()),
        _ => error,
    }
}

/// The declared type where the client named one, else the plan's; lists of OIDs are told by the text.
fn wire_types(text: &str, declared: &[Option<PgType>], planned: &[DataType]) -> Vec<PgType> {
    let count = planned.len().max(declared.len());
    let oids = oid_lists(text);
    (0..count)
        .map(|index| {
            let planned = || {
                if oids.contains(&index) {
                    return PgType::Oid.array().unwrap_or(PgType::Text);
                }
                let data_type = planned.get(index).cloned().unwrap_or(DataType::Utf8);
                field_type(&Field::new("", data_type, true))
            };
            declared.get(index).copied().flatten().unwrap_or_else(planned)
        })
        .collect()
}

/// The places, from 0, of parameters that are `$n::oid[]`: with one, drivers ask for types that they do not know, and
/// its own must be none of these.
fn oid_lists(text: &str) -> Vec<usize> {
    let parameter = |(at, _): (usize, &str)| {
        let before = text.get(..at)?;
        let digits = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: usize = before.get(digits.len()..)?.parse().ok()?;
        if digits.ends_with('$') { number.checked_sub(1) } else { None }
    };
    text.match_indices("::oid[]").filter_map(parameter).collect()
}

/// The type a `PREPARE name (type, …)` names; `None` leaves it to the plan.
///
/// # Errors
/// 42704 where no type is called so.
pub(crate) fn type_named(name: &str) -> Result<Option<PgType>> {
    let missing = || {
        Error::not_found(format!("type \"{name}\" does not exist"))
            .with_sqlstate("42704")
            .with_hint("docs/sql.md lists the types")
    };
    if let Some(element) = name.strip_suffix("[]") {
        let element = type_named(element.trim_end())?;
        return match element.map(PgType::array) {
            None => Ok(None),
            Some(array) => array.map(Some).ok_or_else(missing),
        };
    }
    let bare = match (name.split_once('('), name.split_once(')')) {
        // `timestamp(3) with time zone`
        (Some((before, _)), Some((_, behind))) => format!("{}{behind}", before.trim_end()),
        _ => name.to_owned(),
    };
    Ok(Some(match bare.trim() {
        "bool" | "boolean" => PgType::Bool,
        "int2" | "smallint" | "tinyint" => PgType::Int2,
        "int" | "int4" | "integer" => PgType::Int4,
        "int8" | "bigint" => PgType::Int8,
        "float4" | "real" => PgType::Float4,
        "float8" | "double precision" | "float" | "double" => PgType::Float8,
        "numeric" | "decimal" | "dec" => PgType::Numeric,
        "text" | "string" => PgType::Text,
        "varchar" | "character varying" => PgType::Varchar,
        "bytea" | "binary" => PgType::Bytea,
        "date" => PgType::Date,
        "time" | "time without time zone" => PgType::Time,
        "timestamp" | "timestamp without time zone" => PgType::Timestamp,
        "timestamptz" | "timestamp with time zone" => PgType::Timestamptz,
        "interval" => PgType::Interval,
        "uuid" => PgType::Uuid,
        "json" => PgType::Json,
        "jsonb" => PgType::Jsonb,
        "oid" => PgType::Oid,
        "unknown" => return Ok(None),
        _ => return Err(missing()),
    }))
}

/// The command tag of a statement that returned rows.
pub(crate) fn rows_tag(text: &str, rows: u64) -> String {
    match first_word(text).to_ascii_uppercase().as_str() {
        word @ ("SHOW" | "EXPLAIN" | "DESCRIBE") => word.to_owned(),
        "DESC" => "DESCRIBE".to_owned(),
        // With RETURNING.
        "INSERT" => format!("INSERT 0 {rows}"),
        word @ ("UPDATE" | "DELETE") => format!("{word} {rows}"),
        _ => format!("SELECT {rows}"),
    }
}

/// A statement shared by its name and its portals.
pub(crate) type SharedStatement = Arc<Parsed>;
