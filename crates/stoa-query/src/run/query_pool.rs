//! The pool of one query, which may become another one while it runs.
//!
//! In: the pool that the query begins in, what it takes of memory, the slot that it was given. Out: its bounds. When it
//! is moved, its memory counts for the new pool, and a slot of that pool takes the place of the old one. **Invariant:**
//! what is taken of a pool is given back to the same pool.

use std::sync::Arc;

use parking_lot::Mutex;
use stoa_error::Result;

use crate::run::admission::Slot;
use crate::run::pool::Pool;

/// The pool of one query.
#[derive(Debug)]
pub(crate) struct QueryPool(Mutex<State>);

#[derive(Debug)]
struct State {
    pool: Arc<Pool>,
    memory_bytes: usize,
    slots: Vec<Slot>,
}

/// A slot of a query; dropped, it is given back.
#[derive(Debug)]
pub(crate) struct HeldSlot(Arc<QueryPool>);

impl QueryPool {
    pub(crate) fn new(pool: Arc<Pool>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { pool, memory_bytes: 0, slots: Vec::new() })))
    }

    /// The pool that it is in now.
    pub(crate) fn now(&self) -> Arc<Pool> {
        Arc::clone(&self.0.lock().pool)
    }

    /// Takes memory.
    ///
    /// # Errors
    /// `Exhausted` (53200) beyond the pool's bound.
    pub(crate) fn take(&self, bytes: usize) -> Result<()> {
        let mut state = self.0.lock();
        state.pool.take(bytes)?;
        state.memory_bytes += bytes;
        Ok(())
    }

    /// Takes memory that it has already.
    pub(crate) fn take_anyway(&self, bytes: usize) {
        let mut state = self.0.lock();
        state.pool.take_anyway(bytes);
        state.memory_bytes += bytes;
    }

    /// Gives memory back.
    pub(crate) fn give_back(&self, bytes: usize) {
        let mut state = self.0.lock();
        state.pool.give_back(bytes);
        state.memory_bytes -= bytes;
    }

    /// Keeps a slot for as long as what this returns is there. If the query was moved since it asked for the slot, it
    /// takes one of its new pool instead, if one is free.
    pub(crate) fn hold(self: &Arc<Self>, slot: Slot) -> HeldSlot {
        let mut state = self.0.lock();
        let instead = match slot.is_of(&state.pool.admission) {
            true => None,
            false => state.pool.admission.try_enter(),
        };
        let (kept, other) = match instead {
            Some(instead) => (instead, Some(slot)),
            None => (slot, None),
        };
        state.slots.push(kept);
        drop(state);
        // It goes to who waits, who may be of this query's pool.
        drop(other);
        HeldSlot(Arc::clone(self))
    }

    /// Waits for a slot again, in the pool that it is in by then.
    ///
    /// # Errors
    /// As for the first one.
    pub(crate) async fn enter_again(self: &Arc<Self>, bytes: u64) -> Result<HeldSlot> {
        let pool = self.now();
        let slot = pool.admission.enter_again(bytes).await?;
        Ok(self.hold(slot))
    }

    /// Moves the query; `false` where it needs a slot and the pool has none that is free.
    pub(crate) fn try_move(&self, to: &Arc<Pool>) -> bool {
        let mut state = self.0.lock();
        if Arc::ptr_eq(&state.pool, to) {
            return true;
        }
        let mut slots = Vec::with_capacity(state.slots.len());
        for _ in 0..state.slots.len() {
            match to.admission.try_enter() {
                Some(slot) => slots.push(slot),
                None => return false,
            }
        }
        to.take_anyway(state.memory_bytes);
        state.pool.give_back(state.memory_bytes);
        state.pool = Arc::clone(to);
        let before = std::mem::replace(&mut state.slots, slots);
        drop(state);
        drop(before);
        true
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        let slot = self.0.0.lock().slots.pop();
        drop(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::pool::PoolOptions;
    use crate::run::pools::Pools;

    fn pools() -> (Arc<Pool>, Arc<Pool>) {
        let named = |name: &str| PoolOptions {
            name: name.to_owned(),
            slots: Some(1),
            memory_bytes_max: Some(100),
            ..PoolOptions::default()
        };
        let pools = Pools::new(&[named("a"), named("b")], &[], 4, 4, 1000).unwrap();
        (pools.named("a").unwrap(), pools.named("b").unwrap())
    }

    #[tokio::test]
    async fn a_query_takes_its_memory_and_its_slot_along() {
        let (a, b) = pools();
        let query = QueryPool::new(Arc::clone(&a));
        let held = query.hold(a.admission.try_enter().unwrap());
        query.take(70).unwrap();
        let status = |pool: &Pool| (pool.status().admission.running, pool.status().memory_bytes);
        assert_eq!((status(&a), status(&b)), ((1, 70), (0, 0)));
        assert!(query.try_move(&b));
        assert_eq!((status(&a), status(&b)), ((0, 0), (1, 70)));
        assert!(query.take(40).is_err());
        query.give_back(70);
        drop(held);
        assert_eq!((status(&a), status(&b)), ((0, 0), (0, 0)));
        drop(query.enter_again(1).await.unwrap());
    }

    #[test]
    fn nothing_moves_into_a_full_pool() {
        let (a, b) = pools();
        let query = QueryPool::new(Arc::clone(&a));
        let held = query.hold(a.admission.try_enter().unwrap());
        let other = b.admission.try_enter().unwrap();
        assert!(!query.try_move(&b));
        assert_eq!(query.now().options.name, "a");
        drop((held, other));
        assert_eq!((a.status().admission.running, b.status().admission.running), (0, 0));
        // Without a slot it needs none.
        let full = b.admission.try_enter().unwrap();
        assert!(query.try_move(&b));
        drop(full);
    }

    #[test]
    fn a_slot_that_was_asked_for_before_the_move_is_exchanged() {
        let (a, b) = pools();
        let query = QueryPool::new(Arc::clone(&a));
        let asked = a.admission.try_enter().unwrap();
        assert!(query.try_move(&b));
        let held = query.hold(asked);
        assert_eq!((a.status().admission.running, b.status().admission.running), (0, 1));
        drop(held);
        assert_eq!(b.status().admission.running, 0);
    }
}
