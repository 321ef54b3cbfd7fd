//! Names that are not there: what is said, and what was perhaps meant.

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{Column, SchemaError};
use stoa_error::{Error, Subject};
use stoa_sql::column_names;

use super::other_names::written_as;
use super::words::in_sql_words;

/// Functions that there are with OVER only.
const WINDOW_FUNCTIONS: [&str; 8] =
    ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"];

/// A hint lists so many columns of a table that has more.
const LISTED_COLUMNS_MAX: usize = 20;

/// Names that differ in more letters are not meant.
const DISTANCE_MAX: usize = 3;

/// What the engine says of names in its schemas.
pub(super) fn from_schema(schema: &SchemaError) -> Error {
    match schema {
        SchemaError::FieldNotFound { field, valid_fields } => missing_column(field, valid_fields),
        SchemaError::AmbiguousReference { field } => ambiguous(field),
        SchemaError::DuplicateQualifiedField { qualifier, .. } => {
            let table = qualifier.table();
            Error::invalid(format!("table name \"{table}\" specified more than once"))
                .with_sqlstate("42712")
                .with_hint("give one of them an alias of its own")
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            let name = column_names::shown(name);
            Error::invalid(format!("column \"{name}\" specified more than once"))
                .with_sqlstate("42701")
                .about(Subject::Repeated(name.to_owned()))
        }
    }
}

fn relation_of(column: &Column) -> Option<String> {
    column.relation.as_ref().map(|relation| relation.table().to_owned())
}

fn subject(column: &Column) -> Subject {
    let name = column_names::shown(&column.name).to_owned();
    Subject::Column { relation: relation_of(column), name }
}

fn ambiguous(column: &Column) -> Error {
    let name = column_names::shown(&column.name);
    Error::invalid(format!("column reference \"{name}\" is ambiguous"))
        .with_sqlstate("42702")
        .with_hint("write the table or its alias in front of it")
        .about(unqualified(column))
}

/// A name that is written in other places, too, may not be meant there.
fn unqualified(column: &Column) -> Subject {
    match subject(column) {
        Subject::Column { relation: None, name } => Subject::OnlyColumn(name),
        qualified => qualified,
    }
}

