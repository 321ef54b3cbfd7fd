//! What HiveServer2's own pages show, with their field names.

use reqwest::Method;
use serde_json::{Value, json};
use stoa_query::SessionOptions;
use stoa_testkit::{ENDLESS, until};

use crate::support::Server;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn queries_have_the_fields_of_hive() {
    let server = Server::start().await;
    let running = server.request(Method::POST, "/v1/sql").body(ENDLESS).send();
    let looking = async {
        until("the query runs", || server.engine.queries().running_count() == 1).await;
        let active = server.get_json("/api/v1/queries/active").await;
        assert_eq!(active[0]["queryDisplay"]["queryString"], ENDLESS);
        assert_eq!(active[0]["running"], true);
        assert_eq!(active[0]["endTime"], Value::Null);
        let id = active[0]["operationId"].as_str().unwrap().to_owned();
        server.request(Method::DELETE, &format!("/v1/queries/{id}")).send().await.unwrap();
        id
    };
    let (_, id) = tokio::join!(running, looking);
    let ended = server.get_json("/api/v1/queries/historical").await;
    let ended = &ended[0];
    assert_eq!((&ended["operationId"], &ended["state"]), (&json!(id), &json!("CANCELED")));
    let lasted = ended["endTime"].as_i64().unwrap() - ended["beginTime"].as_i64().unwrap();
    assert_eq!(ended["elapsedTime"].as_i64(), Some(lasted));
    let mut expected = vec![
        "userName",
        "executionEngine",
        "beginTime",
        "sessionId",
        "operationId",
        "runtime",
        "endTime",
        "state",
        "queryDisplay",
        "operationLogLocation",
        "elapsedTime",
        "running",
    ];
    expected.sort_unstable();
    let mut found = keys(ended);
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(server.get_json("/api/v1/queries/active").await, json!([]));
}

#[tokio::test]
async fn sessions_are_those_of_hive_and_of_who_asks() {
    let server = Server::start().await;
    let options = |protocol: &'static str, user: &str| SessionOptions {
        user: user.to_owned(),
        protocol,
        ..SessionOptions::default()
    };
    let hive = server.engine.session(options("hive", "ann"));
    let _other = server.engine.session(options("postgresql", "ann"));
    let listed = server.get_json("/api/v1/sessions").await;
    let [session] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
    let mut found = keys(session);
    found.sort_unstable();
    let expected =
        ["activeTime", "idleTime", "ipAddress", "operationCount", "sessionId", "username"];
    assert_eq!(found, expected);
    assert_eq!(session["username"], "ann");
    assert_eq!(session["operationCount"], 0);
    drop(hive);
    assert_eq!(server.get_json("/api/v1/sessions").await, json!([]));

    // With access control, roles see their own.
    let guarded = Server::guarded().await;
    let _sessions = ["ann", "bob"].map(|user| guarded.engine.session(options("hive", user)));
    for path in ["/api/v1/sessions", "/api/v1/queries/active", "/api/v1/queries/historical"] {
        assert_eq!(guarded.get(path).await.status(), 401, "{path}");
    }
    for (user, expected) in [("ann", json!(["ann"])), ("bob", json!(["ann", "bob"]))] {
        let request = guarded.request(Method::GET, "/api/v1/sessions");
        let response = request.basic_auth(user, Some("pencil")).send().await.unwrap();
        let listed: Value = response.json().await.unwrap();
        let names = listed.as_array().unwrap().iter().map(|one| one["username"].clone());
        assert_eq!(Value::Array(names.collect()), expected);
        let request = guarded.request(Method::GET, "/api/v1/queries/historical");
        let response = request.basic_auth(user, Some("pencil")).send().await.unwrap();
        let listed: Value = response.json().await.unwrap();
        let is_seen = |query: &Value| user == "bob" || query["userName"] == user;
        assert!(listed.as_array().unwrap().iter().all(is_seen), "{listed}");
    }
}
