//! Makes batches, cell by cell or by copying ranges of other batches.

use std::ops::Range;

use arrow_array::{BinaryArray, Int32Array, Int64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use stoa_error::{Error, ErrorKind, Result};

use super::run::Entry;
use super::{BATCH_BYTES, BATCH_CELLS, CellBatch};
use crate::cell::{CellKind, CellRef, FamilyId};

/// Collects cells for a [`CellBatch`].
#[derive(Default)]
pub struct CellBatchBuilder {
    rows: BytesColumn,
    families: Vec<i32>,
    qualifiers: BytesColumn,
    timestamps: Vec<i64>,
    values: BytesColumn,
    kinds: Vec<i32>,
    /// Empty as long as all revisions are the timestamps.
    revisions: Vec<i64>,
    /// Cells and bytes of the last batch: the next one will be alike.
    last: [usize; 4],
}

impl CellBatchBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cells so far.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    /// Bytes of row keys, qualifiers and values so far.
    pub fn data_bytes(&self) -> usize {
        self.rows.data.len() + self.qualifiers.data.len() + self.values.data.len()
    }

    /// Whether the batch should be handed on ([`BATCH_CELLS`], [`BATCH_BYTES`]).
    pub fn is_full(&self) -> bool {
        self.len() >= BATCH_CELLS || self.data_bytes() >= BATCH_BYTES
    }

    /// Adds a cell.
    ///
    /// # Errors
    /// [`Exhausted`](ErrorKind::Exhausted) if keys or values would pass 2 GiB in this batch.
    #[inline]
    pub fn push(&mut self, cell: CellRef<'_>) -> Result<()> {
        self.check_room(cell.row.len(), cell.qualifier.len(), cell.value.len())?;
        self.push_revisions(cell.revision != cell.timestamp, std::iter::once(cell.revision));
        self.rows.push(cell.row);
        self.families.push(i32::from(cell.family));
        self.qualifiers.push(cell.qualifier);
        self.timestamps.push(cell.timestamp);
        self.values.push(cell.value);
        self.kinds.push(cell.kind.code());
        Ok(())
    }

    /// Adds a cell that holds a value.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    #[inline]
    pub fn push_insert(
        &mut self,
        row: &[u8],
        family: FamilyId,
        qualifier: &[u8],
        timestamp: i64,
        value: &[u8],
    ) -> Result<()> {
        self.check_room(row.len(), qualifier.len(), value.len())?;
        self.push_revisions(false, std::iter::once(timestamp));
        self.rows.push(row);
        self.families.push(i32::from(family));
        self.qualifiers.push(qualifier);
        self.timestamps.push(timestamp);
        self.values.push(value);
        self.kinds.push(CellKind::INSERT_CODE);
        Ok(())
    }

    /// Adds cell `index` of another batch.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    #[inline]
    pub fn push_from(&mut self, from: &CellBatch, index: usize) -> Result<()> {
        let (row, qualifier) = (from.rows.value(index), from.qualifiers.value(index));
        let (timestamp, value) = (from.timestamps.value(index), from.values.value(index));
        self.check_room(row.len(), qualifier.len(), value.len())?;
        let revision = from.revisions.as_ref().map_or(timestamp, |array| array.value(index));
        self.push_revisions(revision != timestamp, std::iter::once(revision));
        self.rows.push(row);
        self.families.push(from.families.value(index));
        self.qualifiers.push(qualifier);
        self.timestamps.push(timestamp);
        self.values.push(value);
        self.kinds.push(from.kinds.value(index));
        Ok(())
    }

    /// Adds the cells of `range` of another batch; without their values if `keys_only`.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn append(&mut self, from: &CellBatch, range: Range<usize>, keys_only: bool) -> Result<()> {
        let bytes = |array: &BinaryArray| {
            let offsets = array.value_offsets();
            (offsets[range.end] - offsets[range.start]) as usize
        };
        self.check_room(bytes(&from.rows), bytes(&from.qualifiers), bytes(&from.values))?;
        let revisions = from.revisions.as_ref().unwrap_or(&from.timestamps);
        let revisions = revisions.values()[range.clone()].iter().copied();
        self.push_revisions(from.revisions.is_some(), revisions);
        self.rows.append(&from.rows, range.clone());
        self.families.extend_from_slice(&from.families.values()[range.clone()]);
        self.qualifiers.append(&from.qualifiers, range.clone());
        self.timestamps.extend_from_slice(&from.timestamps.values()[range.clone()]);
        self.kinds.extend_from_slice(&from.kinds.values()[range.clone()]);
        if keys_only {
            self.values.append_empty(range.len());
        } else {
            self.values.append(&from.values, range);
        }
        Ok(())
    }

    /// The cells at these places of `batches` as one batch.
    ///
    /// Column by column: the processor waits for many cells at a time instead of one after the other.
    pub(super) fn gather(batches: &[CellBatch], places: &[Entry]) -> Result<CellBatch> {
        let integers = |of: fn(&CellBatch) -> &Int32Array| -> Int32Array {
            let values: Vec<&[i32]> = batches.iter().map(|b| of(b).values().as_ref()).collect();
            let at = |place: &Entry| values[place.batch as usize][place.index as usize];
            Int32Array::new(places.iter().map(at).collect::<Vec<_>>().into(), None)
        };
        let longs = |values: Vec<&[i64]>| -> Int64Array {
            let at = |place: &Entry| values[place.batch as usize][place.index as usize];
            Int64Array::new(places.iter().map(at).collect::<Vec<_>>().into(), None)
        };
        let revisions = batches
            .iter()
            .any(|batch| batch.revisions.is_some())
            .then(|| longs(batches.iter().map(revisions_of).collect()));
        Ok(CellBatch {
            rows: gather_bytes(batches, places, |batch| &batch.rows)?,
            families: integers(|batch| &batch.families),
            qualifiers: gather_bytes(batches, places, |batch| &batch.qualifiers)?,
            timestamps: longs(batches.iter().map(CellBatch::timestamps).collect()),
            values: gather_bytes(batches, places, |batch| &batch.values)?,
            kinds: integers(|batch| &batch.kinds),
            revisions,
            new_timestamps: false,
        })
    }

    /// The batch; the builder is empty afterwards.
    pub fn finish(&mut self) -> CellBatch {
        let bytes = [&self.rows, &self.qualifiers, &self.values].map(|column| column.data.len());
        let last = [self.len(), bytes[0], bytes[1], bytes[2]];
        let taken = std::mem::replace(self, Self { last, ..Self::default() });
        CellBatch {
            rows: taken.rows.finish(),
            families: Int32Array::new(taken.families.into(), None),
            qualifiers: taken.qualifiers.finish(),
            timestamps: Int64Array::new(taken.timestamps.into(), None),
            values: taken.values.finish(),
            kinds: Int32Array::new(taken.kinds.into(), None),
            revisions: (!taken.revisions.is_empty())
                .then(|| Int64Array::new(taken.revisions.into(), None)),
            new_timestamps: false,
        }
    }

    /// Notes the revisions of the next cells; `own` says that some are not the timestamps.
    #[inline]
    fn push_revisions(&mut self, own: bool, revisions: impl Iterator<Item = i64>) {
        if self.revisions.is_empty() {
            if !own {
                return;
            }
            self.revisions.extend_from_slice(&self.timestamps);
        }
        self.revisions.extend(revisions);
    }

    /// Takes as much memory as the last batch needed, so that it need not grow step by step.
    #[cold]
    fn reserve_as_last(&mut self) {
        let [cells, rows, qualifiers, values] = std::mem::take(&mut self.last);
        self.rows.reserve(cells, rows);
        self.qualifiers.reserve(cells, qualifiers);
        self.values.reserve(cells, values);
        self.families.reserve(cells);
        self.timestamps.reserve(cells);
        self.kinds.reserve(cells);
    }

    fn check_room(&mut self, row: usize, qualifier: usize, value: usize) -> Result<()> {
        if self.last[0] > 0 {
            self.reserve_as_last();
        }
        let fits = self.rows.has_room(row)
            && self.qualifiers.has_room(qualifier)
            && self.values.has_room(value);
        if fits {
            return Ok(());
        }
        Err(too_large())
    }
}

