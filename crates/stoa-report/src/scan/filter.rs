//! Which rows of a row group a scan keeps, judged on values as chunks keep them.
//!
//! A byte per row says whether it is kept: loops over packed values and such bytes are what the compiler turns into
//! vector instructions. **Invariant:** a row is left out only where the filter is not true of it.

use std::sync::Arc;

use super::members::Members;
use crate::chunk::{Chunk, Ints, Values};
use crate::report::{Condition, Test};
use crate::rows::Selection;
use crate::select::holds;
use crate::zones::Zone;

/// Rows of which a scan keeps those for which this may be true. NULL meets no condition but `IsNull`.
#[derive(Clone, Debug, PartialEq)]
pub enum ScanFilter {
    /// All of these hold; without any, every row is kept.
    All(Vec<ScanFilter>),
    /// One of these holds; without any, no row is kept.
    Any(Vec<ScanFilter>),
    /// A condition on a column, by index.
    Test(Condition),
    /// A column, by index, whose whole numbers (unscaled ones of decimals) are among many.
    Member(usize, Arc<Members>),
}

impl ScanFilter {
    /// The same without what says nothing.
    pub(crate) fn simplified(self) -> Self {
        let Self::All(parts) = self else { return self };
        let mut left: Vec<Self> = Vec::new();
        for part in parts.into_iter().map(Self::simplified) {
            match part {
                Self::All(parts) => left.extend(parts),
                other => left.push(other),
            }
        }
        Self::All(left)
    }

    /// Indexes of the columns judged, ascending.
    pub(crate) fn columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        self.add_columns(&mut columns);
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    fn add_columns(&self, columns: &mut Vec<usize>) {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|part| part.add_columns(columns));
            }
            Self::Test(condition) => columns.push(condition.column),
            Self::Member(column, _) => columns.push(*column),
        }
    }

    /// Whether rows may be kept of which `zone` tells the bounds, by column.
    pub(crate) fn may_match<'a>(&self, zone: &impl Fn(usize) -> Option<&'a Zone>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.may_match(zone)),
            Self::Any(parts) => parts.iter().any(|part| part.may_match(zone)),
            Self::Test(Condition { column, test }) => {
                zone(*column).is_none_or(|zone| zone.may_match(test))
            }
            Self::Member(column, members) => {
                let (least, greatest) = members.ends();
                let within = Test::Between(least.into(), greatest.into());
                zone(*column).is_none_or(|zone| zone.may_match(&within))
            }
        }
    }

    /// Puts the rows that are kept, of so many, into `selection`. `chunk` gives the columns that are judged.
    pub(crate) fn select<'a>(
        &self,
        chunk: &impl Fn(usize) -> Option<&'a Arc<Chunk>>,
        rows: usize,
        masks: &mut Masks,
        selection: &mut Selection,
    ) {
        if *self == Self::All(Vec::new()) {
            (selection.is_list, selection.range) = (false, 0..rows);
            return;
        }
        let mut mask = masks.take(rows);
        self.narrow(chunk, &mut mask, masks);
        list(&mask, selection);
        masks.0.push(mask);
    }

    /// Takes the rows out of `mask` that are not kept.
    fn narrow<'a>(
        &self,
        chunk: &impl Fn(usize) -> Option<&'a Arc<Chunk>>,
        mask: &mut Vec<u8>,
        masks: &mut Masks,
    ) {
        match self {
            Self::All(parts) => parts.iter().for_each(|part| part.narrow(chunk, mask, masks)),
            Self::Any(parts) => {
                let mut any = masks.take(mask.len());
                any.fill(0);
                for part in parts {
                    let mut one = masks.take(mask.len());
                    one.copy_from_slice(mask);
                    part.narrow(chunk, &mut one, masks);
                    any.iter_mut().zip(&one).for_each(|(any, one)| *any |= one);
                    masks.0.push(one);
                }
                mask.copy_from_slice(&any);
                masks.0.push(any);
            }
            Self::Test(Condition { column, test }) => {
                if let Some(chunk) = chunk(*column) {
                    narrow(test, chunk, mask);
                }
            }
            Self::Member(column, members) => {
                if let Some(chunk) = chunk(*column) {
                    members_only(members, chunk, mask);
                }
            }
        }
    }
}

