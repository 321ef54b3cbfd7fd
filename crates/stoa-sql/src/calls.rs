//! Functions of PostgreSQL's that are others with other arguments, or with another type.
//!
//! In: an expression. Out: `now()` for `statement_timestamp()`, `age(current_date, x)` for `age(x)`,
//! `x AT TIME ZONE z` for `timezone(z, x)`, places and lengths of arrays as `integer`, and so on.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Interval,
    ObjectName, ObjectNamePart, Select, SelectItem, Statement, TimezoneInfo, UnaryOperator, Value,
    VisitorMut,
};

use crate::normalise;
use crate::reads::reads_columns;
use crate::walk::WalkMut;

/// Parameters of `make_interval`, which are mostly given by their names.
const INTERVAL_PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// `SELECT x ISNULL, y NOTNULL`, which the parser takes for names of columns.
pub(super) fn write_null_tests(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut NullTests);
}

struct NullTests;

impl VisitorMut for NullTests {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
            let is_word =
                |word: &str| alias.quote_style.is_none() && alias.value.eq_ignore_ascii_case(word);
            let test = match (is_word("isnull"), is_word("notnull")) {
                (true, _) => Expr::IsNull(Box::new(expr.clone())),
                (_, true) => Expr::IsNotNull(Box::new(expr.clone())),
                _ => continue,
            };
            *item = SelectItem::UnnamedExpr(test);
        }
        ControlFlow::Continue(())
    }
}

/// Replaces a call; its arguments may hold others.
pub(super) fn write_as_others(expr: &mut Expr) {
    // `interval(0) '1.5 s'`: as a literal, the engine would forget the precision.
    if let Expr::TypedString(typed) = &*expr
        && let DataType::Interval { fields, precision } = &typed.data_type
        && (fields.is_some() || precision.is_some())
    {
        *expr = cast(Expr::Value(typed.value.clone()), typed.data_type.clone());
        return;
    }
    // The engine would negate the first number of the text only.
    if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } = &mut *expr
        && let Expr::Interval(_) = operand.as_ref()
    {
        let literal = std::mem::replace(operand.as_mut(), Expr::value(Value::Null));
        **operand = Expr::Nested(Box::new(literal));
        return;
    }
    if let Expr::Interval(interval) = &*expr {
        if let Some(text) = interval_text(interval) {
            let text = Expr::value(Value::SingleQuotedString(text));
            *expr = cast(text, DataType::Interval { fields: None, precision: None });
        }
        return;
    }
    if let Expr::Substring { expr: text, substring_from: Some(from), substring_for: None, .. } =
        &*expr
        && matches!(from.as_ref(), Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
    {
        *expr = call("regexp_substring", vec![text.as_ref().clone(), from.as_ref().clone()]);
        return;
    }
    if let Some(written) = by_name(expr) {
        *expr = written;
        return;
    }
    let Expr::Function(function) = &*expr else { return };
    if let Some(written) = name_of(function).and_then(|name| written(&name, function)) {
        *expr = written;
    }
}

