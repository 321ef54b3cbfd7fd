//! Who requests are made for.
//!
//! In: a [`Charge`] and a future. Out: whatever the future asks of object stores is counted into the
//! charge, beside the totals of each store. Local disks cost nothing and are not counted here.
//!
//! **Invariant:** a request is counted for the innermost [`charged`] future that it was made in. Tasks
//! that such a future starts are on their own, unless they are started with [`also_charged`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::Either;

use crate::meter::RequestKind;
use crate::{Prices, StoreMetrics, StoreTotals};

tokio::task_local! {
    static CHARGE: Arc<Charge>;
}

/// Running totals of requests to object stores that were made for one purpose, for instance a query.
#[derive(Debug, Default)]
pub struct Charge {
    metrics: StoreMetrics,
    /// Millionths of a millionth of a dollar, so that sums of prices are exact.
    pico_dollars: AtomicU64,
}

/// A [`Charge`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Charged {
    /// Requests and bytes.
    pub totals: StoreTotals,
    /// What the requests cost, in dollars, by the prices of their stores.
    pub dollars: f64,
}

impl Charge {
    /// The totals so far.
    pub fn charged(&self) -> Charged {
        let dollars = self.pico_dollars.load(Ordering::Relaxed) as f64 / 1e12;
        Charged { totals: self.metrics.totals(), dollars }
    }

    /// Counts what another charge has counted.
    pub fn add(&self, other: &Self) {
        self.metrics.add(&other.metrics.totals());
        let pico_dollars = other.pico_dollars.load(Ordering::Relaxed);
        self.pico_dollars.fetch_add(pico_dollars, Ordering::Relaxed);
    }

    pub(crate) fn metrics(&self) -> &StoreMetrics {
        &self.metrics
    }

    pub(crate) fn add_price(&self, kind: RequestKind, prices: &Prices) {
        let pico_dollars = (prices.per_million(kind) * 1e6).round() as u64;
        self.pico_dollars.fetch_add(pico_dollars, Ordering::Relaxed);
    }
}

impl Charged {
    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self { totals: self.totals.plus(&other.totals), dollars: self.dollars + other.dollars }
    }
}

/// Does `work`, whose requests are counted into `charge`.
// Not an `async fn`, which would keep the place of `work` twice: futures of statements are large.
pub fn charged<F: Future>(charge: Arc<Charge>, work: F) -> impl Future<Output = F::Output> {
    CHARGE.scope(charge, work)
}

/// Does `work` for whom this is called for, also on another task.
pub fn also_charged<F: Future>(work: F) -> impl Future<Output = F::Output> {
    match current() {
        Some(charge) => Either::Left(charged(charge, work)),
        None => Either::Right(work),
    }
}

/// For whom requests are made now.
pub(crate) fn current() -> Option<Arc<Charge>> {
    CHARGE.try_with(Arc::clone).ok()
}
