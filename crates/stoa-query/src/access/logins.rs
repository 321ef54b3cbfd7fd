//! Whether a client is who it says.

use std::collections::HashSet;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use stoa_access::ScramSecret;
use stoa_env::random;
use stoa_error::{Error, ErrorKind, Result};

use crate::engine::Engine;

/// Passwords that are remembered.
const KNOWN_MAX: usize = 4096;

/// Passwords that were right under this version of the policy: clients of HTTP bring theirs with each
/// request, and checking one takes milliseconds.
#[derive(Debug)]
pub(crate) struct Logins {
    /// Makes what is remembered worthless elsewhere.
    key: [u8; 32],
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    version: u64,
    right: HashSet<[u8; 32]>,
}

impl Default for Logins {
    fn default() -> Self {
        Self { key: random::bytes(), known: Mutex::default() }
    }
}

impl Logins {
    fn digest(&self, role: &str, password: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update((role.len() as u64).to_le_bytes());
        hash.update(role);
        hash.update(password);
        hash.finalize().into()
    }

    /// The same for the same role each time, with a salt of its own.
    fn secret_of_nobody(&self, role: &str) -> ScramSecret {
        let digest = |part| self.digest(role, part);
        let salt = digest("salt");
        let salt = &salt[..ScramSecret::SALT_BYTES];
        ScramSecret::of_nobody(salt, [digest("stored key"), digest("server key")])
    }

    fn knows(&self, version: u64, digest: &[u8; 32]) -> bool {
        let known = self.known.lock();
        known.version == version && known.right.contains(digest)
    }

    fn remember(&self, version: u64, digest: [u8; 32]) {
        let mut known = self.known.lock();
        if known.version != version || known.right.len() >= KNOWN_MAX {
            *known = Known { version, right: HashSet::new() };
        }
        known.right.insert(digest);
    }
}

impl Engine {
    /// Whether clients must log in.
    pub fn asks_for_login(&self) -> bool {
        self.rights.enforced()
    }

    /// What the password of a role is checked with, and whether it may log in at all: for those who
    /// may not, a secret that looks like one and that no password opens. As of now, whichever process
    /// changed it.
    ///
    /// # Errors
    /// The catalog's.
    pub async fn login_secret(&self, role: &str) -> Result<(ScramSecret, bool)> {
        self.rights.refresh().await?;
        Ok(match self.secret_of(role) {
            Some(secret) => (secret, true),
            None => (self.logins.secret_of_nobody(role), false),
        })
    }

    fn secret_of(&self, role: &str) -> Option<ScramSecret> {
        let policy = self.rights.policy();
        policy.role(role).filter(|role| role.can_login)?.secret.clone()
    }

    /// Checks a password, if clients must log in.
    ///
    /// # Errors
    /// 28P01 where the role is not there, may not log in, or has another password: which of these,
    /// nobody is told.
    pub async fn log_in(&self, role: &str, password: &str) -> Result<()> {
        if !self.asks_for_login() {
            return Ok(());
        }
        self.rights.refresh().await?;
        let version = self.rights.policy().version();
        let digest = self.logins.digest(role, password);
        if self.logins.knows(version, &digest) {
            return Ok(());
        }
        // One who is not there takes as long as one who is.
        let (secret, may) = self.login_secret(role).await?;
        let password = password.to_owned();
        let check = stoa_env::task::spawn_blocking(move || secret.verify(&password) && may);
        match check
            .await
            .map_err(|e| Error::internal("the password was not checked").with_source(e))?
        {
            true => self.logins.remember(version, digest),
            false => return Err(login_error(role)),
        }
        Ok(())
    }
}

/// The error of a client that is not let in.
pub fn login_error(role: &str) -> Error {
    Error::new(ErrorKind::Forbidden, format!("password authentication failed for user \"{role}\""))
        .with_sqlstate("28P01")
        .with_hint("the server has access_control on: a superuser makes roles with CREATE ROLE")
}
