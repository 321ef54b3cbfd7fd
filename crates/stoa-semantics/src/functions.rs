//! Functions that are called by name, and what stands for them here.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions::math::expr_fn::ln;
use datafusion::logical_expr::expr::{BinaryExpr, Like, ScalarFunction};
use datafusion::logical_expr::{Cast, ColumnarValue, Expr, ExprSchemable, Operator};

use super::also;
use super::array_like;
use super::array_parts;
use super::array_remove;
use super::bounded;
use super::buckets;
use super::byte_texts;
use super::call::{Operation, call, column, columns, failure, unsupported};
use super::compare;
use super::date_part::DatePart;
use super::date_trunc::{CutBy, CutInstant, CutInterval, CutTime, Unit};
use super::declared::{self, Call};
use super::edit_distance::EditDistance;
use super::joined_elements;
use super::json;
use super::math;
use super::modulus;
use super::numeric::NUMERIC;
use super::operand_text;
use super::operators::type_name;
use super::overlaps;
use super::rounding::{RoundEven, RoundFloat};
use super::scale;
use super::series;
use super::similar::{SimilarPattern, regex_of};
use super::time_zone;
use super::to_char::ToChar;
use super::type_of;
use super::{bytes, casts, terms, unify, whole};
use crate::scope::Scope;
use stoa_sql::chains::SUM;

pub(super) fn rewrite(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    match function.func.name() {
        "coalesce" | "greatest" | "least" | "make_array" => unify::call(function, scope),
        "array_like" => array_like::rewrite(function, scope),
        "item_like" => array_like::item(function, scope),
        "nullif" => compare::nullif(function, scope),
        "date_part" => date_part(function, scope),
        "date_trunc" => date_trunc(also::engine(function).data, scope),
        "overlaps" => overlaps::rewrite(function, scope),
        "array_fill" | "trim_array" => array_parts::rewrite(function, scope),
        "joined_elements" => joined_elements::rewrite(function, scope),
        "json_object" | "jsonb_object" => json_object(function, scope),
        "to_char" => to_char(function, scope),
        "mod" => modulus::rewrite(function, scope),
        "arrow_cast" | "arrow_try_cast" => of_small_type(function),
        "concat" | "concat_ws" => texts(function, scope),
        "round" => round(function, scope),
        "trunc" => scale::trunc(function, scope),
        "scale" => match scale::written(&function, scope)? {
            Some(scale) => Ok(Transformed::yes(scale)),
            None => declared::rewrite(function, scope),
        },
        "width_bucket" if function.args.len() == 2 => buckets::rewrite(function, scope),
        "btrim" | "ltrim" | "rtrim" | "strpos" | "overlay" => of_texts_or_bytes(function, scope),
        "ceil" | "floor" => whole::rewrite(function, scope),
        "upper" | "initcap" => letters(function, scope),
        "ln" | "log" | "log10" | "log2" => logarithm(function, scope),
        "sqrt" | "power" | "exp" | "acos" | "asin" | "acosh" | "atanh" | "sin" | "cos" | "tan"
        | "cot" => math::rewrite(function, scope),
        "generate_series" => series::rewrite(function, scope),
        "encode" => {
            let is_base64 = format_is(&function, "base64");
            let encoded = bytes::encode(padded(function), scope)?;
            let encoded = encoded.transform_data(|expr| bounded::checked(expr, scope.memory))?;
            Ok(match is_base64.then(|| declared::named("base64_lines")).flatten() {
                Some(lines) => Transformed::yes(call(Call(lines), vec![encoded.data])),
                None => encoded,
            })
        }
        "substr" => substring(function, scope),
        "to_timestamp" if function.args.len() == 2 => to_timestamp(function, scope),
        "to_timestamp" if is_number_first(&function, scope) => {
            match declared::named("instant_of_epoch") {
                Some(declared) => {
                    let func = Arc::new(function_of(declared));
                    declared::rewrite(ScalarFunction::new_udf(func, function.args), scope)
                }
                None => Ok(Transformed::no(Expr::ScalarFunction(function))),
            }
        }
        "array_remove_all" => array_remove::rewrite(function, scope),
        "decode" => bytes::decode(unbroken(function)),
        "character_length" => bytes::length(function, scope),
        "pg_typeof" => type_of::rewrite(function, scope),
        "levenshtein" => Ok(Transformed::yes(call(EditDistance, function.args))),
        SUM => terms::rewrite(function, scope),
        _ => {
            let rewritten = json::rewrite(function, scope)?;
            rewritten.transform_data(|expr| match expr {
                Expr::ScalarFunction(function) => declared::rewrite(function, scope),
                other => Ok(Transformed::no(other)),
            })
        }
    }
}

