//! Markers, versions, ages, counters: which versions of a cell are seen.

use std::ops::Range;

use stoa_error::{Error, ErrorKind, Result};

use super::BUFFER_BYTES_MAX;
use super::counter::Counter;
use super::reader::Compaction;
use super::rules::Rules;
use super::selection::Selection;
use crate::batch::{CellBatch, CellBatchBuilder};
use crate::cell::{CellKind, CellRef, FamilyId};
use crate::pattern::Pattern;
use crate::scan::{KeyRange, RowPlace, ScanSpec, TimeRange};
use crate::time_text::push_integer;

/// Takes cells in their order and hands on those that are seen.
pub(super) struct Visibility {
    rules: Rules,
    ranges: Vec<KeyRange>,
    time: TimeRange,
    row_pattern: Option<Pattern>,
    max_versions: u32,
    return_deletes: bool,
    compaction: Option<Compaction>,
    /// Whether stretches without markers go through as they are.
    open: bool,
    row: Row,
    column: Column,
    past_end: bool,
}

/// Where we are: the row.
#[derive(Default)]
struct Row {
    key: Vec<u8>,
    started: bool,
    skip: bool,
    /// The range to ask for each cell.
    partly: Option<usize>,
    /// Cells that are not newer are hidden.
    deleted: Option<i64>,
    /// Timestamp of the last marker of the row; a second one with it says nothing new.
    last_marker: Option<i64>,
}

/// Where we are: family and qualifier.
#[derive(Default)]
struct Column {
    family: FamilyId,
    qualifier: Vec<u8>,
    started: bool,
    wanted: bool,
    /// Conditions that speak of this column.
    asked: Vec<usize>,
    /// Cells of the family that are not newer are hidden.
    family_deleted: Option<i64>,
    /// Versions that are not newer are hidden.
    deleted: Option<i64>,
    /// The version with this timestamp is hidden.
    version_deleted: Option<i64>,
    /// The last marker; a second one that is equal says nothing new.
    last_marker: Option<(i64, CellKind)>,
    /// Timestamp of the last value; a second one with it was overwritten.
    last: Option<i64>,
    /// Versions seen so far, of all times and of the time asked for.
    versions: u32,
    versions_in_time: u32,
    counter: Counter,
    /// Versions to be turned round.
    kept: CellBatchBuilder,
}

impl Visibility {
    pub(super) fn of_query(rules: Rules, spec: &ScanSpec, open: bool) -> Self {
        Self {
            rules,
            ranges: spec.ranges.clone(),
            time: spec.time,
            row_pattern: spec.row_pattern.clone(),
            max_versions: spec.max_versions.unwrap_or(u32::MAX),
            return_deletes: spec.return_deletes,
            compaction: None,
            open,
            row: Row::default(),
            column: Column::default(),
            past_end: false,
        }
    }

    pub(super) fn of_compaction(rules: Rules, kind: Compaction, open: bool) -> Self {
        let keeps_markers = kind != Compaction::Full;
        let spec = ScanSpec { return_deletes: keeps_markers, ..ScanSpec::default() };
        Self { compaction: Some(kind), ..Self::of_query(rules, &spec, open) }
    }

    /// Whether no later cell can be seen.
    pub(super) fn is_past_end(&self) -> bool {
        self.past_end
    }

    /// Takes a stretch of a batch.
    pub(super) fn accept_run(
        &mut self,
        batch: &CellBatch,
        range: Range<usize>,
        has_deletes: bool,
        out: &mut Selection,
    ) -> Result<()> {
        let may_pass = self.open && !has_deletes;
        let mut at = range.start;
        while at < range.end && !(may_pass && self.is_clear_before(&batch.cell(at))) {
            self.accept(batch.cell(at), out)?;
            if self.past_end || out.limits.is_done() {
                return Ok(());
            }
            at += 1;
        }
        if at == range.end {
            return Ok(());
        }
        self.pass_run(batch, at..range.end, out)?;
        self.enter(batch.cell(range.end - 1));
        Ok(())
    }

    /// Tells that there are no more cells.
    pub(super) fn finish(&mut self, out: &mut Selection) -> Result<()> {
        self.end_column(out)?;
        out.end_row()
    }

    /// Hands on a stretch in which nothing is hidden but values that were written over.
    fn pass_run(&self, batch: &CellBatch, range: Range<usize>, out: &mut Selection) -> Result<()> {
        let times = batch.timestamps();
        let mut start = range.start;
        for at in range.start + 1..range.end {
            if times[at] != times[at - 1] || batch.cell(at).column() != batch.cell(at - 1).column()
            {
                continue;
            }
            out.limits.accept_all(batch, start..at)?;
            start = at + 1;
        }
        // A third one with the same timestamp left its start behind it.
        if start < range.end { out.limits.accept_all(batch, start..range.end) } else { Ok(()) }
    }

