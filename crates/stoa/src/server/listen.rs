//! Which address and ports to listen on.

use std::net::SocketAddr;

use stoa_error::{Error, ErrorKind, Result};
use tokio::net::TcpListener;

use crate::config::{Config, HivePort};

/// Where Hive's clients look for HiveServer2.
const HIVE_PORT: u16 = 10_000;

/// Refuses addresses that other machines reach, unless connections are encrypted and clients log in, or
/// the user insists.
///
/// # Errors
/// Forbidden, with what is missing and what to do.
pub fn check_listen(config: &Config) -> Result<()> {
    if config.listen.is_loopback() || config.insecure_listen {
        return Ok(());
    }
    let (mut missing, mut settings) = (Vec::new(), Vec::new());
    if config.tls_cert.is_none() {
        missing.push("connections are not encrypted: passwords and rows can be read in transit");
        settings.push("tls_cert and tls_key");
    }
    if !config.access_control {
        missing.push(
            "access_control is off: anyone who reaches this address can read and change everything",
        );
        settings.push("access_control");
    }
    if missing.is_empty() {
        return Ok(());
    }
    let address = config.listen;
    Err(Error::new(ErrorKind::Forbidden, format!("refusing to listen on {address}"))
        .with_detail(missing.join("; "))
        .with_hint(format!(
            "set {}, listen on 127.0.0.1, or add --insecure-listen if only trusted machines reach it",
            settings.join(" and ")
        )))
}

/// Takes the port of HiveServer2; `None` where there is to be none, or nobody has chosen one and Hive's own is in use.
///
/// # Errors
/// As [`bind`], for a port that somebody has chosen.
pub(super) async fn bind_hive(config: &Config) -> Result<Option<TcpListener>> {
    match config.hive_port {
        HivePort::Off => Ok(None),
        HivePort::Port(port) => bind(config, "hive_port", port).await.map(Some),
        HivePort::Auto => match bind(config, "hive_port", HIVE_PORT).await {
            Ok(listener) => Ok(Some(listener)),
            Err(error) => {
                tracing::warn!(
                    %error,
                    "starting without HiveServer2; choose a port with --hive-port, or none"
                );
                Ok(None)
            }
        },
    }
}

/// Takes a port; `setting` names it in errors.
///
/// # Errors
/// Unavailable: the address is in use or not this machine's; forbidden: the port needs rights.
pub(super) async fn bind(config: &Config, setting: &str, port: u16) -> Result<TcpListener> {
    let address = SocketAddr::new(config.listen, port);
    TcpListener::bind(address).await.map_err(|e| {
        let flag = setting.replace('_', "-");
        let (kind, hint) = match e.kind() {
            std::io::ErrorKind::AddrInUse => (
                ErrorKind::Unavailable,
                format!(
                    "another program uses this port, maybe another Stoa server; try --{flag} 0"
                ),
            ),
            std::io::ErrorKind::PermissionDenied => {
                (ErrorKind::Forbidden, format!("choose a port from 1024 with --{flag}"))
            }
            _ => (ErrorKind::Unavailable, "check --listen".to_owned()),
        };
        Error::new(kind, format!("cannot listen on {address} ({setting})"))
            .with_source(e)
            .with_hint(hint)
    })
}
