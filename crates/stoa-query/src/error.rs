//! The engine's errors as Stoa's: SQLSTATE, message, hint.
//!
//! Our own errors travel through DataFusion as `External` and come out unchanged. What DataFusion
//! says only in prose is told apart by the variant first, and by fixed phrases where one variant
//! stands for several codes.

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use stoa_error::{Error, ErrorKind, is_disk_full};

/// Turns an error of the engine into Stoa's.
pub fn from_datafusion(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(source) => from_external(source),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_datafusion(*inner)
        }
        DataFusionError::Shared(inner) => from_shared(&inner),
        DataFusionError::Collection(mut errors) if !errors.is_empty() => {
            from_datafusion(errors.swap_remove(0))
        }
        DataFusionError::ArrowError(inner, _) => from_arrow(*inner),
        other => from_variant(&other),
    }
}

/// Wraps an error of ours so that it passes through DataFusion unchanged.
pub(crate) fn to_datafusion(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn from_external(source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match source.downcast::<Error>() {
        Ok(ours) => *ours,
        Err(source) => match source.downcast::<DataFusionError>() {
            Ok(inner) => from_datafusion(*inner),
            Err(other) => Error::internal(other.to_string()).with_source(other),
        },
    }
}

/// A shared error cannot be taken apart; its parts are copied.
fn from_shared(error: &DataFusionError) -> Error {
    if let DataFusionError::External(source) = error
        && let Some(ours) = source.downcast_ref::<Error>()
    {
        let mut copy =
            Error::new(ours.kind(), ours.message_with_sources()).with_sqlstate(ours.sqlstate());
        if let Some(detail) = ours.detail() {
            copy = copy.with_detail(detail);
        }
        if let Some(hint) = ours.hint() {
            copy = copy.with_hint(hint);
        }
        return copy;
    }
    match error {
        DataFusionError::Shared(inner) => from_shared(inner),
        DataFusionError::Context(_, inner) => from_shared(inner),
        DataFusionError::ArrowError(inner, _) => from_arrow_text(&inner.to_string()),
        other => from_variant(other),
    }
}

fn from_arrow(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(source) => from_external(source),
        other if is_disk_full(&other) => no_room_to_spill(lower_first(&other.to_string())),
        other => from_arrow_text(&other.to_string()),
    }
}

fn from_arrow_text(text: &str) -> Error {
    let message = lower_first(strip_prefixes(text));
    if text.contains("Divide by zero") || text.contains("divide by zero") {
        return Error::invalid("division by zero").with_sqlstate("22012");
    }
    let misfits = [
        "verflow",
        "out of range",
        "Can't cast value",
        "is too large to store",
        "is too small to store",
    ];
    if misfits.iter().any(|misfit| text.contains(misfit)) {
        return Error::invalid(message).with_sqlstate("22003");
    }
    if text.contains("declared as non-nullable but contains null values") {
        return Error::invalid(message).with_sqlstate("23502");
    }
    if text.contains("square root of a negative") {
        return Error::invalid(message).with_sqlstate("2201F");
    }
    if text.starts_with("Cast error") || text.starts_with("Parser error") {
        return Error::invalid(message).with_sqlstate("22P02");
    }
    Error::invalid(message).with_sqlstate("22000")
}

/// The engine itself writes nothing but what does not fit into memory.
fn no_room_to_spill(message: String) -> Error {
    Error::new(ErrorKind::Exhausted, "the disk that queries spill to is full")
        .with_sqlstate("53100")
        .with_detail(message)
        .with_hint("make room there, set spill_dir to another disk, or raise memory_limit")
}

fn from_variant(error: &DataFusionError) -> Error {
    let text = error.strip_backtrace();
    let message = lower_first(strip_prefixes(&text));
    if is_disk_full(error) {
        return no_room_to_spill(message);
    }
    match error {
        DataFusionError::SQL(parser, _) => from_sql_parser(parser, ""),
        DataFusionError::SchemaError(schema, _) => from_schema(schema, message),
        DataFusionError::NotImplemented(_) => Error::unsupported(message),
        DataFusionError::ResourcesExhausted(_) => {
            Error::new(ErrorKind::Exhausted, "the query needs more memory than it may have")
                .with_detail(message)
                .with_sqlstate("53200")
                .with_hint("ask for fewer groups or columns, or raise memory_limit")
        }
        DataFusionError::Plan(_) => from_plan(&message),
        DataFusionError::Configuration(_) => Error::invalid(message).with_sqlstate("42704"),
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => {
            Error::unavailable(message).with_sqlstate("58030")
        }
        // Types that cannot be compared are the statement's fault.
        DataFusionError::Internal(_) if message.contains("ailed to coerce types") => {
            Error::invalid(message).with_sqlstate("42883")
        }
        DataFusionError::Internal(_) => Error::internal(message)
            .with_hint("this is a bug in Stoa; please report it with the statement"),
        _ if message.contains("scalar subquery returned more than one row") => {
            Error::invalid("more than one row returned by a subquery used as an expression")
                .with_sqlstate("21000")
        }
        _ if message.contains("ivide by zero") || message.contains("ivision by zero") => {
            Error::invalid("division by zero").with_sqlstate("22012")
        }
        _ => Error::invalid(message).with_sqlstate("22000"),
    }
}

