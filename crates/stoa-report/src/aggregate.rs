//! Groups and what is computed over them.
//!
//! In: chunks of the report's columns and the rows of them that count. Out: per group one of its
//! rows (which has the group's key) and the state of each aggregate; or word that there are too many.
//!
//! **Invariant:** chunks are kept as long as a group has its row in them, or a least or greatest value.
//!
//! Not here: the order of the answer, and the first rows of it (`order`).

mod merge;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::i256;
use foldhash::fast::RandomState;
use stoa_error::{Error, Result};

use crate::chunk::{Chunk, Codes, Ints, Values};
use crate::decimal::{Decimal, quotient};
use crate::report::{Aggregate, Function, Item, Report, Test, ValueKind, kind_of};
use crate::rows::ChunkRows;

/// A value of the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Number(i128),
    Float(f64),
    /// Digits of a decimal with [`NUMERIC_SCALE`](crate::NUMERIC_SCALE).
    Mean(i256),
    Text(&'a str),
}

/// A row of one of the sources. They come in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowAddress {
    source: u32,
    row: u32,
}

/// State of one aggregate in one group.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    values: u64,
    sum: i128,
    /// Whether the sum is more than 128 bits hold.
    overflows: bool,
    float: f64,
    best: Option<RowAddress>,
}

/// Memory of chunks that must have been added before it is looked which of them are needed no more.
const SWEPT_BYTES_MIN: usize = 8 << 20;

/// Memory of a key beside its bytes.
const KEY_BYTES: usize = 40;

/// Rows put into groups.
pub(crate) struct Groups<'a> {
    pub(crate) report: &'a Report,
    /// Groups, or rows of an answer that has none, at most.
    rows_max: usize,
    /// The report's columns of each source that was added; none of those that are needed no more.
    sources: Vec<Vec<Arc<Chunk>>>,
    /// Their memory.
    source_bytes: usize,
    /// Their memory when it was last looked which of them are needed.
    swept_bytes: usize,
    /// One row of each group.
    pub(crate) places: Vec<RowAddress>,
    /// Of an answer's first rows, one that is among them only if no better one comes.
    pub(crate) worst: Option<RowAddress>,
    /// The aggregates of the first group, those of the second, ….
    states: Vec<State>,
    /// The columns that tell groups apart: those that conditions leave more than one value.
    keys: Vec<usize>,
    by_key: KeyIndex,
    key_bytes: usize,
    /// Of the source that is being added.
    runs: Vec<Run>,
}

/// Selected rows (positions among them) one after another that are of one group.
struct Run {
    group: u32,
    rows: Range<usize>,
}

/// Groups by key.
enum KeyIndex {
    /// Whole numbers, as long as each new one is greater than all before, as days mostly are: the key
    /// of group n is the n-th.
    Ascending(Vec<i64>),
    Hashed(HashMap<Box<[u8]>, u32, RandomState>),
}

impl Default for KeyIndex {
    fn default() -> Self {
        Self::Ascending(Vec::new())
    }
}

impl KeyIndex {
    /// The group of a whole number, which is `new` if there was none.
    fn group_of_int(&mut self, key: i64, new: u32) -> u32 {
        if let Self::Ascending(keys) = self {
            match keys.binary_search(&key) {
                Ok(group) => return group as u32,
                Err(at) if at == keys.len() => {
                    keys.push(key);
                    return new;
                }
                Err(_) => {}
            }
        }
        self.group_of(&int_key(key), new)
    }

    /// The group of a key as [`push_key`] writes it, which is `new` if there was none.
    fn group_of(&mut self, key: &[u8], new: u32) -> u32 {
        if let Self::Ascending(keys) = self {
            let keys = keys.iter().zip(0..).map(|(key, group)| (int_key(*key).into(), group));
            *self = Self::Hashed(keys.collect());
        }
        let Self::Hashed(hashed) = self else { return new };
        if let Some(group) = hashed.get(key) {
            return *group;
        }
        hashed.insert(key.into(), new);
        new
    }
}

