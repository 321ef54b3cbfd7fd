//! Who is let in, and what those inside may do.

use std::net::IpAddr;
use std::sync::Arc;

use stoa_access::ScramSecret;
use stoa_catalog::Catalog;
use stoa_env::clock;
use stoa_error::{Error, Result};

use super::attempts::Wrong;
use super::{Caller, Logins, Rights};

/// Rights and logins of an engine.
#[derive(Debug)]
pub(crate) struct Gate {
    rights: Arc<Rights>,
    logins: Logins,
}

impl Gate {
    /// For the roles of `catalog`; `enforced` where clients must log in as one.
    ///
    /// # Errors
    /// The catalog's.
    pub(crate) async fn open(catalog: &Catalog, enforced: bool) -> Result<Self> {
        let rights = Arc::new(Rights::open(catalog, enforced).await?);
        Ok(Self { rights, logins: Logins::open(catalog, enforced).await? })
    }

    /// What was granted.
    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// Who asks as `role`; `is_trusted` where nothing is forbidden.
    pub(crate) fn caller(&self, role: &str, is_trusted: bool) -> Caller {
        Caller::new(Arc::clone(&self.rights), role, is_trusted)
    }

    /// Tries to log in that failed, and that were not looked at, since the start.
    pub(crate) fn refused(&self) -> (u64, u64) {
        self.logins.refused()
    }

    /// The secret of a role, and whether that may log in; one that no password opens for those who may not.
    pub(crate) async fn login_secret(&self, role: &str) -> Result<(ScramSecret, bool)> {
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

    /// Whether a try is looked at now (else 53400).
    pub(crate) fn may_try_login(&self, role: &str, from: Option<IpAddr>) -> Result<()> {
        let tried = self.logins.attempts.may_try(role, from, clock::monotonic());
        tried.map_err(|pause| self.logins.pause(pause))
    }

    /// Takes down how a try ended (28P01 where it was wrong, 53400 after too many others).
    pub(crate) fn judge_login(
        &self,
        role: &str,
        from: Option<IpAddr>,
        is_right: bool,
    ) -> Result<()> {
        self.judge(role, from, is_right, None)
    }

    fn judge(
        &self,
        role: &str,
        from: Option<IpAddr>,
        is_right: bool,
        wrong: Option<Wrong>,
    ) -> Result<()> {
        match self.logins.attempts.judge(role, from, clock::monotonic(), is_right, wrong) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.logins.failure(role)),
            Err(pause) => Err(self.logins.pause(pause)),
        }
    }

    /// Checks a password, if clients must log in. The same wrong one again is no new failure.
    pub(crate) async fn log_in(
        &self,
        role: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<()> {
        if !self.rights.enforced() {
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
            return Err(self.logins.failure(role));
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
        self.judge(role, from, is_right, Some(wrong))?;
        self.logins.remember(version, digest);
        Ok(())
    }
}