/// `encode(value, 'base64')`: the engine leaves out the padding under this name.
fn padded(mut function: ScalarFunction) -> ScalarFunction {
    let format = function.args.get_mut(1);
    let is_base64 =
        |text: Option<&str>| text.is_some_and(|text| text.eq_ignore_ascii_case("base64"));
    if let Some(Expr::Literal(value, _)) = format
        && is_base64(value.try_as_str().flatten())
    {
        *value = ScalarValue::Utf8(Some("base64pad".to_owned()));
    }
    function
}

fn format_is(function: &ScalarFunction, name: &str) -> bool {
    let Some(Expr::Literal(format, _)) = function.args.get(1) else { return false };
    let format = format.try_as_str().flatten().map(|format| format.to_ascii_lowercase());
    // The second time, padding has been asked for.
    format.is_some_and(|format| format == name)
}

/// `decode(text, 'base64')`: the engine knows no line breaks.
fn unbroken(mut function: ScalarFunction) -> ScalarFunction {
    if format_is(&function, "base64")
        && let Some(text) = function.args.first_mut()
        && !matches!(text, Expr::ScalarFunction(inner) if inner.func.name() == "without_blanks")
        && let Some(unbroken) = declared::named("without_blanks")
    {
        *text = call(Call(unbroken), vec![std::mem::take(text)]);
    }
    function
}

/// `substring(text FROM pattern)`, and of bytes.
fn substring(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let types = function.args.iter().map(|arg| arg.get_type(&scope.schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    let name = match types.as_slice() {
        [_, pattern] if pattern.is_string() => "regexp_substring",
        [_, pattern, _] if pattern.is_string() => "similar_substring",
        _ => return of_texts_or_bytes(function, scope),
    };
    let Some(declared) = declared::named(name) else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let call = ScalarFunction::new_udf(Arc::new(function_of(declared)), function.args);
    Ok(Transformed::yes(declared::rewrite(call, scope)?.data))
}

fn function_of(declared: &'static declared::Declared) -> datafusion::logical_expr::ScalarUDF {
    super::call::function(Call(declared))
}

/// `json_object(text[])`, of pairs where the array has two dimensions.
fn json_object(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let is_of_pairs = match function.args.as_slice() {
        [array] => match array.get_type(&scope.schema)? {
            DataType::List(item) => item.data_type().is_nested(),
            _ => is_of_arrays(array),
        },
        _ => false,
    };
    let name = format!("{}_of_pairs", function.func.name());
    match declared::named(&name).filter(|_| is_of_pairs) {
        Some(declared) => {
            let call = ScalarFunction::new_udf(Arc::new(function_of(declared)), function.args);
            Ok(Transformed::yes(declared::rewrite(call, scope)?.data))
        }
        None => declared::rewrite(function, scope),
    }
}

/// Whether a literal of no type yet is an array of arrays.
fn is_of_arrays(expr: &Expr) -> bool {
    let Expr::Literal(value, _) = expr else { return false };
    let text = value.try_as_str().flatten().unwrap_or_default();
    text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('{'))
}

fn is_number_first(function: &ScalarFunction, scope: &Scope<'_>) -> bool {
    let first = function.args.first().map(|arg| arg.get_type(&scope.schema));
    matches!(first, Some(Ok(of)) if of.is_numeric())
}

/// A function of texts that PostgreSQL has for bytes, too.
fn of_texts_or_bytes(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let known = byte_texts::rewrite(function, scope)?;
    let is_changed = known.transformed;
    let typed = match known.data.func.name().starts_with("bytes_") {
        true => declared::rewrite(known.data, scope)?,
        false => Transformed::no(Expr::ScalarFunction(known.data)),
    };
    Ok(Transformed::new_transformed(typed.data, is_changed || typed.transformed))
}

/// `to_timestamp(text, format)`: a local time of the session's zone.
fn to_timestamp(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let Some(declared) = declared::named("to_local_timestamp") else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let call = ScalarFunction::new_udf(Arc::new(function_of(declared)), function.args);
    let local = declared::rewrite(call, scope)?.data;
    let zone = time_zone::name_of_session(scope.options);
    Ok(Transformed::yes(time_zone::instant_of(local, zone)))
}

/// `x LIKE pattern ESCAPE c`: the engine knows the backslash only, so that the pattern gets backslashes.
pub(super) fn like(like: Like) -> Transformed<Expr> {
    let Like { negated, expr, pattern, escape_char, case_insensitive } = like;
    let (pattern, escape_char) = match (*pattern, escape_char) {
        (Expr::Literal(value, of), Some(escape)) if escape != '\\' => {
            match value.try_as_str().flatten() {
                Some(text) => {
                    let pattern = with_backslashes(text, escape);
                    (Expr::Literal(ScalarValue::Utf8(Some(pattern)), None), None)
                }
                None => (Expr::Literal(value, of), None),
            }
        }
        (pattern, Some(escape)) if escape != '\\' => {
            (call(PatternWithBackslashes { escape }, vec![pattern]), None)
        }
        (pattern, _) => (pattern, escape_char),
    };
    let like = Like { negated, expr, pattern: Box::new(pattern), escape_char, case_insensitive };
    Transformed::yes(Expr::Like(like))
}

/// [`with_backslashes`] of patterns that are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PatternWithBackslashes {
    escape: char,
}

