//! The files: which there are, what is in them, and whether they changed.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use stoa_error::{Error, Result};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Where certificate and key are. All files are PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, then those of the authorities between it and the one that clients
    /// know (setting `tls_cert`).
    pub cert: PathBuf,
    /// The key of the first certificate (setting `tls_key`).
    pub key: PathBuf,
    /// Authorities of clients' certificates, which clients need then (setting `tls_client_ca`).
    pub client_ca: Option<PathBuf>,
}

/// What a look at the files shows without reading them. A file that is not there has no facts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Vec<Option<[i64; 6]>>);

impl TlsFiles {
    pub(crate) fn stamp(&self) -> Stamp {
        let facts = |file: &Path| {
            let data = std::fs::metadata(file).ok()?;
            // The time of the last change of the entry: also a file that was copied with its old
            // time, or put in place of another one, has a new one.
            let (inode, size) = (data.ino() as i64, data.size() as i64);
            Some([inode, size, data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()])
        };
        let client_ca = self.client_ca.as_deref();
        Stamp(
            [Some(&*self.cert), Some(&*self.key), client_ca]
                .into_iter()
                .flatten()
                .map(facts)
                .collect(),
        )
    }

    /// The server's certificate and those that lead from it to its authority; at least one.
    pub(crate) fn chain(&self) -> Result<Vec<CertificateDer<'static>>> {
        certificates("tls_cert", &self.cert)
    }

    pub(crate) fn key(&self) -> Result<PrivateKeyDer<'static>> {
        let pem = read("tls_key", &self.key)?;
        PrivateKeyDer::from_pem_slice(&pem).map_err(|source| {
            unusable("tls_key", &self.key, "has no private key")
                .with_source(source)
                .with_hint("write it as PEM, without a passphrase: -----BEGIN PRIVATE KEY-----")
        })
    }

    /// The authorities of clients' certificates, if clients need any.
    pub(crate) fn client_authorities(&self) -> Result<Option<RootCertStore>> {
        let Some(file) = &self.client_ca else { return Ok(None) };
        let mut roots = RootCertStore::empty();
        for certificate in certificates("tls_client_ca", file)? {
            roots.add(certificate).map_err(|source| {
                unusable("tls_client_ca", file, "has a certificate that cannot be used")
                    .with_source(source)
            })?;
        }
        Ok(Some(roots))
    }

    /// Whether others than the owner of the key's file may read it.
    pub fn key_is_readable_by_others(&self) -> bool {
        std::fs::metadata(&self.key).is_ok_and(|data| data.permissions().mode() & 0o007 != 0)
    }
}

fn certificates(setting: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let pem = read(setting, file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|e| unusable(setting, file, "is no valid PEM").with_source(e))?;
    if found.is_empty() {
        return Err(unusable(setting, file, "has no certificate")
            .with_hint("write it as PEM: -----BEGIN CERTIFICATE-----"));
    }
    Ok(found)
}

fn read(setting: &str, file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|source| {
        Error::not_found(format!("{setting}: cannot read {}", file.display())).with_source(source)
    })
}

pub(crate) fn unusable(setting: &str, file: &Path, why: &str) -> Error {
    Error::invalid(format!("{setting}: {} {why}", file.display()))
}
