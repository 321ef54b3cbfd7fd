//! JSON of SQL values: `to_json`, `json_build_object`, casts of texts.
//!
//! `json` is written as PostgreSQL's functions do: `{"a" : 1, "b" : [1,2]}` by `json_build_object`, without blanks
//! by `to_json`. `jsonb` is read again and written in normal form.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, ScalarUDF};

use super::JsonKind;
use super::pair::LINE;
use super::rows::is_column;
use crate::bounded;
use crate::call::{Operation, call, column, columns, failure, function};
use crate::json_casts::{in_normal_form, is_unknown};
use crate::json_text::value::Item;
use crate::json_text::write::{normal, quoted};
use crate::made_texts::Texts;
use crate::scope::Scope;
use crate::text_of::{self, TextOf};
use crate::{casts, refused, time_zone};

/// What a function by its name makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Makes {
    /// A value of one operand.
    Value,
    /// The same, on a line of its own where it is an array or a record: an element of `json_agg`.
    Element,
    Array,
    Object,
}

/// Functions of operands of any type, until they are analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Named {
    name: &'static str,
    kind: JsonKind,
    makes: Makes,
}

const NAMED: &[Named] = &[
    Named { name: "to_json", kind: JsonKind::Json, makes: Makes::Value },
    Named { name: "to_jsonb", kind: JsonKind::Jsonb, makes: Makes::Value },
    Named { name: "row_to_json", kind: JsonKind::Json, makes: Makes::Value },
    Named { name: "array_to_json", kind: JsonKind::Json, makes: Makes::Value },
    Named { name: "json_element_of", kind: JsonKind::Json, makes: Makes::Element },
    Named { name: "json_build_array", kind: JsonKind::Json, makes: Makes::Array },
    Named { name: "jsonb_build_array", kind: JsonKind::Jsonb, makes: Makes::Array },
    Named { name: "json_build_object", kind: JsonKind::Json, makes: Makes::Object },
    Named { name: "jsonb_build_object", kind: JsonKind::Jsonb, makes: Makes::Object },
];

/// The functions that have to be known by name.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    NAMED.iter().map(|named| function(*named))
}

impl Operation for Named {
    fn name(&self) -> &str {
        self.name
    }

    fn json(&self) -> Option<JsonKind> {
        Some(self.kind)
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        if matches!(self.makes, Makes::Value | Makes::Element) && types.len() != 1 {
            let message = format!("function {} takes one value, not {}", self.name, types.len());
            return Err(failure("42883", message));
        }
        Ok(DataType::Utf8)
    }

    fn compute(&self, _: &[ColumnarValue], _: usize) -> Result<ArrayRef> {
        Err(failure("XX000", format!("{} was not analysed", self.name)))
    }
}

/// The call of a function of operands of any type, with what it computes.
///
/// # Errors
/// An odd number of operands of an object (22023), no array for `array_to_json` (42883).
pub(crate) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let Some(named) = NAMED.iter().find(|named| named.name == function.func.name()) else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    if named.makes == Makes::Object && function.args.len() % 2 == 1 {
        let hint = "The arguments must consist of alternating keys and values.";
        let message = "argument list must have even number of elements".to_owned();
        return Err(refused::refusal("22023", message, hint));
    }
    let is_key = |place: usize| named.makes == Makes::Object && place.is_multiple_of(2);
    let mut args = Vec::with_capacity(function.args.len());
    for (place, arg) in function.args.into_iter().enumerate() {
        let of = arg.get_type(&scope.schema)?;
        check_operand(named, &arg, &of)?;
        if is_key(place) {
            let is_composite = matches!(of, DataType::List(_) | DataType::Struct(_));
            if is_composite || JsonKind::of(&arg, &scope.schema).is_some() {
                let message = "key value must be scalar, not array, composite, or json";
                return Err(failure("22023", message));
            }
            args.push(casts::to_type(arg, &of, &DataType::Utf8, scope.options)?);
            continue;
        }
        let value = Value {
            own: JsonKind::of(&arg, &scope.schema).or_else(|| kind_of_items(&arg, scope)),
            kind: match named.makes {
                Makes::Value => named.kind,
                _ => JsonKind::Json,
            },
            is_element: named.makes == Makes::Element,
            zone: time_zone::name_of_session(scope.options).into(),
        };
        args.push(bounded::checked(call(value, vec![arg]), scope.memory)?.data);
    }
    Ok(Transformed::yes(match named.makes {
        Makes::Value | Makes::Element => match args.pop() {
            Some(value) => value,
            None => return Err(failure("42883", "no operand")),
        },
        Makes::Array => call(Built { kind: named.kind, is_object: false }, args),
        Makes::Object => call(Built { kind: named.kind, is_object: true }, args),
    }))
}

/// What the items of `ARRAY[…]` are, if they are JSON.
fn kind_of_items(arg: &Expr, scope: &Scope<'_>) -> Option<JsonKind> {
    let Expr::ScalarFunction(array) = arg else { return None };
    let first = array.args.first().filter(|_| array.func.name() == "make_array")?;
    JsonKind::of(first, &scope.schema)
}

