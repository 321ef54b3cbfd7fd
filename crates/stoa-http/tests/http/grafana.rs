//! The dashboard for Grafana names only what `/metrics` has.

use std::collections::BTreeSet;

use serde_json::Value;
use stoa_http::HttpOptions;
use stoa_query::EngineOptions;

use crate::support::Server;

const DASHBOARD: &str = include_str!("../../../../docs/grafana-dashboard.json");

/// Families and their series, as a server with all its parts exposes them.
async fn exposed() -> BTreeSet<String> {
    let logs = tempfile::tempdir().unwrap();
    let url = url::Url::from_directory_path(logs.path()).unwrap();
    let server = Server::start_engine(HttpOptions::default(), |options| EngineOptions {
        logs: Some(url),
        maintenance: true,
        ..options
    });
    let server = server.await;
    server.sql("CREATE TABLE t (n bigint)").await;
    server.sql("INSERT INTO t VALUES (1)").await;
    let text = server.get("/metrics").await.text().await.unwrap();
    let series = text.lines().filter(|line| !line.starts_with('#'));
    let names = series.filter_map(|line| line.split(['{', ' ']).next());
    names.map(str::to_owned).collect()
}

/// All texts below the members `expr` and `query`.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "expr" || name == "query" => {
                        found.push(text.clone());
                    }
                    _ => expressions(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

fn metrics_of(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("stoa_"))
}

#[tokio::test]
async fn every_metric_of_the_dashboard_is_exposed() {
    let exposed = exposed().await;
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    let named: BTreeSet<&str> = all.iter().flat_map(|text| metrics_of(text)).collect();
    let missing: Vec<&&str> = named.iter().filter(|name| !exposed.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {exposed:?}");
    for part in [
        "query",
        "admission",
        "pool",
        "stalls",
        "cache",
        "cache_disk",
        "plan",
        "report",
        "fresh",
        "log",
        "maintenance",
        "process",
        "store",
    ] {
        let prefix = format!("stoa_{part}_");
        assert!(named.iter().any(|name| name.starts_with(&prefix)), "nothing of {prefix}");
    }
}

#[test]
fn every_panel_asks_the_data_source_that_the_viewer_chose() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let variable = &dashboard["templating"]["list"][0];
    assert_eq!((&variable["name"], &variable["type"]), (&"source".into(), &"datasource".into()));
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${source}", "{}", panel["title"]);
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{}", panel["title"]);
    }
    assert!(panels.iter().all(|panel| ids.insert(panel["id"].as_u64())), "ids are unique");
}

#[test]
fn no_panel_lies_on_another() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let place = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{}", panel["title"]);
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(taken.insert((x, y)), "{} at {x}, {y}", panel["title"]);
            }
        }
    }
}
