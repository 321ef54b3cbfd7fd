//! One column of one row group (or of one batch of fresh rows), ready for random access.
//!
//! Integers, dates, timestamps, booleans and decimals of up to 64 bits are kept as small as their
//! range allows: distance from the least value in 1, 2 or 4 bytes. That is a quarter of the memory
//! of typical keys and counters, and comparing needs no unpacking. Texts of which there are few are
//! kept once each, with a byte per row.

mod bytes;
mod codes;
mod order;
mod totals;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};

pub(crate) use self::codes::copy;
use self::order::Order;
use self::totals::{Addend, Totals};
use crate::rows::ChunkRows;

/// The values of one column of some rows.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) values: Values,
    nulls: Option<NullBuffer>,
    rows: usize,
    /// Of values without NULLs, where they are kept.
    order: Option<Order>,
    /// Of whole numbers without NULLs, where they are kept.
    totals: Option<Totals>,
    /// The least and the greatest whole number, where they are kept.
    ends: Option<(i64, i64)>,
    uses: Uses,
}

/// How often something was looked at lately; a copy begins anew.
#[derive(Debug, Default)]
pub(crate) struct Uses(AtomicU32);

impl Clone for Uses {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Uses {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The count so far, of which half is forgotten.
    pub(crate) fn fade(&self) -> u32 {
        let uses = self.0.load(Ordering::Relaxed);
        // What is added meanwhile stays.
        self.0.fetch_sub(uses - uses / 2, Ordering::Relaxed);
        uses
    }
}

/// Values by how they are kept. At NULLs there is anything.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Ints(Ints),
    /// Decimals that do not fit 64 bits.
    Wide(ScalarBuffer<i128>),
    Text(StringArray),
    /// Texts of which there are few: each row has the place of its own.
    Codes(Codes),
    Floats(ScalarBuffer<f64>),
}

/// Texts by their place among the different ones.
#[derive(Clone, Debug)]
pub(crate) struct Codes {
    /// One per row.
    pub(crate) codes: Vec<u8>,
    /// At least one, at most [`CODES_MAX`], none twice.
    pub(crate) texts: StringArray,
}

/// Different texts of a chunk that codes of one byte tell apart.
pub(crate) const CODES_MAX: usize = 1 << 8;

impl Codes {
    /// `None` where there are too many texts, or none.
    fn of(texts: &StringArray) -> Option<Self> {
        let mut places: HashMap<&str, u8, foldhash::fast::RandomState> = HashMap::default();
        let mut codes = Vec::with_capacity(texts.len());
        let mut different: Vec<&str> = Vec::new();
        for text in texts {
            // What is at NULLs does not matter.
            let text = text.unwrap_or_else(|| different.first().copied().unwrap_or_default());
            let code = match places.get(text) {
                Some(code) => *code,
                None => {
                    let code = u8::try_from(different.len()).ok()?;
                    different.push(text);
                    places.insert(text, code);
                    code
                }
            };
            codes.push(code);
        }
        (!different.is_empty())
            .then(|| Self { codes, texts: different.into_iter().map(Some).collect() })
    }

