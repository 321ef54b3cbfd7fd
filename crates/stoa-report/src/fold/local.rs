//! The groups of a row group: found by counting where keys are codes, and added up in short arrays.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::fast::RandomState;
use stoa_error::{Error, Result};

use super::Measure;
use super::operand::{Evaluated, Places};
use super::state::{LocalBest, LocalStates};
use crate::chunk::{Chunk, Ints, Values};
use crate::rows::ChunkRows;

/// Combinations of codes up to which each has a slot.
const SLOTS_MAX: u64 = 1 << 18;

/// Groups up to which sums are made side by side: one would wait for the other.
const FEW_GROUPS: usize = 64;

const LANES: usize = 4;

/// No group yet.
const NONE: u32 = u32::MAX;

/// Groups of the rows of a row group that count.
#[derive(Debug, Default)]
pub(super) struct LocalGroups {
    /// The group of each row, by position; empty where there is one for all.
    ids: Vec<u32>,
    /// Position of the first row of each group.
    first: Vec<u32>,
    /// By combination of codes; all are [`NONE`] between two row groups.
    slots: Vec<u32>,
    /// Combined codes of each row.
    combined: Vec<u64>,
    codes: Vec<u32>,
    /// By combined codes, where these are too many for slots; used again for its memory.
    known: HashMap<u64, u32, RandomState>,
}