fn missing_column(field: &Column, valid_fields: &[Column]) -> Error {
    let is_one_of_several = |column: &Column| {
        column_names::is_marked(&column.name) && column_names::shown(&column.name) == field.name
    };
    if valid_fields.iter().any(is_one_of_several) {
        return Error::invalid(format!("column reference \"{}\" is ambiguous", field.name))
            .with_sqlstate("42702")
            .with_hint("give the columns names of their own with AS")
            .about(unqualified(field));
    }
    let error = Error::not_found(match relation_of(field) {
        Some(relation) => format!("column {relation}.{} does not exist", field.name),
        None => format!("column \"{}\" does not exist", field.name),
    });
    let error = error.with_sqlstate("42703").about(subject(field));
    match hint_at_columns(field, valid_fields) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// The column that was perhaps meant, or which there are; `None` where there are none.
fn hint_at_columns(meant: &Column, columns: &[Column]) -> Option<String> {
    let shown = |column: &Column| {
        let name = column_names::shown(&column.name);
        match relation_of(column) {
            Some(relation) => format!("{relation}.{name}"),
            None => name.to_owned(),
        }
    };
    let of_it = |column: &&Column| {
        let relation = relation_of(meant);
        relation.is_none() || relation == relation_of(column)
    };
    let name = meant.name.to_lowercase();
    let distance =
        |column: &&Column| levenshtein(&name, &column_names::shown(&column.name).to_lowercase());
    let nearest = columns.iter().filter(of_it).min_by_key(distance);
    if let Some(nearest) = nearest
        && is_near(&name, distance(&nearest))
    {
        let hint = format!("Perhaps you meant to reference the column \"{}\".", shown(nearest));
        return Some(hint);
    }
    let names: Vec<_> = columns.iter().take(LISTED_COLUMNS_MAX).map(shown).collect();
    (!names.is_empty()).then(|| format!("columns are {}", names.join(", ")))
}

fn is_near(meant: &str, distance: usize) -> bool {
    distance <= DISTANCE_MAX && distance * 2 <= meant.chars().count()
}

/// A name in front of a star that no table has.
pub(super) fn missing_qualifier(name: &str) -> Error {
    // Whether a table has it and an alias, the statement's text tells.
    Error::not_found(format!("missing FROM-clause entry for table \"{name}\""))
        .with_sqlstate("42P01")
        .about(Subject::Column { relation: Some(name.to_owned()), name: "*".to_owned() })
}

/// A table that is not there.
pub(super) fn missing_table(name: &str) -> Error {
    Error::not_found(format!("relation \"{name}\" does not exist"))
        .with_sqlstate("42P01")
        .with_hint("SHOW TABLES lists the tables")
        .about(Subject::Relation(last_part(name)))
}

fn last_part(name: &str) -> String {
    name.rsplit('.').next().unwrap_or(name).trim_matches('"').to_owned()
}

/// A function that is not there; the engine names one that is written alike, behind.
pub(super) fn missing_function(message: &str) -> Option<Error> {
    let behind = message.split_once("nvalid function '")?.1;
    let (name, behind) = behind.split_once('\'')?;
    let alike = behind.split('\'').nth(1);
    if WINDOW_FUNCTIONS.contains(&name.to_ascii_lowercase().as_str()) {
        let said = format!("window function {name} requires an OVER clause");
        let subject = Subject::Function(name.to_owned());
        return Some(Error::invalid(said).with_sqlstate("42809").about(subject));
    }
    let is_alike = |other: &&str| is_near(name, levenshtein(&name.to_lowercase(), other));
    let error = Error::not_found(format!("function {name} does not exist"))
        .with_sqlstate("42883")
        .about(Subject::Function(name.to_owned()));
    Some(match (written_as(name), alike.filter(is_alike)) {
        (Some(other), _) => error.with_hint(format!("write {other}")),
        (None, Some(alike)) => error.with_hint(format!("did you mean {alike}?")),
        (None, None) => error.with_hint("docs/sql.md lists the functions"),
    })
}

/// A function that does not take these arguments: `sum(Utf8)` in the engine's words.
pub(super) fn wrong_arguments(message: &str) -> Option<Error> {
    let behind = message.split_once("name and argument types '")?.1;
    let call = behind.split_once('\'')?.0;
    let name = call.split('(').next().unwrap_or(call).to_owned();
    let said = in_sql_words(call);
    // Operators that the engine computes by functions.
    let sign = match name.as_str() {
        "array_has_any" => "&&",
        "array_has_all" => "@>",
        "array_element" => {
            let of = said.trim_start_matches("array_element(").split(',').next().unwrap_or("");
            let said =
                format!("cannot subscript type {of} because it does not support subscripting");
            return Some(Error::invalid(said).with_sqlstate("42804"));
        }
        _ => return Some(no_such_call(&said, name)),
    };
    let types = said.split_once('(').map_or("", |(_, types)| types.trim_end_matches(')'));
    let (left, right) = types.split_once(", ")?;
    Some(missing_operator((left.to_owned(), sign.to_owned(), right.to_owned())))
}

/// The same from the name only.
pub(super) fn no_such_call(call: &str, name: String) -> Error {
    Error::invalid(format!("function {call} does not exist"))
        .with_sqlstate("42883")
        .with_hint(
            "No function matches the given name and argument types. \
             You might need to add explicit type casts.",
        )
        .about(Subject::Function(name))
}

/// An operator that does not take operands of these types.
pub(crate) fn missing_operator((left, sign, right): (String, String, String)) -> Error {
    Error::invalid(format!("operator does not exist: {left} {sign} {right}"))
        .with_sqlstate("42883")
        .with_hint(
            "No operator matches the given name and argument types. \
             You might need to add explicit type casts.",
        )
        .about(Subject::Operator { sign, left: None, right: None })
}

/// A column that is neither grouped nor in an aggregate: its name stands in quotes after `column`, or behind
/// `references`.
pub(super) fn ungrouped(message: &str) -> Option<Error> {
    let quoted = |text: &str| {
        text.split_once("column \"")
            .and_then(|(_, behind)| behind.split_once('"').map(|(name, _)| name.to_owned()))
    };
    let referenced = |text: &str| {
        text.split_once("references: ").and_then(|(_, behind)| {
            behind.split_once(" must appear").map(|(name, _)| name.to_owned())
        })
    };
    message.contains("must appear in the GROUP BY clause").then_some(())?;
    let name = quoted(message).or_else(|| referenced(message))?;
    if name.contains("Int64(") || name.contains("Utf8(") || name.contains("Boolean(") {
        let said = "a HAVING without GROUP BY and without an aggregate is not supported";
        return Some(
            Error::unsupported(said).with_hint("write the condition as WHERE, or add GROUP BY"),
        );
    }
    let said = "must appear in the GROUP BY clause or be used in an aggregate function";
    let column = Column::from_qualified_name(&name);
    let shown = match relation_of(&column) {
        Some(relation) => format!("{relation}.{}", column_names::shown(&column.name)),
        None => column_names::shown(&column.name).to_owned(),
    };
    Some(
        Error::invalid(format!("column \"{shown}\" {said}"))
            .with_sqlstate("42803")
            // It may be written with its table or without.
            .about(Subject::Column {
                relation: None,
                name: column_names::shown(&column.name).to_owned(),
            }),
    )
}
