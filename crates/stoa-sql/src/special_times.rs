//! `'today'::date`, `TIMESTAMP 'now'` and the like: literals that mean a moment near that of the statement.
//!
//! In: an expression. Out: `current_date`, `now()` and what is made of them, which are asked each time a statement runs.
//! PostgreSQL asks once, when a statement is prepared, which nobody wants. Texts that are computed are refused
//! elsewhere.

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, TimezoneInfo, TypedString, Value,
};

use crate::calls::{call, cast};

/// The expression for such a literal; `None` for all else.
pub(super) fn written(expr: &Expr) -> Option<Expr> {
    let (value, of) = match expr {
        Expr::Cast { expr, data_type, format: None, array: false, .. } => match expr.as_ref() {
            Expr::Value(value) => (value, data_type),
            _ => return None,
        },
        Expr::TypedString(TypedString { value, data_type, .. }) => (value, data_type),
        _ => return None,
    };
    let Value::SingleQuotedString(text) = &value.value else { return None };
    let word = text.trim().to_ascii_lowercase();
    match of {
        DataType::Date => day(&word),
        DataType::Timestamp(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            moment(&word, TimezoneInfo::None)
        }
        DataType::Timestamp(None, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            moment(&word, TimezoneInfo::WithTimeZone)
        }
        _ => None,
    }
}

fn day(word: &str) -> Option<Expr> {
    let today = || call("current_date", Vec::new());
    let beside = |op: BinaryOperator| {
        let one = Expr::value(Value::Number("1".into(), false));
        Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(today()), op, right: Box::new(one) }))
    };
    Some(match word {
        "today" | "now" => today(),
        "tomorrow" => beside(BinaryOperator::Plus),
        "yesterday" => beside(BinaryOperator::Minus),
        "epoch" => literal("1970-01-01", DataType::Date),
        _ => return None,
    })
}

fn moment(word: &str, zone: TimezoneInfo) -> Option<Expr> {
    let timestamp = |zone| DataType::Timestamp(None, zone);
    Some(match word {
        "now" => cast(call("now", Vec::new()), timestamp(zone)),
        "epoch" => literal("1970-01-01 00:00:00+00", timestamp(zone)),
        // The midnight of a day, by the clock of the session.
        _ => cast(cast(day(word)?, timestamp(TimezoneInfo::None)), timestamp(zone)),
    })
}

fn literal(text: &str, of: DataType) -> Expr {
    cast(Expr::value(Value::SingleQuotedString(text.to_owned())), of)
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn special_words_are_asked_for_when_a_statement_runs() {
        for (text, expected) in [
            ("'today'::date", Some("current_date()")),
            ("DATE ' Tomorrow '", Some("(current_date() + 1)")),
            ("CAST('epoch' AS timestamp)", Some("CAST('1970-01-01 00:00:00+00' AS TIMESTAMP)")),
            ("TIMESTAMP 'now'", Some("CAST(now() AS TIMESTAMP)")),
            ("'2024-01-01'::date", None),
            ("'today'", None),
            ("today::date", None),
        ] {
            let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text);
            let found = written(&parser.unwrap().parse_expr().unwrap());
            assert_eq!(found.map(|expr| expr.to_string()).as_deref(), expected, "{text}");
        }
    }
}