impl LocalGroups {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.first.len()
    }

    /// Position of the first row of each.
    pub(super) fn first(&self) -> &[u32] {
        &self.first
    }

    /// Finds the groups of some rows, of which there is at least one.
    pub(super) fn find(&mut self, keys: &[Evaluated], rows: &ChunkRows<'_>) {
        self.ids.clear();
        self.first.clear();
        let Some((one, more)) = keys.split_first() else {
            self.first.push(0);
            return;
        };
        self.codes.clear();
        let mut count = u64::from(one.codes(rows, &mut self.codes));
        self.combined.clear();
        self.combined.extend(self.codes.iter().map(|code| u64::from(*code)));
        for key in more {
            self.codes.clear();
            let of_key = u64::from(key.codes(rows, &mut self.codes));
            // Keys of more than 64 bits are numbered as they are.
            count = match count.checked_mul(of_key) {
                Some(count) => count,
                None => {
                    let known = number(&mut self.combined);
                    known.saturating_mul(of_key)
                }
            };
            let both = self.combined.iter_mut().zip(&self.codes);
            both.for_each(|(combined, code)| *combined = *combined * of_key + u64::from(*code));
        }
        match count <= SLOTS_MAX.min(32 * rows.len() as u64) {
            true => self.by_slot(count as usize),
            false => self.by_hash(),
        }
    }

    fn by_slot(&mut self, count: usize) {
        if self.slots.len() < count {
            self.slots.resize(count, NONE);
        }
        for (position, combined) in self.combined.iter().enumerate() {
            let slot = &mut self.slots[*combined as usize];
            if *slot == NONE {
                *slot = self.first.len() as u32;
                self.first.push(position as u32);
            }
            self.ids.push(*slot);
        }
        for position in &self.first {
            self.slots[self.combined[*position as usize] as usize] = NONE;
        }
    }

    fn by_hash(&mut self) {
        self.known.clear();
        // Neighbours are often of one group.
        let mut last = (None, 0);
        for (position, combined) in self.combined.iter().enumerate() {
            if last.0 != Some(*combined) {
                let id = match self.known.entry(*combined) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        self.first.push(position as u32);
                        *new.insert(self.first.len() as u32 - 1)
                    }
                };
                last = (Some(*combined), id);
            }
            self.ids.push(last.1);
        }
    }

    /// What measures are in each group.
    ///
    /// # Errors
    /// 22003 for a sum of more than 128 bits.
    pub(super) fn measure(
        &self,
        measures: &[Measure],
        operands: &[Evaluated],
        rows: &ChunkRows<'_>,
    ) -> Result<Vec<LocalStates>> {
        // Shared by all measures of values that are never NULL.
        let mut counts: Option<Vec<i64>> = None;
        let mut counted = || counts.get_or_insert_with(|| self.counts(rows)).clone();
        let operand = |index: usize| {
            operands.get(index).ok_or_else(|| Error::internal("a grouping misses an operand"))
        };
        let each = measures.iter().map(|measure| {
            Ok(match measure {
                Measure::Rows => LocalStates::Counts(counted()),
                Measure::Values(index) => match valid(operand(*index)?, rows) {
                    None => LocalStates::Counts(counted()),
                    Some(valid) => LocalStates::Counts(self.counts_of(&valid)),
                },
                Measure::Sum(index) => LocalStates::Sums(self.sums(operand(*index)?, rows)?),
                Measure::Least(index) => {
                    LocalStates::Best(self.best::<true>(operand(*index)?, rows))
                }
                Measure::Greatest(index) => {
                    LocalStates::Best(self.best::<false>(operand(*index)?, rows))
                }
            })
        });
        each.collect()
    }

    fn id(&self, position: usize) -> usize {
        self.ids.get(position).map_or(0, |id| *id as usize)
    }

    fn counts(&self, rows: &ChunkRows<'_>) -> Vec<i64> {
        if self.ids.is_empty() {
            return vec![rows.len() as i64];
        }
        let mut counts = vec![0; self.len()];
        if self.len() > FEW_GROUPS {
            self.ids.iter().for_each(|id| counts[*id as usize] += 1);
            return counts;
        }
        let mut lanes = [[0_u32; FEW_GROUPS]; LANES];
        let (ids, rest) = self.ids.as_chunks::<LANES>();
        for ids in ids {
            for lane in 0..LANES {
                lanes[lane][ids[lane] as usize % FEW_GROUPS] += 1;
            }
        }
        rest.iter().for_each(|id| counts[*id as usize] += 1);
        for (id, count) in counts.iter_mut().enumerate() {
            *count += lanes.iter().map(|lane| i64::from(lane[id])).sum::<i64>();
        }
        counts
    }

    fn counts_of(&self, valid: &[bool]) -> Vec<i64> {
        let mut counts = vec![0; self.len()];
        let valid = valid.iter().enumerate();
        valid.for_each(|(position, valid)| counts[self.id(position)] += i64::from(*valid));
        counts
    }

    fn sums(&self, operand: &Evaluated, rows: &ChunkRows<'_>) -> Result<Vec<i128>> {
        if self.ids.is_empty() {
            match operand {
                Evaluated::Rows(chunk) => {
                    return Ok(vec![chunk.sum(rows).ok_or_else(out_of_range)?]);
                }
                Evaluated::Shifted(chunk, by) => {
                    let sum = chunk.sum(rows).ok_or_else(out_of_range)?;
                    return Ok(vec![sum + i128::from(chunk.count_values(rows)) * i128::from(*by)]);
                }
                _ => {}
            }
        }
        let valid = valid(operand, rows);
        let mut room = Vec::new();
        if let Some(values) = whole(operand, rows, &mut room) {
            return Ok(match valid {
                None if are_small(values) => self.small_sums(values),
                None => self.wide_sums(values, |_| true),
                Some(valid) => self.wide_sums(values, |position| valid[position]),
            });
        }
        let (chunk, places) = operand.values();
        if !matches!(chunk.values, Values::Ints(_) | Values::Wide(_)) {
            return Err(Error::internal("a grouping sums what are no whole numbers"));
        }
        let positions: Vec<u32> = (0..rows.len() as u32).collect();
        let places = places.of(&positions, rows);
        let mut sums = vec![0_i128; self.len()];
        for (position, place) in places.into_iter().enumerate() {
            if !chunk.is_null(place as usize) {
                let sum = &mut sums[self.id(position)];
                let value = chunk.number(place as usize);
                *sum = sum.checked_add(value).ok_or_else(out_of_range)?;
            }
        }
        Ok(sums)
    }

    /// Sums of values that fit 64 bits whichever are added.
    fn small_sums(&self, values: &[i64]) -> Vec<i128> {
        if self.ids.is_empty() {
            return vec![values.iter().sum::<i64>().into()];
        }
        let mut sums = vec![0_i64; self.len()];
        if self.len() > FEW_GROUPS {
            values.iter().zip(&self.ids).for_each(|(value, id)| sums[*id as usize] += value);
            return sums.into_iter().map(i128::from).collect();
        }
        let mut lanes = [[0_i64; FEW_GROUPS]; LANES];
        let (ids, rest_ids) = self.ids.as_chunks::<LANES>();
        let (values, rest) = values.as_chunks::<LANES>();
        for (values, ids) in values.iter().zip(ids) {
            for lane in 0..LANES {
                lanes[lane][ids[lane] as usize % FEW_GROUPS] += values[lane];
            }
        }
        rest.iter().zip(rest_ids).for_each(|(value, id)| sums[*id as usize] += value);
        let sums = sums.into_iter().enumerate();
        sums.map(|(id, sum)| i128::from(sum + lanes.iter().map(|lane| lane[id]).sum::<i64>()))
            .collect()
    }

    /// Row groups have less than 2³² rows.
    fn wide_sums(&self, values: &[i64], counts: impl Fn(usize) -> bool) -> Vec<i128> {
        let mut sums = vec![0_i128; self.len()];
        for (position, value) in values.iter().enumerate() {
            if counts(position) {
                sums[self.id(position)] += i128::from(*value);
            }
        }
        sums
    }

    /// Where the least or greatest value of each group is.
    fn best<const LEAST: bool>(&self, operand: &Evaluated, rows: &ChunkRows<'_>) -> LocalBest {
        // Of all rows of a chunk, the ends are known.
        if let Evaluated::Rows(chunk) = operand
            && self.ids.is_empty()
            && !chunk.has_nulls()
            && *rows == ChunkRows::Range(0..chunk.rows())
            && let Some((least, greatest)) = chunk.ends()
            && !matches!(chunk.values, Values::Ints(Ints::Bits(_)))
        {
            let end = if LEAST { least } else { greatest };
            let chunk = Arc::new(Chunk::of_numbers(vec![end], None));
            return LocalBest { chunk, places: vec![Some(0)] };
        }
        let valid = valid(operand, rows);
        let is_valid = |position: usize| valid.as_ref().is_none_or(|valid| valid[position]);
        let mut room = Vec::new();
        if let Some(values) = whole(operand, rows, &mut room) {
            let mut best = vec![if LEAST { i64::MAX } else { i64::MIN }; self.len()];
            let mut has_value = vec![false; self.len()];
            for (position, value) in values.iter().enumerate().filter(|(at, _)| is_valid(*at)) {
                let id = self.id(position);
                has_value[id] = true;
                best[id] = if LEAST { best[id].min(*value) } else { best[id].max(*value) };
            }
            let places = has_value.into_iter().zip(0..);
            let places = places.map(|(has_value, id)| has_value.then_some(id)).collect();
            return LocalBest { chunk: Arc::new(Chunk::of_numbers(best, None)), places };
        }
        let (chunk, places) = operand.values();
        let positions: Vec<u32> = (0..rows.len() as u32).collect();
        let places = places.of(&positions, rows);
        let ranks = ranks(&chunk);
        let rank = |place: usize| match &ranks {
            Some(ranks) => i128::from(ranks[place]),
            None => chunk.number(place),
        };
        let mut best: Vec<Option<(i128, u32)>> = vec![None; self.len()];
        for (position, place) in places.into_iter().enumerate().filter(|(at, _)| is_valid(*at)) {
            let rank = rank(place as usize);
            let best = &mut best[self.id(position)];
            let is_better = |known: i128| if LEAST { rank < known } else { rank > known };
            if best.is_none_or(|(known, _)| is_better(known)) {
                *best = Some((rank, place));
            }
        }
        let places = best.into_iter().map(|best| best.map(|(_, place)| place)).collect();
        LocalBest { chunk, places }
    }
}

