//! Texts of the simple protocol that come again and again, such as `SELECT 1` of a connection pool.
//!
//! In: a text. Out: the statement that it was the last time. Only statements without tables are kept
//! ([`Prepared::reads_nothing`](stoa_query::Prepared::reads_nothing)): with them, only the session's settings can change
//! what a text means, and a session knows its settings. Statements with tables are kept by form (`stoa-query`).

use std::sync::Arc;

use stoa_query::Session;

use crate::statement::{Plan, SharedStatement};

/// How many are kept.
const TEXTS_MAX: usize = 8;

/// Longer texts are not kept, bytes.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// The newest is the last.
#[derive(Default)]
pub(crate) struct Recent(Vec<(Box<str>, SharedStatement)>);

impl Recent {
    /// The statement of a text, if it still means the same to `session`.
    pub(crate) fn find(&mut self, text: &str, session: &Session) -> Option<SharedStatement> {
        let place = self.0.iter().rposition(|(known, _)| **known == *text)?;
        let (_, statement) = self.0.get(place)?;
        match &statement.plan {
            Plan::Engine(prepared) if session.means_the_same(prepared) => {
                Some(Arc::clone(statement))
            }
            _ => {
                self.0.remove(place);
                None
            }
        }
    }

    /// Keeps a statement that was just planned, if it is of those that are kept; the oldest one goes.
    pub(crate) fn keep(&mut self, text: &str, statement: &SharedStatement) {
        let Plan::Engine(prepared) = &statement.plan else { return };
        if text.len() > TEXT_BYTES_MAX || !prepared.reads_nothing() {
            return;
        }
        if self.0.len() == TEXTS_MAX {
            self.0.remove(0);
        }
        self.0.push((text.into(), Arc::clone(statement)));
    }
}
