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
async fn a_browser_that_has_a_file_need_not_fetch_it_again() {
    let server = Server::start().await;
    let tag = server.get("/js/main.js").await.headers()["etag"].clone();
    let request = server.request(Method::GET, "/js/main.js").header("if-none-match", tag);
    let again = request.send().await.unwrap();
    assert_eq!(again.status(), 304);
    assert!(again.bytes().await.unwrap().is_empty());
}
