//! Fresh rows of other daemons: copies of their logs' records, as far as these send them.
//!
//! In: records of a log in order, how far that log is durable, what is in files by now. Out: the fresh
//! rows that readers of a table add, beside those of this daemon's own log.
//!
//! ```text
//! owner of a log                       this daemon
//!   record s ────────────────────────► decoded, kept, not shown
//!   "durable to s" ──────────────────► shown ─► "shown to s" ─► the owner acknowledges
//!   "table t is in files before p" ──► rows before p go
//! ```
//!
//! Positions are those of the other log. A copy begins where the owner's files end; a reader who read
//! a table's version before the copy began reads it again (`generation`).
//!
//! **Invariants:** a row is shown only once it is durable; what is shown never becomes less, until it is in files;
//! all logs' ends are read at one moment ([`Copies::ends`]), so that no row is shown without one that was
//! acknowledged before it came. Where flushes of the other daemon end is not known here, so chunks that are
//! merged can be divided between any two records.
//!
//! Not here: who sends, and whether this daemon may answer (`stoa-cluster`).

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use stoa_env::Env;
use stoa_table::TableIdent;
use uuid::Uuid;

use crate::fresh::Fresh;

/// How long a forgotten log sends readers of older versions back: longer than the catalog remembers versions while
/// its database is away.
const RETIRED_KEPT: Duration = Duration::from_secs(900);

/// A table with rows of this log, for those who keep copies of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShippedTable {
    /// Its identity.
    pub uuid: Uuid,
    /// Its name, as it was last seen.
    pub ident: TableIdent,
    /// All of its rows before this position are in files.
    pub in_files_before: u64,
}

/// Part of another daemon's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPart {
    /// The log.
    pub log: String,
    /// Everything up to this sequence, inclusive, is in files.
    pub base: u64,
    /// The sequence of the first record.
    pub from: u64,
    /// Records, one after another.
    pub records: Vec<Bytes>,
    /// Everything up to this sequence, inclusive, is durable.
    pub durable: u64,
    /// The tables that the log has rows of.
    pub tables: Vec<ShippedTable>,
}

/// Is shown rows of other daemons.
pub trait CopyWatch: Send + Sync {
    /// Rows of any table, before readers are shown them.
    fn copied(&self, rows: &RecordBatch);
}

/// How far the copy of a log has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStatus {
    /// Readers are shown everything up to this sequence, inclusive.
    pub shown: u64,
    /// Everything up to this sequence, inclusive, was received or is in files.
    pub has: u64,
}

/// Copies of other daemons' logs.
#[derive(Default)]
pub(crate) struct Copies {
    logs: RwLock<BTreeMap<String, Arc<Copy>>>,
    /// Locked before `logs`.
    retired: Mutex<Retired>,
    /// Raised when a reader who began before may miss rows.
    generation: AtomicU64,
    /// Held while an end is moved, or all are read.
    moving: Mutex<()>,
}

/// Logs that get no more rows and have all of them in files.
#[derive(Default)]
struct Retired {
    /// Their ids do not come back.
    all: HashSet<String>,
    /// Those whose copies, without rows, still send readers of older versions back.
    kept: VecDeque<(Instant, String)>,
}

/// The copy of one log.
pub(crate) struct Copy {
    log: String,
    /// The first sequence that is not shown.
    shown: AtomicU64,
    tables: RwLock<HashMap<Uuid, Arc<Fresh>>>,
    pub(crate) receiving: tokio::sync::Mutex<Receiving>,
}

/// What has come of a log.
#[derive(Default)]
pub(crate) struct Receiving {
    /// The first sequence that has not come.
    pub(crate) next: u64,
    /// The first that is not durable.
    pub(crate) durable: u64,
    /// Schemas by table and id; `None` of a table that is gone.
    pub(crate) schemas: HashMap<(Uuid, i32), Option<SchemaRef>>,
}

/// A copy's rows of one table.
#[derive(Clone)]
pub(crate) struct CopiedTable {
    pub(crate) log: Arc<Copy>,
    pub(crate) fresh: Arc<Fresh>,
}

