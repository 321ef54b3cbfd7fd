//! The table of a run: files in the work directory, the sums of its rows, reports over it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use stoa_error::{Error, Result};

use super::in_process::Library;
use super::parquet::ParquetRs;
use super::sums::Sums;
use crate::ad_report::{AdReport, AdReportSpec};
use crate::report::{Report, ReportPicker};

/// Rows of a generated batch.
const BATCH_ROWS: usize = 8192;
/// How long reports are, in days, and how many are asked for.
const REPORT_DAYS: u32 = 7;
const REPORTS: usize = 10;

/// What a run reads and knows.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) table: Arc<AdReport>,
    /// What everybody must have read.
    pub(super) sums: Sums,
    pub(super) reports: Vec<Report>,
    dir: PathBuf,
}

impl Input {
    /// Takes the table from its directory under `work_dir`, or makes it there.
    pub(super) fn prepare(spec: AdReportSpec, work_dir: &Path) -> Result<Self> {
        let name = format!("ad_report-{}-{}-{}", spec.rows, spec.accounts, spec.seed);
        let dir = work_dir.join(name);
        std::fs::create_dir_all(&dir).map_err(|e| io_error(&dir, e))?;
        let table = Arc::new(AdReport::new(spec));
        let mut picker = ReportPicker::new(Arc::clone(&table), table.spec().seed);
        let reports = (0..REPORTS).map(|_| picker.pick_days(REPORT_DAYS)).collect();
        let mut input = Self { table, sums: Sums::default(), reports, dir };
        input.sums = match input.known_sums() {
            Some(sums) if input.parquet().exists() => sums,
            _ => input.make()?,
        };
        Ok(input)
    }

    /// The Parquet file, from which everybody who writes gets the rows.
    pub(super) fn parquet(&self) -> PathBuf {
        self.dir.join("ad_report.parquet")
    }

    /// The ORC file that a contender writes.
    pub(super) fn orc_of(&self, contender: &str) -> PathBuf {
        self.dir.join(format!("{}.orc", contender.replace(' ', "-")))
    }

    /// Where writes are measured.
    pub(super) fn output(&self) -> PathBuf {
        self.dir.join("written.tmp")
    }

    /// All rows, in memory.
    pub(super) fn batches(&self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        ParquetRs.read(&self.parquet(), None, &mut |batch| {
            batches.push(batch);
            Ok(())
        })?;
        Ok(batches)
    }

    fn known_sums(&self) -> Option<Sums> {
        let text = std::fs::read(self.sums_file()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn sums_file(&self) -> PathBuf {
        self.dir.join("sums.json")
    }

    /// Makes the Parquet file, and the sums from the same rows before they are written.
    fn make(&self) -> Result<Sums> {
        let chunks = self.table.chunks();
        let batches = chunks.iter().flat_map(|chunk| self.table.batches(chunk, BATCH_ROWS));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let sums = Sums::of(&batches)?;
        let unfinished = self.dir.join("ad_report.parquet.tmp");
        ParquetRs.write(&unfinished, &batches)?;
        let parquet = self.parquet();
        std::fs::rename(&unfinished, &parquet).map_err(|e| io_error(&parquet, e))?;
        let text = serde_json::to_vec_pretty(&sums)
            .map_err(|e| Error::internal("cannot write sums as JSON").with_source(e))?;
        let path = self.sums_file();
        std::fs::write(&path, text).map_err(|e| io_error(&path, e))?;
        Ok(sums)
    }
}

/// A new, empty file.
pub(super) fn create(path: &Path) -> Result<File> {
    File::create(path).map_err(|e| io_error(path, e))
}

/// The length of a file.
pub(super) fn file_bytes(path: &Path) -> Result<u64> {
    std::fs::metadata(path).map(|metadata| metadata.len()).map_err(|e| io_error(path, e))
}

pub(super) fn io_error(path: &Path, error: std::io::Error) -> Error {
    Error::unavailable(format!("cannot read or write {}", path.display()))
        .with_hint("choose another directory with --dir")
        .with_source(error)
}
