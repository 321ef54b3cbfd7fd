//! Which address and ports to listen on.

use std::net::SocketAddr;

use stoa_error::{Error, ErrorKind, Result};
use tokio::net::TcpListener;

use crate::config::Config;

/// Refuses addresses that other machines reach, unless the user insists: nothing is encrypted, and without
/// `access_control` nobody is asked who he is.
///
/// # Errors
/// Forbidden, with what to do.
pub fn check_listen(config: &Config) -> Result<()> {
    if config.listen.is_loopback() || config.insecure_listen {
        return Ok(());
    }
    let address = config.listen;
    Err(Error::new(ErrorKind::Forbidden, format!("refusing to listen on {address}"))
        .with_detail(match config.access_control {
            true => "nothing is encrypted: whoever is on the way could read along",
            false => {
                "access_control is off: everybody who reaches this address could read and \
                     change everything"
            }
        })
        .with_hint(
            "listen on 127.0.0.1, or add --insecure-listen if only trusted machines reach it",
        ))
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
                format!("another program has it, maybe another stoa server; try --{flag} 0"),
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
