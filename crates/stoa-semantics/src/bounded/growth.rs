//! How large the results of a function are at most, from its operands alone.
//!
//! In: operands. Out: bytes of each row's result, or a little more. Where the operands' types are not those
//! that are known here, only their own bytes count: the function refuses them itself.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

/// Bytes of a value's place in a column, and of a number.
const PLACE_BYTES: u64 = 8;

/// Bytes of a number as text.
const NUMBER_TEXT_BYTES: u64 = 24;

/// Bytes of a character.
const CHARACTER_BYTES: u64 = 4;

/// Bytes of a tree for each byte of its text.
const JSON_BYTES: u64 = 48;

/// The same for values that are shown on lines of their own, which begin with up to 1,600 blanks.
const PRETTY_BYTES: u64 = 1700;

/// Bytes of parts for each byte of a text: places of lists in lists, and of texts.
const PART_BYTES: u64 = 16;

const DAY_US: i64 = 86_400_000_000;

/// What a function makes of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// As much as its operands together.
    Sum,
    /// The first as often as the second says.
    Repeat,
    /// A list of the first as often as the second says.
    RepeatElement,
    /// As many characters as the second says.
    Pad,
    /// The third in place of each of the second in the first.
    Replace,
    /// The third, with parts of the first in it, in place of any part of the first.
    ReplacePattern,
    /// The operands behind the first with the first between them.
    Separate,
    /// Elements of the first with the second between them.
    JoinElements,
    /// Digits for bytes.
    Encode,
    /// Other letters.
    Translate,
    /// Numbers or times from the first to the second.
    Series,
    /// A list as long as the second says.
    Resize,
    /// The third in place of elements of the first.
    ReplaceElements,
    /// Trees of JSON values, whose nodes take more than their texts.
    Json,
    /// The same with blanks before each line.
    Pretty,
    /// Escapes, lists of small parts.
    Parts,
    /// Parts that are filled up to widths, which the pattern or the arguments say.
    Format,
}

/// Bytes of results.
#[derive(Debug)]
pub(super) struct Sizes {
    /// Per row, one for constants; none where all together are small.
    pub(super) rows: Vec<u64>,
    pub(super) largest: u64,
    pub(super) total: u64,
}

impl Growth {
    /// Of a function by its name; `None` where results are about as large as operands.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "repeat" => Self::Repeat,
            "array_repeat" => Self::RepeatElement,
            "lpad" | "rpad" => Self::Pad,
            "replace" => Self::Replace,
            "regexp_replace" => Self::ReplacePattern,
            "concat_ws" => Self::Separate,
            "array_to_string" => Self::JoinElements,
            "encode" => Self::Encode,
            "translate" => Self::Translate,
            "range" | "generate_series" => Self::Series,
            "array_resize" => Self::Resize,
            "array_replace" | "array_replace_n" | "array_replace_all" => Self::ReplaceElements,
            "concat" | "text_concat" | "overlay" | "array_append" | "array_prepend"
            | "array_concat" | "array_union" => Self::Sum,
            "as_json" | "as_jsonb" => Self::Json,
            "jsonb_pretty" => Self::Pretty,
            "format" => Self::Format,
            "regexp_match"
            | "regexp_groups"
            | "regexp_split_to_array"
            | "quote_ident"
            | "quote_literal"
            | "quote_nullable"
            | "parse_ident"
            | "string_to_array" => Self::Parts,
            "base64_lines" | "without_blanks" | "convert_from" | "convert_to" | "set_byte"
            | "set_bit" | "bytes_substr" | "regexp_substr" | "regexp_substring" => Self::Sum,
            name if name.starts_with("json_") || name.starts_with("jsonb_") => Self::Json,
            _ => return None,
        })
    }

    /// Whether results are mostly far smaller than they could be.
    pub(super) fn is_rough(self) -> bool {
        matches!(
            self,
            Self::ReplacePattern | Self::Json | Self::Pretty | Self::Parts | Self::Format
        )
    }

    /// Bytes of the results for `rows` rows of operands.
    pub(super) fn sizes(self, operands: &[ColumnarValue], rows: usize) -> Result<Sizes> {
        let operands = operands.iter().map(Operand::of).collect::<Result<Vec<_>>>()?;
        if self == Self::Sum {
            let all = operands.iter().map(|operand| operand.bytes_of_all(rows));
            let total = all.fold(PLACE_BYTES * rows as u64, u64::saturating_add);
            // Most are small: no row has to be looked at.
            if total <= super::SMALL_BYTES {
                return Ok(Sizes { rows: Vec::new(), largest: total, total });
            }
        }
        let operands = Operands { operands: &operands, growth: self };
        let rows: Vec<u64> = (0..rows).map(|row| operands.result(row)).collect();
        let largest = rows.iter().copied().max().unwrap_or(0);
        let total = rows.iter().copied().fold(0, u64::saturating_add);
        Ok(Sizes { rows, largest, total })
    }
}

