//! What is shown of a snapshot: each output has the declared figures and no others, with equal values.
#![allow(clippy::unwrap_used)]

mod exposition;

use std::collections::{BTreeMap, BTreeSet};

use exposition::{Exposition, parse};
use serde_json::Value;
use stoa_figures::{
    Alert, Cache, ClusterFigures, Daemon, EXECUTORS, Executors, Histogram, HttpRequests,
    IngestTable, Latency, LatencyPath, Log, Machine, Maintenance, Pool, QUERIES, Query,
    RefusedConnections, Sample, Server, Shape, Snapshot, Store, ThisDaemon, Totals, Viewer,
    declarations, for_everyone, members, prometheus, status, together,
};

const ROOT: Viewer<'_> = Viewer { role: "stoa", is_superuser: true };
const ANN: Viewer<'_> = Viewer { role: "ann", is_superuser: false };

/// A server with all its parts.
fn snapshot() -> Snapshot {
    let pool = |name: &str| Pool { pool: name.to_owned(), slots: 4, ..Pool::default() };
    let table = |name: &str, failures| IngestTable {
        table: name.to_owned(),
        failures,
        ..IngestTable::default()
    };
    let store = |name: &str, gets| Store {
        store: name.to_owned(),
        gets,
        wait_ms: 1500.0,
        ..Store::default()
    };
    Snapshot {
        server: Server {
            version: "0.1.0".to_owned(),
            uptime_ms: 1500,
            resident_bytes: Some(4096),
            cpu_s: Some(0.25),
            ..Server::default()
        },
        totals: Totals { finished: 3, failed: 1, ..Totals::default() },
        latency: Latency {
            duration: Histogram { buckets: vec![(0.001, 1), (0.5, 3)], sum: 0.25, count: 4 },
            ..Latency::default()
        },
        latency_paths: vec![LatencyPath { path: "short", queries: 5, ..LatencyPath::default() }],
        machine: Machine {
            processors: 2,
            cpu_busy_s: Some(1.5),
            cpu_idle_s: Some(2.5),
            memory_bytes: Some(5),
            memory_bytes_max: Some(6),
            disk_bytes_read: Some(7),
            disk_bytes_written: Some(8),
            bytes_received: Some(9),
            bytes_sent: Some(10),
            process_cpu_s: Some(0.25),
            process_bytes_read: Some(11),
            process_bytes_written: Some(12),
        },
        executors: Executors { queue_max: 256, memory_bytes_max: 1 << 31, ..Executors::default() },
        pools: vec![pool("default"), pool("ba\"tch\\\n")],
        refused_connections: vec![RefusedConnections {
            listener: "http".to_owned(),
            connections: 2,
        }],
        cache: Cache { bytes: 17, chunk_hits: 3, chunk_misses: 1, ..Cache::default() },
        stores: vec![store("file://", 7), store("s3://bucket", 9)],
        cluster: Some(ClusterFigures { exact: true, takeovers: 2, ..ClusterFigures::default() }),
        daemons: vec![Daemon { daemon: "00ff".to_owned(), calls: 6, ..Daemon::default() }],
        this_daemon: Some(ThisDaemon {
            daemon: "00aa".to_owned(),
            host: "one".to_owned(),
            zone: "z".to_owned(),
            build: "stoa 0.1.0".to_owned(),
            is_member: true,
        }),
        alerts: vec![Alert { alert: "log_stopped".to_owned(), ..Alert::default() }],
        log: Some(Log { stopped: Some("no room".to_owned()), ..Log::default() }),
        ingest: vec![table("public.a", 2), table("public.b", 3)],
        maintenance: Some(Maintenance {
            table: Some("public.secret".to_owned()),
            errors: vec!["public.secret: broken".to_owned()],
            ..Maintenance::default()
        }),
        http_requests: vec![HttpRequests { route: "/v1/sql".to_owned(), status: 200, requests: 5 }],
        history: vec![Sample::default()],
        ..Snapshot::default()
    }
}

