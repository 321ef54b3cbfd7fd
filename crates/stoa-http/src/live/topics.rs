//! What a stream tells: which topics, how often they are read, and what was sent of each.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use stoa_error::{Error, Result};

use super::changes::{change, whole};
use super::ended::Ended;
use super::event;
use crate::app::App;
use crate::asker::Asker;
use crate::query_log::Filter;
use crate::{cluster, hive_ui, problem, queries, shapes, status, tables};

/// The log on disk is looked at once in so many updates.
const LOG_EACH: u64 = 3;

/// The parameters of a request: which topics, and what of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// `status`, with samples taken after this time, milliseconds since 1970-01-01 UTC.
    status: Option<i64>,
    /// `queries`, with so many that ended.
    queries: Option<usize>,
    /// `shapes`, so many.
    shapes: Option<usize>,
    /// `tables`, looked at once in so many seconds.
    tables: Option<u64>,
    /// `cluster`, with so many shapes.
    cluster: Option<usize>,
    /// `daemon`: the status of this one.
    daemon: Option<String>,
    /// Of that daemon, samples taken after this time.
    #[serde(default)]
    daemon_since: i64,
    /// `hive`: sessions of HiveServer2's clients, and what they run.
    #[serde(default)]
    hive: bool,
    /// `log`: entries of the log of queries that a filter leaves, a JSON object of the parameters of `/v1/query-log`.
    log: Option<String>,
}

/// One thing that a stream tells about.
enum Topic {
    Status { since: i64 },
    Queries { most: usize, ended: Ended },
    Shapes { most: usize },
    Tables,
    Cluster { shapes: usize },
    Daemon { id: String, since: i64 },
    Hive,
    Log { filter: Box<Filter> },
}

impl Topic {
    fn name(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Queries { .. } => "queries",
            Self::Shapes { .. } => "shapes",
            Self::Tables => "tables",
            Self::Cluster { .. } => "cluster",
            Self::Daemon { .. } => "daemon",
            Self::Hive => "hive",
            Self::Log { .. } => "log",
        }
    }
}

/// A topic, and what the client has of it.
struct Told {
    topic: Topic,
    /// Read once in so many updates.
    each: u64,
    /// For `queries`, without those that ended.
    last: Option<Value>,
}

/// All topics of a stream.
pub(super) struct Topics {
    all: Vec<Told>,
    updates: u64,
}

impl Topics {
    /// # Errors
    /// Invalid: no topic is wanted, or a filter cannot be read.
    pub(super) fn of(wanted: Wanted) -> Result<Self> {
        let mut all = Vec::new();
        let mut add = |topic, each: u64| all.push(Told { topic, each: each.max(1), last: None });
        if let Some(since) = wanted.status {
            add(Topic::Status { since }, 1);
        }
        if let Some(most) = wanted.queries {
            add(Topic::Queries { most, ended: Ended::default() }, 1);
        }
        if let Some(most) = wanted.shapes {
            add(Topic::Shapes { most }, 1);
        }
        if let Some(seconds) = wanted.tables {
            add(Topic::Tables, seconds);
        }
        if let Some(shapes) = wanted.cluster {
            add(Topic::Cluster { shapes }, 1);
        }
        if let Some(id) = wanted.daemon {
            add(Topic::Daemon { id, since: wanted.daemon_since }, 1);
        }
        if wanted.hive {
            add(Topic::Hive, 1);
        }
        if let Some(text) = wanted.log {
            let filter = serde_json::from_str(&text).map_err(|error| {
                Error::invalid("the filter of the log cannot be read").with_source(error).with_hint(
                    "log={\"state\":\"failed\"}; /openapi.yaml lists the members at /v1/query-log",
                )
            })?;
            add(Topic::Log { filter }, LOG_EACH);
        }
        if all.is_empty() {
            return Err(Error::invalid("a live stream without a topic")
                .with_hint("ask for some, for instance /v1/live?status=0&queries=50"));
        }
        Ok(Self { all, updates: 0 })
    }

    /// Events about what has changed since the last call; empty if nothing has.
    pub(super) async fn changes(&mut self, app: &Arc<App>, asker: &Asker) -> String {
        let mut text = String::new();
        for told in &mut self.all {
            if self.updates.is_multiple_of(told.each)
                && let Some(change) = told.look(app, asker).await
            {
                text.push_str(&event(told.topic.name(), &change));
            }
        }
        self.updates += 1;
        text
    }
}

