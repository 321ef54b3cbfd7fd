//! Other web sites are kept out.

use reqwest::Method;
use stoa_http::HttpOptions;

use crate::support::Server;

async fn status(server: &Server, headers: &[(&str, &str)]) -> u16 {
    let mut request = server.request(Method::POST, "/v1/sql").body("SELECT 1");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn requests_of_other_sites_are_refused() {
    let server = Server::start().await;
    let own = server.url.as_str();
    assert_eq!(status(&server, &[]).await, 200);
    assert_eq!(status(&server, &[("origin", own)]).await, 200);
    assert_eq!(status(&server, &[("origin", "http://evil.example")]).await, 403);
    assert_eq!(status(&server, &[("origin", "null")]).await, 403);
    assert_eq!(status(&server, &[("sec-fetch-site", "cross-site")]).await, 403);
    assert_eq!(status(&server, &[("host", "evil.example")]).await, 403);
    assert_eq!(server.engine.queries().totals().started, 2, "refused requests run nothing");
}

#[tokio::test]
async fn a_name_can_be_allowed() {
    let options = HttpOptions { allowed_hosts: vec!["stoa.test".into()], ..HttpOptions::default() };
    let server = Server::start_with(options).await;
    assert_eq!(status(&server, &[("host", "stoa.test:80")]).await, 200);
    assert_eq!(status(&server, &[("host", "other.test")]).await, 403);
}
