//! Hive's operators and casts as Stoa's.
//!
//! In: an expression whose parts were rewritten. Out: one that means the same in Stoa's SQL. Comparisons stay as they
//! are: those of mixed types get their meaning when types are known (`stoa-semantics`, `hive`).

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, CeilFloorKind, DateTimeField, Expr, Interval, Subscript,
    TrimWhereField, UnaryOperator, Value,
};
use stoa_error::{Error, Result};

use crate::calls;
use crate::made::{call, cast, number, string};
use crate::types::{cast_to, column_type};

/// Operands of a call that stands for a chain of operators.
const OPERANDS_MAX: usize = 250;

/// Rewrites one expression.
///
/// # Errors
/// 0A000 for what Stoa has not; 42883 for functions that Hive has not.
pub(crate) fn rewrite(expr: &mut Expr) -> Result<()> {
    let new = match expr {
        Expr::Function(function) => calls::written(function)?,
        Expr::BinaryOp { left, op, right } => binary(left, op, right)?,
        Expr::UnaryOp { op, expr } => unary(*op, expr),
        Expr::Cast { kind, expr, data_type, format, .. } => {
            if format.is_some() {
                return Err(unsupported(
                    "CAST … FORMAT",
                    "use date_format, or unix_timestamp with a pattern",
                ));
            }
            if *kind != CastKind::Cast {
                return Err(unsupported("this cast", "write CAST(value AS type)"));
            }
            let expr = taken(expr);
            Some(cast_as(expr, data_type)?)
        }
        Expr::RLike { negated, expr, pattern, .. } => {
            let found = call("hive_rlike", vec![taken(expr), taken(pattern)]);
            Some(negate(found, *negated))
        }
        Expr::Like { any: true, negated, expr, pattern, .. } => {
            Some(like_any(*negated, expr, pattern)?)
        }
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            let mut args = vec![taken(expr)];
            args.push(substring_from.take().map_or_else(|| number(1), |from| *from));
            args.extend(substring_for.take().map(|length| *length));
            Some(call("hive_substr", args))
        }
        Expr::Trim { trim_where, trim_what: None, expr, trim_characters: None } => {
            let name = match trim_where {
                Some(TrimWhereField::Leading) => "hive_ltrim",
                Some(TrimWhereField::Trailing) => "hive_rtrim",
                Some(TrimWhereField::Both) | None => "hive_trim",
            };
            Some(call(name, vec![taken(expr)]))
        }
        Expr::Trim { .. } => {
            return Err(unsupported("TRIM of other characters", "use regexp_replace"));
        }
        Expr::Position { expr, r#in } => Some(call("hive_locate", vec![taken(expr), taken(r#in)])),
        Expr::Floor { expr, field } => Some(near("hive_floor", expr, field)?),
        Expr::Ceil { expr, field } => Some(near("hive_ceil", expr, field)?),
        Expr::Extract { field, expr, .. } => {
            let field = field.to_string().to_lowercase();
            Some(call("hive_extract", vec![string(&field), taken(expr)]))
        }
        Expr::CompoundFieldAccess { root, access_chain } => access(root, access_chain)?,
        Expr::Value(value) => {
            if let Value::SingleQuotedString(text) = &value.value {
                value.value = literal(text);
            }
            None
        }
        Expr::Identifier(name) if name.quote_style.is_none() => session_value(&name.value),
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => None,
        Expr::Interval(_) => None,
        Expr::Struct { values, .. } => {
            let fields = std::mem::take(values).into_iter().enumerate();
            let named = fields.flat_map(|(at, value)| [string(&format!("col{}", at + 1)), value]);
            Some(call("named_struct", named.collect()))
        }
        Expr::Array(array) => Some(call("hive_array", std::mem::take(&mut array.elem))),
        Expr::Collate { .. } => {
            return Err(unsupported("COLLATE", "texts are compared by their bytes"));
        }
        Expr::Overlay { .. } => return Err(unsupported("OVERLAY", "use substr and concat")),
        _ => None,
    };
    if let Some(new) = new {
        *expr = new;
    }
    Ok(())
}