    /// The same of the entries of a dictionary, of which each is looked at once.
    fn of_entries(entries: &StringArray, keys: &Int32Array) -> Option<Self> {
        const UNSEEN: u16 = u16::MAX;
        let mut code_of_entry = vec![UNSEEN; entries.len()];
        // Nothing says that all entries differ.
        let mut places: HashMap<&str, u8, foldhash::fast::RandomState> = HashMap::default();
        let mut different: Vec<&str> = Vec::new();
        let mut code_of = |entry: usize| {
            let code = code_of_entry.get_mut(entry)?;
            if *code == UNSEEN {
                let text = entries.value(entry);
                let known = places.get(text).copied();
                *code = u16::from(match known {
                    Some(known) => known,
                    None => {
                        let new = u8::try_from(different.len()).ok()?;
                        different.push(text);
                        places.insert(text, new);
                        new
                    }
                });
            }
            Some(*code as u8)
        };
        let codes: Vec<u8> = match keys.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                let codes = keys.values().iter().map(|key| code_of(usize::try_from(*key).ok()?));
                codes.collect::<Option<_>>()?
            }
            Some(nulls) => {
                // What is at NULLs does not matter.
                let mut codes = vec![0; keys.len()];
                for row in nulls.valid_indices() {
                    codes[row] = code_of(usize::try_from(keys.value(row)).ok()?)?;
                }
                codes
            }
        };
        (!different.is_empty())
            .then(|| Self { codes, texts: different.into_iter().map(Some).collect() })
    }

    /// The place of each text in their order.
    fn ranks(&self) -> Vec<u8> {
        let mut order: Vec<usize> = (0..self.texts.len()).collect();
        order.sort_by_key(|text| self.texts.value(*text).as_bytes());
        let mut ranks = vec![0; order.len()];
        for (rank, text) in order.into_iter().enumerate() {
            ranks[text] = rank as u8;
        }
        ranks
    }

    /// The text of a row.
    pub(crate) fn text(&self, row: usize) -> &str {
        self.texts.value(usize::from(self.codes[row]))
    }

    fn bytes(&self) -> usize {
        self.codes.len() + self.texts.get_array_memory_size()
    }
}

/// Whole numbers of 64 bits. Packed ones are distances from `base`.
#[derive(Clone, Debug)]
pub(crate) enum Ints {
    Packed8 { base: i64, distances: Vec<u8> },
    Packed16 { base: i64, distances: Vec<u16> },
    Packed32 { base: i64, distances: Vec<u32> },
    Bits(BooleanBuffer),
    Int32(ScalarBuffer<i32>),
    Int64(ScalarBuffer<i64>),
}

impl Ints {
    pub(crate) fn get(&self, row: usize) -> i64 {
        match self {
            Self::Packed8 { base, distances } => base.wrapping_add(i64::from(distances[row])),
            Self::Packed16 { base, distances } => base.wrapping_add(i64::from(distances[row])),
            Self::Packed32 { base, distances } => base.wrapping_add(i64::from(distances[row])),
            Self::Bits(bits) => i64::from(bits.value(row)),
            Self::Int32(values) => i64::from(values[row]),
            Self::Int64(values) => values[row],
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Packed8 { distances, .. } => distances.len(),
            Self::Packed16 { distances, .. } => 2 * distances.len(),
            Self::Packed32 { distances, .. } => 4 * distances.len(),
            Self::Bits(bits) => bits.len().div_ceil(8),
            Self::Int32(values) => 4 * values.len(),
            Self::Int64(values) => 8 * values.len(),
        }
    }
}

