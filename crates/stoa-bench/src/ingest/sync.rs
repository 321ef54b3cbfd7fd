//! What a bare write and sync takes on the disk that is measured.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use stoa_env::clock::monotonic;
use stoa_error::{Error, Result};

/// Percentiles of the time for one write and `fdatasync`, microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SyncTimes {
    /// Half of them take no longer.
    pub p50_us: u64,
    /// All but one of a hundred.
    pub p99_us: u64,
}

/// Writes and syncs `bytes` at a time to a file in `directory` for `duration`.
///
/// # Errors
/// Unavailable with the operating system's reason.
pub(crate) fn measure(directory: &Path, bytes: usize, duration: Duration) -> Result<SyncTimes> {
    let path = directory.join("sync.tmp");
    let failed = |e| Error::unavailable(format!("cannot write {}", path.display())).with_source(e);
    let mut file =
        OpenOptions::new().create(true).truncate(true).write(true).open(&path).map_err(failed)?;
    let block = vec![1u8; bytes];
    let mut times = histogram()?;
    let begin = monotonic();
    while begin.elapsed() < duration {
        let one = monotonic();
        file.write_all(&block).and_then(|()| file.sync_data()).map_err(failed)?;
        times.saturating_record(one.elapsed().as_micros() as u64);
    }
    drop(file);
    std::fs::remove_file(&path).map_err(failed)?;
    Ok(SyncTimes { p50_us: times.value_at_quantile(0.5), p99_us: times.value_at_quantile(0.99) })
}

/// For microseconds up to a minute, to three digits.
pub(crate) fn histogram() -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, 60_000_000, 3)
        .map_err(|e| Error::internal("cannot make a histogram").with_source(e))
}
