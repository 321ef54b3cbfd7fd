//! The block of numbers behind LOAD, INSERT, DELETE, SELECT and DUMP.

use std::fmt::Write;
use std::time::Instant;

use crate::batch::CellBatch;

/// Counts what a statement writes or reads.
pub(crate) struct Statistics {
    started: Instant,
    /// Cells, markers among them.
    pub(crate) cells: u64,
    /// Bytes of row keys; qualifiers do not count (reference §1.4).
    pub(crate) key_bytes: u64,
    /// Bytes of values.
    pub(crate) value_bytes: u64,
    /// Bytes of the input file, if there is one.
    pub(crate) file_bytes: Option<u64>,
}

impl Statistics {
    /// Starts the clock.
    pub(crate) fn start() -> Self {
        let started = stoa_env::clock::monotonic();
        Self { started, cells: 0, key_bytes: 0, value_bytes: 0, file_bytes: None }
    }

    pub(crate) fn count(&mut self, batch: &CellBatch) {
        self.cells += batch.len() as u64;
        self.key_bytes += batch.row_bytes() as u64;
        self.value_bytes += batch.value_bytes() as u64;
    }

    /// The block; `writes` adds the line about cells that were sent again, which are none.
    pub(crate) fn text(&self, writes: bool) -> String {
        let elapsed = stoa_env::clock::monotonic().duration_since(self.started).as_secs_f64();
        self.text_after(elapsed, writes)
    }

    pub(super) fn text_after(&self, elapsed_s: f64, writes: bool) -> String {
        let per_second = |count: u64| if elapsed_s > 0.0 { count as f64 / elapsed_s } else { 0.0 };
        let average = |bytes: u64| bytes as f64 / self.cells.max(1) as f64;
        let bytes = per_second(self.key_bytes + self.value_bytes);
        let of_file = self.file_bytes.map(per_second);
        let of_file = of_file.map_or(String::new(), |rate| format!(" ({rate:.2} bytes/s)"));
        let mut text = String::from("\n");
        let _ = writeln!(text, "  Elapsed time:  {elapsed_s:.2} s");
        let _ = writeln!(text, "Avg value size:  {:.2} bytes", average(self.value_bytes));
        let _ = writeln!(text, "  Avg key size:  {:.2} bytes", average(self.key_bytes));
        let _ = writeln!(text, "    Throughput:  {bytes:.2} bytes/s{of_file}");
        let _ = writeln!(text, "   Total cells:  {}", self.cells);
        let _ = writeln!(text, "    Throughput:  {:.2} cells/s", per_second(self.cells));
        if writes {
            text.push_str("       Resends:  0\n");
        }
        text.push('\n');
        text
    }
}