impl Chunk {
    /// Shares an array's memory; `None` for types that reports cannot use.
    pub(crate) fn of(array: &ArrayRef) -> Option<Self> {
        let values = match array.data_type() {
            DataType::Boolean => Values::Ints(Ints::Bits(array.as_boolean().values().clone())),
            DataType::Int8 => small(array.as_primitive::<Int8Type>().values()),
            DataType::Int16 => small(array.as_primitive::<Int16Type>().values()),
            DataType::Int32 => int32(array.as_primitive::<Int32Type>().values()),
            DataType::Date32 => int32(array.as_primitive::<Date32Type>().values()),
            DataType::Int64 => int64(array.as_primitive::<Int64Type>().values()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                int64(array.as_primitive::<TimestampMicrosecondType>().values())
            }
            DataType::Decimal128(..) => {
                Values::Wide(array.as_primitive::<Decimal128Type>().values().clone())
            }
            DataType::Utf8 => Values::Text(array.as_string::<i32>().clone()),
            DataType::Dictionary(..) => coded(array.as_dictionary_opt::<Int32Type>()?)?,
            DataType::Float64 => {
                Values::Floats(array.as_primitive::<Float64Type>().values().clone())
            }
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values();
                Values::Floats(values.iter().map(|value| f64::from(*value)).collect())
            }
            _ => return None,
        };
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let rows = array.len();
        let (order, totals, ends, uses) = (None, None, None, Uses::default());
        Some(Self { values, nulls, rows, order, totals, ends, uses })
    }

    /// Whole numbers.
    pub(crate) fn of_numbers(values: Vec<i64>, nulls: Option<NullBuffer>) -> Self {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let (rows, values) = (values.len(), Values::Ints(Ints::Int64(values.into())));
        let (order, totals, ends, uses) = (None, None, None, Uses::default());
        Self { values, nulls, rows, order, totals, ends, uses }
    }

    /// Decimals, or whole numbers that may not fit 64 bits.
    pub(crate) fn of_wide(values: Vec<i128>, nulls: Option<NullBuffer>) -> Self {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let (rows, values) = (values.len(), Values::Wide(values.into()));
        let (order, totals, ends, uses) = (None, None, None, Uses::default());
        Self { values, nulls, rows, order, totals, ends, uses }
    }

    /// The same values in as little memory as allows random access, for keeping; knows whether
    /// they ascend.
    pub(crate) fn compact(self) -> Self {
        self.packed().indexed()
    }

    /// The same values in as little memory as allows random access, for looking at all of them once.
    pub(crate) fn packed(self) -> Self {
        // A slice would keep the whole of what it was cut from: what is not packed is copied.
        let bits = |bits: &BooleanBuffer| bits.iter().collect::<BooleanBuffer>();
        let nulls = self.nulls.as_ref();
        let values = match &self.values {
            Values::Ints(Ints::Bits(values)) => Values::Ints(Ints::Bits(bits(values))),
            Values::Ints(Ints::Int32(values)) => packed(values, |value| i64::from(*value), nulls),
            Values::Ints(Ints::Int64(values)) => packed(values, |value| *value, nulls),
            Values::Ints(packed) => Values::Ints(packed.clone()),
            Values::Wide(wide) => match narrow(wide, nulls) {
                Some(narrow) => packed(&narrow, |value| *value, nulls),
                None => Values::Wide(wide.iter().copied().collect()),
            },
            Values::Text(text) => match Codes::of(text) {
                Some(codes) => Values::Codes(codes),
                None => Values::Text(text.iter().collect()),
            },
            Values::Codes(codes) => Values::Codes(codes.clone()),
            Values::Floats(values) => Values::Floats(values.iter().copied().collect()),
        };
        let nulls = self.nulls.as_ref().map(|nulls| NullBuffer::new(bits(nulls.inner())));
        let packed = Self { values, nulls, ..self };
        Self { ends: packed.find_ends(), ..packed }
    }

    /// With what makes finding and adding up quick.
    fn indexed(self) -> Self {
        let order = match self.nulls {
            None => order_of(&self.values, self.rows),
            Some(_) => None,
        };
        let totals = match (&self.values, &self.nulls) {
            (_, Some(_)) => None,
            (Values::Ints(Ints::Packed8 { distances, .. }), _) => Some(Totals::of(distances)),
            (Values::Ints(Ints::Packed16 { distances, .. }), _) => Some(Totals::of(distances)),
            (Values::Ints(Ints::Packed32 { distances, .. }), _) => Some(Totals::of(distances)),
            (Values::Ints(Ints::Int64(values)), _) => Some(Totals::of(values)),
            _ => None,
        };
        Self { order, totals, ..self }
    }

    /// Whether values ascend in a range of rows and none is NULL; false where nobody looked.
    pub(crate) fn ascends_in(&self, range: &Range<usize>) -> bool {
        self.order.as_ref().is_some_and(|order| order.ascends_in(range))
    }

    /// How often it was looked at.
    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn has_nulls(&self) -> bool {
        self.nulls.is_some()
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// A number; 0 for other values.
    pub(crate) fn number(&self, row: usize) -> i128 {
        match &self.values {
            Values::Ints(ints) => i128::from(ints.get(row)),
            Values::Wide(values) => values[row],
            _ => 0,
        }
    }

    /// Whether there is a whole number of 64 bits.
    pub(crate) fn is_small_int(&self, row: usize) -> bool {
        matches!(self.values, Values::Ints(_)) && !self.is_null(row)
    }

    /// How many of `rows` have a value.
    pub(crate) fn count_values(&self, rows: &ChunkRows<'_>) -> u64 {
        match (&self.nulls, rows) {
            (None, _) => rows.len() as u64,
            (Some(nulls), ChunkRows::Range(range)) => {
                nulls.inner().slice(range.start, range.len()).count_set_bits() as u64
            }
            (Some(nulls), ChunkRows::List(_)) => {
                rows.iter().filter(|row| nulls.is_valid(*row)).count() as u64
            }
        }
    }

    /// The sum of the numbers of `rows`; `None` where 128 bits do not hold it.
    pub(crate) fn sum(&self, rows: &ChunkRows<'_>) -> Option<i128> {
        if self.nulls.is_some() {
            let mut values = rows.iter().filter(|row| !self.is_null(*row));
            return values.try_fold(0, |sum: i128, row| sum.checked_add(self.number(row)));
        }
        Some(match &self.values {
            Values::Ints(Ints::Packed8 { base, distances }) => {
                self.sum_packed(*base, distances, rows)
            }
            Values::Ints(Ints::Packed16 { base, distances }) => {
                self.sum_packed(*base, distances, rows)
            }
            Values::Ints(Ints::Packed32 { base, distances }) => {
                self.sum_packed(*base, distances, rows)
            }
            Values::Ints(Ints::Int64(values)) => self.sum_of(values, rows),
            Values::Ints(ints) => rows.iter().map(|row| i128::from(ints.get(row))).sum(),
            Values::Wide(values) => {
                return rows.iter().try_fold(0, |sum: i128, row| sum.checked_add(values[row]));
            }
            Values::Text(_) | Values::Codes(_) | Values::Floats(_) => 0,
        })
    }

    fn sum_packed<T: Addend>(&self, base: i64, distances: &[T], rows: &ChunkRows<'_>) -> i128 {
        i128::from(base) * rows.len() as i128 + self.sum_of(distances, rows)
    }

    fn sum_of<T: Addend>(&self, values: &[T], rows: &ChunkRows<'_>) -> i128 {
        match (rows, &self.totals) {
            (ChunkRows::Range(range), Some(totals)) => totals.sum(values, range.clone()),
            (ChunkRows::Range(range), None) => T::sum(&values[range.clone()]),
            (ChunkRows::List(list), _) => T::sum_each(list.iter().map(|row| values[*row as usize])),
        }
    }

    /// Where the run of values equal to that of row `start` ends, `end` at the latest. For chunks
    /// that ascend there: looks at few rows, however long the run is.
    pub(crate) fn run_end(&self, start: usize, end: usize) -> usize {
        fn of<T: PartialEq>(values: &[T], start: usize, end: usize) -> usize {
            run_end_by(start, end, |row| values[row] == values[start])
        }
        match &self.values {
            Values::Ints(Ints::Packed8 { distances, .. }) => of(distances, start, end),
            Values::Ints(Ints::Packed16 { distances, .. }) => of(distances, start, end),
            Values::Ints(Ints::Packed32 { distances, .. }) => of(distances, start, end),
            _ => run_end_by(start, end, |row| self.equal(start, row)),
        }
    }

    /// Whether two rows have the same value; neither is NULL.
    pub(crate) fn equal(&self, a: usize, b: usize) -> bool {
        match &self.values {
            Values::Ints(ints) => ints.get(a) == ints.get(b),
            Values::Wide(values) => values[a] == values[b],
            Values::Text(_) => self.text(a) == self.text(b),
            Values::Codes(Codes { codes, .. }) => codes[a] == codes[b],
            Values::Floats(values) => values[a].to_bits() == values[b].to_bits(),
        }
    }

    /// A text; empty for other values.
    pub(crate) fn text(&self, row: usize) -> &str {
        match &self.values {
            Values::Text(texts) => texts.value(row),
            Values::Codes(codes) => codes.text(row),
            _ => "",
        }
    }

    /// A number as a double; 0 for texts.
    pub(crate) fn float(&self, row: usize) -> f64 {
        match &self.values {
            Values::Floats(values) => values[row],
            Values::Ints(ints) => ints.get(row) as f64,
            Values::Wide(values) => values[row] as f64,
            Values::Text(_) | Values::Codes(_) => 0.0,
        }
    }

    /// Memory this takes, about, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let values = match &self.values {
            Values::Ints(ints) => ints.bytes(),
            Values::Wide(values) => 16 * values.len(),
            Values::Text(texts) => texts.get_array_memory_size(),
            Values::Codes(codes) => codes.bytes(),
            Values::Floats(values) => 8 * values.len(),
        };
        let nulls = if self.nulls.is_some() { self.rows.div_ceil(8) } else { 0 };
        let totals = self.totals.as_ref().map_or(0, Totals::memory_bytes);
        let order = self.order.as_ref().map_or(0, Order::memory_bytes);
        size_of::<Self>() + values + nulls + totals + order
    }
}

