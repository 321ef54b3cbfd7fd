//! States of groups: what is kept of a measure in each of them.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::{DataType, TimeUnit};
use stoa_error::{Error, Result};

use super::Measure;
use super::local::out_of_range;
use crate::chunk::{Chunk, Values};

/// A measure in each group of a row group.
pub(super) enum LocalStates {
    Counts(Vec<i64>),
    Sums(Vec<i128>),
    Best(LocalBest),
}

/// The best values of groups: where they are in a chunk.
pub(super) struct LocalBest {
    pub(super) chunk: Arc<Chunk>,
    pub(super) places: Vec<Option<u32>>,
}

/// A value that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Number(i128),
    Text(Box<str>),
}

/// A measure in each group.
#[derive(Debug)]
pub(super) enum States {
    Counts(Vec<i64>),
    Sums(Vec<i128>),
    /// The best so far, and whether the greater one is.
    Best(Vec<Option<Kept>>, Ordering),
}

impl States {
    pub(super) fn new(measure: &Measure) -> Self {
        match measure {
            Measure::Rows | Measure::Values(_) => Self::Counts(Vec::new()),
            Measure::Sum(_) => Self::Sums(Vec::new()),
            Measure::Least(_) => Self::Best(Vec::new(), Ordering::Less),
            Measure::Greatest(_) => Self::Best(Vec::new(), Ordering::Greater),
        }
    }

    /// Makes room for so many groups.
    pub(super) fn reserve(&mut self, groups: usize) {
        match self {
            Self::Counts(counts) => counts.resize(groups, 0),
            Self::Sums(sums) => sums.resize(groups, 0),
            Self::Best(best, _) => best.resize(groups, None),
        }
    }

    /// Adds what local groups have to the groups with these numbers.
    ///
    /// # Errors
    /// 22003 for a sum of more than 128 bits.
    pub(super) fn add(&mut self, local: &LocalStates, to: &[u32]) -> Result<()> {
        match (self, local) {
            (Self::Counts(counts), LocalStates::Counts(more)) => {
                to.iter().zip(more).for_each(|(to, more)| counts[*to as usize] += more);
            }
            (Self::Sums(sums), LocalStates::Sums(more)) => {
                for (to, more) in to.iter().zip(more) {
                    let sum = &mut sums[*to as usize];
                    *sum = sum.checked_add(*more).ok_or_else(out_of_range)?;
                }
            }
            (Self::Best(best, wanted), LocalStates::Best(LocalBest { chunk, places })) => {
                for (to, place) in to.iter().zip(places) {
                    let Some(place) = place else { continue };
                    let known = &mut best[*to as usize];
                    if known.as_ref().is_none_or(|known| order(chunk, *place, known) == *wanted) {
                        *known = Some(kept(chunk, *place));
                    }
                }
            }
            _ => return Err(Error::internal("states of different measures meet")),
        }
        Ok(())
    }

    /// As a column of a type.
    ///
    /// # Errors
    /// `Internal` where the type is not one of the measure.
    pub(super) fn array(&self, data_type: &DataType) -> Result<ArrayRef> {
        match self {
            Self::Counts(counts) => array(counts.iter().map(|n| Some((*n).into())), data_type),
            Self::Sums(sums) => array(sums.iter().copied().map(Some), data_type),
            Self::Best(best, _) if *data_type == DataType::Utf8 => {
                let texts = best.iter().map(|kept| match kept {
                    Some(Kept::Text(text)) => Ok(Some(text.as_ref())),
                    None => Ok(None),
                    Some(Kept::Number(_)) => Err(misfit(data_type)),
                });
                Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
            }
            Self::Best(best, _) => {
                let numbers = best.iter().map(|kept| match kept {
                    Some(Kept::Number(number)) => Ok(Some(*number)),
                    None => Ok(None),
                    Some(Kept::Text(_)) => Err(misfit(data_type)),
                });
                array(numbers.collect::<Result<Vec<_>>>()?.into_iter(), data_type)
            }
        }
    }

    /// Memory this takes, about, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Counts(counts) => 8 * counts.capacity(),
            Self::Sums(sums) => 16 * sums.capacity(),
            Self::Best(best, _) => {
                let texts = best.iter().map(|kept| match kept {
                    Some(Kept::Text(text)) => text.len(),
                    _ => 0,
                });
                size_of::<Option<Kept>>() * best.capacity() + texts.sum::<usize>()
            }
        }
    }
}

fn order(chunk: &Chunk, place: u32, known: &Kept) -> Ordering {
    match known {
        Kept::Number(known) => chunk.number(place as usize).cmp(known),
        Kept::Text(known) => chunk.text(place as usize).as_bytes().cmp(known.as_bytes()),
    }
}

fn kept(chunk: &Chunk, place: u32) -> Kept {
    match &chunk.values {
        Values::Text(_) | Values::Codes(_) => Kept::Text(chunk.text(place as usize).into()),
        _ => Kept::Number(chunk.number(place as usize)),
    }
}

fn array(numbers: impl Iterator<Item = Option<i128>>, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Boolean => Arc::new(
            numbers.map(|number| number.map(|number| number != 0)).collect::<BooleanArray>(),
        ),
        DataType::Int8 => Arc::new(narrow::<Int8Type>(numbers, data_type)?),
        DataType::Int16 => Arc::new(narrow::<Int16Type>(numbers, data_type)?),
        DataType::Int32 => Arc::new(narrow::<Int32Type>(numbers, data_type)?),
        DataType::Int64 => Arc::new(narrow::<Int64Type>(numbers, data_type)?),
        DataType::Date32 => Arc::new(narrow::<Date32Type>(numbers, data_type)?),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let times = narrow::<TimestampMicrosecondType>(numbers, data_type)?;
            Arc::new(times.with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(..) => {
            let numbers = narrow::<Decimal128Type>(numbers, data_type)?;
            Arc::new(numbers.with_data_type(data_type.clone()))
        }
        other => return Err(misfit(other)),
    })
}

fn narrow<T>(
    numbers: impl Iterator<Item = Option<i128>>,
    data_type: &DataType,
) -> Result<PrimitiveArray<T>>
where
    T: arrow_array::ArrowPrimitiveType,
    T::Native: TryFrom<i128>,
{
    let native = |number: i128| T::Native::try_from(number).map_err(|_| misfit(data_type));
    numbers.map(|number| number.map(native).transpose()).collect()
}

fn misfit(data_type: &DataType) -> Error {
    Error::internal(format!("a measure does not fit the type {data_type}"))
}