fn exposed(is_open_to_all: bool) -> Exposition {
    parse(&prometheus(&snapshot(), is_open_to_all)).unwrap()
}

#[test]
fn prometheus_has_what_is_declared() {
    let wanted: BTreeMap<&str, &str> = declarations()
        .iter()
        .flat_map(|group| group.metrics.clone())
        .map(|column| (column.metric.unwrap().name, column.metric.unwrap().help))
        .collect();
    for is_open_to_all in [true, false] {
        let exposed = exposed(is_open_to_all);
        let found: BTreeMap<&str, &str> =
            exposed.families.iter().map(|(name, family)| (&**name, &*family.help)).collect();
        assert_eq!(found, wanted);
    }
}

#[test]
fn prometheus_has_the_values() {
    let exposed = exposed(true);
    for (series, value) in [
        ("stoa_build_info{version=\"0.1.0\"}", 1.0),
        ("stoa_process_ready", 1.0),
        ("stoa_process_uptime_seconds", 1.5),
        ("stoa_process_resident_memory_bytes", 4096.0),
        ("stoa_process_cpu_seconds_total", 0.25),
        ("stoa_query_ended_queries_total{state=\"finished\"}", 3.0),
        ("stoa_query_ended_queries_total{state=\"failed\"}", 1.0),
        ("stoa_query_duration_seconds_bucket{le=\"0.001\"}", 1.0),
        ("stoa_query_duration_seconds_bucket{le=\"+Inf\"}", 4.0),
        ("stoa_query_duration_seconds_sum", 0.25),
        ("stoa_query_duration_seconds_count", 4.0),
        ("stoa_admission_waiting_limit_queries", 256.0),
        ("stoa_query_memory_limit_bytes", 2_147_483_648.0),
        ("stoa_pool_slots{pool=\"default\"}", 4.0),
        ("stoa_pool_slots{pool=\"ba\\\"tch\\\\\\n\"}", 4.0),
        ("stoa_store_requests_total{store=\"s3://bucket\",kind=\"get\"}", 9.0),
        ("stoa_store_wait_seconds_total{store=\"file://\"}", 1.5),
        ("stoa_stalls_total{threads=\"planner\"}", 0.0),
        ("stoa_cluster_exact", 1.0),
        ("stoa_cluster_takeovers_total", 2.0),
        ("stoa_daemon_info{daemon=\"00aa\",host=\"one\",zone=\"z\",build=\"stoa 0.1.0\"}", 1.0),
        ("stoa_alert_on{alert=\"log_stopped\",about=\"\"}", 1.0),
        ("stoa_daemon_calls_total{daemon=\"00ff\"}", 6.0),
        ("stoa_log_stopped", 1.0),
        ("stoa_flush_failures{table=\"public.b\"}", 3.0),
        ("stoa_maintenance_working", 1.0),
        ("stoa_http_requests_total{route=\"/v1/sql\",status=\"200\"}", 5.0),
    ] {
        assert_eq!(exposed.samples.get(series), Some(&value), "{series}: {exposed:?}");
    }
}

#[test]
fn prometheus_names_no_table_where_roles_matter() {
    let exposed = exposed(false);
    assert_eq!(exposed.samples.get("stoa_flush_failures"), Some(&5.0));
    assert!(!exposed.samples.keys().any(|series| series.contains("public")), "{exposed:?}");
    // Without rows as with them: there were no failures.
    let without = prometheus(&Snapshot::default(), false);
    assert!(without.contains("\nstoa_flush_failures 0\n"), "{without}");
}