fn small<T: Copy + Into<i32>>(values: &[T]) -> Values {
    Values::Ints(Ints::Int32(values.iter().map(|value| (*value).into()).collect()))
}

fn int32(values: &ScalarBuffer<i32>) -> Values {
    Values::Ints(Ints::Int32(values.clone()))
}

fn int64(values: &ScalarBuffer<i64>) -> Values {
    Values::Ints(Ints::Int64(values.clone()))
}

/// Numbers as distances from the least.
fn packed<T>(
    values: &[T],
    number: impl Fn(&T) -> i64 + Copy,
    nulls: Option<&NullBuffer>,
) -> Values {
    fn wider((least, greatest): (i64, i64), value: i64) -> (i64, i64) {
        (least.min(value), greatest.max(value))
    }
    let none = (i64::MAX, i64::MIN);
    let (least, greatest) = match nulls {
        None => values.iter().map(number).fold(none, wider),
        Some(nulls) => nulls.valid_indices().map(|row| number(&values[row])).fold(none, wider),
    };
    let base = if least > greatest { 0 } else { least };
    let spread = greatest.checked_sub(base).unwrap_or(i64::MAX);
    // At NULLs the distance is cut to whatever fits.
    let distances = values.iter().map(|value| number(value).wrapping_sub(base));
    Values::Ints(if spread <= i64::from(u8::MAX) {
        Ints::Packed8 { base, distances: distances.map(|distance| distance as u8).collect() }
    } else if spread <= i64::from(u16::MAX) {
        Ints::Packed16 { base, distances: distances.map(|distance| distance as u16).collect() }
    } else if spread <= i64::from(u32::MAX) {
        Ints::Packed32 { base, distances: distances.map(|distance| distance as u32).collect() }
    } else {
        Ints::Int64(values.iter().map(number).collect())
    })
}

