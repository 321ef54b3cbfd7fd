//! LIST, MAP and STRUCT columns.
//!
//! Children of a list or map have values only for parents that are there; children of a struct
//! get the struct's mask. Decoders of nested types are made on the heap: the stack has to hold a
//! hundred levels of them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, new_null_array};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, Fields};
use arrow_select::filter::FilterPredicate;

use super::column::{Column, Opening};
use super::context::Context;
use super::int_rle::IntRle;
use super::plan::{PlanChild, PlanNode};
use super::row_filter::{Kept, Mask, RowFilter};
use super::validity::{Present, spread, valid_count};
use crate::error::{Result, corrupt, exhausted};
use crate::proto::StreamKind;
use crate::stripe::Encoding;

/// Numbers of children per row.
struct Lengths {
    present: Present,
    lengths: IntRle,
    scratch: Vec<i64>,
}

impl Lengths {
    fn open(opening: &Opening, column: u32, encoding: Encoding, cx: &mut Context) -> Result<Self> {
        let lengths = opening.stream(column, StreamKind::Length);
        Ok(Self {
            present: Present::open(opening.present(column), cx)?,
            lengths: IntRle::open(&lengths, encoding.is_v2(), false, cx)?,
            scratch: Vec::new(),
        })
    }

    /// Reads the lengths of `valid` values and returns their sum.
    fn read(&mut self, cx: &mut Context, valid: usize) -> Result<usize> {
        cx.take::<i64>(valid)?;
        self.scratch.clear();
        self.scratch.resize(valid, 0);
        self.lengths.decode(cx, &mut self.scratch)?;
        let mut total = 0i64;
        for length in &self.scratch {
            if *length < 0 {
                return Err(corrupt(format!("a value of {length} children")));
            }
            total = total.saturating_add(*length);
        }
        if total > i64::from(i32::MAX) {
            return Err(exhausted(format!("a batch holds {total} children of one column"))
                .with_hint("read fewer rows per batch"));
        }
        Ok(total as usize)
    }

    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<(OffsetBuffer<i32>, usize, Option<NullBuffer>)> {
        let nulls = self.present.decode(cx, rows, parent)?;
        let total = self.read(cx, valid_count(rows, nulls.as_ref()))?;
        cx.take::<i32>(rows + 1)?;
        let mut offsets = vec![0i32; rows + 1];
        for (offset, length) in offsets[1..].iter_mut().zip(&self.scratch) {
            *offset = *length as i32;
        }
        if let Some(nulls) = &nulls {
            spread(&mut offsets[1..], nulls);
        }
        let mut end = 0;
        for offset in &mut offsets {
            end += *offset;
            *offset = end;
        }
        Ok((OffsetBuffer::new(ScalarBuffer::from(offsets)), total, nulls))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<usize> {
        let valid = self.present.skip(cx, count)?;
        self.read(cx, valid)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.lengths.recycle(cx);
    }
}

/// The decoder of a child that must be there.
fn open_child(
    opening: &mut Opening,
    node: &PlanNode,
    index: usize,
    cx: &mut Context,
) -> Result<Box<dyn Column>> {
    match node.children.get(index) {
        Some(PlanChild::Read(child)) => opening.open(child, cx),
        _ => Err(corrupt(format!("child {index} is not there"))),
    }
}

/// LIST.
pub(crate) struct ListColumn {
    lengths: Lengths,
    item: Box<dyn Column>,
    field: FieldRef,
}

impl ListColumn {
    pub(crate) fn open(
        opening: &mut Opening,
        node: &PlanNode,
        encoding: Encoding,
        cx: &mut Context,
    ) -> Result<Box<Self>> {
        let DataType::List(field) = &node.data_type else {
            return Err(corrupt(format!("a list as {}", node.data_type)));
        };
        Ok(Box::new(Self {
            lengths: Lengths::open(opening, node.column, encoding, cx)?,
            item: open_child(opening, node, 0, cx)?,
            field: field.clone(),
        }))
    }
}

impl Column for ListColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let (offsets, total, nulls) = self.lengths.decode(cx, rows, parent)?;
        let items = self.item.decode(cx, total, None)?;
        let array = ListArray::try_new(self.field.clone(), offsets, items, nulls);
        Ok(Arc::new(array.map_err(|e| corrupt(e.to_string()))?))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let total = self.lengths.skip(cx, count)?;
        self.item.skip(cx, total)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.lengths.recycle(cx);
        self.item.recycle(cx);
    }
}

/// MAP.
pub(crate) struct MapColumn {
    lengths: Lengths,
    key: Box<dyn Column>,
    value: Box<dyn Column>,
    entries: FieldRef,
    fields: Fields,
    sorted: bool,
}

impl MapColumn {
    pub(crate) fn open(
        opening: &mut Opening,
        node: &PlanNode,
        encoding: Encoding,
        cx: &mut Context,
    ) -> Result<Box<Self>> {
        let DataType::Map(entries, sorted) = &node.data_type else {
            return Err(corrupt(format!("a map as {}", node.data_type)));
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(corrupt(format!("a map as {}", node.data_type)));
        };
        Ok(Box::new(Self {
            lengths: Lengths::open(opening, node.column, encoding, cx)?,
            key: open_child(opening, node, 0, cx)?,
            value: open_child(opening, node, 1, cx)?,
            fields: fields.clone(),
            entries: entries.clone(),
            sorted: *sorted,
        }))
    }
}

