//! Listing and describing tables.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn tables_are_listed_and_described() {
    let server = Server::start().await;
    server
        .sql(
            "CREATE TABLE report (day date NOT NULL, account bigint, cost decimal(18, 4)) \
             PARTITIONED BY (month(day)) ORDER BY (account); \
             INSERT INTO report VALUES (DATE '2026-01-01', 1, 1.5), (DATE '2026-02-01', 2, 2.5); \
             CREATE SCHEMA other",
        )
        .await;
    let listed = server.get_json("/v1/tables").await;
    let namespaces = listed["namespaces"].as_array().unwrap();
    let names: Vec<_> = namespaces.iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["other", "public"]);
    let summary = &namespaces[1]["tables"][0];
    assert_eq!(summary["name"], "report");
    assert_eq!(summary["rows"], 2);
    assert_eq!(summary["files"], 2);
    assert!(summary["bytes"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(summary["partitioned_by"], json!(["month(day)"]));
    assert!(summary["sorted_by"][0].as_str().unwrap().starts_with("account"));

    let table = server.get_json("/v1/tables/public/report").await;
    assert_eq!(table["namespace"], "public");
    assert_eq!(table["columns"][0]["name"], "day");
    assert_eq!(table["columns"][0]["type"], "date");
    assert_eq!(table["columns"][0]["nullable"], false);
    assert_eq!(table["columns"][2]["type"], "decimal(18, 4)");
    assert_eq!(table["snapshots"][0]["current"], true);
    assert_eq!(table["snapshots"][0]["summary"]["added-records"], "2");
    assert!(table["location"].as_str().unwrap().starts_with("file://"));
}

#[tokio::test]
async fn a_table_that_is_not_there_is_404() {
    let server = Server::start().await;
    let response = server.get("/v1/tables/public/nothing").await;
    assert_eq!(response.status(), 404);
    let document: serde_json::Value = response.json().await.unwrap();
    assert_eq!(document["error"]["code"], "42P01");
    assert_eq!(server.get("/v1/tables/no%20where/nothing").await.status(), 404);
}

#[tokio::test]
async fn rows_are_added_in_many_formats() {
    let server = Server::start().await;
    server.sql("CREATE TABLE t (id bigint NOT NULL, name varchar)").await;
    let add = |content_type: &'static str, body: &'static str| {
        server
            .request(Method::POST, "/v1/tables/public/t/rows")
            .header("content-type", content_type)
            .body(body)
            .send()
    };
    let added: Value = add("application/x-ndjson", "{\"id\": 1, \"name\": \"a\"}\n{\"id\": 2}\n")
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(added["rows"], 2);
    assert_eq!(added["table"], "public.t");
    assert_eq!(add("text/csv; charset=utf-8", "name,id\nc,3\n").await.unwrap().status(), 200);
    let rows = server.sql("SELECT id, name FROM t ORDER BY id").await["rows"].clone();
    assert_eq!(rows, json!([[1, "a"], [2, null], [3, "c"]]));

    let refused = add("application/x-ndjson", "{\"id\": 4}\n{\"id\": \"five\"}\n").await.unwrap();
    assert_eq!(refused.status(), 400);
    let document: Value = refused.json().await.unwrap();
    assert_eq!(document["error"]["code"], "22P02");
    assert!(document["error"]["message"].as_str().unwrap().contains("line 2"), "{document}");
    let refused = add("application/x-ndjson", "{\"name\": \"no id\"}\n").await.unwrap();
    let document: Value = refused.json().await.unwrap();
    assert_eq!(document["error"]["code"], "23502", "{document}");
    assert_eq!(add("image/png", "x").await.unwrap().status(), 400);
    assert_eq!(server.sql("SELECT count(*) FROM t").await["rows"], json!([[3]]));
}
