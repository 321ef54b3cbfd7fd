//! The data files of one version of a table, with bounds to judge them by.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use stoa_error::Result;
use stoa_orc::Predicate;
use stoa_rangeio::{Pin, RangeReader, ReadMetrics};
use stoa_table::{ScanFile, Table, TableIdent};

use crate::report::{Column, Report};
use crate::zones::{Zone, zone_of_file};

/// Extra bytes of reads from a remote store, relative to what is needed. A report reads little of each of
/// many files: with gaps read over as for a scan it would move three times the bytes, and be no sooner done.
const OVER_READ_MAX: f64 = 1.0;

/// One version of a table, as reports see it.
#[derive(Debug)]
pub(crate) struct TableView {
    pub(crate) ident: TableIdent,
    pub(crate) files: Vec<ViewFile>,
    /// Bounds of a column (by field id) in each file, made when they are first asked for.
    zones: RwLock<HashMap<i32, Arc<[Zone]>>>,
}

/// A data file and its number in the cache.
#[derive(Debug)]
pub(crate) struct ViewFile {
    pub(crate) number: u32,
    pub(crate) file: Arc<ScanFile>,
    /// What its content is, once something of it was read.
    pub(crate) pin: Arc<Pin>,
    /// Whether reading it asks another machine.
    pub(crate) is_remote: bool,
}

impl ViewFile {
    /// Reads the file, and fails where its content is another than before.
    pub(crate) fn reader(&self, metrics: &Arc<ReadMetrics>) -> RangeReader {
        let reader = self.file.reader.clone();
        let reader = reader.with_metrics(metrics.clone()).with_pin(self.pin.clone());
        match self.is_remote {
            true => reader.with_over_read_max(OVER_READ_MAX),
            false => reader,
        }
    }
}

impl TableView {
    /// Lists the files of `table`; `number` gives each its number.
    pub(crate) async fn of(
        table: &Table,
        number: impl Fn(Arc<ScanFile>) -> ViewFile,
    ) -> Result<Self> {
        let plan = table.plan_scan(&Predicate::always()).await?;
        Ok(Self::of_files(table, plan.files.into_iter().map(number).collect()))
    }

    /// `files` are those of `table`.
    pub(crate) fn of_files(table: &Table, files: Vec<ViewFile>) -> Self {
        Self { ident: table.ident().clone(), files, zones: RwLock::default() }
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.file.file_bytes).sum()
    }

    /// The files that may hold rows of a report.
    pub(crate) fn surviving(&self, report: &Report) -> Vec<&ViewFile> {
        let judged: Vec<_> = report
            .conditions
            .iter()
            .map(|condition| (self.zones(&report.columns[condition.column]), &condition.test))
            .collect();
        let may_match = |index: usize| {
            judged.iter().all(|(zones, test)| {
                zones.get(index).is_none_or(|zone: &Zone| zone.may_match(test))
            })
        };
        let files = self.files.iter().enumerate();
        files.filter(|(index, _)| may_match(*index)).map(|(_, file)| file).collect()
    }

    fn zones(&self, column: &Column) -> Arc<[Zone]> {
        if let Some(known) = self.zones.read().get(&column.field_id) {
            return known.clone();
        }
        let zones: Arc<[Zone]> =
            self.files.iter().map(|file| zone_of_file(&file.file, column)).collect();
        self.zones.write().insert(column.field_id, zones.clone());
        zones
    }
}
