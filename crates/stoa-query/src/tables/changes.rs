//! Statements of this process that read tables and write one: which of them must not both count.
//!
//! In: the tables that a statement reads, the one that it writes, and the moment at which it read
//! them. Out: leave to commit, or a `Conflict` where another statement has changed meanwhile what
//! this one has read.
//!
//! ```text
//! begin ─► read one state of all tables ─► work ─► publish: was one of them changed since `begin`?
//!                                                    ├─ no: commit, and note that the target changed
//!                                                    └─ yes: start again, with everybody else kept
//!                                                       from changing what it reads (its *turn*)
//! ```
//! Rows that come in by INSERT … VALUES, COPY and loads depend on nothing, and are not noted: they
//! count as written after whoever did not see them.
//!
//! **Invariants:** between the answer of [`Reading::publish`] and the end of what it allows nobody
//! else gets leave that depends on it. Whoever has the turn gets it without a conflict; it waits for
//! no table, so nobody waits in a circle.
//!
//! Not here: other processes, whose commits the catalog tells of (`stoa-table`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use stoa_table::Table;
use tokio::sync::{Notify, OwnedMutexGuard};

/// What statements of a process changed, and are about to change.
#[derive(Default)]
pub(crate) struct Changes {
    state: Mutex<State>,
    /// Something ended that others may wait for.
    ended: Notify,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    /// Counts the changes.
    clock: u64,
    /// The last change of each table.
    changed: HashMap<TableIdent, u64>,
    /// How many statements are committing to each table.
    publishing: HashMap<TableIdent, usize>,
    /// What whoever has the turn reads and writes.
    protected: HashSet<TableIdent>,
}

/// The right to be the only one who cannot be overtaken.
pub(crate) struct Turn {
    changes: Arc<Changes>,
    _mine: OwnedMutexGuard<()>,
}

/// A statement that has begun to read.
pub(crate) struct Reading {
    changes: Arc<Changes>,
    since: u64,
    tables: Vec<TableIdent>,
    /// The versions that were read of tables other than the target.
    others: Mutex<Vec<Table>>,
    turn: Option<Turn>,
}

/// Leave to commit. When this ends, the change counts as made.
pub(crate) struct Publishing {
    changes: Arc<Changes>,
    target: TableIdent,
}

impl Changes {
    /// Waits for the turn; those who asked before come first.
    pub(crate) async fn turn(self: &Arc<Self>) -> Turn {
        let mine = Arc::clone(&self.turn).lock_owned().await;
        Turn { changes: Arc::clone(self), _mine: mine }
    }

    /// Begins a statement that reads `tables` from now on and is to write `target`.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        tables: Vec<TableIdent>,
        target: &TableIdent,
        turn: Option<Turn>,
    ) -> Reading {
        if turn.is_some() {
            let all: HashSet<TableIdent> = tables.iter().chain([target]).cloned().collect();
            self.state.lock().protected.clone_from(&all);
            // Those who have leave already are not to be overtaken, either.
            self.when(|state| {
                all.iter().all(|table| !state.publishing.contains_key(table)).then_some(())
            })
            .await;
        }
        let since = self.state.lock().clock;
        let others = Mutex::default();
        Reading { changes: Arc::clone(self), since, tables, others, turn }
    }

    /// Waits until `ready` says so.
    async fn when<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if let Some(ready) = ready(&mut self.state.lock()) {
                return ready;
            }
            ended.await;
        }
    }
}

impl Reading {
    /// Notes the versions that were read of tables other than the target.
    pub(crate) fn note(&self, others: Vec<Table>) {
        *self.others.lock() = others;
    }

    /// What [`Self::note`] was told.
    pub(crate) fn others(&self) -> Vec<Table> {
        self.others.lock().clone()
    }

    /// Leave to commit to `target`.
    ///
    /// # Errors
    /// `Conflict` where a table that was read was changed since.
    pub(crate) async fn publish(&self, target: &TableIdent) -> Result<Publishing> {
        let changed = self.changes.when(|state| self.try_publish(state, target)).await;
        match changed {
            None => Ok(Publishing { changes: Arc::clone(&self.changes), target: target.clone() }),
            Some(table) => Err(was_changed(&table)),
        }
    }

    /// `None` to wait, else whether there is a table that was changed.
    fn try_publish(&self, state: &mut State, target: &TableIdent) -> Option<Option<TableIdent>> {
        if let Some(table) = self.changed(state) {
            return Some(Some(table));
        }
        if self.must_wait(state, target) {
            return None;
        }
        *state.publishing.entry(target.clone()).or_default() += 1;
        Some(None)
    }

    /// A table that was read and has changed since.
    fn changed(&self, state: &State) -> Option<TableIdent> {
        let changed = |table: &&TableIdent| {
            state.changed.get(*table).is_some_and(|changed| *changed > self.since)
        };
        self.tables.iter().find(changed).cloned()
    }

    /// Whether others are about to change what was read, or must not be overtaken.
    fn must_wait(&self, state: &State, target: &TableIdent) -> bool {
        (self.turn.is_none() && state.protected.contains(target))
            || self.tables.iter().any(|table| state.publishing.contains_key(table))
    }
}

