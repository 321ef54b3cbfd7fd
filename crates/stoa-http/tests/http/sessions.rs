//! Sessions that last from request to request.

use reqwest::{Method, StatusCode};
use serde_json::Value;
use stoa_http::{HttpOptions, KeptOptions};

use crate::support::Server;

async fn open(server: &Server) -> String {
    let response = server.request(Method::POST, "/v1/sessions").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    let opened: Value = response.json().await.unwrap();
    opened["session"].as_str().unwrap().to_owned()
}

async fn run(server: &Server, session: &str, sql: &str) -> (u16, Value) {
    let response = server.post(&format!("/v1/sql?session={session}"), sql).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn settings_temporary_tables_and_transactions_last() {
    let server = Server::start().await;
    server.sql("CREATE TABLE t (n bigint)").await;
    let (one, other) = (open(&server).await, open(&server).await);
    for sql in [
        "SET timezone = 'Asia/Tokyo'",
        "CREATE TEMP TABLE mine (n int)",
        "INSERT INTO mine VALUES (7)",
    ] {
        assert_eq!(run(&server, &one, sql).await.0, 200, "{sql}");
    }
    assert_eq!(run(&server, &one, "SHOW timezone").await.1["rows"][0][0], "Asia/Tokyo");
    assert_eq!(run(&server, &one, "SELECT n FROM mine").await.1["rows"][0][0], 7);
    assert_ne!(run(&server, &other, "SHOW timezone").await.1["rows"][0][0], "Asia/Tokyo");
    assert_eq!(run(&server, &other, "SELECT n FROM mine").await.1["error"]["code"], "42P01");
    for sql in [
        "BEGIN",
        "INSERT INTO t VALUES (1)",
        "ROLLBACK",
        "BEGIN",
        "INSERT INTO t VALUES (2)",
        "COMMIT",
    ] {
        assert_eq!(run(&server, &one, sql).await.0, 200, "{sql}");
    }
    assert_eq!(server.sql("SELECT n FROM t").await["rows"], serde_json::json!([[2]]));
}

#[tokio::test]
async fn sessions_end_when_they_are_told_or_left_alone() {
    let kept = KeptOptions { sessions_per_role_max: 2, ..KeptOptions::default() };
    let server = Server::start_with(HttpOptions { kept, ..HttpOptions::default() }).await;
    let (one, two) = (open(&server).await, open(&server).await);
    let end = async |session: &str, grace: &str| {
        let path = format!("/v1/sessions/{session}{grace}");
        server.request(Method::DELETE, &path).send().await.unwrap().status()
    };
    assert_eq!(end(&one, "").await, StatusCode::NO_CONTENT);
    let (status, error) = run(&server, &one, "SELECT 1").await;
    assert_eq!((status, &error["error"]["code"]), (404, &"08003".into()));
    assert_eq!(end(&one, "").await, StatusCode::NOT_FOUND);
    // Whoever comes back in time still has it.
    assert_eq!(end(&two, "?grace_s=60").await, StatusCode::NO_CONTENT);
    assert_eq!(run(&server, &two, "SELECT 1").await.0, 200);
    // The one that was not used for longest makes room.
    let three = open(&server).await;
    assert_eq!(run(&server, &two, "SELECT 1").await.0, 200);
    open(&server).await;
    assert_eq!(run(&server, &three, "SELECT 1").await.0, 404);
    let kept = KeptOptions { session_idle_ms_max: 1, ..KeptOptions::default() };
    let server = Server::start_with(HttpOptions { kept, ..HttpOptions::default() }).await;
    let short = open(&server).await;
    while run(&server, &short, "SELECT 1").await.0 != 404 {
        stoa_env::timer::sleep(std::time::Duration::from_millis(1100)).await;
    }
}

#[tokio::test]
async fn a_session_is_for_the_role_that_opened_it() {
    let server = Server::guarded().await;
    let ask = async |role: &str, method: Method, path: &str| {
        let request = server.request(method, path).basic_auth(role, Some("pencil"));
        request.body("SELECT current_user").send().await.unwrap()
    };
    let opened: Value = ask("ann", Method::POST, "/v1/sessions").await.json().await.unwrap();
    let id = opened["session"].as_str().unwrap();
    let path = format!("/v1/sql?session={id}");
    assert_eq!(ask("bob", Method::POST, &path).await.status(), 404);
    assert_eq!(ask("bob", Method::DELETE, &format!("/v1/sessions/{id}")).await.status(), 404);
    let answer: Value = ask("ann", Method::POST, &path).await.json().await.unwrap();
    assert_eq!(answer["rows"][0][0], "ann");
}
