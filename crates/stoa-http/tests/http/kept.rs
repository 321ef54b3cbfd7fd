//! Results that stay on the server: pages and downloads of them, how far they are read, and when they go.

use reqwest::{Method, StatusCode};
use serde_json::Value;
use stoa_http::{HttpOptions, KeptOptions};
use stoa_testkit::{ENDLESS, until};

use crate::support::Server;

const SERIES: &str = "SELECT value FROM generate_series(1, 1000000000000) AS s(value)";

async fn with(kept: KeptOptions) -> Server {
    Server::start_with(HttpOptions { kept, ..HttpOptions::default() }).await
}

/// Runs statements whose result is kept; the first page.
async fn keep(server: &Server, sql: &str, max_rows: u64) -> Value {
    let response = server.post(&format!("/v1/sql?keep=true&max_rows={max_rows}"), sql).await;
    let status = response.status();
    let document: Value = response.json().await.unwrap();
    assert_eq!(status, 200, "{sql}: {document}");
    document
}

fn id(document: &Value) -> String {
    document["result"]["id"].as_str().unwrap_or_else(|| panic!("{document}")).to_owned()
}

async fn state(server: &Server, id: &str) -> String {
    let described = server.get_json(&format!("/v1/results/{id}")).await;
    described["state"].as_str().unwrap().to_owned()
}

async fn until_state(server: &Server, id: &str, wanted: &str) {
    while state(server, id).await != wanted {
        stoa_env::timer::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn pages_and_downloads_never_run_a_statement_again() {
    let server = Server::start().await;
    server.sql("CREATE TABLE t (n bigint)").await;
    let sql = "INSERT INTO t VALUES (1); SELECT value, 'x' || value AS text FROM generate_series(1, 25000) AS s(value) ORDER BY 1";
    let first = keep(&server, sql, 10_000).await;
    assert_eq!((&first["row_count"], &first["truncated"]), (&10_000.into(), &true.into()));
    let id = id(&first);
    let page = server.get_json(&format!("/v1/results/{id}/rows?from=10000&max_rows=100")).await;
    assert_eq!(page["rows"][0], serde_json::json!([10_001, "x10001"]));
    assert_eq!((&page["row_count"], &page["truncated"]), (&100.into(), &true.into()));
    assert_eq!(page["columns"], first["columns"]);
    let last = server.get_json(&format!("/v1/results/{id}/rows?from=24999")).await;
    assert_eq!((&last["row_count"], &last["truncated"]), (&1.into(), &false.into()));
    assert_eq!(server.get_json(&format!("/v1/results/{id}/rows?from=99999")).await["row_count"], 0);
    let csv = server.get(&format!("/v1/results/{id}/rows?format=csv&file=a b/c.csv")).await;
    assert_eq!(csv.headers()["content-disposition"], "attachment; filename=\"a-b-c.csv\"");
    let csv = csv.text().await.unwrap();
    assert_eq!((csv.lines().count(), csv.lines().last()), (25_001, Some("25000,x25000")));
    let arrow = server.get(&format!("/v1/results/{id}/rows?format=arrow")).await;
    let bytes = arrow.bytes().await.unwrap();
    let reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 25_000);
    assert_eq!(state(&server, &id).await, "complete");
    assert_eq!(server.sql("SELECT count(*) FROM t").await["rows"][0][0], 1);
    // As the answer of a query whose rows are not kept.
    let path = "/v1/sql?format=csv";
    let again = server.post(path, sql.split(';').nth(1).unwrap()).await.text().await.unwrap();
    assert_eq!(again, csv);
}

#[tokio::test]
async fn results_that_do_not_fit_in_memory_are_read_from_disk() {
    let server = with(KeptOptions { ahead_bytes: 2 << 20, ..KeptOptions::default() }).await;
    let sql = "SELECT value, value % 7 AS rest FROM generate_series(1, 3000000) AS s(value)";
    let id = id(&keep(&server, sql, 10).await);
    // The query waits for somebody who wants more.
    assert_eq!(server.get_json(&format!("/v1/results/{id}")).await["state"], "running");
    let csv = server.get(&format!("/v1/results/{id}/rows?format=csv")).await.text().await.unwrap();
    assert_eq!((csv.lines().count(), csv.lines().last()), (3_000_001, Some("3000000,3")));
    let described = server.get_json(&format!("/v1/results/{id}")).await;
    assert_eq!((&described["rows"], &described["state"]), (&3_000_000.into(), &"complete".into()));
    assert!(described["bytes"].as_u64().unwrap() > 20_000_000, "{described}");
    let page = server.get_json(&format!("/v1/results/{id}/rows?from=2222222&max_rows=1")).await;
    assert_eq!(page["rows"][0][0], 2_222_223);
    assert_eq!(server.engine.queries().totals().started, 1);
}

#[tokio::test]
async fn a_result_that_nobody_wants_more_of_ends_and_is_never_taken_for_a_complete_one() {
    let server =
        with(KeptOptions { ahead_bytes: 0, unwanted_ms_max: 50, ..KeptOptions::default() }).await;
    let first = keep(&server, SERIES, 10).await;
    let id = id(&first);
    until("the query ends", || server.engine.queries().running_count() == 0).await;
    until_state(&server, &id, "cut").await;
    let refused = server.get(&format!("/v1/results/{id}/rows?format=csv&from=100000000")).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], "54000");
    assert!(error["error"]["detail"].as_str().unwrap().contains("nobody asked"), "{error}");
    let all = server.get(&format!("/v1/results/{id}/rows?format=csv")).await;
    let broken = all.status() != 200 || all.text().await.is_err();
    assert!(broken, "a part is no whole");
    let rows = server.get_json(&format!("/v1/results/{id}")).await["rows"].as_u64().unwrap();
    let part = server.get(&format!("/v1/results/{id}/rows?format=csv&partial=true")).await;
    assert_eq!(part.text().await.unwrap().lines().count() as u64, rows + 1);
    let page = server.get_json(&format!("/v1/results/{id}/rows?from=5&partial=true")).await;
    assert_eq!(page["result"]["state"], "cut");
}