struct Operands<'a> {
    operands: &'a [Operand],
    growth: Growth,
}

impl Operands<'_> {
    fn bytes(&self, operand: usize, row: usize) -> u64 {
        self.operands.get(operand).map_or(0, |operand| operand.bytes(row))
    }

    fn number(&self, operand: usize, row: usize) -> i64 {
        self.operands.get(operand).and_then(|operand| operand.number(row)).unwrap_or(0)
    }

    fn count(&self, operand: usize, row: usize) -> u64 {
        self.number(operand, row).max(0).unsigned_abs()
    }

    fn sum(&self, row: usize) -> u64 {
        self.operands.iter().map(|operand| operand.bytes(row)).fold(0, u64::saturating_add)
    }

    /// Bytes of one result.
    fn result(&self, row: usize) -> u64 {
        let bytes = |operand: usize| self.bytes(operand, row);
        let result = match self.growth {
            Growth::Sum => self.sum(row),
            Growth::Json => self.sum(row).saturating_mul(JSON_BYTES),
            Growth::Pretty => self.sum(row).saturating_mul(PRETTY_BYTES),
            Growth::Parts => self.sum(row).saturating_mul(PART_BYTES),
            Growth::Format => {
                self.sum(row).saturating_mul(PART_BYTES).saturating_add(self.widths(row))
            }
            Growth::Repeat => bytes(0).saturating_mul(self.count(1, row)),
            Growth::RepeatElement => {
                bytes(0).saturating_add(PLACE_BYTES).saturating_mul(self.count(1, row))
            }
            Growth::Pad => {
                let width = match self.operands.get(2) {
                    Some(fill) if !fill.is_ascii(row) => CHARACTER_BYTES,
                    _ => 1,
                };
                bytes(0).saturating_add(self.count(1, row).saturating_mul(width))
            }
            Growth::Replace => self.replaced(row),
            Growth::ReplacePattern => {
                let (of, by) = (bytes(0), bytes(2));
                // A part of the text may stand in the replacement every two bytes.
                let parts = of.saturating_mul(1 + by / 2);
                // Without flags, one place is replaced.
                let places = if self.operands.len() > 3 { of + 1 } else { 1 };
                parts.saturating_add(places.saturating_mul(by))
            }
            Growth::Separate => {
                let between = bytes(0).saturating_mul(self.operands.len() as u64);
                self.sum(row).saturating_add(between)
            }
            Growth::JoinElements => {
                let of_each = NUMBER_TEXT_BYTES.saturating_add(bytes(1)).saturating_add(bytes(2));
                let elements = self.operands.first().map_or(0, |list| list.elements(row));
                bytes(0).saturating_add(elements.saturating_mul(of_each))
            }
            Growth::Encode => bytes(0).saturating_mul(2),
            Growth::Translate => bytes(0).saturating_mul(CHARACTER_BYTES),
            Growth::Series => self.steps(row).saturating_mul(PLACE_BYTES),
            Growth::Resize => {
                let list = self.operands.first();
                let of_each = list.map_or(0, |list| list.element_bytes()).max(bytes(2));
                let added = (of_each + PLACE_BYTES).saturating_mul(self.count(1, row));
                added.saturating_add(bytes(0))
            }
            Growth::ReplaceElements => {
                let elements = self.operands.first().map_or(0, |list| list.elements(row));
                bytes(0).saturating_add(elements.saturating_mul(bytes(2)))
            }
        };
        result.saturating_add(PLACE_BYTES)
    }

    fn replaced(&self, row: usize) -> u64 {
        let (of, what, by) = (self.bytes(0, row), self.bytes(1, row), self.bytes(2, row));
        if by <= what {
            return of;
        }
        // An empty text is found between all letters.
        let places = of.checked_div(what).unwrap_or(of + 1);
        let most = of.saturating_add(places.saturating_mul(by));
        if most <= super::SMALL_BYTES {
            return most;
        }
        let text = |operand: usize| self.operands.get(operand).and_then(|text| text.text(row));
        match (text(0), text(1)) {
            (Some(of), Some(what)) => {
                let places = of.matches(what).count() as u64;
                (of.len() as u64).saturating_add(places.saturating_mul(by))
            }
            _ => most,
        }
    }

    /// Blanks that `format` may add: all numbers of the pattern, and those of the arguments for each `*`.
    fn widths(&self, row: usize) -> u64 {
        let number = |digits: &str| digits.parse::<u64>().unwrap_or(u64::from(u32::MAX));
        let text = |operand: &Operand| operand.text(row).unwrap_or("").to_owned();
        let pattern = self.operands.first().map(text).unwrap_or_default();
        let numbers = pattern.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let own = numbers.map(number).fold(0, u64::saturating_add);
        let stars = pattern.matches('*').count() as u64;
        if stars == 0 {
            return own;
        }
        let widths = self.operands.iter().skip(1).map(text).filter_map(|text| {
            text.trim().trim_start_matches(['-', '+']).parse::<u32>().ok().map(u64::from)
        });
        own.saturating_add(widths.max().unwrap_or(0).saturating_mul(stars))
    }

    /// How many values a series has.
    fn steps(&self, row: usize) -> u64 {
        let (start, end) = match self.operands.len() {
            1 => (0, self.number(0, row)),
            _ => (self.number(0, row), self.number(1, row)),
        };
        let step = match self.operands.len() {
            3 => self.number(2, row),
            _ => 1,
        };
        // With a step of zero it is refused.
        if step == 0 || (end >= start) != (step > 0) {
            return 1;
        }
        (end.abs_diff(start) / step.unsigned_abs()).saturating_add(1)
    }
}

