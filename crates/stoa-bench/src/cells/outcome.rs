//! What was measured, for people and for scripts.

use std::fmt::Write;

use serde::Serialize;
use stoa_error::{Error, Result};

/// One step; medians over the runs.
#[derive(Clone, Debug, Serialize)]
pub struct CellsStep {
    /// What was done.
    pub name: String,
    /// Cells that went through.
    pub cells: u64,
    /// Seconds.
    pub seconds: f64,
    /// Cells per second.
    pub cells_per_second: f64,
    /// Bytes of the load files, or of what was printed, per second.
    pub bytes_per_second: f64,
    /// Processor time per cell, in nanoseconds, of all threads together.
    pub cpu_ns_per_cell: f64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// The most memory, in bytes.
    pub peak_memory_bytes: Option<u64>,
}

/// Single rows that were asked for one after the other, in all runs.
#[derive(Clone, Debug, Serialize)]
pub struct RowReads {
    /// When.
    pub name: String,
    /// Milliseconds for which half of them were waited for at most.
    pub p50_ms: f64,
    /// Milliseconds for which 99 of 100 were waited for at most.
    pub p99_ms: f64,
}

/// All steps of all runs.
#[derive(Clone, Debug, Serialize)]
pub struct CellsResult {
    /// Lines of the query log.
    pub lines: u64,
    /// Cells that it makes, counted after a restart in every run.
    pub cells: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// How often everything was done.
    pub runs: usize,
    /// In the order in which they were done.
    pub steps: Vec<CellsStep>,
    /// Single rows, by when they were asked for.
    pub rows: Vec<RowReads>,
    /// Milliseconds from the start of a new process's store until it takes statements.
    pub restart_ms: f64,
}

impl CellsResult {
    /// A table for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<26} {:>12} {:>9} {:>13} {:>9} {:>12} {:>7} {:>10} {:>9}\n",
            "step",
            "cells",
            "seconds",
            "cells/s",
            "MB/s",
            "CPU ns/cell",
            "syncs",
            "log MB",
            "peak MiB"
        );
        for step in &self.steps {
            let peak = step.peak_memory_bytes.map_or("-".into(), |b| (b >> 20).to_string());
            let _ = writeln!(
                text,
                "{:<26} {:>12} {:>9.2} {:>13.0} {:>9.1} {:>12.0} {:>7} {:>10.1} {:>9}",
                step.name,
                step.cells,
                step.seconds,
                step.cells_per_second,
                step.bytes_per_second / 1e6,
                step.cpu_ns_per_cell,
                step.log_syncs,
                step.log_bytes as f64 / 1e6,
                peak
            );
        }
        for RowReads { name, p50_ms, p99_ms } in &self.rows {
            let _ = writeln!(text, "single rows {name}: p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms");
        }
        let _ = writeln!(
            text,
            "restart: {:.0} ms; {} lines, {} cells, each counted in {} runs",
            self.restart_ms, self.lines, self.cells, self.runs
        );
        text
    }

    /// JSON for scripts.
    ///
    /// # Errors
    /// Internal if a figure is no number.
    pub fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map_err(|e| Error::internal("cannot write figures as JSON").with_source(e))
    }
}

/// Medians of the steps of several runs, which are the same steps.
pub(super) fn medians(runs: &[Vec<CellsStep>]) -> Vec<CellsStep> {
    let Some(first) = runs.first() else { return Vec::new() };
    let step = |(nth, name): (usize, &CellsStep)| {
        let mut alike: Vec<&CellsStep> = runs.iter().filter_map(|run| run.get(nth)).collect();
        alike.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let middle = alike.get(alike.len() / 2).copied().unwrap_or(name);
        let peak = alike.iter().filter_map(|step| step.peak_memory_bytes).max();
        CellsStep { peak_memory_bytes: peak, ..middle.clone() }
    };
    first.iter().enumerate().map(step).collect()
}

/// Percentiles of the rows that were asked for at the same stage of all runs.
pub(super) fn row_reads(latencies_ms: &[(&'static str, Vec<f64>)]) -> Vec<RowReads> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in latencies_ms {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let reads = |name: &str| {
        let of_name = latencies_ms.iter().filter(|(of, _)| *of == name);
        let mut all: Vec<f64> = of_name.flat_map(|(_, latencies)| latencies).copied().collect();
        all.sort_by(f64::total_cmp);
        let percentile = |share: f64| {
            let at = (all.len() as f64 * share) as usize;
            all.get(at.min(all.len().saturating_sub(1))).copied().unwrap_or(0.0)
        };
        RowReads { name: name.to_owned(), p50_ms: percentile(0.5), p99_ms: percentile(0.99) }
    };
    names.into_iter().map(reads).collect()
}

/// The middle one of some figures.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}