/// In 64 bits, if they fit; at NULLs anything does.
fn narrow(values: &[i128], nulls: Option<&NullBuffer>) -> Option<Vec<i64>> {
    let fits = |value: &i128| i128::from(*value as i64) == *value;
    let all_fit = match nulls {
        // All of them in one loop without an end in between.
        None => values.iter().fold(true, |all, value| all & fits(value)),
        Some(nulls) => nulls.valid_indices().all(|row| fits(&values[row])),
    };
    all_fit.then(|| values.iter().map(|value| *value as i64).collect())
}

/// Texts of a dictionary. `None` where it has no texts.
fn coded(array: &DictionaryArray<Int32Type>) -> Option<Values> {
    let entries = array.values().as_string_opt::<i32>()?;
    let keys = array.keys();
    // A file without dictionaries gives one with an entry for each row.
    if entries.len() < array.len()
        && let Some(codes) = Codes::of_entries(entries, keys)
    {
        return Some(Values::Codes(codes));
    }
    let texts = arrow_select::take::take(entries, keys, None).ok()?;
    Some(Values::Text(texts.as_string_opt::<i32>()?.clone()))
}

/// Rows after the first of a run that are looked at one by one.
const SHORT_RUN: usize = 16;

/// The first row after `start` that is not `of_run`, `end` at the latest; none is after the first that
/// is not.
fn run_end_by(start: usize, end: usize, of_run: impl Fn(usize) -> bool) -> usize {
    let near = end.min(start + SHORT_RUN);
    if let Some(next) = (start + 1..near).find(|row| !of_run(*row)) {
        return next;
    }
    if near == end {
        return end;
    }
    // `low` is of the run, `high` is not, or the end.
    let (mut low, mut step) = (near - 1, SHORT_RUN);
    while low + step < end && of_run(low + step) {
        low += step;
        step *= 2;
    }
    let mut high = end.min(low + step);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match of_run(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

fn order_of(values: &Values, rows: usize) -> Option<Order> {
    fn of<T: PartialOrd>(values: &[T]) -> Option<Order> {
        Order::of(values.len(), |row| values[row] < values[row - 1])
    }
    match values {
        Values::Ints(Ints::Packed8 { distances, .. }) => of(distances),
        Values::Ints(Ints::Packed16 { distances, .. }) => of(distances),
        Values::Ints(Ints::Packed32 { distances, .. }) => of(distances),
        Values::Ints(Ints::Int32(values)) => of(values),
        Values::Ints(Ints::Int64(values)) => of(values),
        Values::Wide(values) => of(values),
        Values::Text(texts) => {
            Order::of(rows, |row| texts.value(row).as_bytes() < texts.value(row - 1).as_bytes())
        }
        Values::Codes(codes) => {
            let ranks = codes.ranks();
            let rank = |row: usize| ranks[usize::from(codes.codes[row])];
            Order::of(rows, |row| rank(row) < rank(row - 1))
        }
        Values::Ints(Ints::Bits(_)) | Values::Floats(_) => None,
    }
}

/// An array whose memory is shared by a chunk.
#[cfg(test)]
pub(crate) fn chunk(array: impl Array + 'static) -> Chunk {
    let array: ArrayRef = std::sync::Arc::new(array);
    Chunk::of(&array).unwrap_or_else(|| unreachable!("a type that reports use"))
}

#[cfg(test)]
mod tests {
    use arrow_array::{BooleanArray, Decimal128Array, Int32Array, Int64Array};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Texts of a dictionary, which may have entries twice, make the chunk that the same texts make by themselves.
        #[test]
        fn texts_of_a_dictionary_are_those_that_rows_have(
            entries in proptest::collection::vec("[ab]{0,3}|[a-z]{3}", 1..400),
            keys in proptest::collection::vec(proptest::option::weighted(0.9, any::<u16>()), 1..600),
        ) {
            let keys = keys.into_iter().map(|key| key.map(|key| i32::from(key) % entries.len() as i32));
            let keys: Int32Array = keys.collect();
            let values = StringArray::from_iter_values(&entries);
            let texts = keys.iter().map(|key| Some(entries[key? as usize].as_str()));
            let plain = chunk(texts.collect::<StringArray>()).compact();
            let coded = chunk(DictionaryArray::new(keys.clone(), std::sync::Arc::new(values))).compact();
            prop_assert_eq!(coded.rows(), plain.rows());
            for row in 0..plain.rows() {
                prop_assert_eq!(coded.is_null(row), plain.is_null(row));
                if !plain.is_null(row) {
                    prop_assert_eq!(coded.text(row), plain.text(row));
                }
            }
            prop_assert_eq!(
                matches!(coded.values, Values::Codes(_)),
                matches!(plain.values, Values::Codes(_))
            );
            for (from, to) in [(0, coded.rows()), (coded.rows() / 3, coded.rows() / 2)] {
                prop_assert_eq!(coded.ascends_in(&(from..to)), plain.ascends_in(&(from..to)));
            }
        }
    }

    #[test]
    fn small_ranges_take_little_memory() {
        let check = |values: Vec<i64>, bytes: usize| {
            let compact = chunk(Int64Array::from(values.clone())).compact();
            let Values::Ints(ints) = &compact.values else { unreachable!() };
            assert_eq!(ints.bytes(), bytes, "{values:?}");
            let back: Vec<i64> = (0..values.len()).map(|row| ints.get(row)).collect();
            assert_eq!(back, values);
        };
        check(vec![1_000_000_000_000, 1_000_000_000_255], 2);
        check(vec![-1, 255], 4);
        check(vec![0, 1 << 31], 8);
        check(vec![0, 1 << 33], 16);
        check(vec![i64::MIN, i64::MAX], 16);
        check(vec![], 0);
    }

    proptest! {
        #[test]
        fn sums_and_runs_are_those_of_the_rows(
            mut values in prop::collection::vec(prop_oneof![0_i64..4, -300_i64..300, any::<i64>()], 1..300),
            sorted in any::<bool>(),
            nulls in any::<bool>(),
            ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
            every in 1_usize..4,
        ) {
            if sorted {
                values.sort_unstable();
            }
            let is_null = |row: usize| nulls && row.is_multiple_of(5);
            let given = values.iter().enumerate().map(|(row, value)| (!is_null(row)).then_some(*value));
            let whole = chunk(given.collect::<Int64Array>());
            let (a, b) = (ends.0.index(values.len()), ends.1.index(values.len()));
            let range = a.min(b)..a.max(b) + 1;
            let list: Vec<u32> = range.clone().step_by(every).map(|row| row as u32).collect();
            for chunk in [whole.clone(), whole.compact()] {
                for rows in [ChunkRows::Range(range.clone()), ChunkRows::List(&list)] {
                    let valued: Vec<usize> = rows.iter().filter(|row| !is_null(*row)).collect();
                    let sum: i128 = valued.iter().map(|row| i128::from(values[*row])).sum();
                    prop_assert_eq!(chunk.sum(&rows), Some(sum));
                    prop_assert_eq!(chunk.count_values(&rows), valued.len() as u64);
                }
                if chunk.ascends_in(&range) {
                    let run = (range.start..range.end).take_while(|row| values[*row] == values[range.start]);
                    prop_assert_eq!(chunk.run_end(range.start, range.end), range.start + run.count());
                }
            }
        }
    }

    #[test]
    fn order_is_seen_where_there_are_no_nulls() {
        let ascends = |chunk: Chunk| chunk.compact().ascends_in(&(0..2));
        assert!(ascends(chunk(Int32Array::from(vec![1, 2, 2, 9]))));
        assert!(ascends(chunk(Int32Array::from(vec![1, 2, 1, 9]))));
        assert!(!ascends(chunk(Int32Array::from(vec![2, 1]))));
        assert!(!ascends(chunk(Int32Array::from(vec![Some(1), Some(2), None]))));
        assert!(ascends(chunk(StringArray::from(vec!["a", "ä", "b"]))));
        assert!(!ascends(chunk(BooleanArray::from(vec![false, true]))));
    }

    proptest! {
        #[test]
        fn values_stay_what_they_were(values in prop::collection::vec(
            prop::option::weighted(0.9, prop_oneof![-300_i128..300, any::<i64>().prop_map(i128::from), any::<i128>()]),
            0..50,
        )) {
            let whole = chunk(Decimal128Array::from(values.clone()));
            let compact = whole.clone().compact();
            for (row, value) in values.iter().enumerate() {
                prop_assert_eq!(compact.is_null(row), value.is_none());
                prop_assert!(value.is_none_or(|value| value == compact.number(row)));
            }
        }
    }
}