fn check_operand(named: &Named, arg: &Expr, of: &DataType) -> Result<()> {
    let is_list = matches!(of, DataType::List(_) | DataType::LargeList(_));
    let is_wrong = match named.name {
        "array_to_json" => !is_list,
        "row_to_json" => !matches!(of, DataType::Struct(_)),
        _ => false,
    };
    if is_wrong {
        let of = if is_unknown(arg) { "unknown".into() } else { crate::operators::type_name(of) };
        let message = format!("function {}({of}) does not exist", named.name);
        return Err(failure("42883", message));
    }
    let is_known = is_list
        || of.is_null()
        || of.is_numeric()
        || of.is_string()
        || of.is_temporal()
        || matches!(of, DataType::Boolean | DataType::Binary | DataType::Struct(_))
        || *of == DataType::FixedSizeBinary(16);
    if !is_known {
        let message = format!("{} of {of} is not supported", named.name);
        return Err(crate::call::unsupported(message, "cast it to text first"));
    }
    Ok(())
}

/// A value of any type as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Value {
    /// What the operand is already, or its items are.
    own: Option<JsonKind>,
    kind: JsonKind,
    is_element: bool,
    /// Of instants.
    zone: Arc<str>,
}

impl Operation for Value {
    fn name(&self) -> &str {
        "json_value"
    }

    fn json(&self) -> Option<JsonKind> {
        Some(self.kind)
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn shown(&self, operands: &[String]) -> String {
        format!("to_{}({})", self.kind.name(), operands.join(","))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = column(operands, rows)?;
        let texts = json_texts(&column, self.own.is_some(), &self.zone)?;
        let is_same = self.own == Some(self.kind) && column.data_type().is_string();
        if self.kind == JsonKind::Jsonb && !is_same {
            return in_normal_form(&texts);
        }
        let begins_line = matches!(column.data_type(), DataType::List(_) | DataType::Struct(_));
        if self.is_element && begins_line {
            let lines = texts.iter().map(|text| text.map(|text| format!("{LINE}{text}")));
            return Ok(Arc::new(lines.collect::<StringArray>()));
        }
        Ok(Arc::new(texts))
    }
}

/// Each value as JSON; NULL stays NULL.
fn json_texts(column: &ArrayRef, is_json: bool, zone: &str) -> Result<StringArray> {
    let of = column.data_type();
    let in_quotes = |texts: &ArrayRef| {
        let mut out = Texts::of("to_json");
        let mut text = String::new();
        for value in texts.as_string::<i32>() {
            text.clear();
            out.append(value.map(|value| {
                quoted(value, &mut text);
                &text
            }))?;
        }
        Ok::<_, DataFusionError>(out.finish())
    };
    Ok(match of {
        DataType::Boolean => cast(column, &DataType::Utf8)?.as_string::<i32>().clone(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(column, &DataType::Utf8)?;
            if is_json { texts.as_string::<i32>().clone() } else { in_quotes(&texts)? }
        }
        DataType::Timestamp(..) => iso(column, zone)?,
        DataType::List(item) => {
            let list = column.as_list::<i32>();
            let are_json = is_json || JsonKind::of_field(item).is_some();
            let items = json_texts(list.values(), are_json, zone)?;
            let offsets = list.value_offsets();
            let mut out = Texts::of("to_json");
            for row in 0..list.len() {
                if list.is_null(row) {
                    out.append(None::<&str>)?;
                    continue;
                }
                let places = (offsets[row]..offsets[row + 1]).map(|at| at as usize);
                let texts = places.map(|at| match items.is_valid(at) {
                    true => items.value(at),
                    false => "null",
                });
                let text = format!("[{}]", texts.collect::<Vec<_>>().join(","));
                out.append(Some(text))?;
            }
            out.finish()
        }
        DataType::Struct(fields) => {
            let record = column.as_struct();
            let values = record.columns().iter().zip(fields);
            let values = values.map(|(values, field)| {
                json_texts(values, JsonKind::of_field(field).is_some(), zone)
            });
            let values = values.collect::<Result<Vec<_>>>()?;
            let names: Vec<String> = fields.iter().map(|field| key_of(field)).collect();
            let mut out = Texts::of("to_json");
            for row in 0..record.len() {
                if record.is_null(row) {
                    out.append(None::<&str>)?;
                    continue;
                }
                let members = names.iter().zip(&values).map(|(name, values)| {
                    let value = if values.is_valid(row) { values.value(row) } else { "null" };
                    format!("{name}:{value}")
                });
                let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
                out.append(Some(text))?;
            }
            out.finish()
        }
        of if of.is_numeric() => {
            let texts = match text_of::is_ours(of) {
                true => TextOf::default()
                    .compute(&[ColumnarValue::Array(Arc::clone(column))], column.len())?,
                false => cast(column, &DataType::Utf8)?,
            };
            match of.is_floating() {
                true => numbers_or_words(&cast(column, &DataType::Float64)?, &texts),
                false => texts.as_string::<i32>().clone(),
            }
        }
        of if of.is_null() => StringArray::new_null(column.len()),
        DataType::FixedSizeBinary(16) => {
            let text = |bytes: &[u8]| crate::uuids::shown(bytes);
            let texts = column.as_fixed_size_binary().iter().map(|bytes| bytes.map(text));
            in_quotes(&(Arc::new(texts.collect::<StringArray>()) as ArrayRef))?
        }
        of if text_of::is_ours(of) => {
            let operand = [ColumnarValue::Array(Arc::clone(column))];
            in_quotes(&TextOf::default().compute(&operand, column.len())?)?
        }
        _ => in_quotes(&cast(column, &DataType::Utf8)?)?,
    })
}

/// The name of a record's field, in quotes: those without a name of `ROW(…)` are `f1`, `f2`, ….
fn key_of(field: &Field) -> String {
    let name = field.name();
    let number = name.strip_prefix('c').filter(|_| !is_column(field));
    let number = number.and_then(|digits| digits.parse::<usize>().ok());
    let mut key = String::new();
    match number {
        Some(number) => quoted(&format!("f{}", number.saturating_add(1)), &mut key),
        None => quoted(name, &mut key),
    }
    key
}

/// Infinity and NaN are strings.
fn numbers_or_words(floats: &ArrayRef, texts: &ArrayRef) -> StringArray {
    let floats: &Float64Array = floats.as_primitive::<Float64Type>();
    let values = floats.iter().zip(texts.as_string::<i32>());
    let value = |(float, text): (Option<f64>, Option<&str>)| match (float, text) {
        (Some(float), Some(text)) if float.is_finite() => Some(text.to_owned()),
        (Some(_), Some(text)) => Some(format!("\"{text}\"")),
        _ => None,
    };
    values.map(value).collect()
}

/// Times as ISO 8601 has them: `"2024-01-01T10:00:00+00:00"`.
fn iso(column: &ArrayRef, zone: &str) -> Result<StringArray> {
    let shown = match column.data_type() {
        DataType::Timestamp(_, Some(_)) => {
            cast(column, &DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into())))?
        }
        _ => Arc::clone(column),
    };
    let has_zone = matches!(shown.data_type(), DataType::Timestamp(_, Some(_)));
    let texts = TextOf::default().compute(&[ColumnarValue::Array(shown)], column.len())?;
    let text = |text: &str| {
        let mut out = text.replacen(' ', "T", 1);
        // An offset in whole hours is written without minutes.
        let offset = out.rfind(['+', '-']).map_or(0, |at| out.len() - at);
        if has_zone && offset == 3 && !out.ends_with("BC") {
            out.push_str(":00");
        }
        format!("\"{out}\"")
    };
    Ok(texts.as_string::<i32>().iter().map(|value| value.map(text)).collect())
}

