//! What all decoders of a file share while they decode.

use crate::compression::{CompressionKind, Decompressor};
use crate::error::{Result, exhausted};

/// Codec state, scratch memory, and what is left of the memory budget.
pub(crate) struct Context {
    pub(crate) decompressor: Decompressor,
    /// Largest content of a chunk in bytes.
    pub(crate) block_bytes: usize,
    budget_bytes: usize,
    left_bytes: usize,
    /// What is left for buffers of chunks, of all streams together.
    buffer_bytes_left: usize,
    /// Buffers of finished sources, to be used again.
    spare: Vec<Vec<u8>>,
}

/// How many chunk buffers are kept for the next run.
const SPARE_MAX: usize = 256;

impl Context {
    pub(crate) fn new(kind: CompressionKind, block_bytes: usize, budget_bytes: usize) -> Self {
        Self {
            decompressor: Decompressor::new(kind),
            block_bytes,
            budget_bytes,
            left_bytes: budget_bytes,
            buffer_bytes_left: budget_bytes,
            spare: Vec::new(),
        }
    }

    /// Starts a new budget: one batch, or the dictionaries of one stripe.
    pub(crate) fn start_budget(&mut self) {
        self.left_bytes = self.budget_bytes;
    }

    /// Takes memory out of the budget, before it is allocated.
    pub(crate) fn take<T>(&mut self, count: usize) -> Result<()> {
        let bytes = count.saturating_mul(size_of::<T>());
        match self.left_bytes.checked_sub(bytes) {
            Some(left) => {
                self.left_bytes = left;
                Ok(())
            }
            None => {
                let budget = self.budget_bytes;
                Err(exhausted(format!("a batch would take more than {budget} bytes of memory"))
                    .with_hint("read fewer rows per batch"))
            }
        }
    }

    /// A buffer for a source.
    pub(crate) fn spare_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Makes a source's buffer at least `length` bytes long.
    pub(crate) fn grow_buffer(&mut self, buffer: &mut Vec<u8>, length: usize) -> Result<()> {
        let more = length.saturating_sub(buffer.len());
        self.buffer_bytes_left = self.buffer_bytes_left.checked_sub(more).ok_or_else(|| {
            let budget = self.budget_bytes;
            exhausted(format!("chunks of all streams take more than {budget} bytes of memory"))
                .with_hint("read fewer columns at a time")
        })?;
        match buffer.capacity() {
            // Memory that is fresh need not be cleared, which takes longer than to decompress a few rows.
            0 => *buffer = vec![0; more],
            _ => buffer.resize(buffer.len() + more, 0),
        }
        Ok(())
    }

    /// Takes a buffer back.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && buffer.capacity() > 0 {
            self.spare.push(buffer);
        } else {
            self.buffer_bytes_left += buffer.len();
        }
    }
}
