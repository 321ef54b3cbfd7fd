//! Memory that is asked for before it is taken.
//!
//! A session holds blocks and batches of a known size, and lines of load files, which are as long as
//! whoever wrote them liked: those are taken from a [`MemoryBudget`].

use std::sync::Arc;

use stoa_error::Result;

/// Who gives memory to the sessions of a process.
pub trait MemoryBudget: Send + Sync {
    /// Takes so many bytes more.
    ///
    /// # Errors
    /// [`Exhausted`](stoa_error::ErrorKind::Exhausted) if they are not left; nothing is taken then.
    fn take(&self, bytes: usize) -> Result<()>;

    /// Gives back bytes that were taken.
    fn give_back(&self, bytes: usize);
}

/// Gives whatever is asked for: for tests, and where nothing else needs memory.
pub struct Unlimited;

impl MemoryBudget for Unlimited {
    fn take(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn give_back(&self, _bytes: usize) {}
}

/// Memory that was taken; dropping it gives it back.
pub(crate) struct TakenMemory {
    budget: Arc<dyn MemoryBudget>,
    bytes: usize,
}

impl TakenMemory {
    /// Nothing yet.
    pub(crate) fn new(budget: Arc<dyn MemoryBudget>) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Takes as much more as makes `bytes` in all.
    ///
    /// # Errors
    /// As [`MemoryBudget::take`].
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.saturating_sub(self.bytes);
        self.budget.take(more)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for TakenMemory {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