/// Masks that are used again.
#[derive(Debug, Default)]
pub(crate) struct Masks(Vec<Vec<u8>>);

impl Masks {
    /// A mask that keeps all of so many rows.
    fn take(&mut self, rows: usize) -> Vec<u8> {
        let mut mask = self.0.pop().unwrap_or_default();
        mask.clear();
        mask.resize(rows, 1);
        mask
    }
}

/// Values that are looked for in all rows, one after the other; of more, each row is looked up.
const FEW_VALUES: usize = 8;

/// Takes the rows out of `mask` that do not meet a test.
fn narrow(test: &Test, chunk: &Chunk, mask: &mut [u8]) {
    match (&chunk.values, test) {
        // Nothing is known of what floating point numbers meet.
        (Values::Floats(_), Test::IsNull | Test::IsNotNull) => by_row(test, chunk, mask),
        (Values::Floats(_), _) => {}
        (Values::Ints(ints), Test::Between(low, high)) => {
            between(*low, *high, ints, mask);
            without_nulls(chunk, mask);
        }
        (Values::Ints(ints), Test::NotEqual(value)) => {
            let mut equal = vec![1; mask.len()];
            between(*value, *value, ints, &mut equal);
            mask.iter_mut().zip(&equal).for_each(|(kept, equal)| *kept &= 1 - equal);
            without_nulls(chunk, mask);
        }
        (Values::Ints(ints), Test::OneOf(values)) if values.len() <= FEW_VALUES => {
            let mut any = vec![0; mask.len()];
            for value in values {
                let mut equal = vec![1; mask.len()];
                between(*value, *value, ints, &mut equal);
                any.iter_mut().zip(&equal).for_each(|(any, equal)| *any |= equal);
            }
            mask.iter_mut().zip(&any).for_each(|(kept, any)| *kept &= any);
            without_nulls(chunk, mask);
        }
        (Values::Codes(codes), test) if !matches!(test, Test::IsNull) => {
            let mut meets = [0; 1 << 8];
            for (text, meets) in codes.texts.iter().zip(&mut meets) {
                *meets = u8::from(text.is_some_and(|text| test.holds_for_text(text)));
            }
            mask.iter_mut().zip(&codes.codes).for_each(|(m, code)| *m &= meets[usize::from(*code)]);
            without_nulls(chunk, mask);
        }
        _ => by_row(test, chunk, mask),
    }
}

/// Takes the rows out of `mask` whose numbers are not among some.
fn members_only(members: &Members, chunk: &Chunk, mask: &mut [u8]) {
    macro_rules! packed {
        ($base:expr, $distances:expr) => {
            for (kept, distance) in mask.iter_mut().zip($distances) {
                *kept &= u8::from(members.has($base.wrapping_add(i64::from(*distance))));
            }
        };
    }
    match &chunk.values {
        Values::Ints(Ints::Packed8 { base, distances }) => packed!(base, distances),
        Values::Ints(Ints::Packed16 { base, distances }) => packed!(base, distances),
        Values::Ints(Ints::Packed32 { base, distances }) => packed!(base, distances),
        Values::Ints(ints) => {
            let kept = mask.iter_mut().enumerate();
            kept.for_each(|(row, kept)| *kept &= u8::from(members.has(ints.get(row))));
        }
        Values::Wide(values) => {
            let has = |value: &i128| i64::try_from(*value).is_ok_and(|value| members.has(value));
            mask.iter_mut().zip(values).for_each(|(kept, value)| *kept &= u8::from(has(value)));
        }
        Values::Text(_) | Values::Codes(_) | Values::Floats(_) => return,
    }
    without_nulls(chunk, mask);
}

