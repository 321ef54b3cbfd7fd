//! What a server has used so far: CPU and memory from `/proc`, bytes read from its own `/metrics`.

use std::time::Duration;

use stoa_error::{Error, Result};

/// The counter of bytes that scans have read from the store.
const BYTES_READ: &str = "stoa_scan_read_bytes_total";

/// Clock ticks per second in `/proc/<pid>/stat`: fixed by Linux for user space (proc(5)).
const TICKS_PER_SECOND: u64 = 100;

/// Where to look.
#[derive(Clone, Debug)]
pub struct ServerProbe {
    /// Process id, if the server runs on this machine.
    pub pid: Option<u32>,
    /// `http://host:port`.
    pub http_url: String,
}

/// Totals since the server started; None where it cannot be known.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerUsage {
    /// User and system time, to 10 ms.
    pub cpu: Option<Duration>,
    /// The most memory it ever had resident.
    pub peak_rss_bytes: Option<u64>,
    /// Bytes read from data files.
    pub bytes_read: Option<u64>,
}

impl ServerProbe {
    /// Looks now.
    ///
    /// # Errors
    /// Unavailable when the server does not answer on HTTP.
    pub async fn sample(&self) -> Result<ServerUsage> {
        let url = format!("{}/metrics", self.http_url);
        let unavailable = |e| Error::unavailable(format!("cannot read {url}")).with_source(e);
        let response = reqwest::get(&url).await.map_err(unavailable)?;
        let metrics = response.text().await.map_err(unavailable)?;
        Ok(ServerUsage {
            cpu: self.pid.and_then(cpu),
            peak_rss_bytes: self.pid.and_then(peak_rss_bytes),
            bytes_read: counter(&metrics, BYTES_READ),
        })
    }
}

fn cpu(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_cpu(&stat)
}

fn parse_cpu(stat: &str) -> Option<Duration> {
    // The name in parentheses may hold blanks; utime and stime are fields 14 and 15, 12 and 13 after it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * (1000 / TICKS_PER_SECOND)))
}

fn peak_rss_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Sum of all series of a counter in the Prometheus text format; None if there is none.
fn counter(metrics: &str, name: &str) -> Option<u64> {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        if !rest.starts_with([' ', '{']) {
            return None;
        }
        rest.rsplit_once(' ')?.1.parse::<f64>().ok()
    });
    values.reduce(|a, b| a + b).map(|sum| sum as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_past_a_name_with_blanks() {
        let stat = "42 (a b) c) S 1 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 8 0 100 0 0";
        assert_eq!(parse_cpu(stat), Some(Duration::from_secs(2)));
    }

    #[test]
    fn a_counter_is_the_sum_of_its_series() {
        let text =
            "# TYPE a_total counter\na_total{k=\"x\"} 3\na_total{k=\"y\"} 4\na_total_more 9\n";
        assert_eq!(counter(text, "a_total"), Some(7));
        assert_eq!(counter(text, "b_total"), None);
    }

    #[test]
    fn this_process_has_a_peak() {
        assert!(peak_rss_bytes(std::process::id()).is_some_and(|bytes| bytes > 100_000));
        assert!(cpu(std::process::id()).is_some());
    }
}