/// Forms of their own as calls by name: the engine has functions of texts only for them.
fn by_name(expr: &Expr) -> Option<Expr> {
    Some(match expr {
        Expr::Value(value) => match &value.value {
            // A text has no letter 0: the engine refuses it as it is.
            Value::UnicodeStringLiteral(text) if !text.contains('\0') => {
                Expr::value(Value::SingleQuotedString(text.clone()))
            }
            _ => return None,
        },
        // The engine reads the items of an array by themselves: they would know no query around them.
        Expr::Array(array) if array.elem.iter().any(reads_columns) => {
            call("make_array", array.elem.clone())
        }
        Expr::Cast { kind, expr: text, data_type, array, format } => Expr::Cast {
            kind: kind.clone(),
            data_type: with_dimensions_of(text, data_type)?,
            expr: text.clone(),
            array: *array,
            format: format.clone(),
        },
        // It needs a place, which the engine says.
        Expr::Substring { substring_from: None, substring_for: None, .. } => return None,
        Expr::Substring { expr: text, substring_from, substring_for, .. } => {
            let from = match substring_from {
                Some(from) => from.as_ref().clone(),
                None => Expr::value(Value::Number("1".into(), false)),
            };
            let mut args = vec![text.as_ref().clone(), from];
            args.extend(substring_for.as_deref().cloned());
            call("substr", args)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } => {
            match (left.as_ref(), right.as_ref()) {
                (Expr::Tuple(one), Expr::Tuple(other)) if one.len() == 2 && other.len() == 2 => {
                    call("overlaps", [one.as_slice(), other.as_slice()].concat())
                }
                _ => return None,
            }
        }
        Expr::Like { any: true, negated, expr: text, pattern, escape_char } => {
            let like = |pattern: &Expr| Expr::Like {
                any: false,
                negated: *negated,
                expr: text.clone(),
                pattern: Box::new(pattern.clone()),
                escape_char: escape_char.clone(),
            };
            any_of(text, pattern, like)
                .unwrap_or_else(|| quantified("like", *negated, text, pattern, false))
        }
        Expr::ILike { any: true, negated, expr: text, pattern, escape_char } => {
            let like = |pattern: &Expr| Expr::ILike {
                any: false,
                negated: *negated,
                expr: text.clone(),
                pattern: Box::new(pattern.clone()),
                escape_char: escape_char.clone(),
            };
            any_of(text, pattern, like)
                .unwrap_or_else(|| quantified("ilike", *negated, text, pattern, false))
        }
        Expr::Like { any: false, negated, expr: text, pattern, escape_char: None }
            if all_of(pattern).is_some() =>
        {
            quantified("like", *negated, text, all_of(pattern)?, true)
        }
        Expr::ILike { any: false, negated, expr: text, pattern, escape_char: None }
            if all_of(pattern).is_some() =>
        {
            quantified("ilike", *negated, text, all_of(pattern)?, true)
        }
        Expr::AnyOp { left, compare_op, right, is_some } => {
            let typed = array_like(right, left);
            let is_typed = typed.is_some();
            let (left, right) =
                typed.unwrap_or_else(|| (left.as_ref().clone(), right.as_ref().clone()));
            let nulls = (*compare_op == BinaryOperator::Eq && may_hold_nulls(&right))
                .then(|| call("any_null", vec![right.clone()]));
            if !is_typed && nulls.is_none() {
                return None;
            }
            let (left, right) = (Box::new(left), Box::new(right));
            let any =
                Expr::AnyOp { left, compare_op: compare_op.clone(), right, is_some: *is_some };
            match nulls {
                None => any,
                // What is equal to none is unknown beside NULL.
                Some(nulls) => Expr::Nested(Box::new(Expr::BinaryOp {
                    left: Box::new(any),
                    op: BinaryOperator::Or,
                    right: Box::new(nulls),
                })),
            }
        }
        Expr::AllOp { left, compare_op, right } => {
            let (left, right) = array_like(right, left)?;
            let (left, right) = (Box::new(left), Box::new(right));
            Expr::AllOp { left, compare_op: compare_op.clone(), right }
        }
        Expr::Position { expr: part, r#in: text } => {
            call("strpos", vec![text.as_ref().clone(), part.as_ref().clone()])
        }
        Expr::Overlay { expr: text, overlay_what, overlay_from, overlay_for } => {
            let args = [text, overlay_what, overlay_from].map(|arg| arg.as_ref().clone());
            call("overlay", args.into_iter().chain(overlay_for.as_deref().cloned()).collect())
        }
        Expr::IsNormalized { expr: text, form, negated } => {
            let form = form.map_or_else(|| "NFC".to_owned(), |form| form.to_string());
            let form = Expr::value(Value::SingleQuotedString(form));
            let test = call("is_normalized", vec![text.as_ref().clone(), form]);
            match negated {
                true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(test) },
                false => test,
            }
        }
        _ => return None,
    })
}

/// Bytes of a text that is compared with each pattern of an array.
const LIKE_BYTES_MAX: usize = 64 << 10;

/// `text LIKE ANY (ARRAY[…])`, pattern by pattern; `None` where the array is computed, or the text too long to repeat.
fn any_of(text: &Expr, patterns: &Expr, like: impl Fn(&Expr) -> Expr) -> Option<Expr> {
    match patterns {
        Expr::Nested(inner) => any_of(text, inner, like),
        Expr::Array(array) if !array.elem.is_empty() => {
            if text.to_string().len().saturating_mul(array.elem.len()) > LIKE_BYTES_MAX {
                return None;
            }
            let either = array.elem.iter().map(like).reduce(|left, right| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::Or,
                right: Box::new(right),
            });
            either.map(|either| Expr::Nested(Box::new(either)))
        }
        _ => None,
    }
}

