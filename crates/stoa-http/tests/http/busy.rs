//! More queries than there are slots.

use reqwest::{Method, Response};
use serde_json::Value;
use stoa_http::HttpOptions;
use stoa_query::EngineOptions;
use stoa_testkit::until;

use crate::support::Server;

/// Reads a table and runs for hours unless it is stopped, which it can be after each batch of
/// numbers. Equal statements would share one answer.
fn scan(number: i32) -> String {
    format!(
        "SELECT count(*) FROM t, generate_series(1, 1000000000000) AS s (m) WHERE n + m = -{number}"
    )
}

async fn server_with_one_slot() -> Server {
    let server = Server::start_engine(HttpOptions::default(), |options| EngineOptions {
        query_slots: 1,
        queue_max: 1,
        ..options
    });
    let server = server.await;
    server.sql("CREATE TABLE t (n bigint)").await;
    server.sql("INSERT INTO t SELECT value FROM generate_series(1, 2) AS s(value)").await;
    server
}

fn start(server: &Server, number: i32) -> tokio::task::JoinHandle<Response> {
    let request = server.request(Method::POST, "/v1/sql").body(scan(number));
    stoa_env::task::spawn(async { request.send().await.unwrap() })
}

#[tokio::test]
async fn one_too_many_is_told_to_come_back() {
    let server = server_with_one_slot().await;
    let first = start(&server, 1);
    until("one computes", || server.engine.admission_status().running == 1).await;
    let second = start(&server, 2);
    until("one waits", || server.engine.admission_status().waiting == 1).await;

    let refused = server.post("/v1/sql", &scan(3)).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    let error = refused.json::<Value>().await.unwrap()["error"].clone();
    assert_eq!((&error["code"], &error["retryable"]), (&"53300".into(), &true.into()));

    let status = server.get_json("/v1/status").await;
    let executors = &status["executors"];
    let seen = ["slots", "running", "waiting", "queue_max", "refused"].map(|name| &executors[name]);
    assert_eq!(seen, [1, 1, 1, 1, 1], "{executors}");
    let metrics = server.get("/metrics").await.text().await.unwrap();
    for line in [
        "stoa_admission_slots 1",
        "stoa_admission_running_queries 1",
        "stoa_admission_waiting_queries 1",
        "stoa_admission_waiting_limit_queries 1",
        "stoa_admission_refused_queries_total 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }

    let listed = server.get_json("/v1/queries").await;
    let running = listed["running"].as_array().unwrap();
    let state = |state: &str| running.iter().find(|query| query["state"] == state).unwrap();
    for query in [state("queued"), state("running")] {
        let path = format!("/v1/queries/{}", query["id"]);
        assert_eq!(server.request(Method::DELETE, &path).send().await.unwrap().status(), 204);
    }
    for answer in [first.await.unwrap(), second.await.unwrap()] {
        assert_eq!(answer.status(), 499);
    }
    until("nobody computes", || server.engine.admission_status().running == 0).await;
}
