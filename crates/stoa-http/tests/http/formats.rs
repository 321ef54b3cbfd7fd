//! What results look like.

use arrow_ipc::reader::StreamReader;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn json_holds_columns_rows_and_a_summary() {
    let server = Server::start().await;
    let response = server.post("/v1/sql", "SELECT 1 AS one, 'a' AS name, NULL AS nothing").await;
    assert_eq!(response.headers()["content-type"], "application/json");
    assert!(response.headers().contains_key("content-length"), "a small result is sent whole");
    let id = response.headers()["stoa-query-id"].to_str().unwrap().to_owned();
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["rows"], json!([[1, "a", null]]));
    assert_eq!(document["columns"][0]["name"], "one");
    assert_eq!(document["columns"][0]["type"], "integer");
    assert_eq!(document["row_count"], 1);
    assert_eq!(document["truncated"], false);
    assert_eq!(document["query_id"].to_string(), id);
    assert!(document["elapsed_ms"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn numbers_keep_all_their_digits() {
    let server = Server::start().await;
    let document = server
        .sql(
            "SELECT 9007199254740993, 9007199254740991, CAST('1.10' AS decimal(20, 2)), \
             CAST('NaN' AS double precision), DATE '2026-02-03'",
        )
        .await;
    let expected =
        json!([["9007199254740993", 9_007_199_254_740_991_i64, "1.10", "NaN", "2026-02-03"]]);
    assert_eq!(document["rows"], expected);
    let sql = "SELECT 1.0 / 3 AS third, 1.0 / 4 AS quarter, 20.0 / 2 AS ten";
    let document = server.sql(sql).await;
    assert_eq!(document["rows"], json!([["0.33333333333333333333", "0.25", "10"]]));
    assert_eq!(document["columns"][0]["type"], "numeric");
    let csv = server.post("/v1/sql?format=csv", sql).await.text().await.unwrap();
    assert_eq!(csv, "third,quarter,ten\n0.33333333333333333333,0.25,10\n");
}

#[tokio::test]
async fn the_format_follows_the_accept_header_and_the_parameter() {
    let server = Server::start().await;
    let sql = "SELECT * FROM (VALUES (1, 'x'), (2, NULL)) AS t(id, name) ORDER BY id";
    let accepting = |accept: &'static str| {
        server.request(Method::POST, "/v1/sql").header("accept", accept).body(sql).send()
    };
    let csv = accepting("text/csv").await.unwrap();
    assert_eq!(csv.headers()["content-type"], "text/csv; charset=utf-8; header=present");
    assert_eq!(csv.text().await.unwrap(), "id,name\n1,x\n2,\n");
    let ndjson = accepting("application/x-ndjson").await.unwrap().text().await.unwrap();
    assert_eq!(ndjson, "{\"id\":1,\"name\":\"x\"}\n{\"id\":2,\"name\":null}\n");
    let arrow = accepting("application/vnd.apache.arrow.stream").await.unwrap();
    let bytes = arrow.bytes().await.unwrap();
    let rows: usize =
        StreamReader::try_new(&bytes[..], None).unwrap().map(|b| b.unwrap().num_rows()).sum();
    assert_eq!(rows, 2);
    let by_parameter = server.post("/v1/sql?format=csv", sql).await.text().await.unwrap();
    assert_eq!(by_parameter, "id,name\n1,x\n2,\n");
}

#[tokio::test]
async fn a_long_result_is_streamed_whole() {
    let server = Server::start().await;
    let sql = "SELECT value, 'some text to make it long' AS t FROM generate_series(1, 300000) AS s(value)";
    let response = server.post("/v1/sql", sql).await;
    assert!(!response.headers().contains_key("content-length"), "it goes out in chunks");
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["row_count"], 300_000);
    assert_eq!(document["rows"].as_array().unwrap().len(), 300_000);
    let csv = server.post("/v1/sql?format=csv", sql).await.text().await.unwrap();
    assert_eq!(csv.lines().count(), 300_001);
    let arrow = server.post("/v1/sql?format=arrow", sql).await.bytes().await.unwrap();
    let reader = StreamReader::try_new(&arrow[..], None).unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 300_000);
}

#[tokio::test]
async fn max_rows_cuts_and_says_so() {
    let server = Server::start().await;
    let ask = async |max: usize| -> Value {
        let path = format!("/v1/sql?max_rows={max}");
        server
            .post(&path, "SELECT value FROM generate_series(1, 20000) AS s(value)")
            .await
            .json()
            .await
            .unwrap()
    };
    let cut = ask(10_000).await;
    assert_eq!((&cut["row_count"], &cut["truncated"]), (&json!(10_000), &json!(true)));
    let whole = ask(20_000).await;
    assert_eq!((&whole["row_count"], &whole["truncated"]), (&json!(20_000), &json!(false)));
    let none = ask(0).await;
    assert_eq!((&none["rows"], &none["truncated"]), (&json!([]), &json!(true)));
}

#[tokio::test]
async fn parameters_are_bound() {
    let server = Server::start().await;
    let body = json!({
        "sql": "SELECT $1 + 1 AS n, upper($2) AS t, $3 IS NULL AS missing",
        "parameters": [41, "stoa", null],
    });
    let response = server.request(Method::POST, "/v1/sql").json(&body).send().await.unwrap();
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["rows"], json!([[42, "STOA", true]]), "{document}");
}

#[tokio::test]
async fn of_several_statements_the_last_one_answers() {
    let server = Server::start().await;
    let document = server
        .sql("CREATE TABLE t (a bigint); INSERT INTO t VALUES (1), (2); SELECT sum(a) FROM t;")
        .await;
    assert_eq!(document["rows"], json!([[3]]));
    let done = server.sql("INSERT INTO t VALUES (3)").await;
    assert_eq!(done["command"], "INSERT 0 1");
    assert_eq!(done["rows_affected"], 1);
    assert_eq!(done["columns"], json!([]));
    let response = server.post("/v1/sql?format=csv", "INSERT INTO t VALUES (4)").await;
    assert_eq!(response.headers()["stoa-command"], "INSERT 0 1");
    assert_eq!(response.text().await.unwrap(), "");
}
