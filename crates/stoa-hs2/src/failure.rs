//! Errors as Hive's clients read them: text, SQLSTATE, and Hive's own code.
//!
//! The text begins as Hive's does: PyHive and Superset look for `SemanticException` and the like. Then comes
//! everything that a user should know: message, detail, hint.

use stoa_error::{Error, ErrorKind};
use stoa_thrift::Failure;

/// What a statement that failed is answered with.
pub(crate) fn of_statement(error: &Error) -> Failure {
    log(error);
    let known = KNOWN.iter().find(|known| known.stoa == error.sqlstate());
    let (exception, sql_state, code) = match known {
        Some(known) => (known.exception, known.hive, known.code),
        None if error.kind() == ErrorKind::Unsupported => ("SemanticException", "42000", 40000),
        None => return Failure { message: text(error), sql_state: error.sqlstate(), code: 1 },
    };
    let message = format!(
        "Error while compiling statement: FAILED: {exception} [Error {code}]: {}",
        text(error)
    );
    Failure { message, sql_state, code }
}

/// What any other call that failed is answered with.
pub(crate) fn of_call(error: &Error) -> Failure {
    log(error);
    Failure { message: text(error), sql_state: error.sqlstate(), code: 0 }
}

/// Damage and bugs are for somebody here to look at; the rest is the client's.
fn log(error: &Error) {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Internal => {
            tracing::error!(sqlstate = error.sqlstate(), ?error, "call failed");
        }
        _ => tracing::debug!(sqlstate = error.sqlstate(), ?error, "call failed"),
    }
}

/// Message, detail and hint.
fn text(error: &Error) -> String {
    let mut text = error.message_with_sources();
    for (name, part) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
        if let Some(part) = part {
            text.push_str(&format!("\n{name}: {part}"));
        }
    }
    text
}

/// A condition for which Hive has a code (`ErrorMsg.java`).
struct Known {
    stoa: &'static str,
    exception: &'static str,
    hive: &'static str,
    code: i32,
}

const KNOWN: [Known; 9] = [
    semantic("42P01", "42S02", 10001),
    semantic("42703", "42000", 10004),
    semantic("42883", "42000", 10011),
    semantic("42P07", "42000", 10035),
    semantic("3F000", "42000", 10072),
    semantic("0A000", "42000", 40000),
    Known { stoa: "42601", exception: "ParseException", hive: "42000", code: 40000 },
    Known { stoa: "42501", exception: "HiveAccessControlException", hive: "42000", code: 40000 },
    semantic("42804", "42000", 10016),
];

const fn semantic(stoa: &'static str, hive: &'static str, code: i32) -> Known {
    Known { stoa, exception: "SemanticException", hive, code }
}

#[cfg(test)]
mod tests {
    use stoa_error::Condition;

    use super::*;

    #[test]
    fn errors_have_hives_codes_and_all_of_their_text() {
        let error = Error::not_found("Table not found t")
            .with_condition(Condition::UndefinedTable)
            .with_hint("look");
        let failure = of_statement(&error);
        assert_eq!((failure.sql_state, failure.code), ("42S02", 10001));
        assert_eq!(
            failure.message,
            "Error while compiling statement: FAILED: SemanticException [Error 10001]: Table not found t\n\
             HINT: look"
        );
        let other = of_statement(&Error::invalid("division by zero").with_sqlstate("22012"));
        assert_eq!((other.message.as_str(), other.sql_state), ("division by zero", "22012"));
    }
}