/// The type of an array with as many dimensions as a literal has, where it has others.
fn with_dimensions_of(text: &Expr, of: &DataType) -> Option<DataType> {
    let Expr::Value(value) = text else { return None };
    let Value::SingleQuotedString(text) = &value.value else { return None };
    let DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = of else { return None };
    let (mut element, mut declared) = (element, 1_usize);
    while let DataType::Array(ArrayElemTypeDef::SquareBracket(inner, _)) = element.as_ref() {
        (element, declared) = (inner, declared + 1);
    }
    let braces = text.chars().filter(|letter| !letter.is_whitespace());
    let written = braces.take_while(|letter| *letter == '{').count().clamp(1, DIMENSIONS_MAX);
    if written == declared {
        return None;
    }
    let mut of = element.as_ref().clone();
    for _ in 0..written {
        of = DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(of), None));
    }
    Some(of)
}

/// Dimensions of an array, as in PostgreSQL.
const DIMENSIONS_MAX: usize = 6;

/// The array of `LIKE ALL (array)`, which is read as a call.
fn all_of(pattern: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = pattern else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))]
            if name_of(function).as_deref() == Some("all") =>
        {
            Some(array)
        }
        _ => None,
    }
}

/// `text LIKE ANY (array)` as a call: `like_any(text, array)`, `not_ilike_all(text, array)`.
fn quantified(like: &str, negated: bool, text: &Expr, patterns: &Expr, all: bool) -> Expr {
    let not = if negated { "not_" } else { "" };
    let name = format!("{not}{like}_{}", if all { "all" } else { "any" });
    call(&name, vec![text.clone(), patterns.clone()])
}

/// A literal in quotes that is compared item by item: `array_like('{1,2}', x)` has elements of the type of x.
///
/// The value is given back as one of that type.
fn array_like(array: &Expr, item: &Expr) -> Option<(Expr, Expr)> {
    match array {
        Expr::Nested(inner) => array_like(inner, item),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(_) => {
                let item = call("item_like", vec![item.clone()]);
                Some((item.clone(), call("array_like", vec![array.clone(), item])))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Bytes of an array that is looked through twice.
const ARRAY_BYTES_MAX: usize = 64 << 10;

/// Whether an array may have elements that are NULL, and can be looked through for them.
fn may_hold_nulls(array: &Expr) -> bool {
    let is_literal = |item: &Expr| match item {
        Expr::Value(value) => value.value != Value::Null,
        Expr::UnaryOp { expr, .. } => matches!(**expr, Expr::Value(_)),
        _ => false,
    };
    match array {
        Expr::Nested(inner) => may_hold_nulls(inner),
        Expr::Cast { expr, .. } if matches!(**expr, Expr::Value(_)) => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => text.to_ascii_lowercase().contains("null"),
                _ => false,
            },
            _ => false,
        },
        Expr::Function(function) if name_of(function).as_deref() == Some("array_like") => {
            array.to_string().to_ascii_lowercase().contains("null")
        }
        Expr::Function(function) if name_of(function).as_deref() == Some("make_array") => {
            array.to_string().len() < ARRAY_BYTES_MAX
        }
        Expr::Array(items) => {
            !items.elem.iter().all(is_literal) && array.to_string().len() < ARRAY_BYTES_MAX
        }
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        _ => false,
    }
}

/// A literal that the engine's own reader does not know: what is no row of numbers and units. Others stay, also
/// because the bounds of windows are literals.
fn interval_text(interval: &Interval) -> Option<String> {
    let Expr::Value(value) = interval.value.as_ref() else { return None };
    let Value::SingleQuotedString(text) = &value.value else { return None };
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_unit = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic()) && word != "ago";
    // Of others, the engine has parts that PostgreSQL does not: a week and a half is ten days and a half.
    let is_small = |number: &str| {
        number.len() < 9 && !number.starts_with('+') && number.parse::<i64>().is_ok()
    };
    let is_plain = |pair: &[&str]| match pair {
        [number, unit] => is_small(number) && is_unit(unit),
        _ => false,
    };
    let units: HashSet<&&str> = words.iter().skip(1).step_by(2).collect();
    let are_different = units.len() * 2 == words.len();
    if interval.leading_field.is_some() || are_different && words.chunks(2).all(is_plain) {
        return None;
    }
    Some(text.clone())
}

