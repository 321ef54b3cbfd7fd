//! Queries and sessions of all daemons of the cluster: an id tells on which daemon they are.
//!
//! ```text
//! KILL, pg_cancel_backend ─► here? ─► Ending        PostgreSQL's cancel key ─► here? ─► the protocol's own list
//!                              └no─► the daemon whose number the id has ─► Ending, or its list
//! ```
//!
//! **Invariant:** the daemon that has the query decides whether it may be ended; it believes another daemon who asks.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use stoa_cluster::DaemonId;
use stoa_error::{Error, Result};
use stoa_member::{Member, Service, ServiceKind};

use crate::access::only_for_superusers;
use crate::engine::Engine;
use crate::run::backends::{Backends, number_of_session};
use crate::run::registry::{QueryRegistry, number_of_query};

/// How long another daemon has to end a query.
const LIMIT: Duration = Duration::from_secs(5);

/// What is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The query with this id.
    Query(u64),
    /// What the session with this process id runs.
    Statement(i32),
    /// The session with this process id.
    Session(i32),
}

/// Who wants what to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndRequest {
    pub(crate) target: Target,
    /// The role that asks.
    pub(crate) role: String,
    /// Whether it may end what others run.
    pub(crate) may_everything: bool,
}

impl Target {
    /// The number of the daemon on which it is.
    fn daemon(self) -> u32 {
        match self {
            Self::Query(id) => number_of_query(id),
            Self::Statement(id) | Self::Session(id) => number_of_session(id),
        }
    }
}

impl EndRequest {
    fn encode(&self) -> Bytes {
        let (what, id) = match self.target {
            Target::Query(id) => (0, id),
            Target::Statement(id) => (1, u64::from(id.cast_unsigned())),
            Target::Session(id) => (2, u64::from(id.cast_unsigned())),
        };
        let mut out = BytesMut::with_capacity(10 + self.role.len());
        out.put_u8(what);
        out.put_u8(u8::from(self.may_everything));
        out.put_u64_le(id);
        out.put_slice(self.role.as_bytes());
        out.freeze()
    }

    fn decode(mut bytes: Bytes) -> Option<Self> {
        let what = bytes.try_get_u8().ok()?;
        let may_everything = bytes.try_get_u8().ok()? == 1;
        let id = bytes.try_get_u64_le().ok()?;
        let process = || u32::try_from(id).ok().map(u32::cast_signed);
        let target = match what {
            0 => Target::Query(id),
            1 => Target::Statement(process()?),
            2 => Target::Session(process()?),
            _ => return None,
        };
        let role = String::from_utf8(bytes.to_vec()).ok()?;
        Some(Self { target, role, may_everything })
    }
}

/// Ends what this daemon runs.
pub(crate) struct Ending {
    pub(crate) queries: QueryRegistry,
    pub(crate) sessions: Arc<Backends>,
}

impl Ending {
    /// Ends something on this daemon; whether it was there.
    ///
    /// # Errors
    /// 42501: it is another role's.
    pub(crate) fn end(&self, request: &EndRequest) -> Result<bool> {
        let may_end = |of: &str| match request.may_everything || of == request.role {
            true => Ok(()),
            false => Err(only_for_superusers(&request.role, "end queries of others")),
        };
        let session = |id| self.sessions.find(id);
        match request.target {
            Target::Query(id) => {
                let Some(role) = self.queries.user_of(id) else { return Ok(false) };
                may_end(&role)?;
                Ok(self.queries.cancel(id))
            }
            Target::Statement(id) => {
                let Some(session) = session(id) else { return Ok(false) };
                may_end(session.user())?;
                session.cancel();
                Ok(true)
            }
            Target::Session(id) => {
                let Some(session) = session(id) else { return Ok(false) };
                may_end(session.user())?;
                session.terminate();
                Ok(true)
            }
        }
    }

