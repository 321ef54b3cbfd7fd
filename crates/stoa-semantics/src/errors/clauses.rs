//! What the engine says of clauses: positions, counts of columns, conditions, frames.

use stoa_error::{Error, Subject};

use super::names::missing_operator;

/// An error of a clause, if the message is one of those that are known.
pub(super) fn explain(message: &str) -> Option<Error> {
    positions(message).or_else(|| counts(message)).or_else(|| others(message))
}

/// `GROUP BY 3` and `ORDER BY 3` where there are fewer columns.
fn positions(message: &str) -> Option<Error> {
    let number_in =
        |text: &str| text.split([' ', ',', '.']).find_map(|word| word.parse::<i64>().ok());
    let said = |clause: &str, number: i64| {
        Error::invalid(format!("{clause} position {number} is not in select list"))
            .with_sqlstate("42P10")
            .with_hint("positions are counted from 1")
            .about(Subject::Behind("BY"))
    };
    if message.starts_with("cannot find column with position ") {
        return number_in(message).map(|number| said("GROUP BY", number));
    }
    message.starts_with("order by column out of bounds").then_some(())?;
    number_in(message).map(|number| said("ORDER BY", number))
}

/// Other numbers of columns than there must be.
fn counts(message: &str) -> Option<Error> {
    if message.starts_with("too many columns! The subquery should only return one column") {
        return Some(syntax("subquery must return only one column"));
    }
    if message.starts_with("column count doesn't match insert query") {
        let said = "INSERT has another number of target columns than the query gives";
        return Some(syntax(said));
    }
    let behind = message.strip_prefix("inconsistent data length across values list: got ")?;
    let mut numbers = behind.split(' ').filter_map(|word| word.parse::<usize>().ok());
    let (got, _, expected) = (numbers.next()?, numbers.next(), numbers.next()?);
    Some(syntax(match got < expected {
        true => "INSERT has more target columns than expressions",
        false => "INSERT has more expressions than target columns",
    }))
}

fn syntax(said: &str) -> Error {
    Error::invalid(said).with_sqlstate("42601")
}

fn others(message: &str) -> Option<Error> {
    if message.starts_with("for SELECT DISTINCT, ORDER BY expressions") {
        let said = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
        return Some(Error::invalid(said).with_sqlstate("42P10").about(Subject::Behind("BY")));
    }
    if message.starts_with("SELECT DISTINCT ON expressions must match") {
        return Some(Error::invalid(message).with_sqlstate("42P10"));
    }
    if message.starts_with("invalid window frame: ") {
        return Some(Error::invalid(message).with_sqlstate("42P20"));
    }
    if message.starts_with("unary operator '-' only supports") {
        let subject = Subject::Operator { sign: "-".to_owned(), left: None, right: None };
        let said = "operator does not exist: - before a value of this type";
        return Some(
            Error::invalid(said)
                .with_sqlstate("42883")
                .with_hint("cast the value to a number, such as x::numeric")
                .about(subject),
        );
    }
    if message.starts_with("substring without for/from") {
        let said = "substring needs a place: substring(text FROM start FOR length)";
        let subject = Subject::Function("substring".to_owned());
        return Some(Error::invalid(said).with_sqlstate("42883").about(subject));
    }
    if let Some(of) = message.strip_prefix("expected LIMIT to be an integer or null, but got ") {
        let of = super::in_sql_words(of);
        return Some(
            Error::invalid(format!("argument of LIMIT must be an integer, not type {of}"))
                .with_sqlstate("42804")
                .about(Subject::Behind("LIMIT")),
        );
    }
    let types = message.strip_prefix("there isn't a common type to coerce ")?;
    let types = super::in_sql_words(types.strip_suffix(" in LIKE expression")?);
    let (left, right) = types.split_once(" and ")?;
    Some(missing_operator((left.to_owned(), "LIKE".to_owned(), right.to_owned())))
}

/// A condition that is no boolean; the message is in SQL's words.
pub(super) fn not_boolean(message: &str) -> Error {
    let of = ["returning ", "but got ", ", got "].iter().find_map(|word| message.split_once(word));
    let of = of.map(|(_, of)| of.trim_end_matches('.'));
    let place = if message.contains("'NOT'") { "argument of NOT" } else { "a condition" };
    let error = match of {
        Some(of) => Error::invalid(format!("{place} must be type boolean, not type {of}")),
        None => Error::invalid(format!("{place} must be of type boolean")),
    };
    let error = error.with_sqlstate("42804").with_hint("write a comparison, such as x <> 0");
    let column = message.split_once("predicate '").and_then(|(_, behind)| behind.split_once('\''));
    let name = column.and_then(|(column, _)| column.rsplit('.').next());
    match name {
        _ if message.contains("'NOT'") => error.about(Subject::Behind("NOT")),
        Some(name) => error.about(Subject::Condition(name.trim_matches('"').to_owned())),
        None => error,
    }
}

/// What the engine does not do.
pub(super) fn unsupported(message: &str) -> Error {
    if message == "TOP" {
        return Error::unsupported("SELECT TOP is not supported")
            .with_hint("write LIMIT at the end of the query")
            .about(Subject::Name("TOP".to_owned()));
    }
    if let Some(of) = message.strip_prefix("unsupported SQL type ") {
        return Error::unsupported(format!("type {} is not supported", of.to_lowercase()))
            .with_hint("docs/sql.md lists the column types")
            .about(Subject::Type(of.to_lowercase()));
    }
    if let Some(sign) = message.strip_prefix("unsupported binary operator: Custom(") {
        return no_operator(sign.trim_matches([')', '"']));
    }
    let sign =
        message.strip_prefix("operator ").and_then(|m| m.strip_suffix(" is not yet supported"));
    if let Some(sign) = sign {
        let subject = Subject::Operator { sign: sign.to_owned(), left: None, right: None };
        return Error::unsupported(format!("operator {sign} is not supported")).about(subject);
    }
    Error::unsupported(message)
}

fn no_operator(sign: &str) -> Error {
    let subject = Subject::Operator { sign: sign.to_owned(), left: None, right: None };
    Error::invalid(format!("operator does not exist: {sign}")).with_sqlstate("42883").about(subject)
}

/// A unit that `date_trunc` or `extract` does not know.
pub(super) fn wrong_unit(message: &str) -> Option<Error> {
    let behind = message
        .strip_prefix("unsupported date_trunc granularity: '")
        .or_else(|| message.strip_prefix("date part '"))?;
    let unit = behind.split('\'').next()?;
    Some(
        Error::invalid(format!("unit \"{unit}\" not recognized")).with_sqlstate("22023").with_hint(
            "units are microsecond, second, minute, hour, day, week, month, quarter, year",
        ),
    )
}
