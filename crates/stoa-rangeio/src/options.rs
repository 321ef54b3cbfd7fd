//! How reads are planned and run. Presets name the kind of store they suit.

use std::time::Duration;

/// What a plan may do. Start from a preset.
///
/// With `profile` unset the plan follows ORC-1136: gaps up to `min_seek_size` are read over. With
/// a profile the plan is chosen by what it would cost there, and `min_seek_size` is not used.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// Two ranges whose gap is at most this many bytes become one read
    /// (`orc.min.disk.seek.size`). Ranges that touch always do.
    pub min_seek_size: u64,
    /// Extra bytes of a read relative to its needed bytes up to which the slices handed out keep
    /// the whole read alive; beyond it the needed bytes are copied and the rest is dropped
    /// (`orc.min.disk.seek.size.tolerance`).
    pub tolerance: f64,
    /// No read is larger than this many bytes; larger single ranges are split. At least 1.
    pub max_read_bytes: u64,
    /// Extra bytes of a whole plan, relative to all needed bytes, that it never exceeds; the
    /// widest gaps are given up first.
    pub max_over_read: f64,
    /// The store to choose an adaptive plan for.
    pub profile: Option<StoreProfile>,
}

impl PlanOptions {
    /// For bytes in memory: nothing is merged, nothing is copied.
    pub fn memory() -> Self {
        Self {
            min_seek_size: 0,
            tolerance: f64::INFINITY,
            max_read_bytes: u64::MAX,
            max_over_read: 0.0,
            profile: None,
        }
    }

    /// For a local disk: gaps of up to 64 KiB are read over.
    pub fn local_file() -> Self {
        Self {
            min_seek_size: 64 << 10,
            tolerance: 1.0,
            max_read_bytes: 64 << 20,
            max_over_read: 4.0,
            profile: None,
        }
    }

    /// For an object store: adaptive, from a profile of S3 in the same region until requests
    /// have been measured.
    pub fn object_store() -> Self {
        Self {
            min_seek_size: 4 << 20,
            tolerance: 1.0,
            max_read_bytes: 128 << 20,
            max_over_read: 8.0,
            profile: Some(StoreProfile::default()),
        }
    }

    /// ORC-1136 as Java has it: one gap for all stores, reads up to 2 GiB.
    pub fn orc_1136(min_seek_size: u64, tolerance: f64) -> Self {
        Self {
            min_seek_size,
            tolerance,
            max_read_bytes: (1 << 31) - 1,
            max_over_read: f64::INFINITY,
            profile: None,
        }
    }
}

/// What requests to a store cost, in time and money.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoreProfile {
    /// From the request to its first byte.
    pub latency: Duration,
    /// Bytes per second of one request once it flows.
    pub bandwidth: f64,
    /// Bytes per second of all requests together (the network card).
    pub bandwidth_total: f64,
    /// Requests that run at once (K); a reader sets it from its own options.
    pub parallelism: usize,
    /// What one request is worth in time: its price over the price of the machine that waits.
    pub request_price: Duration,
}

impl Default for StoreProfile {
    /// S3 from the same region: 30 ms, 90 MB/s a request, 12.5 Gbit/s in all, ten at once;
    /// $0.40 per million requests on a machine of $1 an hour.
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(30),
            bandwidth: 90e6,
            bandwidth_total: 12.5e9 / 8.0,
            parallelism: 10,
            request_price: Self::request_price(0.40, 1.0),
        }
    }
}

impl StoreProfile {
    /// The worth of a request in time, from dollars per million requests and per machine hour.
    pub fn request_price(per_million_requests: f64, per_machine_hour: f64) -> Duration {
        let seconds = per_million_requests / 1e6 / (per_machine_hour / 3600.0);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Seconds one request of `bytes` takes.
    pub(crate) fn request_seconds(&self, bytes: u64) -> f64 {
        self.latency.as_secs_f64() + bytes as f64 / self.bandwidth.max(1.0)
    }

    /// The gap below which reading over it beats a request of its own on one connection
    /// (h* = latency × bandwidth).
    pub fn break_even_gap(&self) -> u64 {
        (self.latency.as_secs_f64() * self.bandwidth) as u64
    }
}

/// How a [`RangeReader`](crate::RangeReader) works. Start from a preset.
#[derive(Clone, Debug, PartialEq)]
pub struct ReaderOptions {
    /// How reads are planned.
    pub plan: PlanOptions,
    /// Reads of one call in flight at once (K), at least 1. A profile in `plan` is given the same.
    pub parallelism: usize,
    /// Reads in flight at once of a reader and all its clones together.
    pub in_flight_max: usize,
    /// Whether all reads of a plan go to the store in one `get_ranges` call (local files: one
    /// open, one blocking job) instead of one request each. There are no retries then.
    pub one_call: bool,
    /// Whether latency and bandwidth of the profile follow what requests are seen to take.
    pub measure: bool,
    /// How often a request that failed in a way that may pass is sent again.
    pub retries: u32,
    /// Wait before the first retry; it doubles with each.
    pub retry_wait: Duration,
    /// When a request that has not finished is sent a second time; `None` = never.
    pub hedge: Option<HedgeOptions>,
}

/// When a straggler is asked for a second time. The first answer counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HedgeOptions {
    /// Not before this.
    pub wait_min: Duration,
    /// Not before this many times the time the profile expects for the request.
    pub expected_times: f64,
    /// Share of all requests that may be sent a second time.
    pub share_max: f64,
}

impl Default for HedgeOptions {
    /// After 600 ms and four times the expected time; one request in ten at most.
    fn default() -> Self {
        Self { wait_min: Duration::from_millis(600), expected_times: 4.0, share_max: 0.1 }
    }
}

impl ReaderOptions {
    /// For a store in memory.
    pub fn memory() -> Self {
        Self {
            plan: PlanOptions::memory(),
            parallelism: 1,
            in_flight_max: 1024,
            one_call: true,
            measure: false,
            retries: 0,
            retry_wait: Duration::ZERO,
            hedge: None,
        }
    }

    /// For local files.
    pub fn local_file() -> Self {
        Self { plan: PlanOptions::local_file(), ..Self::memory() }
    }

    /// For an object store.
    pub fn object_store() -> Self {
        Self {
            plan: PlanOptions::object_store(),
            parallelism: StoreProfile::default().parallelism,
            in_flight_max: 256,
            one_call: false,
            measure: true,
            retries: 3,
            retry_wait: Duration::from_millis(50),
            hedge: Some(HedgeOptions::default()),
        }
    }
}
