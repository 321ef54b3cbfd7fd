//! What a run found: medians and ratios, as a table and as JSON.

use std::fmt::Write;

use serde::Serialize;
use serde_json::json;
use stoa_error::{Error, Result};

use super::work::Workload;
use crate::ad_report::AdReportSpec;

/// One contender's figures for one work.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// What was done.
    pub work: Workload,
    /// By whom, with version.
    pub contender: String,
    /// Median CPU time, user and system, in seconds; per report for [`Workload::Report`].
    pub cpu_seconds: f64,
    /// The least.
    pub cpu_seconds_min: f64,
    /// The most.
    pub cpu_seconds_max: f64,
    /// Length of the file that was written.
    pub file_bytes: Option<u64>,
}

/// What a ratio compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Median CPU time.
    Cpu,
    /// Length of the file that was written.
    FileBytes,
}

/// What Stoa took relative to another contender.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// What was done.
    pub work: Workload,
    /// The other contender, with version.
    pub against: String,
    /// What is compared.
    pub quantity: Quantity,
    /// Stoa's figure over the other's.
    pub ratio: f64,
    /// The most that is aimed at.
    pub aim: Option<f64>,
}

impl Ratio {
    /// Whether the aim, if there is one, is reached.
    pub fn is_reached(&self) -> bool {
        self.aim.is_none_or(|aim| self.ratio <= aim)
    }
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct OrcResult {
    pub(super) spec: AdReportSpec,
    pub(super) rounds: usize,
    pub(super) measurements: Vec<Measurement>,
    /// Who was missing, and why.
    pub(super) notes: Vec<String>,
}

impl OrcResult {
    /// The figures, by work and contender; Stoa is the first of each work.
    pub fn measurements(&self) -> &[Measurement] {
        &self.measurements
    }

    /// Stoa against all others.
    pub fn ratios(&self) -> Vec<Ratio> {
        let groups = self.measurements.chunk_by(|a, b| a.work == b.work);
        groups
            .filter_map(<[_]>::split_first)
            .flat_map(|(own, others)| {
                others.iter().flat_map(|other| [cpu_ratio(own, other), bytes_ratio(own, other)])
            })
            .flatten()
            .collect()
    }

    /// All figures for scripts.
    ///
    /// # Errors
    /// `Internal` if a figure is not a number.
    pub fn json(&self) -> Result<String> {
        let spec = &self.spec;
        let ratios = self.ratios().into_iter().map(|ratio| {
            let reached = ratio.aim.map(|_| ratio.is_reached());
            json!({ "work": ratio.work, "against": ratio.against, "quantity": ratio.quantity,
                    "ratio": ratio.ratio, "aim": ratio.aim, "reached": reached })
        });
        let value = json!({
            "workload": "orc",
            "table": { "name": "ad_report", "rows": spec.rows, "accounts": spec.accounts,
                       "seed": spec.seed },
            "rounds": self.rounds,
            "measurements": self.measurements,
            "ratios": ratios.collect::<Vec<_>>(),
            "notes": self.notes,
        });
        serde_json::to_string_pretty(&value)
            .map_err(|e| Error::internal("cannot write figures as JSON").with_source(e))
    }

    /// All figures for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} rows. CPU seconds, user and system, of one thread: median, least and most of {} \
             rounds.\n× is what Stoa takes relative to the contender of the line.\n\n\
             {:<34} {:<20} {:>8} {:>8} {:>8} {:>8}   {:<20} {}\n",
            self.spec.rows,
            self.rounds,
            "",
            "",
            "median",
            "least",
            "most",
            "file MB",
            "CPU",
            "file"
        );
        let ratios = self.ratios();
        for group in self.measurements.chunk_by(|a, b| a.work == b.work) {
            for (at, m) in group.iter().enumerate() {
                let title = if at == 0 { m.work.title() } else { "" };
                let line = line(title, m, &ratios);
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text
    }
}

fn line(title: &str, m: &Measurement, ratios: &[Ratio]) -> String {
    let of = |quantity| {
        let is_of = |ratio: &&Ratio| {
            (ratio.work, ratio.quantity) == (m.work, quantity) && ratio.against == m.contender
        };
        ratios.iter().find(is_of).map(show).unwrap_or_default()
    };
    let bytes = m.file_bytes.map(|bytes| format!("{:.1}", bytes as f64 / 1e6));
    format!(
        "{title:<34} {:<20} {:>8} {:>8} {:>8} {:>8}   {:<20} {}",
        m.contender,
        seconds(m.cpu_seconds),
        seconds(m.cpu_seconds_min),
        seconds(m.cpu_seconds_max),
        bytes.unwrap_or_default(),
        of(Quantity::Cpu),
        of(Quantity::FileBytes),
    )
}

fn cpu_ratio(own: &Measurement, other: &Measurement) -> Option<Ratio> {
    let aim = own.work.cpu_aim(first_word(&other.contender));
    let ratio = own.cpu_seconds / other.cpu_seconds;
    let against = other.contender.clone();
    ratio.is_finite().then_some(Ratio {
        work: own.work,
        against,
        quantity: Quantity::Cpu,
        ratio,
        aim,
    })
}

fn bytes_ratio(own: &Measurement, other: &Measurement) -> Option<Ratio> {
    let aim = own.work.bytes_aim(first_word(&other.contender));
    let ratio = own.file_bytes? as f64 / other.file_bytes? as f64;
    let against = other.contender.clone();
    Some(Ratio { work: own.work, against, quantity: Quantity::FileBytes, ratio, aim })
}

fn first_word(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}

fn seconds(seconds: f64) -> String {
    if seconds < 0.1 { format!("{seconds:.5}") } else { format!("{seconds:.3}") }
}

/// `0.460 × (aim 0.50)`, and whether that is missed.
fn show(ratio: &Ratio) -> String {
    let missed = if ratio.is_reached() { "" } else { ", missed" };
    let aim = ratio.aim.map(|aim| format!(" (aim {aim:.2}{missed})")).unwrap_or_default();
    format!("{:.3} ×{aim}", ratio.ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(work: Workload, contender: &str, cpu_seconds: f64, file_bytes: u64) -> Measurement {
        Measurement {
            work,
            contender: contender.to_owned(),
            cpu_seconds,
            cpu_seconds_min: cpu_seconds,
            cpu_seconds_max: cpu_seconds,
            file_bytes: Some(file_bytes).filter(|bytes| *bytes > 0),
        }
    }

    #[test]
    fn ratios_are_of_stoa_over_the_other_and_aims_are_judged() {
        let result = OrcResult {
            spec: AdReportSpec::default(),
            rounds: 3,
            measurements: vec![
                measured(Workload::ReadAll, "stoa-orc 1", 0.3, 0),
                measured(Workload::ReadAll, "pyarrow 26", 0.5, 0),
                measured(Workload::Write, "stoa-orc 1", 1.0, 90),
                measured(Workload::Write, "pyarrow 26", 4.0, 100),
            ],
            notes: vec!["somebody is missing".to_owned()],
        };
        let ratios = result.ratios();
        let found: Vec<_> = ratios.iter().map(|r| (r.ratio, r.aim, r.is_reached())).collect();
        let expected = [(0.6, Some(0.5), false), (0.25, Some(0.5), true), (0.9, Some(1.0), true)];
        assert_eq!(found, expected);
        let table = result.table();
        for text in ["0.600 × (aim 0.50, missed)", "0.900 × (aim 1.00)", "somebody is missing"] {
            assert!(table.contains(text), "{table}");
        }
    }
}
