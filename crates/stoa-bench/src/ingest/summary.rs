//! Shows what was measured.

use std::fmt::Write;

use stoa_error::{Error, Result};

use super::run::IngestResult;
use crate::summary::thousands;

impl IngestResult {
    /// For people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} rows of 36 bytes per acknowledgement; bare sync of as many bytes: p50 {} us, p99 {} us\n\
             {:<12} {:>7} {:>12} {:>8} {:>10} {:>10} {:>9} {:>11} {:>9} {:>8}\n",
            self.rows_per_append,
            self.bare_sync.p50_us,
            self.bare_sync.p99_us,
            "path",
            "writers",
            "rows/s",
            "MB/s",
            "ack p50 ms",
            "ack p99 ms",
            "p99/sync",
            "CPU ns/row",
            "rows/sync",
            "peak MiB"
        );
        for run in &self.runs {
            let _ = writeln!(
                text,
                "{:<12} {:>7} {:>12} {:>8.1} {:>10.2} {:>10.2} {:>9.1} {:>11} {:>9} {:>8}",
                run.path.to_string(),
                run.writers,
                thousands(run.rows_per_second as u64),
                run.bytes_per_second / 1e6,
                run.ack_p50_us as f64 / 1000.0,
                run.ack_p99_us as f64 / 1000.0,
                run.ack_p99_us as f64 / self.bare_sync.p99_us.max(1) as f64,
                run.server_cpu_ns_per_row.map_or("-".to_owned(), |ns| format!("{ns:.0}")),
                thousands(run.rows / run.syncs.max(1)),
                run.server_peak_rss_bytes.map_or("-".to_owned(), |bytes| (bytes >> 20).to_string()),
            );
        }
        text.push_str("every run: the server was killed and started again, all rows were there\n");
        text
    }

    /// For scripts.
    ///
    /// # Errors
    /// Internal if a figure is not a number.
    pub fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map_err(|e| Error::internal("cannot write figures as JSON").with_source(e))
    }
}
