//! Requests over HTTP.

use crate::figure::Figure;
use crate::group::Group;
use crate::kind::Unit;
use crate::seen::Shape;

/// The HTTP server.
#[derive(Clone, Debug, Default)]
pub struct Http {
    /// Requests under way.
    pub requests_running: u64,
}

/// Requests of one route that ended alike.
#[derive(Clone, Debug, Default)]
pub struct HttpRequests {
    /// The path, or where it begins.
    pub route: String,
    /// The answer's status; 499 where the client went away.
    pub status: u16,
    /// How many.
    pub requests: u64,
}

const FIGURES: &[Figure<Http>] = &[Figure::<Http>::gauge(
    "requests_running",
    Unit::Of("requests"),
    "HTTP requests under way.",
    |s| s.requests_running,
)
.metric("stoa_http_running_requests")];

const REQUESTS: &[Figure<HttpRequests>] = &[
    Figure::<HttpRequests>::key("route", "The path, or where it begins.", |s| &s.route),
    Figure::<HttpRequests>::number(
        "status",
        "status",
        "The answer's status; 499 where the client went away.",
        |s| s.status as u64,
    ),
    Figure::<HttpRequests>::counter(
        "requests",
        Unit::Of("requests"),
        "HTTP requests, by route and status.",
        |s| s.requests,
    )
    .metric("stoa_http_requests_total"),
];

/// The HTTP server.
pub static HTTP: Group<Http> =
    Group::new("http", "Http", "The HTTP server.", Shape::One, FIGURES).in_status().for_everyone();

/// Its requests since the start.
pub static HTTP_REQUESTS: Group<HttpRequests> = Group::new(
    "http_requests",
    "HttpRequests",
    "HTTP requests since the start.",
    Shape::Many,
    REQUESTS,
)
.in_status()
.for_everyone();
