//! What somebody must look at, sent to where they see it.
//!
//! ```text
//!  figures, members ─► conditions ─► board (since when? on, off) ─► webhook: POST, again until it is taken
//! ```
//!
//! Each daemon watches over itself. What concerns the whole cluster all daemons see, and one of them sends: the one with
//! the lowest id of those that were up when it began.
//!
//! **Invariants:** an alert is sent once when it goes on, and once when it goes off. A receiver that is away delays
//! alerts and nothing else; the memory of those that wait is bounded.

mod board;
mod conditions;
mod disk;
mod options;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use stoa_env::clock;
use stoa_env::timer::{MissedTickBehavior, interval};
use stoa_figures::Alert;
use stoa_member::{MemberEventKind, MemberHappened};
use stoa_query::Engine;

use crate::alerts::board::{Board, Change};
use crate::alerts::conditions::{Conditions, Facts};
use crate::alerts::webhook::{Message, Webhook};

pub use options::AlertOptions;

/// Time between looks.
const LOOK_EACH: Duration = Duration::from_secs(1);

/// Watches over one server.
pub(crate) struct Alerts {
    engine: Arc<Engine>,
    options: AlertOptions,
    board: Mutex<Board>,
}

impl Alerts {
    pub(crate) fn new(engine: Arc<Engine>, options: AlertOptions) -> Self {
        let board = Mutex::new(Board::new(options.after));
        Self { engine, options, board }
    }

    /// Those that are on.
    pub(crate) fn on(&self) -> Vec<Alert> {
        self.board.lock().on()
    }

    /// Looks each second until the task is ended.
    pub(crate) async fn run(self: Arc<Self>) {
        let webhook = self.options.webhook.as_ref().and_then(|url| Webhook::open(url));
        let mut conditions = Conditions::new(&self.options);
        let mut ticks = interval(LOOK_EACH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let facts = Facts::of(&self.engine).await;
            let found = conditions.look(&facts, clock::monotonic());
            let changes = self.board.lock().see(found, clock::monotonic(), clock::unix_ms());
            for change in changes {
                if facts.tells(&change) {
                    self.tell(&facts, &change, webhook.as_ref());
                }
            }
        }
    }

    fn tell(&self, facts: &Facts, change: &Change, webhook: Option<&Webhook>) {
        let Change { alert, is_on } = change;
        match is_on {
            true => tracing::warn!(
                alert = alert.alert,
                about = alert.about,
                summary = alert.summary,
                "an alert is on"
            ),
            false => {
                tracing::info!(alert = alert.alert, about = alert.about, "an alert is off again")
            }
        }
        if let Some(member) = self.engine.member() {
            let about = facts.daemons.iter().find(|daemon| daemon.id.to_string() == alert.about);
            member.remember(MemberHappened {
                at_ms: clock::unix_ms(),
                kind: if *is_on { MemberEventKind::Alert } else { MemberEventKind::Resolved },
                daemon: about.map(|daemon| daemon.id),
                incarnation: None,
                host: about.map(|daemon| daemon.host.clone()),
                by: Some(member.id()),
                detail: Some(format!("{}: {}", alert.alert, alert.summary)),
            });
        }
        if let Some(webhook) = webhook {
            webhook.send(Message::of(facts, change));
        }
    }
}