    /// Whether nothing seen so far has a say about `cell`.
    fn is_clear_before(&self, cell: &CellRef<'_>) -> bool {
        if self.row.key != cell.row {
            return true;
        }
        let Column { family_deleted, deleted, version_deleted, last, .. } = &self.column;
        let marked = self.row.deleted.or(*family_deleted).or(*deleted).or(*version_deleted);
        let same = self.column.family == cell.family && self.column.qualifier == cell.qualifier;
        marked.is_none() && !(same && *last == Some(cell.timestamp))
    }

    /// Makes `cell` the last one, after a stretch that was handed on.
    fn enter(&mut self, cell: CellRef<'_>) {
        let (row, column) = (&mut self.row, &mut self.column);
        row.key.clear();
        row.key.extend_from_slice(cell.row);
        row.started = true;
        row.skip = false;
        row.deleted = None;
        row.last_marker = None;
        column.family = cell.family;
        column.qualifier.clear();
        column.qualifier.extend_from_slice(cell.qualifier);
        column.started = true;
        // Where stretches are handed on, every column is wanted and no condition asks.
        column.wanted = true;
        column.family_deleted = None;
        column.deleted = None;
        column.version_deleted = None;
        column.last_marker = None;
        column.last = Some(cell.timestamp);
    }

    fn accept(&mut self, cell: CellRef<'_>, out: &mut Selection) -> Result<()> {
        if !self.row.started || self.row.key != cell.row {
            self.end_column(out)?;
            out.end_row()?;
            self.start_row(&cell);
        }
        if self.row.skip {
            return Ok(());
        }
        if cell.kind == CellKind::DeleteRow {
            self.row.deleted = self.row.deleted.max(Some(cell.timestamp));
            if self.is_settled(&cell)
                || self.row.last_marker.replace(cell.timestamp) == Some(cell.timestamp)
            {
                return Ok(());
            }
            return self.hand_on_marker(cell, true, out);
        }
        let column = &self.column;
        if !column.started || column.family != cell.family || column.qualifier != cell.qualifier {
            self.end_column(out)?;
            self.start_column(&cell);
        }
        if !self.rules.get(cell.family).read {
            return Ok(());
        }
        match cell.kind {
            CellKind::Insert => self.accept_value(cell, out),
            _ => self.accept_marker(cell, out),
        }
    }

    fn start_row(&mut self, cell: &CellRef<'_>) {
        self.row.key.clear();
        self.row.key.extend_from_slice(cell.row);
        self.row.started = true;
        self.row.deleted = None;
        self.row.last_marker = None;
        self.row.partly = None;
        self.column.started = false;
        self.column.family_deleted = None;
        let outside = !self.find_range(cell.row);
        let matches = |pattern: &Pattern| pattern.is_match(cell.row);
        self.row.skip = outside || !self.row_pattern.as_ref().is_none_or(matches);
    }

    /// Looks up in which range the row lies; false if in none.
    fn find_range(&mut self, row: &[u8]) -> bool {
        if self.ranges.is_empty() {
            return true;
        }
        let place = |range: &KeyRange| range.place_of(row);
        let first = self.ranges.iter().position(|range| place(range) != RowPlace::After);
        let Some(first) = first else {
            self.past_end = true;
            return false;
        };
        match place(&self.ranges[first]) {
            RowPlace::Inside => true,
            RowPlace::Partly => {
                self.row.partly = Some(first);
                true
            }
            RowPlace::Before | RowPlace::After => false,
        }
    }

    fn start_column(&mut self, cell: &CellRef<'_>) {
        let column = &mut self.column;
        if !column.started || column.family != cell.family {
            column.family_deleted = None;
        }
        column.started = true;
        column.family = cell.family;
        column.qualifier.clear();
        column.qualifier.extend_from_slice(cell.qualifier);
        column.deleted = None;
        column.version_deleted = None;
        column.last_marker = None;
        column.last = None;
        column.versions = 0;
        column.versions_in_time = 0;
        let rule = self.rules.get(cell.family);
        // Ranges that share a row lie one behind the other.
        let inside = self
            .row
            .partly
            .is_none_or(|first| self.ranges.iter().skip(first).any(|range| range.contains(cell)));
        column.wanted = inside && rule.wanted.iter().any(|q| q.accepts(cell.qualifier));
        column.asked.clear();
        let asked = rule.asked.iter().filter(|(_, qualifier)| qualifier.accepts(cell.qualifier));
        column.asked.extend(asked.map(|(index, _)| *index));
    }

    fn accept_marker(&mut self, cell: CellRef<'_>, out: &mut Selection) -> Result<()> {
        let is_settled = self.is_settled(&cell);
        let column = &mut self.column;
        match cell.kind {
            CellKind::DeleteFamily => {
                column.family_deleted = column.family_deleted.max(Some(cell.timestamp));
            }
            CellKind::DeleteCell => column.deleted = column.deleted.max(Some(cell.timestamp)),
            _ => column.version_deleted = Some(cell.timestamp),
        }
        let marker = Some((cell.timestamp, cell.kind));
        if is_settled || std::mem::replace(&mut column.last_marker, marker) == marker {
            return Ok(());
        }
        let wanted = column.wanted;
        self.hand_on_marker(cell, wanted, out)
    }