fn name_of(function: &Function) -> Option<String> {
    match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(normalise(name)),
        _ => None,
    }
}

/// The type that a cast written as a call names: `float8(x)`.
fn type_called(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" => DataType::Boolean,
        "int2" => DataType::SmallInt(None),
        "int4" => DataType::Integer(None),
        "int8" => DataType::BigInt(None),
        "float4" => DataType::Real,
        "float8" => DataType::DoublePrecision,
        "numeric" => DataType::Numeric(ExactNumberInfo::None),
        "text" => DataType::Text,
        _ => return None,
    })
}

fn written(name: &str, function: &Function) -> Option<Expr> {
    let args = positional(&function.args);
    let args = args.as_deref();
    if let (Some(of), Some([value])) = (type_called(name), args) {
        return Some(cast(value.clone(), of));
    }
    Some(match (name, args) {
        ("statement_timestamp" | "transaction_timestamp" | "clock_timestamp", Some([])) => {
            call("now", Vec::new())
        }
        ("current_timestamp", Some([digits])) => {
            now_as(DataType::Timestamp(Some(number(digits)?), TimezoneInfo::WithTimeZone))
        }
        ("localtimestamp", None | Some([])) => {
            now_as(DataType::Timestamp(None, TimezoneInfo::None))
        }
        ("localtimestamp", Some([digits])) => {
            now_as(DataType::Timestamp(Some(number(digits)?), TimezoneInfo::None))
        }
        ("localtime", None | Some([])) => now_as(DataType::Time(None, TimezoneInfo::None)),
        ("localtime", Some([digits])) => {
            now_as(DataType::Time(Some(number(digits)?), TimezoneInfo::None))
        }
        ("age", Some([moment])) => {
            let today = cast(
                call("current_date", Vec::new()),
                DataType::Timestamp(None, TimezoneInfo::None),
            );
            call("age", vec![today, moment.clone()])
        }
        ("timezone", Some([zone, moment])) => Expr::AtTimeZone {
            timestamp: Box::new(Expr::Nested(Box::new(moment.clone()))),
            time_zone: Box::new(zone.clone()),
        },
        ("make_interval", None) => call("make_interval", interval_parts(&function.args)?),
        ("array_length" | "cardinality" | "array_ndims" | "array_position", Some(_)) => {
            // By a path it is not looked at again.
            cast(Expr::Function(function.clone()), DataType::Integer(None))
        }
        ("array_fill", Some([value, Expr::Array(lengths)])) if lengths.elem.len() == 2 => {
            let filled = |value: Expr, length: &Expr| {
                let lengths = Array { elem: vec![length.clone()], named: true };
                call("array_fill", vec![value, Expr::Array(lengths)])
            };
            filled(filled(value.clone(), &lengths.elem[1]), &lengths.elem[0])
        }
        ("regr_count", Some(_)) => cast(Expr::Function(function.clone()), DataType::BigInt(None)),
        ("array_dims", Some([array])) => {
            let text = |text: &str| Expr::value(Value::SingleQuotedString(text.into()));
            let lengths = call("array_dims", vec![array.clone()]);
            let between = call("array_to_string", vec![lengths, text("][1:")]);
            Expr::Nested(Box::new(joined(joined(text("[1:"), between), text("]"))))
        }
        ("normalize", Some([text, Expr::Identifier(form)])) if form.quote_style.is_none() => {
            let form = Expr::value(Value::SingleQuotedString(form.value.clone()));
            call("normalize", vec![text.clone(), form])
        }
        ("length", Some([bytes, encoding])) => {
            call("length_in_encoding", vec![bytes.clone(), encoding.clone()])
        }
        ("timeofday", Some([])) => {
            let format = "Dy Mon DD HH24:MI:SS.US YYYY TZ".to_owned();
            let format = Expr::value(Value::SingleQuotedString(format));
            call("to_char", vec![call("now", Vec::new()), format])
        }
        ("make_timestamptz", Some(parts @ [_, _, _, _, _, _])) => cast(
            call("make_timestamp", parts.to_vec()),
            DataType::Timestamp(None, TimezoneInfo::WithTimeZone),
        ),
        // Offsets and abbreviations mean something else there than behind AT TIME ZONE.
        ("make_timestamptz", Some([parts @ .., zone])) if parts.len() == 6 && is_city(zone) => {
            let local = Box::new(call("make_timestamp", parts.to_vec()));
            Expr::AtTimeZone { timestamp: local, time_zone: Box::new(zone.clone()) }
        }
        ("array_cat", Some([Expr::Value(null), array] | [array, Expr::Value(null)]))
            if null.value == Value::Null && !matches!(array, Expr::Value(_)) =>
        {
            array.clone()
        }
        ("array_cat", Some(args)) => call("array_concat", args.to_vec()),
        ("array_positions", Some(_)) => {
            let integers = ArrayElemTypeDef::SquareBracket(Box::new(DataType::Integer(None)), None);
            cast(Expr::Function(function.clone()), DataType::Array(integers))
        }
        _ => return None,
    })
}

