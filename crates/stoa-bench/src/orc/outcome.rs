//! What a run found: medians and ratios, as a table and as JSON.

use std::fmt::Write;

use serde::Serialize;
use serde_json::json;
use stoa_error::{Error, Result};

use super::work::Work;
use crate::ad_report::AdReportSpec;

/// One contender's figures for one work.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// What was done.
    pub work: Work,
    /// By whom, with version.
    pub contender: String,
    /// Median CPU time, user and system, in seconds; per report for [`Work::Report`].
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
    pub work: Work,
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
            "{} rows, CPU seconds (user and system, one thread), median of {} rounds\n\n\
             {:<34} {:<20} {:>9} {:>9} {:>9} {:>9}  {:>10} {:>8}\n",
            self.spec.rows,
            self.rounds,
            "",
            "",
            "median",
            "least",
            "most",
            "MB file",
            "stoa is",
            "aim"
        );
        let ratios = self.ratios();
        for group in self.measurements.chunk_by(|a, b| a.work == b.work) {
            for (at, m) in group.iter().enumerate() {
                let title = if at == 0 { m.work.title() } else { "" };
                let bytes = m.file_bytes.map(|bytes| format!("{:.1}", bytes as f64 / 1e6));
                let of = |quantity| {
                    ratios.iter().find(|ratio| {
                        (ratio.work, ratio.quantity) == (m.work, quantity)
                            && ratio.against == m.contender
                    })
                };
                let _ = write!(
                    text,
                    "{title:<34} {:<20} {:>9} {:>9} {:>9} {:>9}",
                    m.contender,
                    seconds(m.cpu_seconds),
                    seconds(m.cpu_seconds_min),
                    seconds(m.cpu_seconds_max),
                    bytes.unwrap_or_default(),
                );
                for (ratio, of) in [(of(Quantity::Cpu), "CPU"), (of(Quantity::FileBytes), "size")] {
                    let _ = ratio.map(|ratio| write!(text, "  {}", show(ratio, of)));
                }
                text.push('\n');
            }
        }
        self.notes.iter().for_each(|note| {
            let _ = writeln!(text, "\n{note}");
        });
        text
    }
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

/// `0.46 × CPU (aim 0.50)`, and whether it is missed.
fn show(ratio: &Ratio, of: &str) -> String {
    let aim = ratio.aim.map(|aim| format!(" (aim {aim:.2})")).unwrap_or_default();
    let missed = if ratio.is_reached() { "" } else { " MISSED" };
    format!("{:.3} × {of}{aim}{missed}", ratio.ratio)
}
