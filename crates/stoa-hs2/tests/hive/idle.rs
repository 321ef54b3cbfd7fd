//! Many sessions, sessions without clients, and limits on both.

use std::time::Duration;

use stoa_hs2::HiveOptions;
use stoa_testkit::{ENDLESS, until};

use crate::support::{Server, execute, open_session};

#[tokio::test]
async fn a_thousand_idle_sessions_leave_room_for_one_that_works() {
    let server = Server::start(HiveOptions::default()).await;
    let mut clients = Vec::new();
    for _ in 0..400 {
        let mut client = server.connect().await;
        // Each connection may have several.
        for _ in 0..3 {
            client.open().await;
        }
        clients.push(client);
    }
    let mut busy = server.connect().await;
    let handle = busy.open().await;
    busy.send(&execute(&handle, "SELECT 1", false)).await;
    assert!(busy.read(8).await.starts_with(&[0x80, 1, 0, 2]));
    drop(clients);
    server.stop().await;
}

#[tokio::test]
async fn one_session_too_many_is_refused_and_room_comes_back() {
    let server = Server::start(HiveOptions { max_sessions: 1, ..HiveOptions::default() }).await;
    let mut first = server.connect().await;
    first.open().await;
    let mut second = server.connect().await;
    second.send(&open_session(9)).await;
    let mut text = String::new();
    while !text.contains("too many sessions") {
        text.push_str(&String::from_utf8_lossy(&second.read(1).await));
    }
    drop(first);
    // The session ends with its connection, as soon as the server has seen it.
    loop {
        let mut third = server.connect().await;
        third.send(&open_session(9)).await;
        // The status of an answer: 0 is success.
        let head = third.read(4 + 4 + 11 + 4 + 3 + 3 + 7).await;
        if head.ends_with(&[0, 0, 0, 0]) {
            break;
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_what_it_waits_for() {
    let server = Server::start(HiveOptions::default()).await;
    for run_async in [false, true] {
        let mut client = server.connect().await;
        let handle = client.open().await;
        client.send(&execute(&handle, ENDLESS, run_async)).await;
        let queries = server.engine.queries();
        until("the query runs", || queries.running_count() > 0).await;
        drop(client);
        until("the query has ended", || queries.running_count() == 0).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn what_nobody_uses_goes() {
    let idle = Duration::from_millis(20);
    let options =
        HiveOptions { session_idle_max: idle, operation_idle_max: idle, ..HiveOptions::default() };
    let server = Server::start(HiveOptions { max_sessions: 1, ..options }).await;
    let mut idle = server.connect().await;
    let handle = idle.open().await;
    // The connection stays; another session can only begin when that one has gone.
    loop {
        let mut other = server.connect().await;
        other.send(&open_session(9)).await;
        if other.read(4 + 4 + 11 + 4 + 3 + 3 + 7).await.ends_with(&[0, 0, 0, 0]) {
            break;
        }
    }
    idle.send(&execute(&handle, "SELECT 1", false)).await;
    let mut text = String::new();
    while !text.contains("Invalid SessionHandle") {
        text.push_str(&String::from_utf8_lossy(&idle.read(1).await));
    }
    server.stop().await;
}
