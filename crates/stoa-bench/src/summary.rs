//! Shows what runs measured: a table for people, JSON for scripts.

use std::fmt::Write;

use serde_json::{Value, json as json_value};
use stoa_error::{Error, Result};

use crate::ad_report::AdReportSpec;
use crate::driver::{Mode, RunResult};

/// One line per run, columns aligned, with a heading.
pub fn table(results: &[RunResult]) -> String {
    let mut text = format!(
        "{:<9} {:>7} {:>9} {:>13} {:>9} {:>9} {:>9} {:>11} {:>12} {:>9} {:>7} {:>7} {:>7}\n",
        "mode",
        "clients",
        "reports",
        "reports/hour",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "CPU us/rep",
        "KiB read/rep",
        "peak MiB",
        "checked",
        "refused",
        "failed"
    );
    for r in results {
        let _ = writeln!(
            text,
            "{:<9} {:>7} {:>9} {:>13} {:>9} {:>9} {:>9} {:>11} {:>12} {:>9} {:>7} {:>7} {:>7}",
            mode(r.mode),
            r.clients,
            thousands(r.reports),
            thousands(r.reports_per_hour as u64),
            ms(r.p50_us),
            ms(r.p95_us),
            ms(r.p99_us),
            or_dash(r.server_cpu_us_per_report.map(|us| format!("{us:.0}"))),
            or_dash(r.bytes_read_per_report.map(|bytes| format!("{:.1}", bytes / 1024.0))),
            or_dash(r.server_peak_rss_bytes.map(|bytes| (bytes >> 20).to_string())),
            r.checked,
            r.refused,
            r.failed
        );
    }
    text
}

/// All runs with what table they ran on.
///
/// # Errors
/// Internal if a figure is not a number.
pub fn json(spec: &AdReportSpec, results: &[RunResult]) -> Result<String> {
    let runs = serde_json::to_value(results)
        .map_err(|e| Error::internal("cannot write figures as JSON").with_source(e))?;
    let value: Value = json_value!({
        "workload": "report",
        "table": { "name": "ad_report", "rows": spec.rows, "accounts": spec.accounts, "seed": spec.seed },
        "runs": runs,
    });
    Ok(format!("{value:#}"))
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Prepared => "prepared",
        Mode::Extended => "extended",
        Mode::Simple => "simple",
    }
}

fn ms(us: u64) -> String {
    format!("{:.2}", us as f64 / 1000.0)
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

/// 1234567 as "1,234,567".
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }
}
