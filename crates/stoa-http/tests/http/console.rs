//! The console's files.

use reqwest::Method;

use crate::support::Server;

#[tokio::test]
async fn the_console_is_served_with_its_policy() {
    let server = Server::start().await;
    let page = server.get("/").await;
    assert_eq!(page.status(), 200);
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    let script = server.get("/js/main.js").await;
    assert_eq!(script.headers()["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(server.get("/js/nothing.js").await.status(), 404);
    assert_eq!(server.get("/../Cargo.toml").await.status(), 404);
    assert_eq!(server.request(Method::POST, "/").send().await.unwrap().status(), 405);
}

#[tokio::test]
async fn files_are_asked_for_once_per_version() {
    let server = Server::start().await;
    let page = server.get("/").await;
    assert_eq!(page.headers()["cache-control"], "no-cache");
    let page = page.text().await.unwrap();
    let scripts: Vec<&str> =
        page.split('"').filter(|part| part.starts_with("/a/") && part.ends_with(".js")).collect();
    assert!(scripts.len() > 30, "{page}");
    assert!(!page.contains("=\"/js/") && !page.contains("=\"/css/"), "{page}");
    for script in &scripts {
        let answer = server.get(script).await;
        assert_eq!(answer.status(), 200, "{script}");
        let caching = answer.headers()["cache-control"].to_str().unwrap();
        assert!(caching.contains("immutable"), "{script}: {caching}");
    }
    // A page of another version gets what there is now, and does not keep it.
    let other = format!("/a/{}/js/main.js", "0".repeat(16));
    let answer = server.get(&other).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["cache-control"]),
        (200, &"no-cache".parse().unwrap())
    );
}

#[tokio::test]
async fn an_unknown_address_is_a_page_in_browsers_and_an_error_elsewhere() {
    let server = Server::start().await;
    let looked_at = server.request(Method::GET, "/nowhere").header("accept", "text/html,*/*");
    let page = looked_at.send().await.unwrap();
    assert_eq!(page.status(), 404);
    assert!(page.text().await.unwrap().contains("<title>Stoa</title>"));
    let error: serde_json::Value = server.get("/nowhere").await.json().await.unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
    let request = server.request(Method::GET, "/v1/nothing").header("accept", "text/html");
    assert_eq!(request.send().await.unwrap().headers()["content-type"], "application/json");
}

#[tokio::test]
async fn a_browser_that_has_a_file_need_not_fetch_it_again() {
    let server = Server::start().await;
    let tag = server.get("/js/main.js").await.headers()["etag"].clone();
    let request = server.request(Method::GET, "/js/main.js").header("if-none-match", tag);
    let again = request.send().await.unwrap();
    assert_eq!(again.status(), 304);
    assert!(again.bytes().await.unwrap().is_empty());
}