impl<'a> Groups<'a> {
    /// Of at most `rows_max` groups, or rows of an answer that has none.
    pub(crate) fn new(report: &'a Report, rows_max: usize) -> Self {
        let mut groups = Self {
            report,
            rows_max,
            sources: Vec::new(),
            source_bytes: 0,
            swept_bytes: 0,
            places: Vec::new(),
            worst: None,
            states: Vec::new(),
            keys: report
                .group_by
                .iter()
                .copied()
                .filter(|key| !is_one_value(report, *key))
                .collect(),
            by_key: KeyIndex::default(),
            key_bytes: 0,
            runs: Vec::new(),
        };
        if report.grouped && report.group_by.is_empty() {
            // All rows, or none, make one group.
            groups.open(RowAddress { source: 0, row: 0 });
        }
        groups
    }

    /// How many groups there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Memory of groups and of the chunks that are kept for them, bytes, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.source_bytes
            + self.key_bytes
            + self.places.capacity() * size_of::<RowAddress>()
            + self.states.capacity() * size_of::<State>()
    }

    /// Whether no further row can change the answer.
    pub(crate) fn is_complete(&self) -> bool {
        let wanted = self.report.rows_kept().filter(|_| self.report.order.is_empty());
        wanted.is_some_and(|wanted| self.places.len() >= wanted)
    }

    /// Adds the rows `selected` of `chunks`; whether there is room for their groups.
    pub(crate) fn add(&mut self, chunks: Vec<Arc<Chunk>>, selected: &ChunkRows<'_>) -> bool {
        if selected.is_empty() {
            return true;
        }
        let source = self.sources.len() as u32;
        self.sources.push(chunks);
        let added = match self.report.grouped {
            true => self.add_to_groups(source, selected),
            false => self.add_rows(source, selected),
        };
        let Some(is_needed) = added else { return false };
        match is_needed {
            true => self.keep(source),
            false => drop(self.sources.pop()),
        }
        true
    }

    /// Whether one of the rows stands for its group or is a least or greatest value; `None` where there
    /// are too many groups.
    fn add_to_groups(&mut self, source: u32, selected: &ChunkRows<'_>) -> Option<bool> {
        let before = self.places.len();
        self.find_groups(source, selected)?;
        let mut is_needed = self.places.len() > before;
        for index in 0..self.report.aggregates.len() {
            is_needed |= self.accumulate(index, source, selected);
        }
        Some(is_needed)
    }

    /// Whether one of the rows may be in the answer; `None` where they are too many.
    fn add_rows(&mut self, source: u32, selected: &ChunkRows<'_>) -> Option<bool> {
        let places = selected.iter().map(|row| RowAddress { source, row: row as u32 });
        let before = self.places.len();
        match self.report.rows_kept() {
            Some(wanted) if self.report.order.is_empty() => {
                self.places.extend(places.take(wanted.saturating_sub(before)));
            }
            Some(wanted) => return Some(self.add_first(places, wanted)),
            None if before + selected.len() > self.rows_max => return None,
            None => self.places.extend(places),
        }
        Some(self.places.len() > before)
    }

    /// Counts the memory of a source, and drops others that are needed no more.
    fn keep(&mut self, source: u32) {
        let chunks = self.sources.get(source as usize).into_iter().flatten();
        self.source_bytes += chunks.map(|chunk| chunk.memory_bytes()).sum::<usize>();
        if self.source_bytes > 2 * self.swept_bytes + SWEPT_BYTES_MIN {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let mut is_needed = vec![false; self.sources.len()];
        let best = self.states.iter().filter_map(|state| state.best.as_ref());
        for place in self.places.iter().chain(best).chain(&self.worst) {
            is_needed[place.source as usize] = true;
        }
        for (chunks, is_needed) in self.sources.iter_mut().zip(is_needed) {
            if !is_needed {
                *chunks = Vec::new();
            }
        }
        let chunks = self.sources.iter().flatten();
        self.source_bytes = chunks.map(|chunk| chunk.memory_bytes()).sum();
        self.swept_bytes = self.source_bytes;
    }

    /// Fills `runs`; `None` where there are too many groups.
    fn find_groups(&mut self, source: u32, selected: &ChunkRows<'_>) -> Option<()> {
        self.runs.clear();
        let keys: Vec<Arc<Chunk>> = {
            let chunks = &self.sources[source as usize];
            self.keys.iter().map(|column| chunks[*column].clone()).collect()
        };
        if keys.is_empty() {
            if self.places.is_empty() {
                self.open(RowAddress { source, row: selected.at(0) as u32 });
            }
            self.runs.push(Run { group: 0, rows: 0..selected.len() });
            return Some(());
        }
        let ends = RunEnds::of(&keys, selected);
        let mut key = Vec::with_capacity(9 * keys.len());
        let mut start = 0;
        while start < selected.len() {
            let end = ends.after(start);
            let row = selected.at(start);
            let new = self.places.len() as u32;
            let group = match (keys.as_slice(), &mut self.by_key) {
                ([one], by_key @ KeyIndex::Ascending(_)) if one.is_small_int(row) => {
                    by_key.group_of_int(one.number(row) as i64, new)
                }
                (_, by_key) => {
                    key.clear();
                    keys.iter().for_each(|chunk| push_key(chunk, row, &mut key));
                    by_key.group_of(&key, new)
                }
            };
            if group == new {
                if self.places.len() >= self.rows_max {
                    return None;
                }
                self.key_bytes += key.len() + KEY_BYTES;
                self.open(RowAddress { source, row: row as u32 });
            }
            self.runs.push(Run { group, rows: start..end });
            start = end;
        }
        Some(())
    }

    fn open(&mut self, place: RowAddress) -> u32 {
        let group = self.places.len() as u32;
        self.places.push(place);
        let states = self.states.len() + self.report.aggregates.len();
        self.states.resize(states, State::default());
        group
    }

    /// Whether one of the rows is a least or greatest value.
    fn accumulate(&mut self, index: usize, source: u32, selected: &ChunkRows<'_>) -> bool {
        let mut is_needed = false;
        let width = self.report.aggregates.len();
        let Aggregate { function, column } = self.report.aggregates[index];
        for Run { group, rows } in &self.runs {
            let state = &mut self.states[*group as usize * width + index];
            let rows = &selected.part(rows.clone());
            let Some(column) = column else {
                state.values += rows.len() as u64;
                continue;
            };
            let chunk = &self.sources[source as usize][column];
            match function {
                Function::Count => state.values += chunk.count_values(rows),
                Function::Mean | Function::Sum if matches!(chunk.values, Values::Floats(_)) => {
                    state.add_floats(chunk, rows);
                }
                Function::Mean | Function::Sum => {
                    state.values += chunk.count_values(rows);
                    let sum = chunk.sum(rows).and_then(|sum| state.sum.checked_add(sum));
                    state.overflows |= sum.is_none();
                    state.sum = sum.unwrap_or(state.sum);
                }
                Function::Min | Function::Max => {
                    let wanted = match function {
                        Function::Min => Ordering::Less,
                        _ => Ordering::Greater,
                    };
                    for row in rows.iter().filter(|row| !chunk.is_null(*row)) {
                        let row = row as u32;
                        let is_better = state.best.is_none_or(|best| {
                            let of_best = &self.sources[best.source as usize][column];
                            compare(&cell(chunk, row), &cell(of_best, best.row), false) == wanted
                        });
                        if is_better {
                            state.best = Some(RowAddress { source, row });
                            is_needed = true;
                        }
                    }
                }
            }
        }
        is_needed
    }

    /// What the answer shows for a group.
    pub(crate) fn cell(&self, group: usize, item: Item) -> Cell<'_> {
        let at = |place: RowAddress, column: usize| self.cell_at(place, column);
        let index = match item {
            Item::Column(column) => return at(self.places[group], column),
            Item::Aggregate(index) => index,
        };
        let aggregate = self.report.aggregates[index];
        let state = self.states[group * self.report.aggregates.len() + index];
        match (aggregate.function, aggregate.column) {
            (Function::Count, _) | (_, None) => Cell::Number(i128::from(state.values)),
            (Function::Min | Function::Max, Some(column)) => {
                state.best.map_or(Cell::Null, |best| at(best, column))
            }
            (_, Some(_)) if state.values == 0 => Cell::Null,
            (Function::Mean, Some(column)) => match self.is_float(column) {
                true => Cell::Float(state.float / state.values as f64),
                false => state.mean().map_or(Cell::Null, Cell::Mean),
            },
            (Function::Sum, Some(column)) => match self.is_float(column) {
                true => Cell::Float(state.float),
                false => Cell::Number(state.sum),
            },
        }
    }

    /// A value of a row that is kept.
    pub(crate) fn cell_at(&self, place: RowAddress, column: usize) -> Cell<'_> {
        cell(&self.sources[place.source as usize][column], place.row)
    }

    fn is_float(&self, column: usize) -> bool {
        let of = &self.report.columns[column].data_type;
        matches!(kind_of(of), Some(ValueKind::Float))
    }

    /// Whether all sums and means fit their types.
    ///
    /// # Errors
    /// One that does not (22003).
    pub(crate) fn check(&self) -> Result<()> {
        let width = self.report.aggregates.len();
        for (index, Aggregate { function, column }) in self.report.aggregates.iter().enumerate() {
            let (Function::Sum | Function::Mean, Some(column)) = (function, column) else {
                continue;
            };
            let of = &self.report.columns[*column].data_type;
            let is_integer = of.is_integer();
            let misfit = match is_integer {
                true => "bigint out of range",
                false => "numeric value out of range: it has more digits than are supported",
            };
            let fits = |state: &State| match (function, is_integer) {
                (Function::Mean, _) => state.values == 0 || state.mean().is_some(),
                (_, true) => i64::try_from(state.sum).is_ok(),
                (_, false) => state.sum.unsigned_abs() < DECIMAL_END,
            };
            let mut states = self.states.iter().skip(index).step_by(width.max(1));
            if states.any(|state| state.overflows || !self.is_float(*column) && !fits(state)) {
                return Err(Error::invalid(misfit).with_sqlstate("22003"));
            }
        }
        Ok(())
    }
}

