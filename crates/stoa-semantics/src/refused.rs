//! What PostgreSQL refuses and the engine would take: casts between types that have nothing in common,
//! functions on texts that are given something else, bytes beside texts. Conditions are in `conditions`.
//!
//! **Invariant:** what PostgreSQL takes is not refused here: literals of no type yet are what is wanted, and
//! types that it does not have (records, maps) are not judged.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};
use stoa_error::{Error, Subject};

use super::call::unsupported;
use super::operators::{name, type_name};
use crate::errors::{missing_operator, to_datafusion};
use crate::scope::Scope;

/// Kinds of types, as far as casts between them differ.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Boolean,
    /// `integer`, which is the only number that is cast to and from booleans.
    Integer,
    Number,
    Date,
    Time,
    Timestamp,
    Interval,
    Bytes,
    Uuid,
}

/// `None` for texts, which are cast to and from everything, and for types that are not judged.
fn kind(of: &DataType) -> Option<Kind> {
    Some(match of {
        DataType::Boolean => Kind::Boolean,
        DataType::Int32 | DataType::UInt16 => Kind::Integer,
        of if of.is_numeric() => Kind::Number,
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Time32(_) | DataType::Time64(_) => Kind::Time,
        DataType::Timestamp(..) => Kind::Timestamp,
        DataType::Interval(_) | DataType::Duration(_) => Kind::Interval,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Kind::Bytes,
        DataType::FixedSizeBinary(16) => Kind::Uuid,
        _ => return None,
    })
}

/// Checks that PostgreSQL has a cast.
///
/// # Errors
/// It has none (42846).
pub(super) fn cast(expr: &Expr, from: &DataType, to: &DataType) -> Result<()> {
    let from = &told(expr, from);
    if exists(from, to) {
        return Ok(());
    }
    let (own, wanted) = (type_name(from), type_name(to));
    let message = format!("cannot cast type {own} to {wanted}");
    Err(refusal("42846", message, "PostgreSQL has no such cast; cast to text first, or compute it"))
}

fn exists(from: &DataType, to: &DataType) -> bool {
    if let (Some(from), Some(to)) = (item(from), item(to)) {
        return exists(from, to);
    }
    let is_nested = item(from).is_some() && kind(to).is_some();
    if is_nested || item(to).is_some() && kind(from).is_some() {
        return false;
    }
    let (Some(from), Some(to)) = (kind(from), kind(to)) else { return true };
    let is_known = matches!(
        (from, to),
        (Kind::Integer | Kind::Number, Kind::Integer | Kind::Number)
            | (Kind::Boolean, Kind::Integer)
            | (Kind::Integer, Kind::Boolean)
            | (Kind::Date, Kind::Timestamp)
            | (Kind::Timestamp, Kind::Date | Kind::Time)
            | (Kind::Time, Kind::Interval)
            | (Kind::Interval, Kind::Time)
    );
    from == to || is_known
}

