//! Values by small numbers: which of a chunk's different values each row has.
//!
//! Texts of which there are few, and whole numbers that are near each other, are kept as such numbers already. What
//! is computed of one column is computed once per value then, and groups are found by counting instead of hashing.

use std::collections::HashMap;
use std::hash::Hash;

use arrow_array::Array;
use foldhash::fast::RandomState;

use super::{Chunk, Codes, Ints, Uses, Values};
use crate::rows::ChunkRows;

/// Whole numbers from the least to the greatest up to which each has a code.
const SPREAD_MAX: u64 = 1 << 20;

impl Chunk {
    /// The least and the greatest whole number that it may have, NULL aside; `None` where some have more than 64
    /// bits, and for other values.
    pub(crate) fn ends(&self) -> Option<(i64, i64)> {
        self.ends.or_else(|| self.find_ends())
    }

    pub(super) fn find_ends(&self) -> Option<(i64, i64)> {
        // At NULLs there may be distances that lead nowhere.
        fn packed<T: Copy + Ord + Into<i64> + Default>(
            base: i64,
            distances: &[T],
        ) -> Option<(i64, i64)> {
            let most = distances.iter().fold(T::default(), |most, distance| most.max(*distance));
            Some((base, base.checked_add(most.into())?))
        }
        fn plain<T: Copy + Ord + Into<i64>>(values: &[T]) -> Option<(i64, i64)> {
            let Some(first) = values.first().copied() else { return Some((0, 0)) };
            let ends = values.iter().fold((first, first), |(least, greatest), value| {
                (least.min(*value), greatest.max(*value))
            });
            Some((ends.0.into(), ends.1.into()))
        }
        let Values::Ints(ints) = &self.values else { return None };
        match ints {
            Ints::Packed8 { base, distances } => packed(*base, distances),
            Ints::Packed16 { base, distances } => packed(*base, distances),
            Ints::Packed32 { base, distances } => packed(*base, distances),
            Ints::Bits(_) => Some((0, 1)),
            Ints::Int32(values) => plain(values),
            Ints::Int64(values) => plain(values),
        }
    }

    /// The different values that rows may have, in the order of their codes, NULL last where there is any; `None`
    /// where they are more than `most`, or have no codes.
    pub(crate) fn different(&self, most: usize) -> Option<Self> {
        let (values, count) = match &self.values {
            Values::Codes(codes) => (Values::Text(codes.texts.clone()), codes.texts.len()),
            Values::Ints(Ints::Packed8 { .. } | Ints::Packed16 { .. }) => {
                let (base, greatest) = self.ends()?;
                let spread = u16::try_from(greatest.wrapping_sub(base)).ok()?;
                if usize::from(spread) >= most {
                    return None;
                }
                let distances: Vec<u16> = (0..=spread).collect();
                let count = distances.len();
                (Values::Ints(Ints::Packed16 { base, distances }), count)
            }
            Values::Ints(Ints::Bits(_)) => {
                (Values::Ints(Ints::Packed8 { base: 0, distances: vec![0, 1] }), 2)
            }
            _ => return None,
        };
        if count > most {
            return None;
        }
        let (order, totals, ends, uses) = (None, None, None, Uses::default());
        let different = Self { values, nulls: None, rows: count, order, totals, ends, uses };
        Some(match &self.nulls {
            None => different,
            Some(_) => different.and_null(),
        })
    }

    /// The same with a NULL at the end.
    fn and_null(self) -> Self {
        let rows = self.rows + 1;
        let values = match self.values {
            Values::Text(texts) => Values::Text(texts.iter().chain([Some("")]).collect()),
            Values::Ints(Ints::Packed16 { base, mut distances }) => {
                distances.push(0);
                Values::Ints(Ints::Packed16 { base, distances })
            }
            Values::Ints(Ints::Packed8 { base, mut distances }) => {
                distances.push(0);
                Values::Ints(Ints::Packed8 { base, distances })
            }
            other => other,
        };
        let valid = arrow_buffer::BooleanBuffer::collect_bool(rows, |row| row + 1 < rows);
        Self { values, rows, nulls: Some(arrow_buffer::NullBuffer::new(valid)), ..self }
    }

    /// The same whole numbers, each by as much more, which they have room for; NULL stays. Others stay as they are.
    pub(crate) fn shifted(&self, by: i64) -> Self {
        let mut shifted = Self { ends: None, ..self.clone() };
        let Values::Ints(ints) = &mut shifted.values else { return shifted };
        match ints {
            Ints::Packed8 { base, .. }
            | Ints::Packed16 { base, .. }
            | Ints::Packed32 { base, .. } => {
                *base = base.wrapping_add(by);
            }
            other => {
                let values = (0..self.rows).map(|row| other.get(row).wrapping_add(by));
                *other = Ints::Int64(values.collect());
                shifted.totals = None;
            }
        }
        shifted
    }

