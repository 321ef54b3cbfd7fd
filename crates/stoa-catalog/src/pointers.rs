//! Pointers that were read and are still true.
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

/// Names whose pointers are remembered.
const POINTERS_MAX: usize = 10_000;

/// Known pointers of one database.
pub(crate) struct Pointers(Mutex<Known>);

struct Known {
    /// `None` where it cannot be opened: then nothing is remembered.
    connection: Option<Connection>,
    version: i64,
    pointers: HashMap<TableIdent, String>,
}

impl Pointers {
    /// Of the database `file`, which exists.
    pub(crate) fn of(file: &Path) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags);
        if let Err(error) = &connection {
            tracing::warn!(%error, "every report will ask the catalog for its table");
        }
        let known =
            Known { connection: connection.ok(), version: i64::MIN, pointers: HashMap::new() };
        Self(Mutex::new(known))
    }

    /// The pointer of `ident` if it is known, and the version of the database to be given to
    /// [`Self::put`] if not; `None` where nothing can be remembered.
    pub(crate) fn get(&self, ident: &TableIdent) -> Option<Result<String, i64>> {
        let mut known = self.0.lock();
        let version = known.version_now()?;
        if version != known.version {
            known.version = version;
            known.pointers.clear();
        }
        Some(known.pointers.get(ident).cloned().ok_or(version))
    }

    /// Remembers a pointer that was read after `version` was.
    pub(crate) fn put(&self, ident: &TableIdent, pointer: &str, version: i64) {
        let mut known = self.0.lock();
        if known.version == version && known.pointers.len() < POINTERS_MAX {
            known.pointers.insert(ident.clone(), pointer.to_owned());
        }
    }
}

impl Known {
    fn version_now(&self) -> Option<i64> {
        let mut statement = self.connection.as_ref()?.prepare_cached("PRAGMA data_version").ok()?;
        statement.query_row([], |row| row.get(0)).ok()
    }
}

impl std::fmt::Debug for Pointers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pointers").field("known", &self.0.lock().pointers.len()).finish()
    }
}
