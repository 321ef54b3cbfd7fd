//! Which rows of some chunks meet all conditions.

use std::ops::Range;
use std::sync::Arc;

use crate::chunk::{Chunk, Ints, Values};
use crate::report::{Condition, Test};
use crate::rows::Selection;
use crate::sets::{ValueSet, ValueSets};

/// Puts the rows that meet all `conditions`, whose lists are `sets`, into `selection`. `chunks` are the
/// report's columns of the same `rows`.
pub(crate) fn select(
    conditions: &[Condition],
    sets: &ValueSets,
    chunks: &[Arc<Chunk>],
    rows: usize,
    selection: &mut Selection,
) {
    let mut range = 0..rows;
    let mut found = MetConditions::default();
    // Where values ascend, the ends of a range are found by bisection; those of one column may do so
    // only within one value of another.
    for _ in 0..2 {
        for (index, condition) in conditions.iter().enumerate() {
            let chunk = &chunks[condition.column];
            if !found.has(index) && chunk.ascends_in(&range) {
                narrow(&condition.test, chunk, &mut range);
                if is_one_range(&condition.test) {
                    found.add(index);
                }
            }
        }
    }
    let rest = conditions.iter().enumerate().filter(|(index, _)| !found.has(*index));
    let mut rest = rest.map(|(index, condition)| (condition, sets.get(index)));
    let first = rest.next();
    selection.is_list = first.is_some();
    let Some((first, of_first)) = first else {
        selection.range = range;
        return;
    };
    let selected = &mut selection.list;
    selected.clear();
    let listed = conditions.iter().position(|condition| {
        matches!(condition.test, Test::OneOf(_)) && chunks[condition.column].ascends_in(&range)
    });
    if let Some(listed) = listed.filter(|index| !found.has(*index)) {
        found.add(listed);
        select_runs(listed, conditions, sets, chunks, range, found, selected);
        return;
    }
    scan(&first.test, of_first, &chunks[first.column], range, selected);
    for (condition, set) in rest {
        keep(&condition.test, set, &chunks[condition.column], selected);
    }
}

/// Adds the rows of a range that meet all conditions that are not in `met`, and whose value is in the list of the
/// condition `listed`: values ascend there, so that the rows of each lie together. Within them, other conditions
/// may be met by a range.
fn select_runs(
    listed: usize,
    conditions: &[Condition],
    sets: &ValueSets,
    chunks: &[Arc<Chunk>],
    range: Range<usize>,
    met: MetConditions,
    selected: &mut Vec<u32>,
) {
    let Test::OneOf(values) = &conditions[listed].test else { return };
    let chunk = &chunks[conditions[listed].column];
    let (mut row, mut value) = (range.start, 0);
    while row < range.end {
        let number = chunk.number(row);
        value = gallop(value..values.len(), |value| values[value] < number);
        let Some(wanted) = values.get(value) else { return };
        row = gallop(row..range.end, |row| chunk.number(row) < *wanted);
        if row == range.end || chunk.number(row) != *wanted {
            continue;
        }
        let end = chunk.run_end(row, range.end);
        add_run(conditions, sets, chunks, row..end, met, selected);
        row = end;
    }
}

/// Adds the rows of a run that meet all conditions that are not in `met`.
fn add_run(
    conditions: &[Condition],
    sets: &ValueSets,
    chunks: &[Arc<Chunk>],
    mut run: Range<usize>,
    mut met: MetConditions,
    selected: &mut Vec<u32>,
) {
    for (index, condition) in conditions.iter().enumerate() {
        let chunk = &chunks[condition.column];
        if !met.has(index) && is_one_range(&condition.test) && chunk.ascends_in(&run) {
            narrow(&condition.test, chunk, &mut run);
            met.add(index);
        }
    }
    let meets_the_rest = |row: &usize| {
        conditions.iter().enumerate().all(|(index, condition)| {
            let chunk = &chunks[condition.column];
            met.has(index) || holds(&condition.test, sets.get(index), chunk, *row)
        })
    };
    selected.extend(run.filter(meets_the_rest).map(|row| row as u32));
}

/// As [`bisect`], for what is likely to be near the start.
fn gallop(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (range.start, 1);
    while low + step <= range.end && is_before(low + step - 1) {
        (low, step) = (low + step, 2 * step);
    }
    bisect(low..range.end.min(low + step), is_before)
}

/// Conditions, by number, that all rows of the range meet. More than there is room for are looked at
/// row by row.
#[derive(Clone, Copy, Default)]
struct MetConditions(u64);

impl MetConditions {
    fn has(&self, index: usize) -> bool {
        index < 64 && self.0 >> index & 1 == 1
    }

    fn add(&mut self, index: usize) {
        if index < 64 {
            self.0 |= 1 << index;
        }
    }
}

