//! `GET /v1/live`: what the console shows, as one stream of server-sent events: first all of it, then what changed.
//!
//! ```text
//!  once a second, when the client has taken the last update:
//!    login still valid? ─► topics read, as this role may see them now ─► changes ─► event per topic that changed
//! ```
//! An update is made when the connection asks for it: a client that reads slowly gets fewer of them, each about all that
//! has changed since its last one.
//!
//! **Invariants:** each update is read with the rights of its moment, by what answers the polled requests; a role that
//! may not log in any more, or has signed out, gets none. A stream holds what it has sent last and one update; the number
//! of streams is bounded.
//!
//! Not here: what topics say (`status`, `queries`, `shapes`, `tables`, `cluster`, `hive_ui`).

mod changes;
mod ended;
mod topics;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::unfold;
use serde_json::{Value, json};
use stoa_env::timer::{self, Interval, MissedTickBehavior};
use stoa_error::{Error, ErrorKind, Result};

use crate::app::App;
use crate::arrivals::Visitor;
use crate::asker::Asker;
use crate::parameters::checked;
use crate::problem::{self, Problem};
use crate::streams::Place;
use topics::{Topics, Wanted};

/// Time between updates, at least.
const EACH: Duration = Duration::from_secs(1);
/// Time between updates, at most, where they are large.
const EACH_MAX: Duration = Duration::from_secs(8);
/// Before compression; the first update, which has everything, does not count.
const BYTES_PER_S: usize = 30_000;
/// Quiet updates after which a comment shows that the connection is alive.
const QUIET_MAX: u32 = 5;

/// Events until the client goes away, its role may not log in any more or signs out, or the server ends.
pub(crate) async fn live(
    State(app): State<Arc<App>>,
    asker: Asker,
    visitor: Option<Extension<ConnectInfo<Visitor>>>,
    headers: HeaderMap,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, Problem> {
    let topics = Topics::of(checked(wanted)?)?;
    let mut ticks = timer::interval(EACH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let authorization = headers.get(header::AUTHORIZATION).cloned();
    let live = Live {
        place: app.streams.enter()?,
        peer: visitor.and_then(|Extension(ConnectInfo(visitor))| visitor.address()),
        headers: authorization.map(|value| (header::AUTHORIZATION, value)).into_iter().collect(),
        app,
        asker,
        topics,
        ticks,
        quiet: 0,
        pause: Pause::default(),
    };
    let updates = unfold(Some(live), |live| async move { live?.update().await });
    let body = Body::from_stream(updates.fuse());
    let mut response = body.into_response();
    let content_type = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    Ok(response)
}

/// One stream.
struct Live {
    app: Arc<App>,
    asker: Asker,
    /// What the client says of itself, to be checked again before each update.
    headers: HeaderMap,
    peer: Option<IpAddr>,
    topics: Topics,
    ticks: Interval,
    place: Place,
    quiet: u32,
    pause: Pause,
}

/// What the body gets, and the stream as it goes on; `None` after its last event.
type Step = Option<(Result<Bytes>, Option<Live>)>;

impl Live {
    async fn update(mut self) -> Step {
        loop {
            tokio::select! {
                biased;
                () = self.app.flights.closed() => {
                    return self.ended(&Error::unavailable("the server is shutting down").with_sqlstate("57P01"));
                }
                () = self.place.signed_out(self.asker.user()) => {
                    return self.ended(&Error::new(ErrorKind::Forbidden, "the role has signed out"));
                }
                _ = self.ticks.tick() => {}
            }
            if self.pause.holds() {
                continue;
            }
            match Asker::of(&self.app.engine, "/v1/live", &self.headers, self.peer).await {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Forbidden => return self.ended(&error),
                // Nobody knows now who asks: nothing is told.
                Err(_) => continue,
            }
            let text = self.topics.changes(&self.app, &self.asker).await;
            self.quiet = if text.is_empty() { self.quiet + 1 } else { 0 };
            if !text.is_empty() {
                self.pause.after(text.len());
                return Some((Ok(text.into()), Some(self)));
            }
            if self.quiet.is_multiple_of(QUIET_MAX) {
                return Some((Ok(Bytes::from_static(b":\n\n")), Some(self)));
            }
        }
    }

    /// The last event says why.
    fn ended(self, error: &Error) -> Step {
        let last = event("end", &json!({ "error": problem::to_json(error) }));
        Some((Ok(last.into()), None))
    }
}

fn event(topic: &str, data: &Value) -> String {
    format!("event: {topic}\ndata: {data}\n\n")
}

/// Lets updates pass that are due while earlier ones were large.
#[derive(Default)]
struct Pause {
    left: usize,
    is_begun: bool,
}

impl Pause {
    /// Whether this tick is to pass.
    fn holds(&mut self) -> bool {
        let holds = self.left > 0;
        self.left = self.left.saturating_sub(1);
        holds
    }

    fn after(&mut self, bytes: usize) {
        let most = (EACH_MAX.as_secs() - 1) as usize;
        self.left = if self.is_begun { (bytes / BYTES_PER_S).min(most) } else { 0 };
        self.is_begun = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_updates_are_followed_by_pauses() {
        let passes = |bytes: usize| {
            let mut pause = Pause { left: 0, is_begun: true };
            pause.after(bytes);
            std::iter::repeat_with(|| pause.holds()).take_while(|holds| *holds).count()
        };
        assert_eq!((passes(100), passes(65_000), passes(9_000_000)), (0, 2, 7));
        let mut first = Pause::default();
        first.after(9_000_000);
        assert!(!first.holds());
    }
}
