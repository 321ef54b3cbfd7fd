//! Calls and their answers, while nothing is wrong with the network.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::{Daemon, Does, Gate, LONG, Proxy, echo, holder, id, two};
use futures::future::join_all;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stoa_cluster::lease::Holder;
use stoa_env::{task, timer};
use stoa_error::{Condition, Error, ErrorKind};
use stoa_peers::{Handler, PeerOptions, is_unreachable};
use stoa_testkit::until;

/// Says who asked what.
fn witness() -> Arc<dyn Handler> {
    Arc::new(Does(|from: Holder, kind, body: Bytes| async move {
        Ok(Bytes::from(format!("{} {} {kind} {}", from.daemon, from.incarnation, body.len())))
    }))
}

#[tokio::test]
async fn daemons_call_each_other() {
    let (_, one, two) = two(PeerOptions::default(), witness()).await;
    let answer = one.call(id(2), 7, vec![0; 5]).await.unwrap();
    assert_eq!(answer, format!("{} 1 7 5", id(1)));
    assert_eq!(two.call(id(1), 1, "back").await.unwrap(), "back");
    assert_eq!(one.call(id(2), 0, "").await.unwrap(), format!("{} 1 0 0", id(1)));
    let peer = one.statistics(id(2));
    assert!(peer.connected && peer.connected_from);
    assert_eq!((peer.calls, peer.failures, peer.in_flight), (2, 0, 0));
    assert_eq!(peer.protocol, Some(1));
    assert!(peer.bytes_in > 0 && peer.bytes_out > 0 && peer.round_trip_us > 0);
    let (served_one, served_two) = tokio::join!(one.stopped(), two.stopped());
    assert_eq!((served_one, served_two), ((), ()));
}

#[tokio::test]
async fn a_daemon_may_call_itself() {
    let (_, one, _two) = two(PeerOptions::default(), echo()).await;
    assert_eq!(one.call(id(1), 1, "me").await.unwrap(), "me");
}

