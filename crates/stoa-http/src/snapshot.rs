//! What HTTP alone knows of the server, among the figures that `stoa-query` gives.

use stoa_env::clock;
use stoa_figures::{
    Histogram, Http, HttpRequests, Latency, Rate, RefusedConnections, Server, Snapshot,
};
use stoa_query::LatencyHistogram;

use crate::app::App;
use crate::process;
use crate::sampler::{RECENT, WINDOW};

/// `engine`, with the process, rates and requests; without samples.
pub(crate) fn complete(app: &App, engine: Snapshot) -> Snapshot {
    let rate = Rate { per_second: app.sampler.rate(), window_s: WINDOW as u64 };
    Snapshot {
        server: server(app),
        rate,
        latency: latency(app),
        http: Http { requests_running: app.requests.running() as u64 },
        http_requests: http_requests(app),
        refused_connections: refused_connections(),
        alerts: app.alerts.on(),
        ..engine
    }
}

fn server(app: &App) -> Server {
    Server {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        not_ready: app.not_ready(),
        warehouse: app.engine.options().warehouse.to_string(),
        started_unix_ms: app.started_unix_ms,
        now_unix_ms: clock::unix_ms(),
        uptime_ms: u64::try_from(app.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        resident_bytes: process::resident_bytes(),
        cpu_s: process::cpu_seconds(),
    }
}

fn latency(app: &App) -> Latency {
    let [p50_ms, p95_ms, p99_ms] = app.sampler.recent_percentiles();
    let duration = histogram(&app.engine.queries().latency().snapshot());
    Latency { p50_ms, p95_ms, p99_ms, window_s: RECENT as u64, duration }
}

/// The registry's buckets grow by a quarter of a power of two; here by a whole one, from 64 µs on.
fn histogram(counts: &[u64]) -> Histogram {
    const BUCKETS_PER_LIMIT: usize = 4;
    let mut histogram = Histogram::default();
    for (index, count) in counts.iter().enumerate() {
        histogram.count += count;
        // The middle of the bucket, as ratios go.
        let upper_s = LatencyHistogram::bucket_upper_us(index) / 1e6;
        histogram.sum += *count as f64 * upper_s / 2_f64.powf(0.5 / BUCKETS_PER_LIMIT as f64);
        let is_limit = index % BUCKETS_PER_LIMIT == BUCKETS_PER_LIMIT - 1;
        if is_limit && (6..30).contains(&(index / BUCKETS_PER_LIMIT)) {
            histogram.buckets.push((upper_s, histogram.count));
        }
    }
    histogram
}

fn http_requests(app: &App) -> Vec<HttpRequests> {
    let counts = app.requests.counts().into_iter();
    counts
        .map(|((route, status), requests)| HttpRequests {
            route: route.to_owned(),
            status,
            requests,
        })
        .collect()
}

fn refused_connections() -> Vec<RefusedConnections> {
    let counts = stoa_listen::refused_connections().into_iter();
    counts
        .map(|(listener, connections)| RefusedConnections {
            listener: listener.to_owned(),
            connections,
        })
        .collect()
}
