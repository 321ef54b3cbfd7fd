//! A daemon whose ways to the catalog, to the store and from its peers can be cut.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use stoa_env::random;
use stoa_error::{Error, Result};
use tokio::net::TcpListener;
use url::Url;

use super::run::FAILPOINTS;
use super::wire::{State, Wire};
use crate::server_process::ServerProcess;

/// Where daemons find their object store.
pub(crate) const STORE_ENDPOINT: &str = "AWS_ENDPOINT_URL_S3";

/// A daemon of a cluster, and the network around it.
pub(crate) struct Daemon {
    pub(crate) process: ServerProcess,
    catalog: Wire,
    store: Option<Wire>,
    /// What others send to it: requests, and parts of statements.
    from_peers: [Wire; 2],
}

/// Where files and commit logs are.
#[derive(Clone, Debug)]
pub enum Warehouse {
    /// An empty directory, or one that does not exist.
    Directory(PathBuf),
    /// In an object store: `s3://bucket/prefix`, where nothing is, at `http://host:port`. Keys are in the environment.
    Store {
        /// The place.
        url: String,
        /// The store's endpoint.
        endpoint: String,
    },
}

impl Warehouse {
    /// What `--warehouse` says.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Directory(directory) => directory.display().to_string(),
            Self::Store { url, .. } => url.clone(),
        }
    }

    pub(crate) fn is_store(&self) -> bool {
        matches!(self, Self::Store { .. })
    }
}

/// Where its daemons' files and catalog are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) program: &'a Path,
    pub(crate) warehouse: &'a Warehouse,
    /// A database, `postgres://user@host:port/name`.
    pub(crate) catalog: &'a str,
}

impl Daemon {
    /// Starts one; its fail points are armed.
    ///
    /// # Errors
    /// Invalid: the catalog is no such address. Unavailable: it does not start, or ended at a fail point.
    pub(crate) async fn start(place: Place<'_>, failpoints: &str) -> Result<Self> {
        let (catalog, url) = wire_to(place.catalog, 5432).await?;
        // Each has an address of its own, where the wires listen at the ports at which it listens at another one.
        let (address, peer_port) = free_port().await?;
        let (_, task_port) = free_port().await?;
        let wire = |port: u16| Wire::open(address, port, format!("{}:{port}", Ipv4Addr::LOCALHOST));
        let from_peers = [wire(peer_port).await?, wire(task_port).await?];
        let warehouse = place.warehouse.place();
        let (address, peer_port, task_port) =
            (address.to_string(), peer_port.to_string(), task_port.to_string());
        let arguments = [
            ["--warehouse", &warehouse],
            ["--catalog", &url],
            ["--shared-table-size", "0"],
            ["--advertise", &address],
            ["--peer-port", &peer_port],
            ["--task-port", &task_port],
            ["--log-level", "off"],
        ];
        let mut arguments = arguments.as_flattened().to_vec();
        let mut variables = vec![(FAILPOINTS, failpoints)];
        let (mut store, logs, endpoint);
        store = None;
        if let Warehouse::Store { url, endpoint: at } = place.warehouse {
            let (wire, through) = wire_to(at, 80).await?;
            store = Some(wire);
            (logs, endpoint) = (format!("{url}-logs"), through);
            arguments.extend(["--commit-log", &logs]);
            variables.push((STORE_ENDPOINT, &endpoint));
        }
        let process = ServerProcess::start_with(place.program, &arguments, &variables).await?;
        Ok(Self { process, catalog, store, from_peers })
    }

    /// What becomes of its connections to the catalog.
    pub(crate) fn set_catalog(&self, state: State) {
        self.catalog.set(state);
    }

    /// What becomes of its connections to the object store, if there is one.
    pub(crate) fn set_store(&self, state: State) {
        self.store.iter().for_each(|wire| wire.set(state));
    }

    /// What becomes of connections of other daemons to this one.
    pub(crate) fn set_from_peers(&self, state: State) {
        self.from_peers.iter().for_each(|wire| wire.set(state));
    }
}

/// A way to where a URL leads, and the URL of that way.
async fn wire_to(address: &str, port: u16) -> Result<(Wire, String)> {
    let unusable = || {
        Error::invalid(format!("{address:?} is no address"))
            .with_hint("postgres://USER@HOST/DATABASE for a catalog, http://HOST:PORT for a store")
    };
    let mut url = Url::parse(address).map_err(|_| unusable())?;
    let upstream =
        format!("{}:{}", url.host_str().ok_or_else(unusable)?, url.port().unwrap_or(port));
    let wire = Wire::open(Ipv4Addr::LOCALHOST.into(), 0, upstream).await?;
    url.set_ip_host(Ipv4Addr::LOCALHOST.into()).map_err(|()| unusable())?;
    url.set_port(Some(wire.port())).map_err(|()| unusable())?;
    Ok((wire, url.into()))
}

/// A loopback address, and a port that is free at it and at 127.0.0.1.
async fn free_port() -> Result<(IpAddr, u16)> {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    let last = 2 + NEXT.fetch_add(1, Ordering::Relaxed) % 250;
    let address = Ipv4Addr::new(127, 0, 0, last);
    let mut failed = None;
    for _ in 0..PORT_TRIES {
        let port = PORTS.start + (random::u64() % PORTS.len() as u64) as u16;
        match TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await {
            Ok(_free) => return Ok((address.into(), port)),
            Err(error) => failed = Some(error),
        }
    }
    let error = Error::unavailable("no port is free");
    Err(match failed {
        Some(source) => error.with_source(source),
        None => error,
    })
}

/// Below those that systems give to connections and to listeners at port 0: nobody gets it before the daemon listens.
const PORTS: Range<u16> = 12_000..32_000;

const PORT_TRIES: usize = 100;
