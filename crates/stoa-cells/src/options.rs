//! Settings of [`CellTables`](crate::CellTables).

use std::sync::Arc;

use stoa_hql::TimestampSource;

/// Settings of [`CellTables`](crate::CellTables).
#[derive(Clone, Debug)]
pub struct CellOptions {
    /// Where timestamps come from. One source serves all writers of a process.
    pub timestamps: Arc<TimestampSource>,
    /// Memory of one bulk load, bytes, about: cells being collected and sorted, files being written.
    pub load_memory_bytes: usize,
    /// Memory of one scan, bytes, about: parts of files that are being read.
    pub scan_memory_bytes: usize,
    /// Memory of one compaction that a command asks for, bytes, about.
    pub compaction_memory_bytes: usize,
}

impl Default for CellOptions {
    fn default() -> Self {
        Self {
            timestamps: Arc::new(TimestampSource::system()),
            load_memory_bytes: 384 << 20,
            scan_memory_bytes: 128 << 20,
            compaction_memory_bytes: 256 << 20,
        }
    }
}
