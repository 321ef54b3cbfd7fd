//! Connections without a request, and those that wait for the next one.

use std::time::Duration;

use reqwest::Method;
use stoa_http::HttpOptions;
use stoa_listen::Limits;
use stoa_testkit::{ENDLESS, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::Server;

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap()
}

/// All that comes until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read =
        stoa_env::timer::timeout(Duration::from_secs(60), stream.read_to_end(&mut bytes)).await;
    // A connection may end with what was not read of it.
    let _ = read.expect("the server closes the connection");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn options(max_connections: usize, limits: Limits) -> HttpOptions {
    HttpOptions { max_connections, limits, ..HttpOptions::default() }
}

#[tokio::test]
async fn connections_that_wait_make_room() {
    let server = Server::start_with(options(2, Limits::default())).await;
    let mut silent = connect(&server).await;
    let mut slow = connect(&server).await;
    slow.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    let mut asking = connect(&server).await;
    let request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    asking.write_all(request).await.unwrap();
    assert!(rest(&mut asking).await.starts_with("HTTP/1.1 200"));
    assert_eq!(rest(&mut silent).await, "");
    // One that has waited less stays.
    slow.write_all(b"Connection: close\r\n\r\n").await.unwrap();
    assert!(rest(&mut slow).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_connection_kept_for_later_is_closed_after_a_while() {
    let limits = Limits { idle_timeout: Duration::from_millis(1), ..Limits::default() };
    let server = Server::start_with(options(9, limits)).await;
    let mut client = connect(&server).await;
    client.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(rest(&mut client).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn heads_that_take_too_long_end() {
    let limits = Limits { login_timeout: Duration::from_millis(1), ..Limits::default() };
    let server = Server::start_with(options(9, limits)).await;
    for beginning in ["", "P", "GET /health HTTP/1.1\r\nHost: "] {
        let mut client = connect(&server).await;
        client.write_all(beginning.as_bytes()).await.unwrap();
        assert!(!rest(&mut client).await.contains("200 OK"), "{beginning}");
    }
}

#[tokio::test]
async fn where_all_connections_are_busy_one_more_is_refused() {
    let server = Server::start_with(options(1, Limits::default())).await;
    let running = server.request(Method::POST, "/v1/sql").body(ENDLESS).send();
    let running = stoa_env::task::spawn(running);
    until("the query runs", || server.engine.queries().running_count() == 1).await;
    let mut client = connect(&server).await;
    let answer = rest(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("\"code\":\"53300\"") && answer.contains("Retry-After"), "{answer}");
    running.abort();
}
