//! One column of the type tree being written: its PRESENT stream, its own values, its children,
//! and statistics at three levels.
//!
//! In: Arrow arrays whose rows are those of the parent's values that are not NULL. Out: streams,
//! row index and statistics of a stripe, in column-id order.
//! **Invariant:** every column has one mark and one collector per row group of the root.
//! Not here: how values are encoded (`values`), how Arrow nests (`children`).

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::children::child_arrays;
use super::collector::Collector;
use super::options::WriterOptions;
use super::stream::{BooleanStream, Context, EncodedStream};
use super::summary::ColumnMetrics;
use super::values::{self, ValueWriter};
use crate::encode::bloom::BloomBuilder;
use crate::error::Result;
use crate::proto::{self, StreamKind};
use crate::schema::{TypeKind, TypeTree};
use crate::value_checksum::{Checksum, Sink, Value, visit};

/// What a column has seen in the row group at hand.
pub(crate) struct Seen {
    pub(crate) collector: Collector,
    pub(crate) bloom: Option<BloomBuilder>,
}

/// What a stripe is made of, in column-id order.
#[derive(Default)]
pub(crate) struct StripeParts {
    pub(crate) encodings: Vec<proto::ColumnEncoding>,
    pub(crate) indexes: Vec<proto::RowIndex>,
    pub(crate) blooms: Vec<Option<proto::BloomFilterIndex>>,
    pub(crate) streams: Vec<(u32, StreamKind, Vec<u8>)>,
    pub(crate) statistics: Vec<proto::ColumnStatistics>,
    /// By row group, if the file is to be validated.
    pub(crate) checksums: Vec<Vec<Checksum>>,
}

/// Checksums of a column, for the validation of the file.
#[derive(Default)]
struct ColumnCheck {
    current: Checksum,
    /// One per finished row group of the stripe.
    groups: Vec<Checksum>,
    /// Whether timestamps came in nanoseconds.
    is_nano: bool,
}

/// A column being written.
pub(crate) struct Column {
    id: u32,
    is_struct: bool,
    field_id: Option<i32>,
    empty: Collector,
    seen: Seen,
    present: BooleanStream,
    present_marks: Vec<u64>,
    values: Box<dyn ValueWriter>,
    children: Vec<Column>,
    /// One per finished row group of the stripe.
    groups: Vec<Collector>,
    /// If the file is to be validated.
    check: Option<ColumnCheck>,
    /// Of the finished stripes.
    file: Collector,
    file_bytes: u64,
}

impl Column {
    /// The subtree at `id`.
    ///
    /// # Errors
    /// `Unsupported` for a type that can't be written.
    pub(crate) fn new(tree: &TypeTree, id: u32, options: &WriterOptions) -> Result<Self> {
        let Some(ty) = tree.get(id) else {
            return Err(stoa_error::Error::internal(format!("column {id} does not exist")));
        };
        let empty = Collector::new(ty.kind, ty.scale);
        let bloom = options
            .bloom_columns
            .contains(&tree.path(id))
            .then(|| BloomBuilder::new(options.row_index_stride as usize, options.bloom_fpp));
        let children = ty.children.iter().map(|child| Self::new(tree, *child, options));
        Ok(Self {
            id,
            is_struct: ty.kind == TypeKind::Struct,
            field_id: ty.field_id(),
            seen: Seen { collector: empty.clone(), bloom },
            present: BooleanStream::default(),
            present_marks: Vec::new(),
            values: values::writer_of(ty, options)?,
            children: children.collect::<Result<_>>()?,
            groups: Vec::new(),
            check: options.validate.then(ColumnCheck::default),
            file: empty.clone(),
            file_bytes: 0,
            empty,
        })
    }

