//! Whether the catalog's database answers.

use std::time::SystemTime;

/// What is known of the database now. Cheap to ask for: nothing is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogState {
    /// Whether it answered when it was last asked. While it does not, reads are answered from memory
    /// and changes wait.
    pub reachable: bool,
    /// Since when that is so.
    pub since: SystemTime,
    /// Until when reads are answered from memory; `None` while the database is reachable.
    pub remembered_until: Option<SystemTime>,
    /// What the last failure was, whether or not it is over.
    pub last_error: Option<String>,
    /// How often the database came back.
    pub reconnections: u64,
    /// Reads of pointers and of the version of the policy that were sent to PostgreSQL.
    pub reads_asked: u64,
    /// Those that were not, since nobody had changed anything.
    pub reads_known: u64,
}
