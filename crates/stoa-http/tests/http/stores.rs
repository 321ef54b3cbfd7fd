//! What statements ask of an object store, and what that costs; tables and stores as tables.

use serde_json::{Value, json};
use stoa_http::HttpOptions;

use crate::bucket::Bucket;
use crate::support::Server;

const GET_USD: f64 = 0.40e-6;
const PUT_USD: f64 = 5.00e-6;

/// A server on a bucket, with 1000 rows of ten keys in one file.
async fn server_on(bucket: &Bucket, directory: &tempfile::TempDir) -> Server {
    let server = Server::start_engine(HttpOptions::default(), |options| {
        bucket.warehouse(directory, options)
    });
    let server = server.await;
    server.sql("CREATE TABLE r (k bigint, n bigint) ORDER BY (k)").await;
    server
        .sql("INSERT INTO r SELECT value % 10, value FROM generate_series(1, 1000) AS s(value)")
        .await;
    server
}

/// The query that ended last before the one that looks.
async fn last(server: &Server) -> Value {
    server.get_json("/v1/queries?recent=1").await["recent"][0].clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn assert_costs(query: &Value, gets: u64, puts: u64) {
    let wanted = gets as f64 * GET_USD + puts as f64 * PUT_USD;
    let cost = query["cost_usd"].as_f64().unwrap();
    assert!((cost - wanted).abs() < 1e-12, "{cost} is not {wanted}: {query}");
}

#[tokio::test]
async fn statements_know_their_requests_and_what_they_cost() {
    let (bucket, directory) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let server = server_on(&bucket, &directory).await;
    let insert = last(&server).await;
    let asked = bucket.take_asked();
    let puts = asked.iter().filter(|asked| asked.starts_with("PUT")).count() as u64;
    assert!(number(&insert["store_puts"]) >= 3, "data file, manifest, list, metadata: {insert}");
    assert!(number(&insert["store_puts"]) < puts, "CREATE TABLE wrote, too: {insert}");
    assert!(number(&insert["store_bytes_written"]) > 1000, "{insert}");

    // Cold, with a read that is refused once; then warm.
    bucket.refuse(1);
    server.sql("SELECT sum(n) FROM r WHERE k = 3").await;
    let cold = last(&server).await;
    let gets = bucket.take_asked();
    assert!(gets.iter().all(|asked| asked.starts_with("GET")), "{gets:?}");
    assert_eq!(number(&cold["store_gets"]), gets.len() as u64, "{gets:?}: {cold}");
    assert_eq!((&cold["store_retries"], &cold["store_puts"]), (&json!(1), &json!(0)));
    assert!(number(&cold["chunk_misses"]) > 0, "{cold}");
    assert_costs(&cold, gets.len() as u64, 0);
    server.sql("SELECT sum(n) FROM r WHERE k = 3 + 0").await;
    server.sql("SELECT sum(n) FROM r WHERE k = 3").await;
    let warm = last(&server).await;
    assert_eq!(bucket.take_asked(), [""; 0]);
    assert_costs(&warm, 0, 0);

    let sql = "SELECT requests, store_gets, store_retries, cost_usd, chunk_hits, chunk_misses, hit_ratio \
               FROM system.query_shapes WHERE sql = 'SELECT sum(n) FROM r WHERE k = $L0i'";
    let row = server.sql(sql).await["rows"][0].clone();
    let shape = server.get_json("/v1/shapes").await["shapes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|shape| shape["sql"] == "SELECT sum(n) FROM r WHERE k = $L0i")
        .unwrap()
        .clone();
    let same = [
        &shape["requests"],
        &shape["store_gets"],
        &shape["store_retries"],
        &shape["cost_usd"],
        &shape["chunk_hits"],
        &shape["chunk_misses"],
        &shape["hit_ratio"],
    ];
    for (of_table, of_http) in row.as_array().unwrap().iter().zip(same) {
        assert_eq!(of_table, of_http, "{row}: {shape}");
    }
    assert_eq!(number(&shape["store_gets"]), gets.len() as u64, "the warm one adds nothing");
    assert!(shape["hit_ratio"].as_f64().unwrap() > 0.0, "{shape}");
}

#[tokio::test]
async fn scans_of_many_partitions_are_charged_to_their_query() {
    let (bucket, directory) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let server = server_on(&bucket, &directory).await;
    server.sql("CREATE TABLE s (k bigint)").await;
    server.sql("INSERT INTO s SELECT value FROM generate_series(1, 5) AS s(value)").await;
    bucket.take_asked();
    let sql = "SELECT r.k, count(*) FROM r JOIN s ON r.k = s.k GROUP BY r.k ORDER BY 1";
    assert_eq!(server.sql(sql).await["row_count"], 5);
    let gets = bucket.take_asked().len() as u64;
    let query = last(&server).await;
    assert!(gets >= 2, "two files");
    assert_eq!(number(&query["store_gets"]), gets, "{query}");
    assert_costs(&query, gets, 0);
}

#[tokio::test]
async fn explain_analyze_says_what_it_costs() {
    let (bucket, directory) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let server = server_on(&bucket, &directory).await;
    let explain = async |sql: &str| {
        let document = server.sql(&format!("EXPLAIN ANALYZE {sql}")).await;
        let rows = document["rows"].as_array().unwrap().iter();
        rows.map(|row| row[0].as_str().unwrap()).collect::<Vec<_>>().join("\n")
    };
    let metric = |plan: &str, name: &str| -> u64 {
        let (_, rest) = plan.split_once(&format!("{name}=")).unwrap();
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let scan = explain("SELECT sum(n + k) FROM r WHERE n % 7 = 1").await;
    let requests = metric(&scan, "store_requests");
    assert!(scan.contains("OrcScanExec") && requests > 0, "{scan}");
    server.sql("PURGE CACHE").await;
    server.sql("SELECT sum(n) FROM r WHERE k = 3").await;
    server.sql("PURGE CACHE").await;
    let report = explain("SELECT sum(n) FROM r WHERE k = 4").await;
    assert!(report.contains("ReportExec"), "{report}");
    let requests = metric(&report, "store_requests");
    assert!(requests > 0, "{report}");
    assert_eq!(metric(&report, "cost_nanodollars"), 400 * requests, "{report}");
}

#[tokio::test]
async fn stores_are_a_table() {
    let (bucket, directory) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let server = server_on(&bucket, &directory).await;
    server.sql("SELECT sum(n) FROM r WHERE k = 3").await;
    let asked = bucket.take_asked();
    let of = |method: &str| asked.iter().filter(|asked| asked.starts_with(method)).count();
    let lists = asked.iter().filter(|asked| asked.contains("list-type")).count();
    let sql = "SELECT store, gets, heads, puts, lists, deletes, retries, hedges, errors, cost_usd \
               FROM system.stores WHERE store = 's3://bucket'";
    let row = server.sql(sql).await["rows"][0].clone();
    let (gets, puts) = (of("GET") - lists, of("PUT"));
    let counted = json!(["s3://bucket", gets, of("HEAD"), puts, lists, 0, 0, 0, 0]);
    assert_eq!(row.as_array().unwrap()[..9], counted.as_array().unwrap()[..]);
    let wanted = (gets + of("HEAD")) as f64 * GET_USD + (puts + lists) as f64 * PUT_USD;
    assert!((row[9].as_f64().unwrap() - wanted).abs() < 1e-12, "{row}");
    let metrics = server.get("/metrics").await.text().await.unwrap();
    for line in [
        format!("stoa_store_requests_total{{store=\"s3://bucket\",kind=\"get\"}} {gets}"),
        "stoa_store_hedges_total{store=\"s3://bucket\"} 0".to_owned(),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn local_files_cost_nothing() {
    let server = Server::start().await;
    server.sql("CREATE TABLE r (k bigint, n bigint) ORDER BY (k)").await;
    server
        .sql("INSERT INTO r SELECT value % 10, value FROM generate_series(1, 1000) AS s(value)")
        .await;
    server.sql("SELECT sum(n) FROM r WHERE k = 3").await;
    let query = last(&server).await;
    assert!(number(&query["requests"]) > 0, "{query}");
    assert_costs(&query, 0, 0);
    assert_eq!(number(&query["store_gets"]), 0);
    let row = &server.sql("SELECT store, cost_usd, gets > 0 FROM system.stores").await["rows"][0];
    assert_eq!(row, &json!(["file://", 0.0, true]));
}

#[tokio::test]
async fn tables_are_a_table() {
    let logs = tempfile::tempdir().unwrap();
    let url = url::Url::from_directory_path(logs.path()).unwrap();
    let server = Server::start_engine(HttpOptions::default(), |options| {
        stoa_query::EngineOptions { logs: Some(url), ..options }
    });
    let server = server.await;
    server
        .sql(
            "CREATE SCHEMA other; \
             CREATE TABLE report (day date, account bigint) PARTITIONED BY (month(day)) \
             ORDER BY (account, day DESC) COMMENT 'by day'; \
             CREATE TABLE other.empty (n bigint); \
             INSERT INTO report VALUES (DATE '2026-01-01', 1), (DATE '2026-02-01', 2); \
             FLUSH TABLE report; \
             INSERT INTO report VALUES (DATE '2026-03-01', 3)",
        )
        .await;
    let sql = "SELECT namespace, name, kind, rows, fresh_rows, files, delete_files, partitioned_by, \
               sorted_by, snapshots, format_version, comment, error, bytes > 0, snapshot_id > 0, \
               committed > TIMESTAMP '2025-01-01', location FROM system.tables ORDER BY 1, 2";
    let rows = server.sql(sql).await["rows"].clone();
    let [empty, report] = [0, 1].map(|row| rows[row].as_array().unwrap().clone());
    assert_eq!(rows.as_array().unwrap().len(), 2);
    let wanted =
        json!(["other", "empty", "rows", 0, 0, 0, 0, "", "", 0, 2, null, null, false, null, null]);
    assert_eq!(empty[..16], wanted.as_array().unwrap()[..]);
    let listed = server.get_json("/v1/tables").await;
    let same = &listed["namespaces"][1]["tables"][0];
    let sorted_by: Vec<&str> =
        same["sorted_by"].as_array().unwrap().iter().map(|term| term.as_str().unwrap()).collect();
    let wanted = json!([
        "public",
        "report",
        "rows",
        3,
        1,
        2,
        0,
        "month(day)",
        sorted_by.join(", "),
        1,
        2,
        "by day",
        null,
        true,
        true,
        true
    ]);
    assert_eq!(report[..16], wanted.as_array().unwrap()[..]);
    assert!(report[16].as_str().unwrap().starts_with("file://"), "{report:?}");
    for (column, name) in [(2, "kind"), (3, "rows"), (4, "fresh_rows"), (5, "files")] {
        assert_eq!(report[column], same[name], "{name}");
    }
}