fn unsupported(what: &str, hint: &str) -> Error {
    Error::unsupported(format!("{what} is not supported in HiveQL")).with_hint(hint)
}

fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::value(Value::Null))
}

fn negate(expr: Expr, is_negated: bool) -> Expr {
    match is_negated {
        true => {
            Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }))
        }
        false => expr,
    }
}

/// A text that the writer of statements would take apart is written with escapes.
fn literal(text: &str) -> Value {
    match text.contains("''") || text.contains("\\'") {
        true => Value::EscapedStringLiteral(text.to_owned()),
        false => Value::SingleQuotedString(text.to_owned()),
    }
}

fn session_value(name: &str) -> Option<Expr> {
    match name {
        "current_timestamp" => Some(cast(crate::made::raw("localtimestamp"), "timestamp")),
        _ => None,
    }
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_number(expr),
        Expr::Nested(inner) => is_number(inner),
        _ => false,
    }
}

fn binary(left: &mut Expr, op: &BinaryOperator, right: &mut Expr) -> Result<Option<Expr>> {
    if let (BinaryOperator::Plus | BinaryOperator::Minus, Some(shift)) =
        (op, shift(left, op, right)?)
    {
        return Ok(Some(shift));
    }
    if let Some(longer) = chained(left, op, right) {
        return Ok(Some(longer));
    }
    let name = match op {
        BinaryOperator::Plus => "hive_add",
        BinaryOperator::Minus => "hive_subtract",
        BinaryOperator::Multiply => "hive_multiply",
        BinaryOperator::Divide => "hive_divide",
        BinaryOperator::Modulo => "hive_mod",
        BinaryOperator::MyIntegerDivide => "hive_div",
        BinaryOperator::StringConcat => "hive_concat",
        BinaryOperator::Spaceship => {
            let (left, right) = (Box::new(taken(left)), Box::new(taken(right)));
            return Ok(Some(Expr::Nested(Box::new(Expr::IsNotDistinctFrom(left, right)))));
        }
        BinaryOperator::BitwiseXor => {
            let left = Box::new(call("hive_bits", vec![taken(left)]));
            let right = Box::new(call("hive_bits", vec![taken(right)]));
            return Ok(Some(Expr::Nested(Box::new(Expr::BinaryOp {
                left,
                op: BinaryOperator::PGBitwiseXor,
                right,
            }))));
        }
        BinaryOperator::BitwiseAnd | BinaryOperator::BitwiseOr => {
            *left = call("hive_bits", vec![taken(left)]);
            *right = call("hive_bits", vec![taken(right)]);
            let (left, right) = (Box::new(taken(left)), Box::new(taken(right)));
            return Ok(Some(Expr::Nested(Box::new(Expr::BinaryOp {
                left,
                op: op.clone(),
                right,
            }))));
        }
        BinaryOperator::And
        | BinaryOperator::Or
        | BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::Lt
        | BinaryOperator::LtEq
        | BinaryOperator::Gt
        | BinaryOperator::GtEq => return Ok(None),
        other => {
            return Err(unsupported(
                &format!("the operator {other}"),
                "docs/hiveql.md lists the operators",
            ));
        }
    };
    let mut sides = vec![taken(left), taken(right)];
    if *op == BinaryOperator::Divide {
        sides.extend(digits_of(&sides[1]));
    }
    Ok(Some(call(name, sides)))
}

