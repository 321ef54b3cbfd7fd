//! Bounds on frames, on requests that run, and on what waits to be sent.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use common::raw::{Raw, frame, hello};
use common::{Daemon, Does, Gate, LONG, Membership, echo, holder, id, two};
use futures::future::join_all;
use stoa_error::{Error, ErrorKind};
use stoa_peers::{PeerOptions, is_unreachable};
use stoa_testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn small_frames() -> PeerOptions {
    PeerOptions { frame_bytes_max: 1000, ..PeerOptions::default() }
}

fn check_too_large(error: &Error, what: &str) {
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Invalid, "54000"));
    assert!(error.message().starts_with(what), "{error:?}");
    assert!(!is_unreachable(error) && !error.is_retryable());
}

#[tokio::test]
async fn requests_and_answers_that_are_too_large_are_refused() {
    let handler = Does(|_, kind: u16, _| async move { Ok(Bytes::from(vec![1; kind.into()])) });
    let (_, one, _two) = two(small_frames(), Arc::new(handler)).await;
    check_too_large(&one.call(id(2), 0, vec![0; 1001]).await.unwrap_err(), "a request of 1001");
    check_too_large(&one.call(id(2), 1001, "").await.unwrap_err(), "an answer of 1001");
    // The connection is as good as before.
    assert_eq!(one.call(id(2), 1000, vec![0; 1000]).await.unwrap().len(), 1000);
    assert_eq!(one.statistics(id(2)).failures, 0);
}

#[tokio::test]
async fn the_smaller_limit_of_both_sides_counts() {
    let membership = Arc::new(Membership::default());
    let large = Daemon::start(&membership, holder(1), PeerOptions::default(), echo()).await;
    let small = Daemon::start(&membership, holder(2), small_frames(), echo()).await;
    check_too_large(&large.call(id(2), 0, vec![0; 1001]).await.unwrap_err(), "a request");
    check_too_large(&small.call(id(1), 0, vec![0; 1001]).await.unwrap_err(), "a request");
    let handler = Does(|_, _, _| async move { Ok(Bytes::from(vec![1; 2000])) });
    let options = PeerOptions::default();
    let _third = Daemon::start(&membership, holder(3), options, Arc::new(handler)).await;
    check_too_large(&small.call(id(3), 0, "").await.unwrap_err(), "an answer of 2000");
}

#[tokio::test]
async fn only_so_many_requests_of_a_peer_run_at_once() {
    let gate = Gate::default();
    let options = PeerOptions { requests_max: 4, ..PeerOptions::default() };
    let (_, one, _two) = two(options, gate.handler()).await;
    let release = async {
        until("some run", || gate.running() == 4).await;
        gate.open();
    };
    let calls = join_all((0..100_u8).map(|number| one.call(id(2), 1, vec![number])));
    let (answers, ()) = tokio::join!(calls, release);
    for (number, answer) in (0..100_u8).zip(answers) {
        assert_eq!(answer.unwrap(), vec![number]);
    }
    assert!(gate.most() <= 4);
}

#[tokio::test]
async fn only_so_many_bytes_of_a_peer_are_held() {
    let gate = Gate::default();
    let options = PeerOptions { request_bytes_max: 250_000, ..PeerOptions::default() };
    let (_, one, _two) = two(options, gate.handler()).await;
    let release = async {
        until("some run", || gate.running() == 2).await;
        gate.open();
    };
    let calls = join_all((0..20_u8).map(|number| one.call(id(2), 1, vec![number; 100_000])));
    let (answers, ()) = tokio::join!(calls, release);
    assert!(answers.into_iter().all(|answer| answer.is_ok()));
    assert!(gate.most() <= 2);
    // One that is larger than all may be runs alone.
    assert_eq!(one.call(id(2), 0, vec![7; 1 << 20]).await.unwrap().len(), 1 << 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_wait_for_room_in_a_small_queue() {
    let options = PeerOptions { queued_bytes_max: 10_000, ..PeerOptions::default() };
    let (_, one, _two) = two(options, echo()).await;
    let calls = (0..60_u8).map(|number| {
        let size = if number % 2 == 0 { 3_000_000 } else { 300 };
        let one = &one;
        async move {
            let answer = one.call(id(2), 0, vec![number; size]).await.unwrap();
            assert!(answer == vec![number; size]);
        }
    });
    join_all(calls).await;
}

#[tokio::test]
async fn a_frame_of_the_default_limit_is_carried() {
    let (_, one, _two) = two(PeerOptions::default(), echo()).await;
    let body = Bytes::from(vec![3; 64 << 20]);
    assert!(one.call(id(2), 0, body.clone()).await.unwrap() == body);
    check_too_large(&one.call(id(2), 0, vec![0; (64 << 20) + 1]).await.unwrap_err(), "a request");
}

/// A peer asks and does not read. Answers that wait for room keep the places of their requests, so that no more are handled
/// than sockets and the queue take; when it reads, all of them come.
async fn check_unread_answers(at_once: bool) {
    const REQUESTS: u64 = 1000;
    /// Of 90 kB each: 63 MB, several times as much as sockets hold.
    const HANDLED_MAX: usize = 700;
    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    let handler = Does(move |_, kind: u16, _| {
        count.fetch_add(kind.into(), Ordering::Relaxed);
        async move { Ok(Bytes::from_static(&[1; 90_000]).slice(..90_000 * usize::from(kind))) }
    });
    let options = PeerOptions {
        requests_max: 4,
        queued_bytes_max: 200_000,
        ping_interval: LONG,
        ping_timeout: LONG,
        ..PeerOptions::default()
    };
    let (membership, one, two) = two(options, Arc::new(handler)).await;
    let raw = Raw::new();
    membership.join(holder(3), "127.0.0.1:1", raw.fingerprint());
    let mut stream = raw.connect(&two.address).await.unwrap();
    stream.write_all(&hello(1, 1)).await.unwrap();
    let mut one_by_one = !at_once;
    for number in 0..REQUESTS {
        stream.write_all(&frame(0, 1, 1, number, b"")).await.unwrap();
        if one_by_one {
            stream.flush().await.unwrap();
            let is_handled = || handled.load(Ordering::Relaxed) as u64 > number;
            // Others are answered meanwhile. Once it is not handled in all that time, there is no room.
            for _ in 0..200 {
                if is_handled() {
                    break;
                }
                one.call(id(2), 0, "").await.unwrap();
            }
            one_by_one = is_handled();
        }
    }
    stream.flush().await.unwrap();
    until("some are handled", || handled.load(Ordering::Relaxed) > 4).await;
    for _ in 0..300 {
        one.call(id(2), 0, "").await.unwrap();
    }
    let waiting = handled.load(Ordering::Relaxed);
    assert!(waiting < HANDLED_MAX, "{waiting} answers are held for one that does not read");

    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    let length = u32::from_be_bytes(start[8..].try_into().unwrap()) as usize;
    stream.read_exact(&mut vec![0; length]).await.unwrap();
    let mut answered = 0;
    let mut body = Vec::new();
    while answered < REQUESTS {
        let mut header = [0; 16];
        stream.read_exact(&mut header).await.unwrap();
        body.resize(u32::from_be_bytes(header[..4].try_into().unwrap()) as usize, 0);
        stream.read_exact(&mut body).await.unwrap();
        if header[4] == 2 {
            assert!(body.len() == 90_000 && body.iter().all(|byte| *byte == 1));
            answered += 1;
        }
    }
    assert_eq!(handled.load(Ordering::Relaxed) as u64, REQUESTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_are_bounded() {
    check_unread_answers(true).await;
    check_unread_answers(false).await;
}