/// What decimals of 38 digits are less than.
const DECIMAL_END: u128 = 10_u128.pow(38);

impl State {
    /// The mean of integers, as digits of a decimal.
    fn mean(&self) -> Option<i256> {
        let sum = Decimal::new(i256::from_i128(self.sum), 0);
        let count = Decimal::new(i256::from_i128(self.values.into()), 0);
        quotient(sum, count).ok()
    }

    fn add_floats(&mut self, chunk: &Chunk, rows: &ChunkRows<'_>) {
        for row in rows.iter().filter(|row| !chunk.is_null(*row)) {
            self.values += 1;
            self.float += chunk.float(row);
        }
    }
}

/// Whether all rows that meet the conditions have the same value in a column.
fn is_one_value(report: &Report, column: usize) -> bool {
    report.conditions.iter().filter(|condition| condition.column == column).any(|condition| {
        match &condition.test {
            Test::Between(low, high) => low == high,
            Test::OneOf(values) => values.len() == 1,
            Test::TextOneOf(values) => values.len() == 1,
            Test::IsNull => true,
            _ => false,
        }
    })
}

/// Where runs of rows with the same key end. Neighbours of one group are found without looking at its
/// key as a whole.
enum RunEnds<'a> {
    /// All keys ascend: the end of a run is looked for from its start.
    Sorted { keys: &'a [Arc<Chunk>], rows: Range<usize> },
    /// Whether a run begins, by position.
    Marked(Vec<bool>),
}

