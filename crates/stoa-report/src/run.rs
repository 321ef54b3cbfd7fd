//! Running a report: prune, look up, read what is missing, select, sum.

use std::ops::RangeInclusive;
use std::sync::Arc;

use stoa_error::Result;
use stoa_ingest::FreshRows;
use stoa_rangeio::ReadMetrics;
use stoa_table::Table;

use crate::aggregate::Groups;
use crate::memory::{Memory, Taken, Uncounted};
use crate::outcome::{Answer, Missing, Outcome};
use crate::output::answer;
use crate::portion::{FileWork, next_portion};
use crate::position::{PartSet, Parting};
use crate::report::{Column, Report};
use crate::reports::Reports;
use crate::rows::Selection;
use crate::select::select;
use crate::sets::ValueSets;
use crate::view::{TableView, ViewFile};
use crate::whole::Wholes;
use crate::work::ReportWork;
use crate::zones::Zones;

/// Rows that are looked at before others have their turn: a millisecond's work.
const ROWS_AT_ONCE: usize = 1 << 20;

/// Rows that could be looked at in the time that one takes which is selected: it is put into its group, or
/// compared with others.
const SELECTED_COST: usize = 16;

/// Rows of a row group that are looked at without a pause; files with larger ones are the planner's.
pub(crate) const GROUP_ROWS_MAX: u32 = 1 << 18;

/// Row groups of a file from which on it is looked whether some count as a whole: that takes longer than to read a few.
const WHOLES_MIN: usize = 4;

/// Files of a report without conditions whose bounds are read in the hope that all row groups count as a whole.
const WHOLE_FILES_MAX: usize = 256;

/// Of what a report is answered.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) missing: Missing,
    /// The first sort column's field id, and the parts of the table whose row groups count; else all do.
    pub(crate) parts: Option<(i32, &'a PartSet)>,
}

/// The parts of a version whose row groups count, and how to tell.
struct Within<'a> {
    parts: &'a PartSet,
    parting: Parting,
    /// The parts in which the report reads.
    range: RangeInclusive<u32>,
    /// The condition on the first sort column whose bounds are looked at.
    condition: usize,
}

impl Reports {
    /// Answers `report` on one version of a table and the `fresh` rows that it lacks. `None` where it
    /// is beyond a bound of [`ReportOptions`](crate::ReportOptions), or must read files that are not ORC or have deleted
    /// rows.
    ///
    /// # Errors
    /// Those of reading the table's files, as a scan has them; `Conflict` where a file is
    /// overwritten again and again.
    pub async fn run(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
    ) -> Result<Option<Answer>> {
        self.run_within(table, fresh, report, &Uncounted).await
    }

    /// The same, with memory from `memory`; `None` also where that has too little. What it took stays taken:
    /// it is that of the answer.
    ///
    /// # Errors
    /// As [`Reports::run`].
    pub async fn run_within(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
        memory: &dyn Memory,
    ) -> Result<Option<Answer>> {
        if let Some(answer) = self.small(table, fresh, report) {
            return Ok(Some(answer));
        }
        match self.run_reading(table, fresh, report, memory, Missing::Read).await? {
            Outcome::Done(answer) => {
                self.keep_small(table, fresh, report, &answer.batch);
                Ok(Some(answer))
            }
            Outcome::Beyond | Outcome::Cold => Ok(None),
        }
    }

    /// The same, which tells why there is no answer, and reads no data files where `missing` says so. (The list of a
    /// version's files is read anyway.)
    ///
    /// # Errors
    /// As [`Reports::run`].
    pub async fn run_reading(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
        memory: &dyn Memory,
        missing: Missing,
    ) -> Result<Outcome> {
        self.run_in(table, fresh, report, memory, Scope { missing, parts: None }).await
    }

    pub(crate) async fn run_in(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
        memory: &dyn Memory,
        scope: Scope<'_>,
    ) -> Result<Outcome> {
        report.check()?;
        if report.rows_kept().is_some_and(|rows| rows > self.options.answer_rows_max) {
            return Ok(Outcome::Beyond);
        }
        let view = self.view(table).await?;
        let outcome = self.run_on(&view, table, fresh, report, memory, scope).await;
        match outcome.is_err().then(|| self.renewed(table, &view)).flatten() {
            Some(view) => self.run_on(&view, table, fresh, report, memory, scope).await,
            None => outcome,
        }
    }

