//! The server's certificate, as the settings name it.

use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_tls::{Tls, TlsFiles};

use crate::config::Config;

/// Refuses settings of which one needs another.
///
/// # Errors
/// Invalid, with what is missing.
pub fn check_tls(config: &Config) -> Result<()> {
    let missing = |given: &str, needed: &str| {
        Err(Error::invalid(format!("{given} is set, and {needed} is not"))
            .with_hint("TLS needs both tls_cert and tls_key; docs/tls.md shows how to make them"))
    };
    match (&config.tls_cert, &config.tls_key, &config.tls_client_ca) {
        (Some(_), None, _) => missing("tls_cert", "tls_key"),
        (None, Some(_), _) => missing("tls_key", "tls_cert"),
        (None, None, Some(_)) => missing("tls_client_ca", "tls_cert"),
        _ => Ok(()),
    }
}

/// Reads the files, if there are any, and looks at them as long as the process runs.
///
/// # Errors
/// As [`Tls::open`].
pub(super) fn open(config: &Config) -> Result<Option<Tls>> {
    let (Some(cert), Some(key)) = (&config.tls_cert, &config.tls_key) else { return Ok(None) };
    let files = TlsFiles {
        cert: cert.0.clone(),
        key: key.0.clone(),
        client_ca: config.tls_client_ca.as_ref().map(|file| file.0.clone()),
    };
    let (is_open, key) = (files.key_is_readable_by_others(), files.key.clone());
    let tls = Tls::open(files)?;
    if is_open {
        let key = key.display();
        tracing::warn!(%key, "all users of this machine can read tls_key; restrict it with chmod 600");
    }
    task::spawn(tls.clone().watch());
    Ok(Some(tls))
}
