//! What a daemon is asked for, and what it tells of itself: JSON, of which unknown members are ignored and missing ones
//! are empty, so that daemons of different builds understand each other.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stoa_error::{Error, Result};
use stoa_figures::{CLUSTER_EVENTS, QUERY_SHAPES, QueryShape, Snapshot, Viewer, members};

use crate::app::App;
use crate::cluster::latencies::Latencies;
use crate::snapshot;

/// Other daemons are trusted with everything.
const EVERYTHING: Viewer<'_> = Viewer { role: "", is_superuser: true };

/// Characters of a shape's text that are told; longer ones that begin the same are counted together.
const TEXT_MAX: usize = 4000;

/// What is wanted of a daemon besides its state and its events.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Question {
    /// Samples taken after this time, milliseconds since 1970-01-01 UTC; `None`: none.
    pub(crate) history_since: Option<i64>,
    /// Most shapes, those that took most time first.
    pub(crate) shapes: usize,
}

/// What a daemon tells.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Report {
    /// The document of `/v1/status`, as a superuser sees it.
    pub(crate) status: Value,
    /// How long statements took that ended within the last minute.
    pub(crate) recent: Latencies,
    /// Statements that differ only in their literals.
    pub(crate) shapes: Vec<ShapeReport>,
    /// What happened to the cluster, as objects of `system.cluster_events`.
    pub(crate) events: Vec<Value>,
}

/// One shape.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ShapeReport {
    /// The columns of `system.query_shapes`.
    pub(crate) figures: Map<String, Value>,
    /// How long its statements took.
    pub(crate) latency: Latencies,
}

impl Question {
    pub(crate) fn encode(&self) -> Result<Bytes> {
        encode(self)
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        decode(body)
    }
}

impl Report {
    /// What this daemon tells.
    pub(crate) fn of(app: &App, question: &Question) -> Self {
        let history = question.history_since.map(|since| app.engine.samples_since(1, since));
        let snapshot = Snapshot {
            history: history.unwrap_or_default(),
            ..snapshot::complete(app, app.engine.figures())
        };
        let events = app.engine.cluster_events();
        let (recent, longest_us) = app.engine.recent_latencies();
        let object = |event| Value::Object(members(&CLUSTER_EVENTS, event, EVERYTHING));
        Self {
            status: stoa_figures::status(&snapshot, EVERYTHING),
            recent: Latencies::of(&recent, longest_us),
            shapes: shapes(app, question.shapes),
            events: events.iter().map(object).collect(),
        }
    }

    pub(crate) fn encode(&self) -> Result<Bytes> {
        encode(self)
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        decode(body)
    }
}

fn shapes(app: &App, most: usize) -> Vec<ShapeReport> {
    if most == 0 {
        return Vec::new();
    }
    let all = app.engine.queries().shapes();
    let told = all.iter().take(most).map(|shape| {
        let mut row = QueryShape::from(shape);
        row.sql = row.sql.chars().take(TEXT_MAX).collect();
        ShapeReport {
            figures: members(&QUERY_SHAPES, &row, EVERYTHING),
            latency: Latencies::of(&shape.latency, shape.max_us),
        }
    });
    told.collect()
}

fn encode(value: &impl Serialize) -> Result<Bytes> {
    let bytes = serde_json::to_vec(value);
    let bytes = bytes
        .map_err(|e| Error::internal("figures for another daemon are no JSON").with_source(e))?;
    Ok(bytes.into())
}

fn decode<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|e| Error::invalid("another daemon sent figures that are no JSON").with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_builds_are_understood() {
        let question = Question::decode(br#"{"shapes":7,"of_another_build":[1]}"#).unwrap();
        assert_eq!((question.shapes, question.history_since), (7, None));
        let report = Report::decode(br#"{"status":{"ready":true},"homes":3}"#).unwrap();
        assert_eq!(report.status["ready"], true);
        assert!(report.events.is_empty() && report.shapes.is_empty());
        assert!(Report::decode(b"{").is_err());
    }
}
