//! Ended queries for days: all that failed, were cancelled or took long, and a sample of the others.
//!
//! In: what the registry's journal tells. Out: entries that a filter leaves, newest first. The newest are in memory,
//! all of them in files of JSON lines (`segments`) beside the catalog.
//!
//! **Invariants:** memory, disk and the age of entries are bounded. A disk that takes nothing costs entries, never a
//! query. Entries are as `/v1/queries` shows them, with the time at which the query ended: no text shows a password.

mod segments;

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stoa_env::{task, timer};
use stoa_error::{Error, Result};
use stoa_figures::{QUERIES, Viewer, members};
use stoa_query::{Engine, QueryInfo};
use tokio::sync::mpsc;

use segments::Segments;

/// Queries that took so long are all in the log.
const SLOW_US: u64 = 500_000;
/// Entries in memory.
const NEWEST_MAX: usize = 2000;
/// Entries that are written at once.
const WRITTEN_AT_ONCE: usize = 512;

/// One ended query.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    pub(crate) ended_unix_ms: i64,
    /// As in `/v1/queries`.
    #[serde(flatten)]
    pub(crate) query: Map<String, Value>,
}

impl Entry {
    fn new(query: &QueryInfo) -> Self {
        let ended_unix_ms = query.started_unix_ms.saturating_add_unsigned(query.elapsed_us / 1000);
        let viewer = Viewer { role: &query.user, is_superuser: false };
        Self { ended_unix_ms, query: members(&QUERIES, &stoa_figures::Query::from(query), viewer) }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.query.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, name: &str) -> f64 {
        self.query.get(name).and_then(Value::as_f64).unwrap_or_default()
    }

    /// Which query it is, over all starts of the server.
    fn key(&self) -> (u64, i64) {
        (self.number("id") as u64, self.ended_unix_ms)
    }
}

/// Which entries are asked for; `None` for any.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
    user: Option<String>,
    pool: Option<String>,
    protocol: Option<String>,
    /// One or more of `finished`, `failed`, `cancelled`, with commas between them.
    state: Option<String>,
    /// A part of the statement or of its error, in any case.
    text: Option<String>,
    min_ms: Option<f64>,
    /// Ended at this time or later, milliseconds since 1970-01-01 UTC.
    from: Option<i64>,
    /// Ended before this time.
    to: Option<i64>,
    /// Number of the query.
    id: Option<u64>,
    /// Most entries to list.
    #[serde(default = "most_default")]
    pub(crate) most: usize,
}

fn most_default() -> usize {
    200
}

impl Filter {
    fn leaves(&self, entry: &Entry) -> bool {
        let is = |wanted: &Option<String>, name| {
            wanted.as_deref().is_none_or(|wanted| wanted == entry.text(name))
        };
        let has_text = |text: &String| {
            let text = text.to_lowercase();
            ["sql", "error"].iter().any(|name| entry.text(name).to_lowercase().contains(&text))
        };
        is(&self.user, "user")
            && is(&self.pool, "pool")
            && is(&self.protocol, "protocol")
            && self
                .state
                .as_deref()
                .is_none_or(|all| all.split(',').any(|s| s == entry.text("state")))
            && self.min_ms.is_none_or(|least| entry.number("elapsed_ms") >= least)
            && self.from.is_none_or(|from| entry.ended_unix_ms >= from)
            && self.to.is_none_or(|to| entry.ended_unix_ms < to)
            && self.id.is_none_or(|id| entry.number("id") as u64 == id)
            && self.text.as_ref().is_none_or(has_text)
    }
}

/// The log of one server.
pub(crate) struct QueryLog {
    engine: Arc<Engine>,
    newest: Mutex<VecDeque<Arc<Entry>>>,
    segments: Option<Arc<Segments>>,
}

impl QueryLog {
    /// A log whose entries are also in `directory`, if there is one.
    pub(crate) fn new(engine: Arc<Engine>, directory: Option<PathBuf>) -> Self {
        let segments = directory.map(|directory| Arc::new(Segments::new(directory)));
        Self { engine, newest: Mutex::default(), segments }
    }

    /// Takes up what ends, until the task is ended.
    pub(crate) async fn run(self: Arc<Self>) {
        // Another server of the same engine may read it.
        let Some(mut journal) = self.engine.queries().journal(SLOW_US) else { return };
        loop {
            let mut ended = Vec::new();
            if journal.recv_many(&mut ended, WRITTEN_AT_ONCE).await == 0 {
                return;
            }
            let entries: Vec<_> = ended.iter().map(|query| Arc::new(Entry::new(query))).collect();
            self.remember(&entries);
            self.write(entries).await;
            self.wait_for_more(&journal).await;
        }
    }

    /// A write of many costs as much as one of a few.
    async fn wait_for_more(&self, journal: &mpsc::Receiver<QueryInfo>) {
        if journal.len() < WRITTEN_AT_ONCE {
            timer::sleep(Duration::from_millis(100)).await;
        }
    }

    fn remember(&self, entries: &[Arc<Entry>]) {
        let mut newest = self.newest.lock();
        for entry in entries {
            if newest.len() == NEWEST_MAX {
                newest.pop_front();
            }
            newest.push_back(Arc::clone(entry));
        }
    }

    async fn write(&self, entries: Vec<Arc<Entry>>) {
        let Some(segments) = self.segments.clone() else { return };
        let written = task::spawn_blocking(move || segments.append(&entries)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot write the log of queries"),
            Err(error) => tracing::error!(%error, "the log of queries was not written"),
        }
    }

    /// Entries that `filter` leaves and `is_seen` allows, newest first.
    ///
    /// # Errors
    /// Internal: the search ended in a panic.
    pub(crate) async fn search(
        &self,
        filter: Filter,
        is_seen: impl Fn(&Entry) -> bool + Send + 'static,
    ) -> Result<Vec<Arc<Entry>>> {
        let newest: Vec<Arc<Entry>> = self.newest.lock().iter().rev().cloned().collect();
        let segments = self.segments.clone();
        let search = move || {
            // What is in memory is on disk, too.
            let known: HashSet<_> = newest.iter().map(|entry| entry.key()).collect();
            let is_wanted = |entry: &Entry| filter.leaves(entry) && is_seen(entry);
            let mut found: Vec<_> =
                newest.iter().filter(|e| is_wanted(e)).take(filter.most).cloned().collect();
            // Entries before these are on disk only.
            let oldest = newest.last().map_or(i64::MAX, |entry| entry.ended_unix_ms);
            let is_all = filter.from.is_some_and(|from| from > oldest);
            if let Some(segments) = segments.filter(|_| found.len() < filter.most && !is_all) {
                let wanted = |entry: &Entry| is_wanted(entry) && !known.contains(&entry.key());
                found.extend(
                    segments
                        .newest_first(filter.from, wanted)
                        .take(filter.most - found.len())
                        .map(Arc::new),
                );
            }
            found
        };
        task::spawn_blocking(search)
            .await
            .map_err(|error| Error::internal("the log of queries was not read").with_source(error))
    }
}
