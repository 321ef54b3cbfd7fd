//! Splitting a batch by partition value.

use std::collections::HashMap;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_ord::partition::partition;
use arrow_select::take::take_record_batch;
use stoa_error::{Error, Result};
use stoa_orc::Literal;

use crate::transform::literal_at;

/// Partition values, compared bit by bit (so that NaN is equal to itself).
#[derive(Clone, Debug, Default)]
pub(super) struct PartitionKey {
    values: Vec<Option<Literal>>,
    /// The values as bytes, for comparing and hashing.
    bytes: Vec<u8>,
}

impl PartitionKey {
    fn at(columns: &[ArrayRef], row: usize) -> Result<Self> {
        let values =
            columns.iter().map(|column| literal_at(column, row)).collect::<Result<Vec<_>>>()?;
        let mut bytes = Vec::with_capacity(values.len() * 9);
        for value in &values {
            encode(value.as_ref(), &mut bytes);
        }
        Ok(Self { values, bytes })
    }

    pub(super) fn values(&self) -> &[Option<Literal>] {
        &self.values
    }
}

impl PartialEq for PartitionKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

/// The rows of `batch` by partition value; inside a partition the order of rows stays. Runs of
/// equal values are cut out without copying; only a batch of many short runs is gathered.
pub(super) fn split(
    batch: &RecordBatch,
    columns: &[ArrayRef],
) -> Result<Vec<(PartitionKey, RecordBatch)>> {
    let failed =
        |source| Error::internal("cannot split rows by partition value").with_source(source);
    let runs = partition(columns).map_err(failed)?.ranges();
    let mut parts: Vec<(PartitionKey, Vec<std::ops::Range<usize>>)> = Vec::new();
    let mut index: HashMap<Vec<u8>, usize> = HashMap::new();
    for run in runs {
        let key = PartitionKey::at(columns, run.start)?;
        match index.get(&key.bytes) {
            Some(part) => parts[*part].1.push(run),
            None => {
                index.insert(key.bytes.clone(), parts.len());
                parts.push((key, vec![run]));
            }
        }
    }
    parts
        .into_iter()
        .map(|(key, runs)| match runs.as_slice() {
            [run] => Ok((key, batch.slice(run.start, run.len()))),
            runs => {
                let rows: UInt32Array = runs.iter().cloned().flatten().map(|r| r as u32).collect();
                Ok((key, take_record_batch(batch, &rows).map_err(failed)?))
            }
        })
        .collect()
}

/// Appends bytes that differ where values differ.
fn encode(value: Option<&Literal>, bytes: &mut Vec<u8>) {
    let mut sized = |tag: u8, content: &[u8]| {
        bytes.push(tag);
        bytes.extend((content.len() as u64).to_le_bytes());
        bytes.extend(content);
    };
    match value {
        None => sized(0, &[]),
        Some(Literal::Boolean(value)) => sized(1, &[u8::from(*value)]),
        Some(Literal::Int(value)) => sized(2, &value.to_le_bytes()),
        Some(Literal::Float(value)) => sized(3, &value.to_bits().to_le_bytes()),
        Some(Literal::Decimal(value, _)) => sized(4, &value.to_le_bytes()),
        Some(Literal::String(value)) => sized(5, value.as_bytes()),
        Some(Literal::Binary(value)) => sized(6, value),
        Some(Literal::Date(value)) => sized(7, &value.to_le_bytes()),
        Some(Literal::TimestampMicros(value)) => sized(8, &value.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{Int32Array, StringArray};

    use super::*;

    #[test]
    fn rows_keep_their_order_inside_a_partition() {
        let keys: ArrayRef = Arc::new(StringArray::from(vec![
            Some("a"),
            Some("a"),
            None,
            Some("b"),
            Some("a"),
            None,
        ]));
        let rows: ArrayRef = Arc::new(Int32Array::from(vec![0, 1, 2, 3, 4, 5]));
        let batch = RecordBatch::try_from_iter([("k", keys.clone()), ("r", rows)]).unwrap();
        let parts = split(&batch, &[keys]).unwrap();
        let found: Vec<(Option<Literal>, Vec<i32>)> = parts
            .into_iter()
            .map(|(key, part)| {
                let rows = part.column(1).as_primitive::<Int32Type>().values().to_vec();
                (key.values()[0].clone(), rows)
            })
            .collect();
        let text = |text: &str| Some(Literal::String(text.to_owned()));
        assert_eq!(found, [(text("a"), vec![0, 1, 4]), (None, vec![2, 5]), (text("b"), vec![3])]);
    }
}