impl Operation for PatternWithBackslashes {
    fn name(&self) -> &str {
        "stoa_pattern"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let patterns = cast(&column(operands, rows)?, &DataType::Utf8)?;
        let mut written = StringBuilder::with_capacity(rows, 0);
        for pattern in patterns.as_string::<i32>() {
            written.append_option(pattern.map(|text| with_backslashes(text, self.escape)));
        }
        Ok(Arc::new(written.finish()))
    }
}

/// A pattern whose escapes are backslashes.
fn with_backslashes(pattern: &str, escape: char) -> String {
    let mut written = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == escape => {
                written.push('\\');
                written.extend(letters.next());
            }
            '\\' => written.push_str("\\\\"),
            _ => written.push(letter),
        }
    }
    written
}

/// Elements, or bytes, of a value of a type of fixed size.
const FIXED_SIZE_MAX: u64 = 4096;

/// A cast to a type that is named, which may be of a fixed size: even NULL takes all of it.
fn of_small_type(function: ScalarFunction) -> Result<Transformed<Expr>> {
    if let [_, Expr::Literal(name, _)] = function.args.as_slice()
        && let Some(name) = name.try_as_str().flatten()
        && size_of_type(name) > FIXED_SIZE_MAX
    {
        return Err(failure("54000", format!("a value of type {name} is too large")));
    }
    Ok(Transformed::no(Expr::ScalarFunction(function)))
}

/// The product of all numbers of a type's name that are not part of a word.
fn size_of_type(name: &str) -> u64 {
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let sizes = words.filter(|word| word.starts_with(|letter: char| letter.is_ascii_digit()));
    // What is no number after all is a large one.
    sizes.map(|size| size.parse().unwrap_or(u64::MAX)).fold(1, u64::saturating_mul)
}

/// `extract(field FROM value)`, of an instant in the session's zone.
fn date_part(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let [Expr::Literal(field, _), value] = function.args.as_slice() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let Some(field) = field.try_as_str().flatten() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let of = value.get_type(&scope.schema)?;
    if field.eq_ignore_ascii_case("julian") || field.eq_ignore_ascii_case("j") {
        return julian(function, &of, scope);
    }
    if of == DataType::Date32 && is_of_time(field) {
        let message = format!("unit \"{}\" not supported for type date", field.to_lowercase());
        return Err(failure("0A000", message));
    }
    let Some(part) = DatePart::named(field, &of) else {
        if matches!(field.to_ascii_lowercase().as_str(), "timezone_hour" | "timezone_minute") {
            return Err(unsupported(
                format!("extract of {field} is not supported"),
                "compare the local times of two zones: x AT TIME ZONE …",
            ));
        }
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let value = match &of {
        DataType::Timestamp(_, Some(_))
            if !part.is_epoch() && !time_zone::is_utc(scope.options) =>
        {
            time_zone::local(value.clone(), time_zone::name_of_session(scope.options))
        }
        _ => value.clone(),
    };
    Ok(Transformed::yes(call(part, vec![value])))
}

/// Whether dates have no such field.
fn is_of_time(field: &str) -> bool {
    matches!(
        field.to_ascii_lowercase().as_str(),
        "hour"
            | "hours"
            | "minute"
            | "minutes"
            | "second"
            | "seconds"
            | "millisecond"
            | "milliseconds"
            | "microsecond"
            | "microseconds"
            | "timezone"
            | "timezone_hour"
            | "timezone_minute"
    )
}

/// `extract(julian FROM value)`: the number of a day, and of a time the part of it that is over.
fn julian(function: ScalarFunction, of: &DataType, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let name = match of {
        DataType::Date32 => "julian_of_date",
        DataType::Timestamp(..) => "julian_of_time",
        of => {
            let message = format!("unit \"julian\" not supported for type {}", type_name(of));
            return Err(failure("0A000", message));
        }
    };
    let ScalarFunction { func, mut args } = function;
    let (Some(declared), Some(value)) = (declared::named(name), args.pop()) else {
        return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })));
    };
    let value = match of {
        DataType::Timestamp(_, Some(_)) => {
            time_zone::local(value, time_zone::name_of_session(scope.options))
        }
        _ => value,
    };
    let call = ScalarFunction::new_udf(Arc::new(function_of(declared)), vec![value]);
    Ok(Transformed::yes(declared::rewrite(call, scope)?.data))
}