impl Column for MapColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let (offsets, total, nulls) = self.lengths.decode(cx, rows, parent)?;
        let arrays = vec![self.key.decode(cx, total, None)?, self.value.decode(cx, total, None)?];
        let entries = StructArray::try_new(self.fields.clone(), arrays, None)
            .map_err(|e| corrupt(format!("map entries: {e}")))?;
        let array = MapArray::try_new(self.entries.clone(), offsets, entries, nulls, self.sorted);
        Ok(Arc::new(array.map_err(|e| corrupt(e.to_string()))?))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let total = self.lengths.skip(cx, count)?;
        self.key.skip(cx, total)?;
        self.value.skip(cx, total)
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.lengths.recycle(cx);
        self.key.recycle(cx);
        self.value.recycle(cx);
    }
}

/// A child of a struct: read, or NULL because the file does not have it.
enum Child {
    Read(Box<dyn Column>),
    Missing(DataType),
}

impl Child {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        match self {
            Self::Read(column) => column.decode(cx, rows, parent),
            Self::Missing(data_type) => {
                cx.take::<u64>(rows)?;
                Ok(new_null_array(data_type, rows))
            }
        }
    }

    fn decode_to_filter(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        match self {
            Self::Read(column) => column.decode_to_filter(cx, rows, parent),
            Self::Missing(_) => self.decode(cx, rows, parent),
        }
    }

    fn finished(&self, cx: &mut Context, kept: ArrayRef) -> Result<ArrayRef> {
        match self {
            Self::Read(column) => column.finished(cx, kept),
            Self::Missing(_) => Ok(kept),
        }
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        match self {
            Self::Read(column) if count > 0 => column.skip(cx, count),
            _ => Ok(()),
        }
    }

    fn recycle(&mut self, cx: &mut Context) {
        if let Self::Read(column) = self {
            column.recycle(cx);
        }
    }
}

/// STRUCT, also the root.
pub(crate) struct StructColumn {
    present: Present,
    children: Vec<Child>,
    fields: Fields,
}

impl StructColumn {
    pub(crate) fn open(
        opening: &mut Opening,
        node: &PlanNode,
        cx: &mut Context,
    ) -> Result<Box<Self>> {
        let DataType::Struct(fields) = &node.data_type else {
            return Err(corrupt(format!("a struct as {}", node.data_type)));
        };
        let mut children = Vec::with_capacity(node.children.len());
        for child in &node.children {
            children.push(match child {
                PlanChild::Read(child) => Child::Read(opening.open(child, cx)?),
                PlanChild::Missing(data_type) => Child::Missing(data_type.clone()),
            });
        }
        let present = Present::open(opening.present(node.column), cx)?;
        Ok(Box::new(Self { present, children, fields: fields.clone() }))
    }

    /// Decodes the children, and the struct's own mask.
    pub(crate) fn decode_children(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<(Vec<ArrayRef>, Option<NullBuffer>)> {
        let nulls = self.present.decode(cx, rows, parent)?;
        let children = self.children.iter_mut();
        let arrays = children.map(|child| child.decode(cx, rows, nulls.as_ref()));
        Ok((arrays.collect::<Result<_>>()?, nulls))
    }

    /// Decodes those of the next `rows` rows of a root that `filter` keeps: the columns it tests first, as far as needed to
    /// know that no row is kept; of the others only what lies between the first and the last one. `None` if it keeps none.
    pub(crate) fn decode_kept(
        &mut self,
        cx: &mut Context,
        rows: usize,
        filter: &RowFilter,
    ) -> Result<Option<(Vec<ArrayRef>, usize)>> {
        let nulls = self.present.decode(cx, rows, None)?;
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; self.children.len()];
        let mut mask = Mask::All;
        for part in filter.parts() {
            for index in part.columns() {
                if let (Some(child), Some(array @ None)) =
                    (self.children.get_mut(index), arrays.get_mut(index))
                {
                    *array = Some(child.decode_to_filter(cx, rows, nulls.as_ref())?);
                }
            }
            mask = mask.and(part.evaluate(&arrays));
            if mask.is_none() {
                break;
            }
        }
        let Kept { span, filter } = mask.kept(rows);
        let valid = |range: Range<usize>| {
            let nulls = nulls.as_ref().map(|nulls| nulls.slice(range.start, range.len()));
            (valid_count(range.len(), nulls.as_ref()), nulls)
        };
        let (before, _) = valid(0..span.start);
        let (_, nulls_of_span) = valid(span.clone());
        let (after, _) = valid(span.end..rows);
        let kept = filter.as_ref().map_or(span.len(), FilterPredicate::count);
        let mut decoded = Vec::with_capacity(arrays.len());
        for (child, array) in self.children.iter_mut().zip(arrays) {
            let array = match array {
                Some(array) => array.slice(span.start, span.len()),
                None => {
                    child.skip(cx, before)?;
                    let array = match &filter {
                        Some(_) => {
                            child.decode_to_filter(cx, span.len(), nulls_of_span.as_ref())?
                        }
                        None => child.decode(cx, span.len(), nulls_of_span.as_ref())?,
                    };
                    child.skip(cx, after)?;
                    array
                }
            };
            let array = match &filter {
                Some(filter) => filter.filter(&array).map_err(|e| corrupt(e.to_string()))?,
                None => array,
            };
            decoded.push(child.finished(cx, array)?);
        }
        Ok((kept > 0).then_some((decoded, kept)))
    }
}

impl Column for StructColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let (arrays, nulls) = self.decode_children(cx, rows, parent)?;
        if arrays.is_empty() {
            return Ok(Arc::new(StructArray::new_empty_fields(rows, nulls)));
        }
        debug_assert!(arrays.iter().all(|array| array.len() == rows));
        let array = StructArray::try_new(self.fields.clone(), arrays, nulls);
        Ok(Arc::new(array.map_err(|e| corrupt(e.to_string()))?))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        self.children.iter_mut().try_for_each(|child| child.skip(cx, valid))
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.children.iter_mut().for_each(|child| child.recycle(cx));
    }
}
