//! Literals of an INSERT that PostgreSQL does not cast to the type of their column by itself.
//!
//! In: a column and its literals. Out: 42804 for the first one that is of another kind. What may be assigned, the
//! catalog `pg_cast` says: between numbers, between dates and times, and everything to text; a text in quotes has no
//! type of its own. The engine would cast more: 2 to true.

use arrow::datatypes::{DataType, Field};
use stoa_error::{Error, Result};
use stoa_semantics::type_shown;
use stoa_sql::ValueLiteral;

/// Refuses literals that are not assigned to a column of this type.
///
/// # Errors
/// 42804.
pub(super) fn check<'a>(
    field: &Field,
    mut literals: impl Iterator<Item = ValueLiteral<'a>>,
) -> Result<()> {
    let of = field.data_type();
    match literals.find(|value| !is_assigned(value, of)) {
        None => Ok(()),
        Some(value) => Err(Error::invalid(format!(
            "column \"{}\" is of type {} but expression is of type {}",
            field.name(),
            type_shown(of),
            type_of(&value)
        ))
        .with_sqlstate("42804")
        .with_hint("You will need to rewrite or cast the expression.")),
    }
}

fn is_assigned(value: &ValueLiteral<'_>, to: &DataType) -> bool {
    match value {
        ValueLiteral::Null | ValueLiteral::Text(_) => true,
        ValueLiteral::Number { .. } => !is_of_another_kind(to) || is_text(to),
        ValueLiteral::Boolean(_) => *to == DataType::Boolean || is_text(to) || is_nested(to),
        ValueLiteral::Date(_) | ValueLiteral::Timestamp(_) => {
            matches!(to, DataType::Date32 | DataType::Timestamp(..)) || is_text(to) || is_nested(to)
        }
    }
}

/// Whether a type is surely none of numbers.
fn is_of_another_kind(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Boolean
            | DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Binary
            | DataType::FixedSizeBinary(_)
    )
}

fn is_text(of: &DataType) -> bool {
    matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// What is said of these, planning says.
fn is_nested(of: &DataType) -> bool {
    matches!(of, DataType::List(_) | DataType::Struct(_) | DataType::Map(..))
}

fn type_of(value: &ValueLiteral<'_>) -> &'static str {
    match value {
        ValueLiteral::Null | ValueLiteral::Text(_) => "unknown",
        ValueLiteral::Number { text, .. } => {
            let fits = |bits: u32| text.parse::<u64>().is_ok_and(|number| number < 1 << (bits - 1));
            match (fits(32), fits(64)) {
                (true, _) => "integer",
                (false, true) => "bigint",
                (false, false) => "numeric",
            }
        }
        ValueLiteral::Boolean(_) => "boolean",
        ValueLiteral::Date(_) => "date",
        ValueLiteral::Timestamp(_) => "timestamp without time zone",
    }
}
