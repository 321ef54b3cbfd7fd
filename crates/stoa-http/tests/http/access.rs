//! Clients that must log in: who is let in, how often one may try, and what is told to whom.

use reqwest::{Method, StatusCode};
use serde_json::Value;
use stoa_http::HttpOptions;
use stoa_query::EngineOptions;
use stoa_testkit::vault::{self, Granted};

use crate::support::Server;

/// A server with the roles `ann` and `stoa` and a table in which values and names are like no others.
async fn guarded() -> Server {
    let guard = |options| EngineOptions { access_control: true, ..options };
    let server = Server::start_engine(HttpOptions::default(), guard).await;
    let users = [
        "CREATE USER ann PASSWORD 'pencil'",
        "CREATE USER boss SUPERUSER PASSWORD 'pencil'",
        "CREATE USER stoa PASSWORD 'pencil'",
    ];
    let broken = ["CREATE TABLE vault.broken (n int)"];
    for sql in users.into_iter().chain(vault::SETUP).chain(broken) {
        server.trusted(sql).await;
    }
    server
}

async fn ask(server: &Server, role: &str, method: Method, path: &str, body: &str) -> (u16, String) {
    let request = server.request(method, path).basic_auth(role, Some("pencil"));
    let request = request.header("content-type", "text/plain").body(body.to_owned());
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn passwords_are_not_guessed_at_will() {
    let server = guarded().await;
    let login = async |role: &str, password: &str| {
        let request = server.request(Method::GET, "/v1/tables").basic_auth(role, Some(password));
        request.send().await.unwrap()
    };
    let mut refused = None;
    // Each try that is looked at after the tenth makes a pause that is twice as long.
    for number in 0..40 {
        let response = login("ann", &format!("guess {number}")).await;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            assert!(number > 10, "{number}");
            refused = Some(response);
            break;
        }
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{number}");
        assert!(response.headers().contains_key("www-authenticate"));
    }
    let refused = refused.expect("a try is refused");
    // A browser is not to ask for another password.
    assert!(!refused.headers().contains_key("www-authenticate"));
    assert!(refused.headers().contains_key("retry-after"));
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], "53400");
    assert_eq!(login("boss", "pencil").await.status(), StatusCode::OK);
    // A console that goes on with an old password is one failure.
    for _ in 0..50 {
        assert_eq!(login("stoa", "old").await.status(), StatusCode::UNAUTHORIZED);
    }
    assert_eq!(login("stoa", "pencil").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn hql_is_run_as_who_asks() {
    let server = guarded().await;
    let (status, text) = ask(&server, "boss", Method::POST, "/v1/hql", "SHOW TABLES;").await;
    assert_eq!(status, 200, "{text}");
    let hql = "SELECT \"user\", sql FROM system.queries WHERE protocol = 'hql'";
    let (_, seen) = ask(&server, "boss", Method::POST, "/v1/sql", hql).await;
    assert!(seen.contains("SHOW TABLES") && seen.contains("boss"), "{seen}");
    // A role that has the name of the server's own work.
    for (method, path, body) in [(Method::POST, "/v1/sql", hql), (Method::GET, "/v1/queries", "")] {
        let (status, seen) = ask(&server, "stoa", method, path, body).await;
        assert!(status == 200 && !seen.contains("SHOW TABLES"), "{path}: {seen}");
    }
}

#[tokio::test]
async fn tables_that_cannot_be_read_are_listed_to_superusers() {
    let server = guarded().await;
    server.trusted("GRANT SELECT ON SCHEMA vault TO ann").await;
    let table = stoa_table::TableIdent::new("vault", "broken");
    let table = server.engine.warehouse().table(&table).await.unwrap();
    let file = url::Url::parse(table.metadata_location()).unwrap().to_file_path().unwrap();
    std::fs::write(file, "secret text").unwrap();
    // What is known of it is in memory; another server reads it anew.
    let options = server.engine.options().clone();
    drop(table);
    let again = stoa_query::Engine::open(options).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/tables", listener.local_addr().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    let serving = stoa_env::task::spawn(stoa_http::serve(listener, again, shutdown));
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let list = async |role: &str| {
        let request = client.get(&url).basic_auth(role, Some("pencil"));
        request.send().await.unwrap().text().await.unwrap()
    };
    let (boss, ann) = (list("boss").await, list("ann").await);
    assert!(boss.contains("broken") && boss.contains("\"error\""), "{boss}");
    assert!(ann.contains("ledger") && !ann.contains("broken"), "{ann}");
    assert!(!ann.contains("\"error\""), "{ann}");
    drop(client);
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
}

/// All grants there can be on three columns, on all paths: neither values nor names of the others.
#[tokio::test]
async fn no_canary_is_in_any_answer() {
    let server = guarded().await;
    let listings = [
        "SHOW TABLES FROM vault",
        "DESCRIBE vault.ledger",
        "SELECT * FROM system.tables",
        "SELECT * FROM system.ingest",
    ];
    let paths = [
        "/v1/tables",
        "/v1/tables/vault/ledger",
        "/v1/tables/vault/ledger/files",
        "/v1/status",
        "/v1/queries",
        "/v1/shapes",
        "/v1/queries/1/plan",
        "/metrics",
        "/ready",
    ];
    for granted in Granted::all() {
        for sql in granted.statements() {
            server.trusted(&sql).await;
        }
        for format in ["", "?format=csv", "?format=ndjson", "?format=arrow"] {
            for sql in vault::QUERIES.into_iter().chain(listings) {
                let path = format!("/v1/sql{format}");
                for _ in 0..2 {
                    let request = server.request(Method::POST, &path);
                    let request = request.basic_auth("ann", Some("pencil"));
                    let request = request.header("content-type", "text/plain").body(sql);
                    let bytes = request.send().await.unwrap().bytes().await.unwrap();
                    let told = String::from_utf8_lossy(&bytes);
                    granted.check_values(sql, &told);
                    let names_any = sql.contains("ledger") || !granted.is_nothing();
                    assert!(names_any || !told.contains("ledger"), "{sql}: {told}");
                }
            }
        }
        for path in paths {
            let (_, told) = ask(&server, "ann", Method::GET, path, "").await;
            granted.check_values(path, &told);
            let own = ["/v1/queries", "/v1/tables/vault/ledger"];
            let says_so = own.iter().any(|own| path.starts_with(own));
            assert!(says_so || !granted.is_nothing() || !told.contains("ledger"), "{path}: {told}");
            if path == "/v1/tables/vault/ledger" {
                granted.check_names(path, &told);
            }
        }
    }
}