/// Whether a literal is the name of a zone with a region, or UTC.
fn is_city(zone: &Expr) -> bool {
    let Expr::Value(value) = zone else { return false };
    let Value::SingleQuotedString(name) = &value.value else { return false };
    name.contains('/') && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        || name.eq_ignore_ascii_case("utc")
}

fn joined(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::StringConcat,
        right: Box::new(right),
    }
}

fn now_as(of: DataType) -> Expr {
    cast(call("now", Vec::new()), of)
}

fn number(expr: &Expr) -> Option<u64> {
    let Expr::Value(value) = expr else { return None };
    match &value.value {
        Value::Number(digits, _) => digits.parse().ok(),
        _ => None,
    }
}

/// Arguments by place, zeros for those that are not given.
fn interval_parts(args: &FunctionArguments) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = args else { return None };
    let mut parts: Vec<Expr> =
        INTERVAL_PARTS.iter().map(|_| Expr::value(Value::Number("0".into(), false))).collect();
    for (place, arg) in list.args.iter().enumerate() {
        let (place, value) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (place, value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                let name = normalise(name);
                (INTERVAL_PARTS.iter().position(|part| *part == name)?, value)
            }
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(value),
                ..
            } => {
                let name = normalise(name);
                (INTERVAL_PARTS.iter().position(|part| *part == name)?, value)
            }
            _ => return None,
        };
        *parts.get_mut(place)? = value.clone();
    }
    Some(parts)
}

/// The name of a function, with or without PostgreSQL's own schema.
pub(super) fn named(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(normalise(name)),
        [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(name)]
            if normalise(schema) == "pg_catalog" =>
        {
            Some(normalise(name))
        }
        _ => None,
    }
}

/// The arguments of a call, if none has a name.
pub(super) fn positional(args: &FunctionArguments) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = args else { return None };
    let value = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    list.args.iter().map(value).collect()
}

/// A call by name.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A value as one of another type.
pub(super) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn calls_are_written_as_others() {
        for (text, written) in [
            ("statement_timestamp()", "now()"),
            ("localtimestamp", "CAST(now() AS TIMESTAMP)"),
            ("localtime(0)", "CAST(now() AS TIME(0))"),
            ("current_timestamp(3)", "CAST(now() AS TIMESTAMP(3) WITH TIME ZONE)"),
            ("current_timestamp", "current_timestamp"),
            ("age(x)", "age(CAST(current_date() AS TIMESTAMP), x)"),
            ("age(x, y)", "age(x, y)"),
            ("timezone('UTC', x)", "(x) AT TIME ZONE 'UTC'"),
            ("make_interval(hours => 2, mins => a)", "make_interval(0, 0, 0, 0, 2, a, 0)"),
            ("cardinality(x)", "CAST(cardinality(x) AS INTEGER)"),
            ("count(x)", "count(x)"),
            ("INTERVAL '1 day'", "INTERVAL '1 day'"),
            ("INTERVAL '1-2'", "CAST('1-2' AS INTERVAL)"),
            ("INTERVAL '1 day 02:03'", "CAST('1 day 02:03' AS INTERVAL)"),
            ("INTERVAL '90' MINUTE", "INTERVAL '90' MINUTE"),
        ] {
            let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text);
            let mut expr = parser.unwrap().parse_expr().unwrap();
            write_as_others(&mut expr);
            assert_eq!(expr.to_string(), written);
        }
    }
}
