//! Values put into the places of a shape.
//!
//! **Invariant:** a value is what the planner would compare with. What is not plainly so (a literal
//! of another kind, too many digits, a date written in words) makes it `None`.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type, TimeUnit};
use chrono::{NaiveDate, NaiveDateTime};
use datafusion::common::ScalarValue;
use stoa_report::{Condition, Report, Test, ValueKind, kind_of};

use super::shape::{Operand, ReportShape, ShapeTest};
use stoa_sql::fingerprint::{LIST_VALUES_MAX, Literal, LiteralKind};

/// A value that a column is compared with.
enum Bound {
    Number(i128),
    Text(Box<str>),
    Null,
}

/// The values of one execution.
pub(crate) struct Values<'a> {
    pub(crate) literals: &'a [Literal<'a>],
    pub(crate) parameters: &'a [ScalarValue],
}

impl ReportShape {
    /// The report with its values; `None` where the planner must see them.
    pub(crate) fn bind(&self, values: &Values<'_>) -> Option<Report> {
        if values.parameters.len() != self.parameter_types.len() {
            return None;
        }
        let mut conditions = Vec::with_capacity(self.conditions.len());
        for condition in &self.conditions {
            let data_type = &self.columns.get(condition.column)?.data_type;
            let test = test(&condition.test, data_type, values)?;
            conditions.push(Condition { column: condition.column, test });
        }
        let count = |operand: &Option<Operand>| match operand {
            None => Some(None),
            Some(operand) => count(*operand, values).map(Some),
        };
        Some(Report {
            columns: self.columns.clone(),
            conditions,
            grouped: self.grouped,
            group_by: self.group_by.clone(),
            aggregates: self.aggregates.clone(),
            items: self.items.clone(),
            schema: self.schema.clone(),
            order: self.order.clone(),
            offset: count(&self.offset)?.unwrap_or(0),
            limit: count(&self.limit)?,
        })
    }
}

fn count(operand: Operand, values: &Values<'_>) -> Option<usize> {
    let Operand::Literal { number, negated: false } = operand else { return None };
    let literal = values.literals.get(number)?;
    (literal.kind == LiteralKind::Integer).then_some(())?;
    literal.text.parse().ok()
}

fn test(test: &ShapeTest, data_type: &DataType, values: &Values<'_>) -> Option<Test> {
    let bound = |operand: &Operand| bound(*operand, data_type, values);
    let is_text = kind_of(data_type)? == ValueKind::Text;
    // A comparison with NULL is never true.
    let never = || Test::OneOf(Vec::new());
    let range = |low: Option<(Bound, bool)>, high: Option<(Bound, bool)>| {
        let is_null = |end: &Option<(Bound, bool)>| matches!(end, Some((Bound::Null, _)));
        if is_null(&low) || is_null(&high) {
            return Some(never());
        }
        match is_text {
            true => Some(Test::TextBetween { low: text_end(low)?, high: text_end(high)? }),
            false => {
                // Whole numbers: what is above 4 is from 5 on.
                let low = match low {
                    Some((Bound::Number(low), within)) => low.checked_add(i128::from(!within))?,
                    _ => i128::MIN,
                };
                let high = match high {
                    Some((Bound::Number(high), within)) => high.checked_sub(i128::from(!within))?,
                    _ => i128::MAX,
                };
                Some(Test::Between(low, high))
            }
        }
    };
    match test {
        ShapeTest::IsNull => Some(Test::IsNull),
        ShapeTest::IsNotNull => Some(Test::IsNotNull),
        // The value of a template's place may be a list.
        ShapeTest::Equal(value) => Some(one_of(bounds(&[*value], data_type, values)?, is_text)),
        ShapeTest::OneOf(list) => Some(one_of(bounds(list, data_type, values)?, is_text)),
        ShapeTest::NotEqual(value) => none_of(bounds(&[*value], data_type, values)?, is_text),
        ShapeTest::NoneOf(list) => none_of(bounds(list, data_type, values)?, is_text),
        ShapeTest::Less(value) => range(None, Some((bound(value)?, false))),
        ShapeTest::LessOrEqual(value) => range(None, Some((bound(value)?, true))),
        ShapeTest::Greater(value) => range(Some((bound(value)?, false)), None),
        ShapeTest::GreaterOrEqual(value) => range(Some((bound(value)?, true)), None),
        ShapeTest::Between(low, high) => {
            range(Some((bound(low)?, true)), Some((bound(high)?, true)))
        }
    }
}

