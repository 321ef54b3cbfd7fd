//! Seeing and stopping queries.

use reqwest::Method;
use serde_json::{Value, json};
use stoa_http::HttpOptions;
use stoa_query::{EngineOptions, QueryState};
use stoa_testkit::{ENDLESS, until};

use crate::support::Server;

#[tokio::test]
async fn a_query_can_be_cancelled_by_its_number() {
    let server = Server::start().await;
    let running = server.request(Method::POST, "/v1/sql").body(ENDLESS).send();
    let cancelling = async {
        until("the query runs", || server.engine.queries().running_count() == 1).await;
        let listed = server.get_json("/v1/queries").await;
        assert_eq!(listed["running"][0]["sql"], ENDLESS);
        assert_eq!(listed["running"][0]["protocol"], "http");
        let path = format!("/v1/queries/{}", listed["running"][0]["id"]);
        server.request(Method::DELETE, &path).send().await.unwrap().status()
    };
    let (answer, cancelled) = tokio::join!(running, cancelling);
    assert_eq!(cancelled, 204);
    let answer = answer.unwrap();
    assert_eq!(answer.status(), 499);
    assert_eq!(answer.json::<Value>().await.unwrap()["error"]["code"], "57014");
    let recent = server.get_json("/v1/queries").await;
    assert_eq!(recent["recent"][0]["state"], "cancelled");
    let gone = server.request(Method::DELETE, "/v1/queries/4711").send().await.unwrap();
    assert_eq!(gone.status(), 404);
}

/// The first operator of a plan with this name, wherever it is.
fn operator<'a>(plan: &'a Value, name: &str) -> Option<&'a Value> {
    if plan["name"] == name {
        return Some(plan);
    }
    plan["inputs"].as_array()?.iter().find_map(|input| operator(input, name))
}

fn metric(operator: &Value, name: &str) -> Option<u64> {
    let mut metrics = operator["metrics"].as_array()?.iter();
    metrics.find(|metric| metric["name"] == name)?["value"].as_u64()
}

#[tokio::test]
async fn the_plan_of_a_running_query_grows() {
    let server = Server::start().await;
    server.sql("CREATE TABLE t (n bigint)").await;
    server.sql("INSERT INTO t SELECT value FROM generate_series(1, 1000) AS s(value)").await;
    let endless = "SELECT count(*) FROM t a, t b, t c, t d WHERE a.n + b.n + c.n + d.n = -1";
    let running = server.request(Method::POST, "/v1/sql").body(endless).send();
    let watching = async {
        until("the query runs", || server.engine.queries().running_count() == 1).await;
        let listed = server.get_json("/v1/queries").await;
        let id = listed["running"][0]["id"].as_u64().unwrap();
        let path = format!("/v1/queries/{id}/plan");
        let joined = loop {
            let response = server.get(&path).await;
            if response.status() == 404 {
                continue;
            }
            let document: Value = response.json().await.unwrap();
            let rows = |name| operator(&document["plan"], name)?["rows"].as_u64();
            if let (Some(rows @ 1..), Some(1000)) = (rows("CrossJoinExec"), rows("OrcScanExec")) {
                assert_eq!(document["query"]["state"], "running");
                break rows;
            }
        };
        let grown = loop {
            let document = server.get_json(&path).await;
            let join = operator(&document["plan"], "CrossJoinExec").unwrap();
            let rows = join["rows"].as_u64().unwrap();
            if rows > joined {
                break join.clone();
            }
        };
        assert!(grown["compute_ms"].as_f64().unwrap() > 0.0, "{grown}");
        server.request(Method::DELETE, &format!("/v1/queries/{id}")).send().await.unwrap();
        path
    };
    let (_, path) = tokio::join!(running, watching);
    // It took a while, so its plan is kept.
    let ended = server.get_json(&path).await;
    assert_eq!(ended["query"]["state"], "cancelled");
    let scan = operator(&ended["plan"], "OrcScanExec").unwrap();
    assert!(scan["detail"].as_str().unwrap().starts_with("table=public.t, columns=[n]"), "{scan}");
    assert_eq!(metric(scan, "files_total"), Some(1), "{scan}");
}

