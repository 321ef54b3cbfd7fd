//! What a function over a window has given to the rows of its partition, as memory.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::WindowFrame;

/// Bytes that nobody asks memory for, and the step in which it is asked for.
const STEP_BYTES: usize = 1 << 20;

/// Copies of a value while its column is made: by itself, and in the column.
const COPIES: usize = 2;

/// Values that are there at once, at most, where the engine gives rows out as it computes them.
const STREAMED_ROWS: usize = 1 << 16;

thread_local! {
    static PARTITION_ROWS: Cell<usize> = const { Cell::new(0) };
}

/// Computes functions over a partition of so many rows, which values for all of them are counted for.
pub fn over_partition<T>(rows: usize, compute: impl FnOnce() -> T) -> T {
    let before = PARTITION_ROWS.replace(rows);
    let computed = compute();
    PARTITION_ROWS.set(before);
    computed
}

/// Rows of the partition that is computed on this thread; 0 where that is not known.
pub(super) fn partition_rows() -> usize {
    PARTITION_ROWS.get()
}

/// Memory for values that were given, until their partition is done.
#[derive(Debug)]
pub(super) struct Given {
    memory: MemoryReservation,
    bytes: usize,
    /// The latest values, where earlier ones are gone; `None` where all stay.
    latest: Option<VecDeque<usize>>,
}

impl Given {
    /// For values of a function over `frame`.
    pub(super) fn new(name: &str, memory: &Arc<dyn MemoryPool>, frame: Values) -> Self {
        Self {
            memory: MemoryConsumer::new(name).register(memory),
            bytes: 0,
            latest: (frame == Values::Streamed).then(VecDeque::new),
        }
    }

    /// Counts a value for so many rows.
    ///
    /// # Errors
    /// There is too little memory.
    pub(super) fn count(&mut self, value: &ScalarValue, rows: usize) -> Result<()> {
        self.count_bytes(bytes_of(value).saturating_mul(rows))
    }

    /// Counts values of so many bytes together.
    ///
    /// # Errors
    /// There is too little memory.
    pub(super) fn count_bytes(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes.saturating_mul(COPIES);
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(latest) = &mut self.latest {
            latest.push_back(bytes);
            if latest.len() > STREAMED_ROWS {
                self.bytes -= latest.pop_front().unwrap_or(0).min(self.bytes);
            }
        }
        if self.bytes > STEP_BYTES && self.bytes > self.memory.size() {
            self.memory.try_resize(self.bytes.saturating_add(STEP_BYTES))?;
        }
        Ok(())
    }
}

/// How values of a partition come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Values {
    /// One by one, and given out before the partition has ended.
    Streamed,
    /// Each by itself, when the partition has ended.
    Each,
    /// One for all rows.
    One,
}

impl Values {
    pub(super) fn over(frame: &WindowFrame) -> Self {
        match (frame.start_bound.is_unbounded(), frame.end_bound.is_unbounded()) {
            (true, true) => Self::One,
            (_, true) => Self::Each,
            (_, false) => Self::Streamed,
        }
    }
}

/// Whether values of a type need no counting.
pub(super) fn has_fixed_size(of: &DataType) -> bool {
    matches!(of, DataType::Null | DataType::FixedSizeBinary(_))
        || of.primitive_width().is_some()
        || *of == DataType::Boolean
}

/// Bytes of a value by itself: a list may be a part of a larger column.
pub(super) fn bytes_of(value: &ScalarValue) -> usize {
    let data = match value {
        ScalarValue::List(list) => list.to_data(),
        ScalarValue::LargeList(list) => list.to_data(),
        ScalarValue::FixedSizeList(list) => list.to_data(),
        ScalarValue::Struct(fields) => fields.to_data(),
        ScalarValue::Map(map) => map.to_data(),
        other => return other.size(),
    };
    let bytes = data.get_slice_memory_size().unwrap_or_else(|_| value.size());
    bytes.saturating_add(size_of::<ScalarValue>())
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::common::utils::SingleRowListArrayBuilder;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    #[test]
    fn a_part_of_a_column_counts_by_itself() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![7; 100_000]));
        let list = SingleRowListArrayBuilder::new(column.slice(5, 10)).build_list_scalar();
        assert!(bytes_of(&list) < 1000);
    }

    #[test]
    fn values_that_were_given_out_are_not_counted_for_ever() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(64 << 20));
        let value = ScalarValue::from("x".repeat(100));
        let mut streamed = Given::new("test", &pool, Values::Streamed);
        for _ in 0..10 * STREAMED_ROWS {
            streamed.count(&value, 1).unwrap();
        }
        drop(streamed);
        let mut all = Given::new("test", &pool, Values::Each);
        assert!((0..10 * STREAMED_ROWS).any(|_| all.count(&value, 1).is_err()));
    }

    #[test]
    fn the_partition_is_known_while_it_is_computed() {
        let seen = over_partition(5, || (partition_rows(), over_partition(7, partition_rows)));
        assert_eq!((seen, partition_rows()), ((5, 7), 0));
    }
}
