//! Who is let in: living members, known by their certificates, and nobody else.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use common::raw::{Raw, connect, frame, hello};
use common::{Daemon, Does, Gate, LONG, Membership, echo, holder, id, two};
use stoa_cluster::lease::Holder;
use stoa_env::{task, timer};
use stoa_error::Error;
use stoa_peers::{Handler, Identity, PeerOptions, is_unreachable};
use stoa_testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::rustls::version::{TLS12, TLS13};

/// Counts what it is asked.
fn counting() -> (Arc<AtomicUsize>, Arc<dyn Handler>) {
    let count = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&count);
    let handler = Does(move |from: Holder, _, _| {
        asked.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Bytes::from(from.incarnation.to_string())) }
    });
    (count, Arc::new(handler))
}

fn check_refused(error: &Error, why: &str) {
    assert!(is_unreachable(error), "{error:?}");
    assert_eq!(error.sqlstate(), "08001");
    assert!(error.message().contains(why), "{error:?}");
}

#[tokio::test]
async fn a_stranger_is_not_answered() {
    let (asked, handler) = counting();
    let (membership, _one, _two) = two(PeerOptions::default(), handler).await;
    let identity = Identity::generate().unwrap();
    let options = PeerOptions::default();
    let stranger = Daemon::unknown(&membership, identity, holder(3), options, echo()).await;
    let error = stranger.call(id(2), 0, "").await.unwrap_err();
    check_refused(&error, "does not know this daemon");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_stranger_is_not_asked() {
    let (asked, handler) = counting();
    let (membership, one, two) = two(PeerOptions::default(), handler).await;
    // Somebody else is at the address of a member.
    membership.join(holder(2), &two.address, Identity::generate().unwrap().fingerprint());
    let error = one.call(id(2), 0, "").await.unwrap_err();
    check_refused(&error, "certificate is not the one in the membership");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn whoever_has_just_joined_is_known() {
    let (_, handler) = counting();
    let (membership, _one, _two) = two(PeerOptions::default(), handler).await;
    let third = Holder { incarnation: 17, ..holder(3) };
    let third = Daemon::start(&membership, third, PeerOptions::default(), echo()).await;
    assert_eq!(third.call(id(2), 0, "").await.unwrap(), "17");
}

#[tokio::test]
async fn a_dead_member_is_neither_called_nor_answered() {
    let gate = Gate::default();
    let (membership, one, two) = two(PeerOptions::default(), gate.handler()).await;
    assert_eq!(two.call(id(1), 0, "x").await.unwrap(), "x");
    one.call(id(2), 0, "").await.unwrap();
    let die = async {
        until("a call waits", || gate.running() == 1).await;
        membership.die(id(1));
        two.peers.forget(id(1));
    };
    // Its call ends with its connection; the caller still knows the other as a member.
    let (lost, ()) = tokio::join!(one.call(id(2), 1, ""), die);
    assert_eq!(lost.unwrap_err().sqlstate(), "08006");
    until("the link knows", || !one.statistics(id(2)).connected).await;
    check_refused(&one.call(id(2), 0, "").await.unwrap_err(), "does not know this daemon");
    check_refused(&two.call(id(1), 0, "").await.unwrap_err(), "not a living member");
    assert!(!one.statistics(id(2)).connected && !two.connected_from(id(1)));
}

#[tokio::test]
async fn forgetting_ends_calls_that_wait() {
    let gate = Gate::default();
    let (membership, one, _two) = two(PeerOptions::default(), gate.handler()).await;
    let die = async {
        until("a call waits", || gate.running() == 1).await;
        membership.die(id(2));
        one.peers.forget(id(2));
    };
    let (lost, ()) = tokio::join!(one.call(id(2), 1, ""), die);
    let lost = lost.unwrap_err();
    assert_eq!(lost.sqlstate(), "08006");
    assert!(lost.message().contains("not a living member"), "{lost:?}");
    check_refused(&one.call(id(2), 0, "").await.unwrap_err(), "not a living member");
}

#[tokio::test]
async fn a_member_that_is_forgotten_and_lives_is_called_again() {
    let (_, one, two) = two(PeerOptions::default(), echo()).await;
    one.call(id(2), 0, "").await.unwrap();
    two.peers.forget(id(1));
    until("the connection ends", || !one.statistics(id(2)).connected).await;
    one.call(id(2), 0, "").await.unwrap();
}

#[tokio::test]
async fn a_restarted_daemon_is_called_at_once() {
    let (_, handler) = counting();
    let options = PeerOptions { retry_min: LONG, retry_max: LONG, ..PeerOptions::default() };
    let (membership, one, two) = two(options.clone(), handler.clone()).await;
    one.call(id(2), 0, "").await.unwrap();
    two.stopped().await;
    until("the connection ends", || !one.statistics(id(2)).connected).await;
    check_refused(&one.call(id(2), 0, "").await.unwrap_err(), "cannot connect");
    // Its certificate is another one, so the failure of before does not count.
    let again = Holder { incarnation: 2, ..holder(2) };
    let two = Daemon::start(&membership, again, options, handler).await;
    assert_eq!(one.call(id(2), 0, "").await.unwrap(), "1");
    assert_eq!(two.call(id(1), 0, "back").await.unwrap(), "back");
}

#[tokio::test]
async fn a_certificate_is_worth_nothing_without_its_key() {
    let (asked, handler) = counting();
    let (membership, one, two) = two(PeerOptions::default(), handler).await;
    let (member, thief) = (Raw::new(), Raw::new());
    membership.join(holder(3), "127.0.0.1:1", member.fingerprint());
    // With its key, it is answered.
    let mut stream = member.connect(&two.address).await.unwrap();
    stream.write_all(&[hello(1, 1), frame(0, 1, 0, 9, b"")].concat()).await.unwrap();
    let mut welcome = vec![0; 12];
    stream.read_exact(&mut welcome).await.unwrap();
    assert!(welcome.starts_with(b"stoapeer"));
    until("it is asked", || asked.load(Ordering::SeqCst) == 1).await;
    // With another's key, it is not.
    let stolen = member.with_key_of(&thief);
    check_silent(stolen.connect(&two.address).await).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // Nor is a server with another's key asked.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    membership.moved(id(3), listener.local_addr().unwrap());
    let accept = async {
        let (socket, _) = listener.accept().await.unwrap();
        stolen.accept(socket).await.map(drop).unwrap_err()
    };
    let (refused, _) = tokio::join!(one.call(id(3), 0, ""), accept);
    check_refused(&refused.unwrap_err(), "");
}

/// Whoever did not prove who they are get no byte.
async fn check_silent(
    connected: std::io::Result<tokio_rustls::client::TlsStream<tokio::net::TcpStream>>,
) {
    // The client's side of the handshake may be done before the server has looked at it.
    let Ok(mut stream) = connected else { return };
    let talk = async {
        let _ = stream.write_all(&[hello(1, 1), frame(0, 1, 0, 9, b"")].concat()).await;
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        bytes
    };
    let bytes = timer::timeout(LONG, talk).await.unwrap();
    assert_eq!(bytes, b"");
}

#[tokio::test]
async fn without_a_certificate_or_with_older_tls_nothing_is_said() {
    let (asked, handler) = counting();
    let (membership, _one, two) = two(PeerOptions::default(), handler).await;
    check_silent(connect(&two.address, None, &TLS13).await).await;
    let member = Raw::new();
    membership.join(holder(3), "127.0.0.1:1", member.fingerprint());
    connect(&two.address, Some(&member), &TLS12).await.unwrap_err();
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn without_a_common_protocol_both_ranges_are_named() {
    let speaks = |protocol_min, protocol_max, build: &str| PeerOptions {
        protocol_min,
        protocol_max,
        build: build.to_owned(),
        ..PeerOptions::default()
    };
    let membership = Arc::new(Membership::default());
    let old = Daemon::start(&membership, holder(1), speaks(1, 2, "old"), echo()).await;
    let new = Daemon::start(&membership, holder(2), speaks(3, 5, "new"), echo()).await;
    let between = Daemon::start(&membership, holder(3), speaks(2, 4, "between"), echo()).await;
    let error = old.call(id(2), 0, "").await.unwrap_err();
    check_refused(&error, "(old) speaks 1 to 2, the peer (new) speaks 3 to 5");
    check_refused(&new.call(id(1), 0, "").await.unwrap_err(), "speaks 1 to 2");
    old.call(id(3), 0, "").await.unwrap();
    between.call(id(2), 0, "").await.unwrap();
    assert_eq!(old.statistics(id(3)).protocol, Some(2));
    assert_eq!(between.statistics(id(2)).protocol, Some(4));
    assert_eq!(between.statistics(id(2)).build.as_deref(), Some("new"));
}

#[tokio::test]
async fn a_crowd_of_strangers_keeps_no_member_out() {
    let options = PeerOptions { connections_max: 8, ..PeerOptions::default() };
    let (membership, one, two) = two(options, echo()).await;
    let mut crowd = Vec::new();
    for _ in 0..50 {
        crowd.push(tokio::net::TcpStream::connect(&two.address).await.unwrap());
    }
    one.call(id(2), 0, "").await.unwrap();
    // Those who have proved who they are stay.
    for _ in 0..50 {
        crowd.push(tokio::net::TcpStream::connect(&two.address).await.unwrap());
    }
    let third = Daemon::start(&membership, holder(3), PeerOptions::default(), echo()).await;
    third.call(id(2), 0, "").await.unwrap();
    assert!(one.statistics(id(2)).connected);
    drop(crowd);
}

#[tokio::test]
async fn whoever_says_nothing_is_not_waited_for() {
    let options =
        PeerOptions { open_timeout: Duration::from_millis(500), ..PeerOptions::default() };
    let (membership, one, two) = two(options, echo()).await;
    // One that only connects, and one that proves who it is and says no hello.
    let mut silent = tokio::net::TcpStream::connect(&two.address).await.unwrap();
    let raw = Raw::new();
    membership.join(holder(3), "127.0.0.1:1", raw.fingerprint());
    let mut no_hello = raw.connect(&two.address).await.unwrap();
    let mut bytes = Vec::new();
    let _ = timer::timeout(LONG, silent.read_to_end(&mut bytes)).await.unwrap();
    let _ = timer::timeout(LONG, no_hello.read_to_end(&mut bytes)).await.unwrap();
    assert_eq!(bytes, b"");
    // The same from the other side: a member whose socket is accepted by nobody, or that says no hello.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    membership.moved(id(3), listener.local_addr().unwrap());
    check_refused(&one.call(id(3), 0, "").await.unwrap_err(), "more than 500 ms");
    let accept = task::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = raw.accept(socket).await {
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        }
    });
    check_refused(&one.call(id(3), 0, "").await.unwrap_err(), "more than 500 ms");
    accept.abort();
}
