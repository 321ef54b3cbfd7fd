//! The dashboards for Grafana name only what `/metrics` has.

use std::collections::BTreeSet;

use serde_json::Value;
use stoa_http::HttpOptions;
use stoa_query::EngineOptions;

use crate::support::Server;

const DASHBOARD: &str = include_str!("../../../../docs/grafana-dashboard.json");
const CLUSTER: &str = include_str!("../../../../docs/grafana-cluster.json");

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
        "machine",
        "maintenance",
        "process",
        "store",
    ] {
        let prefix = format!("stoa_{part}_");
        assert!(named.iter().any(|name| name.starts_with(&prefix)), "nothing of {prefix}");
    }
}

/// A server that is alone does not expose what a cluster has: names and labels are those that are declared.
#[test]
fn every_metric_of_the_clusters_dashboard_is_declared() {
    let dashboard: Value = serde_json::from_str(CLUSTER).unwrap();
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    let declared: BTreeSet<&str> = stoa_figures::declarations()
        .iter()
        .flat_map(|group| &group.metrics)
        .filter_map(|column| column.metric.map(|metric| metric.name))
        .collect();
    let named: BTreeSet<&str> = all.iter().flat_map(|text| metrics_of(text)).collect();
    let is_declared = |name: &&str| declared.contains(name.trim_end_matches("_bucket"));
    let missing: Vec<&&str> = named.iter().filter(|name| !is_declared(name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {declared:?}");
    for part in ["alert", "cache", "cluster", "daemon", "fresh", "log", "process", "query", "store"]
    {
        let prefix = format!("stoa_{part}_");
        assert!(named.iter().any(|name| name.starts_with(&prefix)), "nothing of {prefix}");
    }
    // Each daemon by its name, and all together.
    let count = |part: &str| all.iter().filter(|text| text.contains(part)).count();
    assert!(count("group_left (host, daemon) stoa_daemon_info") > 10);
    assert!(all.iter().filter(|text| text.starts_with("sum(sum by (instance)")).count() > 8);
}

#[test]
fn every_panel_asks_the_data_source_that_the_viewer_chose() {
    for dashboard in [DASHBOARD, CLUSTER] {
        asks_the_data_source(&serde_json::from_str(dashboard).unwrap());
    }
}

fn asks_the_data_source(dashboard: &Value) {
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
    for dashboard in [DASHBOARD, CLUSTER] {
        lies_beside(&serde_json::from_str(dashboard).unwrap());
    }
}

fn lies_beside(dashboard: &Value) {
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