/// A column of operands; one value for a constant.
struct Operand {
    column: ArrayRef,
    is_constant: bool,
    /// As whole numbers; times in microseconds.
    numbers: Option<ArrayRef>,
}

impl Operand {
    fn of(value: &ColumnarValue) -> Result<Self> {
        let (column, is_constant) = match value {
            ColumnarValue::Array(array) => (ArrayRef::clone(array), false),
            ColumnarValue::Scalar(scalar) => (one(scalar)?, true),
        };
        let numbers = numbers(&column);
        Ok(Self { column, is_constant, numbers })
    }

    /// Where the value of a row is; `None` for NULL.
    fn place(&self, row: usize) -> Option<usize> {
        let place = if self.is_constant { 0 } else { row };
        (place < self.column.len() && self.column.is_valid(place)).then_some(place)
    }

    fn number(&self, row: usize) -> Option<i64> {
        let place = self.place(row)?;
        let numbers = self.numbers.as_ref()?.as_primitive::<Int64Type>();
        numbers.is_valid(place).then(|| numbers.value(place))
    }

    fn bytes(&self, row: usize) -> u64 {
        let Some(place) = self.place(row) else { return 0 };
        let column = &self.column;
        match column.data_type() {
            DataType::Utf8 => length(column.as_string::<i32>().value_length(place).into()),
            DataType::LargeUtf8 => length(column.as_string::<i64>().value_length(place)),
            DataType::Utf8View => column.as_string_view().value(place).len() as u64,
            DataType::Binary => length(column.as_binary::<i32>().value_length(place).into()),
            DataType::LargeBinary => length(column.as_binary::<i64>().value_length(place)),
            DataType::BinaryView => column.as_binary_view().value(place).len() as u64,
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                self.elements(row).saturating_mul(self.element_bytes())
            }
            _ => average(column),
        }
    }

    /// Bytes for `rows` rows, or a little more.
    fn bytes_of_all(&self, rows: usize) -> u64 {
        if self.is_constant {
            return self.bytes(0).saturating_mul(rows as u64);
        }
        match self.column.data_type() {
            DataType::Utf8 => {
                let offsets = self.column.as_string::<i32>().value_offsets();
                let ends = offsets.last().zip(offsets.first());
                ends.map_or(0, |(end, start)| length(i64::from(end - start)))
            }
            _ => self.column.get_array_memory_size() as u64,
        }
    }

    /// Elements of a list.
    fn elements(&self, row: usize) -> u64 {
        let Some(place) = self.place(row) else { return 0 };
        match self.column.data_type() {
            DataType::List(_) => length(self.column.as_list::<i32>().value_length(place).into()),
            DataType::LargeList(_) => length(self.column.as_list::<i64>().value_length(place)),
            DataType::FixedSizeList(_, size) => length((*size).into()),
            _ => 0,
        }
    }

    /// Bytes of an element of a list, on average.
    fn element_bytes(&self) -> u64 {
        match self.column.data_type() {
            DataType::List(_) => average(self.column.as_list::<i32>().values()),
            DataType::LargeList(_) => average(self.column.as_list::<i64>().values()),
            DataType::FixedSizeList(..) => average(self.column.as_fixed_size_list().values()),
            _ => 0,
        }
    }

    fn text(&self, row: usize) -> Option<&str> {
        let place = self.place(row)?;
        match self.column.data_type() {
            DataType::Utf8 => Some(self.column.as_string::<i32>().value(place)),
            DataType::LargeUtf8 => Some(self.column.as_string::<i64>().value(place)),
            DataType::Utf8View => Some(self.column.as_string_view().value(place)),
            _ => None,
        }
    }

    fn is_ascii(&self, row: usize) -> bool {
        self.text(row).is_some_and(str::is_ascii)
    }
}

