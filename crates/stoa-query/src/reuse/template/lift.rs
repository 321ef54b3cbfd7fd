//! A text whose values are lifted out of it.
//!
//! In: the fingerprint of a statement. Out: the same statement with `$1`, `$2`, … in place of the
//! literals that WHERE compares with a column; all others stay where they are.

use std::fmt::Write;
use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, Select, Value, Visitor,
};

use crate::reuse::report::{days, parse_places};
use stoa_sql::fingerprint::{Fingerprint, Literal, LiteralKind, literal_of_place, place_of};
use stoa_sql::walk::Walk;

/// Bytes of the longest list of literals that may be part of a form.
const PINNED_LIST_BYTES_MAX: usize = 1 << 10;

/// A statement without its values.
pub(crate) struct Lift {
    /// Its text, with parameters.
    pub(crate) text: String,
    /// How many parameters it has of its own; those that were literals come behind them.
    pub(crate) parameters: usize,
    /// Numbers of the literals that are parameters now, in order.
    pub(crate) values: Vec<usize>,
    /// Those that stayed, with their texts.
    pub(crate) pinned: Vec<(usize, String)>,
}

impl Lift {
    /// `None` where there is nothing for which values come, or too much that does not.
    pub(crate) fn of(fingerprint: &Fingerprint<'_>) -> Option<Self> {
        let statement = parse_places(fingerprint)?;
        let mut compared = Compared::default();
        let _ = statement.walk(&mut compared);
        let (parameters, text) = (compared.parameters, String::new());
        let mut lift = Self { text, parameters, values: Vec::new(), pinned: Vec::new() };
        let mut rest = fingerprint.text.as_str();
        for (number, literal) in fingerprint.literals.iter().enumerate() {
            let place = place_of(number, literal.kind);
            let (before, after) = rest.split_once(place.as_str())?;
            lift.text.push_str(before);
            rest = after;
            if compared.numbers.contains(&number) && value_of(literal).is_some() {
                lift.values.push(number);
                write!(lift.text, "${}", parameters + lift.values.len()).ok()?;
            } else {
                if literal.kind.is_list() && literal.text.len() > PINNED_LIST_BYTES_MAX {
                    return None;
                }
                lift.pinned.push((number, literal.text.to_string()));
                write_literal(&mut lift.text, literal)?;
            }
        }
        lift.text.push_str(rest);
        (lift.parameters + lift.values.len() > 0).then_some(lift)
    }
}

/// The value of a literal, of the type that it has by itself; `None` for kinds that are not lifted.
pub(super) fn value_of(literal: &Literal<'_>) -> Option<ScalarValue> {
    Some(match literal.kind {
        LiteralKind::Integer => ScalarValue::Int64(Some(literal.text.parse().ok()?)),
        LiteralKind::Text => ScalarValue::Utf8(Some(literal.text.to_string())),
        LiteralKind::Date => ScalarValue::Date32(Some(days(&literal.text)?)),
        // Their types depend on their digits.
        LiteralKind::Decimal | LiteralKind::Timestamp => return None,
        LiteralKind::Integers => list_of(&DataType::Int64, literal)?,
        LiteralKind::Texts => list_of(&DataType::Utf8, literal)?,
        LiteralKind::Dates => list_of(&DataType::Date32, literal)?,
    })
}

fn list_of(of: &DataType, list: &Literal<'_>) -> Option<ScalarValue> {
    let values = list.values().map(|value| value_of(&value)).collect::<Option<Vec<_>>>()?;
    Some(ScalarValue::List(ScalarValue::new_list_nullable(&values, of)))
}

fn write_literal(text: &mut String, literal: &Literal<'_>) -> Option<()> {
    let quoted = literal.text.replace('\'', "''");
    match literal.kind {
        LiteralKind::Integer
        | LiteralKind::Decimal
        | LiteralKind::Integers
        | LiteralKind::Texts
        | LiteralKind::Dates => text.push_str(&literal.text),
        LiteralKind::Text => write!(text, "'{quoted}'").ok()?,
        LiteralKind::Date => write!(text, "DATE '{quoted}'").ok()?,
        LiteralKind::Timestamp => write!(text, "TIMESTAMP '{quoted}'").ok()?,
    }
    Some(())
}

/// Finds the places that WHERE compares with columns.
#[derive(Default)]
struct Compared {
    numbers: Vec<usize>,
    /// The greatest number of a parameter.
    parameters: usize,
}

