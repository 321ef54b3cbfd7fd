//! Reports on a file of which nothing is known yet: how many round trips, requests and bytes.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use stoa_error::{Error, Result};
use stoa_orc::{Writer, WriterOptions};
use stoa_rangeio::PlanOptions;

use super::fetch::{RemoteFile, Slowness};
use super::wide::rounded;
use crate::ad_report::{AdReport, AdReportSpec};
use crate::check::check;
use crate::report::{Report, ReportPicker};
use crate::report_scan::{DailyTotals, read_options};

/// Days of a report, reports read on each store, rows of a generated batch.
const REPORT_DAYS: u32 = 7;
const REPORTS: usize = 20;
const BATCH_ROWS: usize = 8192;

/// Reports on one store, each with a reader and metadata of its own: the first read is the tail.
#[derive(Clone, Debug, Serialize)]
pub struct ColdReport {
    /// Wait before the first byte of a request, in milliseconds.
    pub latency_ms: u64,
    /// Bytes per second of a connection.
    pub bandwidth: f64,
    /// Requests that run at once.
    pub parallelism: usize,
    /// Reports read; all answers were right.
    pub reports: usize,
    /// Length of the file.
    pub file_bytes: u64,
    /// Times that a report had to know an answer before it could ask on: the most of all reports.
    /// With more connections than requests that is how often it waited.
    pub round_trips_max: u64,
    /// Requests per report, on average and the most.
    pub requests_mean: f64,
    /// The most.
    pub requests_max: u64,
    /// Bytes read per report, on average.
    pub bytes_read_mean: f64,
    /// Seconds per report, on average and the most.
    pub seconds_mean: f64,
    /// The most.
    pub seconds_max: f64,
}

/// The table as one file, and reports over it.
pub(super) struct Reports {
    table: Arc<AdReport>,
    file: Bytes,
    reports: Vec<Report>,
}

impl Reports {
    pub(super) fn make(spec: AdReportSpec) -> Result<Self> {
        let table = Arc::new(AdReport::new(spec));
        let mut writer = Writer::new(&AdReport::schema(), WriterOptions::default())?;
        let mut file = Vec::new();
        for chunk in table.chunks() {
            for batch in table.batches(&chunk, BATCH_ROWS) {
                writer.write(&batch?)?;
                file.extend_from_slice(&writer.take_output());
            }
        }
        writer.finish()?;
        file.extend_from_slice(&writer.take_output());
        let mut picker = ReportPicker::new(Arc::clone(&table), table.spec().seed);
        let reports = (0..REPORTS).map(|_| picker.pick_days(REPORT_DAYS)).collect();
        Ok(Self { table, file: file.into(), reports })
    }

    pub(super) async fn read_all(&self) -> Result<Vec<ColdReport>> {
        let mut all = Vec::new();
        for slowness in Slowness::all() {
            all.push(self.read_on(slowness).await?);
        }
        Ok(all)
    }

    async fn read_on(&self, slowness: Slowness) -> Result<ColdReport> {
        let mut counts = Vec::new();
        for report in &self.reports {
            let plan =
                PlanOptions { profile: Some(slowness.profile()), ..PlanOptions::object_store() };
            let remote = RemoteFile::new(self.file.clone(), slowness, plan).await?;
            let mut totals = DailyTotals::new(report);
            let metadata = remote.metadata().await?;
            let options = read_options(&metadata, report)?;
            remote.read(metadata, options, &mut |batch| totals.add(&batch)).await?;
            check(&self.table, report, &totals.finish())?;
            counts.push(remote.reader.metrics().counts());
        }
        let slowest = counts.iter().map(|counts| counts.elapsed).max();
        let slowest = slowest.ok_or_else(|| Error::internal("no report was read"))?;
        let mean = |sum: f64| sum / counts.len() as f64;
        Ok(ColdReport {
            latency_ms: slowness.latency_ms,
            bandwidth: slowness.bandwidth,
            parallelism: slowness.parallelism,
            reports: counts.len(),
            file_bytes: self.file.len() as u64,
            round_trips_max: counts.iter().map(|counts| counts.calls).max().unwrap_or_default(),
            requests_mean: mean(counts.iter().map(|counts| counts.requests as f64).sum()),
            requests_max: counts.iter().map(|counts| counts.requests).max().unwrap_or_default(),
            bytes_read_mean: mean(counts.iter().map(|counts| counts.bytes_read as f64).sum()),
            seconds_mean: mean(counts.iter().map(|counts| rounded(counts.elapsed)).sum()),
            seconds_max: rounded(slowest),
        })
    }
}
