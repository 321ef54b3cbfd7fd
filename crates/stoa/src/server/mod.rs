//! The server process: binds, opens the warehouse, serves, and ends in order.
//!
//! ```text
//! read the certificate ─► bind ports ─► open engine ─► serve pgwire, HTTP, Flight SQL, HiveServer2 ─► say so on stdout ─► wait for a signal
//!     ─► stop taking work ─► running queries finish or are cancelled ─► connections end ─► exit 0
//! ```
//!
//! **Invariants:** the line on stdout is printed when all ports take connections. After the first signal,
//! the process ends within the grace time plus [`END_LIMIT`], even if a thread does not respond: normally
//! with exit code 0 within the grace time plus about 50 seconds (`Engine::shutdown`, then [`CLOSE_LIMIT`]),
//! otherwise with exit code 1. After the second signal it ends at once.
//!
//! Not here: protocols (`stoa-pgwire`, `stoa-http`, `stoa-flight`, `stoa-hs2`).

mod announce;
mod cluster;
mod connections;
mod listen;
mod permissions;
mod signals;
mod tls;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_query::Engine;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::config::Config;
use crate::runtime::open_server_engine;

pub use listen::check_listen;
pub use tls::check_tls;

/// How long connections may take to end once no query runs.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

/// How long the end may take beyond the grace time; more than all of its parts may take together
/// ([`stoa_query::Engine::shutdown`]).
const END_LIMIT: Duration = Duration::from_secs(60);

/// Runs a server until a signal ends it, or an operator who drains it; with `stop_with_stdin`, also the end of
/// standard input.
///
/// # Errors
/// A port or the warehouse cannot be had, or a protocol's server ended by itself.
pub async fn run(config: &Config, stop_with_stdin: bool) -> Result<()> {
    let mut signals = signals::Signals::listen(stop_with_stdin)?;
    let tls = tls::open(config)?;
    let http = listen::bind(config, "http_port", config.http_port).await?;
    let pg = listen::bind(config, "pg_port", config.pg_port).await?;
    let flight = listen::bind(config, "flight_port", config.flight_port).await?;
    let hive = listen::bind_hive(config).await?;
    // Before anything is opened that stays open.
    let connections = connections::Connections::of(config)?;
    let engine = open_server_engine(config).await?;
    permissions::warn_of_open_places(engine.options());
    cluster::join(config, &engine, cluster::Ports::of(&http, &pg, &flight)?).await?;
    let announcement =
        announce::Announcement::new(&http, &pg, &flight, hive.as_ref(), tls.is_some(), &engine)?;

    let grace = Duration::from_secs(config.shutdown_grace_s);
    let (stop, stopped) = watch::channel(false);
    let pg_options = stoa_pgwire::ServeOptions {
        max_connections: connections.sessions,
        sockets_max: connections.pg_sockets,
        startup_timeout: connections.limits.login_timeout,
        limits: connections.limits.clone(),
        shutdown_grace: grace,
        tls: tls.clone(),
        ..stoa_pgwire::ServeOptions::default()
    };
    let until_stopped = stop_future(stopped.clone());
    let mut pg =
        task::spawn(stoa_pgwire::serve_with(pg, Arc::clone(&engine), pg_options, until_stopped));
    let http_options = stoa_http::HttpOptions {
        max_connections: connections.http,
        limits: connections.limits.clone(),
        drain_ms_max: (grace + CLOSE_LIMIT / 2).as_millis() as u64,
        tls: tls.clone(),
        alerts: alert_options(config),
        query_log: query_log(&engine),
        ..stoa_http::HttpOptions::default()
    };
    let until_stopped = stop_future(stopped.clone());
    let mut http =
        task::spawn(stoa_http::serve_with(http, Arc::clone(&engine), http_options, until_stopped));
    let flight_options = stoa_flight::FlightOptions {
        max_connections: connections.flight,
        limits: connections.limits.clone(),
        incoming_bytes_max: incoming_bytes_max(config),
        drain_max: grace + CLOSE_LIMIT / 2,
        tls: tls.clone(),
        ..stoa_flight::FlightOptions::default()
    };
    let until_stopped = stop_future(stopped.clone());
    let flying =
        stoa_flight::serve_with(flight, Arc::clone(&engine), flight_options, until_stopped);
    let mut flight = task::spawn(flying);
    let hive_options = stoa_hs2::HiveOptions {
        max_connections: connections.hive,
        limits: connections.limits,
        drain_max: grace + CLOSE_LIMIT / 2,
        tls,
        ..stoa_hs2::HiveOptions::default()
    };
    let until_stopped = stop_future(stopped);
    let serving = serve_hive(hive, Arc::clone(&engine), hive_options, until_stopped);
    let mut hive = task::spawn(serving);

    announcement.print()?;
    let ended = tokio::select! {
        signal = signals.next() => {
            tracing::info!(signal, grace_s = config.shutdown_grace_s, "stopping");
            Ok(())
        }
        () = cluster::asked_to_drain(&engine) => {
            tracing::info!(grace_s = config.shutdown_grace_s, "an operator drains this daemon: stopping");
            Ok(())
        }
        () = cluster::ended(&engine) => Err(cluster::declared_dead()),
        () = cluster::log_can_be_reopened(&engine) => Err(cluster::log_stopped(&engine)),
        result = &mut pg => Err(ended_early("the PostgreSQL protocol", result)),
        result = &mut http => Err(ended_early("HTTP", result)),
        result = &mut flight => Err(ended_early("Flight SQL", result)),
        result = &mut hive => Err(ended_early("HiveServer2", result)),
    };
    signals.exit_at_next();
    end_at_the_latest(grace + END_LIMIT);
    // Nobody may listen any more if the protocols have ended.
    let _ = stop.send(true);
    let cancelled = engine.shutdown(grace).await;
    if cancelled > 0 {
        tracing::warn!(queries = cancelled, "cancelled queries that ran beyond the grace time");
    }
    if ended.is_ok() {
        let closing = async { tokio::join!(pg, http, flight, hive) };
        if stoa_env::timer::timeout(CLOSE_LIMIT, closing).await.is_err() {
            tracing::warn!("left connections that did not end");
        }
    }
    tracing::info!("stopped");
    ended
}

