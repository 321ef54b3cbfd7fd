//! How reads are planned and run. Presets name the kind of store they suit.

/// What a plan may do. Start from a preset.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// Two ranges whose gap is at most this many bytes become one read
    /// (`orc.min.disk.seek.size`).
    pub min_seek_size: u64,
    /// Extra bytes of a read relative to its needed bytes up to which the slices handed out keep
    /// the whole read alive; beyond it the needed bytes are copied and the rest is dropped
    /// (`orc.min.disk.seek.size.tolerance`).
    pub tolerance: f64,
    /// No read is larger than this; larger single ranges are split. At least 1.
    pub max_read_bytes: u64,
}

impl PlanOptions {
    /// For bytes in memory: nothing is merged, nothing is copied.
    pub fn memory() -> Self {
        Self { min_seek_size: 0, tolerance: f64::INFINITY, max_read_bytes: u64::MAX }
    }

    /// For a local disk: gaps of up to 64 KiB are read over.
    pub fn local_file() -> Self {
        Self { min_seek_size: 64 << 10, tolerance: 1.0, max_read_bytes: 64 << 20 }
    }

    /// For an object store with tens of milliseconds to the first byte.
    pub fn object_store() -> Self {
        Self { min_seek_size: 4 << 20, tolerance: 1.0, max_read_bytes: 16 << 20 }
    }
}

/// How a [`RangeReader`](crate::RangeReader) works. Start from a preset.
#[derive(Clone, Debug, PartialEq)]
pub struct ReaderOptions {
    /// How reads are planned.
    pub plan: PlanOptions,
    /// Reads in flight at once, at least 1.
    pub parallelism: usize,
    /// Whether all reads of a plan go to the store in one `get_ranges` call (local files: one
    /// open, one blocking job) instead of one request each.
    pub one_call: bool,
}

impl ReaderOptions {
    /// For a store in memory.
    pub fn memory() -> Self {
        Self { plan: PlanOptions::memory(), parallelism: 1, one_call: true }
    }

    /// For local files.
    pub fn local_file() -> Self {
        Self { plan: PlanOptions::local_file(), parallelism: 1, one_call: true }
    }

    /// For an object store.
    pub fn object_store() -> Self {
        Self { plan: PlanOptions::object_store(), parallelism: 10, one_call: false }
    }
}