#[tokio::test]
async fn the_plan_of_a_report_is_its_one_operator() {
    let server = Server::start().await;
    server.sql("CREATE TABLE r (k bigint, n bigint) ORDER BY (k)").await;
    server
        .sql("INSERT INTO r SELECT value % 10, value FROM generate_series(1, 1000) AS s(value)")
        .await;
    for key in [3, 4] {
        server.sql(&format!("SELECT sum(n) FROM r WHERE k = {key}")).await;
    }
    let listed = server.get_json("/v1/queries?recent=1").await;
    assert_eq!(listed["recent"][0]["short_path"], true);
    let path = format!("/v1/queries/{}/plan", listed["recent"][0]["id"]);
    let plan = server.get_json(&path).await["plan"].clone();
    assert_eq!(
        (&plan["name"], &plan["rows"], &plan["inputs"]),
        (&"ReportExec".into(), &1.into(), &json!([]))
    );
    assert_eq!(metric(&plan, "rows_selected"), Some(100), "{plan}");
}

#[tokio::test]
async fn what_has_no_plan_says_so() {
    let server = Server::start().await;
    server.sql("CREATE TABLE t (n bigint)").await;
    let listed = server.get_json("/v1/queries?recent=1").await;
    let id = listed["recent"][0]["id"].as_u64().unwrap();
    for (id, wanted) in [(id, "has no plan"), (4711, "no query 4711")] {
        let response = server.get(&format!("/v1/queries/{id}/plan")).await;
        assert_eq!(response.status(), 404);
        let error = response.json::<Value>().await.unwrap()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains(wanted), "{error}");
        assert!(error["hint"].is_string());
    }
    assert_eq!(server.get("/v1/queries/x/plan").await.status(), 400);
    // For those who only look whether there is one.
    let none = server.get("/v1/queries/987654321/plan?optional=true").await;
    assert_eq!((none.status().as_u16(), none.text().await.unwrap().len()), (204, 0));
}

#[tokio::test]
async fn a_client_that_goes_away_stops_its_query() {
    let server = Server::start().await;
    let running = server.request(Method::POST, "/v1/sql").body(ENDLESS).send();
    let seen = until("the query runs", || server.engine.queries().running_count() == 1);
    tokio::select! {
        _ = running => panic!("the query never ends"),
        () = seen => {}
    }
    until("the query stopped", || server.engine.queries().running_count() == 0).await;
}

#[tokio::test]
async fn a_client_that_goes_away_stops_its_stream() {
    let server = Server::start().await;
    let sql = "SELECT value FROM generate_series(1, 1000000000000) AS s(value)";
    let mut response = server.post("/v1/sql?format=csv", sql).await;
    assert!(response.chunk().await.unwrap().is_some());
    assert_eq!(server.engine.queries().running_count(), 1);
    drop(response);
    until("the stream stopped", || server.engine.queries().running_count() == 0).await;
}

