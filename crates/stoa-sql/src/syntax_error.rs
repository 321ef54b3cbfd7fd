//! What the parser says is wrong, as Stoa's errors: message, SQLSTATE, place in the statement.

use datafusion_common::DataFusionError;
use datafusion_sql::sqlparser::parser::ParserError;
use stoa_error::{Error, Subject};

/// An error of DataFusion's statement parser, with its place in `text`.
pub fn from_parser(error: &DataFusionError, text: &str) -> Error {
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
pub fn from_sql_parser(error: &ParserError, text: &str) -> Error {
    let (ParserError::ParserError(message) | ParserError::TokenizerError(message)) = error else {
        return Error::invalid("the statement is nested too deeply").with_sqlstate("54001");
    };
    let (message, place) = match message.rsplit_once(" at Line: ") {
        Some((message, place)) => (message, parse_place(place)),
        None => (message.as_str(), None),
    };
    if message.starts_with("type \"") && message.ends_with("\" does not exist") {
        let name = message.split('"').nth(1).unwrap_or_default();
        return Error::not_found(message)
            .with_sqlstate("42704")
            .with_hint("docs/sql.md lists the column types")
            .about(Subject::Type(name.to_owned()));
    }
    if let Some(rest) = message.strip_prefix("length for type ") {
        let name = rest.split(' ').next().unwrap_or_default().to_owned();
        return Error::invalid(message).with_sqlstate("22023").about(Subject::Type(name));
    }
    let (expected, found) = match message.split_once(", found: ") {
        Some((expected, found)) => (expected, Some(found)),
        None => (message, None),
    };
    let said = match found {
        Some("EOF") => "syntax error at end of input".to_owned(),
        Some(found) => format!("syntax error at or near \"{found}\""),
        None if message.starts_with("Expected close delimiter") => {
            "unterminated quoted identifier".to_owned()
        }
        None => format!("syntax error: {}", lower_first(message.trim_end_matches('.'))),
    };
    let error = Error::invalid(said).with_sqlstate("42601");
    let error = match found {
        Some(_) => error.with_hint(lower_first(&expected.replacen("Expected: ", "expected ", 1))),
        None => error,
    };
    if text.is_empty() {
        return error;
    }
    match (place, found) {
        (_, Some("EOF")) => error.with_position(text.chars().count() + 1),
        (Some((line, column)), _) => {
            let position = position(text, line, column).max(1);
            error.with_position(found.map_or(position, |found| standing_at(text, position, found)))
        }
        (None, _) => error,
    }
}

/// The character at which a line and column is, from 1.
fn position(text: &str, line: usize, column: usize) -> usize {
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    lines.map(|line| line.chars().count()).sum::<usize>() + column
}

/// Where `found` stands: at the position, or, where the parser had read on, before it.
fn standing_at(text: &str, position: usize, found: &str) -> usize {
    let at = text.char_indices().nth(position - 1).map_or(text.len(), |(at, _)| at);
    if text[at..].starts_with(found) {
        return position;
    }
    match text[..at].rfind(found) {
        Some(before) => text[..before].chars().count() + 1,
        None => position,
    }
}

fn parse_place(place: &str) -> Option<(usize, usize)> {
    let (line, column) = place.split_once(", Column: ")?;
    Some((line.trim().parse().ok()?, column.trim().parse().ok()?))
}

/// Cuts the engine's own words in front of a message, as often as they repeat.
pub fn strip_prefixes(text: &str) -> &str {
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

/// The text with a small first letter, unless it begins with an acronym or a name in capitals.
pub fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
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
    fn a_syntax_error_points_at_its_character() {
        let error = ParserError::ParserError("Expected: x, found: y at Line: 2, Column: 3".into());
        let error = from_sql_parser(&error, "SELECT\n  y");
        assert_eq!((error.sqlstate(), error.position()), ("42601", Some(10)));
        assert_eq!(error.message(), "syntax error at or near \"y\"");
        assert_eq!(error.hint(), Some("expected x"));
        let error = ParserError::ParserError("Expected: x, found: EOF".into());
        assert_eq!(from_sql_parser(&error, "SELECT 'ü'").position(), Some(11));
        let found = "Expected an expression, found: FROM at Line: 1, Column: 19";
        let error = ParserError::ParserError(found.into());
        assert_eq!(from_sql_parser(&error, "SELECT name, FROM people").position(), Some(14));
    }

    #[test]
    fn a_type_that_does_not_exist_has_its_own_code() {
        let error = ParserError::ParserError("type \"nothing\" does not exist".into());
        assert_eq!(from_sql_parser(&error, "").sqlstate(), "42704");
    }
}
