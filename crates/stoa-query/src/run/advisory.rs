//! Advisory locks: numbers that sessions of one server hold for themselves or share.
//!
//! In: sessions by process id that ask for a lock, give it up, or end. Out: whether they hold it. As in PostgreSQL,
//! a session may hold a lock several times and must give it up as often; locks of a transaction end with it.
//! **Invariant:** a lock that is held for itself has one holder. **Not here:** waiting. A statement that waited
//! would keep its place among those that run, and the holder might need that place to give the lock up.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// What is locked: one `bigint`, or two `integer`; the two kinds are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LockId {
    One(i64),
    Two(i32, i32),
}

/// Whether others may hold the lock, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LockMode {
    Exclusive,
    Shared,
}

/// Until when a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LockSpan {
    Session,
    Transaction,
}

/// How often one session holds one lock.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// For itself, until the session ends or gives it up.
    exclusive: usize,
    shared: usize,
    /// For itself, until the transaction ends.
    exclusive_in_transaction: usize,
    shared_in_transaction: usize,
}

impl Held {
    fn count(&mut self, mode: LockMode, span: LockSpan) -> &mut usize {
        match (mode, span) {
            (LockMode::Exclusive, LockSpan::Session) => &mut self.exclusive,
            (LockMode::Shared, LockSpan::Session) => &mut self.shared,
            (LockMode::Exclusive, LockSpan::Transaction) => &mut self.exclusive_in_transaction,
            (LockMode::Shared, LockSpan::Transaction) => &mut self.shared_in_transaction,
        }
    }

    fn is_exclusive(&self) -> bool {
        self.exclusive + self.exclusive_in_transaction > 0
    }

    fn is_nothing(&self) -> bool {
        !self.is_exclusive() && self.shared + self.shared_in_transaction == 0
    }
}

/// Locks by what they lock, each with its holders.
type Holders = HashMap<LockId, HashMap<i32, Held>>;

/// The locks of a server.
#[derive(Default)]
pub(crate) struct AdvisoryLocks {
    held: Mutex<Holders>,
}

/// The locks of one session; dropped, they are free.
pub(crate) struct SessionLocks {
    all: Arc<AdvisoryLocks>,
    session: i32,
    /// What it may hold, once each.
    ids: Mutex<Vec<LockId>>,
}

/// The most locks that a session may hold at a time.
pub(crate) const LOCKS_MAX: usize = 10_000;

impl SessionLocks {
    pub(crate) fn new(all: &Arc<AdvisoryLocks>, session: i32) -> Self {
        Self { all: Arc::clone(all), session, ids: Mutex::default() }
    }

    /// Takes a lock, unless another session holds it in a way that does not go with this; whether it did. `None`
    /// where the session holds too many.
    pub(crate) fn try_take(&self, id: LockId, mode: LockMode, span: LockSpan) -> Option<bool> {
        let mut ids = self.ids.lock();
        let mut held = self.all.held.lock();
        let of = held.entry(id).or_default();
        let others = of.iter().filter(|(holder, _)| **holder != self.session);
        let is_free = match mode {
            LockMode::Exclusive => others.count() == 0,
            LockMode::Shared => others.into_iter().all(|(_, other)| !other.is_exclusive()),
        };
        if !is_free {
            return Some(false);
        }
        if !of.contains_key(&self.session) {
            if ids.len() >= LOCKS_MAX {
                if of.is_empty() {
                    held.remove(&id);
                }
                return None;
            }
            ids.push(id);
        }
        *of.entry(self.session).or_default().count(mode, span) += 1;
        Some(true)
    }

    /// Gives up a lock of the session once; whether it was held.
    pub(crate) fn give_up(&self, id: LockId, mode: LockMode) -> bool {
        let mut held = self.all.held.lock();
        let own = held.get_mut(&id).and_then(|of| of.get_mut(&self.session));
        let Some(count) = own.map(|own| own.count(mode, LockSpan::Session)) else { return false };
        if *count == 0 {
            return false;
        }
        *count -= 1;
        self.forget_nothing(&mut held, id);
        drop(held);
        self.forget_ids();
        true
    }

    /// Gives up what is held for so long.
    pub(crate) fn give_up_all(&self, span: LockSpan) {
        let ids = self.ids.lock().clone();
        if ids.is_empty() {
            return;
        }
        let mut held = self.all.held.lock();
        for id in ids {
            if let Some(own) = held.get_mut(&id).and_then(|of| of.get_mut(&self.session)) {
                *own.count(LockMode::Exclusive, span) = 0;
                *own.count(LockMode::Shared, span) = 0;
            }
            self.forget_nothing(&mut held, id);
        }
        drop(held);
        self.forget_ids();
    }

    /// Leaves no room for a lock that nobody holds.
    fn forget_nothing(&self, held: &mut Holders, id: LockId) {
        let Some(of) = held.get_mut(&id) else { return };
        if of.get(&self.session).is_some_and(Held::is_nothing) {
            of.remove(&self.session);
        }
        if of.is_empty() {
            held.remove(&id);
        }
    }

    fn forget_ids(&self) {
        let mut ids = self.ids.lock();
        let held = self.all.held.lock();
        ids.retain(|id| held.get(id).is_some_and(|of| of.contains_key(&self.session)));
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        self.give_up_all(LockSpan::Session);
        self.give_up_all(LockSpan::Transaction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_counted_shared_and_given_up() {
        let all = Arc::<AdvisoryLocks>::default();
        let (one, other) = (SessionLocks::new(&all, 1), SessionLocks::new(&all, 2));
        let id = LockId::One(7);
        let take = |who: &SessionLocks, mode, span| who.try_take(id, mode, span);
        use LockMode::{Exclusive, Shared};
        use LockSpan::{Session, Transaction};
        assert_eq!(take(&one, Exclusive, Session), Some(true));
        assert_eq!(take(&one, Exclusive, Session), Some(true));
        assert_eq!(take(&other, Shared, Session), Some(false));
        assert_eq!(other.try_take(LockId::Two(0, 7), Exclusive, Session), Some(true));
        assert!(one.give_up(id, Exclusive) && !one.give_up(id, Shared));
        assert_eq!(take(&other, Exclusive, Transaction), Some(false));
        assert!(one.give_up(id, Exclusive) && !one.give_up(id, Exclusive));
        assert_eq!(take(&other, Shared, Transaction), Some(true));
        assert_eq!(take(&one, Shared, Transaction), Some(true));
        assert_eq!(take(&one, Exclusive, Transaction), Some(false));
        // What belongs to the transaction is not given up before it ends.
        assert!(!other.give_up(id, Shared));
        other.give_up_all(Transaction);
        assert_eq!(take(&one, Exclusive, Transaction), Some(true));
        drop(one);
        assert_eq!(take(&other, Exclusive, Session), Some(true));
        drop(other);
        assert!(all.held.lock().is_empty());
    }

    #[test]
    fn no_session_holds_too_many() {
        let all = Arc::<AdvisoryLocks>::default();
        let one = SessionLocks::new(&all, 1);
        let take = |number: usize| {
            one.try_take(LockId::One(number as i64), LockMode::Exclusive, LockSpan::Session)
        };
        assert!((0..LOCKS_MAX).all(|number| take(number) == Some(true)));
        assert_eq!((take(LOCKS_MAX), take(1)), (None, Some(true)));
        assert_eq!(all.held.lock().len(), LOCKS_MAX);
    }
}
