//! Requests about what another daemon keeps for a client: tickets, prepared statements and logins of Flight SQL.
//!
//! What is asked and answered is the protocol's; here is the way to the daemon that keeps it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use stoa_cluster::DaemonId;
use stoa_error::{Error, ErrorKind, Result};
use stoa_member::{Member, Service, ServiceKind};

use crate::engine::Engine;

/// How long the other daemon has to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// What answers: bytes in, bytes out.
type Answer = dyn Fn(Bytes) -> BoxFuture<'static, Result<Bytes>> + Send + Sync;

struct Tickets(Box<Answer>);

impl Service for Tickets {
    fn answer(&self, _from: DaemonId, body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        (self.0)(body)
    }
}

impl Engine {
    /// The number of this daemon, which no other living one of its cluster has; 0 without a cluster.
    pub fn daemon_number(&self) -> u32 {
        self.member().map_or(0, Member::number)
    }

    /// Has `answer` answer what other daemons ask about tickets that this one gave.
    pub fn answer_about_tickets(
        &self,
        answer: impl Fn(Bytes) -> BoxFuture<'static, Result<Bytes>> + Send + Sync + 'static,
    ) {
        if let Some(member) = self.member() {
            member.serve(ServiceKind::Ticket, Arc::new(Tickets(Box::new(answer))));
        }
    }

    /// Asks the daemon with a number about a ticket that it gave; `None` if that is this one, or there is none.
    ///
    /// # Errors
    /// The other's; 57P03 if it does not answer.
    pub fn ask_about_ticket(
        &self,
        number: u32,
        question: Bytes,
    ) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            let Some(member) = self.member().filter(|member| member.number() != number) else {
                return Ok(None);
            };
            let Some(daemon) = member.numbered(number) else { return Ok(None) };
            let answer = member.ask(daemon, ServiceKind::Ticket, question, LIMIT).await;
            answer.map(Some).map_err(|error| match error.kind() {
                ErrorKind::Unavailable | ErrorKind::Timeout => {
                    Error::unavailable("the daemon that gave the ticket does not answer")
                        .with_sqlstate("57P03")
                        .with_hint("ask for the query again, or try once more")
                        .with_source(error)
                }
                _ => error,
            })
        })
    }

    /// Tells all other daemons something about a ticket, and waits until they have heard it. One that does not
    /// answer is told no more.
    pub fn tell_others_about_ticket(&self, news: Bytes) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(member) = self.member() else { return };
            for (daemon, answer) in member.ask_others(ServiceKind::Ticket, news, LIMIT).await {
                if let Err(error) = answer {
                    tracing::debug!(%daemon, %error, "a daemon was not told about a ticket");
                }
            }
        })
    }
}