/// Puts the numbers of different values in the place of values; how many there are.
fn number(values: &mut [u64]) -> u64 {
    let mut known: HashMap<u64, u64, RandomState> = HashMap::default();
    for value in values {
        let next = known.len() as u64;
        *value = *known.entry(*value).or_insert(next);
    }
    known.len() as u64
}

/// Which rows have a value, by position; `None` where all have.
fn valid(operand: &Evaluated, rows: &ChunkRows<'_>) -> Option<Vec<bool>> {
    let (chunk, places) = operand.nulls();
    if !chunk.has_nulls() {
        return None;
    }
    Some(match places {
        Places::Rows => rows.iter().map(|row| !chunk.is_null(row)).collect(),
        Places::Positions => (0..rows.len()).map(|at| !chunk.is_null(at)).collect(),
        Places::Codes(of) => {
            let mut codes = Vec::with_capacity(rows.len());
            of.codes(rows, &mut codes);
            codes.into_iter().map(|code| !chunk.is_null(code as usize)).collect()
        }
    })
}

/// The whole numbers of an operand, by position; `None` where some have more than 64 bits.
fn whole<'a>(
    operand: &'a Evaluated,
    rows: &ChunkRows<'_>,
    room: &'a mut Vec<i64>,
) -> Option<&'a [i64]> {
    match operand {
        Evaluated::Rows(chunk) => chunk.whole_numbers(rows, room).then_some(room.as_slice()),
        Evaluated::Shifted(chunk, by) => {
            let are_whole = chunk.whole_numbers(rows, room);
            room.iter_mut().for_each(|value| *value = value.wrapping_add(*by));
            are_whole.then_some(room.as_slice())
        }
        Evaluated::Positions(chunk) => match &chunk.values {
            Values::Ints(Ints::Int64(values)) => Some(values),
            _ => {
                let all = ChunkRows::Range(0..rows.len());
                chunk.whole_numbers(&all, room).then_some(room.as_slice())
            }
        },
        Evaluated::Coded { of, values } => {
            let mut table = Vec::with_capacity(values.rows());
            if !values.narrow_numbers(&mut table) {
                return None;
            }
            let mut codes = Vec::with_capacity(rows.len());
            of.codes(rows, &mut codes);
            room.extend(codes.into_iter().map(|code| table[code as usize]));
            Some(room)
        }
    }
}

