//! What PostgreSQL has answered, for while it is away.
//!
//! In: answers, each with the moment at which its question was sent. Out: the same answers.
//! **Invariants:** what comes out was asked for at most [`STALE_MAX`] ago; nothing that was asked for
//! before [`Memory::forget_all`] comes out after it, nor what this process has changed since.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use parking_lot::Mutex;
use stoa_env::timer::{self, Instant};

use crate::TableIdent;
use crate::database::{Row, Statement};
use crate::relation::Relation;

/// For so long an answer may stand in for one that PostgreSQL does not give. Then reads are refused.
pub(super) const STALE_MAX: Duration = Duration::from_secs(600);

/// Names whose pointers are remembered.
const RELATIONS_MAX: usize = 10_000;

/// Other reads that are remembered, such as listings and the policy, and the rows that each may have.
const READS_MAX: usize = 256;
const ROWS_MAX: usize = 200_000;

#[derive(Default)]
pub(super) struct Memory(Mutex<State>);

#[derive(Default)]
struct State {
    /// Counts the times at which something was forgotten.
    forgotten: u64,
    relations: HashMap<TableIdent, Remembered<Relation>>,
    /// Names whose pointers this process has moved and nobody has asked for since.
    moved: HashSet<TableIdent>,
    policy_version: Option<Remembered<i64>>,
    reads: HashMap<Vec<Statement>, Remembered<Vec<Vec<Row>>>>,
}

/// When a question was sent, and what had been forgotten by then.
#[derive(Clone, Copy)]
pub(super) struct Age {
    at: Instant,
    forgotten: u64,
}

struct Remembered<T> {
    value: T,
    at: Instant,
}

impl<T: Clone> Remembered<T> {
    fn get(&self) -> Option<T> {
        (self.at.elapsed() < STALE_MAX).then(|| self.value.clone())
    }
}

impl Memory {
    /// Of an answer to a question that is sent after this.
    pub(super) fn age(&self) -> Age {
        Age { at: timer::now(), forgotten: self.0.lock().forgotten }
    }

    pub(super) fn relation(&self, ident: &TableIdent) -> Option<Relation> {
        self.0.lock().relations.get(ident)?.get()
    }

    pub(super) fn policy_version(&self) -> Option<i64> {
        self.0.lock().policy_version.as_ref()?.get()
    }

    pub(super) fn rows(&self, queries: &Vec<Statement>) -> Option<Vec<Vec<Row>>> {
        self.0.lock().reads.get(queries)?.get()
    }

    /// The names that are remembered, and those that are to be.
    pub(super) fn names(&self) -> Vec<TableIdent> {
        let state = self.0.lock();
        state.relations.keys().chain(&state.moved).cloned().collect()
    }

    /// What each name stands for, `None` where it is nothing.
    pub(super) fn put_relations(
        &self,
        found: impl Iterator<Item = (TableIdent, Option<Relation>)>,
        policy_version: i64,
        age: Age,
    ) {
        let mut state = self.0.lock();
        if state.forgotten != age.forgotten {
            return;
        }
        state.policy_version = Some(Remembered { value: policy_version, at: age.at });
        for (ident, relation) in found {
            state.moved.remove(&ident);
            let Some(value) = relation else {
                state.relations.remove(&ident);
                continue;
            };
            if state.relations.len() >= RELATIONS_MAX && !state.relations.contains_key(&ident) {
                let any = state.relations.keys().next().cloned();
                any.and_then(|any| state.relations.remove(&any));
            }
            state.relations.insert(ident, Remembered { value, at: age.at });
        }
    }

    pub(super) fn put_rows(&self, queries: Vec<Statement>, found: &[Vec<Row>], age: Age) {
        let mut state = self.0.lock();
        let rows: usize = found.iter().map(Vec::len).sum();
        if state.forgotten != age.forgotten || rows > ROWS_MAX {
            return;
        }
        if state.reads.len() >= READS_MAX && !state.reads.contains_key(&queries) {
            let oldest = state.reads.iter().min_by_key(|(_, read)| read.at);
            let oldest = oldest.map(|(queries, _)| queries.clone());
            oldest.and_then(|oldest| state.reads.remove(&oldest));
        }
        state.reads.insert(queries, Remembered { value: found.to_vec(), at: age.at });
    }

    /// Forgets the pointers of these names. They are asked for again when what is remembered is kept up to date.
    pub(super) fn forget_relations(&self, idents: &[&TableIdent]) {
        let mut state = self.0.lock();
        state.forgotten += 1;
        for ident in idents {
            state.relations.remove(*ident);
            if state.moved.len() < RELATIONS_MAX {
                state.moved.insert((*ident).clone());
            }
        }
    }

    /// Forgets everything but pointers.
    pub(super) fn forget_reads(&self) {
        let mut state = self.0.lock();
        state.forgotten += 1;
        state.policy_version = None;
        state.reads.clear();
    }

    /// Forgets everything, answers that are under way among it.
    pub(super) fn forget_all(&self) {
        let mut state = self.0.lock();
        *state = State { forgotten: state.forgotten + 1, ..State::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelationKind;

    fn relation(location: &str) -> Option<Relation> {
        Some(Relation { kind: RelationKind::Table, location: location.to_owned() })
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_refused_when_it_is_old_or_was_forgotten() {
        let (memory, t, u) =
            (Memory::default(), TableIdent::new("a", "t"), TableIdent::new("a", "u"));
        let both = || [(t.clone(), relation("1")), (u.clone(), relation("2"))].into_iter();
        memory.put_relations(both(), 7, memory.age());
        timer::sleep(STALE_MAX - Duration::from_secs(1)).await;
        assert_eq!((memory.relation(&t), memory.policy_version()), (relation("1"), Some(7)));
        timer::sleep(Duration::from_secs(1)).await;
        assert_eq!((memory.relation(&t), memory.policy_version()), (None, None));

        let age = memory.age();
        memory.forget_relations(&[&t]);
        memory.put_relations(both(), 7, age);
        assert_eq!(memory.relation(&t), None, "asked for before it was forgotten");
        memory.put_relations(both(), 7, memory.age());
        memory.forget_relations(&[&t]);
        assert_eq!((memory.relation(&t), memory.relation(&u)), (None, relation("2")));
        let mut names = memory.names();
        names.sort_unstable();
        assert_eq!(names, [t.clone(), u.clone()], "what was moved is asked for again");
        memory.put_relations([(t.clone(), None)].into_iter(), 7, memory.age());
        assert_eq!(memory.names(), std::slice::from_ref(&u));
        memory.put_relations([(u.clone(), None)].into_iter(), 7, memory.age());
        assert_eq!(memory.relation(&u), None);
        memory.forget_all();
        assert_eq!(memory.policy_version(), None);
    }
}
