//! Says that the server listens: a line of JSON for scripts, and a few lines for people.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;

use serde::Serialize;
use stoa_error::{Error, Result};
use stoa_query::Engine;
use tokio::net::TcpListener;

use crate::runtime::shown;
use crate::shell::output_error;

/// What scripts read from stdout.
#[derive(Debug, Serialize)]
pub(super) struct Announcement {
    event: &'static str,
    listen: String,
    http_port: u16,
    pg_port: u16,
    flight_port: u16,
    /// That of HiveServer2, if it has one.
    hive_port: Option<u16>,
    /// Whether connections must be encrypted.
    tls: bool,
    warehouse: String,
    /// The catalog's file, or its database.
    catalog: String,
    pid: u32,
    version: &'static str,
}

impl Announcement {
    pub(super) fn new(
        http: &TcpListener,
        pg: &TcpListener,
        flight: &TcpListener,
        hive: Option<&TcpListener>,
        tls: bool,
        engine: &Engine,
    ) -> Result<Self> {
        let (http, pg, flight) = (address(http)?, address(pg)?, address(flight)?);
        Ok(Self {
            event: "listening",
            listen: http.ip().to_string(),
            http_port: http.port(),
            pg_port: pg.port(),
            flight_port: flight.port(),
            hive_port: hive.map(address).transpose()?.map(|hive| hive.port()),
            tls,
            warehouse: shown(&engine.options().warehouse),
            catalog: engine.warehouse().catalog().place().to_owned(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION"),
        })
    }

    /// Prints the line to stdout, and to a terminal on stderr what a person wants to know.
    pub(super) fn print(&self) -> Result<()> {
        let line = serde_json::to_string(self)
            .map_err(|e| Error::internal("cannot write JSON").with_source(e))?;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(output_error)?;
        if std::io::stderr().is_terminal() {
            eprint!("{}", self.banner());
        }
        tracing::info!(
            http_port = self.http_port,
            pg_port = self.pg_port,
            flight_port = self.flight_port,
            hive_port = self.hive_port,
            tls = self.tls,
            warehouse = self.warehouse,
            catalog = self.catalog,
            version = self.version,
            "listening"
        );
        Ok(())
    }

    fn banner(&self) -> String {
        let Self { listen, http_port, pg_port, flight_port, warehouse, catalog, .. } = self;
        let version = crate::VERSION;
        let hive = self.hive_port.map(|port| {
            let ssl = if self.tls { "/default;ssl=true" } else { "" };
            format!("beeline  beeline -u jdbc:hive2://{listen}:{port}{ssl}\n    ")
        });
        let hive = hive.unwrap_or_default();
        let host = if listen.contains(':') { format!("[{listen}]") } else { listen.clone() };
        let (http, grpc, verify) = match self.tls {
            true => ("https", "grpc+tls", " sslmode=verify-full"),
            false => ("http", "grpc", ""),
        };
        format!(
            "\n  Stoa {version} serves {warehouse}\n\n    \
             console  {http}://{host}:{http_port}/\n    \
             psql     psql \"host={listen} port={pg_port} dbname=stoa{verify}\"\n    \
             Flight   {grpc}://{host}:{flight_port}\n    \
             {hive}shell    stoa sql --url {http}://{host}:{http_port}\n    \
             catalog  {catalog}\n\n  \
             Ctrl-C stops it.\n\n"
        )
    }
}

fn address(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(|e| Error::internal("a listener has no address").with_source(e))
}