/// Leave to commit several changes, each to its target, at once: whoever waits has leave for none of
/// them, so that nobody waits in a circle.
///
/// # Errors
/// `Conflict` where a table that was read was changed since.
pub(crate) async fn publish_all(
    readings: &[(Arc<Reading>, TableIdent)],
) -> Result<Vec<Publishing>> {
    let Some((first, _)) = readings.first() else { return Ok(Vec::new()) };
    let changed = first.changes.when(|state| try_publish_all(state, readings)).await;
    match changed {
        None => {
            let publishing = |(reading, target): &(Arc<Reading>, TableIdent)| Publishing {
                changes: Arc::clone(&reading.changes),
                target: target.clone(),
            };
            Ok(readings.iter().map(publishing).collect())
        }
        Some(table) => Err(was_changed(&table)),
    }
}

/// As [`Reading::try_publish`].
fn try_publish_all(
    state: &mut State,
    readings: &[(Arc<Reading>, TableIdent)],
) -> Option<Option<TableIdent>> {
    if let Some(table) = readings.iter().find_map(|(reading, _)| reading.changed(state)) {
        return Some(Some(table));
    }
    if readings.iter().any(|(reading, target)| reading.must_wait(state, target)) {
        return None;
    }
    for (_, target) in readings {
        *state.publishing.entry(target.clone()).or_default() += 1;
    }
    Some(None)
}

fn was_changed(table: &TableIdent) -> Error {
    Error::conflict(format!("table {table}, which was read, was changed meanwhile"))
        .with_hint("nothing was changed; run the statement again")
}

impl Drop for Publishing {
    fn drop(&mut self) {
        let mut state = self.changes.state.lock();
        state.clock += 1;
        let now = state.clock;
        state.changed.insert(self.target.clone(), now);
        if let Some(count) = state.publishing.get_mut(&self.target) {
            *count -= 1;
            if *count == 0 {
                state.publishing.remove(&self.target);
            }
        }
        drop(state);
        self.changes.ended.notify_waiters();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.changes.state.lock().protected.clear();
        self.changes.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn table(name: &str) -> TableIdent {
        TableIdent::new("public", name)
    }

    fn reading(changes: &Arc<Changes>, tables: &[&str], target: &str) -> Reading {
        let tables = tables.iter().map(|name| table(name)).collect();
        changes.begin(tables, &table(target), None).now_or_never().unwrap()
    }

    #[test]
    fn of_two_who_read_what_the_other_writes_one_must_start_again() {
        let changes = Arc::<Changes>::default();
        let (one, other) =
            (reading(&changes, &["a", "b"], "a"), reading(&changes, &["a", "b"], "b"));
        let first = one.publish(&table("a")).now_or_never().unwrap().unwrap();
        // Nobody knows yet whether the first one's commit will be made.
        let (a, b) = (table("a"), table("b"));
        let mut second = Box::pin(other.publish(&b));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        let error = second.now_or_never().unwrap().err().unwrap();
        assert_eq!(error.sqlstate(), "40001");
        drop(reading(&changes, &["a", "b"], "a").publish(&a).now_or_never().unwrap().unwrap());
    }

    #[test]
    fn whoever_has_the_turn_is_not_overtaken() {
        let changes = Arc::<Changes>::default();
        let (a, b) = (table("a"), table("b"));
        let late = reading(&changes, &["b"], "b");
        let turn = changes.turn().now_or_never().unwrap();
        assert!(changes.turn().now_or_never().is_none());
        let tables = vec![a.clone(), b.clone()];
        let mine = changes.begin(tables, &a, Some(turn)).now_or_never().unwrap();
        let mut waits = Box::pin(late.publish(&b));
        assert!((&mut waits).now_or_never().is_none());
        drop(mine.publish(&a).now_or_never().unwrap().unwrap());
        assert!((&mut waits).now_or_never().is_none());
        drop(mine);
        drop(waits.now_or_never().unwrap().unwrap());
    }

    #[test]
    fn several_changes_get_leave_at_once_or_not_at_all() {
        let changes = Arc::<Changes>::default();
        let (a, b) = (table("a"), table("b"));
        let both = |changes: &Arc<Changes>| {
            let read = |name| Arc::new(reading(changes, &["a", "b"], name));
            vec![(read("a"), table("a")), (read("b"), table("b"))]
        };
        let (one, other) = (both(&changes), both(&changes));
        let first = publish_all(&one).now_or_never().unwrap().unwrap();
        let mut second = Box::pin(publish_all(&other));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        let error = second.now_or_never().unwrap().err().unwrap();
        assert_eq!(error.sqlstate(), "40001");
        let state = changes.state.lock();
        assert!(!state.publishing.contains_key(&a) && !state.publishing.contains_key(&b));
    }

    #[test]
    fn writers_that_read_other_tables_do_not_mind_each_other() {
        let changes = Arc::<Changes>::default();
        let (one, other) = (reading(&changes, &["x"], "a"), reading(&changes, &["y"], "a"));
        let first = one.publish(&table("a")).now_or_never().unwrap().unwrap();
        let second = other.publish(&table("a")).now_or_never().unwrap().unwrap();
        drop((first, second));
        assert!(changes.state.lock().publishing.is_empty());
    }
}
