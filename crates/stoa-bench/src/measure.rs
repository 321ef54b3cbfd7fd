//! What a server has used so far, by its own `/metrics`; its peak memory by `/proc`.

use std::time::Duration;

use stoa_error::{Error, Result};

/// The server's counters (`stoa-figures` declares them).
const CPU_SECONDS: &str = "stoa_process_cpu_seconds_total";
const BYTES_READ: &str = "stoa_query_read_bytes_total";
const LOG_SYNCS: &str = "stoa_log_syncs_total";
const READ_REQUESTS: &str = "stoa_query_read_requests_total";

/// Where to look.
#[derive(Clone, Debug)]
pub struct ServerProbe {
    /// Process id, if the server is known to run on this machine.
    pub pid: Option<u32>,
    /// `http://host:port`; None where only the PostgreSQL protocol is reached.
    pub http_url: Option<String>,
}

/// Totals since the server started; None where they cannot be known.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerUsage {
    /// User and system time, to 10 ms.
    pub cpu: Option<Duration>,
    /// The most memory it ever had resident.
    pub peak_rss_bytes: Option<u64>,
    /// Bytes that scans read from storage.
    pub bytes_read: Option<u64>,
    /// Read requests that scans sent to storage.
    pub read_requests: Option<u64>,
}

impl ServerProbe {
    /// Looks now.
    ///
    /// # Errors
    /// Unavailable when the server does not answer on HTTP.
    pub async fn sample(&self) -> Result<ServerUsage> {
        let peak_rss_bytes = self.pid.and_then(peak_rss_bytes);
        let Some(http_url) = &self.http_url else {
            return Ok(ServerUsage { peak_rss_bytes, ..ServerUsage::default() });
        };
        let metrics = metrics(http_url).await?;
        let cpu = counter(&metrics, CPU_SECONDS);
        Ok(ServerUsage {
            cpu: cpu.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            peak_rss_bytes,
            bytes_read: counter(&metrics, BYTES_READ).map(|bytes| bytes as u64),
            read_requests: counter(&metrics, READ_REQUESTS).map(|requests| requests as u64),
        })
    }

    /// Syncs of the commit log so far; 0 where they cannot be known.
    ///
    /// # Errors
    /// As [`Self::sample`].
    pub async fn log_syncs(&self) -> Result<u64> {
        let Some(http_url) = &self.http_url else { return Ok(0) };
        Ok(counter(&metrics(http_url).await?, LOG_SYNCS).unwrap_or(0.0) as u64)
    }
}

async fn metrics(http_url: &str) -> Result<String> {
    let url = format!("{http_url}/metrics");
    let unavailable = |e| Error::unavailable(format!("cannot read {url}")).with_source(e);
    let response = reqwest::get(&url).await.map_err(unavailable)?;
    response.text().await.map_err(unavailable)
}

fn peak_rss_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Sum of all series of a counter in the Prometheus text format; None if there is none.
fn counter(metrics: &str, name: &str) -> Option<f64> {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        if !rest.starts_with([' ', '{']) {
            return None;
        }
        rest.rsplit_once(' ')?.1.parse::<f64>().ok()
    });
    values.reduce(|a, b| a + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_the_sum_of_its_series() {
        let text =
            "# TYPE a_total counter\na_total{k=\"x\"} 3\na_total{k=\"y\"} 4\na_total_more 9\n";
        assert_eq!(counter(text, "a_total"), Some(7.0));
        assert_eq!(counter(text, "b_total"), None);
    }

    #[test]
    fn this_process_has_a_peak() {
        assert!(peak_rss_bytes(std::process::id()).is_some_and(|bytes| bytes > 100_000));
    }
}
