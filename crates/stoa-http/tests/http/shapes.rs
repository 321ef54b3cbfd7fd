//! Statements by shape, and what reports find in memory.

use serde_json::Value;

use crate::support::Server;

async fn server_with_reports() -> Server {
    let server = Server::start().await;
    server.sql("CREATE TABLE r (k bigint, n bigint) ORDER BY (k)").await;
    server
        .sql("INSERT INTO r SELECT value % 10, value FROM generate_series(1, 1000) AS s(value)")
        .await;
    for key in 0..5 {
        let sql = format!("SELECT sum(n) FROM r WHERE k = {key}");
        assert_eq!(server.sql(&sql).await["row_count"], 1);
    }
    server
}

#[tokio::test]
async fn statements_are_counted_by_shape() {
    let server = server_with_reports().await;
    assert_eq!(server.post("/v1/sql", "SELECT 1 / 0").await.status(), 400);
    let document = server.get_json("/v1/shapes").await;
    let shapes = document["shapes"].as_array().unwrap();
    assert_eq!(document["known"], shapes.len());
    let find = |sql: &str| shapes.iter().find(|shape| shape["sql"] == sql).unwrap().clone();
    let report = find("SELECT sum(n) FROM r WHERE k = $L0i");
    assert_eq!((&report["queries"], &report["failed"]), (&5.into(), &0.into()), "{report}");
    assert!(report["short_path"].as_u64().unwrap() >= 4, "{report}");
    assert_eq!(report["rows"], 5);
    let number = |name: &str| report[name].as_f64().unwrap();
    assert!(number("p50_ms") <= number("p95_ms") && number("p95_ms") <= number("p99_ms"));
    assert!(number("total_ms") >= number("max_ms"));
    assert_eq!(find("SELECT $L0i / $L1i")["failed"], 1);
    let totals: Vec<f64> = shapes.iter().map(|shape| shape["total_ms"].as_f64().unwrap()).collect();
    assert!(totals.is_sorted_by(|a, b| a >= b), "{totals:?}");
    let one = server.get_json("/v1/shapes?most=1").await;
    assert_eq!(one["shapes"].as_array().unwrap().len(), 1);
    assert_eq!(server.get("/v1/shapes?least=1").await.status(), 400);
}

#[tokio::test]
async fn status_metrics_and_system_tables_agree_about_the_cache() {
    let server = server_with_reports().await;
    let status = server.get_json("/v1/status").await;
    let cache = &status["cache"];
    assert!(cache["bytes"].as_u64().unwrap() > 0, "{cache}");
    assert!(cache["bytes"].as_u64() <= cache["bytes_max"].as_u64());
    assert!(cache["chunk_hits"].as_u64().unwrap() > 0, "{cache}");
    let ratio = cache["hit_ratio"].as_f64().unwrap();
    assert!(ratio > 0.0 && ratio <= 1.0, "{cache}");
    assert!(cache["reports_answered"].as_u64().unwrap() >= 4, "{cache}");
    assert!(cache["templates"].as_u64().unwrap() >= 1);

    let metrics = server.get("/metrics").await.text().await.unwrap();
    let sql = "SELECT bytes, bytes_max, entries, chunk_hits, chunk_misses, reports_answered, results_reused FROM system.cache";
    let row = server.sql(sql).await["rows"][0].clone();
    let named = [
        ("stoa_cache_bytes", &cache["bytes"]),
        ("stoa_cache_limit_bytes", &cache["bytes_max"]),
        ("stoa_cache_entries", &cache["entries"]),
        ("stoa_cache_chunk_hits_total", &cache["chunk_hits"]),
        ("stoa_cache_chunk_misses_total", &cache["chunk_misses"]),
        ("stoa_report_answered_queries_total", &cache["reports_answered"]),
        ("stoa_report_reused_answers_total", &cache["results_reused"]),
    ];
    for (index, (metric, value)) in named.into_iter().enumerate() {
        let line = format!("{metric} {value}");
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
        assert_eq!(&row[index], value, "{metric}");
    }
}

#[tokio::test]
async fn queries_say_which_path_they_took() {
    let server = server_with_reports().await;
    let listed = server.get_json("/v1/queries").await;
    let recent = listed["recent"].as_array().unwrap();
    let of = |sql: &str| -> &Value { recent.iter().find(|query| query["sql"] == sql).unwrap() };
    assert_eq!(of("SELECT sum(n) FROM r WHERE k = 4")["short_path"], true);
    let load =
        of("INSERT INTO r SELECT value % 10, value FROM generate_series(1, 1000) AS s(value)");
    assert_eq!((&load["short_path"], &load["requests"]), (&false.into(), &0.into()));
}
