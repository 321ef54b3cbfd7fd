//! What requests cost.

use crate::StoreTotals;
use crate::meter::RequestKind;

/// Prices of requests, in dollars per million. Storage and traffic out of the region are not here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// GET and HEAD.
    pub reads: f64,
    /// PUT, POST, COPY and LIST.
    pub writes: f64,
}

impl Default for Prices {
    /// S3 Standard in us-east-1: $0.0004 per thousand GET, $0.005 per thousand PUT or LIST
    /// (<https://aws.amazon.com/s3/pricing/>).
    fn default() -> Self {
        Self { reads: 0.40, writes: 5.00 }
    }
}

impl Prices {
    /// Nothing costs anything: a local disk.
    pub const FREE: Self = Self { reads: 0.0, writes: 0.0 };

    /// Dollars for a million requests of one kind.
    pub(crate) fn per_million(&self, kind: RequestKind) -> f64 {
        match kind {
            RequestKind::Read | RequestKind::Head => self.reads,
            RequestKind::Write | RequestKind::List => self.writes,
            RequestKind::Delete => 0.0,
        }
    }

    /// Dollars for the requests in `totals`, retries included. Deletes are free.
    pub fn dollars(&self, totals: &StoreTotals) -> f64 {
        let reads = (totals.reads + totals.heads) as f64;
        let writes = (totals.writes + totals.lists) as f64;
        (reads * self.reads + writes * self.writes) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_costs_as_much_as_a_write() {
        let totals = StoreTotals {
            reads: 900_000,
            heads: 100_000,
            writes: 10,
            lists: 10,
            deletes: 5,
            ..StoreTotals::default()
        };
        assert!((Prices::default().dollars(&totals) - 0.4001).abs() < 1e-9);
        assert_eq!(Prices::FREE.dollars(&totals), 0.0);
    }
}
