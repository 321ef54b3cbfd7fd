//! Who may connect, and what becomes of clients that do not log in.

use std::time::Duration;

use crate::common::Server;
use crate::common::raw::RawClient;
use stoa_listen::Limits;
use stoa_pgwire::ServeOptions;

#[tokio::test]
async fn clients_that_say_nothing_make_room_for_others() {
    let options = ServeOptions { sockets_max: 2, ..ServeOptions::default() };
    let server = Server::start_with(options).await;
    let mut silent = RawClient::silent(server.port).await;
    let mut half = RawClient::silent(server.port).await;
    half.send_bytes(&[0, 0]).await;
    let first = RawClient::connect(server.port).await;
    assert_eq!(silent.next().await, None, "the one that has waited longest goes first");
    let second = RawClient::connect(server.port).await;
    assert_eq!(half.next().await, None);
    // Sessions stay, and one more is told.
    let mut third = RawClient::silent(server.port).await;
    let told = third.next().await.unwrap();
    assert_eq!((told.kind, told.field(b'C').as_deref()), ('E', Some("53300")));
    drop((first, second));
}

#[tokio::test]
async fn clients_that_take_too_long_end() {
    let limits = Limits { login_timeout: Duration::from_millis(1), ..Limits::default() };
    let server = Server::start_with(ServeOptions { limits, ..ServeOptions::default() }).await;
    for beginning in [&b""[..], b"\0\0", b"\0\0\0\x40\0\x03\0\0user\0"] {
        let mut client = RawClient::silent(server.port).await;
        client.send_bytes(beginning).await;
        assert_eq!(client.next().await, None);
    }
}

#[tokio::test]
async fn one_address_has_no_more_than_its_part() {
    let limits = Limits { per_address_max: 1, counts_loopback: true, ..Limits::default() };
    let server = Server::start_with(ServeOptions { limits, ..ServeOptions::default() }).await;
    let first = RawClient::connect(server.port).await;
    let mut second = RawClient::silent(server.port).await;
    let told = second.next().await.unwrap();
    assert_eq!(told.field(b'C').as_deref(), Some("53300"));
    assert!(told.field(b'H').unwrap().contains("max_connections_per_address"));
    drop(first);
}

#[tokio::test]
async fn descriptors_for_files_are_not_given_to_clients() {
    let limits = Limits { descriptors_max: Some(1), ..Limits::default() };
    let server = Server::start_with(ServeOptions { limits, ..ServeOptions::default() }).await;
    let mut client = RawClient::silent(server.port).await;
    let told = client.next().await.unwrap();
    assert_eq!(told.field(b'C').as_deref(), Some("53300"));
    assert!(told.field(b'M').unwrap().contains("file descriptors"));
}

#[tokio::test]
async fn clients_that_have_not_logged_in_do_not_delay_the_end() {
    let grace = Duration::from_secs(3600);
    let options = ServeOptions { shutdown_grace: grace, ..ServeOptions::default() };
    let mut server = Server::start_with(options).await;
    let mut silent = RawClient::silent(server.port).await;
    // The next one is accepted after it.
    let session = RawClient::connect(server.port).await;
    server.stop();
    assert_eq!(silent.next().await.unwrap().field(b'C').as_deref(), Some("57P03"));
    drop(session);
    server.stopped().await;
}