/// `a + b + c` is one call, not calls within calls: how deep these may be is limited.
fn chained(left: &mut Expr, op: &BinaryOperator, right: &mut Expr) -> Option<Expr> {
    let Expr::Function(function) = &*left else { return None };
    let name = calls::name_of(function)?;
    let mut args = calls::operands(function);
    if args.len() >= OPERANDS_MAX {
        return None;
    }
    let negative = |of: Expr| call("hive_negative", vec![of]);
    let name = match (name, op) {
        ("hive_multiply", BinaryOperator::Multiply) => "hive_multiply",
        ("hive_concat", BinaryOperator::StringConcat) => "hive_concat",
        ("hive_add", BinaryOperator::Plus | BinaryOperator::Minus) => "hive_add",
        ("hive_subtract", BinaryOperator::Plus | BinaryOperator::Minus) => {
            let subtracted = args.pop()?;
            args.push(negative(subtracted));
            "hive_add"
        }
        _ => return None,
    };
    let next = taken(right);
    args.push(if *op == BinaryOperator::Minus { negative(next) } else { next });
    Some(call(name, args))
}

/// A decimal of as many digits as a whole literal is written with.
fn digits_of(literal: &Expr) -> Option<Expr> {
    let Expr::Value(value) = literal else { return None };
    let Value::Number(digits, _) = &value.value else { return None };
    let is_whole = digits.len() <= 18 && digits.chars().all(|c| c.is_ascii_digit());
    is_whole.then(|| cast(number(0), &format!("numeric({},0)", digits.len())))
}

fn unary(op: UnaryOperator, expr: &mut Expr) -> Option<Expr> {
    match op {
        UnaryOperator::Minus if !is_number(expr) => Some(call("hive_negative", vec![taken(expr)])),
        UnaryOperator::Plus if !is_number(expr) => Some(call("hive_positive", vec![taken(expr)])),
        UnaryOperator::BangNot => Some(Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(Expr::Nested(Box::new(taken(expr)))),
        }),
        UnaryOperator::BitwiseNot => {
            *expr = call("hive_bits", vec![taken(expr)]);
            None
        }
        _ => None,
    }
}

/// A time and an interval.
fn shift(left: &mut Expr, op: &BinaryOperator, right: &mut Expr) -> Result<Option<Expr>> {
    let is_minus = *op == BinaryOperator::Minus;
    let (time, interval) = match (&*left, &*right) {
        (_, Expr::Interval(interval)) => (&*left, interval),
        (Expr::Interval(interval), _) if !is_minus => (&*right, interval),
        _ => return Ok(None),
    };
    let (unit, count) = span(interval)?;
    let count = if is_minus { -count } else { count };
    let name = if unit == Unit::Months { "hive_plus_months" } else { "hive_plus_micros" };
    Ok(Some(call(name, vec![time.clone(), number(count)])))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Months,
    Micros,
}

/// `INTERVAL '1' DAY`, `INTERVAL 2 MONTHS`, `INTERVAL '1-2' YEAR TO MONTH`.
fn span(interval: &Interval) -> Result<(Unit, i64)> {
    let wrong = || {
        unsupported(
            "this interval",
            "write INTERVAL '1' DAY, with YEAR, MONTH, WEEK, DAY, HOUR, MINUTE or SECOND",
        )
    };
    let text = match interval.value.as_ref() {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::Number(text, _) => text.trim().to_owned(),
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.as_str()),
    };
    if let (Some(DateTimeField::Year), Some(DateTimeField::Month)) =
        (&interval.leading_field, &interval.last_field)
    {
        let (years, months) = digits.split_once('-').ok_or_else(wrong)?;
        let (years, months): (i64, i64) =
            (years.parse().map_err(|_| wrong())?, months.parse().map_err(|_| wrong())?);
        return years
            .checked_mul(12)
            .and_then(|all| all.checked_add(months))
            .map(|all| (Unit::Months, sign * all))
            .ok_or_else(wrong);
    }
    if interval.last_field.is_some() {
        return Err(wrong());
    }
    let Some(field) = &interval.leading_field else { return Err(wrong()) };
    let (unit, factor) = match field {
        DateTimeField::Year | DateTimeField::Years => (Unit::Months, 12),
        DateTimeField::Quarter => (Unit::Months, 3),
        DateTimeField::Month | DateTimeField::Months => (Unit::Months, 1),
        DateTimeField::Week(None) | DateTimeField::Weeks => (Unit::Micros, 7 * 86_400_000_000),
        DateTimeField::Day | DateTimeField::Days => (Unit::Micros, 86_400_000_000),
        DateTimeField::Hour | DateTimeField::Hours => (Unit::Micros, 3_600_000_000),
        DateTimeField::Minute | DateTimeField::Minutes => (Unit::Micros, 60_000_000),
        DateTimeField::Second | DateTimeField::Seconds => (Unit::Micros, 1_000_000),
        _ => return Err(wrong()),
    };
    let count: i64 = digits.parse().map_err(|_| wrong())?;
    count.checked_mul(factor).map(|all| (unit, sign * all)).ok_or_else(wrong)
}

