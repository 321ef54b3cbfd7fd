//! Columns that count as memory for as long as anybody has them.
//!
//! In: a column and what was reserved for it. Out: the same column, whose largest buffer owns the
//! reservation: when the last who shares it is gone, it is given back.

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use bytes::Bytes;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// A buffer, and what was reserved for it.
struct Held {
    buffer: Buffer,
    _memory: MemoryReservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_slice()
    }
}

/// `array`, which owns `memory`.
pub(super) fn held(array: ArrayRef, memory: MemoryReservation) -> Result<ArrayRef> {
    Ok(make_array(attached(array.to_data(), memory)?))
}

fn attached(data: ArrayData, memory: MemoryReservation) -> Result<ArrayData> {
    let own = data.buffers().iter().map(Buffer::len).enumerate().max_by_key(|(_, bytes)| *bytes);
    let children = data.child_data().iter().map(ArrayData::get_array_memory_size).enumerate();
    let child = children.max_by_key(|(_, bytes)| *bytes);
    match (own, child) {
        (own, Some((index, bytes))) if own.is_none_or(|(_, own)| own < bytes) => {
            let mut children = data.child_data().to_vec();
            let child = children.swap_remove(index);
            // The last one has its place now.
            children.push(attached(child, memory)?);
            let last = children.len() - 1;
            children.swap(index, last);
            Ok(data.into_builder().child_data(children).build()?)
        }
        (Some((index, bytes)), _) if bytes > 0 => {
            let mut buffers = data.buffers().to_vec();
            let buffer = buffers.swap_remove(index);
            buffers.push(Buffer::from(Bytes::from_owner(Held { buffer, _memory: memory })));
            let last = buffers.len() - 1;
            buffers.swap(index, last);
            Ok(data.into_builder().buffers(buffers).build()?)
        }
        // There is nothing to hold.
        _ => Ok(data),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ListArray, StringArray};
    use arrow::datatypes::Int64Type;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};

    use super::*;

    #[test]
    fn memory_is_given_back_with_the_last_who_has_it() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let lists = [Some(vec![Some(1), None]), None, Some(vec![Some(5)])];
        let arrays: [ArrayRef; 3] = [
            Arc::new(StringArray::from(vec![Some("ab"), None, Some("")])),
            Arc::new(StringArray::from(vec!["some", "longer", "texts", "than", "offsets", "are"])),
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
        ];
        for array in arrays {
            let memory = MemoryConsumer::new("test").register(&pool);
            memory.try_grow(700).unwrap();
            let counted = held(Arc::clone(&array), memory).unwrap();
            assert_eq!(&counted, &array);
            let part = counted.slice(0, 1);
            drop(counted);
            assert_eq!(pool.reserved(), 700, "a part holds all of it");
            drop(part);
            assert_eq!(pool.reserved(), 0);
        }
        let empty: ArrayRef = Arc::new(StringArray::new_null(0));
        let memory = MemoryConsumer::new("test").register(&pool);
        memory.try_grow(700).unwrap();
        drop(held(empty, memory).unwrap());
        assert_eq!(pool.reserved(), 0);
    }
}