    async fn run_on(
        &self,
        view: &TableView,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
        memory: &dyn Memory,
        scope: Scope<'_>,
    ) -> Result<Outcome> {
        let missing = scope.missing;
        let within = match scope.parts {
            // Boxed: few reports are parted.
            Some(parts) => match Box::pin(self.within(view, table, report, parts)).await? {
                Some(within) => Some(within),
                None => return Ok(Outcome::Beyond),
            },
            None => None,
        };
        let metrics = Arc::new(ReadMetrics::default());
        let mut work = ReportWork { files_total: view.files.len() as u64, ..ReportWork::default() };
        let Some(pieces) = self.plan_fresh(fresh, report, &mut work).await? else {
            return Ok(Outcome::Beyond);
        };
        let files = view.surviving(report);
        if !files.iter().all(|file| file.file.is_plain()) {
            return Ok(Outcome::Beyond);
        }
        work.files_read = files.len() as u64;
        let planned =
            self.plan(files, table, report, &metrics, &mut work, missing, within.as_ref()).await?;
        let (mut files, wholes) = match planned {
            Outcome::Done(planned) => planned,
            Outcome::Beyond => return Ok(Outcome::Beyond),
            Outcome::Cold => return Ok(Outcome::Cold),
        };
        let mut taken = Taken::new(memory, self.options.bytes_max);
        let mut groups = Groups::new(report, self.options.answer_rows_max);
        if let Some(wholes) = wholes
            && (!wholes.add_to(&mut groups) || !taken.resize(groups.memory_bytes()))
        {
            return Ok(Outcome::Beyond);
        }
        let sets = ValueSets::of(&report.conditions);
        let mut selection = Selection::default();
        let mut turn = Turn::default();
        while !groups.is_complete()
            && let Some(portion) = next_portion(&mut files, report)
        {
            let before = groups.memory_bytes();
            let sources = self
                .chunks(&portion, table, report, &metrics, &mut work, &mut taken, before, missing)
                .await?;
            let (sources, on_their_way) = match sources {
                Outcome::Done(sources) => sources,
                Outcome::Beyond => return Ok(Outcome::Beyond),
                Outcome::Cold => return Ok(Outcome::Cold),
            };
            for (place, chunks) in sources {
                let rows = place.rows as usize;
                turn.pass(rows).await;
                select(&report.conditions, &sets, &chunks, rows, &mut selection);
                let selected = selection.rows();
                work.rows_selected += selected.len() as u64;
                turn.add(selected.len());
                if !groups.add(chunks, &selected)
                    || !taken.resize(groups.memory_bytes() + on_their_way)
                {
                    return Ok(Outcome::Beyond);
                }
            }
        }
        for piece in &pieces {
            if groups.is_complete() {
                break;
            }
            turn.pass(piece.rows.len()).await;
            let chunks = self.fresh_chunks(fresh, piece, report)?;
            select(&report.conditions, &sets, &chunks, piece.rows.len(), &mut selection);
            let selected = selection.rows();
            work.rows_selected += selected.len() as u64;
            turn.add(selected.len());
            if !groups.add(chunks, &selected) || !taken.resize(groups.memory_bytes()) {
                return Ok(Outcome::Beyond);
            }
        }
        let counts = metrics.counts();
        (work.requests, work.bytes_read) = (counts.requests, counts.bytes_read);
        work.hedges = counts.hedges;
        self.cache.count(work.chunk_hits, work.chunk_misses);
        let Some(batch) = answer(report, &groups, &mut taken).await? else {
            return Ok(Outcome::Beyond);
        };
        drop(groups);
        // Less than before: there is that much.
        taken.resize(batch.get_array_memory_size());
        Ok(Outcome::Done(Answer { batch, work }))
    }