fn by_row(test: &Test, chunk: &Chunk, mask: &mut [u8]) {
    for (row, kept) in mask.iter_mut().enumerate() {
        if *kept != 0 && !holds(test, None, chunk, row) {
            *kept = 0;
        }
    }
}

fn without_nulls(chunk: &Chunk, mask: &mut [u8]) {
    if chunk.has_nulls() {
        mask.iter_mut().enumerate().for_each(|(row, kept)| *kept &= u8::from(!chunk.is_null(row)));
    }
}

/// One loop per width.
fn between(low: i128, high: i128, ints: &Ints, mask: &mut [u8]) {
    /// The part of `low..=high` that distances of a type reach.
    fn reach<T: TryFrom<i128>>(low: i128, high: i128, base: i64, greatest: i128) -> Option<(T, T)> {
        let base = i128::from(base);
        let low = low.saturating_sub(base).max(0);
        let high = high.saturating_sub(base).min(greatest);
        if low > high {
            return None;
        }
        Some((T::try_from(low).ok()?, T::try_from(high).ok()?))
    }
    macro_rules! unsigned {
        ($base:expr, $distances:expr, $of:ty) => {
            match reach::<$of>(low, high, *$base, <$of>::MAX.into()) {
                Some((0, <$of>::MAX)) => {}
                Some((low, high)) => {
                    let span = high - low;
                    for (kept, distance) in mask.iter_mut().zip($distances) {
                        *kept &= u8::from(distance.wrapping_sub(low) <= span);
                    }
                }
                None => mask.fill(0),
            }
        };
    }
    let whole = |value: i64| u8::from(low <= i128::from(value) && i128::from(value) <= high);
    match ints {
        Ints::Packed8 { base, distances } => unsigned!(base, distances, u8),
        Ints::Packed16 { base, distances } => unsigned!(base, distances, u16),
        Ints::Packed32 { base, distances } => unsigned!(base, distances, u32),
        Ints::Bits(bits) => {
            let of = [whole(0), whole(1)];
            mask.iter_mut().zip(bits).for_each(|(kept, bit)| *kept &= of[usize::from(bit)]);
        }
        Ints::Int32(values) => {
            let ends = (low.max(i32::MIN.into()), high.min(i32::MAX.into()));
            match (i32::try_from(ends.0), i32::try_from(ends.1)) {
                (Ok(low), Ok(high)) => {
                    let kept = mask.iter_mut().zip(values);
                    kept.for_each(|(kept, value)| {
                        *kept &= u8::from(low <= *value && *value <= high)
                    });
                }
                _ => mask.fill(0),
            }
        }
        Ints::Int64(values) => {
            let ends = (low.max(i64::MIN.into()), high.min(i64::MAX.into()));
            match (i64::try_from(ends.0), i64::try_from(ends.1)) {
                (Ok(low), Ok(high)) => {
                    let kept = mask.iter_mut().zip(values);
                    kept.for_each(|(kept, value)| {
                        *kept &= u8::from(low <= *value && *value <= high)
                    });
                }
                _ => mask.fill(0),
            }
        }
    }
}

/// Puts the rows that `mask` keeps into `selection`.
fn list(mask: &[u8], selection: &mut Selection) {
    let kept: usize = mask.iter().map(|kept| usize::from(*kept)).sum();
    (selection.is_list, selection.range) = (kept < mask.len(), 0..mask.len());
    selection.list.clear();
    if !selection.is_list || kept == 0 {
        return;
    }
    selection.list.reserve(kept);
    // Most words are zero where few rows are kept.
    let (words, rest) = mask.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let mut left = u64::from_le_bytes(*word);
        while left != 0 {
            selection.list.push((8 * at) as u32 + left.trailing_zeros() / 8);
            left &= left - 1;
        }
    }
    let start = 8 * words.len();
    let kept = rest.iter().enumerate().filter(|(_, kept)| **kept != 0);
    selection.list.extend(kept.map(|(at, _)| (start + at) as u32));
}