    /// Whether a compaction drops a marker once it has hidden what it hides, and adds a count up: nothing that was
    /// written before it will come later.
    fn is_settled(&self, cell: &CellRef<'_>) -> bool {
        matches!(self.compaction, Some(Compaction::FullUntil(until)) if cell.revision <= until)
    }

    fn hand_on_marker(&self, cell: CellRef<'_>, wanted: bool, out: &mut Selection) -> Result<()> {
        if !self.return_deletes || !wanted || !self.time.contains(cell.timestamp) {
            return Ok(());
        }
        out.accept(cell, true, &[])
    }

    fn accept_value(&mut self, cell: CellRef<'_>, out: &mut Selection) -> Result<()> {
        let is_late = matches!(self.compaction, Some(Compaction::FullUntil(_)));
        let is_late = is_late && !self.is_settled(&cell);
        let rule = self.rules.get(cell.family);
        let column = &mut self.column;
        let hidden_up_to = self.row.deleted.max(column.family_deleted).max(column.deleted);
        let hidden = hidden_up_to.is_some_and(|marker| cell.timestamp <= marker)
            || column.version_deleted == Some(cell.timestamp)
            || column.last == Some(cell.timestamp);
        column.last = Some(cell.timestamp);
        if hidden || cell.timestamp < rule.oldest {
            return Ok(());
        }
        if rule.oldest_first {
            return self.keep(cell);
        }
        if rule.counter {
            if is_late {
                // Older counts may still come from other logs. It stays as it is, between the sums of the others.
                self.end_counts(false, out)?;
                return self.hand_on(cell, out);
            }
            if self.time.contains(cell.timestamp) {
                self.column.counter.add(cell.timestamp, cell.value);
            }
            return Ok(());
        }
        column.versions = column.versions.saturating_add(1);
        if rule.versions.is_some_and(|limit| column.versions > limit) {
            return Ok(());
        }
        self.hand_on(cell, out)
    }

    /// Hands on a version that the schema lets see, if the question does too.
    fn hand_on(&mut self, cell: CellRef<'_>, out: &mut Selection) -> Result<()> {
        if !self.time.contains(cell.timestamp) {
            return Ok(());
        }
        let column = &mut self.column;
        column.versions_in_time = column.versions_in_time.saturating_add(1);
        if column.versions_in_time > self.max_versions {
            return Ok(());
        }
        out.accept(cell, column.wanted, &column.asked)
    }

    /// Keeps a version until all of its cell are there.
    fn keep(&mut self, cell: CellRef<'_>) -> Result<()> {
        if self.column.kept.data_bytes() > BUFFER_BYTES_MAX {
            let row = String::from_utf8_lossy(cell.row).into_owned();
            let text = format!("a cell of row \"{row}\" has too many versions for TIME_ORDER DESC");
            return Err(Error::new(ErrorKind::Exhausted, text)
                .with_hint("delete old versions, or keep them in a family without TIME_ORDER"));
        }
        self.column.kept.push(cell)
    }

    /// Hands on what was kept or counted of the column.
    fn end_column(&mut self, out: &mut Selection) -> Result<()> {
        self.end_counts(true, out)?;
        if self.column.kept.is_empty() {
            return Ok(());
        }
        let kept = self.column.kept.finish();
        let limit = self.rules.get(self.column.family).versions.map_or(usize::MAX, |n| n as usize);
        let oldest_first = (kept.len().saturating_sub(limit)..kept.len()).rev();
        if self.compaction.is_some() {
            // Files are in the order of cells whatever the reader prefers.
            return oldest_first.rev().try_for_each(|i| self.hand_on(kept.cell(i), out));
        }
        oldest_first.into_iter().try_for_each(|i| self.hand_on(kept.cell(i), out))
    }

    /// Hands on what was added up of the column, if anything was; `is_all` says that nothing older follows.
    fn end_counts(&mut self, is_all: bool, out: &mut Selection) -> Result<()> {
        let starts_anew = is_all || self.column.counter.is_closed();
        let Some((timestamp, sum)) = self.column.counter.take() else { return Ok(()) };
        let mut value = Vec::new();
        if self.compaction.is_some() && starts_anew {
            // What was added up starts anew; later versions add to it.
            value.push(b'=');
        }
        push_integer(sum, &mut value);
        let column = &self.column;
        let (row, qualifier) = (&self.row.key, &column.qualifier);
        let cell = CellRef::insert(row, column.family, qualifier, timestamp, &value);
        out.accept(cell, column.wanted, &column.asked)
    }
}