impl<'a> RunEnds<'a> {
    fn of(keys: &'a [Arc<Chunk>], selected: &ChunkRows<'_>) -> Self {
        if let ChunkRows::Range(rows) = selected
            && keys.iter().all(|chunk| chunk.ascends_in(rows))
        {
            return Self::Sorted { keys, rows: rows.clone() };
        }
        let mut begins = vec![false; selected.len()];
        keys.iter().for_each(|chunk| mark_changes(chunk, selected, &mut begins));
        Self::Marked(begins)
    }

    /// The end of the run that begins at a position, as a position.
    fn after(&self, start: usize) -> usize {
        match self {
            Self::Sorted { keys, rows } => {
                let from = rows.start + start;
                let end = keys.iter().fold(rows.end, |end, chunk| chunk.run_end(from, end));
                end - rows.start
            }
            Self::Marked(begins) => {
                let next = begins[start + 1..].iter().position(|begins| *begins);
                next.map_or(begins.len(), |length| start + 1 + length)
            }
        }
    }
}

/// Marks the selected rows whose value is another than that of the one before.
fn mark_changes(chunk: &Chunk, selected: &ChunkRows<'_>, begins: &mut [bool]) {
    fn packed<T: PartialEq>(distances: &[T], selected: &ChunkRows<'_>, begins: &mut [bool]) {
        match selected {
            ChunkRows::Range(range) => {
                let pairs = distances[range.clone()].windows(2).zip(&mut begins[1..]);
                pairs.for_each(|(pair, begins)| *begins |= pair[0] != pair[1]);
            }
            ChunkRows::List(list) => {
                let distance = |row: u32| &distances[row as usize];
                let pairs = list.windows(2).zip(&mut begins[1..]);
                pairs.for_each(|(rows, b)| *b |= distance(rows[0]) != distance(rows[1]));
            }
        }
    }
    match &chunk.values {
        _ if chunk.has_nulls() => {}
        Values::Ints(Ints::Packed8 { distances, .. }) => {
            return packed(distances, selected, begins);
        }
        Values::Ints(Ints::Packed16 { distances, .. }) => {
            return packed(distances, selected, begins);
        }
        Values::Ints(Ints::Packed32 { distances, .. }) => {
            return packed(distances, selected, begins);
        }
        Values::Codes(Codes { codes, .. }) => return packed(codes, selected, begins),
        _ => {}
    }
    let differ = |a: usize, b: usize| match chunk.has_nulls() {
        true => cell(chunk, a as u32) != cell(chunk, b as u32),
        false => !chunk.equal(a, b),
    };
    let pairs = selected.iter().zip(selected.iter().skip(1)).zip(&mut begins[1..]);
    pairs.for_each(|((a, b), begins)| *begins |= differ(a, b));
}

