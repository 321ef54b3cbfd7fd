//! Comparing one stripe with what was written.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use stoa_error::Place;

use super::compare_statistics;
use super::tally::Tally;
use crate::bloom::{BloomIndex, hash_bytes};
use crate::compression::inflate_section;
use crate::decoder::{Decoder, Step};
use crate::error::{Error, Result, corrupt};
use crate::limits::Limits;
use crate::message::Budget;
use crate::metadata::FileMetadata;
use crate::options::ReadOptions;
use crate::proto::StreamKind;
use crate::record::{Record, StripeRecord};
use crate::row_index::RowIndex;
use crate::stripe::StripeMetadata;
use crate::value_checksum::{Checksum, Sink, Value, visit};
use crate::writer::children::child_arrays;
use crate::writer::collector::Collector;
use crate::writer::column::logical_nulls;

/// What was read of a stripe.
pub(super) struct Done {
    /// By column: what was seen, and bytes of its streams.
    pub(super) columns: Vec<(Collector, u64)>,
    pub(super) row_groups: u64,
    pub(super) values: u64,
    pub(super) statistics: u64,
}

/// Compares the stripe at `index`, whose bytes are `bytes`.
pub(super) fn compare(
    file: &Arc<FileMetadata>,
    record: &Record,
    index: usize,
    bytes: &Bytes,
) -> Result<Done> {
    let stripe = Stripe::open(file, record, index, bytes)?;
    stripe.compare_copy()?;
    let mut columns: Vec<_> = (0u32..)
        .zip(file.types.types())
        .map(|(column, ty)| (Collector::new(ty.kind, ty.scale), stripe.stream_bytes(column)))
        .collect();
    let (mut values, mut statistics) = (0, 0);
    let groups: Vec<usize> = (0..stripe.groups()).collect();
    stripe.read(&groups, None, &mut |group, tallies| {
        for (column, tally) in (0u32..).zip(tallies) {
            stripe.compare_values(column, group, tally)?;
            statistics += stripe.compare_statistics(column, group, tally)?;
            values += tally.checksum.values + tally.checksum.nulls;
            columns[column as usize].0.merge(&tally.collector);
        }
        Ok(())
    })?;
    stripe.compare_positions(&groups)?;
    let found = file.stripe_statistics(index).unwrap_or_default();
    for (column, (collector, bytes)) in (0u32..).zip(&columns) {
        let expected = collector.statistics(Some(*bytes));
        compare_statistics(&file.types, column, found.get(column as usize).cloned(), &expected)
            .map_err(|e| e.at(file.types.place(column)))?;
        statistics += 1;
    }
    if hash_bytes(bytes) != stripe.record.hash {
        return Err(corrupt("its bytes are not those written"));
    }
    Ok(Done { columns, row_groups: groups.len() as u64, values, statistics })
}

/// A stripe and all its indexes.
struct Stripe<'a> {
    file: &'a Arc<FileMetadata>,
    record: &'a StripeRecord,
    index: usize,
    bytes: &'a Bytes,
    metadata: Arc<StripeMetadata>,
}

impl<'a> Stripe<'a> {
    fn open(
        file: &'a Arc<FileMetadata>,
        record: &'a Record,
        index: usize,
        bytes: &'a Bytes,
    ) -> Result<Self> {
        let stripe = &record.stripes[index];
        let limit = Limits::default().metadata_bytes;
        let mut budget = Budget::new(limit);
        let section = |range: &Range<u64>| {
            let from = stripe.info.offset;
            let section = bytes.slice((range.start - from) as usize..(range.end - from) as usize);
            inflate_section(file.compression, file.block_bytes, &section, limit)
        };
        let footer = section(&stripe.info.footer_range()).map_err(|e| e.at("stripe footer"))?;
        let columns = file.types.len();
        let mut metadata = StripeMetadata::parse(&stripe.info, columns, footer, &mut budget)?;
        for stream in &metadata.footer.clone().streams {
            let column = stream.column;
            let index = |bytes: Result<Bytes>| bytes.map_err(|e| e.at(file.types.place(column)));
            match stream.kind {
                StreamKind::RowIndex => {
                    let parsed = RowIndex::parse(index(section(&stream.range))?, &mut budget);
                    let parsed = parsed.map_err(|e| e.at(file.types.place(column)))?;
                    metadata.row_indexes.insert(column, Arc::new(parsed));
                }
                StreamKind::BloomFilterUtf8 => {
                    let parsed = BloomIndex::parse(index(section(&stream.range))?, &mut budget);
                    metadata.blooms.insert(column, Arc::new(parsed));
                }
                _ => {}
            }
        }
        let this = Self { file, record: stripe, index, bytes, metadata: Arc::new(metadata) };
        this.check_indexes(record)?;
        Ok(this)
    }