fn text_end(end: Option<(Bound, bool)>) -> Option<Option<(Box<str>, bool)>> {
    match end {
        None => Some(None),
        Some((Bound::Text(text), within)) => Some(Some((text, within))),
        Some(_) => None,
    }
}

/// Values that a column is compared with, ascending and distinct.
#[derive(Default)]
struct Bounds {
    numbers: Vec<i128>,
    texts: Vec<Box<str>>,
    has_null: bool,
}

impl Bounds {
    fn add(&mut self, value: Bound) {
        match value {
            Bound::Number(number) => self.numbers.push(number),
            Bound::Text(text) => self.texts.push(text),
            Bound::Null => self.has_null = true,
        }
    }

    fn len(&self) -> usize {
        self.numbers.len() + self.texts.len()
    }
}

/// The values of some operands, lists among them; `None` also where there are too many.
fn bounds(operands: &[Operand], data_type: &DataType, values: &Values<'_>) -> Option<Bounds> {
    let mut found = Bounds::default();
    for operand in operands {
        match *operand {
            Operand::Literal { number, negated } => {
                let literal = values.literals.get(number)?;
                for value in literal.values() {
                    found.add(of_literal(&value, negated, data_type)?);
                }
            }
            Operand::Parameter(number) => match values.parameters.get(number)? {
                ScalarValue::List(list) => {
                    // Of a list without a value, the planner knows that no row matches: it asks for no rights.
                    let elements = list.is_valid(0).then(|| list.value(0))?;
                    (elements.null_count() < elements.len()).then_some(())?;
                    add_elements(&elements, data_type, &mut found)?;
                }
                value => found.add(of_parameter(value, data_type)?),
            },
        }
        if found.len() > LIST_VALUES_MAX {
            return None;
        }
    }
    found.numbers.sort_unstable();
    found.numbers.dedup();
    found.texts.sort_unstable();
    found.texts.dedup();
    Some(found)
}

fn add_elements(elements: &dyn Array, data_type: &DataType, found: &mut Bounds) -> Option<()> {
    (elements.len() <= LIST_VALUES_MAX).then_some(())?;
    macro_rules! integers {
        ($of:ty) => {{
            let numbers = elements.as_primitive::<$of>();
            found.has_null |= numbers.null_count() > 0;
            found.numbers.extend(numbers.iter().flatten().map(i128::from));
        }};
    }
    match elements.data_type() {
        DataType::Int16 if data_type.is_integer() => integers!(Int16Type),
        DataType::Int32 if data_type.is_integer() => integers!(Int32Type),
        DataType::Int64 if data_type.is_integer() => integers!(Int64Type),
        _ => {
            for element in 0..elements.len() {
                let value = ScalarValue::try_from_array(elements, element).ok()?;
                found.add(of_parameter(&value, data_type)?);
            }
        }
    }
    Some(())
}

/// One of some values; NULL among them matches nothing.
fn one_of(values: Bounds, is_text: bool) -> Test {
    match (is_text, values.numbers.as_slice()) {
        (true, _) => Test::TextOneOf(values.texts),
        (false, [one]) => Test::Between(*one, *one),
        (false, _) => Test::OneOf(values.numbers),
    }
}

/// None of some values: with NULL among them no value is surely another one. Of no values, NULL is none either.
fn none_of(values: Bounds, is_text: bool) -> Option<Test> {
    if values.has_null {
        return Some(Test::OneOf(Vec::new()));
    }
    Some(match (is_text, values.numbers.as_slice(), values.texts.as_slice()) {
        (true, _, []) | (false, [], _) => return None,
        (true, _, [one]) => Test::TextNotEqual(one.clone()),
        (true, ..) => Test::TextNoneOf(values.texts),
        (false, [one], _) => Test::NotEqual(*one),
        (false, ..) => Test::NoneOf(values.numbers),
    })
}