fn cell(chunk: &Chunk, row: u32) -> Cell<'_> {
    let row = row as usize;
    if chunk.is_null(row) {
        return Cell::Null;
    }
    match &chunk.values {
        Values::Text(_) | Values::Codes(_) => Cell::Text(chunk.text(row)),
        Values::Floats(_) => Cell::Float(chunk.float(row)),
        Values::Ints(_) | Values::Wide(_) => Cell::Number(chunk.number(row)),
    }
}

/// Order of two values of one column; NULL is the greatest. `reversed` turns it round.
pub(crate) fn compare(a: &Cell<'_>, b: &Cell<'_>, reversed: bool) -> Ordering {
    let ordering = match (a, b) {
        (Cell::Null, Cell::Null) => Ordering::Equal,
        (Cell::Null, _) => Ordering::Greater,
        (_, Cell::Null) => Ordering::Less,
        (Cell::Number(a), Cell::Number(b)) => a.cmp(b),
        (Cell::Float(a), Cell::Float(b)) => a.total_cmp(b),
        (Cell::Mean(a), Cell::Mean(b)) => a.cmp(b),
        (Cell::Text(a), Cell::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => Ordering::Equal,
    };
    if reversed { ordering.reverse() } else { ordering }
}

/// A whole number as a key.
fn int_key(value: i64) -> [u8; 9] {
    let mut key = [1; 9];
    key[1..].copy_from_slice(&value.to_le_bytes());
    key
}

/// Appends a value so that two keys are equal as bytes where their values are.
pub(crate) fn push_key(chunk: &Chunk, row: usize, key: &mut Vec<u8>) {
    if chunk.is_null(row) {
        key.push(0);
        return;
    }
    match &chunk.values {
        Values::Ints(ints) => key.extend_from_slice(&int_key(ints.get(row))),
        // The same column may be kept narrow in one chunk and wide in another.
        Values::Wide(values) => match i64::try_from(values[row]) {
            Ok(small) => key.extend_from_slice(&int_key(small)),
            Err(_) => {
                key.push(2);
                key.extend_from_slice(&values[row].to_le_bytes());
            }
        },
        Values::Text(_) | Values::Codes(_) => {
            let text = chunk.text(row);
            key.push(3);
            key.extend_from_slice(&(text.len() as u32).to_le_bytes());
            key.extend_from_slice(text.as_bytes());
        }
        Values::Floats(values) => {
            key.push(4);
            key.extend_from_slice(&values[row].to_bits().to_le_bytes());
        }
    }
}
