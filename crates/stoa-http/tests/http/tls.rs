//! HTTPS, with a certificate that `openssl` made.

use reqwest::{Certificate, Client};
use serde_json::Value;
use stoa_http::HttpOptions;
use stoa_testkit::{Authority, Usage};
use stoa_tls::{Tls, TlsFiles};
use tempfile::TempDir;

use crate::support::Server;

struct Secured {
    server: Server,
    /// A client that trusts the server's authority.
    client: Client,
    _folder: TempDir,
}

impl Secured {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "authority");
        let made = authority.issue("server", Usage::Server);
        let files = TlsFiles { cert: made.cert, key: made.key, client_ca: None };
        let tls = Some(Tls::open(files).unwrap());
        let server = Server::start_with(HttpOptions { tls, ..HttpOptions::default() }).await;
        let trusted = std::fs::read(authority.cert()).unwrap();
        let client = Client::builder()
            .no_proxy()
            .tls_built_in_root_certs(false)
            .add_root_certificate(Certificate::from_pem(&trusted).unwrap())
            .build()
            .unwrap();
        Self { server, client, _folder: folder }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url.replace("http://", "https://"))
    }
}

#[tokio::test]
async fn statements_and_the_console_are_served_encrypted() {
    let secured = Secured::start().await;
    let sql = "SELECT count(*) AS n FROM generate_series(1, 10)";
    let request = secured.client.post(secured.url("/v1/sql")).body(sql);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["rows"], serde_json::json!([[10]]));
    let console = secured.client.get(secured.url("/")).send().await.unwrap();
    assert_eq!(console.status(), 200);
    assert!(console.text().await.unwrap().contains("<html"));
    // The console's own requests name where they come from.
    let origin = secured.url("");
    let request = secured.client.get(secured.url("/v1/status")).header("origin", origin);
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_request_that_is_not_encrypted_is_told_what_to_write() {
    let secured = Secured::start().await;
    let answer = secured.server.get("/v1/status").await;
    assert_eq!(answer.status(), 400);
    let error = &answer.json::<Value>().await.unwrap()["error"];
    assert_eq!(error["message"], "this port speaks HTTPS");
    assert_eq!(error["hint"], "write https:// in place of http://");
}

#[tokio::test]
async fn clients_that_say_nothing_hold_up_nobody() {
    let secured = Secured::start().await;
    let address = secured.server.url.replace("http://", "");
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }
    let answer = secured.client.get(secured.url("/ready")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn an_encrypted_server_ends_in_order() {
    let mut secured = Secured::start().await;
    let answer = secured.client.get(secured.url("/ready")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    secured.server.stop();
    secured.server.ended().await;
}
