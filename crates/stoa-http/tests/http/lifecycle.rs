//! Becoming ready, and ending in order.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use stoa_http::{HttpOptions, Readiness};
use stoa_testkit::{ENDLESS, until};

use crate::support::Server;

#[tokio::test]
async fn ready_follows_the_switch() {
    let readiness = Readiness::not_yet();
    let options = HttpOptions { readiness: readiness.clone(), ..HttpOptions::default() };
    let server = Server::start_with(options).await;
    assert_eq!(server.get("/ready").await.status(), 503);
    assert_eq!(server.get("/health").await.status(), 200);
    readiness.set(true);
    assert_eq!(server.get("/ready").await.status(), 200);
}

#[tokio::test]
async fn an_idle_server_ends_at_once() {
    let mut server = Server::start().await;
    assert_eq!(server.get("/ready").await.status(), 200);
    server.stop();
    server.ended().await;
}

#[tokio::test]
async fn at_shutdown_a_running_query_ends_and_new_ones_are_refused() {
    let mut server = Server::start().await;
    let running = server.request(Method::POST, "/v1/sql").body(ENDLESS).send();
    let running = stoa_env::task::spawn(running);
    until("the query runs", || server.engine.queries().running_count() == 1).await;
    server.stop();
    let ready = loop {
        let status = server.get("/ready").await.status();
        if status != 200 {
            break status;
        }
    };
    assert_eq!(ready, 503);
    assert_eq!(server.get("/health").await.status(), 200);
    let refused = server.post("/v1/sql", "SELECT 1").await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "57P01");

    assert_eq!(server.engine.shutdown(Duration::from_millis(50)).await, 1);
    let answer = running.await.unwrap().unwrap();
    assert_eq!(answer.status(), 499);
    server.ended().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_hold_up_the_end() {
    let options = HttpOptions { drain_ms_max: 100, ..HttpOptions::default() };
    let mut server = Server::start_with(options).await;
    let sql = "SELECT value FROM generate_series(1, 1000000000000) AS s(value)";
    let stalled = server.post("/v1/sql?format=csv", sql).await;
    server.stop();
    server.engine.shutdown(Duration::from_millis(50)).await;
    server.ended().await;
    drop(stalled);
}