/// `date_trunc(unit, instant, zone)`, and of intervals.
fn cut_otherwise(function: &ScalarFunction, scope: &Scope<'_>) -> Result<Option<Expr>> {
    let constant = |expr: &Expr| match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
        _ => None,
    };
    match function.args.as_slice() {
        [unit, value] if matches!(value.get_type(&scope.schema)?, DataType::Interval(_)) => {
            Ok(Some(match constant(unit) {
                Some(unit) => call(CutInterval::named(&unit)?, vec![value.clone()]),
                None => call(CutBy, vec![unit.clone(), value.clone()]),
            }))
        }
        [unit, value, zone] => {
            let known = constant(unit).and_then(|unit| Unit::named(&unit)).zip(constant(zone));
            let Some((unit, zone)) = known else {
                let message = "date_trunc with this unit and zone is not supported";
                return Err(unsupported(
                    message,
                    "write them as literals, from second to millennium",
                ));
            };
            let zone = time_zone::for_engine(&zone);
            let of = value.get_type(&scope.schema)?;
            let instant = casts::to_type(value.clone(), &of, &time_zone::instant(), scope.options)?;
            Ok(Some(cut_in_zone(unit, instant, &zone)))
        }
        _ => Ok(None),
    }
}

fn cut_in_zone(unit: Unit, instant: Expr, zone: &str) -> Expr {
    let local = time_zone::local(instant.clone(), zone);
    match unit.is_fixed() && unit != Unit::Day {
        true => call(CutInstant(unit), vec![instant, local]),
        false => time_zone::instant_of(call(CutTime(unit), vec![local]), zone),
    }
}

/// `date_trunc(unit, time)`: an instant is cut in the session's zone, a date is its midnight.
fn date_trunc(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    if let Some(cut) = cut_otherwise(&function, scope)? {
        return Ok(Transformed::yes(cut));
    }
    let [unit, value] = function.args.as_slice() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let of = value.get_type(&scope.schema)?;
    let zone = time_zone::name_of_session(scope.options);
    let is_elsewhere =
        matches!(of, DataType::Timestamp(_, Some(_))) && !time_zone::is_utc(scope.options);
    if !matches!(unit, Expr::Literal(..)) && unit.get_type(&scope.schema)?.is_string() {
        if is_elsewhere {
            return Err(unsupported(
                "date_trunc to a computed unit is not supported in this time zone",
                "write the unit as a literal, or use SET timezone = 'UTC'",
            ));
        }
        let local = match &of {
            DataType::Date32 => {
                casts::to_type(value.clone(), &of, &time_zone::LOCAL, scope.options)?
            }
            _ => value.clone(),
        };
        return Ok(Transformed::yes(call(CutBy, vec![unit.clone(), local])));
    }
    let local = match &of {
        DataType::Timestamp(..) if is_elsewhere => time_zone::local(value.clone(), zone),
        DataType::Date32 => casts::to_type(value.clone(), &of, &time_zone::LOCAL, scope.options)?,
        _ => value.clone(),
    };
    let calendar = match unit {
        Expr::Literal(unit, _) => unit.try_as_str().flatten().and_then(Unit::named),
        _ => None,
    };
    if let Some(unit) = calendar.filter(|_| is_elsewhere)
        && matches!(of, DataType::Timestamp(TimeUnit::Microsecond, _))
    {
        return Ok(Transformed::yes(cut_in_zone(unit, value.clone(), zone)));
    }
    let is_micros = is_elsewhere
        || matches!(of, DataType::Date32 | DataType::Timestamp(TimeUnit::Microsecond, _));
    // The engine counts days and hours of local times in whole numbers, if they are in columns.
    let is_instant = !is_elsewhere && matches!(of, DataType::Timestamp(_, Some(_)));
    let is_constant = value.column_refs().is_empty();
    let is_ours = |unit: &Unit| is_micros && (is_instant || is_constant || !unit.is_fixed());
    let cut = match calendar.filter(is_ours) {
        Some(unit) => call(CutTime(unit), vec![local]),
        None if local == *value => return Ok(Transformed::no(Expr::ScalarFunction(function))),
        None => {
            let args = vec![unit.clone(), local];
            Expr::ScalarFunction(ScalarFunction { func: function.func.clone(), args })
        }
    };
    Ok(Transformed::yes(match is_elsewhere {
        true => time_zone::instant_of(cut, zone),
        false => cut,
    }))
}

