//! UNION columns, as dense Arrow unions.
//!
//! Arrow unions have no validity: a NULL union becomes a NULL of the first variant. To tell it from a
//! union that holds a NULL, it is in a place of its own: see [`null_union_slot`].

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UnionArray, new_null_array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, UnionFields};

use super::byte_rle::ByteRle;
use super::column::{Column, Opening};
use super::context::Context;
use super::plan::{PlanChild, PlanNode};
use super::validity::{Present, valid_count};
use crate::error::{Result, corrupt};
use crate::proto::StreamKind;

/// The value of the first variant that stands for NULL unions in an array that was read from a file;
/// `None` if there are no NULL unions in it. `array` must be whole, not a slice.
pub fn null_union_slot(array: &UnionArray) -> Option<usize> {
    let values = array.child(0);
    let (slot, before) = (values.len().checked_sub(1)?, values.len().checked_sub(2)?);
    // No row refers to the value before it.
    let refers = |row: usize| array.type_id(row) == 0 && array.value_offset(row) == before;
    (values.is_null(slot) && !(0..array.len()).any(refers)).then_some(slot)
}

/// UNION.
pub(crate) struct UnionColumn {
    present: Present,
    tags: ByteRle,
    children: Vec<Box<dyn Column>>,
    fields: UnionFields,
}

impl UnionColumn {
    pub(crate) fn open(
        opening: &mut Opening,
        node: &PlanNode,
        cx: &mut Context,
    ) -> Result<Box<Self>> {
        let DataType::Union(fields, _) = &node.data_type else {
            return Err(corrupt(format!("a union as {}", node.data_type)));
        };
        let mut children = Vec::with_capacity(node.children.len());
        for child in &node.children {
            match child {
                PlanChild::Read(child) => children.push(opening.open(child, cx)?),
                PlanChild::Missing(_) => return Err(corrupt("a variant is not there")),
            }
        }
        Ok(Box::new(Self {
            present: Present::open(opening.present(node.column), cx)?,
            tags: ByteRle::open(&opening.stream(node.column, StreamKind::Data), cx)?,
            children,
            fields: fields.clone(),
        }))
    }

    /// Reads tags and counts the values of each variant.
    fn read_tags(&mut self, cx: &mut Context, valid: usize) -> Result<(Vec<u8>, Vec<usize>)> {
        cx.take::<u8>(valid)?;
        let mut tags = vec![0u8; valid];
        self.tags.decode(cx, &mut tags)?;
        let mut counts = vec![0usize; self.children.len()];
        for tag in &tags {
            match counts.get_mut(usize::from(*tag)) {
                Some(count) => *count += 1,
                None => {
                    let variants = self.children.len();
                    return Err(corrupt(format!("tag {tag} of a union of {variants} variants")));
                }
            }
        }
        Ok((tags, counts))
    }
}

impl Column for UnionColumn {
    fn decode(
        &mut self,
        cx: &mut Context,
        rows: usize,
        parent: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let nulls = self.present.decode(cx, rows, parent)?;
        let (tags, counts) = self.read_tags(cx, valid_count(rows, nulls.as_ref()))?;
        let mut arrays = Vec::with_capacity(counts.len());
        for (child, count) in self.children.iter_mut().zip(&counts) {
            arrays.push(child.decode(cx, *count, None)?);
        }
        cx.take::<[u8; 5]>(rows)?;
        let mut type_ids = vec![0i8; rows];
        let mut offsets = vec![0i32; rows];
        let mut next = vec![0i32; counts.len()];
        let mut put = |row: usize, tag: u8| {
            let at = &mut next[usize::from(tag)];
            (type_ids[row], offsets[row]) = (tag as i8, *at);
            *at += 1;
        };
        match &nulls {
            None => tags.iter().enumerate().for_each(|(row, tag)| put(row, *tag)),
            Some(nulls) => {
                nulls.inner().set_indices().zip(&tags).for_each(|(row, tag)| put(row, *tag));
                // The last of two more NULLs behind the values of the first variant stands for all.
                let null = new_null_array(arrays[0].data_type(), 2);
                let at = arrays[0].len() as i32 + 1;
                arrays[0] = arrow_select::concat::concat(&[arrays[0].as_ref(), null.as_ref()])
                    .map_err(|e| corrupt(e.to_string()))?;
                for row in (0..rows).filter(|row| nulls.is_null(*row)) {
                    offsets[row] = at;
                }
            }
        }
        let array = UnionArray::try_new(
            self.fields.clone(),
            ScalarBuffer::from(type_ids),
            Some(ScalarBuffer::from(offsets)),
            arrays,
        );
        Ok(Arc::new(array.map_err(|e| corrupt(e.to_string()))?))
    }

    fn skip(&mut self, cx: &mut Context, count: usize) -> Result<()> {
        let valid = self.present.skip(cx, count)?;
        let (_, counts) = self.read_tags(cx, valid)?;
        for (child, count) in self.children.iter_mut().zip(counts) {
            child.skip(cx, count)?;
        }
        Ok(())
    }

    fn recycle(&mut self, cx: &mut Context) {
        self.present.recycle(cx);
        self.tags.recycle(cx);
        self.children.iter_mut().for_each(|child| child.recycle(cx));
    }
}
