//! Which peers are connected to this daemon: one connection for each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_cluster::DaemonId;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Registry(Mutex<Books>);

#[derive(Default)]
struct Books {
    by_daemon: HashMap<DaemonId, Arc<Notify>>,
    /// Counts how often a daemon was forgotten.
    forgotten: u64,
}

/// The entry of a connection, which is removed when this is dropped.
pub(crate) struct Entry {
    registry: Arc<Registry>,
    daemon: DaemonId,
    closing: Arc<Notify>,
}

impl Registry {
    /// Ends the connection from a daemon.
    pub(crate) fn forget(&self, daemon: DaemonId) {
        let mut books = self.0.lock();
        books.forgotten += 1;
        let gone = books.by_daemon.remove(&daemon);
        drop(books);
        if let Some(gone) = gone {
            gone.notify_one();
        }
    }

    /// Those that are connected.
    pub(crate) fn daemons(&self) -> HashSet<DaemonId> {
        self.0.lock().by_daemon.keys().copied().collect()
    }

    /// How often daemons were forgotten; to be asked before the membership is.
    pub(crate) fn forgotten(&self) -> u64 {
        self.0.lock().forgotten
    }

    /// Enters a connection in the place of an older one from the daemon, which has given that one up. `None`
    /// if a daemon was forgotten since there were `forgotten`: the membership must be asked again.
    pub(crate) fn enter(self: &Arc<Self>, daemon: DaemonId, forgotten: u64) -> Option<Entry> {
        let closing = Arc::new(Notify::new());
        let mut books = self.0.lock();
        if books.forgotten != forgotten {
            return None;
        }
        let older = books.by_daemon.insert(daemon, Arc::clone(&closing));
        drop(books);
        if let Some(older) = older {
            older.notify_one();
        }
        Some(Entry { registry: Arc::clone(self), daemon, closing })
    }
}

impl Entry {
    /// Done when the connection must end: its daemon was forgotten, or has connected again.
    pub(crate) async fn ended(&self) {
        self.closing.notified().await;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut books = self.registry.0.lock();
        let entered = books.by_daemon.get(&self.daemon);
        if entered.is_some_and(|entered| Arc::ptr_eq(entered, &self.closing)) {
            books.by_daemon.remove(&self.daemon);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn has_ended(entry: &Entry) -> bool {
        let ended = std::pin::pin!(entry.ended());
        ended.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn the_last_connection_of_a_daemon_counts() {
        let registry = Arc::<Registry>::default();
        let daemon = DaemonId::from_bits(1);
        let older = registry.enter(daemon, 0).unwrap();
        let newer = registry.enter(daemon, 0).unwrap();
        assert!(has_ended(&older) && !has_ended(&newer));
        drop(older);
        assert!(registry.daemons().contains(&daemon));
        drop(newer);
        assert!(registry.daemons().is_empty());
    }

    #[test]
    fn nobody_enters_who_was_looked_up_before_a_death() {
        let registry = Arc::<Registry>::default();
        let (dead, other) = (DaemonId::from_bits(1), DaemonId::from_bits(2));
        let forgotten = registry.forgotten();
        let entry = registry.enter(dead, forgotten).unwrap();
        registry.forget(dead);
        assert!(has_ended(&entry));
        assert!(registry.enter(other, forgotten).is_none());
        assert!(registry.enter(other, registry.forgotten()).is_some());
    }
}