fn to_char(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let zone = time_zone::name_of_session(scope.options).into();
    Ok(Transformed::yes(call(ToChar { zone }, function.args)))
}

/// `round(float)`: to the even neighbour, as casts of floats; decimals go away from zero.
fn round(mut function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    if let [value, _] = function.args.as_mut_slice() {
        let of = value.get_type(&scope.schema)?;
        if of.is_integer() {
            *value = casts::to_type(std::mem::take(value), &of, &NUMERIC, scope.options)?;
        }
    }
    if let Some(padded) = scale::padded(&function, scope)? {
        return Ok(Transformed::yes(padded));
    }
    // Of whole numbers, the result is another one.
    if let [value, digits @ ..] = function.args.as_mut_slice() {
        let of = value.get_type(&scope.schema)?;
        if of.is_integer() && digits.is_empty() {
            return Ok(Transformed::yes(call(RoundEven, function.args)));
        }
    }
    let is_float = match function.args.first() {
        Some(value) => value.get_type(&scope.schema)?.is_floating(),
        None => false,
    };
    match (is_float, function.args.len()) {
        (true, 1) => return Ok(Transformed::yes(call(RoundEven, function.args))),
        (true, 2) => return Ok(Transformed::yes(call(RoundFloat, function.args))),
        _ => {}
    }
    // The engine knows the type of a rounded decimal by digits of this type only.
    if let [_, Expr::Literal(digits @ ScalarValue::Int64(Some(_)), _)] =
        function.args.as_mut_slice()
        && let Ok(narrow) = digits.cast_to(&DataType::Int32)
    {
        *digits = narrow;
        return Ok(Transformed::yes(Expr::ScalarFunction(function)));
    }
    Ok(Transformed::no(Expr::ScalarFunction(function)))
}

/// `upper`, `initcap`: letter by letter.
fn letters(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let each_word = function.func.name() == "initcap";
    Ok(match function.args.as_slice() {
        [text] if text.get_type(&scope.schema)?.is_string() => {
            Transformed::yes(call(Letters { each_word }, function.args))
        }
        _ => Transformed::no(Expr::ScalarFunction(function)),
    })
}

/// Capital letters, which are one each: `ß` has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Letters {
    /// Whether only first letters of words are capital, and the others small.
    each_word: bool,
}

impl Letters {
    fn of(self, text: &str, out: &mut String) {
        let mut is_first = true;
        for letter in text.chars() {
            let is_capital = !self.each_word || is_first;
            match is_capital {
                true => out.push(single(letter.to_uppercase()).unwrap_or(letter)),
                false => out.push(single(letter.to_lowercase()).unwrap_or(letter)),
            }
            is_first = !letter.is_alphanumeric();
        }
    }
}

/// `upper` and `initcap`.
pub(super) fn capitals() -> [datafusion::logical_expr::ScalarUDF; 2] {
    [false, true].map(|each_word| super::call::function(Letters { each_word }))
}

fn single(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next();
    first.filter(|_| letters.next().is_none())
}