impl Copies {
    /// Whether there are none, which is so outside of a cluster.
    pub(crate) fn is_empty(&self) -> bool {
        self.logs.read().is_empty()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// The copied rows of a table, by log.
    pub(crate) fn of(&self, table: Uuid) -> Vec<CopiedTable> {
        let logs = self.logs.read();
        let found = logs.values().filter_map(|log| {
            let fresh = log.tables.read().get(&table).cloned()?;
            Some(CopiedTable { log: log.clone(), fresh })
        });
        found.collect()
    }

    /// Calls `read` while no end of a copy moves: [`Copy::end`] of all are of one moment.
    pub(crate) fn ends<T>(&self, read: impl FnOnce() -> T) -> T {
        let _held = self.moving.lock();
        read()
    }

    /// The copy of a log, begun if there is none; `None` for a log that was forgotten.
    pub(crate) fn log(&self, id: &str) -> Option<Arc<Copy>> {
        let retired = self.retired.lock();
        if retired.all.contains(id) {
            return None;
        }
        if let Some(log) = self.logs.read().get(id) {
            return Some(log.clone());
        }
        let mut logs = self.logs.write();
        let new = || {
            Arc::new(Copy {
                log: id.to_owned(),
                shown: AtomicU64::new(0),
                tables: RwLock::default(),
                receiving: tokio::sync::Mutex::default(),
            })
        };
        Some(logs.entry(id.to_owned()).or_insert_with(new).clone())
    }

    pub(crate) fn raise_generation(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Rows and bytes of all copies.
    pub(crate) fn totals(&self) -> (u64, usize) {
        let logs: Vec<_> = self.logs.read().values().cloned().collect();
        let (mut rows, mut bytes) = (0, 0);
        for log in logs {
            for fresh in log.tables.read().values() {
                let totals = fresh.totals();
                rows += totals.rows;
                bytes += totals.bytes;
            }
        }
        (rows, bytes)
    }

    /// Forgets a log whose rows are all in files, as of `now`. What is still under way from its owner is refused.
    pub(crate) fn remove(&self, log: &str, now: Instant) {
        let mut retired = self.retired.lock();
        if retired.all.insert(log.to_owned()) {
            retired.kept.push_back((now, log.to_owned()));
        }
        let is_old = |(at, _): &mut (Instant, String)| now.duration_since(*at) > RETIRED_KEPT;
        while let Some((_, old)) = retired.kept.pop_front_if(is_old) {
            self.logs.write().remove(&old);
        }
        if let Some(copy) = self.logs.read().get(log) {
            let tables = copy.tables.read();
            tables.values().for_each(|fresh| fresh.retire(copy.end()));
        }
        self.raise_generation();
    }
}

impl Copy {
    pub(crate) fn log(&self) -> &str {
        &self.log
    }

    /// Shows everything before `end`.
    pub(crate) fn show(&self, copies: &Copies, end: u64) {
        copies.ends(|| self.shown.store(end, Ordering::SeqCst));
    }

    /// Drops the rows of a table before `position`, which are in files. Readers of older versions are sent back,
    /// also where none of these rows has come here.
    pub(crate) fn committed(&self, copies: &Copies, env: &Env, table: Uuid, position: u64) {
        if position > 0 {
            self.table(copies, env, table).committed(position);
        }
    }

    /// Merges what is shown of small records.
    pub(crate) fn merge(&self, end: u64) {
        for fresh in self.tables.read().values() {
            fresh.merge_copies(end);
        }
    }

    /// The first position that is not shown.
    pub(crate) fn end(&self) -> u64 {
        self.shown.load(Ordering::SeqCst)
    }

    pub(crate) fn status(&self, receiving: &Receiving) -> CopyStatus {
        CopyStatus { shown: self.end().saturating_sub(1), has: receiving.next.saturating_sub(1) }
    }

    /// The copied rows of a table, made if there are none yet.
    pub(crate) fn table(&self, copies: &Copies, env: &Env, table: Uuid) -> Arc<Fresh> {
        if let Some(fresh) = self.tables.read().get(&table) {
            return fresh.clone();
        }
        let mut tables = self.tables.write();
        let fresh = tables.entry(table).or_insert_with(|| {
            // Who looks for the table's copies now and has not found this one looks again.
            copies.raise_generation();
            Arc::new(Fresh::new(env.clone()))
        });
        fresh.clone()
    }
}