    async fn within<'a>(
        &self,
        view: &TableView,
        table: &Table,
        report: &Report,
        (first_sort_column, parts): (i32, &'a PartSet),
    ) -> Result<Option<Within<'a>>> {
        let conditions = || report.conditions_on(first_sort_column);
        let parting = self.parting(table, view, report, first_sort_column).await?;
        let found = conditions().next().zip(parting);
        Ok(found.map(|((condition, _), parting)| {
            let reads = parting.of_tests(conditions().map(|(_, condition)| &condition.test));
            let range = reads.first()..=reads.last();
            Within { parts, parting, range, condition }
        }))
    }

    /// Chooses row groups; beyond a bound where they have too many rows.
    async fn plan<'a>(
        &self,
        files: Vec<&'a ViewFile>,
        table: &Table,
        report: &'a Report,
        metrics: &Arc<ReadMetrics>,
        work: &mut ReportWork,
        missing: Missing,
        within: Option<&Within<'_>>,
    ) -> Result<Outcome<(Vec<FileWork<'a>>, Option<Wholes<'a>>)>> {
        let mut wholes = Wholes::of(report);
        let judged: Vec<&Column> =
            report.conditions.iter().map(|condition| &report.columns[condition.column]).collect();
        if judged.is_empty() {
            let rows: u64 = files.iter().map(|file| file.file.rows).sum();
            let is_listed = !report.grouped && report.limit.is_none();
            let listed_max = if is_listed { self.options.answer_rows_max as u64 } else { u64::MAX };
            let may_be_whole = wholes.is_some() && files.len() <= WHOLE_FILES_MAX;
            if rows > self.options.rows_max.min(listed_max) && !may_be_whole {
                return Ok(Outcome::Beyond);
            }
        }
        let known = self.zones(&files, table, &judged, metrics, missing).await?;
        let Some(known) = known else { return Ok(Outcome::Cold) };
        let mut planned = Vec::with_capacity(files.len());
        for (file, (tail, zones)) in files.into_iter().zip(known) {
            let mut groups = groups_that_may_match(report, &zones, tail.groups.len());
            if let Some(within) = within {
                let zones = zones.get(within.condition);
                groups.retain(|group| {
                    let zone = zones.and_then(|zones| zones.of_group(*group as usize));
                    // One that begins before what the report asks for, and has rows of it, is of the first part.
                    let part = within.parting.of_zone(zone);
                    within.parts.contains(part.clamp(*within.range.start(), *within.range.end()))
                });
            }
            work.row_groups_total += tail.groups.len() as u64;
            if let Some(wholes) = &mut wholes
                && groups.len() >= WHOLES_MIN
                && let Some(zones) =
                    self.zones_of_all(file, table, report, metrics, missing).await?
            {
                work.rows_selected += wholes.take(&mut groups, &tail, &zones);
            }
            work.row_groups_read += groups.len() as u64;
            let rows_of = |group: &u32| tail.groups[*group as usize].rows;
            if groups.iter().any(|group| rows_of(group) > GROUP_ROWS_MAX) {
                return Ok(Outcome::Beyond);
            }
            // All of them are in the tail: they were counted by it.
            let rows = groups.iter().map(|group| u64::from(rows_of(group)));
            work.rows_read += rows.sum::<u64>();
            if work.rows_read > self.options.rows_max {
                return Ok(Outcome::Beyond);
            }
            planned.push(FileWork { file, tail, groups });
        }
        Ok(Outcome::Done((planned, wholes.filter(|wholes| !wholes.is_empty()))))
    }

    /// Bounds of all columns of a report in a file; `None` where they are not in memory and are not to be read.
    async fn zones_of_all(
        &self,
        file: &ViewFile,
        table: &Table,
        report: &Report,
        metrics: &Arc<ReadMetrics>,
        missing: Missing,
    ) -> Result<Option<Vec<Arc<Zones>>>> {
        let columns: Vec<&Column> = report.columns.iter().collect();
        match self.known_zones(file.number, &columns) {
            Some((_, zones)) => Ok(Some(zones)),
            None if missing == Missing::Leave => Ok(None),
            // Boxed: as good as always they are in memory.
            None => {
                let read = Box::pin(self.read_zones(file, table, &columns, metrics)).await;
                read.map(|(_, zones)| Some(zones))
            }
        }
    }
}

/// How much was done since others on this thread had their turn.
#[derive(Default)]
struct Turn {
    rows: usize,
}

impl Turn {
    /// Before `rows` more are looked at: others have their turn if this one has lasted.
    async fn pass(&mut self, rows: usize) {
        if self.rows + rows > ROWS_AT_ONCE {
            tokio::task::yield_now().await;
            self.rows = 0;
        }
        self.rows += rows;
    }

    /// Counts rows that were selected.
    fn add(&mut self, selected: usize) {
        self.rows += selected * SELECTED_COST;
    }
}

/// Row groups of a file of `count`; `zones` are those of the conditions' columns.
fn groups_that_may_match(report: &Report, zones: &[Arc<Zones>], count: usize) -> Vec<u32> {
    let judged = || report.conditions.iter().map(|condition| &condition.test).zip(zones);
    let range = judged().fold(0..count, |range, (test, zones)| {
        let of_test = zones.range(test);
        range.start.max(of_test.start)..range.end.min(of_test.end)
    });
    let may_match = |group: &usize| judged().all(|(test, zones)| zones.may_match(*group, test));
    range.filter(may_match).map(|group| group as u32).collect()
}
