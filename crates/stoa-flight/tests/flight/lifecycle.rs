//! Start, limits and end.

use std::time::Duration;

use futures::TryStreamExt;
use stoa_flight::FlightOptions;
use stoa_listen::Limits;
use stoa_testkit::ENDLESS;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use crate::support::*;

#[tokio::test]
async fn a_stop_lets_queries_end_and_takes_no_more() {
    let mut server = Server::start().await;
    let mut client = server.client().await;
    let sql = "SELECT n FROM generate_series(1, 3000000) AS s(n)";
    let info = client.execute(sql.to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let mut rows = client.do_get(ticket).await.unwrap();
    let mut count = rows.try_next().await.unwrap().unwrap().num_rows();
    server.stop();
    while let Some(batch) = rows.try_next().await.unwrap() {
        count += batch.num_rows();
    }
    assert_eq!(count, 3_000_000);
    drop((rows, client));
    server.ended().await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_clients_that_do_not_end() {
    let options = FlightOptions { drain_max: Duration::from_millis(50), ..Default::default() };
    let mut server = Server::start_with(options).await;
    let mut client = server.client().await;
    let info = client.execute(ENDLESS.to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let mut rows = client.do_get(ticket).await.unwrap();
    server.stop();
    server.ended().await;
    assert!(rows.try_next().await.is_err());
}

#[tokio::test]
async fn a_closing_engine_refuses_work_retryably() {
    let server = Server::start().await;
    let mut client = server.client().await;
    run(&mut client, "CREATE TABLE t (id bigint, name text)").await;
    server.engine.shutdown(Duration::ZERO).await;
    let error = query(&mut client, "SELECT 1").await.unwrap_err();
    is_error(&error, Code::Unavailable, &["shutting down", "57P01"]);
    let error = ingest(&mut client, into_table("t", APPEND), vec![people([1])]).await.unwrap_err();
    is_error(&error, Code::Unavailable, &["shutting down", "57P01"]);
}

#[tokio::test]
async fn clients_beyond_the_limit_wait() {
    let options = FlightOptions { max_connections: 1, ..FlightOptions::default() };
    let server = Server::start_with(options).await;
    let mut first = server.client().await;
    assert_eq!(shown(&mut first, "SELECT 1").await, ["1"]);
    let url = server.url.clone();
    let second = stoa_env::task::spawn(async move {
        let endpoint = tonic::transport::Endpoint::from_shared(url).unwrap();
        let mut second = Client::new(endpoint.connect().await.unwrap());
        shown(&mut second, "SELECT 2").await
    });
    assert_eq!(shown(&mut first, "SELECT 1").await, ["1"]);
    assert!(!second.is_finished());
    drop(first);
    let answer = stoa_env::timer::timeout(Duration::from_secs(20), second).await;
    assert_eq!(answer.expect("the second has its turn").unwrap(), ["2"]);
}

#[tokio::test]
async fn clients_that_make_no_call_make_room() {
    let options = FlightOptions { max_connections: 1, ..FlightOptions::default() };
    let server = Server::start_with(options).await;
    let address = server.url.trim_start_matches("http://").to_owned();
    let mut silent = TcpStream::connect(&address).await.unwrap();
    let mut half = TcpStream::connect(&address).await.unwrap();
    half.write_all(b"PRI * HTTP/2.0").await.unwrap();
    let mut client = server.client().await;
    assert_eq!(shown(&mut client, "SELECT 1").await, ["1"]);
    for stream in [&mut silent, &mut half] {
        is_closed(stream).await;
    }
    assert_eq!(shown(&mut client, "SELECT 1").await, ["1"]);
}

/// Waits until the server has closed the connection, whatever it says before.
async fn is_closed(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    let ended =
        stoa_env::timer::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes)).await;
    let _ = ended.expect("the server closes the connection");
}

#[tokio::test]
async fn clients_that_take_too_long_with_their_first_call_end() {
    let limits = Limits { login_timeout: Duration::from_millis(1), ..Limits::default() };
    let server = Server::start_with(FlightOptions { limits, ..FlightOptions::default() }).await;
    let address = server.url.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    is_closed(&mut stream).await;
}
