//! What clients were told, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};

use stoa_cluster::LogId;
use stoa_cluster::fresh::Seen;

use super::daemon::Answer;
use super::message::{Life, Row, Version};
use super::store::Store;

/// Clients that move between daemons.
pub const SESSIONS: u64 = 3;

#[derive(Default)]
pub struct Session {
    pub seen: Seen,
    /// Rows that it wrote or saw.
    rows: BTreeSet<Row>,
}

#[derive(Default)]
pub struct Ledger {
    writers: BTreeMap<Row, usize>,
    acknowledged: Vec<Row>,
    /// Rows written when everything had worked for long.
    must_end: Vec<Row>,
    pub sessions: [Session; SESSIONS as usize],
    shown: BTreeMap<(Life, LogId), u64>,
    reports: BTreeMap<u64, Life>,
    pub reads: u64,
}

impl Ledger {
    /// A row that a session is about to write.
    pub fn new_row(&mut self, session: usize) -> Row {
        let row = self.writers.len() as Row + 1;
        self.writers.insert(row, session);
        row
    }

    /// Nothing stands in the way of this row: it must be acknowledged by the end.
    pub fn must_end(&mut self, row: Row) {
        self.must_end.push(row);
    }

    /// How many rows have been acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.len()
    }

    /// A row is acknowledged: it must be in the log, or in the table.
    pub fn acknowledge(
        &mut self,
        (log, sequence, row): (LogId, u64, Row),
        store: &Store,
        version: &Version,
    ) -> Result<(), String> {
        let is_flushed = version.positions.get(&log).is_some_and(|position| *position >= sequence);
        let is_in_file = || rows_of(version, store).is_ok_and(|rows| rows.contains(&row));
        let is_kept = is_flushed
            || match version.retired.contains(&log) {
                true => is_in_file(),
                false => store.has(log, sequence),
            };
        if !is_kept {
            return Err(format!(
                "row {row} is acknowledged, but neither in {log} nor in the table"
            ));
        }
        self.acknowledged.push(row);
        if let Some(session) = self.writers.get(&row).and_then(|at| self.sessions.get_mut(*at)) {
            session.rows.insert(row);
            session.seen.add(&Seen { version: 0, logs: [(log, sequence)].into() });
        }
        Ok(())
    }

    /// A read was answered. `begun` rows had been acknowledged when it began, and it promised them all if
    /// `is_exact`.
    pub fn read(
        &mut self,
        session: usize,
        life: Life,
        answer: &Answer,
        store: &Store,
        exact: Option<usize>,
    ) -> Result<(), String> {
        self.reads += 1;
        let mut rows = rows_of(&answer.version, store)?;
        rows.extend(&answer.fresh);
        let rows = once(rows)?;
        for row in self.acknowledged.iter().take(exact.unwrap_or(0)) {
            if !rows.contains(row) {
                return Err(format!(
                    "an exact read misses row {row}, which was acknowledged before"
                ));
            }
        }
        for (log, to) in &answer.seen.logs {
            let shown = self.shown.entry((life, *log)).or_default();
            if to < shown {
                return Err(format!("what is shown of {log} goes back from {shown} to {to}"));
            }
            *shown = *to;
        }
        let Some(session) = self.sessions.get_mut(session) else { return Ok(()) };
        if let Some(row) = session.rows.iter().find(|row| !rows.contains(row)) {
            return Err(format!("a session misses row {row}, which it wrote or saw before"));
        }
        session.rows.extend(rows);
        session.seen.add(&answer.seen);
        Ok(())
    }

    pub fn report_begins(&mut self, life: Life) -> u64 {
        let report = self.reports.len() as u64 + 1;
        self.reports.insert(report, life);
        report
    }

    pub fn report_ends(&mut self, report: u64, is_answered: bool) -> Result<(), String> {
        self.reports.insert(report, 0);
        match is_answered {
            true => Ok(()),
            false => Err(format!("report {report} failed though its daemon lives")),
        }
    }

    /// After all faults: every acknowledged row is there once, every report was answered.
    pub fn end(&self, answer: &Answer, store: &Store, lives: &[Life]) -> Result<(), String> {
        let mut rows = rows_of(&answer.version, store)?;
        rows.extend(&answer.fresh);
        let rows = once(rows)?;
        if let Some(row) = self.acknowledged.iter().find(|row| !rows.contains(row)) {
            return Err(format!("row {row} was acknowledged and is lost"));
        }
        if let Some(row) = self.must_end.iter().find(|row| !self.acknowledged.contains(row)) {
            return Err(format!("row {row} was never acknowledged though everything works"));
        }
        let seen = self.sessions.iter().flat_map(|session| &session.rows);
        if let Some(row) = seen.into_iter().find(|row| !rows.contains(row)) {
            return Err(format!("row {row} was shown and is lost"));
        }
        match self.reports.iter().find(|(_, life)| lives.contains(life)) {
            Some((report, _)) => Err(format!("report {report} was never answered")),
            None => Ok(()),
        }
    }
}

/// The rows of a version's files.
pub fn rows_of(version: &Version, store: &Store) -> Result<Vec<Row>, String> {
    let mut rows = vec![];
    for file in &version.files {
        let missing = || format!("file {file:#x} of version {} was deleted", version.number);
        rows.extend(store.files.get(file).ok_or_else(missing)?);
    }
    Ok(rows)
}

fn once(rows: Vec<Row>) -> Result<BTreeSet<Row>, String> {
    let mut found = BTreeSet::new();
    match rows.into_iter().find(|row| !found.insert(*row)) {
        Some(row) => Err(format!("row {row} is shown twice")),
        None => Ok(found),
    }
}
