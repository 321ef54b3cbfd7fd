//! What stores were asked for.

use crate::figure::{Family, Figure};
use crate::group::Group;
use crate::kind::{Kind, Unit};
use crate::seen::Shape;

/// One store since the start.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// `file://` or `s3://bucket`.
    pub store: String,
    /// Read requests.
    pub gets: u64,
    /// Requests for an object's size.
    pub heads: u64,
    /// Write requests.
    pub puts: u64,
    /// Requests that list.
    pub lists: u64,
    /// Requests that delete.
    pub deletes: u64,
    /// Failed requests that were sent again.
    pub retries: u64,
    /// Reads sent a second time because the first was slow.
    pub hedges: u64,
    /// Requests that failed in a way that may pass.
    pub errors: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Time until answers began, summed over requests, milliseconds.
    pub wait_ms: f64,
    /// What the requests cost, dollars.
    pub cost_usd: f64,
}

impl Store {
    fn requests(&self) -> u64 {
        self.gets + self.heads + self.puts + self.lists + self.deletes
    }
}

const BY_KIND: Family = Family {
    name: "stoa_store_requests_total",
    label: "kind",
    help: "Requests to stores, retries included.",
};

const REQUESTS: Unit = Unit::Of("requests");

type This = Figure<Store>;

const FIGURES: &[This] = &[
    This::key("store", "`file://` or `s3://bucket`.", |s| &s.store),
    This::counter("gets", REQUESTS, "Read requests; of a local disk, ranges.", |s| s.gets)
        .part_of(&BY_KIND, "get"),
    This::counter("heads", REQUESTS, "Requests for an object's size only.", |s| s.heads)
        .part_of(&BY_KIND, "head"),
    This::counter(
        "puts",
        REQUESTS,
        "PUT and POST: whole objects, parts, beginnings and ends of uploads.",
        |s| s.puts,
    )
    .part_of(&BY_KIND, "put"),
    This::counter("lists", REQUESTS, "Requests that list.", |s| s.lists).part_of(&BY_KIND, "list"),
    This::counter("deletes", REQUESTS, "Requests that delete, of one object or of many.", |s| {
        s.deletes
    })
    .part_of(&BY_KIND, "delete"),
    This::counter(
        "requests",
        REQUESTS,
        "Requests of all kinds, retries included.",
        Store::requests,
    ),
    This::counter("retries", REQUESTS, "Failed requests that were sent again.", |s| s.retries)
        .metric("stoa_store_retries_total"),
    This::counter("hedges", REQUESTS, "Reads sent a second time, as the first was slow.", |s| {
        s.hedges
    })
    .metric("stoa_store_hedges_total"),
    This::counter("errors", REQUESTS, "Requests that failed for a reason that may pass.", |s| {
        s.errors
    })
    .metric("stoa_store_errors_total"),
    This::counter("bytes_read", Unit::Bytes, "Bytes read from stores.", |s| s.bytes_read)
        .metric("stoa_store_read_bytes_total"),
    This::counter("bytes_written", Unit::Bytes, "Bytes written to stores.", |s| s.bytes_written)
        .metric("stoa_store_written_bytes_total"),
    This::float(
        "wait_ms",
        Kind::Counter,
        Unit::Milliseconds,
        "Time until answers began, summed over requests.",
        |s| s.wait_ms,
    )
    .metric("stoa_store_wait_seconds_total"),
    This::float(
        "cost_usd",
        Kind::Counter,
        Unit::Dollars,
        "What the requests cost, by the prices set.",
        |s| s.cost_usd,
    )
    .metric("stoa_store_cost_dollars_total"),
];

/// `system.stores`.
pub static STORES: Group<Store> = Group::new(
    "stores",
    "Store",
    "Every store that was opened, and what it was asked for since the start.",
    Shape::Many,
    FIGURES,
)
.table()
.in_status()
.for_everyone();
