//! In which part of a table a report reads, so that daemons can share a table's parts among their caches.
//!
//! The parts are ranges of values of the first sort column with about as many rows each: those of the row groups of the
//! table's largest file. Every daemon finds the same ones for the same files; new files move them little, since they
//! are sorted as the largest one is. Each row group of any file belongs to just one part: that of its least value.

use std::sync::Arc;

use stoa_error::Result;
use stoa_rangeio::ReadMetrics;
use stoa_table::Table;

use crate::report::{Report, Test};
use crate::reports::Reports;
use crate::view::{TableView, ViewFile};
use crate::zones::{Zone, Zones};

/// Parts of a table.
pub const PARTS: u32 = 256;

/// Some of a table's parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartSet([u64; PARTS as usize / 64]);

impl PartSet {
    /// Adds a part; nothing happens where there is none of that number.
    pub fn insert(&mut self, part: u32) {
        if let Some(word) = self.0.get_mut(part as usize / 64) {
            *word |= 1 << (part % 64);
        }
    }

    /// Adds all parts of `other`.
    pub fn insert_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    /// Whether a part is among them.
    pub fn contains(&self, part: u32) -> bool {
        self.0.get(part as usize / 64).is_some_and(|word| word >> (part % 64) & 1 == 1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// A bit for each part.
    pub fn words(&self) -> [u64; PARTS as usize / 64] {
        self.0
    }

    /// The parts of those bits.
    pub fn of_words(words: [u64; PARTS as usize / 64]) -> Self {
        Self(words)
    }
}

/// Parts of a table that follow each other: those of some row groups of its largest file. Where that has fewer row groups
/// than there are parts, numbers in between are nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    first_group: usize,
    last_group: usize,
    /// Row groups of the file; at least one.
    groups: usize,
}

impl Parts {
    /// The first one.
    pub fn first(&self) -> u32 {
        part(self.first_group, self.groups)
    }

    /// The last one.
    pub fn last(&self) -> u32 {
        part(self.last_group, self.groups)
    }

    /// How many parts of the table have rows, at least one.
    pub fn with_rows(&self) -> u32 {
        u32::try_from(self.groups).unwrap_or(PARTS).clamp(1, PARTS)
    }

    /// All of them, which ascend; none twice.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let Self { first_group, last_group, groups } = *self;
        let mut before = None;
        let of_groups = (first_group..=last_group).map(move |group| part(group, groups));
        of_groups.filter(move |part| before.replace(*part) != Some(*part))
    }
}

/// The part of a row group of a file that has so many.
fn part(group: usize, groups: usize) -> u32 {
    (group as u64 * u64::from(PARTS) / groups as u64) as u32
}

/// How a version of a table is parted.
pub(crate) struct Parting {
    /// The bounds of the first sort column in the largest file, which ascend.
    zones: Arc<Zones>,
    /// Its row groups; at least one.
    groups: usize,
}

impl Parting {
    /// The parts in which values are that meet all of these tests.
    pub(crate) fn of_tests<'a>(&self, tests: impl Iterator<Item = &'a Test>) -> Parts {
        let all = tests.map(|test| self.zones.range(test));
        let range = all.fold(0..self.groups, |range, of_test| {
            range.start.max(of_test.start)..range.end.min(of_test.end)
        });
        // Values between two row groups, or behind the last, belong to the one before.
        let first_group = range.start.min(self.groups - 1);
        let last_group = range.end.saturating_sub(1).clamp(first_group, self.groups - 1);
        Parts { first_group, last_group, groups: self.groups }
    }

    /// The part to which rows of these bounds belong.
    pub(crate) fn of_zone(&self, zone: Option<&Zone>) -> u32 {
        let test = zone.and_then(Zone::at_or_above_least);
        let first = test.map_or(0, |test| self.zones.range(&test).start);
        part(first.min(self.groups - 1), self.groups)
    }
}

impl Reports {
    /// Bytes of the data files of a version.
    ///
    /// # Errors
    /// Those of listing its files.
    pub async fn table_bytes(&self, table: &Table) -> Result<u64> {
        Ok(self.view(table).await?.bytes())
    }

    /// The parts (of [`PARTS`], counted from 0) in which a report reads; `first_sort_column` is the field id of the
    /// column by which the table is sorted first. `None` where it has no condition on that column, or nothing is known
    /// of its values. Reads the tail of one file if it is not in memory.
    ///
    /// # Errors
    /// Those of reading the table's files.
    pub async fn parts(
        &self,
        table: &Table,
        report: &Report,
        first_sort_column: i32,
    ) -> Result<Option<Parts>> {
        let view = self.view(table).await?;
        let parting = self.parting(table, &view, report, first_sort_column).await?;
        Ok(parting.map(|parting| {
            let conditions = report.conditions_on(first_sort_column);
            parting.of_tests(conditions.map(|(_, condition)| &condition.test))
        }))
    }

    /// How a version is parted; `None` where the report has no condition on the first sort column, or nothing is known
    /// of its values.
    pub(crate) async fn parting(
        &self,
        table: &Table,
        view: &TableView,
        report: &Report,
        first_sort_column: i32,
    ) -> Result<Option<Parting>> {
        let first = report.conditions_on(first_sort_column).next();
        let Some(column) = first.and_then(|(_, condition)| report.columns.get(condition.column))
        else {
            return Ok(None);
        };
        let Some(file) = largest(view) else { return Ok(None) };
        let known = match self.known_zones(file.number, &[column]) {
            Some(known) => known,
            None => {
                let metrics = Arc::new(ReadMetrics::default());
                self.read_zones(file, table, &[column], &metrics).await?
            }
        };
        let (tail, zones) = known;
        let groups = tail.groups.len();
        let zones = zones.into_iter().next().filter(|zones| groups > 0 && zones.ascend());
        Ok(zones.map(|zones| Parting { zones, groups }))
    }
}

fn largest(view: &TableView) -> Option<&ViewFile> {
    let plain = view.files.iter().filter(|file| file.file.is_plain());
    plain.max_by(|a, b| {
        // Of two of a size, daemons must take the same.
        a.file.rows.cmp(&b.file.rows).then_with(|| b.file.location.cmp(&a.file.location))
    })
}