/// Whether the rows that meet a test are neighbours where values ascend.
fn is_one_range(test: &Test) -> bool {
    match test {
        Test::Between(..) | Test::TextBetween { .. } => true,
        Test::OneOf(values) => values.len() <= 1,
        Test::TextOneOf(values) => values.len() <= 1,
        _ => false,
    }
}

/// Cuts `range` down to the rows that may meet a test of a column whose values ascend.
fn narrow(test: &Test, chunk: &Chunk, range: &mut Range<usize>) {
    match test {
        Test::Between(low, high) => narrow_numbers(*low, *high, chunk, range),
        Test::OneOf(values) => match (values.first(), values.last()) {
            (Some(low), Some(high)) => narrow_numbers(*low, *high, chunk, range),
            _ => range.end = range.start,
        },
        Test::TextBetween { low, high } => {
            let low = low.as_ref().map(|(text, within)| (text.as_bytes(), *within));
            let high = high.as_ref().map(|(text, within)| (text.as_bytes(), *within));
            narrow_texts(low, high, chunk, range);
        }
        Test::TextOneOf(values) => match (values.first(), values.last()) {
            (Some(low), Some(high)) => {
                let ends = [low, high].map(|text| Some((text.as_bytes(), true)));
                narrow_texts(ends[0], ends[1], chunk, range);
            }
            _ => range.end = range.start,
        },
        _ => {}
    }
}

fn narrow_numbers(low: i128, high: i128, chunk: &Chunk, range: &mut Range<usize>) {
    let start = bisect(range.clone(), |row| chunk.number(row) < low);
    let end = bisect(start..range.end, |row| chunk.number(row) <= high);
    *range = start..end;
}

fn narrow_texts(
    low: Option<(&[u8], bool)>,
    high: Option<(&[u8], bool)>,
    chunk: &Chunk,
    range: &mut Range<usize>,
) {
    if let Some((low, within)) = low {
        range.start = bisect(range.clone(), |row| {
            let text = chunk.text(row).as_bytes();
            if within { text < low } else { text <= low }
        });
    }
    if let Some((high, within)) = high {
        range.end = bisect(range.clone(), |row| {
            let text = chunk.text(row).as_bytes();
            if within { text <= high } else { text < high }
        });
    }
}