fn one(scalar: &ScalarValue) -> Result<ArrayRef> {
    scalar.to_array_of_size(1)
}

fn length(length: i64) -> u64 {
    length.max(0).unsigned_abs()
}

/// Bytes of a value, on average.
fn average(column: &ArrayRef) -> u64 {
    if let Some(width) = column.data_type().primitive_width() {
        return width as u64;
    }
    let bytes = column.to_data().get_slice_memory_size();
    let bytes = bytes.unwrap_or_else(|_| column.get_array_memory_size());
    bytes.div_ceil(column.len().max(1)) as u64
}

/// Whole numbers, times and intervals as numbers that can be counted through.
fn numbers(column: &ArrayRef) -> Option<ArrayRef> {
    match column.data_type() {
        of if of.is_integer() => cast(column, &DataType::Int64).ok(),
        DataType::Date32 | DataType::Timestamp(..) => {
            let zone = match column.data_type() {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone)).ok()?;
            cast(&micros, &DataType::Int64).ok()
        }
        DataType::Interval(_) => {
            let intervals = cast(column, &DataType::Interval(IntervalUnit::MonthDayNano)).ok()?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            let micros = intervals.unary::<_, Int64Type>(|of| {
                // A month has at least so many days, and less than a microsecond is one.
                let days = i64::from(of.months) * 28 + i64::from(of.days);
                let micros = of.nanoseconds / 1000;
                let sum = days.saturating_mul(DAY_US).saturating_add(micros);
                if sum == 0 { of.nanoseconds.signum() } else { sum }
            });
            Some(std::sync::Arc::new(micros))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};

    use super::*;

    fn text(text: &str) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::from(text))
    }

    fn number(number: i64) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::from(number))
    }

    #[test]
    fn results_are_as_large_as_they_can_be() {
        let check = |name: &str, operands: &[ColumnarValue], bytes: u64| {
            let sizes = Growth::of(name).unwrap().sizes(operands, 1).unwrap();
            assert_eq!((sizes.total, sizes.largest), (bytes + 8, bytes + 8), "{name}");
        };
        check("repeat", &[text("abc"), number(1000)], 3000);
        check("repeat", &[text("abc"), number(-5)], 0);
        check("repeat", &[text("abc"), number(i64::MAX)], u64::MAX - 8);
        check("array_repeat", &[number(1), number(1000)], 16_000);
        check("array_repeat", &[text(""), number(1000)], 8000);
        check("lpad", &[text("abc"), number(1000)], 1003);
        check("rpad", &[text("abc"), number(1000), text("é")], 4003);
        check("replace", &[text("aXbX"), text("X"), text("12345")], 4 + 4 * 5);
        check("replace", &[text("aXbX"), text("XX"), text("1")], 4);
        check("replace", &[text("abc"), text(""), text("12")], 3 + 4 * 2);
        check("concat", &[text("abc"), text("de")], 5);
        check("concat_ws", &[text(","), text("abc"), text("de")], 6 + 3);
        check("generate_series", &[number(1), number(100)], 800);
        check("generate_series", &[number(100), number(1)], 8);
        check("generate_series", &[number(100), number(1), number(-3)], 34 * 8);
        check("generate_series", &[number(i64::MIN), number(i64::MAX)], u64::MAX - 8);
        check("range", &[number(50)], 51 * 8);
        check("encode", &[text("abc"), text("hex")], 6);
        assert_eq!(Growth::of("lower"), None);
    }

    #[test]
    fn rows_have_sizes_of_their_own() {
        let texts = StringArray::from(vec![Some("a"), None, Some("abc")]);
        let counts = Int64Array::from(vec![Some(5), Some(5), None]);
        let operands =
            [ColumnarValue::Array(Arc::new(texts.clone())), ColumnarValue::Array(Arc::new(counts))];
        let sizes = Growth::Repeat.sizes(&operands, 3).unwrap();
        assert_eq!((sizes.rows, sizes.largest), (vec![13, 8, 8], 13));
        // What is found is counted where it would be much.
        let operands =
            [ColumnarValue::Array(Arc::new(texts)), text("b"), text(&"x".repeat(2 << 20))];
        let sizes = Growth::Replace.sizes(&operands, 3).unwrap();
        assert_eq!(sizes.rows, [1 + 8, 8, 3 + (2 << 20) + 8]);
    }
}
