//! What the sessions of one round share.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;
use stoa_error::{Error, Result};
use tokio::sync::watch;

use super::counter::CounterHistory;
use super::link::{Clock, Link, Ran};
use super::names::NameHistory;
use super::op::{Span, wrong};
use super::set::SetHistory;
use crate::write::ServerAddress;

/// Accounts of the bank, and what each has at first.
pub(crate) const ACCOUNTS: i64 = 8;
pub(crate) const AT_FIRST: i64 = 1000;

/// Counters.
pub(crate) const COUNTERS: i64 = 3;

/// One round: its tables, and what is known of them.
pub(crate) struct Round {
    pub number: u64,
    pub clock: Clock,
    pub servers: Vec<ServerAddress>,
    pub stop: watch::Sender<bool>,
    pub rows: Mutex<SetHistory>,
    pub counters: Mutex<CounterHistory>,
    pub names: Vec<Name>,
    /// Rows that transactions added to two tables.
    pub twins: Mutex<Vec<(i64, Span)>>,
    /// The first thing that no history is needed for to be wrong.
    pub broken: Mutex<Option<Error>>,
    /// Whether a server may make errors up.
    pub is_faulty: bool,
    /// Whether statements read no other rows than they change.
    pub is_plain: bool,
    next_row: AtomicI64,
    statements: AtomicU64,
    statements_max: u64,
}

/// A name under which tables come and go.
pub(crate) struct Name {
    pub name: String,
    pub is_cells: bool,
    pub history: Mutex<NameHistory>,
    /// The table that is read in the end, for each life; none of one that was dropped.
    pub kept: Mutex<Vec<Option<String>>>,
    /// Counts changes of the name that are done, and writes.
    pub changes: watch::Sender<u64>,
    pub writes: watch::Sender<u64>,
}

impl Name {
    fn new(name: String, is_cells: bool) -> Self {
        Self {
            name,
            is_cells,
            history: Mutex::default(),
            kept: Mutex::default(),
            changes: watch::Sender::new(0),
            writes: watch::Sender::new(0),
        }
    }
}

impl Round {
    pub(crate) fn new(
        number: u64,
        servers: Vec<ServerAddress>,
        statements_max: u64,
        is_faulty: bool,
        is_plain: bool,
    ) -> Self {
        let names = ["d", "e"].map(|name| Name::new(format!("{name}_{number}"), false));
        let cells = Name::new(format!("h_{number}"), true);
        Self {
            number,
            clock: Clock::start(),
            servers,
            stop: watch::Sender::new(false),
            rows: Mutex::default(),
            counters: Mutex::new(CounterHistory {
                keys: (0..COUNTERS).collect(),
                ..CounterHistory::default()
            }),
            names: names.into_iter().chain([cells]).collect(),
            twins: Mutex::default(),
            broken: Mutex::default(),
            is_faulty,
            is_plain,
            next_row: AtomicI64::new(1),
            statements: AtomicU64::new(0),
            statements_max,
        }
    }

    /// The name of one of the round's tables.
    pub(crate) fn table(&self, kind: &str) -> String {
        format!("{kind}_{}", self.number)
    }

    /// Numbers for so many new rows, which nobody else has.
    pub(crate) fn new_rows(&self, count: i64) -> Vec<i64> {
        let first = self.next_row.fetch_add(count, Ordering::Relaxed);
        (first..first + count).collect()
    }

    /// Counts a statement, and notes one that ended as none may end.
    pub(crate) fn noted<T>(&self, ran: &Ran<T>, what: &str) {
        let before = self.statements.fetch_add(1, Ordering::Relaxed);
        if before + 1 >= self.statements_max {
            self.stop.send_replace(true);
        }
        if ran.is_bug() && !self.is_faulty {
            self.is_broken(wrong(format!("{what} ended with {}", ran.code)));
        }
    }

    /// Notes that something cannot be, and ends the round.
    pub(crate) fn is_broken(&self, error: Error) {
        self.broken.lock().get_or_insert(error);
        self.stop.send_replace(true);
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.stop.borrow()
    }

    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Makes the round's tables and brings their first rows into files.
    ///
    /// # Errors
    /// Unavailable where a statement fails.
    pub(crate) async fn prepare(&self, link: &Link) -> Result<()> {
        let busy = "TBLPROPERTIES ('stoa.flush-rows' = '100', 'stoa.flush-age-ms' = '50')";
        let [s, p, k, c, b] = ["s", "p", "k", "c", "b"].map(|kind| self.table(kind));
        for table in [&s, &p, &k, &c, &b] {
            link.must(&format!(
                "CREATE TABLE {table} (k BIGINT NOT NULL, v BIGINT) ORDER BY (k) {busy}"
            ))
            .await?;
        }
        let values = |count: i64, value: i64| {
            (0..count).map(|k| format!("({k}, {value})")).collect::<Vec<_>>().join(", ")
        };
        link.must(&format!("INSERT INTO {c} VALUES {}", values(COUNTERS, 0))).await?;
        link.must(&format!("INSERT INTO {b} VALUES {}", values(ACCOUNTS, AT_FIRST))).await?;
        for table in [&c, &b] {
            link.must(&format!("FLUSH TABLE {table}")).await?;
        }
        Ok(())
    }
}