#[tokio::test]
async fn a_result_is_no_longer_than_it_may_be() {
    let bounded = KeptOptions { result_bytes_max: 1 << 20, ..KeptOptions::default() };
    let server = with(bounded).await;
    let id = id(&keep(&server, SERIES, 10).await);
    until_state(&server, &id, "cut").await;
    let described = server.get_json(&format!("/v1/results/{id}")).await;
    assert!(described["bytes"].as_u64().unwrap() <= 1 << 20, "{described}");
    assert!(described["reason"].as_str().unwrap().contains("larger"), "{described}");
    assert_eq!(server.engine.queries().running_count(), 0);
}

#[tokio::test]
async fn results_make_room_and_grow_old() {
    let server = with(KeptOptions { results_max: 2, ..KeptOptions::default() }).await;
    let mut ids = Vec::new();
    for n in 1..=3 {
        ids.push(id(&keep(&server, &format!("SELECT {n} AS n"), 10).await));
    }
    assert_eq!(server.get(&format!("/v1/results/{}", ids[0])).await.status(), 404);
    for id in &ids[1..] {
        assert_eq!(server.get(&format!("/v1/results/{id}/rows")).await.status(), 200);
    }
    let server = with(KeptOptions { unread_ms_max: 1, ..KeptOptions::default() }).await;
    let id = id(&keep(&server, "SELECT 1", 10).await);
    let mut status = StatusCode::OK;
    while status != StatusCode::NOT_FOUND {
        // To ask for it is to read it.
        stoa_env::timer::sleep(std::time::Duration::from_millis(1100)).await;
        status = server.get(&format!("/v1/results/{id}")).await.status();
    }
}

#[tokio::test]
async fn whoever_goes_away_or_lets_go_cancels_the_query() {
    let server = Server::start().await;
    let waiting = server.request(Method::POST, "/v1/sql?keep=true").body(ENDLESS).send();
    let waiting = stoa_env::task::spawn(waiting);
    until("the query runs", || server.engine.queries().running_count() == 1).await;
    waiting.abort();
    until("it is cancelled", || server.engine.queries().running_count() == 0).await;
    let id = id(&keep(&server, SERIES, 10).await);
    assert_eq!(server.engine.queries().running_count(), 1);
    let path = format!("/v1/results/{id}");
    let removed = server.request(Method::DELETE, &path).send().await.unwrap();
    assert_eq!(removed.status(), StatusCode::NO_CONTENT);
    until("it is cancelled", || server.engine.queries().running_count() == 0).await;
    assert_eq!(server.get(&path).await.status(), 404);
}

#[tokio::test]
async fn errors_are_those_of_the_statement() {
    let server = Server::start().await;
    let failed = server
        .post("/v1/sql?keep=true", "SELECT 1 / (value - 5) FROM generate_series(1, 9) AS s(value)")
        .await;
    assert_eq!(failed.status(), 400);
    assert_eq!(failed.json::<Value>().await.unwrap()["error"]["code"], "22012");
    let done = keep(&server, "CREATE TABLE t (n int)", 10).await;
    assert!(done["result"].is_null() && done["command"] == "CREATE TABLE", "{done}");
}

