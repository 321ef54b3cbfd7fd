//! Alerts on their way to a webhook: in order, one after the other, each again until it is taken.

use std::time::Duration;

use serde_json::{Value, json};
use stoa_env::{clock, task, timer};
use tokio::sync::mpsc;

use crate::alerts::board::Change;
use crate::alerts::conditions::Facts;

/// How long a receiver may take for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// The first wait before an alert is sent again; each next one is twice as long.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The longest of them.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(30);
/// After so long an alert is given up, for those that come after it.
const GIVE_UP_AFTER: Duration = Duration::from_secs(6 * 3600);
/// Alerts that may wait.
const WAITING_MAX: usize = 256;

/// Sends alerts in the background until it is dropped.
pub(crate) struct Webhook(mpsc::Sender<Message>);

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Message(Value);

impl Webhook {
    /// `None` where requests cannot be made at all.
    pub(crate) fn open(url: &str) -> Option<Self> {
        let client = reqwest::Client::builder()
            .timeout(ANSWER_LIMIT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("stoa/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.inspect_err(|error| tracing::error!(%error, "alerts cannot be sent"));
        let (sender, waiting) = mpsc::channel(WAITING_MAX);
        task::spawn(run(client.ok()?, url.to_owned(), waiting));
        Some(Self(sender))
    }

    pub(crate) fn send(&self, message: Message) {
        if self.0.try_send(message).is_err() {
            tracing::error!("too many alerts wait for the webhook: one is not sent");
        }
    }
}

impl Message {
    pub(crate) fn of(facts: &Facts, change: &Change) -> Self {
        let Change { alert, is_on } = change;
        let host = |id: &str| {
            let daemon = facts.daemons.iter().find(|daemon| daemon.id.to_string() == id);
            daemon.map(|daemon| daemon.host.clone())
        };
        let by = facts.me.map(|me| me.to_string());
        let status = if *is_on { "firing" } else { "resolved" };
        let about = Some(alert.about.as_str()).filter(|about| !about.is_empty());
        Self(json!({
            "version": 1,
            "status": status,
            "alert": alert.alert,
            "daemon": about,
            "host": about.and_then(host),
            "summary": alert.summary,
            // What chats show.
            "text": format!("Stoa, {status}: {} ({})", alert.summary, alert.alert),
            "since_unix_ms": alert.since_unix_ms,
            "at_unix_ms": clock::unix_ms(),
            "sent_by": by,
            // Equal in both messages of an alert.
            "key": format!("{}/{}/{}", alert.alert, alert.about, alert.since_unix_ms),
        }))
    }
}

async fn run(client: reqwest::Client, url: String, mut waiting: mpsc::Receiver<Message>) {
    while let Some(Message(body)) = waiting.recv().await {
        let began = clock::monotonic();
        let mut again_after = AGAIN_AFTER;
        loop {
            match post(&client, &url, &body).await {
                Ok(()) => break,
                Err(Failure { why, may_pass: true }) if began.elapsed() < GIVE_UP_AFTER => {
                    tracing::warn!(
                        why,
                        again_after_s = again_after.as_secs(),
                        "an alert was not taken"
                    );
                    timer::sleep(again_after).await;
                    again_after = (again_after * 2).min(AGAIN_AFTER_MAX);
                }
                Err(Failure { why, .. }) => {
                    tracing::error!(why, alert = %body["alert"], "an alert is not sent");
                    break;
                }
            }
        }
    }
}

/// Why an alert was not taken.
struct Failure {
    why: String,
    /// Whether the same request may be taken later.
    may_pass: bool,
}

async fn post(client: &reqwest::Client, url: &str, body: &Value) -> Result<(), Failure> {
    // The address may hold a secret.
    let sent = client.post(url).json(body).send().await.map_err(reqwest::Error::without_url);
    let status = match sent {
        Ok(response) => response.status(),
        Err(error) => return Err(Failure { why: sources(&error), may_pass: !error.is_builder() }),
    };
    let may_pass = status.is_server_error() || [408, 429].contains(&status.as_u16());
    match status.is_success() {
        true => Ok(()),
        false => Err(Failure { why: format!("the webhook answers {status}"), may_pass }),
    }
}

fn sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
