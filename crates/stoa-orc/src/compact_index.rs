//! A copy of all stripe footers and row indexes in the footer of the file.
//!
//! Read with the tail, it saves the round trip for them: a cold read is the tail, then data.
//! Other readers take it for a key of the user's own and pass over it.
//!
//! ```text
//! user metadata "stoa.compact-index" = version u8 = 1 · inflated length u32 LE · zstd frame
//! frame  = per stripe: offset, index bytes, data bytes, footer bytes, rows (varints),
//!          footer, and per column its row index (each: length as varint, message)
//! ```
//! In: messages of the stripes as they are written, or the value of the key. Out: the other one. **Invariant:** a copy that does not fit the file's own list of
//! stripes (a tool has merged files) or is damaged is passed over: it is never needed.
//! Not here: bloom filters, which are too large to copy.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use stoa_error::Error;

use crate::encode::varint::write_unsigned;
use crate::error::Result;
use crate::message::Budget;
use crate::proto;
use crate::row_index::RowIndex;
use crate::stripe::StripeMetadata;
use crate::stripe_info::StripeInfo;

/// Key of the user metadata.
pub(crate) const COMPACT_INDEX_KEY: &str = "stoa.compact-index";

const VERSION: u8 = 1;
/// Version and inflated length.
const HEADER_BYTES: usize = 5;
/// A larger copy costs every reader of the tail more than it saves.
const COPY_BYTES_MAX: usize = 1 << 20;
/// Bound on memory of writer and reader.
const INFLATED_BYTES_MAX: usize = 16 << 20;
/// Bound on what that becomes in memory: positions take eight bytes instead of one or two.
const MEMORY_BYTES_MAX: usize = 16 * INFLATED_BYTES_MAX;
/// The copy is small and read often.
const ZSTD_LEVEL: i32 = 9;

/// Collects the copy while stripes are written.
#[derive(Default)]
pub(crate) struct CompactIndexBuilder {
    content: Vec<u8>,
    is_too_large: bool,
}

impl CompactIndexBuilder {
    /// Adds a stripe: its place, its footer, the row indexes of all columns.
    pub(crate) fn push(
        &mut self,
        stripe: &proto::StripeInformation,
        footer: &[u8],
        row_indexes: &[Vec<u8>],
    ) {
        let more: usize = row_indexes.iter().map(|index| index.len() + 3).sum();
        if self.content.len() + footer.len() + more > INFLATED_BYTES_MAX {
            *self = Self { content: Vec::new(), is_too_large: true };
        }
        if self.is_too_large {
            return;
        }
        place(stripe).into_iter().for_each(|number| write_unsigned(number, &mut self.content));
        for message in std::iter::once(footer).chain(row_indexes.iter().map(Vec::as_slice)) {
            write_unsigned(message.len() as u64, &mut self.content);
            self.content.extend_from_slice(message);
        }
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.content.capacity()
    }

    /// The value of the key; `None` if there is nothing to copy or too much.
    pub(crate) fn finish(&mut self) -> Result<Option<Vec<u8>>> {
        let content = std::mem::take(&mut self.content);
        let Some(length) = u32::try_from(content.len()).ok().filter(|length| *length > 0) else {
            return Ok(None);
        };
        let mut value = vec![VERSION];
        value.extend_from_slice(&length.to_le_bytes());
        value.extend_from_slice(
            &compress(&content).map_err(|e| {
                Error::internal("compressing the compact index failed").with_source(e)
            })?,
        );
        Ok((value.len() <= COPY_BYTES_MAX).then_some(value))
    }
}

/// A frame with a checksum: unlike a damaged stream, a damaged copy must not change what is read.
fn compress(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
    compressor.include_checksum(true)?;
    compressor.compress(content)
}

/// The stripes of a file as the value of its key describes them, if that fits.
pub(crate) fn stripe_metadata(
    value: &[u8],
    stripes: &[StripeInfo],
    columns: usize,
) -> Option<Vec<Arc<StripeMetadata>>> {
    let (header, frame) = value.split_at_checked(HEADER_BYTES)?;
    let [VERSION, a, b, c, d] = *header else { return None };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > INFLATED_BYTES_MAX {
        return None;
    }
    let mut content = Bytes::from(zstd::bulk::decompress(frame, length).ok()?);
    let mut budget = Budget::new(MEMORY_BYTES_MAX);
    let stripes = stripes.iter().map(|info| take_stripe(info, columns, &mut content, &mut budget));
    let stripes = stripes.collect::<Option<Vec<_>>>()?;
    content.is_empty().then_some(stripes)
}

fn take_stripe(
    info: &StripeInfo,
    columns: usize,
    content: &mut Bytes,
    budget: &mut Budget,
) -> Option<Arc<StripeMetadata>> {
    let expected = [info.offset, info.index_bytes, info.data_bytes, info.footer_bytes, info.rows];
    for expected in expected {
        if prost::encoding::decode_varint(content).ok()? != expected {
            return None;
        }
    }
    let mut stripe = StripeMetadata::parse(info, columns, take_message(content)?, budget).ok()?;
    for column in 0..columns {
        let message = take_message(content)?;
        if !message.is_empty() {
            let index = RowIndex::parse(message, budget).ok()?;
            stripe.row_indexes.insert(u32::try_from(column).ok()?, Arc::new(index));
        }
    }
    Some(Arc::new(stripe))
}

fn take_message(content: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(prost::encoding::decode_varint(content).ok()?).ok()?;
    (length <= content.remaining()).then(|| content.split_to(length))
}

/// Where a stripe is, in the order of the copy.
fn place(stripe: &proto::StripeInformation) -> [u64; 5] {
    [
        stripe.offset(),
        stripe.index_length(),
        stripe.data_length(),
        stripe.footer_length(),
        stripe.number_of_rows(),
    ]
}

#[cfg(test)]
mod tests;
