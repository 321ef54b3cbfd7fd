//! Whether a client is who it says.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use stoa_access::ScramSecret;
use stoa_catalog::Catalog;
use stoa_env::random;
use stoa_error::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;

use super::attempts::{self, Attempts};

/// Passwords that are remembered.
const KNOWN_MAX: usize = 4096;

/// Passwords that are checked at the same time: each takes a processor for milliseconds.
const CHECKS_MAX: usize = 2;

/// Passwords that were right under this version of the policy: clients of HTTP bring theirs with each
/// request, and checking one takes milliseconds.
#[derive(Debug)]
pub(crate) struct Logins {
    /// Makes what is remembered worthless elsewhere.
    key: [u8; 32],
    /// What secrets of roles that cannot log in are made of, on every server of the catalog.
    key_of_nobody: [u8; 32],
    known: Mutex<Known>,
    pub(crate) attempts: Attempts,
    failed: AtomicU64,
    paused: AtomicU64,
    pub(crate) checks: Semaphore,
}

#[derive(Debug, Default)]
struct Known {
    version: u64,
    right: HashSet<[u8; 32]>,
}

impl Logins {
    /// For roles of `catalog`, if clients must log in.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn open(catalog: &Catalog, enforced: bool) -> Result<Self> {
        let key_of_nobody = match enforced {
            true => catalog.login_key().await?,
            false => random::bytes(),
        };
        Ok(Self {
            key: random::bytes(),
            key_of_nobody,
            known: Mutex::default(),
            attempts: Attempts::default(),
            failed: AtomicU64::new(0),
            paused: AtomicU64::new(0),
            checks: Semaphore::new(CHECKS_MAX),
        })
    }

    /// Tries to log in that failed, and that were not looked at, since the start.
    pub(crate) fn refused(&self) -> (u64, u64) {
        (self.failed.load(Ordering::Relaxed), self.paused.load(Ordering::Relaxed))
    }

    /// The error of a try that failed; it is counted.
    pub(crate) fn failure(&self, role: &str) -> Error {
        self.failed.fetch_add(1, Ordering::Relaxed);
        login_error(role)
    }

    /// The error of a try that is not looked at; it is counted.
    pub(crate) fn pause(&self, pause: Duration) -> Error {
        self.paused.fetch_add(1, Ordering::Relaxed);
        attempts::refused(pause)
    }

    pub(crate) fn digest(&self, role: &str, password: &str) -> [u8; 32] {
        digest(&self.key, role, password)
    }

    /// The same for the same role each time, with a salt of its own.
    pub(crate) fn secret_of_nobody(&self, role: &str) -> ScramSecret {
        let digest = |part| digest(&self.key_of_nobody, role, part);
        let salt = digest("salt");
        let salt = &salt[..ScramSecret::SALT_BYTES];
        ScramSecret::of_nobody(salt, [digest("stored key"), digest("server key")])
    }

    pub(crate) fn knows(&self, version: u64, digest: &[u8; 32]) -> bool {
        let known = self.known.lock();
        known.version == version && known.right.contains(digest)
    }

    pub(crate) fn remember(&self, version: u64, digest: [u8; 32]) {
        let mut known = self.known.lock();
        if known.version != version || known.right.len() >= KNOWN_MAX {
            *known = Known { version, right: HashSet::new() };
        }
        known.right.insert(digest);
    }
}

fn digest(key: &[u8; 32], role: &str, text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update((role.len() as u64).to_le_bytes());
    hash.update(role);
    hash.update(text);
    hash.finalize().into()
}

/// The error of a client that is not let in.
pub fn login_error(role: &str) -> Error {
    Error::new(ErrorKind::Forbidden, format!("password authentication failed for user \"{role}\""))
        .with_sqlstate("28P01")
        .with_hint("the server has access_control on: a superuser makes roles with CREATE ROLE")
}
