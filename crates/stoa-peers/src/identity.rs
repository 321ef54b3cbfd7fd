//! Who this process is to its peers: a key and a certificate that it made itself.

use std::fmt;

use rcgen::{CertificateParams, KeyPair};
use sha2::{Digest, Sha256};
use stoa_error::{Error, Result};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name in every certificate. Nobody checks it: certificates are known by their fingerprints.
pub(crate) const NAME: &str = "stoa-peer";

/// Key and certificate of one process. Made when it starts, never stored.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    fingerprint: [u8; 32],
}

impl Identity {
    /// Makes a P-256 key and a certificate signed with it.
    ///
    /// # Errors
    /// Internal: the system has no randomness.
    pub fn generate() -> Result<Self> {
        let failed = |e| Error::internal("cannot make a certificate").with_source(e);
        let key = KeyPair::generate().map_err(failed)?;
        let parameters = CertificateParams::new([NAME.to_owned()]).map_err(failed)?;
        let certificate = parameters.self_signed(&key).map_err(failed)?.der().clone();
        let fingerprint = fingerprint_of(&certificate);
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        Ok(Self { certificate, key, fingerprint })
    }

    /// SHA-256 of the certificate: what the membership publishes.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub(crate) fn key(&self) -> &PrivateKeyDer<'static> {
        &self.key
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", hex(&self.fingerprint))
    }
}

/// SHA-256 of a certificate.
pub(crate) fn fingerprint_of(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// A fingerprint as operators read it.
pub(crate) fn hex(fingerprint: &[u8; 32]) -> String {
    fingerprint.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_is_another_one() {
        let (one, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_eq!(one.fingerprint(), fingerprint_of(one.certificate()));
    }

    #[test]
    fn debug_shows_no_key() {
        let identity = Identity::generate().unwrap();
        assert_eq!(format!("{identity:?}").len(), "Identity()".len() + 64);
    }
}