/// An array or an object of values that are JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Built {
    kind: JsonKind,
    is_object: bool,
}

impl Operation for Built {
    fn name(&self) -> &str {
        if self.is_object { "json_object_of" } else { "json_array_of" }
    }

    fn json(&self) -> Option<JsonKind> {
        Some(self.kind)
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn shown(&self, operands: &[String]) -> String {
        let made = if self.is_object { "object" } else { "array" };
        format!("{}_build_{made}({})", self.kind.name(), operands.join(","))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let columns = columns.iter().map(|column| cast(column, &DataType::Utf8));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        let columns: Vec<&StringArray> =
            columns.iter().map(|column| column.as_string::<i32>()).collect();
        let mut out = Texts::of("json_build_object");
        for row in 0..rows {
            let text = match self.is_object {
                true => object(&columns, row)?,
                false => array(&columns, row),
            };
            out.append(Some(match self.kind {
                JsonKind::Json => text,
                JsonKind::Jsonb => normal(&Item::parse(&text)?)?,
            }))?;
        }
        Ok(Arc::new(out.finish()))
    }
}

fn value_at(column: &StringArray, row: usize) -> &str {
    if column.is_valid(row) { column.value(row) } else { "null" }
}

fn array(columns: &[&StringArray], row: usize) -> String {
    let values: Vec<&str> = columns.iter().map(|column| value_at(column, row)).collect();
    format!("[{}]", values.join(", "))
}

fn object(columns: &[&StringArray], row: usize) -> Result<String> {
    let mut text = "{".to_owned();
    for (place, pair) in columns.chunks(2).enumerate() {
        let [key, value] = pair else { break };
        if key.is_null(row) {
            let message = format!("argument {} cannot be null", 2 * place + 1);
            return Err(failure("22023", message));
        }
        text.push_str(if place > 0 { ", " } else { "" });
        quoted(key.value(row), &mut text);
        text.push_str(" : ");
        text.push_str(value_at(value, row));
    }
    text.push('}');
    Ok(text)
}