#[test]
fn a_family_without_samples_is_left_out() {
    let text = prometheus(&Snapshot::default(), true);
    parse(&text).unwrap();
    for absent in ["stoa_fresh_rows", "stoa_maintenance_", "stoa_pool_", "stoa_store_", "cpu"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
}

fn names(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn status_has_what_is_declared() {
    let document = status(&snapshot(), ROOT);
    let mut wanted = BTreeSet::new();
    for group in declarations().iter().filter(|group| group.is_in_status) {
        let columns: BTreeSet<&str> = group.columns.iter().map(|column| column.name).collect();
        if group.shape == Shape::Top {
            wanted.extend(columns);
            continue;
        }
        wanted.insert(group.name);
        let found = &document[group.name];
        let object = if group.shape == Shape::Many { &found[0] } else { found };
        assert_eq!(names(object), columns, "{}", group.name);
    }
    assert_eq!(names(&document), wanted);
    let nothing = status(&Snapshot::default(), ROOT);
    assert_eq!((&nothing["log"], &nothing["maintenance"]), (&Value::Null, &Value::Null));
    assert_eq!(nothing["pools"], Value::Array(Vec::new()));
}

/// Members of JSON, series of Prometheus: the numbers are equal, but for milliseconds.
#[test]
fn status_and_prometheus_agree() {
    let (document, exposed) = (status(&snapshot(), ROOT), exposed(true));
    let mut compared = 0;
    for group in declarations().iter().filter(|group| group.is_in_status) {
        let object = match group.shape {
            Shape::Top => &document,
            Shape::One | Shape::Maybe => &document[group.name],
            Shape::Many => continue,
        };
        for column in &group.metrics {
            let metric = column.metric.unwrap();
            let series = match metric.part {
                Some((label, value)) => format!("{}{{{label}=\"{value}\"}}", metric.name),
                None => metric.name.to_owned(),
            };
            let Some(value) = exposed.samples.get(&series) else { continue };
            let member = &object[column.name];
            let member = member.as_bool().map(f64::from).or(member.as_f64());
            let factor = if column.name.ends_with("_ms") { 1000.0 } else { 1.0 };
            assert_eq!(member, Some(value * factor), "{}.{}", group.name, column.name);
            compared += 1;
        }
    }
    assert!(compared > 45, "{compared}");
}

#[test]
fn what_is_for_superusers_is_null_for_others() {
    let (root, ann) = (status(&snapshot(), ROOT), status(&snapshot(), ANN));
    assert_eq!(root["maintenance"]["table"], "public.secret");
    assert_eq!(root["maintenance"]["errors"][0], "public.secret: broken");
    assert!(!ann.to_string().contains("secret"), "{ann}");
    assert_eq!(ann["maintenance"]["compactions"], 0);
    let (all, hers) = (names(&root["maintenance"]), names(&ann["maintenance"]));
    assert_eq!(all, hers, "the members are the same");
}

#[test]
fn each_sees_the_own_queries() {
    let query = |user: &str| Query { user: user.to_owned(), ..Query::default() };
    let all = [query("ann"), query("bob"), query("ann")];
    let users = |viewer| -> Vec<String> {
        let seen = QUERIES.seen_rows(&all, viewer);
        seen.iter().map(|query| query.user.clone()).collect()
    };
    assert_eq!(users(ANN), ["ann", "ann"]);
    assert_eq!(users(ROOT).len(), 3);
}

#[test]
fn columns_and_members_have_the_same_values() {
    let one = Executors { executors: 2, waiting: 7, overdue: u64::MAX, ..Executors::default() };
    let rows = [one];
    let seen = EXECUTORS.seen_rows(&rows, ANN);
    let object = members(&EXECUTORS, seen[0], ANN);
    for (index, column) in EXECUTORS.declaration().columns.iter().enumerate() {
        let values = EXECUTORS.values(index, &seen, ANN);
        let [stoa_figures::Value::Integer(value)] = values[..] else { panic!("{values:?}") };
        assert_eq!(object[column.name], value, "{}", column.name);
    }
    assert_eq!(object["overdue"], i64::MAX, "what does not fit ends there");
    assert_eq!(EXECUTORS.values(99, &seen, ANN), [stoa_figures::Value::Null]);
}

/// What three daemons say, one of which runs a build that has other figures.
#[test]
fn figures_of_daemons_come_together_by_what_is_declared() {
    let one = status(&snapshot(), ROOT);
    let mut two = status(
        &Snapshot {
            totals: Totals { finished: 10, ..Totals::default() },
            server: Server {
                uptime_ms: 500,
                not_ready: Some("starts".to_owned()),
                ..Server::default()
            },
            ..Snapshot::default()
        },
        ROOT,
    );
    two["totals"].as_object_mut().unwrap().remove("failed");
    two["totals"]["of_another_build"] = 7.into();
    let three = serde_json::json!({ "totals": { "finished": "many" }, "pools": 3 });
    let all = together(&[&one, &two, &three]);
    let find = |group: &str, key: Option<&str>, name: &str| {
        let found = all.iter().find(|figure| {
            (figure.group, figure.key.as_deref(), figure.column.name) == (group, key, name)
        });
        found.map(|figure| {
            (figure.sum.clone(), figure.min.clone(), figure.max.clone(), figure.of.clone())
        })
    };
    let null = Value::Null;
    let finished = find("totals", None, "finished").unwrap();
    let of = vec![3.into(), 10.into(), null.clone()];
    assert_eq!(finished, (Some(13.into()), 3.into(), 10.into(), of));
    // Of one daemon only; by another one left out.
    assert_eq!(find("totals", None, "failed").unwrap().0, Some(1.into()));
    assert_eq!(find("totals", None, "of_another_build"), None);
    // Times and yes or no are not added up.
    let uptime = find("server", None, "uptime_ms").unwrap();
    assert_eq!((uptime.0, uptime.1, uptime.2), (None, 500.into(), 1500.into()));
    let ready = find("server", None, "ready").unwrap();
    assert_eq!((ready.0, ready.1, ready.2), (None, false.into(), true.into()));
    // What each daemon says of the whole cluster is not added up either.
    assert_eq!(find("cluster", None, "up").unwrap().0, None);
    assert_eq!(find("cluster", None, "takeovers").unwrap().0, Some(2.into()));
    // Rows by their keys, and no samples.
    assert_eq!(find("pools", Some("default"), "slots").unwrap().0, Some(4.into()));
    assert_eq!(find("stores", Some("s3://bucket"), "gets").unwrap().0, Some(9.into()));
    assert_eq!(find("stores", Some("s3://bucket"), "wait_ms").unwrap().0, Some(1500.0.into()));
    assert!(all.iter().all(|figure| figure.group != "history" && figure.group != "ingest"));
    assert!(all.len() > 100, "{}", all.len());
}

#[test]
fn sums_are_of_amounts_only() {
    use stoa_figures::{Kind, Unit};
    for group in declarations() {
        for column in &group.columns {
            let place = format!("{}.{}", group.name, column.name);
            match (column.kind, column.unit) {
                (Kind::Counter, _) => assert!(column.is_summed, "{place}"),
                (Kind::Gauge, Unit::Ratio | Unit::YesNo) => assert!(!column.is_summed, "{place}"),
                (Kind::Gauge, Unit::Bytes | Unit::Of(_) | Unit::Dollars) => {}
                // Times that are sums themselves.
                _ if column.is_summed => assert_eq!(place, "query_shapes.total_ms"),
                _ => {}
            }
        }
    }
}

#[test]
fn what_everyone_may_see_of_another_daemon_is_what_status_shows_everyone() {
    let mut document = status(&snapshot(), ROOT);
    document["secrets_of_another_build"] = 1.into();
    let seen = for_everyone(&document);
    assert!(!seen.to_string().contains("secret"), "{seen}");
    let mut anns = status(&Snapshot { ingest: Vec::new(), ..snapshot() }, ANN);
    anns.as_object_mut().unwrap().remove("ingest");
    assert_eq!(seen, anns);
}
