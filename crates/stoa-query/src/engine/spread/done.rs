//! What daemons have done of a statement, on its way to the daemon of the statement.
//!
//! Asked while the statement runs, for its progress and the limits of its pool, and at its end.
//!
//! ```text
//! Done   part u128 | with_plans u8   ─►   rows, bytes, requests, memory, peak: u64 each | plans: n × text
//! ```

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all, ready};
use stoa_cluster::DaemonId;
use stoa_error::{Error, Result};
use stoa_member::{Service, ServiceKind};

use super::Spreading;
use super::enlist::{Daemons, put_text, take_text};
use super::parts::PartId;
use crate::run::spread::DoneByDaemon;

/// How long a daemon has to answer.
const LIMIT: Duration = Duration::from_millis(500);

/// Asks daemons what they have done of a statement; those that do not answer in time are left out.
pub(super) fn ask(
    daemons: &Arc<dyn Daemons>,
    helpers: Vec<DaemonId>,
    part: PartId,
    with_plans: bool,
) -> BoxFuture<'static, Vec<DoneByDaemon>> {
    let mut body = BytesMut::new();
    body.put_u128_le(part.0);
    body.put_u8(u8::from(with_plans));
    let body = body.freeze();
    let calls = helpers.into_iter().map(|daemon| {
        let call = daemons.ask(daemon, ServiceKind::Done, body.clone(), LIMIT);
        async move {
            let done = call.await.map(decode);
            if let Err(error) = &done {
                tracing::debug!(%daemon, %error, "a daemon does not say what it has done of a statement");
            }
            let done = done.ok().flatten()?;
            Some(DoneByDaemon { daemon: daemon.to_string(), ..done })
        }
    });
    join_all(calls).map(|all| all.into_iter().flatten().collect()).boxed()
}

/// Answers the daemons of statements.
pub(super) struct DoneService(pub(super) Weak<Spreading>);

impl Service for DoneService {
    fn answer(&self, _from: DaemonId, mut body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let mut asked = || Some((body.try_get_u128_le().ok()?, body.try_get_u8().ok()? != 0));
        let done = asked()
            .and_then(|(part, with_plans)| self.0.upgrade()?.parts.done(PartId(part), with_plans));
        let ended = || Error::not_found("the part of a statement has ended");
        ready(done.as_ref().map(encode).ok_or_else(ended)).boxed()
    }
}

fn encode(done: &DoneByDaemon) -> Bytes {
    let mut out = BytesMut::new();
    for count in [
        done.rows_scanned,
        done.bytes_read,
        done.requests,
        done.memory_bytes,
        done.memory_peak_bytes,
    ] {
        out.put_u64_le(count);
    }
    done.plans.iter().for_each(|plan| put_text(&mut out, plan));
    out.freeze()
}

fn decode(mut body: Bytes) -> Option<DoneByDaemon> {
    let mut count = || body.try_get_u64_le().ok();
    let mut done = DoneByDaemon {
        rows_scanned: count()?,
        bytes_read: count()?,
        requests: count()?,
        memory_bytes: count()?,
        memory_peak_bytes: count()?,
        ..DoneByDaemon::default()
    };
    while body.has_remaining() {
        done.plans.push(take_text(&mut body)?);
    }
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_comes_back_and_cut_bytes_are_refused() {
        let done = DoneByDaemon {
            daemon: String::new(),
            rows_scanned: 1,
            bytes_read: u64::MAX,
            requests: 3,
            memory_bytes: 4,
            memory_peak_bytes: 5,
            plans: vec!["SortExec: ä".to_owned(), String::new()],
        };
        let bytes = encode(&done);
        assert_eq!(decode(bytes.clone()), Some(done));
        for length in 0..40 {
            assert_eq!(decode(bytes.slice(..length)), None);
        }
        assert_eq!(decode(bytes.slice(..bytes.len() - 1)), None);
    }
}