fn revisions_of(batch: &CellBatch) -> &[i64] {
    batch.revisions.as_ref().unwrap_or(&batch.timestamps).values()
}

/// The byte strings at these places of one column.
fn gather_bytes(
    batches: &[CellBatch],
    places: &[Entry],
    of: fn(&CellBatch) -> &BinaryArray,
) -> Result<BinaryArray> {
    let columns: Vec<(&[i32], &[u8])> =
        batches.iter().map(|b| (of(b).value_offsets(), of(b).value_data())).collect();
    let mut offsets = Vec::with_capacity(places.len() + 1);
    offsets.push(0);
    let mut bytes = 0_i64;
    for place in places {
        let (starts, index) = (columns[place.batch as usize].0, place.index as usize);
        bytes += i64::from(starts[index + 1] - starts[index]);
        offsets.push(bytes as i32);
    }
    if bytes > i64::from(i32::MAX) {
        return Err(too_large());
    }
    let mut data = Vec::with_capacity(bytes as usize);
    if bytes > 0 {
        for place in places {
            let ((starts, from), index) = (columns[place.batch as usize], place.index as usize);
            data.extend_from_slice(&from[starts[index] as usize..starts[index + 1] as usize]);
        }
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(BinaryArray::new(offsets, Buffer::from_vec(data), None))
}

fn too_large() -> Error {
    Error::new(ErrorKind::Exhausted, "keys or values of one batch of cells pass 2 GiB")
        .with_hint("split the value over several cells")
}

/// Byte strings one after the other, and where each starts.
struct BytesColumn {
    offsets: Vec<i32>,
    data: Vec<u8>,
}

impl Default for BytesColumn {
    fn default() -> Self {
        Self { offsets: vec![0], data: Vec::new() }
    }
}

impl BytesColumn {
    fn has_room(&self, bytes: usize) -> bool {
        self.data.len().saturating_add(bytes) <= i32::MAX as usize
    }

    fn reserve(&mut self, count: usize, bytes: usize) {
        self.offsets.reserve(count);
        self.data.reserve(bytes);
    }

    fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.offsets.push(self.data.len() as i32);
    }

    fn append(&mut self, from: &BinaryArray, range: Range<usize>) {
        let offsets = &from.value_offsets()[range.start..=range.end];
        let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
        let shift = self.data.len() as i32 - first;
        self.data.extend_from_slice(&from.value_data()[first as usize..last as usize]);
        self.offsets.extend(offsets[1..].iter().map(|offset| offset + shift));
    }

    fn append_empty(&mut self, count: usize) {
        let end = self.data.len() as i32;
        self.offsets.resize(self.offsets.len() + count, end);
    }

    fn finish(self) -> BinaryArray {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        BinaryArray::new(offsets, Buffer::from_vec(self.data), None)
    }
}
