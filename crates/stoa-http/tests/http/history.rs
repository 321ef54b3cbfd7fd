//! Latencies by path and pool, and the history of figures over restarts.

use serde_json::Value;
use stoa_env::timer;
use stoa_http::HttpOptions;
use stoa_query::EngineOptions;

use crate::support::Server;

/// The row of `/v1/status` about a path.
async fn path(server: &Server, name: &str) -> Value {
    let status = server.get_json("/v1/status").await;
    let rows = status["latency_paths"].as_array().unwrap();
    rows.iter().find(|row| row["path"] == name).unwrap().clone()
}

async fn server_with_rows() -> Server {
    let server = Server::start().await;
    server.sql("CREATE TABLE r (k bigint, n bigint) ORDER BY (k)").await;
    server
        .sql("INSERT INTO r SELECT value % 10, value FROM generate_series(1, 100000) AS s(value)")
        .await;
    server
}

#[tokio::test]
async fn each_path_has_latencies_of_its_own() {
    let server = server_with_rows().await;
    let before = path(&server, "planned").await["queries"].as_u64().unwrap();
    for key in 0..5 {
        server.sql(&format!("SELECT sum(n) FROM r WHERE k = {key}")).await;
    }
    // Not of the form of a report: it has a plan, and the answer is given again.
    let again = "SELECT count(*) FROM (SELECT k, row_number() OVER (ORDER BY n) AS p FROM r) AS t WHERE p % 7 = 0";
    for _ in 0..4 {
        server.sql(again).await;
    }
    server.sql("SET TimeZone = 'UTC'").await;
    let counts = async |name| path(&server, name).await["queries"].as_u64().unwrap();
    assert!(counts("short").await >= 4);
    assert_eq!(counts("reused").await, 3);
    assert!(counts("planned").await > before);
    assert!(counts("waiting").await >= 1, "what had a plan on a table had a slot");
    assert!(counts("other").await >= 1);

    let planned = path(&server, "planned").await;
    let reused = path(&server, "reused").await;
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    assert!(number(&planned, "p50_ms") <= number(&planned, "p99_ms"));
    assert!(number(&planned, "p99_ms") <= number(&planned, "max_ms"));
    assert!(number(&reused, "max_ms") < number(&planned, "max_ms"));

    // The same of queries, shapes and pools; SQL and Prometheus agree.
    let rows = server
        .sql("SELECT path, count(*) FROM system.queries WHERE sql LIKE '%row_number%' AND sql NOT LIKE '%system%' GROUP BY 1 ORDER BY 1")
        .await;
    assert_eq!(rows["rows"], serde_json::json!([["planned", 1], ["reused", 3]]));
    let shapes = server.get_json("/v1/shapes").await;
    let shapes = shapes["shapes"].as_array().unwrap();
    let shape =
        shapes.iter().find(|shape| shape["sql"].as_str().unwrap().contains("row_number")).unwrap();
    assert_eq!((&shape["queries"], &shape["reused"]), (&4.into(), &3.into()));
    let pool = server
        .sql("SELECT queries, p50_ms <= p99_ms, wait_p99_ms >= 0 FROM system.pools WHERE pool = 'default'")
        .await;
    assert!(pool["rows"][0][0].as_u64().unwrap() >= 10, "{pool}");
    assert_eq!((&pool["rows"][0][1], &pool["rows"][0][2]), (&true.into(), &true.into()));
    let metrics = server.get("/metrics").await.text().await.unwrap();
    let line = "stoa_query_path_seconds_count{path=\"reused\"} 3";
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
}

#[tokio::test]
async fn percentiles_in_sql_are_those_of_the_console() {
    let server = server_with_rows().await;
    for key in 0..20 {
        server.sql(&format!("SELECT sum(n) FROM r WHERE k = {key}")).await;
    }
    // Nothing ends between the two: a statement counts once it has ended.
    let status = server.get_json("/v1/status").await;
    let row =
        server.sql("SELECT p50_ms, p95_ms, p99_ms FROM system.latency").await["rows"][0].clone();
    for (index, name) in ["p50_ms", "p95_ms", "p99_ms"].into_iter().enumerate() {
        assert_eq!(row[index], status["latency"][name], "{name}");
    }
}

/// What `SELECT` says of the samples of a step.
async fn samples(server: &Server, step_s: u64) -> u64 {
    let sql = format!("SELECT count(*) FROM system.history WHERE step_s = {step_s}");
    server.sql(&sql).await["rows"][0][0].as_u64().unwrap()
}

#[tokio::test]
async fn history_outlives_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let kept = |options: EngineOptions| EngineOptions {
        history: Some(directory.path().to_owned()),
        ..options
    };
    let mut server = Server::start_engine(HttpOptions::default(), kept).await;
    timer::timeout(std::time::Duration::from_secs(30), async {
        while samples(&server, 1).await < 3 {
            timer::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("samples come");
    let document = server.get_json("/v1/history?step_s=1").await;
    let columns = document["columns"].as_array().unwrap();
    let place = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let first = document["rows"][0].clone();
    assert_eq!(first[place("step_s")], 1);
    assert!(first[place("machine_cpu_ratio")].is_number() || !cfg!(target_os = "linux"));
    let at = first[place("unix_ms")].as_i64().unwrap();
    let later = server.get_json(&format!("/v1/history?step_s=1&since={at}")).await;
    assert!(later["rows"].as_array().unwrap().iter().all(|row| row[0].as_i64() > Some(at)));
    assert_eq!(server.get("/v1/history?step_s=7").await.status(), 400);
    assert_eq!(server.get("/v1/history").await.status(), 400);

    server.stop();
    server.ended().await;
    // Another server on the same directory: a new process after a kill has no more than the file either.
    let server = Server::start_engine(HttpOptions::default(), kept).await;
    let document = server.get_json("/v1/history?step_s=1").await;
    assert_eq!(document["rows"][0], first);
}