/// Serves HiveServer2, or only waits for the end where it has no port.
async fn serve_hive(
    listener: Option<TcpListener>,
    engine: Arc<Engine>,
    options: stoa_hs2::HiveOptions,
    until_stopped: impl Future<Output = ()> + Send,
) -> Result<()> {
    match listener {
        Some(listener) => stoa_hs2::serve_with(listener, engine, options, until_stopped).await,
        None => {
            until_stopped.await;
            Ok(())
        }
    }
}

/// Where ended queries are kept for days: beside the catalog, as the hot list is.
fn query_log(engine: &Engine) -> Option<PathBuf> {
    Some(engine.options().hot_list.as_ref()?.parent()?.join("query-log"))
}

fn alert_options(config: &Config) -> stoa_http::AlertOptions {
    stoa_http::AlertOptions {
        webhook: config.alert_webhook.as_ref().map(|webhook| webhook.0.expose().to_owned()),
        after: Duration::from_secs(config.alert_after_s.into()),
        disk_used_max: f64::from(config.alert_disk_percent.0) / 100.0,
        refused_max: config.alert_refused_statements,
    }
}

/// Messages of Flight SQL that are on their way in may take a quarter of the memory of queries.
fn incoming_bytes_max(config: &Config) -> usize {
    usize::try_from(config.memory_limit.0 / 4).unwrap_or(usize::MAX)
}

/// Ends the process after `limit` whatever its other threads do. Rows that were acknowledged are in
/// the log.
fn end_at_the_latest(limit: Duration) {
    let end = move || {
        std::thread::sleep(limit);
        tracing::error!(limit_s = limit.as_secs(), "did not end in time; ending all the same");
        std::process::exit(1);
    };
    if let Err(error) = task::spawn_thread("stoa-end", end) {
        tracing::warn!(%error, "nothing bounds how long the end may take");
    }
}

async fn stop_future(mut stopped: watch::Receiver<bool>) {
    // A sender that is gone means the same.
    let _ = stopped.wait_for(|stop| *stop).await;
}

fn ended_early(what: &str, result: Result<Result<()>, tokio::task::JoinError>) -> Error {
    match result {
        Ok(Ok(())) => Error::internal(format!("the server of {what} ended by itself")),
        Ok(Err(error)) => error.at(format!("the server of {what}")),
        Err(error) => Error::internal(format!("the server of {what} broke off")).with_source(error),
    }
}