/// The first row of `range` for which `is_before` is false; it is true for all rows before.
fn bisect(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        match is_before(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Adds the rows of `range` that meet a test.
fn scan(
    test: &Test,
    set: Option<&ValueSet>,
    chunk: &Chunk,
    range: Range<usize>,
    selected: &mut Vec<u32>,
) {
    if let (Test::Between(low, high), Values::Ints(ints), false) =
        (test, &chunk.values, chunk.has_nulls())
    {
        return scan_ints(*low, *high, ints, range, selected);
    }
    selected.extend(range.filter(|row| holds(test, set, chunk, *row)).map(|row| row as u32));
}

/// The loops in which wide reports spend their time, one per width.
fn scan_ints(low: i128, high: i128, ints: &Ints, range: Range<usize>, selected: &mut Vec<u32>) {
    /// The part of `low..=high` that distances of a type reach; `None` if there is none.
    fn reach<T>(low: i128, high: i128, base: i64, greatest: T) -> Option<(T, T)>
    where
        T: TryFrom<i128> + Into<i128>,
    {
        let base: i128 = base.into();
        let low = low.saturating_sub(base).max(0);
        let high = high.saturating_sub(base).min(greatest.into());
        Some((T::try_from(low).ok()?, T::try_from(high).ok()?))
    }
    macro_rules! collect {
        ($values:expr, $ends:expr) => {
            if let Some((low, high)) = $ends {
                let rows = range.clone().zip(&$values[range]);
                let within = rows.filter(|(_, value)| low <= **value && **value <= high);
                selected.extend(within.map(|(row, _)| row as u32));
            }
        };
    }
    match ints {
        Ints::Packed8 { base, distances } => collect!(distances, reach(low, high, *base, u8::MAX)),
        Ints::Packed16 { base, distances } => {
            collect!(distances, reach(low, high, *base, u16::MAX))
        }
        Ints::Packed32 { base, distances } => {
            collect!(distances, reach(low, high, *base, u32::MAX))
        }
        Ints::Int32(values) => collect!(values, clamped::<i32>(low, high, i32::MIN, i32::MAX)),
        Ints::Int64(values) => collect!(values, clamped::<i64>(low, high, i64::MIN, i64::MAX)),
        Ints::Bits(bits) => {
            let within = |row: &usize| (low..=high).contains(&i128::from(bits.value(*row)));
            selected.extend(range.filter(within).map(|row| row as u32));
        }
    }
}

fn clamped<T: TryFrom<i128> + Into<i128>>(
    low: i128,
    high: i128,
    least: T,
    greatest: T,
) -> Option<(T, T)> {
    let (low, high) = (low.max(least.into()), high.min(greatest.into()));
    Some((T::try_from(low).ok()?, T::try_from(high).ok()?))
}

/// Keeps the selected rows that meet a test.
fn keep(test: &Test, set: Option<&ValueSet>, chunk: &Chunk, selected: &mut Vec<u32>) {
    selected.retain(|row| holds(test, set, chunk, *row as usize));
}

pub(crate) fn holds(test: &Test, set: Option<&ValueSet>, chunk: &Chunk, row: usize) -> bool {
    if chunk.is_null(row) {
        return *test == Test::IsNull;
    }
    if let Some(set) = set {
        let may_have = match &chunk.values {
            Values::Ints(ints) => set.may_have_int(ints.get(row)),
            Values::Wide(values) => set.may_have_number(values[row]),
            Values::Text(texts) => set.may_have_text(texts.value(row)),
            Values::Codes(_) => set.may_have_text(chunk.text(row)),
            Values::Floats(_) => true,
        };
        if !may_have || set.is_exact() {
            return may_have == matches!(test, Test::OneOf(_) | Test::TextOneOf(_));
        }
    }
    match &chunk.values {
        Values::Text(_) | Values::Codes(_) => test.holds_for_text(chunk.text(row)),
        Values::Floats(_) => *test == Test::IsNotNull,
        _ => test.holds_for_number(chunk.number(row)),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;
    use crate::chunk::chunk;

    fn number_test() -> impl Strategy<Value = Test> {
        let number = || prop_oneof![-5_i128..300, any::<i64>().prop_map(i128::from)];
        prop_oneof![
            (number(), number()).prop_map(|(low, high)| Test::Between(low, high)),
            prop::collection::btree_set(number(), 0..40)
                .prop_map(|values| Test::OneOf(values.into_iter().collect())),
            prop::collection::btree_set(0_i128..260, 0..40)
                .prop_map(|values| Test::OneOf(values.into_iter().collect())),
            prop::collection::btree_set(number(), 1..40)
                .prop_map(|values| Test::NoneOf(values.into_iter().collect())),
            number().prop_map(Test::NotEqual),
            Just(Test::IsNull),
            Just(Test::IsNotNull),
        ]
    }

    fn text_test() -> impl Strategy<Value = Test> {
        let end =
            || prop::option::of(("[a-c]{0,2}".prop_map(String::into_boxed_str), any::<bool>()));
        prop_oneof![
            (end(), end()).prop_map(|(low, high)| Test::TextBetween { low, high }),
            prop::collection::btree_set("[a-c]{0,2}".prop_map(String::into_boxed_str), 0..12)
                .prop_map(|values| Test::TextOneOf(values.into_iter().collect())),
            prop::collection::btree_set("[a-c]{0,2}".prop_map(String::into_boxed_str), 1..12)
                .prop_map(|values| Test::TextNoneOf(values.into_iter().collect())),
            "[a-c]{0,2}".prop_map(|text| Test::TextNotEqual(text.into())),
        ]
    }

    proptest! {
        /// However values are kept and in whatever order they are, the same rows are selected.
        #[test]
        fn rows_are_those_that_meet_each_test(
            mut numbers in prop::collection::vec(
                prop::option::weighted(0.9, prop_oneof![4 => 0_i64..260, 1 => any::<i64>()]), 1..40),
            mut texts in prop::collection::vec("[a-c]{0,2}", 40),
            sorted in any::<bool>(),
            on_number in number_test(),
            on_text in text_test(),
        ) {
            texts.truncate(numbers.len());
            if sorted {
                numbers.retain(Option::is_some);
                numbers.sort_unstable();
                texts.truncate(numbers.len());
                texts.sort_unstable();
            }
            let expected: Vec<u32> = (0..numbers.len())
                .filter(|row| match numbers[*row] {
                    None => on_number == Test::IsNull,
                    Some(number) => on_number.holds_for_number(i128::from(number)),
                })
                .filter(|row| on_text.holds_for_text(&texts[*row]))
                .map(|row| row as u32)
                .collect();
            let conditions = [
                Condition { column: 0, test: on_number },
                Condition { column: 1, test: on_text },
            ];
            let whole = [chunk(Int64Array::from(numbers.clone())), chunk(StringArray::from(texts))];
            for chunks in [whole.clone(), whole.map(Chunk::compact)] {
                let mut selection = Selection::default();
                let sets = ValueSets::of(&conditions);
                select(&conditions, &sets, &chunks.map(Arc::new), numbers.len(), &mut selection);
                let selected: Vec<u32> = selection.rows().iter().map(|row| row as u32).collect();
                prop_assert_eq!(&selected, &expected);
            }
        }
    }
}
