//! What HTTP alone knows of the server, among the figures that `stoa-query` gives.

use stoa_env::clock;
use stoa_figures::{Http, HttpRequests, RefusedConnections, Server, Snapshot};

use crate::app::App;
use crate::process;

/// `engine`, with the process and requests; without samples.
pub(crate) fn complete(app: &App, engine: Snapshot) -> Snapshot {
    Snapshot {
        server: server(app, engine.machine.process_cpu_s),
        http: Http { requests_running: app.requests.running() as u64 },
        http_requests: http_requests(app),
        refused_connections: refused_connections(),
        alerts: app.alerts.on(),
        ..engine
    }
}

fn server(app: &App, cpu_s: Option<f64>) -> Server {
    Server {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        not_ready: app.not_ready(),
        warehouse: app.engine.options().warehouse.to_string(),
        started_unix_ms: app.started_unix_ms,
        now_unix_ms: clock::unix_ms(),
        uptime_ms: u64::try_from(app.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        resident_bytes: process::resident_bytes(),
        cpu_s,
    }
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