#[tokio::test]
async fn status_metrics_and_the_list_agree() {
    let server = Server::start().await;
    for _ in 0..3 {
        server.sql("SELECT 1").await;
    }
    assert_eq!(server.post("/v1/sql", "SELECT 1 / 0").await.status(), 400);
    let status = server.get_json("/v1/status").await;
    assert_eq!(status["totals"]["finished"], 3);
    assert_eq!(status["totals"]["failed"], 1);
    assert_eq!(status["ready"], true);
    assert!(status["latency"]["p50_ms"].as_f64().unwrap() > 0.0);
    assert!(status["resident_bytes"].as_u64().unwrap() > 0);
    let metrics = server.get("/metrics").await.text().await.unwrap();
    for line in [
        "stoa_query_ended_queries_total{state=\"finished\"} 3",
        "stoa_query_ended_queries_total{state=\"failed\"} 1",
        "stoa_query_duration_seconds_count 3",
        "stoa_http_requests_total{route=\"/v1/sql\",status=\"200\"} 3",
        "stoa_http_requests_total{route=\"/v1/sql\",status=\"400\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    let listed = server.get_json("/v1/queries?recent=1").await;
    assert_eq!(listed["recent"].as_array().unwrap().len(), 1);
    assert_eq!(listed["recent"][0]["sqlstate"], "22012");
    assert_eq!(server.engine.queries().recent()[0].state, QueryState::Failed);
}

#[tokio::test]
async fn status_and_system_tables_have_the_same_figures() {
    let server = Server::start().await;
    let status = server.get_json("/v1/status").await;
    for table in ["totals", "executors", "cache", "pools", "stores"] {
        let object = if status[table].is_array() { &status[table][0] } else { &status[table] };
        let members: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
        let answer = server.sql(&format!("SELECT * FROM system.{table}")).await;
        let columns = answer["columns"].as_array().unwrap();
        let mut columns: Vec<&str> =
            columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
        columns.sort_unstable();
        assert_eq!(columns, members, "{table}");
    }
    let queue = "SELECT queue_max, memory_bytes_max FROM system.executors";
    let row = server.sql(queue).await["rows"][0].clone();
    let executors = &status["executors"];
    assert_eq!(row, json!([executors["queue_max"], executors["memory_bytes_max"]]));
}

#[tokio::test]
async fn samples_appear_each_second() {
    let server = Server::start().await;
    server.sql("SELECT 1").await;
    let history = loop {
        let status = server.get_json("/v1/status?since=0").await;
        let history = status["history"].as_array().unwrap().clone();
        if !history.is_empty() {
            break history;
        }
    };
    assert!(history[0]["per_second"].as_f64().unwrap() > 0.0);
    assert!(history[0]["p99_ms"].as_f64().unwrap() > 0.0);
    assert_eq!((&history[0]["computing"], &history[0]["waiting"]), (&json!(0), &json!(0)));
    assert_eq!(history[0]["fresh_rows"], Value::Null, "there is no log");
    let newest = history.last().unwrap()["unix_ms"].as_i64().unwrap();
    let path = format!("/v1/status?since={newest}");
    let later = server.get_json(&path).await;
    for sample in later["history"].as_array().unwrap() {
        assert!(sample["unix_ms"].as_i64().unwrap() > newest);
    }
}

#[tokio::test]
async fn samples_show_small_writes_and_the_cache() {
    let logs = tempfile::tempdir().unwrap();
    let url = url::Url::from_directory_path(logs.path()).unwrap();
    let server = Server::start_engine(HttpOptions::default(), |options| EngineOptions {
        logs: Some(url),
        ..options
    });
    let server = server.await;
    server.sql("CREATE TABLE t (k bigint, n bigint) ORDER BY (k)").await;
    server.sql("INSERT INTO t VALUES (1, 10), (2, 20)").await;
    server.sql("FLUSH TABLE t").await;
    for key in [1, 2, 1, 2] {
        server.sql(&format!("SELECT sum(n) FROM t WHERE k = {key}")).await;
    }
    server.sql("INSERT INTO t VALUES (3, 30), (4, 40), (5, 50)").await;
    let sample = loop {
        let status = server.get_json("/v1/status?since=0").await;
        let mut history = status["history"].as_array().unwrap().iter();
        if let Some(sample) = history.find(|sample| sample["fresh_rows"] == 3) {
            break sample.clone();
        }
    };
    assert!(sample["rows_per_second"].as_f64().unwrap() > 0.0, "{sample}");
    assert_eq!(sample["appends_waiting"], 0);
    assert!(sample["cache_bytes"].as_u64().unwrap() > 0, "{sample}");
    assert!(sample["hit_ratio"].as_f64().unwrap() > 0.0, "{sample}");
}