    /// As [`Self::end`], on whichever daemon it is.
    ///
    /// # Errors
    /// As [`Self::end`]; Unavailable if that daemon does not answer.
    pub(crate) async fn end_anywhere(
        &self,
        member: Option<&Member>,
        request: &EndRequest,
    ) -> Result<bool> {
        let Some((member, daemon)) = other_daemon(member, request.target.daemon()) else {
            return self.end(request);
        };
        let Some(daemon) = daemon else { return Ok(false) };
        let answer = member.ask(daemon, ServiceKind::Kill, request.encode(), LIMIT).await?;
        Ok(answer.first() == Some(&1))
    }
}

/// The daemon with this number if it is not this one: `None` for this one.
fn other_daemon(member: Option<&Member>, number: u32) -> Option<(&Member, Option<DaemonId>)> {
    let member = member.filter(|member| member.number() != number)?;
    Some((member, member.numbered(number)))
}

impl Service for Ending {
    fn answer(&self, _from: DaemonId, body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let ended = EndRequest::decode(body).ok_or_else(unreadable).and_then(|end| self.end(&end));
        ready(ended.map(yes_or_no)).boxed()
    }
}

/// What cancels by a process id and a secret; whether it knew them.
type Cancel = dyn Fn(i32, &Bytes) -> bool + Send + Sync;

struct Cancelling(Box<Cancel>);

impl Service for Cancelling {
    fn answer(&self, _from: DaemonId, mut body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let process_id = body.try_get_i32_le().map_err(|_| unreadable());
        ready(process_id.map(|id| yes_or_no((self.0)(id, &body)))).boxed()
    }
}

impl Engine {
    /// From now on, ids of queries and sessions tell that they are on this daemon, and others may end them.
    pub(super) fn end_for_others(&self, member: &Member) {
        let (queries, sessions) = (self.queries().clone(), Arc::clone(self.shared().backends()));
        queries.begin_at(member.number());
        sessions.begin_at(member.number());
        member.serve(ServiceKind::Kill, Arc::new(Ending { queries, sessions }));
    }

    /// Has requests of PostgreSQL's clients that reach another daemon done here: `cancel` gets a process id and
    /// its secret, and tells whether it knows them.
    pub fn cancel_for_others(&self, cancel: impl Fn(i32, &Bytes) -> bool + Send + Sync + 'static) {
        if let Some(member) = self.member() {
            member.serve(ServiceKind::Cancel, Arc::new(Cancelling(Box::new(cancel))));
        }
    }

    /// Passes a request to cancel on to the daemon that gave the process id, if that is another one; whether it knew
    /// the secret.
    pub fn cancel_elsewhere<'a>(
        &'a self,
        process_id: i32,
        secret: &'a Bytes,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let other = other_daemon(self.member(), number_of_session(process_id));
            let Some((member, Some(daemon))) = other else { return false };
            let mut body = BytesMut::with_capacity(4 + secret.len());
            body.put_i32_le(process_id);
            body.put_slice(secret);
            match member.ask(daemon, ServiceKind::Cancel, body.freeze(), LIMIT).await {
                Ok(answer) => answer.first() == Some(&1),
                Err(error) => {
                    tracing::warn!(%daemon, %error, "a statement cannot be cancelled on its daemon");
                    false
                }
            }
        })
    }
}

fn yes_or_no(yes: bool) -> Bytes {
    Bytes::from_static(if yes { &[1] } else { &[0] })
}

fn unreadable() -> Error {
    Error::invalid("a request of another daemon cannot be read").with_sqlstate("08P01")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_and_cut_ones_are_refused() {
        for target in [Target::Query(u64::MAX), Target::Statement(7), Target::Session(i32::MAX)] {
            for may_everything in [true, false] {
                let request = EndRequest { target, role: "ä".to_owned(), may_everything };
                let bytes = request.encode();
                assert_eq!(EndRequest::decode(bytes.clone()), Some(request));
                for length in 0..10 {
                    assert_eq!(EndRequest::decode(bytes.slice(..length)), None);
                }
            }
        }
        assert_eq!(EndRequest::decode(Bytes::from_static(&[9; 12])), None);
    }
}
