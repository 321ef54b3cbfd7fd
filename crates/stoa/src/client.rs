//! How the shells of this program reach a server, over HTTP or HTTPS.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use reqwest::{Certificate, Client, Identity};
use stoa_error::{Error, Result};

use crate::config::Config;

/// How long the server may take to take a connection; not how long a statement may run.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Which server is trusted, and what a client shows to it. For `#[command(flatten)]`.
#[derive(Clone, Debug, Default, Args)]
pub struct ClientTls {
    /// Trust servers (https://…) with a certificate from an authority in this PEM file
    /// [default: the system's authorities]
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,

    /// Present this certificate (PEM) to servers that ask for one
    #[arg(long, value_name = "FILE", requires = "tls_client_key")]
    tls_client_cert: Option<PathBuf>,

    /// The key of --tls-client-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_client_cert")]
    tls_client_key: Option<PathBuf>,
}

impl ClientTls {
    /// Makes a client that trusts as the options say.
    ///
    /// # Errors
    /// Not found, invalid: a file cannot be read, or has no certificate or key.
    pub fn client(&self) -> Result<Client> {
        let mut client = Client::builder().connect_timeout(CONNECT_LIMIT);
        if let Some(file) = &self.tls_ca {
            let authorities = Certificate::from_pem_bundle(&read("--tls-ca", file)?);
            let authorities = authorities.map_err(|e| unusable("--tls-ca", file).with_source(e))?;
            if authorities.is_empty() {
                return Err(unusable("--tls-ca", file));
            }
            client = client.tls_built_in_root_certs(false);
            client = authorities.into_iter().fold(client, |c, one| c.add_root_certificate(one));
        }
        if let (Some(cert), Some(key)) = (&self.tls_client_cert, &self.tls_client_key) {
            let mut pem = read("--tls-client-cert", cert)?;
            pem.push(b'\n');
            pem.extend(read("--tls-client-key", key)?);
            let identity = Identity::from_pem(&pem);
            let identity =
                identity.map_err(|e| unusable("--tls-client-cert", cert).with_source(e))?;
            client = client.identity(identity);
        }
        client.build().map_err(|e| Error::internal("cannot make an HTTP client").with_source(e))
    }
}

fn read(option: &str, file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|e| {
        Error::not_found(format!("{option}: cannot read {}", file.display())).with_source(e)
    })
}

fn unusable(option: &str, file: &Path) -> Error {
    Error::invalid(format!("{option}: {} cannot be used", file.display()))
        .with_hint("the file must be PEM: certificates begin with -----BEGIN CERTIFICATE-----, keys with -----BEGIN PRIVATE KEY-----")
}

/// The address of this machine's server, as the settings have it.
///
/// # Errors
/// Invalid: its port is any that is free.
pub fn local_url(config: &Config) -> Result<String> {
    if config.http_port == 0 {
        return Err(Error::invalid("http_port is 0, so the port of the server is unknown")
            .with_hint("give it with --http-port or --url"));
    }
    let scheme = if config.tls_cert.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://127.0.0.1:{}", config.http_port))
}
