//! What was read and is still true: pointers, and the version of the policy.
//!
//! SQLite tells a connection whether others have committed since it last asked (`PRAGMA
//! data_version`), which costs a few microseconds and no I/O: what was read before is true as long
//! as that number stays. A connection of its own asks, so that every change counts, this process's
//! own among them.

use std::collections::HashMap;
use std::path::Path;

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};

use crate::TableIdent;
use crate::relation::Relation;

/// Names whose pointers are remembered.
const RELATIONS_MAX: usize = 10_000;

/// What is known of one catalog of a database.
pub(crate) struct RememberedPointers(Mutex<State>);

struct State {
    /// `None` where it cannot be opened: then nothing is remembered.
    connection: Option<Connection>,
    version: i64,
    relations: HashMap<TableIdent, Relation>,
    policy_version: Option<i64>,
}

impl RememberedPointers {
    /// Of the database `file`, which exists.
    pub(crate) fn of(file: &Path) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags);
        if let Err(error) = &connection {
            tracing::warn!(%error, "every report will ask the catalog for its table");
        }
        Self(Mutex::new(State {
            connection: connection.ok(),
            version: i64::MIN,
            relations: HashMap::new(),
            policy_version: None,
        }))
    }

    /// What `ident` is if it is known, and the version of the database to be given to
    /// [`Self::put_relation`] if not; `None` where nothing can be remembered.
    pub(crate) fn relation(&self, ident: &TableIdent) -> Option<Result<Relation, i64>> {
        let mut state = self.0.lock();
        let version = state.keep_what_is_true()?;
        Some(state.relations.get(ident).cloned().ok_or(version))
    }

    /// Remembers a relation that was read after `version` was.
    pub(crate) fn put_relation(&self, ident: &TableIdent, relation: &Relation, version: i64) {
        let mut state = self.0.lock();
        if state.version == version && state.relations.len() < RELATIONS_MAX {
            state.relations.insert(ident.clone(), relation.clone());
        }
    }

    /// The version of the policy, in the same way.
    pub(crate) fn policy_version(&self) -> Option<Result<i64, i64>> {
        let mut state = self.0.lock();
        let version = state.keep_what_is_true()?;
        Some(state.policy_version.ok_or(version))
    }

    /// Remembers a version of the policy that was read after `version` was.
    pub(crate) fn put_policy_version(&self, policy_version: i64, version: i64) {
        let mut state = self.0.lock();
        if state.version == version {
            state.policy_version = Some(policy_version);
        }
    }
}

impl State {
    /// Forgets everything if anybody has committed; gives back the version of the database.
    fn keep_what_is_true(&mut self) -> Option<i64> {
        let version = self.version_now()?;
        if version != self.version {
            self.version = version;
            self.relations.clear();
            self.policy_version = None;
        }
        Some(version)
    }

    fn version_now(&self) -> Option<i64> {
        let mut statement = self.connection.as_ref()?.prepare_cached("PRAGMA data_version").ok()?;
        statement.query_row([], |row| row.get(0)).ok()
    }
}

impl std::fmt::Debug for RememberedPointers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RememberedPointers").field("known", &self.0.lock().relations.len()).finish()
    }
}