impl Visitor for Compared {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if let Some(selection) = &select.selection {
            self.condition(selection);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
        {
            let number = name.strip_prefix('$').and_then(|number| number.parse().ok());
            self.parameters = self.parameters.max(number.unwrap_or(0));
        }
        ControlFlow::Continue(())
    }
}

impl Compared {
    fn condition(&mut self, expr: &Expr) {
        match expr {
            Expr::Nested(inner) => self.condition(inner),
            Expr::UnaryOp { expr, .. } => self.condition(expr),
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.condition(left);
                self.condition(right);
            }
            Expr::BinaryOp { left, op, right } if compares(op) => {
                self.compared(left, [right.as_ref()]);
                self.compared(right, [left.as_ref()]);
            }
            Expr::Between { expr, low, high, .. } => {
                self.compared(expr, [low.as_ref(), high.as_ref()]);
            }
            Expr::InList { expr, list, .. } => self.compared(expr, list),
            _ => {}
        }
    }

    fn compared<'a>(&mut self, column: &Expr, values: impl IntoIterator<Item = &'a Expr>) {
        match column {
            Expr::Nested(inner) => return self.compared(inner, values),
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {}
            _ => return,
        }
        for value in values {
            // As in PostgreSQL, `'2026-01-31'::date` reads the text as a value of that type reads it.
            let value = match value {
                Expr::Cast { expr, data_type: SqlType::Date, format: None, .. } => expr.as_ref(),
                value => value,
            };
            if let Expr::Value(value) = value
                && let Value::Placeholder(name) = &value.value
                && let Some(number) = literal_of_place(name)
            {
                self.numbers.push(number);
            }
        }
    }
}

fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifted(sql: &str) -> Option<(String, usize)> {
        let lift = Lift::of(&Fingerprint::of(sql)?)?;
        Some((lift.text, lift.parameters + lift.values.len()))
    }

    #[test]
    fn values_that_are_compared_are_lifted() {
        let (text, values) = lifted(
            "SELECT a + 1, 'x' FROM t WHERE a = 5 AND (b <> 'it''s' OR 7 < t.c) \
             AND d BETWEEN DATE '2026-01-01' AND '2026-02-01' AND e IN (1, 2) AND f + 1 = 2 \
             AND g > 1.5 AND h = -3 AND lower(i) = 'x' \
             AND j >= '2026-01-01'::date AND j < CAST('2026-02-01' AS date) LIMIT 10",
        )
        .unwrap();
        assert_eq!(
            text,
            "SELECT a + 1, 'x' FROM t WHERE a = $1 AND (b <> $2 OR $3 < t.c) \
             AND d BETWEEN $4 AND $5 AND e IN ($6) AND f + 1 = 2 \
             AND g > 1.5 AND h = -3 AND lower(i) = 'x' \
             AND j >= $7::date AND j < CAST($8 AS date) LIMIT 10"
        );
        assert_eq!(values, 8);
        assert_eq!(
            lifted("SELECT a FROM t WHERE a IN (SELECT b > 1 FROM u WHERE c = 'it''s')").unwrap().0,
            "SELECT a FROM t WHERE a IN (SELECT b > 1 FROM u WHERE c = $1)"
        );
    }

    #[test]
    fn values_that_are_lifted_come_behind_parameters() {
        let lifted = |sql| lifted(sql).unwrap();
        assert_eq!(
            lifted("SELECT a FROM t WHERE a = $2 AND b = 2 AND c IN (3, 4) LIMIT $1"),
            ("SELECT a FROM t WHERE a = $2 AND b = $3 AND c IN ($4) LIMIT $1".to_owned(), 4)
        );
        let bare = "SELECT a FROM t WHERE a = $1";
        assert_eq!(lifted(bare), (bare.to_owned(), 1));
    }

    #[test]
    fn long_lists_are_no_part_of_a_form() {
        let with_list = |values: usize| {
            let list = "'value', ".repeat(values) + "'last'";
            lifted(&format!("SELECT a FROM t WHERE a = 1 AND lower(b) IN ({list})"))
        };
        assert!(with_list(1).is_some_and(|(text, _)| text.ends_with("IN ('value', 'last')")));
        assert_eq!(with_list(200), None);
    }

    #[test]
    fn nothing_is_lifted_where_nothing_is_compared() {
        assert_eq!(lifted("SELECT 1"), None);
        assert_eq!(lifted("SELECT a FROM t LIMIT 3"), None);
        assert_eq!(lifted("SELECT a FROM t WHERE d = DATE 'tomorrow'"), None);
    }
}
