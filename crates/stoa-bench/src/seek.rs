//! ORC-1136's experiment rebuilt: what merging of range reads saves on a slow store.
//!
//! In: sizes. Out: a [`SeekResult`]: requests, bytes and seconds of reading all columns, or every
//! second one, of a real ORC file under several rules (nothing merged, ORC-1136's fixed gap, the
//! adaptive plan), and of one report on a file never seen before.
//!
//! ```text
//! stoa-orc Decoder ─ ranges ─► RangeReader ─ reads ─► ThrottledStore ─► file in memory
//! ```
//!
//! **Time is simulated**: all waits are on tokio's clock, which stands still while anything runs and
//! jumps to the next wait when nothing does. So figures are exact to a millisecond, do not depend on
//! the machine, and hold no time for decoding.
//!
//! The wide file is that of the original's benchmark (`ChunkReadUtil` in apache/orc): a row number
//! and then columns of string, decimal(20, 6) and long in turn, all of them with the same random
//! number per row. Reading starts when the tail is known, as there.

mod cold;
mod fetch;
mod outcome;
mod wide;

pub use cold::ColdReport;
pub use outcome::SeekResult;
pub use wide::{Columns, Rule, WideRead};

use stoa_error::{Error, Result};

use self::fetch::Slowness;
use crate::ad_report::AdReportSpec;

/// What to read.
#[derive(Clone, Debug)]
pub struct SeekOptions {
    /// Columns of the wide file besides the row number.
    pub columns: usize,
    /// Rows of the wide file.
    pub rows: u64,
    /// The table whose reports are read.
    pub report_table: AdReportSpec,
}

impl Default for SeekOptions {
    /// The original's 128 columns and 65,536 rows; the ad-report table of 10 M rows.
    fn default() -> Self {
        Self { columns: 128, rows: 65_536, report_table: AdReportSpec::default() }
    }
}

/// Latencies in milliseconds, bandwidths of a connection in bytes per second, and connections.
const LATENCIES_MS: [u64; 2] = [30, 80];
const BANDWIDTHS: [f64; 2] = [50e6, 100e6];
const PARALLELISMS: [usize; 2] = [1, 10];

/// Runs all reads, on a runtime of its own whose clock is simulated.
///
/// # Errors
/// `Corrupt` if rows are missing or a report's answer is wrong.
pub fn run(options: &SeekOptions, progress: &mut dyn FnMut(&str)) -> Result<SeekResult> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|e| Error::internal("cannot start a runtime").with_source(e))?;
    runtime.block_on(async {
        progress("writing the wide file");
        let file = wide::file(options.columns, options.rows, 1)?;
        let file_bytes = file.len() as u64;
        let one = wide::Wide::new(file, options.rows)?;
        let several = wide::file(options.columns, options.rows, wide::STRIPES)?;
        let several = wide::Wide::new(several, options.rows)?;
        progress("reading the wide file");
        let mut wide = one.read_all(Slowness::all()).await?;
        wide.extend(one.read_all(Slowness::with_jitter()).await?);
        wide.extend(several.read_all(Slowness::in_parallel()).await?);
        wide.extend(several.read_all(Slowness::with_jitter()).await?);
        progress("writing the ad-report table");
        let reports = cold::Reports::make(options.report_table.clone())?;
        progress("reading reports");
        let cold = reports.read_all().await?;
        Ok(SeekResult { file_bytes, wide, cold })
    })
}