fn item(of: &DataType) -> Option<&DataType> {
    match of {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

/// The type that PostgreSQL has for an expression: whole literals are integers where they fit.
pub(super) fn told(expr: &Expr, of: &DataType) -> DataType {
    match expr {
        Expr::Alias(alias) => told(&alias.expr, of),
        Expr::Literal(ScalarValue::Int64(Some(value)), _) if i32::try_from(*value).is_ok() => {
            DataType::Int32
        }
        _ => of.clone(),
    }
}

/// A function on texts.
struct OnTexts {
    /// The engine's name.
    function: &'static str,
    /// Which of its arguments are texts.
    texts: &'static [usize],
    /// Whether PostgreSQL has it for `bytea`, too.
    takes_bytes: bool,
}

const fn on_texts(function: &'static str, texts: &'static [usize]) -> OnTexts {
    OnTexts { function, texts, takes_bytes: false }
}

const fn or_bytes(function: &'static str, texts: &'static [usize]) -> OnTexts {
    OnTexts { function, texts, takes_bytes: true }
}

const ON_TEXTS: &[OnTexts] = &[
    on_texts("ascii", &[0]),
    or_bytes("bit_length", &[0]),
    or_bytes("btrim", &[0, 1]),
    or_bytes("character_length", &[0]),
    on_texts("initcap", &[0]),
    on_texts("left", &[0]),
    on_texts("lower", &[0]),
    on_texts("lpad", &[0, 2]),
    or_bytes("ltrim", &[0, 1]),
    or_bytes("md5", &[0]),
    or_bytes("octet_length", &[0]),
    on_texts("regexp_count", &[0, 1]),
    on_texts("regexp_like", &[0, 1]),
    on_texts("regexp_match", &[0, 1]),
    on_texts("regexp_replace", &[0, 1, 2]),
    on_texts("repeat", &[0]),
    on_texts("replace", &[0, 1, 2]),
    on_texts("reverse", &[0]),
    on_texts("right", &[0]),
    on_texts("rpad", &[0, 2]),
    or_bytes("rtrim", &[0, 1]),
    on_texts("split_part", &[0, 1]),
    on_texts("starts_with", &[0, 1]),
    or_bytes("strpos", &[0, 1]),
    or_bytes("substr", &[0]),
    on_texts("translate", &[0, 1, 2]),
    on_texts("upper", &[0]),
];

/// Checks that a function on texts is given texts.
///
/// # Errors
/// It is given something else (42883).
pub(super) fn function(call: &ScalarFunction, scope: &Scope<'_>) -> Result<()> {
    let Some(known) = ON_TEXTS.iter().find(|known| known.function == call.func.name()) else {
        return Ok(());
    };
    let is_wrong = |at: &usize| {
        let kind = match call.args.get(*at).map(|arg| arg.get_type(&scope.schema)) {
            Some(Ok(of)) => kind(&of),
            _ => None,
        };
        kind.is_some_and(|kind| kind != Kind::Bytes || !known.takes_bytes)
    };
    if !known.texts.iter().any(is_wrong) {
        return Ok(());
    }
    let shown = |arg: &Expr| {
        let of = arg.get_type(&scope.schema)?;
        Ok(match is_unknown(arg) {
            true => "unknown".to_owned(),
            false => type_name(&told(arg, &of)),
        })
    };
    let types = call.args.iter().map(shown).collect::<Result<Vec<_>>>()?;
    let name = match known.function {
        "character_length" => "length",
        other => other,
    };
    let message = format!("function {name}({}) does not exist", types.join(", "));
    let hint = "No function matches the given name and argument types. \
        You might need to add explicit type casts.";
    let error = Error::invalid(message).with_sqlstate("42883").with_hint(hint);
    Err(to_datafusion(error.about(Subject::Function(name.to_owned()))))
}

/// Checks that an aggregate is given what it takes.
///
/// # Errors
/// `string_agg` of bytes, which the engine would take for texts (0A000).
pub(super) fn aggregate(call: &AggregateFunction, scope: &Scope<'_>) -> Result<()> {
    if call.func.name() == "string_agg"
        && let Some(value) = call.params.args.first()
        && value.get_type(&scope.schema)?.is_binary()
    {
        let hint = "aggregate texts, such as encode(value, 'hex')";
        return Err(unsupported("string_agg of bytea is not supported", hint));
    }
    Ok(())
}

/// Whether an expression is a literal whose type is not settled.
fn is_unknown(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _))
}

/// Checks that bytes are compared with bytes, or with what will be bytes.
///
/// # Errors
/// They are compared with a text (42883).
pub(super) fn comparison(
    op: Operator,
    (left, a): (&Expr, &DataType),
    (right, b): (&Expr, &DataType),
) -> Result<()> {
    let is_text = |side: &Expr, of: &DataType| {
        of.is_string() && !is_unknown(side) && !matches!(side, Expr::Placeholder(_))
    };
    let are_mixed = kind(a) == Some(Kind::Bytes) && is_text(right, b)
        || kind(b) == Some(Kind::Bytes) && is_text(left, a);
    if !are_mixed {
        return Ok(());
    }
    Err(to_datafusion(missing_operator((name(a).to_owned(), op.to_string(), name(b).to_owned()))))
}

pub(super) fn refusal(
    sqlstate: &'static str,
    message: String,
    hint: &'static str,
) -> DataFusionError {
    to_datafusion(Error::invalid(message).with_sqlstate(sqlstate).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, TimeUnit};
    use datafusion::logical_expr::lit;

    use super::*;

    #[test]
    fn casts_are_those_of_postgresql() {
        use DataType::{Binary, Boolean, Date32, Decimal128, Float64, Int16, Int32, Int64, Utf8};
        let timestamp = || DataType::Timestamp(TimeUnit::Microsecond, None);
        let time = || DataType::Time64(TimeUnit::Microsecond);
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        for (from, to) in [
            (Int64, Decimal128(5, 2)),
            (Boolean, Int32),
            (Int32, Boolean),
            (Date32, timestamp()),
            (timestamp(), time()),
            (Utf8, Date32),
            (Binary, Utf8),
            (list(Int64), list(Float64)),
            (list(Int64), Utf8),
            (Date32, DataType::Null),
        ] {
            assert!(exists(&from, &to), "{from} to {to}");
        }
        for (from, to) in [
            (Date32, Int32),
            (Boolean, Int64),
            (Int16, Boolean),
            (Float64, Boolean),
            (Int32, timestamp()),
            (Date32, time()),
            (time(), timestamp()),
            (Int32, Binary),
            (list(Int64), Int64),
            (list(Int64), list(Date32)),
        ] {
            assert!(!exists(&from, &to), "{from} to {to}");
        }
        let error = cast(&lit(1_i64), &Int64, &Date32).unwrap_err();
        assert!(error.to_string().contains("cannot cast type integer to date"), "{error}");
        assert!(cast(&lit(1_i64), &Int64, &Boolean).is_ok());
        assert!(cast(&lit(1_i64 << 40), &Int64, &Boolean).is_err());
    }
}
