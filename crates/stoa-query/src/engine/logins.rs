//! Clients that log in, as protocols see it.
//!
//! Not here: how passwords are checked and tries are counted (`access`).

use std::net::IpAddr;

use futures::future::BoxFuture;
use stoa_access::ScramSecret;
use stoa_error::Result;

use super::Engine;

impl Engine {
    /// Whether clients must log in.
    pub fn asks_for_login(&self) -> bool {
        self.handles.gate.rights().enforced()
    }

    /// What the password of a role is checked with, and whether it may log in at all: for those who
    /// may not, a secret that looks like one and that no password opens. As of now, whichever process
    /// changed it.
    ///
    /// # Errors
    /// The catalog's.
    pub fn login_secret<'a>(&'a self, role: &'a str) -> BoxFuture<'a, Result<(ScramSecret, bool)>> {
        Box::pin(async move { self.handles.gate.login_secret(role).await })
    }

    /// Whether a try to log in as `role` from an address is looked at now: not while there were too
    /// many that failed.
    ///
    /// # Errors
    /// 53400, with how long that lasts.
    pub fn may_try_login(&self, role: &str, from: Option<IpAddr>) -> Result<()> {
        self.handles.gate.may_try_login(role, from)
    }

    /// Takes down how a try to log in ended, of which a protocol has seen the proof.
    ///
    /// # Errors
    /// 28P01 where it was not right; 53400 where too many others have failed meanwhile, whatever it was.
    pub fn judge_login(&self, role: &str, from: Option<IpAddr>, is_right: bool) -> Result<()> {
        self.handles.gate.judge_login(role, from, is_right)
    }

    /// Checks a password that comes from nowhere in particular, as [`Self::log_in_from`].
    ///
    /// # Errors
    /// As [`Self::log_in_from`].
    pub fn log_in<'a>(&'a self, role: &'a str, password: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.log_in_from(role, password, None).await })
    }

    /// Checks a password, if clients must log in. The same wrong one again is no new failure: clients
    /// of HTTP send theirs with each request.
    ///
    /// # Errors
    /// 28P01 where the role is not there, may not log in, or has another password: which of these,
    /// nobody is told. 53400 after too many failures as this role or from this address.
    pub fn log_in_from<'a>(
        &'a self,
        role: &'a str,
        password: &'a str,
        from: Option<IpAddr>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.handles.gate.log_in(role, password, from).await })
    }
}