fn bound(operand: Operand, data_type: &DataType, values: &Values<'_>) -> Option<Bound> {
    match operand {
        Operand::Literal { number, negated } => {
            of_literal(values.literals.get(number)?, negated, data_type)
        }
        Operand::Parameter(number) => of_parameter(values.parameters.get(number)?, data_type),
    }
}

fn of_literal(literal: &Literal<'_>, negated: bool, data_type: &DataType) -> Option<Bound> {
    let text = &*literal.text;
    let sign = if negated { -1 } else { 1 };
    match (literal.kind, data_type) {
        (LiteralKind::Integer, of) if of.is_integer() => {
            // Larger ones are of another type to the planner.
            let value: i64 = text.parse().ok()?;
            Some(Bound::Number(sign * i128::from(value)))
        }
        (LiteralKind::Integer | LiteralKind::Decimal, DataType::Decimal128(precision, scale)) => {
            Some(Bound::Number(sign * unscaled(text, *precision, *scale)?))
        }
        (LiteralKind::Text, DataType::Utf8) if !negated => Some(Bound::Text(text.into())),
        (LiteralKind::Date | LiteralKind::Text, DataType::Date32) if !negated => {
            Some(Bound::Number(i128::from(days(text)?)))
        }
        (
            LiteralKind::Timestamp | LiteralKind::Text,
            DataType::Timestamp(TimeUnit::Microsecond, None),
        ) if !negated => Some(Bound::Number(i128::from(micros(text)?))),
        _ => None,
    }
}

/// Digits at the scale of a column, if they fit it.
fn unscaled(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let missing = usize::try_from(scale).ok()?.checked_sub(fraction.len())?;
    let digits = whole.len() + fraction.len() + missing;
    // With more digits the planner widens the column.
    (digits <= usize::from(precision)).then_some(())?;
    let value: i128 = format!("{whole}{fraction}").parse().ok()?;
    value.checked_mul(10_i128.checked_pow(u32::try_from(missing).ok()?)?)
}

/// Days since 1970-01-01 of `YYYY-MM-DD`.
pub(crate) fn days(text: &str) -> Option<i32> {
    (text.len() == 10).then_some(())?;
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    i32::try_from((date - NaiveDate::default()).num_days()).ok()
}

/// Microseconds since 1970-01-01 of `YYYY-MM-DD HH:MM:SS`.
fn micros(text: &str) -> Option<i64> {
    (text.len() == 19).then_some(())?;
    let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").ok()?;
    Some(time.and_utc().timestamp_micros())
}

fn of_parameter(value: &ScalarValue, data_type: &DataType) -> Option<Bound> {
    if value.is_null() {
        return Some(Bound::Null);
    }
    if value.data_type() != *data_type {
        // Smaller integers are the same number.
        let number = match value {
            ScalarValue::Int16(Some(number)) => i128::from(*number),
            ScalarValue::Int32(Some(number)) => i128::from(*number),
            ScalarValue::Int64(Some(number)) => i128::from(*number),
            _ => return None,
        };
        return data_type.is_integer().then_some(Bound::Number(number));
    }
    Some(match value {
        ScalarValue::Boolean(Some(value)) => Bound::Number(i128::from(*value)),
        ScalarValue::Int8(Some(value)) => Bound::Number(i128::from(*value)),
        ScalarValue::Int16(Some(value)) => Bound::Number(i128::from(*value)),
        ScalarValue::Int32(Some(value)) => Bound::Number(i128::from(*value)),
        ScalarValue::Int64(Some(value)) => Bound::Number(i128::from(*value)),
        ScalarValue::Date32(Some(value)) => Bound::Number(i128::from(*value)),
        ScalarValue::TimestampMicrosecond(Some(value), _) => Bound::Number(i128::from(*value)),
        ScalarValue::Decimal128(Some(value), _, _) => Bound::Number(*value),
        ScalarValue::Utf8(Some(text)) => Bound::Text(text.as_str().into()),
        _ => return None,
    })
}
