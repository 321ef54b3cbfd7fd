//! The server joins the cluster of its catalog.

use std::time::Duration;

use stoa_error::{Error, Result};
use stoa_query::{Engine, Joining};
use tokio::net::TcpListener;

use super::listen;
use crate::config::Config;
use crate::runtime::daemon_folder;

/// How long a member lives without a word.
const LEASE: Duration = Duration::from_secs(5);

/// The ports of the protocols.
pub(super) struct Ports {
    http: u16,
    pg: u16,
    flight: u16,
}

impl Ports {
    pub(super) fn of(http: &TcpListener, pg: &TcpListener, flight: &TcpListener) -> Result<Self> {
        Ok(Self { http: port(http)?, pg: port(pg)?, flight: port(flight)? })
    }
}

/// Joins, if the catalog is one that daemons share.
///
/// # Errors
/// Those of [`Engine::join`]; a port that cannot be had.
pub(super) async fn join(config: &Config, engine: &Engine, ports: Ports) -> Result<()> {
    if engine.warehouse().catalog().cluster().is_none() || engine.ingest().is_none() {
        return Ok(());
    }
    let listener = listen::bind(config, "peer_port", config.peer_port).await?;
    let task_listener = listen::bind(config, "task_port", config.task_port).await?;
    let machine = machine_name();
    let host = match &config.advertise {
        Some(host) => host.clone(),
        None if config.listen.is_unspecified() => machine.clone(),
        None => config.listen.to_string(),
    };
    let at = |port: u16| match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    let joining = Joining {
        peer_address: at(port(&listener)?),
        pg_address: at(ports.pg),
        http_address: at(ports.http),
        flight_address: at(ports.flight),
        listener,
        task_listener,
        folder: daemon_folder(config)?,
        host: machine,
        zone: config.availability_zone.clone().unwrap_or_default(),
        local_log: config.allow_local_log,
        lease: LEASE,
    };
    engine.join(joining).await
}

/// Returns when the other daemons have gone on without this one.
pub(super) async fn ended(engine: &Engine) {
    match engine.member() {
        Some(member) => member.ended().await,
        None => std::future::pending().await,
    }
}

/// Returns when this daemon's log has stopped and could be opened again: one daemon of a cluster that ends loses nothing,
/// as others take its log over, and whoever watches over it starts it again. A daemon alone goes on answering reports.
pub(super) async fn log_can_be_reopened(engine: &Engine) {
    match (engine.member(), engine.ingest()) {
        (Some(_), Some(ingest)) => ingest.log_can_be_reopened().await,
        _ => std::future::pending().await,
    }
}

pub(super) fn log_stopped(engine: &Engine) -> Error {
    let cause = engine.ingest().and_then(|ingest| ingest.log_stopped()).unwrap_or_default();
    Error::unavailable(format!("the commit log of this daemon has stopped: {cause}"))
        .with_detail("its storage answers again, and the other daemons take the log over")
        .with_hint("start it again: it will join anew; what it had acknowledged is not lost")
}

/// Returns when an operator wants this daemon to end.
pub(super) async fn asked_to_drain(engine: &Engine) {
    match engine.member() {
        Some(member) => member.asked_to_drain().await,
        None => std::future::pending().await,
    }
}

pub(super) fn declared_dead() -> Error {
    Error::unavailable("the other daemons of the cluster have declared this one dead")
        .with_detail("it did not renew its lease in time, or they could not reach it")
        .with_hint("start it again: it will join anew; what it had acknowledged is not lost")
}

fn port(listener: &TcpListener) -> Result<u16> {
    let address = listener.local_addr();
    let no_address = |e| Error::internal("a listener has no address").with_source(e);
    address.map(|address| address.port()).map_err(no_address)
}

/// The name of the machine: daemons that have the same one reach each other's disks.
fn machine_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = kernel.map(|name| name.trim().to_owned()).unwrap_or_default();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