/// What a request is answered with in the test below.
fn transformed(body: &[u8]) -> Bytes {
    body.iter().rev().map(|byte| byte ^ 0x5a).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_get_their_own_answers_over_one_connection() {
    let handler = Does(|_, kind: u16, body: Bytes| async move {
        if kind > 0 {
            timer::sleep(Duration::from_millis(kind.into())).await;
        }
        Ok(transformed(&body))
    });
    let (membership, one, two) = two(PeerOptions::default(), Arc::new(handler)).await;
    let proxy = Proxy::to(&two.address).await;
    membership.moved(id(2), &proxy.address);
    let one = Arc::new(one);
    let calls = (0..10_000_u64).map(|number| {
        let mut random = SmallRng::seed_from_u64(number);
        let size = match number % 500 {
            0 => random.random_range(100_000..1_000_000),
            n if n % 10 == 0 => random.random_range(0..40_000),
            _ => random.random_range(0..500),
        };
        let mut body = vec![0; size];
        random.fill(body.as_mut_slice());
        let kind = if random.random_bool(0.5) { 0 } else { random.random_range(1..30) };
        let one = Arc::clone(&one);
        task::spawn(async move {
            let expected = transformed(&body);
            assert!(one.call(id(2), kind, body).await.unwrap() == expected, "call {number}");
        })
    });
    for call in join_all(calls).await {
        call.unwrap();
    }
    assert_eq!(proxy.accepted(), 1);
    let peer = one.statistics(id(2));
    assert_eq!((peer.calls, peer.failures, peer.in_flight), (10_000, 0, 0));
}

#[tokio::test]
async fn errors_arrive_as_they_were() {
    let handler = Does(|_, kind, _| async move {
        Err(match kind {
            0 => Error::not_found("no table t")
                .with_condition(Condition::UndefinedTable)
                .with_detail("the namespace is empty")
                .with_hint("create it")
                .with_position(15),
            1 => Error::unavailable("who knows").with_condition(Condition::UnknownOutcome),
            _ => Error::corrupt("ends early").with_source(std::io::Error::other("bad sector")),
        })
    });
    let (_, one, _two) = two(PeerOptions::default(), Arc::new(handler)).await;
    let error = one.call(id(2), 0, "").await.unwrap_err();
    assert!(error.is(Condition::UndefinedTable) && error.kind() == ErrorKind::NotFound);
    assert_eq!(error.message(), "no table t");
    assert_eq!(error.detail(), Some("the namespace is empty"));
    assert_eq!((error.hint(), error.position()), (Some("create it"), Some(15)));
    let error = one.call(id(2), 1, "").await.unwrap_err();
    assert!(error.is(Condition::UnknownOutcome) && !error.is_retryable());
    assert!(!is_unreachable(&error));
    let error = one.call(id(2), 2, "").await.unwrap_err();
    assert_eq!(error.message(), "ends early: bad sector");
    assert_eq!(one.statistics(id(2)).failures, 0, "the peer has answered");
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_own_call_only() {
    let handler = Does(|_, kind, body| async move {
        assert!(kind != 1, "a bug");
        Ok(body)
    });
    let (_, one, _two) = two(PeerOptions::default(), Arc::new(handler)).await;
    let (failed, answered) = tokio::join!(one.call(id(2), 1, ""), one.call(id(2), 0, "x"));
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(answered.unwrap(), "x");
    assert_eq!(one.call(id(2), 0, "y").await.unwrap(), "y");
}

#[tokio::test]
async fn slow_handlers_keep_nobody_waiting() {
    let gate = Gate::default();
    let (_, one, _two) = two(PeerOptions::default(), gate.handler()).await;
    let quick = async {
        until("slow requests run", || gate.running() == 50).await;
        for number in 0..100_u8 {
            assert_eq!(one.call(id(2), 0, vec![number]).await.unwrap(), vec![number]);
        }
        assert_eq!(gate.running(), 50);
        gate.open();
    };
    let slow = join_all((0..50_u8).map(|number| one.call(id(2), 1, vec![number])));
    let (slow, ()) = tokio::join!(slow, quick);
    for (number, answer) in (0..50_u8).zip(slow) {
        assert_eq!(answer.unwrap(), vec![number]);
    }
}

#[tokio::test]
async fn a_dropped_call_disturbs_no_other() {
    let gate = Gate::default();
    let (_, one, _two) = two(PeerOptions::default(), gate.handler()).await;
    let one = Arc::new(one);
    let mut calls: Vec<_> = (0..100_u8)
        .map(|number| {
            let one = Arc::clone(&one);
            task::spawn(async move { one.call(id(2), 1, vec![number]).await })
        })
        .collect();
    until("all run", || gate.running() == 100).await;
    assert_eq!(one.statistics(id(2)).in_flight, 100);
    let kept: Vec<_> = calls.split_off(50);
    calls.iter().for_each(|call| call.abort());
    until("half is forgotten", || one.statistics(id(2)).in_flight == 50).await;
    gate.open();
    for (number, call) in (50..100_u8).zip(kept) {
        assert_eq!(call.await.unwrap().unwrap(), vec![number]);
    }
    assert_eq!(one.call(id(2), 0, "after").await.unwrap(), "after");
    assert_eq!(one.statistics(id(2)).failures, 0);
}

#[tokio::test]
async fn a_call_ends_at_its_limit() {
    let gate = Gate::default();
    let (_, one, _two) = two(PeerOptions::default(), gate.handler()).await;
    one.call(id(2), 0, "").await.unwrap();
    let late = one.peers.call(id(2), 1, Bytes::new(), Duration::from_millis(20)).await.unwrap_err();
    assert_eq!((late.kind(), late.sqlstate()), (ErrorKind::Unavailable, "08006"));
    assert!(is_unreachable(&late));
    gate.open();
    // Its late answer comes before this one, or does not come at all.
    assert_eq!(one.call(id(2), 1, "next").await.unwrap(), "next");
    let peer = one.statistics(id(2));
    assert_eq!((peer.connected, peer.failures, peer.in_flight), (true, 1, 0));
}

#[tokio::test]
async fn at_shutdown_running_requests_are_answered_and_new_ones_refused() {
    let gate = Gate::default();
    let (membership, one, mut two) = two(PeerOptions::default(), gate.handler()).await;
    let stop = async {
        until("it runs", || gate.running() == 1).await;
        two.begin_stop();
        // Until the daemon has noticed, it still answers.
        let refused = loop {
            match one.call(id(2), 0, "").await {
                Ok(_) => task::spawn(async {}).await.unwrap(),
                Err(error) => break error,
            }
        };
        assert_eq!((refused.kind(), refused.sqlstate()), (ErrorKind::Unavailable, "57P03"));
        assert!(!is_unreachable(&refused));
        gate.open();
        two.stopped().await;
    };
    let (answer, ()) = tokio::join!(one.call(id(2), 1, "last"), stop);
    assert_eq!(answer.unwrap(), "last");
    until("the connection ends", || !one.statistics(id(2)).connected).await;
    let error = one.call(id(2), 0, "").await.unwrap_err();
    assert_eq!(error.sqlstate(), "08001");
    // It starts again, with another certificate and at another address.
    let again = Holder { incarnation: 2, ..holder(2) };
    let _two = Daemon::start(&membership, again, PeerOptions::default(), witness()).await;
    one.call(id(2), 0, "").await.unwrap();
}

#[tokio::test]
async fn after_the_grace_nobody_is_waited_for() {
    let gate = Gate::default();
    let options = PeerOptions { shutdown_grace: Duration::ZERO, ..PeerOptions::default() };
    let (_, one, two) = two(options, gate.handler()).await;
    let stop = async {
        until("it runs", || gate.running() == 1).await;
        two.stopped().await;
    };
    let (lost, ()) = tokio::join!(one.call(id(2), 1, ""), stop);
    assert_eq!(lost.unwrap_err().sqlstate(), "08006");
}

#[tokio::test]
async fn connections_end_with_the_last_clone() {
    let gate = Gate::default();
    let (_, one, two) = two(PeerOptions::default(), gate.handler()).await;
    one.call(id(2), 0, "").await.unwrap();
    assert!(two.connected_from(id(1)));
    one.stopped().await;
    until("it is gone", || !two.connected_from(id(1))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_begin_together_share_one_attempt_to_connect() {
    let (membership, one, two) = two(PeerOptions::default(), echo()).await;
    let proxy = Proxy::to(&two.address).await;
    membership.moved(id(2), &proxy.address);
    let peers = one.peers.clone();
    // One that has hardly any time begins, and its attempt goes on without it.
    let _ = peers.call(id(2), 0, Bytes::new(), Duration::from_micros(1)).await;
    let calls = (0..200).map(|_| {
        let peers = peers.clone();
        task::spawn(async move { peers.call(id(2), 0, Bytes::new(), LONG).await })
    });
    for call in join_all(calls).await {
        call.unwrap().unwrap();
    }
    assert_eq!(proxy.accepted(), 1);
}
