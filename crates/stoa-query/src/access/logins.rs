//! Whether a client is who it says.

use std::collections::HashSet;
use std::net::IpAddr;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use stoa_access::ScramSecret;
use stoa_catalog::Catalog;
use stoa_env::{clock, random};
use stoa_error::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;

use super::attempts::{self, Attempts};
use crate::engine::Engine;

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
    attempts: Attempts,
    checks: Semaphore,
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
            checks: Semaphore::new(CHECKS_MAX),
        })
    }

    fn digest(&self, role: &str, password: &str) -> [u8; 32] {
        digest(&self.key, role, password)
    }

    /// The same for the same role each time, with a salt of its own.
    fn secret_of_nobody(&self, role: &str) -> ScramSecret {
        let digest = |part| digest(&self.key_of_nobody, role, part);
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

fn digest(key: &[u8; 32], role: &str, text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update((role.len() as u64).to_le_bytes());
    hash.update(role);
    hash.update(text);
    hash.finalize().into()
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

    /// Whether a try to log in as `role` from an address is looked at now: not while there were too
    /// many that failed.
    ///
    /// # Errors
    /// 53400, with how long that lasts.
    pub fn may_try_login(&self, role: &str, from: Option<IpAddr>) -> Result<()> {
        let tried = self.logins.attempts.may_try(role, from, clock::monotonic());
        tried.map_err(attempts::refused)
    }

    /// Takes down how a try to log in ended, of which a protocol has seen the proof.
    ///
    /// # Errors
    /// 28P01 where it was not right; 53400 where too many others have failed meanwhile, whatever it was.
    pub fn judge_login(&self, role: &str, from: Option<IpAddr>, is_right: bool) -> Result<()> {
        let now = clock::monotonic();
        match self.logins.attempts.judge(role, from, now, is_right, None) {
            Ok(true) => Ok(()),
            Ok(false) => Err(login_error(role)),
            Err(pause) => Err(attempts::refused(pause)),
        }
    }

    /// Checks a password that comes from nowhere in particular, as [`Self::log_in_from`].
    ///
    /// # Errors
    /// As [`Self::log_in_from`].
    pub async fn log_in(&self, role: &str, password: &str) -> Result<()> {
        self.log_in_from(role, password, None).await
    }

    /// Checks a password, if clients must log in. The same wrong one again is no new failure: clients
    /// of HTTP send theirs with each request.
    ///
    /// # Errors
    /// 28P01 where the role is not there, may not log in, or has another password: which of these,
    /// nobody is told. 53400 after too many failures as this role or from this address.
    pub async fn log_in_from(
        &self,
        role: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<()> {
        if !self.asks_for_login() {
            return Ok(());
        }
        self.may_try_login(role, from)?;
        self.rights.refresh().await?;
        let version = self.rights.policy().version();
        let digest = self.logins.digest(role, password);
        if self.logins.knows(version, &digest) {
            return Ok(());
        }
        let wrong = (version, digest);
        if self.logins.attempts.knows_wrong(role, from, &wrong) {
            return Err(login_error(role));
        }
        // One who is not there takes as long as one who is.
        let (secret, may) = self.login_secret(role).await?;
        let is_closed = |e| Error::internal("passwords are checked no more").with_source(e);
        let _turn = self.logins.checks.acquire().await.map_err(is_closed)?;
        // Those who came before may have used up what is free.
        self.may_try_login(role, from)?;
        let password = password.to_owned();
        let check = stoa_env::task::spawn_blocking(move || secret.verify(&password) && may);
        let is_right = check
            .await
            .map_err(|e| Error::internal("the password was not checked").with_source(e))?;
        let now = clock::monotonic();
        match self.logins.attempts.judge(role, from, now, is_right, Some(wrong)) {
            Ok(true) => self.logins.remember(version, digest),
            Ok(false) => return Err(login_error(role)),
            Err(pause) => return Err(attempts::refused(pause)),
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