/// Whether the sum of any of some values fits 64 bits.
fn are_small(values: &[i64]) -> bool {
    let bits = usize::BITS - values.len().leading_zeros();
    let most = 1_u64 << (62 - bits.min(61));
    // Whether each is from -most to most - 1, which is a power of two.
    let seen = values.iter().fold(0, |seen, value| seen | (*value as u64).wrapping_add(most));
    seen < 2 * most
}

/// The place of each text in the order of texts, by row; `None` for numbers.
fn ranks(chunk: &Chunk) -> Option<Vec<u32>> {
    match &chunk.values {
        Values::Text(texts) => {
            let texts: Vec<&str> = texts.iter().map(Option::unwrap_or_default).collect();
            Some(ranks_of(&texts))
        }
        Values::Codes(codes) => {
            let texts: Vec<&str> = codes.texts.iter().map(Option::unwrap_or_default).collect();
            let ranks = ranks_of(&texts);
            Some(codes.codes.iter().map(|code| ranks[usize::from(*code)]).collect())
        }
        _ => None,
    }
}

fn ranks_of(texts: &[&str]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..texts.len() as u32).collect();
    order.sort_unstable_by_key(|at| texts[*at as usize].as_bytes());
    let mut ranks = vec![0; texts.len()];
    let mut rank = 0;
    let mut before: Option<&str> = None;
    for at in order {
        let text = texts[at as usize];
        rank += u32::from(before.is_some_and(|before| before != text));
        before = Some(text);
        ranks[at as usize] = rank;
    }
    ranks
}

pub(super) fn out_of_range() -> Error {
    Error::invalid("numeric value out of range: it has more digits than are supported")
        .with_sqlstate("22003")
}