impl Operation for Letters {
    fn name(&self) -> &str {
        if self.each_word { "initcap" } else { "upper" }
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let texts = cast(column, &DataType::Utf8)?;
        let mut written = StringBuilder::with_capacity(rows, 0);
        let mut out = String::new();
        for text in texts.as_string::<i32>() {
            let Some(text) = text else {
                written.append_null();
                continue;
            };
            out.clear();
            self.of(text, &mut out);
            written.append_value(&out);
        }
        Ok(Arc::new(written.finish()))
    }
}

/// A logarithm, which zero and negative numbers do not have. Of decimals it is computed in floats: the engine's
/// own cannot be computed where a decimal has too few digits for 1 or 10.
fn logarithm(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let ScalarFunction { func, mut args } = function;
    for arg in &mut args {
        let of = arg.get_type(&scope.schema)?;
        if of.is_decimal() {
            *arg = casts::to_type(std::mem::take(arg), &of, &DataType::Float64, scope.options)?;
        }
    }
    for arg in &mut args {
        if !is_checked(arg) {
            *arg = call(AboveZero, vec![std::mem::take(arg)]);
        }
    }
    if let ("log", [base, number]) = (func.name(), args.as_slice()) {
        let logarithm_of = |arg: &Expr| {
            let arg = Expr::Cast(Cast::new(Box::new(arg.clone()), DataType::Float64));
            ln(arg)
        };
        return Ok(Transformed::yes(call(OfBase, vec![logarithm_of(number), logarithm_of(base)])));
    }
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
}

fn is_checked(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(inner) => inner.func.name() == AboveZero.name(),
        Expr::Cast(cast) => is_checked(&cast.expr),
        _ => false,
    }
}

/// A logarithm divided by that of the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OfBase;

impl Operation for OfBase {
    fn name(&self) -> &str {
        "log"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [number, base] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        let (number, base) =
            (number.as_primitive::<Float64Type>(), base.as_primitive::<Float64Type>());
        let quotient = |(number, base): (Option<f64>, Option<f64>)| match (number, base) {
            (Some(_), Some(0.0)) => Err(failure("22012", "division by zero")),
            (Some(number), Some(base)) => Ok(Some(number / base)),
            _ => Ok(None),
        };
        let values = number.iter().zip(base).map(quotient).collect::<Result<Float64Array>>()?;
        Ok(Arc::new(values))
    }
}

/// The same number, if it is above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AboveZero;

impl Operation for AboveZero {
    fn name(&self) -> &str {
        "above_zero"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.join(",")
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let mut columns = columns(operands, rows)?;
        let Some(column) = columns.pop() else { return Err(failure("42883", "no operand")) };
        let numbers = cast(&column, &DataType::Float64)?;
        for number in numbers.as_primitive::<Float64Type>().iter().flatten() {
            if number <= 0.0 {
                let what = if number == 0.0 { "zero" } else { "a negative number" };
                return Err(failure("2201E", format!("cannot take logarithm of {what}")));
            }
        }
        Ok(column)
    }
}

/// Arguments that the engine would write otherwise, as texts.
fn texts(function: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let ScalarFunction { func, args } = function;
    let text = |arg: Expr| match arg.get_type(&scope.schema)? {
        // As booleans are shown, not as they are cast.
        DataType::Boolean => Ok(operand_text::shown(arg)),
        _ => operand_text::text_of_operand(arg, scope),
    };
    let args = args.into_iter().map(text).collect::<Result<_>>()?;
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
}

/// `x SIMILAR TO pattern [ESCAPE c]`.
pub(super) fn similar(like: Like, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let Like { negated, expr, pattern, escape_char, .. } = like;
    let pattern = match *pattern {
        Expr::Literal(ScalarValue::Utf8(Some(pattern)), _) => {
            Expr::Literal(ScalarValue::Utf8(Some(regex_of(&pattern, escape_char)?)), None)
        }
        pattern => call(SimilarPattern(escape_char), vec![pattern]),
    };
    let of = expr.get_type(&scope.schema)?;
    let text = casts::to_type(*expr, &of, &DataType::Utf8, scope.options)?;
    let op = if negated { Operator::RegexNotMatch } else { Operator::RegexMatch };
    let matched = BinaryExpr::new(Box::new(text), op, Box::new(pattern));
    Ok(Transformed::yes(Expr::BinaryExpr(matched)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_escaped_by_backslashes() {
        for (pattern, written) in
            [("a!_c", r"a\_c"), ("!!%", r"\!%"), (r"a\b", r"a\\b"), (r"!\", r"\\")]
        {
            assert_eq!(with_backslashes(pattern, '!'), written);
        }
    }
}
