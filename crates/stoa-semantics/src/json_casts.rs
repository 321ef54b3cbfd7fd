//! Casts and comparisons of `json` and `jsonb`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, ColumnarValue, Expr, Operator};

use super::call::{Operation, call, column, unsupported};
use super::json_kind::JsonKind;
use super::json_text::contains::comparable_text;
use super::json_text::value::Item;
use super::json_text::write::normal;
use super::made_texts::Texts;
use super::operators::type_name;
use super::refused;
use crate::scope::Scope;

/// `x::json`: a text is read; of the other kind, the value is written as it has it.
///
/// # Errors
/// PostgreSQL has no cast of other types (42846).
pub(super) fn cast(
    own: Cast,
    from: &DataType,
    to: JsonKind,
    scope: &Scope<'_>,
) -> Result<Transformed<Expr>> {
    if JsonKind::of(&own.expr, &scope.schema) == Some(to) {
        return Ok(Transformed::yes(*own.expr));
    }
    let text = match *own.expr {
        parameter @ Expr::Placeholder(_) => {
            Expr::Cast(Cast::new(Box::new(parameter), DataType::Utf8))
        }
        expr if from.is_string() || from.is_null() => expr,
        _ => {
            let message = format!("cannot cast type {} to {}", type_name(from), to.name());
            return Err(refused::refusal("42846", message, "use to_json(…) or to_jsonb(…)"));
        }
    };
    Ok(Transformed::yes(call(AsJson { to }, vec![text])))
}

/// The cast of a JSON value to another type, of its text: to a text, or for `jsonb` to a number or a boolean.
///
/// # Errors
/// PostgreSQL has no such cast (42846).
pub(super) fn cast_to_other(own: Cast, of: JsonKind) -> Result<Cast> {
    let to = own.field.data_type();
    let is_known = of == JsonKind::Jsonb && (to.is_numeric() || *to == DataType::Boolean);
    if !is_known && !to.is_string() {
        let message = format!("cannot cast type {} to {}", of.name(), type_name(to));
        return Err(refused::refusal("42846", message, "take its text with ->> and cast that"));
    }
    Ok(Cast { expr: Box::new(call(AsText, vec![*own.expr])), ..own })
}

/// Operands of a comparison: of `jsonb`, texts that equal values have in common.
///
/// # Errors
/// `json` cannot be compared (42883), `jsonb` only for equality (0A000).
pub(super) fn compared(
    left: Box<Expr>,
    op: Operator,
    right: Box<Expr>,
    scope: &Scope<'_>,
) -> Result<(Box<Expr>, Box<Expr>)> {
    let kind = |side: &Expr| JsonKind::of(side, &scope.schema);
    let Some(kind) = kind(&left).or_else(|| kind(&right)) else { return Ok((left, right)) };
    if kind == JsonKind::Json {
        let message = format!("operator does not exist: json {op} json");
        return Err(refused::refusal("42883", message, "cast to jsonb or to text first"));
    }
    let is_equality = matches!(
        op,
        Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
    );
    if !is_equality {
        return Err(unsupported(
            "jsonb can be compared for equality only",
            "compare a member's text or number: (x ->> 'key')::numeric",
        ));
    }
    let side = |side: Box<Expr>| {
        let value = match is_unknown(&side) {
            true => call(AsJson { to: JsonKind::Jsonb }, vec![*side]),
            false => *side,
        };
        Box::new(call(Comparable, vec![value]))
    };
    Ok((side(left), side(right)))
}

/// Whether an expression is a literal whose type is not settled.
pub(super) fn is_unknown(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _))
}

/// A text as JSON: checked, and in normal form for `jsonb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AsJson {
    pub(super) to: JsonKind,
}

impl Operation for AsJson {
    fn name(&self) -> &str {
        match self.to {
            JsonKind::Json => "as_json",
            JsonKind::Jsonb => "as_jsonb",
        }
    }

    fn json(&self) -> Option<JsonKind> {
        Some(self.to)
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let texts = compute::cast(&column(operands, rows)?, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        match self.to {
            JsonKind::Json => {
                texts.iter().flatten().try_for_each(|text| Item::parse(text).map(drop))?;
                Ok(Arc::new(texts.clone()))
            }
            JsonKind::Jsonb => in_normal_form(texts),
        }
    }
}

/// Each text in the normal form of `jsonb`.
///
/// # Errors
/// What is no JSON (22P02), and what is too large (54000).
pub(super) fn in_normal_form(texts: &StringArray) -> Result<ArrayRef> {
    let mut out = Texts::of("jsonb");
    for text in texts {
        out.append(text.map(|text| normal(&Item::parse(text)?)).transpose()?)?;
    }
    Ok(Arc::new(out.finish()))
}

/// JSON as a text of its own: the mark is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AsText;

impl Operation for AsText {
    fn name(&self) -> &str {
        "json_as_text"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        Ok(compute::cast(&column(operands, rows)?, &DataType::Utf8)?)
    }
}

/// What equal values of `jsonb` have in common, as a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Comparable;

impl Operation for Comparable {
    fn name(&self) -> &str {
        "jsonb_comparable"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let texts = compute::cast(&column(operands, rows)?, &DataType::Utf8)?;
        let mut out = Texts::of("jsonb");
        for text in texts.as_string::<i32>() {
            let text = text.map(Item::parse).transpose()?;
            out.append(text.map(|item| comparable_text(&item)))?;
        }
        Ok(Arc::new(out.finish()))
    }
}
