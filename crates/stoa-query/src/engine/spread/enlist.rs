//! How a daemon gets others to compute parts of a statement.
//!
//! ```text
//! Enlist   part u128 | build u64 | bytes u64 | is_analyzed u8 | options: n × (text, text or none)   ─► port u16
//! Release  part u128                                                                                ─► nothing
//! ```
//!
//! A daemon takes part if it is of the same build and has a free slot; it never waits for one, since two that wait for
//! each other's would do so for ever. **Invariant:** what a daemon keeps for a part is given back when the other
//! releases it, and within [`LOOK_INTERVAL`] once the other is no member any more.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use stoa_cluster::DaemonId;
use stoa_env::{task, timer};
use stoa_error::{Error, Result};
use stoa_member::{Member, Service, ServiceKind};
use tokio::runtime::Handle;

use super::Spreading;
use super::done;
use super::parts::{Options, Part, PartId, PartOptions, Taken};
use crate::run::memory;
use crate::run::progress::Progress;
use crate::run::query_pool::QueryPool;
use crate::run::spread::DoneByDaemon;

/// How long a daemon has to say whether it takes part.
const ENLIST_LIMIT: Duration = Duration::from_millis(500);

/// How long a daemon has to hear that a statement has ended.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);

/// How often it is looked whether the daemon of a statement is there.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What rules of workloads see of parts of other daemons' statements.
const PROTOCOL_OF_OTHERS: &str = "peer";

/// The daemons of a cluster.
pub(in crate::engine) trait Daemons: Send + Sync + 'static {
    /// This one.
    fn me(&self) -> DaemonId;

    /// The other living ones, in the order of their ids.
    fn others(&self) -> Vec<DaemonId>;

    /// Asks one of them.
    fn ask(
        &self,
        daemon: DaemonId,
        kind: ServiceKind,
        body: Bytes,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes>>;
}

impl Daemons for Member {
    fn me(&self) -> DaemonId {
        self.id()
    }

    fn others(&self) -> Vec<DaemonId> {
        let all = Self::others(self).into_iter();
        all.filter(|daemon| self.reaches(*daemon)).collect()
    }

    fn ask(
        &self,
        daemon: DaemonId,
        kind: ServiceKind,
        body: Bytes,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes>> {
        let member = self.clone();
        async move { Self::ask(&member, daemon, kind, body, limit).await }.boxed()
    }
}

/// A request to take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Enlist {
    pub(super) part: PartId,
    /// Of the daemon that asks.
    pub(super) build: u64,
    /// Bytes of the files that the whole statement reads.
    pub(super) bytes: u64,
    /// Whether the plans of tasks are wanted in the end.
    pub(super) is_analyzed: bool,
    /// In which its session differs from new ones.
    pub(super) options: Options,
}

impl Enlist {
    fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u128_le(self.part.0);
        out.put_u64_le(self.build);
        out.put_u64_le(self.bytes);
        out.put_u8(u8::from(self.is_analyzed));
        for (key, value) in &self.options {
            put_text(&mut out, key);
            out.put_u8(u8::from(value.is_some()));
            put_text(&mut out, value.as_deref().unwrap_or_default());
        }
        out.freeze()
    }

    fn decode(mut body: Bytes) -> Option<Self> {
        let part = PartId(body.try_get_u128_le().ok()?);
        let (build, bytes) = (body.try_get_u64_le().ok()?, body.try_get_u64_le().ok()?);
        let is_analyzed = body.try_get_u8().ok()? != 0;
        let mut options = Vec::new();
        while body.has_remaining() {
            let key = take_text(&mut body)?;
            let is_set = body.try_get_u8().ok()? != 0;
            let value = take_text(&mut body)?;
            options.push((key, is_set.then_some(value)));
        }
        Some(Self { part, build, bytes, is_analyzed, options })
    }
}

pub(super) fn put_text(out: &mut BytesMut, text: &str) {
    out.put_u32_le(u32::try_from(text.len()).unwrap_or(u32::MAX));
    out.put_slice(text.as_bytes());
}

pub(super) fn take_text(body: &mut Bytes) -> Option<String> {
    let length = body.try_get_u32_le().ok()? as usize;
    let text = (length <= body.len()).then(|| body.split_to(length))?;
    String::from_utf8(text.to_vec()).ok()
}

/// Daemons that take part in a statement; told that it has ended when this is dropped.
pub(super) struct Enlisted {
    daemons: Arc<dyn Daemons>,
    part: PartId,
    /// Where the others are told: this may be dropped anywhere.
    runtime: Option<Handle>,
    /// The daemons, in the order of their ids, and the port of each.
    pub(super) helpers: Vec<(DaemonId, u16)>,
}