    /// Every column has an entry per row group, and a filter per row group if it was to have one.
    fn check_indexes(&self, record: &Record) -> Result<()> {
        if self.file.row_index_stride == 0 {
            return Ok(());
        }
        for column in 0..self.file.types.len() as u32 {
            let entries = self.metadata.row_index(column).map_or(0, RowIndex::len);
            let filters = self.metadata.blooms.get(&column).map_or(0, |bloom| bloom.len());
            let expected = if record.bloom_columns.contains(&column) { self.groups() } else { 0 };
            if entries != self.groups() || filters != expected {
                let groups = self.groups();
                let message = format!(
                    "row index of {entries} and bloom filters of {filters} row groups; written \
                     were {groups}"
                );
                return Err(corrupt(message).at(self.file.types.place(column)));
            }
        }
        Ok(())
    }

    fn groups(&self) -> usize {
        self.record.checksums.first().map_or(0, Vec::len)
    }

    /// Rows of a row group.
    fn group_rows(&self, group: usize) -> u64 {
        match u64::from(self.file.row_index_stride) {
            0 => self.record.info.rows,
            stride => stride.min(self.record.info.rows - group as u64 * stride),
        }
    }

    /// Bytes of the data streams of a column.
    fn stream_bytes(&self, column: u32) -> u64 {
        let streams = self.metadata.footer.streams.iter();
        let data = streams.filter(|stream| {
            let is_index = matches!(
                stream.kind,
                StreamKind::RowIndex | StreamKind::BloomFilter | StreamKind::BloomFilterUtf8
            );
            stream.column == column && !is_index
        });
        data.map(|stream| stream.range.end - stream.range.start).sum()
    }

    /// The copy of the indexes in the footer of the file, if there is one, is like them.
    fn compare_copy(&self) -> Result<()> {
        let Some(copy) = self.file.copied_stripes.get(self.index) else { return Ok(()) };
        let is_same = copy.footer.streams == self.metadata.footer.streams
            && copy.footer.encodings == self.metadata.footer.encodings
            && copy.footer.timezone == self.metadata.footer.timezone
            && copy.row_indexes == self.metadata.row_indexes;
        match is_same {
            true => Ok(()),
            false => Err(corrupt("the copy of its indexes differs from them")),
        }
    }

    /// Reads every second row group from its positions, then the others.
    fn compare_positions(&self, groups: &[usize]) -> Result<()> {
        if groups.len() < 2 {
            return Ok(());
        }
        for first in 0..2 {
            let half: Vec<usize> = groups.iter().copied().skip(first).step_by(2).collect();
            self.read(&half, Some(half.iter().copied().collect()), &mut |group, tallies| {
                (0u32..).zip(tallies).try_for_each(|(column, tally)| {
                    self.compare_values(column, group, tally)
                        .map_err(|e| e.with_hint("read from the positions of the row index"))
                })
            })?;
        }
        Ok(())
    }

