//! Decoding protocol buffer messages within a bound on memory.
//!
//! A message inside another one takes two bytes in a file, but some sixty in memory, and a packed
//! number one byte instead of eight: the length of a section says little about what it becomes.
//! In: inflated sections and a limit. Out: messages. **Invariant:** all messages decoded from one
//! [`Budget`] take about its limit at most.

use bytes::Bytes;
use prost::Message;
use prost::encoding::{DecodeContext, decode_key, skip_field};

use crate::error::{Result, corrupt, exhausted};

/// About what a field takes in memory, besides its bytes.
const FIELD_BYTES: usize = 64;

/// Memory that the messages of a section may take.
pub(crate) struct Budget {
    limit: usize,
    left: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, left: limit }
    }

    /// Decodes a message whose fields are numbers, texts or messages (not packed numbers).
    pub(crate) fn decode<M: Message + Default>(&mut self, message: Bytes) -> Result<M> {
        self.take(field_count(message.clone())?.saturating_mul(FIELD_BYTES))?;
        M::decode(message).map_err(|e| corrupt(e.to_string()))
    }

    /// Decodes a message that may be a list of packed numbers of `number_bytes` each in memory.
    pub(crate) fn decode_packed<M: Message + Default>(
        &mut self,
        message: Bytes,
        number_bytes: usize,
    ) -> Result<M> {
        self.take(message.len().saturating_mul(number_bytes))?;
        self.decode(message)
    }

    fn take(&mut self, bytes: usize) -> Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            exhausted(format!("metadata takes more than {} bytes of memory", self.limit))
        })?;
        Ok(())
    }
}

/// How many fields a message has, those of messages inside it not counted.
pub(crate) fn field_count(mut message: Bytes) -> Result<usize> {
    let mut count = 0;
    while !message.is_empty() {
        let skipped = decode_key(&mut message).and_then(|(tag, wire_type)| {
            skip_field(wire_type, tag, &mut message, DecodeContext::default())
        });
        skipped.map_err(|e| corrupt(e.to_string()))?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{RowIndex, RowIndexEntry};

    #[test]
    fn many_small_messages_are_too_much() {
        let entry = RowIndexEntry { positions: vec![1, 2, 300], statistics: None };
        let index = RowIndex { entry: vec![entry; 1000] };
        let bytes = Bytes::from(index.encode_to_vec());
        assert_eq!(field_count(bytes.clone()).unwrap(), 1000);
        assert_eq!(Budget::new(64_000).decode::<RowIndex>(bytes.clone()).unwrap(), index);
        let error = Budget::new(63_999).decode::<RowIndex>(bytes.clone()).unwrap_err();
        assert_eq!(error.kind(), stoa_error::ErrorKind::Exhausted);
        let mut budget = Budget::new(100_000);
        budget.decode::<RowIndex>(bytes.clone()).unwrap();
        assert!(budget.decode::<RowIndex>(bytes.clone()).is_err());
        assert!(Budget::new(64_000).decode_packed::<RowIndex>(bytes, 8).is_err());
    }

    #[test]
    fn damage_is_an_error() {
        for bytes in [&[0x0a][..], &[0x0a, 5, 1], &[0xff; 12], &[0x0f, 1]] {
            let bytes = Bytes::copy_from_slice(bytes);
            let error = Budget::new(1 << 20).decode::<RowIndex>(bytes).unwrap_err();
            assert_eq!(error.kind(), stoa_error::ErrorKind::Corrupt);
        }
    }
}
