//! The temporary tables of one session: where they are and what they are called.
//!
//! Not here: how names in statements come to mean them (`session::temporary`), how they are dropped
//! (`statements::temporary`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use stoa_sql::temporary::{PREFIX, is_temporary};

/// Numbers of sessions, for the names of schemas.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Letters of a log's name that are part of a schema's.
const LOG_LETTERS: usize = 12;

/// What the schemas of a server's temporary tables begin with: no other server has the same log.
pub(crate) fn prefix_of(log: &str) -> String {
    let letters = log.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.take(LOG_LETTERS).collect();
    format!("{PREFIX}{}_", letters.to_ascii_lowercase())
}

/// What drops a schema, some time after it is called.
type DropLater = Box<dyn Fn(String) + Send + Sync>;

/// The temporary tables of one session. When this is dropped, so are they.
pub(crate) struct Temporary {
    schema: String,
    names: RwLock<BTreeSet<String>>,
    /// Those that are dropped when the transaction ends.
    ending: RwLock<BTreeSet<String>>,
    /// Whether the schema was made.
    is_made: AtomicBool,
    drop_later: DropLater,
}

impl fmt::Debug for Temporary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Temporary({})", self.schema)
    }
}

impl Temporary {
    /// None so far; their schema will begin with `prefix`.
    pub(crate) fn none(prefix: &str, drop_later: DropLater) -> Self {
        Self {
            schema: format!("{prefix}{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            names: RwLock::default(),
            ending: RwLock::default(),
            is_made: AtomicBool::new(false),
            drop_later,
        }
    }

    /// The schema in which they are.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// Whether the schema was made, or is being made.
    pub(crate) fn is_made(&self) -> bool {
        self.is_made.load(Ordering::Acquire)
    }

    /// Notes that the schema is made.
    pub(crate) fn note_made(&self) {
        self.is_made.store(true, Ordering::Release);
    }

    /// Forgets all: the schema was dropped.
    pub(crate) fn clear(&self) {
        self.is_made.store(false, Ordering::Release);
        self.names.write().clear();
    }

    /// Whether a schema may be shown to the session: others' temporary ones may not.
    pub(crate) fn shows(&self, schema: &str) -> bool {
        !is_temporary(schema) || schema == self.schema && self.is_made()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.read().is_empty()
    }

    /// Whether there is one of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.read().contains(name)
    }

    /// Adds a name.
    pub(crate) fn add(&self, name: &str) {
        self.names.write().insert(name.to_owned());
    }

    /// Notes that a table is dropped when the transaction ends.
    pub(crate) fn ends(&self, name: &str) {
        self.ending.write().insert(name.to_owned());
    }

    /// Takes those that are.
    pub(crate) fn take_ending(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.ending.write())
    }

    /// Removes a name; whether it was there.
    pub(crate) fn remove(&self, name: &str) -> bool {
        self.ending.write().remove(name);
        self.names.write().remove(name)
    }

    /// What plans depend on; `None` without temporary tables.
    pub(crate) fn context(&self) -> Option<String> {
        let names = self.names.read();
        match names.is_empty() {
            true => None,
            false => Some(format!("{} {names:?}", self.schema)),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if *self.is_made.get_mut() {
            (self.drop_later)(std::mem::take(&mut self.schema));
        }
    }
}
