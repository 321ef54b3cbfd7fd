//! Memory that a report takes beside the cache: chunks on their way, groups, the answer.
//!
//! In: how much is needed now. Out: whether there is that much. Little is not asked for: a report that
//! needs less than [`COUNTED_BYTES_MIN`] costs nobody a lock.

/// Below this nothing is asked for.
const COUNTED_BYTES_MIN: usize = 1 << 20;

/// Where a report takes its memory from.
pub trait Memory: Send + Sync {
    /// Makes what is taken `bytes` in all; whether there is that much. If not, what was taken before
    /// stays taken.
    fn resize(&self, bytes: usize) -> bool;
}

/// Memory that nobody counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncounted;

impl Memory for Uncounted {
    fn resize(&self, _: usize) -> bool {
        true
    }
}

/// What a report has taken.
pub(crate) struct Taken<'a> {
    memory: &'a dyn Memory,
    bytes: usize,
    bytes_max: usize,
}

impl<'a> Taken<'a> {
    /// Nothing yet, of at most `bytes_max`.
    pub(crate) fn new(memory: &'a dyn Memory, bytes_max: usize) -> Self {
        Self { memory, bytes: 0, bytes_max }
    }

    /// Whether the report may take `bytes` in all.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes_max {
            return false;
        }
        let wanted = match bytes < COUNTED_BYTES_MIN {
            true => 0,
            // In large steps, which are few.
            false => bytes.next_multiple_of(COUNTED_BYTES_MIN),
        };
        if wanted != self.bytes {
            if !self.memory.resize(wanted) {
                return false;
            }
            self.bytes = wanted;
        }
        true
    }
}