impl Enlisted {
    /// Asks all other daemons at once; those that refuse, or do not answer soon, are left out.
    pub(super) async fn ask(daemons: &Arc<dyn Daemons>, enlist: &Enlist) -> Self {
        let body = enlist.encode();
        let calls = daemons.others().into_iter().map(|daemon| {
            let call = daemons.ask(daemon, ServiceKind::Enlist, body.clone(), ENLIST_LIMIT);
            async move {
                match call.await {
                    Ok(mut port) => port.try_get_u16_le().ok().map(|port| (daemon, port)),
                    Err(error) => {
                        tracing::debug!(%daemon, %error, "a daemon computes no part of a statement");
                        None
                    }
                }
            }
        });
        let helpers = join_all(calls).await.into_iter().flatten().collect();
        let runtime = Handle::try_current().ok();
        Self { daemons: Arc::clone(daemons), part: enlist.part, runtime, helpers }
    }

    /// What the helpers have done so far; those that do not answer soon are left out.
    pub(super) fn done(&self, with_plans: bool) -> BoxFuture<'static, Vec<DoneByDaemon>> {
        let helpers = self.helpers.iter().map(|(daemon, _)| *daemon).collect();
        done::ask(&self.daemons, helpers, self.part, with_plans)
    }
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        let body = Bytes::copy_from_slice(&self.part.0.to_le_bytes());
        let Some(runtime) = &self.runtime else { return };
        let _entered = runtime.enter();
        for (daemon, _) in &self.helpers {
            let kind = ServiceKind::Release;
            let told = self.daemons.ask(*daemon, kind, body.clone(), RELEASE_LIMIT);
            // Its lease tells the other daemon as well, if this does not.
            task::spawn(async move { drop(told.await) });
        }
    }
}

/// Answers daemons that ask this one to take part.
pub(super) struct EnlistService(pub(super) Weak<Spreading>);

impl Service for EnlistService {
    fn answer(&self, from: DaemonId, body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let taken = self.0.upgrade().map(|spreading| take_part(&spreading, from, body));
        futures::future::ready(taken.unwrap_or_else(|| Err(closed()))).boxed()
    }
}

/// Answers daemons whose statements have ended.
pub(super) struct ReleaseService(pub(super) Weak<Spreading>);

impl Service for ReleaseService {
    fn answer(&self, _from: DaemonId, mut body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        if let (Some(spreading), Ok(part)) = (self.0.upgrade(), body.try_get_u128_le()) {
            spreading.parts.end(PartId(part));
        }
        futures::future::ready(Ok(Bytes::new())).boxed()
    }
}

fn closed() -> Error {
    Error::unavailable("the server is shutting down").with_sqlstate("57P01")
}

fn take_part(spreading: &Spreading, from: DaemonId, body: Bytes) -> Result<Bytes> {
    let unreadable = || Error::invalid("a request to take part cannot be read");
    let enlist = Enlist::decode(body).ok_or_else(unreadable)?;
    if spreading.build() != Some(enlist.build) {
        let what = "only daemons of the same build compute parts of a statement";
        return Err(Error::unsupported(what));
    }
    let runner = spreading.runner.upgrade().ok_or_else(closed)?;
    let pool = runner.pools().configured("", "", PROTOCOL_OF_OTHERS);
    let busy = || {
        Error::new(stoa_error::ErrorKind::Exhausted, "all slots of this daemon are busy")
            .with_sqlstate("53300")
    };
    let slot = pool.admission.try_enter().ok_or_else(busy)?;
    let (stop, waiting) = runner.stops.begin();
    let progress = Arc::<Progress>::default();
    let memory = memory::of_query(runner.memory(), &QueryPool::new(pool), &progress);
    let (options, is_analyzed) = (enlist.options, enlist.is_analyzed);
    let part = Part::new(PartOptions { stop, memory, progress, options, is_analyzed });
    let taken = Taken { _waiting: waiting, _slot: slot };
    spreading.parts.begin(enlist.part, part, Some(taken));
    spreading.counted.for_others.fetch_add(1, Ordering::Relaxed);
    watch(spreading, from, enlist.part);
    let mut answer = BytesMut::new();
    answer.put_u16_le(spreading.port);
    Ok(answer.freeze())
}

/// Ends a part once the daemon of its statement is no member any more.
fn watch(spreading: &Spreading, from: DaemonId, part: PartId) {
    let (parts, daemons) = (Arc::clone(&spreading.parts), Arc::clone(&spreading.daemons));
    task::spawn(async move {
        while parts.is_there(part) {
            timer::sleep(LOOK_INTERVAL).await;
            if !daemons.others().contains(&from) {
                parts.end(part);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_as_they_were() {
        let options = vec![
            ("datafusion.execution.time_zone".to_owned(), Some("Asia/Tokyo".to_owned())),
            ("a".to_owned(), None),
        ];
        let (part, bytes) = (PartId(u128::MAX - 1), u64::MAX);
        let enlist = Enlist { part, build: 7, bytes, is_analyzed: true, options };
        let bytes = enlist.encode();
        assert_eq!(Enlist::decode(bytes.clone()), Some(enlist));
        for length in 0..bytes.len() {
            let part = Enlist::decode(bytes.slice(..length));
            assert!(part.is_none_or(|part| part.options.len() < 2), "{length}");
        }
    }
}