impl Told {
    async fn look(&mut self, app: &Arc<App>, asker: &Asker) -> Option<Value> {
        let (now, also) = match self.topic.read(app, asker).await {
            Ok(read) => read,
            // What was sent before is not to be seen any more.
            Err(error) => {
                self.topic.forget();
                (json!({ "error": problem::to_json(&error) }), None)
            }
        };
        let change = match (&self.last, also) {
            (Some(last), also) => with(change(last, &now), also, last.get("error").is_some(), &now),
            (None, also) => with(Some(whole(now.clone())), also, true, &now),
        };
        self.last = Some(now);
        change
    }
}

/// The change of a document and of its member `recent`, which is not in what is remembered.
fn with(
    change: Option<Value>,
    recent: Option<Recent>,
    is_whole: bool,
    now: &Value,
) -> Option<Value> {
    let Some(recent) = recent else { return change };
    if is_whole {
        let mut document = now.clone();
        if let Some(members) = document.as_object_mut() {
            members.insert("recent".to_owned(), recent.new.into());
        }
        return Some(whole(document));
    }
    if !recent.is_changed {
        return change;
    }
    let runs = recent.kept.into_iter().map(|(from, count)| json!([from, count]));
    let items: Vec<Value> = recent.new.into_iter().map(whole).chain(runs).collect();
    let mut change = change.unwrap_or_else(|| json!({ "m": {} }));
    match change.get_mut("m").and_then(Value::as_object_mut) {
        Some(members) => {
            members.insert("recent".to_owned(), json!({ "l": items }));
            Some(change)
        }
        None => Some(change),
    }
}

/// Queries that ended: new ones, and places of those that stay.
struct Recent {
    new: Vec<Value>,
    kept: Vec<(usize, usize)>,
    is_changed: bool,
}

impl Topic {
    /// The next document does not build on earlier ones.
    fn forget(&mut self) {
        if let Self::Queries { ended, .. } = self {
            *ended = Ended::default();
        }
    }

    /// The topic as it is now.
    async fn read(&mut self, app: &Arc<App>, asker: &Asker) -> Result<(Value, Option<Recent>)> {
        let document = match self {
            Self::Status { since } => sampled(status::read(app, asker, *since).await?, since),
            Self::Daemon { id, since } => {
                sampled(cluster::read_daemon(app, id, asker, *since).await?, since)
            }
            Self::Queries { most, ended } => return queries_now(app, asker, *most, ended).await,
            Self::Shapes { most } => shapes::read(app, asker, *most).await?,
            Self::Tables => tables::read(app, asker).await?,
            Self::Cluster { shapes } => cluster::read(app, asker, *shapes).await?,
            Self::Hive => json!({
                "sessions": hive_ui::read_sessions(app, asker).await?,
                "operations": hive_ui::read_active(app, asker),
            }),
            Self::Log { filter } => {
                json!({ "queries": queries::read_log(app, asker, (**filter).clone()).await? })
            }
        };
        Ok((document, None))
    }
}

async fn queries_now(
    app: &App,
    asker: &Asker,
    most: usize,
    ended: &mut Ended,
) -> Result<(Value, Option<Recent>)> {
    let session = asker.session(&app.engine);
    let is_superuser = session.may_everything().await?;
    let may_see = |user: &str| is_superuser || user == asker.user();
    let registry = app.engine.queries();
    let running = registry.running();
    let running = running.iter().filter(|query| may_see(&query.user)).map(queries::to_json);
    let running: Vec<Value> = running.collect();
    let update = ended.look(registry.recent(), most, may_see);
    let recent = Recent {
        new: update.new.iter().map(queries::to_json).collect(),
        kept: update.kept,
        is_changed: update.is_changed,
    };
    Ok((json!({ "running": running }), Some(recent)))
}

/// The next time, only samples taken after the newest one here are asked for.
fn sampled(document: Value, since: &mut i64) -> Value {
    let newest = document["history"].as_array().and_then(|all| all.last());
    if let Some(at) = newest.and_then(|sample| sample["unix_ms"].as_i64()) {
        *since = at;
    }
    document
}
