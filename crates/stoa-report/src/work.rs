//! What a report took.

/// What a report took, and what it was spared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportWork {
    /// Data files of the version.
    pub files_total: u64,
    /// Those that may hold rows of the report.
    pub files_read: u64,
    /// Row groups in these files.
    pub row_groups_total: u64,
    /// Those that may hold rows of the report.
    pub row_groups_read: u64,
    /// Rows in these, and fresh rows of blocks that may hold rows of the report.
    pub rows_read: u64,
    /// Rows that met all conditions.
    pub rows_selected: u64,
    /// Chunks that were in memory.
    pub chunk_hits: u64,
    /// Chunks that were not.
    pub chunk_misses: u64,
    /// Those of them that were on disk.
    pub disk_hits: u64,
    /// Read requests.
    pub requests: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Requests among them that were sent a second time because the first was slow.
    pub hedges: u64,
}

impl ReportWork {
    /// Adds what another part of the same report took. Both know of the same files of the version.
    pub(crate) fn add(&mut self, other: &Self) {
        self.files_total = self.files_total.max(other.files_total);
        self.files_read = self.files_read.max(other.files_read);
        self.row_groups_total = self.row_groups_total.max(other.row_groups_total);
        self.row_groups_read += other.row_groups_read;
        self.rows_read += other.rows_read;
        self.rows_selected += other.rows_selected;
        self.chunk_hits += other.chunk_hits;
        self.chunk_misses += other.chunk_misses;
        self.disk_hits += other.disk_hits;
        self.requests += other.requests;
        self.bytes_read += other.bytes_read;
        self.hedges += other.hedges;
    }
}