fn from_schema(schema: &SchemaError, message: String) -> Error {
    match schema {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let error =
                Error::not_found(format!("column \"{}\" does not exist", field.flat_name()))
                    .with_sqlstate("42703");
            let names: Vec<&str> = valid_fields.iter().map(|c| c.name.as_str()).take(20).collect();
            match names.is_empty() {
                true => error,
                false => error.with_hint(format!("columns are {}", names.join(", "))),
            }
        }
        SchemaError::AmbiguousReference { .. } => Error::invalid(message).with_sqlstate("42702"),
        SchemaError::DuplicateQualifiedField { .. }
        | SchemaError::DuplicateUnqualifiedField { .. } => {
            Error::invalid(message).with_sqlstate("42701")
        }
    }
}

fn from_plan(message: &str) -> Error {
    if message.starts_with("table ") && message.ends_with("not found") {
        let name = message.trim_start_matches("table ").trim_end_matches(" not found");
        let name = name.trim_matches('\'').trim_start_matches("stoa.");
        return Error::not_found(format!("table \"{name}\" does not exist"))
            .with_sqlstate("42P01")
            .with_hint("SHOW TABLES lists the tables");
    }
    if message.starts_with("invalid function") {
        return Error::not_found(message).with_sqlstate("42883");
    }
    if message.contains("no function matches") || message.contains("oerce") {
        return Error::invalid(message).with_sqlstate("42883");
    }
    if message.contains("unique expression names") {
        return Error::invalid(message)
            .with_sqlstate("42701")
            .with_hint("name the columns of the query with AS");
    }
    Error::invalid(message).with_sqlstate("42601")
}

/// An error of DataFusion's statement parser, with its place in `text`.
pub(crate) fn from_parser(error: &DataFusionError, text: &str) -> Error {
    match error {
        DataFusionError::SQL(parser, _) => from_sql_parser(parser, text),
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => {
            from_parser(inner, text)
        }
        other => Error::invalid(lower_first(strip_prefixes(&other.strip_backtrace())))
            .with_sqlstate("42601"),
    }
}

/// An error of the SQL parser, with its place in `text`.
pub(crate) fn from_sql_parser(error: &ParserError, text: &str) -> Error {
    let (ParserError::ParserError(message) | ParserError::TokenizerError(message)) = error else {
        return Error::invalid("the statement is nested too deeply").with_sqlstate("54001");
    };
    let (message, place) = match message.rsplit_once(" at Line: ") {
        Some((message, place)) => (message, parse_place(place)),
        None => (message.as_str(), None),
    };
    let error =
        Error::invalid(format!("syntax error: {}", lower_first(message))).with_sqlstate("42601");
    match place {
        Some((line, column)) if !text.is_empty() => {
            let position = text
                .split_inclusive('\n')
                .take(line.saturating_sub(1))
                .map(|l| l.chars().count())
                .sum::<usize>()
                + column;
            error.with_position(position.max(1))
        }
        _ => error,
    }
}

fn parse_place(place: &str) -> Option<(usize, usize)> {
    let (line, column) = place.split_once(", Column: ")?;
    Some((line.trim().parse().ok()?, column.trim().parse().ok()?))
}

/// Cuts the engine's own words in front of a message, as often as they repeat.
fn strip_prefixes(text: &str) -> &str {
    const PREFIXES: [&str; 12] = [
        "Error during planning: ",
        "Execution error: ",
        "Schema error: ",
        "Arrow error: ",
        "Optimizer rule ",
        "This feature is not implemented: ",
        "Resources exhausted: ",
        "Cast error: ",
        "Parser error: ",
        "Invalid argument error: ",
        "Compute error: ",
        "External error: ",
    ];
    let mut rest = text;
    while let Some(shorter) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = shorter;
    }
    rest.trim_end_matches('.')
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        // An acronym or a name in capitals stays as it is.
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_errors_pass_through_unchanged() {
        let ours = Error::not_found("no table t").with_sqlstate("42P01").with_hint("look");
        let error = from_datafusion(to_datafusion(ours).context("scan"));
        assert_eq!((error.sqlstate(), error.hint()), ("42P01", Some("look")));
    }

    #[test]
    fn a_missing_table_has_its_code() {
        let error = DataFusionError::Plan("table 'stoa.public.t' not found".into());
        let error = from_datafusion(error);
        assert_eq!(error.sqlstate(), "42P01");
        assert_eq!(error.message(), "table \"public.t\" does not exist");
    }

    #[test]
    fn a_syntax_error_points_at_its_character() {
        let error = ParserError::ParserError("Expected: x, found: y at Line: 2, Column: 3".into());
        let error = from_sql_parser(&error, "SELECT\n  y");
        assert_eq!((error.sqlstate(), error.position()), ("42601", Some(10)));
    }
}
