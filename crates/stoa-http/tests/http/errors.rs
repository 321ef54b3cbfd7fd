//! What goes wrong, and how a client sees it.

use reqwest::Method;
use serde_json::{Value, json};
use stoa_http::HttpOptions;

use crate::support::Server;

async fn check(server: &Server, sql: &str, status: u16, code: &str) -> Value {
    let response = server.post("/v1/sql", sql).await;
    let found = response.status().as_u16();
    let document: Value = response.json().await.unwrap();
    assert_eq!((found, document["error"]["code"].as_str()), (status, Some(code)), "{document}");
    document["error"].clone()
}

#[tokio::test]
async fn errors_have_code_status_and_place() {
    let server = Server::start().await;
    let error = check(&server, "SELECT 1;\nSELEC 2", 400, "42601").await;
    assert_eq!(error["position"], 11, "counted in the whole text: {error}");
    check(&server, "SELECT * FROM missing", 404, "42P01").await;
    check(&server, "SELECT nothing", 404, "42703").await;
    check(&server, "SELECT 1 / 0", 400, "22012").await;
    check(&server, "  -- nothing", 400, "42601").await;
    check(&server, "COPY t FROM STDIN", 404, "42P01").await;
}

#[tokio::test]
async fn the_description_is_that_of_the_documents() {
    let server = Server::start().await;
    let served = server.get("/openapi.yaml").await;
    assert_eq!(served.status(), 200);
    assert_eq!(served.headers()["content-type"], "application/yaml");
    assert_eq!(served.text().await.unwrap(), include_str!("../../../../docs/openapi.yaml"));
}

#[tokio::test]
async fn what_follows_a_failed_statement_does_not_run() {
    let server = Server::start().await;
    let text = "CREATE TABLE t (a bigint); SELECT 1 / 0; INSERT INTO t VALUES (1)";
    check(&server, text, 400, "22012").await;
    assert_eq!(server.sql("SELECT count(*) FROM t").await["rows"], json!([[0]]));
    let text = "INSERT INTO t VALUES (1); SELEC 1";
    check(&server, text, 400, "42601").await;
    let rows = &server.sql("SELECT count(*) FROM t").await["rows"];
    assert_eq!(rows, &json!([[0]]), "a syntax error is seen before anything runs");
}

#[tokio::test]
async fn requests_that_cannot_be_read_are_refused() {
    let server = Server::start().await;
    let post = |path: &str, content_type: &'static str, body: &'static str| {
        let request = server.request(Method::POST, path).header("content-type", content_type);
        request.body(body).send()
    };
    let status = |response: Result<reqwest::Response, _>| response.unwrap().status().as_u16();
    assert_eq!(status(post("/v1/sql?format=xml", "text/plain", "SELECT 1").await), 400);
    assert_eq!(status(post("/v1/sql?formt=csv", "text/plain", "SELECT 1").await), 400);
    assert_eq!(status(post("/v1/sql", "application/json", "SELECT 1").await), 400);
    assert_eq!(status(post("/v1/sql", "application/xml", "SELECT 1").await), 415);
    assert_eq!(server.get("/v1/sql").await.status(), 405);
    let nothing = server.get("/v2/nothing").await;
    assert_eq!(nothing.status(), 404);
    assert!(nothing.json::<Value>().await.unwrap()["error"]["hint"].is_string());
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let options = HttpOptions { body_bytes_max: 1000, ..HttpOptions::default() };
    let server = Server::start_with(options).await;
    let long = format!("SELECT '{}'", "x".repeat(1000));
    let response = server.post("/v1/sql", &long).await;
    assert_eq!(response.status(), 413);
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["error"]["code"], "54000");
}

/// Fails after 100,000 rows were computed, far beyond the first chunk.
const FAILS_LATE: &str =
    "SELECT 1 / (100000 - value) AS v FROM generate_series(1, 200000) AS s(value)";

#[tokio::test]
async fn a_late_error_is_the_last_member_of_json() {
    let server = Server::start().await;
    let response = server.post("/v1/sql", FAILS_LATE).await;
    assert_eq!(response.status(), 200);
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["error"]["code"], "22012", "{}", document["error"]);
    assert!(document.get("row_count").is_none());
    assert!(!document["rows"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_late_error_breaks_off_the_other_formats() {
    let server = Server::start().await;
    for format in ["csv", "arrow", "ndjson"] {
        let response = server.post(&format!("/v1/sql?format={format}"), FAILS_LATE).await;
        assert_eq!(response.status(), 200);
        assert!(response.bytes().await.is_err(), "{format} must not look complete");
    }
}

#[tokio::test]
async fn the_last_line_of_broken_ndjson_is_the_error() {
    let server = Server::start().await;
    let mut response = server.post("/v1/sql?format=ndjson", FAILS_LATE).await;
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        text.extend_from_slice(&chunk);
    }
    let last = text.split(|byte| *byte == b'\n').rev().find(|line| !line.is_empty()).unwrap();
    let line: Value = serde_json::from_slice(last).unwrap();
    assert_eq!(line["error"]["code"], "22012", "{line}");
}

#[tokio::test]
async fn no_statement_writes_or_reads_a_file() {
    let server = Server::start().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.csv");
    server.sql("CREATE TABLE t (a bigint)").await;
    let copy =
        format!("EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{}' STORED AS CSV", file.display());
    check(&server, &copy, 501, "0A000").await;
    assert!(!file.exists());
    std::fs::write(&file, "a\n1\n").unwrap();
    check(&server, &format!("COPY t FROM '{}'", file.display()), 403, "42501").await;
    let path = format!("/v1/tables/public/t/rows?max_errors=1&reject_file={}", file.display());
    let request = server.request(Method::POST, &path).header("content-type", "text/csv");
    let response = request.body("a\nx\n").send().await.unwrap();
    assert_eq!(response.status().as_u16(), 501);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\n1\n");
    assert_eq!(server.sql("SELECT count(*) FROM t").await["rows"], json!([[0]]));
}