pub(crate) fn cast_as(expr: Expr, to: &sqlparser::ast::DataType) -> Result<Expr> {
    let (name, more) = cast_to(to)?;
    // A literal of the type, which reports are recognised by.
    let is_null = matches!(&expr, Expr::Value(value) if value.value == Value::Null);
    if is_null {
        return Ok(cast(expr, &column_type(to)?));
    }
    let mut args = vec![expr];
    args.extend(more.iter().map(|value| number(*value)));
    Ok(match name {
        "hive_to_decimal" => cast(call(name, args), &column_type(to)?),
        "hive_to_float" => cast(call(name, args), "real"),
        "hive_to_varchar" => call(
            "hive_substr",
            vec![call("hive_to_string", vec![args.swap_remove(0)]), number(1), number(more[0])],
        ),
        "hive_to_char" => {
            let text = call("hive_to_string", vec![args.swap_remove(0)]);
            call("hive_rpad", vec![text, number(more[0]), string(" ")])
        }
        _ => call(name, args),
    })
}

fn like_any(is_negated: bool, expr: &mut Expr, pattern: &mut Expr) -> Result<Expr> {
    let patterns = match pattern {
        Expr::Tuple(patterns) => std::mem::take(patterns),
        Expr::Nested(one) => vec![taken(one)],
        _ => {
            return Err(unsupported(
                "LIKE ANY of a query",
                "join the query, with LIKE in its condition",
            ));
        }
    };
    let of = taken(expr);
    let one = |pattern: Expr| Expr::Like {
        negated: false,
        any: false,
        expr: Box::new(of.clone()),
        pattern: Box::new(pattern),
        escape_char: None,
    };
    let all = patterns.into_iter().map(one).reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::Or,
        right: Box::new(right),
    });
    match all {
        Some(all) => Ok(negate(Expr::Nested(Box::new(all)), is_negated)),
        None => Err(unsupported("LIKE ANY ()", "name a pattern")),
    }
}

fn near(name: &str, expr: &mut Expr, field: &CeilFloorKind) -> Result<Expr> {
    match field {
        CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => {
            Ok(call(name, vec![taken(expr)]))
        }
        CeilFloorKind::DateTimeField(unit) if name == "hive_floor" => {
            Ok(call("hive_floor_to", vec![string(&unit.to_string().to_lowercase()), taken(expr)]))
        }
        _ => Err(unsupported("this FLOOR or CEIL", "write floor(number), or floor(time TO unit)")),
    }
}

/// `a[0]`, `m['k']`, `s.f` and chains of them.
fn access(root: &mut Expr, chain: &mut Vec<AccessExpr>) -> Result<Option<Expr>> {
    let mut found = taken(root);
    for access in std::mem::take(chain) {
        found = match access {
            AccessExpr::Subscript(Subscript::Index { index }) => {
                call("hive_index", vec![found, index])
            }
            AccessExpr::Dot(Expr::Identifier(field)) => {
                call("get_field", vec![found, string(&field.value)])
            }
            _ => {
                return Err(unsupported(
                    "this access",
                    "write array[index], map[key] or struct.field",
                ));
            }
        };
    }
    Ok(Some(found))
}
