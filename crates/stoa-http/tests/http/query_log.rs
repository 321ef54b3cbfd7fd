//! Ended queries that are kept for days.

use reqwest::Method;
use serde_json::Value;
use stoa_http::HttpOptions;

use crate::support::Server;

/// Entries that a filter leaves, once there are `wanted` of them.
async fn entries(server: &Server, filter: &str, wanted: usize) -> Vec<Value> {
    loop {
        let mut listed = server.get_json(&format!("/v1/query-log?{filter}")).await;
        let Value::Array(found) = listed["queries"].take() else { panic!("{listed}") };
        if found.len() == wanted {
            return found;
        }
        assert!(found.len() < wanted, "{filter}: {found:?}");
        stoa_env::timer::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn failed_queries_outlive_the_registry_and_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("query-log");
    let options = || HttpOptions { query_log: Some(log.clone()), ..HttpOptions::default() };
    let mut server = Server::start_with(options()).await;
    let failing = "SELECT 1 / 0 AS \"Lost\"";
    assert_eq!(server.post("/v1/sql", failing).await.status(), 400);
    for n in 0..300 {
        server.sql(&format!("SELECT {n}")).await;
    }
    let recent = server.get_json("/v1/queries?recent=256").await;
    assert!(!recent.to_string().contains("Lost"), "the registry has forgotten it");
    let found = entries(&server, "state=failed", 1).await;
    assert_eq!((&found[0]["sql"], &found[0]["sqlstate"]), (&failing.into(), &"22012".into()));
    for (filter, wanted) in [
        ("text=lost", 1),
        ("text=division", 1),
        ("text=nothing+like+it", 0),
        ("user=nobody", 0),
        ("state=failed,cancelled&pool=default&protocol=http", 1),
        ("state=failed&min_ms=100000", 0),
        ("state=failed&from=99999999999999", 0),
        ("state=failed&to=1000", 0),
    ] {
        entries(&server, filter, wanted).await;
    }
    let id = found[0]["id"].as_u64().unwrap();
    assert_eq!(entries(&server, &format!("id={id}"), 1).await, found);
    // Of the others there is a sample.
    let all = server.get_json("/v1/query-log?most=1000").await["queries"].as_array().unwrap().len();
    assert!((11..250).contains(&all), "{all}");
    assert_eq!(server.get("/v1/query-log?nonsense=1").await.status(), 400);
    server.stop();
    server.ended().await;
    let again = Server::start_with(options()).await;
    assert_eq!(entries(&again, "state=failed", 1).await, found);
    // Nobody else of the machine reads it.
    for entry in std::fs::read_dir(&log).unwrap() {
        assert_eq!(stoa_env::private_files::is_open_to_others(&entry.unwrap().path()), None);
    }
}

#[tokio::test]
async fn roles_see_their_own_queries_and_can_sign_out() {
    let server = Server::guarded().await;
    let ask = async |role: &str, method: Method, path: &str| {
        let request = server.request(method, path).basic_auth(role, Some("pencil"));
        request.body(format!("SELECT 1 / 0 AS of_{role}")).send().await.unwrap()
    };
    for role in ["ann", "bob"] {
        ask(role, Method::POST, "/v1/sql").await;
    }
    let seen = async |role: &str| {
        let path = "/v1/query-log?state=failed";
        let listed: Value = ask(role, Method::GET, path).await.json().await.unwrap();
        listed["queries"].as_array().unwrap().len()
    };
    while seen("bob").await < 2 {
        stoa_env::timer::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(seen("ann").await, 1);
    let me: Value = ask("ann", Method::GET, "/v1/me").await.json().await.unwrap();
    assert_eq!(me, serde_json::json!({ "role": "ann", "superuser": false, "signs_in": true }));
    let out = ask("ann", Method::GET, "/v1/sign-out?role=ann").await;
    assert_eq!(out.status(), 401);
    assert!(out.headers().contains_key("www-authenticate"));
    assert!(out.text().await.unwrap().contains("signed out"));
    // Whoever has signed in as another one is in the console.
    let other = ask("bob", Method::GET, "/v1/sign-out?role=ann").await;
    assert_eq!((other.status().as_u16(), other.url().path()), (200, "/"));
    let open = Server::start().await;
    let me = open.get_json("/v1/me").await;
    assert_eq!((&me["superuser"], &me["signs_in"]), (&true.into(), &false.into()));
}
