//! What is measured, and what is aimed at.

use serde::Serialize;

use crate::report_scan::REPORT_COLUMNS;

/// One thing that every contender does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// All columns of the file that Stoa wrote.
    ReadAll,
    /// All columns of the ORC file that pyarrow wrote.
    ReadAllOfPyarrow,
    /// Three columns of the file that Stoa wrote.
    ReadThree,
    /// The report of one account over seven days, from the file that Stoa wrote; who cannot leave
    /// out row groups or pages reads the report's columns whole.
    Report,
    /// The whole table, from Arrow batches in memory to a file.
    Write,
}

/// What [`Workload::ReadThree`] reads.
const THREE_COLUMNS: [&str; 3] = ["day", "impressions", "cost"];

impl Workload {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Self; 5] =
        [Self::ReadAll, Self::ReadAllOfPyarrow, Self::ReadThree, Self::Report, Self::Write];

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::ReadAll => "read all columns",
            Self::ReadAllOfPyarrow => "read all columns, pyarrow's file",
            Self::ReadThree => "read 3 of 11 columns",
            Self::Report => "1 account, 7 days",
            Self::Write => "write",
        }
    }

    /// The columns to read; `None` = all.
    pub fn columns(self) -> Option<&'static [&'static str]> {
        match self {
            Self::ReadThree => Some(&THREE_COLUMNS),
            Self::Report => Some(&REPORT_COLUMNS),
            Self::ReadAll | Self::ReadAllOfPyarrow | Self::Write => None,
        }
    }

    /// The most CPU time Stoa may take, relative to a contender by the first word of its name.
    pub(super) fn cpu_aim(self, against: &str) -> Option<f64> {
        match (self, against) {
            (Self::ReadAll | Self::ReadAllOfPyarrow | Self::Write, "pyarrow") => Some(0.5),
            (Self::ReadAll, "parquet-rs") => Some(1.0),
            (Self::ReadThree, "pyarrow") => Some(0.6),
            (Self::Report, "pyarrow") => Some(0.05),
            _ => None,
        }
    }

    /// The largest file Stoa may write, relative to a contender's.
    pub(super) fn bytes_aim(self, against: &str) -> Option<f64> {
        (self == Self::Write && against == "pyarrow").then_some(1.0)
    }
}
