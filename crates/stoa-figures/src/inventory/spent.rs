//! What statements take of caches and object stores.

/// Of one statement, or of many together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Chunks found in memory.
    pub chunk_hits: u64,
    /// Chunks not found there.
    pub chunk_misses: u64,
    /// Read requests to object stores.
    pub store_gets: u64,
    /// Requests for an object's size.
    pub store_heads: u64,
    /// Write requests.
    pub store_puts: u64,
    /// Requests that list.
    pub store_lists: u64,
    /// Requests that delete.
    pub store_deletes: u64,
    /// Failed requests that were sent again.
    pub store_retries: u64,
    /// Bytes read from object stores.
    pub store_bytes_read: u64,
    /// Bytes written to them.
    pub store_bytes_written: u64,
    /// Reads sent a second time because the first was slow.
    pub hedges: u64,
    /// What the requests cost, dollars.
    pub cost_usd: f64,
}

impl Spent {
    pub(crate) fn hit_ratio(&self) -> Option<f64> {
        let asked = self.chunk_hits + self.chunk_misses;
        (asked > 0).then(|| self.chunk_hits as f64 / asked as f64)
    }
}

/// The figures of a row with a member `spent`, between others.
macro_rules! with_spent {
    ([$($before:expr),* $(,)?], [$($after:expr),* $(,)?]) => {
        &[
            $($before,)*
            $crate::figure::Figure::maybe_float(
                "hit_ratio",
                $crate::kind::Kind::Gauge,
                $crate::kind::Unit::Ratio,
                "Share of chunks that were in memory; null where none was asked for.",
                |s| s.spent.hit_ratio(),
            ),
            $crate::inventory::spent::with_spent!(@ "chunk_hits", "chunks",
                "Chunks that reports and scans found in memory.", chunk_hits),
            $crate::inventory::spent::with_spent!(@ "chunk_misses", "chunks",
                "Chunks that they did not.", chunk_misses),
            $crate::inventory::spent::with_spent!(@ "store_gets", "requests",
                "Read requests to object stores, retries included; local files are not counted, here and below.",
                store_gets),
            $crate::inventory::spent::with_spent!(@ "store_heads", "requests",
                "Requests for an object's size only.", store_heads),
            $crate::inventory::spent::with_spent!(@ "store_puts", "requests",
                "PUT and POST: whole objects, parts, beginnings and ends of uploads.", store_puts),
            $crate::inventory::spent::with_spent!(@ "store_lists", "requests",
                "Requests that list.", store_lists),
            $crate::inventory::spent::with_spent!(@ "store_deletes", "requests",
                "Requests that delete.", store_deletes),
            $crate::inventory::spent::with_spent!(@ "store_retries", "requests",
                "Failed requests that were sent again.", store_retries),
            $crate::figure::Figure::gauge("store_bytes_read", $crate::kind::Unit::Bytes,
                "Bytes read from object stores.", |s| s.spent.store_bytes_read),
            $crate::figure::Figure::gauge("store_bytes_written", $crate::kind::Unit::Bytes,
                "Bytes written to them.", |s| s.spent.store_bytes_written),
            $crate::inventory::spent::with_spent!(@ "hedges", "requests",
                "Reads that were sent a second time because the first was slow.", hedges),
            $crate::figure::Figure::float(
                "cost_usd",
                $crate::kind::Kind::Gauge,
                $crate::kind::Unit::Dollars,
                "What the requests cost, by `s3_read_price` and `s3_write_price`.",
                |s| s.spent.cost_usd,
            ),
            $($after,)*
        ]
    };
    (@ $name:literal, $things:literal, $help:literal, $field:ident) => {
        $crate::figure::Figure::gauge($name, $crate::kind::Unit::Of($things), $help, |s| {
            s.spent.$field
        })
    };
}
pub(crate) use with_spent;
