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
    assert_eq!(table["snapshots_total"], table["snapshots"].as_array().unwrap().len());
    assert!(table["location"].as_str().unwrap().starts_with("file://"));
}

#[tokio::test]
async fn files_are_listed_with_bounds_and_how_well_they_are_sorted() {
    let server = Server::start().await;
    server
        .sql(
            "CREATE TABLE report (day date, account bigint, cost decimal(18, 4)) \
             PARTITIONED BY (month(day)) ORDER BY (account, day)",
        )
        .await;
    for [(a, b), (c, d)] in [[(1, 2), (4, 3)], [(4, 2), (7, 4)], [(5, 2), (9, 5)]] {
        let insert = format!(
            "INSERT INTO report VALUES (DATE '2026-01-0{b}', {a}, 1.5), (DATE '2026-01-0{d}', {c}, 2)"
        );
        server.sql(&format!("{insert}; FLUSH TABLE report")).await;
    }
    server.sql("INSERT INTO report VALUES (DATE '2026-02-01', 5, 0); FLUSH TABLE report").await;

    let listed = server.get_json("/v1/tables/public/report/files").await;
    assert_eq!(listed["files_total"], 4);
    assert_eq!(listed["rows"], 7);
    assert_eq!(listed["columns"], json!(["account", "day"]));
    let expected = json!({
        "columns": ["account", "day"], "compared": 4, "overlapping": 2, "depth_max": 2, "depth_mean": 1.5,
    });
    assert_eq!(listed["sort"], expected);
    assert_eq!(listed["partitions_total"], 2);
    let first = &listed["partitions"][0];
    assert_eq!((&first["partition"], &first["files"]), (&json!("day_month=2026-01"), &json!(3)));
    assert_eq!((&first["overlapping"], &first["depth_max"]), (&json!(2), &json!(2)));
    let files = listed["files"].as_array().unwrap();
    let depths: Vec<_> = files.iter().map(|file| file["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [1, 2, 2, 1]);
    assert_eq!(
        files[0]["bounds"],
        json!({"account": ["1", "4"], "day": ["2026-01-02", "2026-01-03"]})
    );
    assert_eq!(files[0]["rows"], 2);
    assert_eq!(files[0]["sorted"], true);
    assert!(files[0]["path"].as_str().unwrap().ends_with(".orc"));
    let sum = files.iter().map(|file| file["bytes"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(listed["bytes"], sum);

    let few = server.get_json("/v1/tables/public/report/files?most=1").await;
    assert_eq!(few["files"].as_array().unwrap().len(), 1);
    assert_eq!((&few["files_total"], &few["sort"]), (&json!(4), &expected));
    server.sql("COMPACT TABLE report FULL").await;
    let compacted = server.get_json("/v1/tables/public/report/files").await;
    assert_eq!(
        (&compacted["files_total"], &compacted["sort"]["overlapping"]),
        (&json!(2), &json!(0))
    );
}

#[tokio::test]
async fn a_table_without_order_or_rows_has_no_sort_quality() {
    let server = Server::start().await;
    server.sql("CREATE TABLE empty (n bigint); CREATE TABLE heap (n bigint)").await;
    server.sql("INSERT INTO heap VALUES (1), (2); FLUSH TABLE heap").await;
    let empty = server.get_json("/v1/tables/public/empty/files").await;
    assert_eq!((&empty["files_total"], &empty["sort"]), (&json!(0), &json!(null)));
    let heap = server.get_json("/v1/tables/public/heap/files").await;
    assert_eq!(heap["sort"], json!(null));
    assert_eq!(heap["files"][0]["bounds"], json!({"n": ["1", "2"]}));
    assert_eq!(server.get("/v1/tables/public/nothing/files").await.status(), 404);
    assert_eq!(server.get("/v1/tables/public/heap/files?mots=1").await.status(), 400);
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

/// Posts rows for the table `t`.
async fn add_rows(
    server: &Server,
    content_type: &'static str,
    body: &'static str,
) -> reqwest::Result<reqwest::Response> {
    server
        .request(Method::POST, "/v1/tables/public/t/rows")
        .header("content-type", content_type)
        .body(body)
        .send()
        .await
}

#[tokio::test]
async fn rows_are_added_in_many_formats() {
    let server = Server::start().await;
    server.sql("CREATE TABLE t (id bigint NOT NULL, name varchar)").await;
    let add = |content_type, body| add_rows(&server, content_type, body);
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

/// Written by pyarrow; its `make.py` says what is in it.
const TRIPS: &[u8] = include_bytes!("../../../../clients/console/fixtures/trips.parquet");

#[tokio::test]
async fn a_parquet_file_becomes_a_table() {
    let server = Server::start().await;
    let footer = TRIPS.len()
        - 8
        - u32::from_le_bytes(TRIPS[TRIPS.len() - 8..][..4].try_into().unwrap()) as usize;
    let infer = server.request(Method::POST, "/v1/file-columns?name=trips.parquet&cut=true");
    let found: Value = infer.body(&TRIPS[footer..]).send().await.unwrap().json().await.unwrap();
    assert_eq!((&found["format"], &found["compression"]), (&json!("parquet"), &json!("none")));
    let columns: Vec<(&str, &str)> = found["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap(), column["type"].as_str().unwrap()))
        .collect();
    assert_eq!(columns[0], ("id", "bigint"));
    assert_eq!(columns[4], ("fare", "decimal(10, 2)"));
    let defined: Vec<String> =
        columns.iter().map(|(name, of)| format!("\"{name}\" {of}")).collect();
    server.sql(&format!("CREATE TABLE t ({})", defined.join(", "))).await;
    let add = |body: &'static [u8]| {
        let request = server.request(Method::POST, "/v1/tables/public/t/rows");
        request.header("content-type", "application/vnd.apache.parquet").body(body).send()
    };
    let added: Value = add(TRIPS).await.unwrap().json().await.unwrap();
    assert_eq!(added["rows"], 1000);
    let sums = "SELECT count(*), sum(id)::bigint, count(\"Base name\"), sum(fare)::text, min(day)::text, count(DISTINCT at) FROM t";
    // As pyarrow adds them up.
    assert_eq!(
        server.sql(sums).await["rows"],
        json!([[1000, 499500, 900, "124875.00", "2026-01-01", 1000]])
    );
    let refused = add(&TRIPS[..TRIPS.len() - 100]).await.unwrap();
    assert_eq!(refused.status(), 400);
    let refused: Value = refused.json().await.unwrap();
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("stdin is not a readable Parquet file"),
        "{refused}"
    );
    assert_eq!(server.sql("SELECT count(*) FROM t").await["rows"], json!([[1000]]));
}

#[tokio::test]
async fn columns_of_a_file_are_told_from_its_beginning() {
    let server = Server::start().await;
    let infer = async |query: &str, body: &'static str| -> Value {
        let request = server.request(Method::POST, &format!("/v1/file-columns?{query}"));
        request.body(body).send().await.unwrap().json().await.unwrap()
    };
    let found = infer("name=a.csv&cut=true&delimiter=;", "day;cost\n2026-01-01;1,5\n2026-0").await;
    assert_eq!(
        found["columns"],
        json!([{ "name": "day", "type": "date" }, { "name": "cost", "type": "text" }]),
        "{found}"
    );
    let found = infer("name=a.csv&delimiter=;&decimal_point=,", "day;cost\n2026-01-01;1,5\n").await;
    assert_eq!(found["columns"][1]["type"], "double precision", "{found}");
    let bad = infer("name=a.csv", "a,b\n1,2\n3\n").await;
    assert!(bad["error"]["message"].as_str().unwrap().contains("a.csv line 3"), "{bad}");
    assert_eq!(infer("name=a.xls", "x").await["error"]["kind"], "invalid");
    assert_eq!(infer("name=a.csv&no_such=1", "x").await["error"]["kind"], "invalid");
}

#[tokio::test]
async fn rows_beyond_the_declared_types_are_refused() {
    let server = Server::start().await;
    server.sql("CREATE TABLE t (v varchar(3), s smallint)").await;
    let add = |content_type, body| add_rows(&server, content_type, body);
    for (content_type, body, code) in [
        ("application/x-ndjson", "{\"v\": \"abc\"}\n{\"v\": \"abcd\"}\n", "22001"),
        ("application/x-ndjson", "{\"s\": 40000}\n", "22003"),
        ("text/csv", "v,s\nabcd,1\n", "22001"),
        ("text/csv", "v,s\nabc,-40000\n", "22003"),
    ] {
        let refused = add(content_type, body).await.unwrap();
        assert_eq!(refused.status(), 400);
        let document: Value = refused.json().await.unwrap();
        assert_eq!(document["error"]["code"], code, "{document}");
    }
    assert_eq!(add("text/csv", "v,s\nabc,1\n").await.unwrap().status(), 200);
    assert_eq!(server.sql("SELECT v, s FROM t").await["rows"], json!([["abc", 1]]));
}
