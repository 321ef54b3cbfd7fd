//! All groups so far: their keys, and the states of measures.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use arrow_select::concat::concat;
use foldhash::fast::RandomState;
use stoa_error::{Error, Result};

use super::local::LocalGroups;
use super::operand::Evaluated;
use super::state::{LocalStates, States};
use super::{Fold, Measure};
use crate::aggregate::push_key;
use crate::chunk::{Chunk, Values};
use crate::rows::ChunkRows;
use crate::scan::BatchColumns;

/// Memory of a key beside its bytes.
const KEY_BYTES: usize = 40;

/// Bytes of texts in one piece of a key, about.
const TEXT_BYTES_MAX: usize = 32 << 20;

/// For each key, a chunk and where in it the value of each group is.
type KeyValues = Vec<(Arc<Chunk>, Vec<u32>)>;

fn values_of(keys: &[Evaluated], local: &LocalGroups, rows: &ChunkRows<'_>) -> KeyValues {
    let values = keys.iter().map(|key| {
        let (chunk, places) = key.values();
        (chunk, places.of(local.first(), rows))
    });
    values.collect()
}

/// A whole number of 64 bits, however it is kept.
fn whole_number(chunk: &Chunk, place: usize) -> Option<i64> {
    match &chunk.values {
        _ if chunk.is_null(place) => None,
        Values::Ints(ints) => Some(ints.get(place)),
        Values::Wide(values) => i64::try_from(values[place]).ok(),
        Values::Text(_) | Values::Codes(_) | Values::Floats(_) => None,
    }
}

/// Groups with their states.
pub(super) struct Groups {
    /// Of one key, which is a whole number of 64 bits.
    by_number: HashMap<i64, u32, RandomState>,
    by_key: HashMap<Box<[u8]>, u32, RandomState>,
    /// For each key, its values in pieces: those of groups that came together.
    keys: Vec<Vec<ArrayRef>>,
    states: Vec<States>,
    len: usize,
    key_bytes: usize,
}

impl Groups {
    pub(super) fn new(measures: &[Measure]) -> Self {
        let states = measures.iter().map(States::new).collect();
        let (by_number, by_key) = (HashMap::default(), HashMap::default());
        Self { by_number, by_key, keys: Vec::new(), states, len: 0, key_bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds the groups of a row group; how many of them were there before.
    pub(super) fn add(
        &mut self,
        local: &LocalGroups,
        keys: &[Evaluated],
        rows: &ChunkRows<'_>,
        fold: &Fold,
        states: Vec<LocalStates>,
    ) -> Result<usize> {
        let values = values_of(keys, local, rows);
        let mut to = Vec::with_capacity(local.len());
        let mut new = Vec::new();
        let mut bytes = Vec::new();
        for group in 0..local.len() {
            let next = (self.len + new.len()) as u32;
            if let [(chunk, places)] = values.as_slice()
                && let Some(number) = whole_number(chunk, places[group] as usize)
            {
                let known = *self.by_number.entry(number).or_insert(next);
                if known == next {
                    self.key_bytes += KEY_BYTES;
                    new.push(group as u32);
                }
                to.push(known);
                continue;
            }
            bytes.clear();
            values
                .iter()
                .for_each(|(chunk, places)| push_key(chunk, places[group] as usize, &mut bytes));
            match self.by_key.get(bytes.as_slice()) {
                Some(known) => to.push(*known),
                None => {
                    self.key_bytes += bytes.len() + KEY_BYTES;
                    self.by_key.insert(bytes.as_slice().into(), next);
                    new.push(group as u32);
                    to.push(next);
                }
            }
        }
        self.len += new.len();
        self.add_keys(&values, &new, fold)?;
        self.add_states(&states, &to)?;
        Ok(local.len() - new.len())
    }

    /// Adds the groups of a row group, none of which is looked for.
    pub(super) fn add_new(
        &mut self,
        local: &LocalGroups,
        keys: &[Evaluated],
        rows: &ChunkRows<'_>,
        fold: &Fold,
        states: Vec<LocalStates>,
    ) -> Result<()> {
        let values = values_of(keys, local, rows);
        let start = self.len as u32;
        self.len += local.len();
        let new: Vec<u32> = (0..local.len() as u32).collect();
        self.add_keys(&values, &new, fold)?;
        let to: Vec<u32> = (start..self.len as u32).collect();
        self.add_states(&states, &to)
    }

    /// Keeps the keys of new groups, of which there are some.
    fn add_keys(
        &mut self,
        values: &[(Arc<Chunk>, Vec<u32>)],
        new: &[u32],
        fold: &Fold,
    ) -> Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        self.keys.resize_with(values.len(), Vec::new);
        for (((chunk, places), pieces), field) in
            values.iter().zip(&mut self.keys).zip(fold.schema.fields())
        {
            let places: Vec<u32> = new.iter().map(|group| places[*group as usize]).collect();
            let schema = Schema::new(vec![field.as_ref().clone().with_nullable(true)]);
            let mut column = BatchColumns::new(Arc::new(schema), places.len())?;
            for places in places.chunk_by({
                let mut bytes = 0;
                move |_, next| {
                    bytes += chunk.text(*next as usize).len();
                    let is_room = bytes < TEXT_BYTES_MAX;
                    bytes *= usize::from(is_room);
                    is_room
                }
            }) {
                column.add_each(std::slice::from_ref(chunk), places)?;
                let array = Arc::clone(column.take()?.column(0));
                self.key_bytes += array.get_array_memory_size();
                pieces.push(array);
            }
        }
        Ok(())
    }

    fn add_states(&mut self, local: &[LocalStates], to: &[u32]) -> Result<()> {
        for (states, local) in self.states.iter_mut().zip(local) {
            states.reserve(self.len);
            states.add(local, to)?;
        }
        Ok(())
    }

    /// Keys and states as a batch; `None` of no group. `shown` tells which measure each of the fold's is.
    ///
    /// # Errors
    /// `Internal` where they do not fit the fold's schema.
    pub(super) fn batch(self, fold: &Fold, shown: &[usize]) -> Result<Option<RecordBatch>> {
        if self.len == 0 {
            return Ok(None);
        }
        let misfit = |e: arrow_schema::ArrowError| {
            Error::internal("groups do not fit the columns of their grouping").with_source(e)
        };
        let mut columns = Vec::with_capacity(fold.schema.fields().len());
        for pieces in &self.keys {
            let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
            columns.push(concat(&pieces).map_err(misfit)?);
        }
        let types = fold.schema.fields().iter().skip(fold.keys.len());
        for (index, field) in shown.iter().zip(types) {
            let states = self.states.get(*index);
            let states = states.ok_or_else(|| Error::internal("a grouping misses a measure"))?;
            columns.push(states.array(field.data_type())?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.len));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&fold.schema), columns, &options);
        batch.map(Some).map_err(misfit)
    }

    /// Memory this takes, about, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.key_bytes + self.states.iter().map(States::memory_bytes).sum::<usize>()
    }
}
