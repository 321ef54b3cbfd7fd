//! What this daemon answers other daemons.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures::future::BoxFuture;
use stoa_cluster::lease::Holder;
use stoa_cluster::membership::MemberEvent;
use stoa_error::{Error, Result};
use stoa_peers::Handler;

use crate::event::Event;
use crate::exact::ended;
use crate::member::Inner;
use crate::messages::{Held, HoldTable, Push, encode_status, kind, read_number};
use crate::service::unknown;

/// Answers for a membership, for as long as there is one.
pub(crate) struct Serving(pub(crate) std::sync::OnceLock<Weak<Inner>>);

impl Handler for Serving {
    fn handle(&self, from: Holder, kind: u16, body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let inner = self.0.get().and_then(Weak::upgrade);
        Box::pin(async move {
            let starting =
                || Error::unavailable("the daemon is starting, or ends").with_sqlstate("57P03");
            inner.ok_or_else(starting)?.answer(from, kind, body).await
        })
    }
}

impl Inner {
    async fn answer(self: Arc<Self>, from: Holder, kind: u16, body: Bytes) -> Result<Bytes> {
        if self.exact.is_ended() {
            return Err(ended());
        }
        match kind {
            kind::PROBE => {
                let is_member = self.known.state().is_some_and(|state| state.members.lives(from));
                Ok(Bytes::from_static(if is_member { &[1] } else { &[0] }))
            }
            kind::PUSH => self.receive(from, body).await,
            kind::HELLO => {
                self.send(Event::Member(MemberEvent::Changed));
                Ok(Bytes::new())
            }
            kind::HOLD => {
                let HoldTable { uuid, ident } = HoldTable::decode(body)?;
                self.hold_for(from, uuid, &ident).await.map(Held::encode)
            }
            kind::FLUSH => {
                self.holds.flush(from, read_number(&body)?).await?;
                Ok(Bytes::new())
            }
            kind::KEEP => {
                self.holds.keep(from, read_number(&body)?)?;
                Ok(Bytes::new())
            }
            kind::RELEASE => {
                self.holds.release(from, read_number(&body)?);
                Ok(Bytes::new())
            }
            other => {
                let service = self.services.find(other).ok_or_else(|| unknown(other))?;
                service.answer(from.daemon, body).await
            }
        }
    }

    async fn receive(self: &Arc<Self>, from: Holder, body: Bytes) -> Result<Bytes> {
        let Push { to, part } = Push::decode(body)?;
        if to != self.me {
            return Err(Error::unavailable("the message is for another life of this daemon"));
        }
        tracing::trace!(from = %from.daemon, log = part.log, records = part.records.len(), "received");
        let (log, durable) = (part.log.clone(), part.durable);
        let status = self.ingest.receive(part).await?;
        self.machines.lock().awaited.heard(&log, durable, status.shown);
        if !self.exact.is_complete() {
            self.look_whether_complete();
        }
        Ok(encode_status(status))
    }
}