    /// Appends the code of each of some rows to `codes`; how many codes there are. Codes tell values apart within
    /// this call; NULL has one, too. Those of a chunk that has [`different`](Self::different) values are their places.
    pub(crate) fn codes(&self, rows: &ChunkRows<'_>, codes: &mut Vec<u32>) -> u32 {
        let start = codes.len();
        let count = match &self.values {
            Values::Codes(Codes { codes: of, texts }) => {
                copy(of, rows, codes, u32::from);
                texts.len() as u32
            }
            Values::Ints(ints) => self.codes_of_ints(ints, rows, codes),
            Values::Text(texts) => numbered(rows.iter().map(|row| texts.value(row)), codes),
            Values::Wide(values) => numbered(rows.iter().map(|row| values[row]), codes),
            Values::Floats(values) => numbered(rows.iter().map(|row| values[row].to_bits()), codes),
        };
        if !self.has_nulls() {
            return count;
        }
        for (row, code) in rows.iter().zip(&mut codes[start..]) {
            if self.is_null(row) {
                *code = count;
            }
        }
        count + 1
    }

    fn codes_of_ints(&self, ints: &Ints, rows: &ChunkRows<'_>, codes: &mut Vec<u32>) -> u32 {
        let near =
            self.ends().map(|(least, greatest)| (least, greatest.wrapping_sub(least) as u64));
        let Some((least, spread)) = near.filter(|(_, spread)| *spread <= SPREAD_MAX) else {
            return numbered(rows.iter().map(|row| ints.get(row)), codes);
        };
        match ints {
            Ints::Packed8 { distances, .. } => copy(distances, rows, codes, u32::from),
            Ints::Packed16 { distances, .. } => copy(distances, rows, codes, u32::from),
            Ints::Packed32 { distances, .. } => copy(distances, rows, codes, |distance| distance),
            Ints::Bits(bits) => codes.extend(rows.iter().map(|row| u32::from(bits.value(row)))),
            // At NULLs there may be anything; those get another code.
            Ints::Int32(_) | Ints::Int64(_) => {
                codes.extend(rows.iter().map(|row| ints.get(row).wrapping_sub(least) as u32));
            }
        }
        spread as u32 + 1
    }

    /// Appends all whole numbers to `out`; false where some have more than 64 bits, and for other values. At NULLs there
    /// is 0.
    pub(crate) fn narrow_numbers(&self, out: &mut Vec<i64>) -> bool {
        for row in 0..self.rows {
            let number = match &self.values {
                _ if self.is_null(row) => 0,
                Values::Ints(ints) => ints.get(row),
                Values::Wide(values) => match i64::try_from(values[row]) {
                    Ok(value) => value,
                    Err(_) => return false,
                },
                Values::Text(_) | Values::Codes(_) | Values::Floats(_) => return false,
            };
            out.push(number);
        }
        true
    }

    /// Appends the whole numbers of some rows to `out`; false where some have more than 64 bits, and for other values.
    /// At NULLs there is anything.
    pub(crate) fn whole_numbers(&self, rows: &ChunkRows<'_>, out: &mut Vec<i64>) -> bool {
        let Values::Ints(ints) = &self.values else { return false };
        ints.copy(rows, out, |value| value);
        true
    }
}

impl Ints {
    /// Appends what `of` makes of the values of some rows; one loop per width.
    pub(crate) fn copy<T>(
        &self,
        rows: &ChunkRows<'_>,
        out: &mut Vec<T>,
        of: impl Fn(i64) -> T + Copy,
    ) {
        match self {
            Self::Packed8 { base, distances } => {
                copy(distances, rows, out, |d| of(base.wrapping_add(i64::from(d))));
            }
            Self::Packed16 { base, distances } => {
                copy(distances, rows, out, |d| of(base.wrapping_add(i64::from(d))));
            }
            Self::Packed32 { base, distances } => {
                copy(distances, rows, out, |d| of(base.wrapping_add(i64::from(d))));
            }
            Self::Bits(bits) => out.extend(rows.iter().map(|row| of(i64::from(bits.value(row))))),
            Self::Int32(values) => copy(values, rows, out, |value| of(i64::from(value))),
            Self::Int64(values) => copy(values, rows, out, of),
        }
    }
}

/// Appends what `of` makes of the values of some rows: a loop over a range or a list.
pub(crate) fn copy<F: Copy, T>(
    from: &[F],
    rows: &ChunkRows<'_>,
    out: &mut Vec<T>,
    of: impl Fn(F) -> T,
) {
    match rows {
        ChunkRows::Range(range) => out.extend(from[range.clone()].iter().map(|value| of(*value))),
        ChunkRows::List(list) => out.extend(list.iter().map(|row| of(from[*row as usize]))),
    }
}

/// Numbers values in the order in which they come first.
fn numbered<T: Eq + Hash>(values: impl Iterator<Item = T>, codes: &mut Vec<u32>) -> u32 {
    let mut known: HashMap<T, u32, RandomState> = HashMap::default();
    for value in values {
        let next = known.len() as u32;
        codes.push(*known.entry(value).or_insert(next));
    }
    known.len() as u32
}