    /// Reads row groups and calls `done` with what was seen of all columns in each.
    fn read(
        &self,
        groups: &[usize],
        only: Option<BTreeSet<usize>>,
        done: &mut dyn FnMut(usize, &[Tally]) -> Result<()>,
    ) -> Result<()> {
        let mut options = ReadOptions::default()
            .with_stripes(self.index..self.index + 1)
            .with_align_to_row_groups(true)
            .with_stripe_metadata(self.index, self.metadata.clone());
        if let Some(only) = only {
            options = options.with_row_groups(self.index, only);
        }
        let mut decoder = Decoder::new(self.file.clone(), options)?;
        for group in groups {
            let mut tallies = self.tallies(*group);
            let mut left = self.group_rows(*group);
            while left > 0 {
                let batch = self.next_batch(&mut decoder)?;
                let batch = batch.filter(|batch| batch.num_rows() as u64 <= left);
                let batch = batch.ok_or_else(|| corrupt(format!("row group {group} is short")))?;
                left -= batch.num_rows() as u64;
                self.count(&batch, &mut tallies)?;
            }
            done(*group, &tallies)?;
        }
        match self.next_batch(&mut decoder)? {
            None => Ok(()),
            Some(_) => Err(corrupt("has more rows than were written")),
        }
    }

    fn next_batch(&self, decoder: &mut Decoder) -> Result<Option<RecordBatch>> {
        loop {
            match decoder.next()? {
                Step::Batch(batch) => return Ok(Some(batch)),
                Step::Finished => return Ok(None),
                Step::NeedsData(_) => decoder.push(self.record.info.offset, self.bytes.clone()),
            }
        }
    }

    fn tallies(&self, group: usize) -> Vec<Tally<'_>> {
        let tally = |(column, ty)| {
            let bloom = self.metadata.blooms.get(&column).map(|bloom| (bloom.as_ref(), group));
            Tally::new(ty, bloom)
        };
        (0u32..).zip(self.file.types.types()).map(tally).collect()
    }

    /// Counts the rows of a batch.
    fn count(&self, batch: &RecordBatch, tallies: &mut [Tally]) -> Result<()> {
        (0..batch.num_rows()).for_each(|_| tallies[0].value(Value::Present));
        let children = &self.file.types.types()[0].children;
        children
            .iter()
            .zip(batch.columns())
            .try_for_each(|(column, array)| self.count_column(*column, array, tallies))
    }

    fn count_column(&self, column: u32, array: &dyn Array, tallies: &mut [Tally]) -> Result<()> {
        let nulls = logical_nulls(array);
        let tally = tallies.get_mut(column as usize);
        let tally = tally.ok_or_else(|| Error::internal(format!("no column {column}")))?;
        visit(array, nulls.as_ref(), tally)?;
        let Some(ty) = self.file.types.get(column).filter(|ty| !ty.children.is_empty()) else {
            return Ok(());
        };
        let arrays = child_arrays(array, nulls.as_ref())?;
        ty.children
            .iter()
            .zip(&arrays)
            .try_for_each(|(child, array)| self.count_column(*child, array, tallies))
    }

    fn compare_values(&self, column: u32, group: usize, tally: &Tally) -> Result<()> {
        let written = self.record.checksums.get(column as usize).and_then(|all| all.get(group));
        let (found, place) = (tally.checksum, Place::RowGroup(group));
        let Some(written) = written else {
            return Err(corrupt("was not written").at(place).at(self.file.types.place(column)));
        };
        if found != *written {
            return Err(difference(found, *written).at(place).at(self.file.types.place(column)));
        }
        if tally.not_in_bloom > 0 {
            let message = format!("{} values are not in the bloom filter", tally.not_in_bloom);
            return Err(corrupt(message).at(place).at(self.file.types.place(column)));
        }
        Ok(())
    }

    /// Compares the statistics in the row index, if there is one; returns how many.
    fn compare_statistics(&self, column: u32, group: usize, tally: &Tally) -> Result<u64> {
        let Some(index) = self.metadata.row_index(column) else { return Ok(0) };
        let expected = tally.collector.statistics(None);
        compare_statistics(&self.file.types, column, index.statistics(group), &expected)
            .map_err(|e| e.at(Place::RowGroup(group)).at(self.file.types.place(column)))?;
        Ok(1)
    }
}

fn difference(found: Checksum, written: Checksum) -> Error {
    let counts = |checksum: Checksum| (checksum.values, checksum.nulls);
    if counts(found) == counts(written) {
        return corrupt(format!("{} values are not those written", found.values));
    }
    corrupt(format!(
        "{} values and {} NULLs; written were {} and {}",
        found.values, found.nulls, written.values, written.nulls
    ))
}
