//! The reports of all daemons as one document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use stoa_error::{Error, Result};
use stoa_figures::{DAEMONS, Daemon, Together, Viewer, members, together};
use stoa_query::RECENT_S;

use crate::app::App;
use crate::cluster::latencies::Latencies;
use crate::cluster::report::{Question, Report};
use crate::cluster::shapes::MergedShapes;

/// What `system.daemons` has is for everyone.
const ANYONE: Viewer<'_> = Viewer { role: "", is_superuser: false };

/// Events that are shown; each daemon may know as many.
const EVENTS_MAX: usize = 500;

/// What the daemons have answered until now.
pub(crate) struct Merged {
    /// All that this daemon knows of, dead ones included.
    daemons: Vec<Daemon>,
    reports: BTreeMap<String, Result<Report>>,
    shapes_max: usize,
}

impl Merged {
    /// With what this daemon tells itself.
    pub(crate) fn new(app: &App, question: &Question) -> Self {
        let mut daemons = app.engine.figures().daemons;
        daemons.sort_by(|a, b| (&a.host, &a.daemon).cmp(&(&b.host, &b.daemon)));
        let mut merged = Self { daemons, reports: BTreeMap::new(), shapes_max: question.shapes };
        if let Some(own) = app.engine.member() {
            merged.add(own.id().to_string(), Ok(Report::of(app, question)));
        }
        merged
    }

    /// With what another one has answered.
    pub(crate) fn add(&mut self, daemon: String, answer: Result<Report>) {
        self.reports.insert(daemon, answer);
    }

    /// The document. Shapes are for superusers, as in `/v1/shapes`; all else is for everyone.
    pub(crate) fn into_json(mut self, is_superuser: bool) -> Value {
        let daemons: Vec<Value> = self.daemons.iter().map(|daemon| self.daemon(daemon)).collect();
        let mut answered: Vec<(String, Report)> = Vec::new();
        for daemon in &self.daemons {
            if let Some(Ok(report)) = self.reports.remove(&daemon.daemon) {
                answered.push((daemon.daemon.clone(), report));
            }
        }
        let ids: Vec<&str> = answered.iter().map(|(id, _)| id.as_str()).collect();
        let documents: Vec<&Value> = answered.iter().map(|(_, report)| &report.status).collect();
        let figures: Vec<Value> =
            together(&documents).into_iter().map(|figure| to_json(figure, &ids)).collect();
        let mut recent = Latencies::default();
        answered.iter().for_each(|(_, report)| recent.add(&report.recent));
        let (events, alerts) = (events(&answered), alerts(&answered));
        let mut shapes = MergedShapes::default();
        answered.into_iter().for_each(|(_, report)| shapes.add(report.shapes));
        json!({
            "now_unix_ms": stoa_env::clock::unix_ms(),
            "daemons": daemons,
            "figures": figures,
            "latency": {
                "p50_ms": recent.percentile_ms(0.5),
                "p95_ms": recent.percentile_ms(0.95),
                "p99_ms": recent.percentile_ms(0.99),
                "window_s": RECENT_S,
            },
            "shapes": is_superuser.then(|| shapes.into_json(self.shapes_max)),
            "alerts": alerts,
            "events": events,
        })
    }

    /// A daemon, and why it has not answered if it has not.
    fn daemon(&self, daemon: &Daemon) -> Value {
        let mut object = members(&DAEMONS, daemon, ANYONE);
        let error = match self.reports.get(&daemon.daemon) {
            Some(Ok(report)) => report.status.get("not_ready").cloned().unwrap_or_default(),
            Some(Err(error)) => Value::String(reason(error)),
            None if daemon.state == "dead" => Value::String("it is dead".to_owned()),
            None => Value::String("it was not asked: it has just joined".to_owned()),
        };
        let answered = matches!(self.reports.get(&daemon.daemon), Some(Ok(_)));
        object.insert("answered".to_owned(), answered.into());
        object.insert("trouble".to_owned(), error);
        Value::Object(object)
    }
}

fn reason(error: &Error) -> String {
    format!("it did not answer: {}", error.message())
}

fn to_json(figure: Together, ids: &[&str]) -> Value {
    let values = ids.iter().map(|id| (*id).to_owned()).zip(figure.of);
    let of: Map<String, Value> = values.filter(|(_, value)| !value.is_null()).collect();
    json!({
        "group": figure.group,
        "key": figure.key,
        "name": figure.column.name,
        "kind": figure.column.kind.name(),
        "unit": figure.column.unit.name(),
        "help": figure.column.help,
        "sum": figure.sum,
        "min": figure.min,
        "max": figure.max,
        "of": of,
    })
}

/// All events in the order of time, the oldest first. What several daemons saw is there once.
fn events(reports: &[(String, Report)]) -> Vec<Value> {
    let mut all: BTreeMap<(i64, String), Value> = BTreeMap::new();
    for event in reports.iter().flat_map(|(_, report)| &report.events) {
        let at = event["at_unix_ms"].as_i64().unwrap_or_default();
        let what = ["daemon", "incarnation", "event", "by", "detail"].map(|name| &event[name]);
        all.entry((at, format!("{what:?}"))).or_insert_with(|| event.clone());
    }
    let skipped = all.len().saturating_sub(EVENTS_MAX);
    all.into_values().skip(skipped).collect()
}

/// All alerts that are on, by rule and what it is about; since when the first daemon says so.
fn alerts(reports: &[(String, Report)]) -> Vec<Value> {
    let mut all: BTreeMap<(String, String), Value> = BTreeMap::new();
    let since = |alert: &Value| alert["since_unix_ms"].as_i64().unwrap_or_default();
    for (daemon, report) in reports {
        for alert in report.status["alerts"].as_array().into_iter().flatten() {
            let text = |name: &str| alert[name].as_str().unwrap_or_default().to_owned();
            let about = Some(text("about")).filter(|about| !about.is_empty());
            let key = (text("alert"), about.unwrap_or_else(|| daemon.clone()));
            let known = all.entry(key).or_insert_with(|| alert.clone());
            if since(alert) < since(known) {
                *known = alert.clone();
            }
        }
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(events: Value, alerts: Value) -> (String, Report) {
        let events = events.as_array().unwrap().clone();
        let report = Report { events, status: json!({ "alerts": alerts }), ..Report::default() };
        ("00aa".to_owned(), report)
    }

    #[test]
    fn what_two_daemons_saw_is_one_event() {
        let joined = json!({ "at_unix_ms": 5, "event": "joined", "daemon": "a", "incarnation": 1 });
        let died = json!({ "at_unix_ms": 9, "event": "died", "daemon": "a", "incarnation": 1 });
        let mine = json!({ "at_unix_ms": 7, "event": "took over", "daemon": "a", "by": "b" });
        let again = json!({ "at_unix_ms": 9, "event": "died", "daemon": "a", "incarnation": 2 });
        let reports = [
            report(json!([joined, died]), json!([])),
            report(json!([joined, mine, died, again]), json!([])),
        ];
        assert_eq!(events(&reports), [joined, mine, died, again]);
    }

    #[test]
    fn an_alert_that_all_daemons_see_is_one() {
        let died =
            |since: i64| json!({ "alert": "daemon_died", "about": "cc", "since_unix_ms": since });
        let disk = json!({ "alert": "disk_nearly_full", "about": "", "since_unix_ms": 1 });
        let (one, mut two) =
            (report(json!([]), json!([died(8), disk])), report(json!([]), json!([died(7), disk])));
        two.0 = "00bb".to_owned();
        assert_eq!(alerts(&[one, two]), [died(7), disk.clone(), disk]);
    }
}
