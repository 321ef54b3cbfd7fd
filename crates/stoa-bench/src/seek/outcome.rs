//! What a run found, as a table and as JSON.

use std::fmt::Write;

use serde_json::json;
use stoa_error::{Error, Result};

use super::cold::ColdReport;
use super::wide::{Columns, Rule, WideRead};

/// What a run found.
#[derive(Clone, Debug)]
pub struct SeekResult {
    pub(super) file_bytes: u64,
    pub(super) wide: Vec<WideRead>,
    pub(super) cold: Vec<ColdReport>,
}

impl SeekResult {
    /// Length of the wide file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Reads of the wide file: for each choice of columns and store the five rules in turn.
    pub fn wide(&self) -> &[WideRead] {
        &self.wide
    }

    /// Reports on a file never seen before, one line per store.
    pub fn cold(&self) -> &[ColdReport] {
        &self.cold
    }

    /// The same read with nothing merged.
    fn unmerged(&self, read: &WideRead) -> Option<&WideRead> {
        self.wide.iter().find(|other| {
            other.rule == Rule::NoMerging
                && other.columns == read.columns
                && other.latency_ms == read.latency_ms
                && other.bandwidth == read.bandwidth
                && other.parallelism == read.parallelism
                && (other.jitter_ms, other.stripes) == (read.jitter_ms, read.stripes)
        })
    }

    /// Share of the time that `read` saves against nothing merged; 0.75 = three quarters.
    pub fn saving(&self, read: &WideRead) -> f64 {
        self.unmerged(read).map_or(0.0, |unmerged| 1.0 - read.seconds / unmerged.seconds)
    }

    /// All figures for scripts.
    ///
    /// # Errors
    /// `Internal` if a figure is not a number.
    pub fn json(&self) -> Result<String> {
        let value = json!({
            "workload": "seek",
            "time": "simulated",
            "file_bytes": self.file_bytes,
            "wide": self.wide,
            "cold_reports": self.cold,
        });
        serde_json::to_string_pretty(&value)
            .map_err(|e| Error::internal("cannot write figures as JSON").with_source(e))
    }

    /// All figures for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "Time is simulated: exact to 1 ms, without decoding.\n\n\
             Wide file, {:.1} MB, from known metadata to the last byte:\n\
             {:<10} {:>7} {:>5} {:>6} {:>6} {:>4}  {:<16} {:>8} {:>9} {:>8} {:>8} {:>7}\n",
            mb(self.file_bytes as f64),
            "columns",
            "stripes",
            "ms",
            "jitter",
            "MB/s",
            "K",
            "rule",
            "requests",
            "MB needed",
            "MB read",
            "seconds",
            "saved"
        );
        for read in &self.wide {
            let columns = match read.columns {
                Columns::All => "all",
                Columns::Alternate => "every 2nd",
            };
            let _ = writeln!(
                text,
                "{columns:<10} {:>7} {:>5} {:>6} {:>6.0} {:>4}  {:<16} {:>8} {:>9.1} {:>8.1} {:>8.3} {:>6.0}%",
                read.stripes,
                read.latency_ms,
                read.jitter_ms,
                mb(read.bandwidth),
                read.parallelism,
                read.rule.title(),
                read.requests,
                mb(read.bytes_needed as f64),
                mb(read.bytes_read as f64),
                read.seconds,
                self.saving(read) * 100.0
            );
        }
        let _ = writeln!(
            text,
            "\nOne report (1 account, 7 days), nothing known of the file but its length. With K = 1 the \
             requests of a\nround trip run one after the other:\n\
             {:>5} {:>6} {:>4} {:>9} {:>16} {:>14} {:>8} {:>15}",
            "ms",
            "MB/s",
            "K",
            "MB file",
            "round trips max",
            "requests (max)",
            "KB read",
            "seconds (max)"
        );
        for report in &self.cold {
            let _ = writeln!(
                text,
                "{:>5} {:>6.0} {:>4} {:>9.1} {:>16} {:>8.1} {:>5} {:>8.0} {:>7.3} {:>7.3}",
                report.latency_ms,
                mb(report.bandwidth),
                report.parallelism,
                mb(report.file_bytes as f64),
                report.round_trips_max,
                report.requests_mean,
                format!("({})", report.requests_max),
                report.bytes_read_mean / 1e3,
                report.seconds_mean,
                report.seconds_max
            );
        }
        text
    }
}

fn mb(bytes: f64) -> f64 {
    bytes / 1e6
}