    /// Adds the rows of `array`.
    pub(crate) fn write(&mut self, array: &dyn Array, cx: &mut Context) -> Result<()> {
        let nulls = logical_nulls(array);
        let nulls = nulls.as_ref();
        match nulls {
            None => self.present.push_repeated(true, array.len()),
            Some(nulls) => self.present.push_buffer(nulls.inner()),
        }
        let null_count = nulls.map_or(0, NullBuffer::null_count);
        self.seen.collector.nulls += null_count as u64;
        self.seen.collector.values += (array.len() - null_count) as u64;
        self.values.write(array, nulls, &mut self.seen, cx)?;
        if let Some(check) = &mut self.check {
            visit(array, nulls, &mut check.current)?;
            check.is_nano |=
                matches!(array.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _));
        }
        if !self.children.is_empty() {
            if nulls.is_some() {
                self.note_absent();
            }
            let arrays = child_arrays(array, nulls)?;
            self.write_children(&arrays, cx)?;
        }
        Ok(())
    }

    /// Notes that fields of a struct, if this is one, are not there for some row.
    fn note_absent(&mut self) {
        if !self.is_struct {
            return;
        }
        for child in &mut self.children {
            child.seen.collector.absent = true;
            child.note_absent();
        }
    }

    /// Adds `rows` rows of the root, which is never NULL.
    pub(crate) fn write_root(
        &mut self,
        rows: usize,
        columns: &[ArrayRef],
        cx: &mut Context,
    ) -> Result<()> {
        self.present.push_repeated(true, rows);
        self.seen.collector.values += rows as u64;
        if let Some(check) = &mut self.check {
            (0..rows).for_each(|_| check.current.value(Value::Present));
        }
        self.write_children(columns, cx)
    }

    fn write_children(&mut self, arrays: &[ArrayRef], cx: &mut Context) -> Result<()> {
        self.children.iter_mut().zip(arrays).try_for_each(|(child, array)| child.write(array, cx))
    }

    /// Notes where the row group that follows starts.
    pub(crate) fn start_row_group(&mut self, cx: &Context) {
        self.present.mark(cx, &mut self.present_marks);
        self.values.mark(cx);
        self.children.iter_mut().for_each(|child| child.start_row_group(cx));
    }

    /// Ends runs (and chunks that hold enough), files the statistics.
    pub(crate) fn end_row_group(&mut self, cx: &mut Context) -> Result<()> {
        self.present.end_row_group(cx)?;
        self.values.end_row_group(cx)?;
        self.groups.push(std::mem::replace(&mut self.seen.collector, self.empty.clone()));
        if let Some(bloom) = &mut self.seen.bloom {
            bloom.end_row_group();
        }
        if let Some(check) = &mut self.check {
            check.groups.push(std::mem::take(&mut check.current));
        }
        self.children.iter_mut().try_for_each(|child| child.end_row_group(cx))
    }

    /// Hands out the stripe and starts over.
    pub(crate) fn end_stripe(&mut self, cx: &mut Context, parts: &mut StripeParts) -> Result<()> {
        let mut stripe = self.empty.clone();
        self.groups.iter().for_each(|group| stripe.merge(group));
        self.file.merge(&stripe);

        let [present] = self.present.take(cx)?;
        let finished = self.values.finish_stripe(cx)?;
        let has_present = stripe.nulls > 0;
        let mut streams = finished.streams;
        if has_present {
            streams.insert(0, (StreamKind::Present, present));
        }
        let bytes: usize = streams.iter().map(|(_, bytes)| bytes.len()).sum();
        self.file_bytes += bytes as u64;
        let streams = streams.into_iter().map(|(kind, bytes)| (self.id, kind, bytes));
        parts.streams.extend(streams);

        let mut encoding = finished.encoding;
        if self.seen.bloom.is_some() {
            // Timestamps in the filter are UTC (ORC-135).
            encoding.bloom_encoding = Some(1);
        }
        parts.encodings.push(encoding);
        parts.statistics.push(stripe.statistics(Some(bytes as u64)).to_proto());
        parts.indexes.push(self.row_index(has_present, &finished.marks));
        parts.blooms.push(self.seen.bloom.as_mut().map(BloomBuilder::end_stripe));
        parts.checksums.extend(self.check.as_mut().map(|check| std::mem::take(&mut check.groups)));
        self.groups.clear();
        self.present_marks.clear();
        self.children.iter_mut().try_for_each(|child| child.end_stripe(cx, parts))
    }

    fn row_index(&self, has_present: bool, marks: &[u64]) -> proto::RowIndex {
        let groups = self.groups.len().max(1);
        let (present, own) = (self.present_marks.len() / groups, marks.len() / groups);
        let entry = self.groups.iter().enumerate().map(|(at, group)| {
            let present_marks = &self.present_marks[at * present..(at + 1) * present];
            let mut positions = if has_present { present_marks.to_vec() } else { Vec::new() };
            positions.extend_from_slice(&marks[at * own..(at + 1) * own]);
            let statistics = Some(group.statistics(None).to_proto());
            proto::RowIndexEntry { positions, statistics }
        });
        proto::RowIndex { entry: entry.collect() }
    }

    /// Appends the statistics of all finished stripes, in column-id order.
    pub(crate) fn file_statistics(&self, out: &mut Vec<proto::ColumnStatistics>) {
        out.push(self.file.statistics(Some(self.file_bytes)).to_proto());
        self.children.iter().for_each(|child| child.file_statistics(out));
    }

    /// Appends the columns whose timestamps came in nanoseconds, some at least.
    pub(crate) fn nano_columns(&self, out: &mut Vec<u32>) {
        out.extend(self.check.as_ref().filter(|check| check.is_nano).map(|_| self.id));
        self.children.iter().for_each(|child| child.nano_columns(out));
    }

    /// Appends the columns with bloom filters.
    pub(crate) fn bloom_columns(&self, out: &mut Vec<u32>) {
        out.extend(self.seen.bloom.as_ref().map(|_| self.id));
        self.children.iter().for_each(|child| child.bloom_columns(out));
    }

    /// Appends what a table's manifest wants to know, in column-id order. `rows` of a column below
    /// nothing but structs are those of the file: it is NULL where one of them is.
    pub(crate) fn metrics(&self, rows: Option<u64>, out: &mut Vec<ColumnMetrics>) {
        let (min, max) = self.file.literals();
        let values = rows.unwrap_or(self.file.values + self.file.nulls);
        out.push(ColumnMetrics {
            column: self.id,
            field_id: self.field_id,
            values,
            nulls: values.saturating_sub(self.file.values),
            bytes: self.file_bytes,
            min,
            max,
            nan_count: self.file.nans(),
        });
        let rows = rows.filter(|_| self.is_struct);
        self.children.iter().for_each(|child| child.metrics(rows, out));
    }

    /// About how many bytes the stripe's data would take if it ended now.
    pub(crate) fn stripe_bytes(&self) -> usize {
        let children: usize = self.children.iter().map(Self::stripe_bytes).sum();
        self.present.len() + self.values.len() + children
    }

    /// Bytes held by streams, dictionaries and bloom filters.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bloom = self.seen.bloom.as_ref().map_or(0, BloomBuilder::memory_bytes);
        let children: usize = self.children.iter().map(Self::memory_bytes).sum();
        let own = self.present.memory_bytes() + self.values.memory_bytes();
        own + bloom + children
    }
}

/// NULLs as ORC has them, `None` if there are none: a dictionary's values may be NULL, too; a
/// union is never NULL itself.
pub(crate) fn logical_nulls(array: &dyn Array) -> Option<NullBuffer> {
    let nulls = match array.data_type() {
        DataType::Union(..) => None,
        _ => array.logical_nulls(),
    };
    nulls.filter(|nulls| nulls.null_count() > 0)
}

/// Whether a bloom filter can be made for a type.
pub(crate) fn can_have_bloom(kind: TypeKind) -> bool {
    !matches!(
        kind,
        TypeKind::Struct
            | TypeKind::List
            | TypeKind::Map
            | TypeKind::Union
            | TypeKind::Boolean
            | TypeKind::Binary
            | TypeKind::Geometry
            | TypeKind::Geography
    )
}