#[tokio::test]
async fn a_result_is_for_the_role_that_ran_the_statement() {
    let server = Server::guarded().await;
    let ask = async |role: &str, method: Method, path: &str| {
        let request = server.request(method, path).basic_auth(role, Some("pencil"));
        request.body("SELECT 1 AS n").send().await.unwrap()
    };
    let kept: Value = ask("ann", Method::POST, "/v1/sql?keep=true").await.json().await.unwrap();
    let path = format!("/v1/results/{}", id(&kept));
    for (role, status) in [("bob", 404), ("ann", 200)] {
        assert_eq!(ask(role, Method::GET, &path).await.status(), status, "{role}");
        assert_eq!(
            ask(role, Method::GET, &format!("{path}/rows")).await.status(),
            status,
            "{role}"
        );
    }
    assert_eq!(ask("bob", Method::DELETE, &path).await.status(), 404);
    assert_eq!(server.get(&path).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(ask("ann", Method::DELETE, &path).await.status(), 204);
}

/// A result of `ann`, kept, and the status and code of what she gets of it now.
struct Granted {
    server: Server,
}

impl Granted {
    /// A server on which `ann` may read the column `n` of `orders` and all of `open`.
    async fn start() -> Self {
        let server = Server::guarded().await;
        for sql in [
            "CREATE TABLE orders (n bigint, secret text)",
            "INSERT INTO orders SELECT value, 'secret' || value FROM generate_series(1, 1000) AS s(value)",
            "CREATE TABLE open (n bigint)",
            "CREATE ROLE staff",
            "GRANT SELECT ON open TO staff",
            "GRANT staff TO ann",
            "GRANT SELECT (n, secret) ON orders TO ann",
        ] {
            server.trusted(sql).await;
        }
        Self { server }
    }

    async fn ask(&self, method: Method, path: &str, body: &str) -> (StatusCode, String) {
        let request = self.server.request(method, path).basic_auth("ann", Some("pencil"));
        let request = request.header("content-type", "text/plain").body(body.to_owned());
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    async fn keep(&self, sql: &str) -> String {
        let (status, text) = self.ask(Method::POST, "/v1/sql?keep=true&max_rows=10", sql).await;
        assert_eq!(status, 200, "{text}");
        id(&serde_json::from_str(&text).unwrap())
    }

    /// What pages, downloads and the description of a result are answered with; all alike.
    async fn reads(&self, id: &str) -> StatusCode {
        let mut statuses = Vec::new();
        for rest in ["/rows?from=990", "/rows?format=csv&file=a.csv", "/rows?format=arrow", ""] {
            let (status, text) =
                self.ask(Method::GET, &format!("/v1/results/{id}{rest}"), "").await;
            assert!(status == StatusCode::OK || !text.contains("secret9"), "{text}");
            if status == StatusCode::FORBIDDEN {
                assert!(
                    text.contains("42501") && text.contains("run the statement again"),
                    "{text}"
                );
            }
            statuses.push(status);
        }
        // Once it was refused, it is gone.
        statuses.dedup();
        assert!(
            statuses.len() == 1 || statuses == [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND],
            "{statuses:?}"
        );
        statuses[0]
    }
}

#[tokio::test]
async fn a_right_that_was_taken_away_ends_what_was_read_by_it() {
    for (taken, statement) in [
        ("a column", "REVOKE SELECT (secret) ON orders FROM ann"),
        ("a table", "REVOKE SELECT ON orders FROM ann"),
        ("a membership", "REVOKE staff FROM ann"),
        ("a right of a role", "REVOKE SELECT ON open FROM staff"),
    ] {
        let granted = Granted::start().await;
        let result = granted.keep("SELECT n, secret FROM orders ORDER BY n").await;
        assert_eq!(granted.reads(&result).await, StatusCode::OK);
        granted.server.trusted(statement).await;
        assert_eq!(granted.reads(&result).await, StatusCode::FORBIDDEN, "{taken}");
        // Whatever she may still read she can ask for.
        let (status, text) = granted.ask(Method::POST, "/v1/sql", "SELECT 1").await;
        assert_eq!(status, 200, "{text}");
    }
}

#[tokio::test]
async fn other_changes_of_rights_leave_results_alone() {
    let granted = Granted::start().await;
    let result = granted.keep("SELECT n, secret FROM orders ORDER BY n").await;
    for statement in [
        "GRANT SELECT ON orders TO ann",
        "CREATE USER carl PASSWORD 'pencil'",
        "GRANT SELECT ON open TO carl",
        "REVOKE SELECT ON open FROM carl",
        "GRANT INSERT ON orders TO ann",
        "REVOKE INSERT ON orders FROM ann",
        "DROP USER carl",
    ] {
        granted.server.trusted(statement).await;
        assert_eq!(granted.reads(&result).await, StatusCode::OK, "{statement}");
    }
}

#[tokio::test]
async fn a_superuser_who_is_none_any_more_loses_results() {
    let granted = Granted::start().await;
    granted.server.trusted("ALTER USER ann SUPERUSER").await;
    let result = granted.keep("SELECT n, secret FROM orders ORDER BY n").await;
    granted.server.trusted("ALTER USER ann NOSUPERUSER").await;
    assert_eq!(granted.reads(&result).await, StatusCode::FORBIDDEN);
}
