//! Peers that stop answering: frozen, cut off, overloaded.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::{Daemon, Gate, LONG, Membership, Proxy, echo, holder, id, two};
use futures::future::join_all;
use stoa_env::{clock, task, timer};
use stoa_error::Result;
use stoa_peers::{PeerOptions, PeerStatistics, is_unreachable};
use stoa_testkit::until;
use tokio::sync::watch;

/// Dead after 150 ms instead of 5 s.
fn hasty() -> PeerOptions {
    PeerOptions {
        ping_interval: Duration::from_millis(60),
        ping_timeout: Duration::from_millis(90),
        open_timeout: Duration::from_secs(1),
        retry_min: Duration::from_millis(5),
        retry_max: Duration::from_millis(20),
        ..PeerOptions::default()
    }
}

/// Two daemons, with a proxy on the way to the second.
async fn through_proxy(options: PeerOptions, gate: &Gate) -> (Daemon, Daemon, Proxy) {
    let (membership, one, two) = two(options, gate.handler()).await;
    let proxy = Proxy::to(&two.address).await;
    membership.moved(id(2), &proxy.address);
    (one, two, proxy)
}

/// Calls until there is an answer again.
async fn answered_again(daemon: &Daemon) {
    let again = async {
        while daemon.call(id(2), 0, "").await.is_err() {
            timer::sleep(Duration::from_millis(2)).await;
        }
    };
    timer::timeout(LONG, again).await.unwrap();
}

async fn check_frozen(options: PeerOptions) {
    let gate = Gate::default();
    let (one, two, proxy) = through_proxy(options, &gate).await;
    one.call(id(2), 0, "").await.unwrap();
    let freeze = async {
        until("a call waits", || gate.running() == 1).await;
        proxy.freeze();
    };
    let began = clock::monotonic();
    let (lost, (), late) = tokio::join!(one.call(id(2), 1, ""), freeze, async {
        until("a call waits", || gate.running() == 1).await;
        one.call(id(2), 0, "").await
    });
    // Calls have no such limit themselves.
    assert!(began.elapsed() < LONG / 4);
    for error in [lost.unwrap_err(), late.unwrap_err()] {
        assert_eq!(error.sqlstate(), "08006");
        assert!(error.message().contains("sign of life"), "{error:?}");
    }
    // The other side has noticed as well.
    until("it is gone", || !two.connected_from(id(1))).await;
    let error = one.call(id(2), 0, "").await.unwrap_err();
    assert!(is_unreachable(&error));
    gate.open();
    proxy.restore();
    answered_again(&one).await;
    assert!(two.connected_from(id(1)));
}

#[tokio::test]
async fn a_frozen_peer_fails_calls_and_is_found_again() {
    check_frozen(hasty()).await;
}

#[tokio::test]
async fn a_frozen_peer_fails_calls_within_the_default_times() {
    check_frozen(PeerOptions::default()).await;
}

#[tokio::test]
async fn an_idle_connection_to_a_frozen_peer_ends() {
    let gate = Gate::default();
    let (one, two, proxy) = through_proxy(hasty(), &gate).await;
    one.call(id(2), 0, "").await.unwrap();
    proxy.freeze();
    until("it is gone", || !one.statistics(id(2)).connected).await;
    until("it is gone there", || !two.connected_from(id(1))).await;
}

#[tokio::test]
async fn a_large_request_to_a_frozen_peer_fails() {
    let gate = Gate::default();
    let (one, _two, proxy) = through_proxy(hasty(), &gate).await;
    one.call(id(2), 0, "").await.unwrap();
    proxy.freeze();
    let error = one.call(id(2), 0, vec![0; 50 << 20]).await.unwrap_err();
    assert_eq!(error.sqlstate(), "08006");
}

/// As many signs of life as come within several times the time after which a silent peer is dead.
async fn lives_on(daemon: &Daemon) {
    let before = daemon.statistics(id(2)).bytes_in;
    until("signs of life", || daemon.statistics(id(2)).bytes_in >= before + 10 * 16).await;
    assert!(daemon.statistics(id(2)).connected);
}

#[tokio::test]
async fn who_works_for_long_is_not_dead() {
    let gate = Gate::default();
    let (_, one, _two) = two(hasty(), gate.handler()).await;
    let wait = async {
        until("it runs", || gate.running() == 1).await;
        lives_on(&one).await;
        gate.open();
    };
    let (answer, ()) = tokio::join!(one.call(id(2), 1, "slow"), wait);
    assert_eq!(answer.unwrap(), "slow");
}

#[tokio::test]
async fn who_reads_no_more_requests_is_not_dead() {
    let gate = Gate::default();
    let options = PeerOptions { requests_max: 3, ..hasty() };
    let (_, one, _two) = two(options, gate.handler()).await;
    let one = Arc::new(one);
    let calls: Vec<_> = (0..50_u8)
        .map(|number| {
            let one = Arc::clone(&one);
            // More than sockets hold.
            task::spawn(async move { one.call(id(2), 1, vec![number; 200_000]).await })
        })
        .collect();
    until("it is busy", || gate.running() == 3).await;
    lives_on(&one).await;
    assert_eq!(gate.running(), 3);
    gate.open();
    for (number, call) in (0..50_u8).zip(calls) {
        assert_eq!(call.await.unwrap().unwrap()[..], vec![number; 200_000]);
    }
    assert!(gate.most() <= 3);
}

#[tokio::test]
async fn a_connection_that_breaks_fails_its_calls_at_once() {
    let gate = Gate::default();
    let (one, _two, proxy) = through_proxy(PeerOptions::default(), &gate).await;
    one.call(id(2), 0, "").await.unwrap();
    let cut = async {
        until("calls wait", || gate.running() == 2).await;
        proxy.close_all();
    };
    let (first, second, ()) = tokio::join!(one.call(id(2), 1, ""), one.call(id(2), 1, ""), cut);
    assert_eq!(first.unwrap_err().sqlstate(), "08006");
    assert_eq!(second.unwrap_err().sqlstate(), "08006");
    until("the link knows", || !one.statistics(id(2)).connected).await;
    proxy.restore();
    answered_again(&one).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_survive_connections_that_break_again_and_again() {
    let gate = Gate::default();
    let (one, two, proxy) = through_proxy(hasty(), &gate).await;
    let (one, stop) = (Arc::new(one), watch::channel(false).0);
    let callers: Vec<_> = (0..32_u8)
        .map(|number| {
            let (one, stop) = (Arc::clone(&one), stop.subscribe());
            task::spawn(async move {
                let mut answered = 0_u64;
                while !*stop.borrow() {
                    match one.call(id(2), 0, vec![number; 1000]).await {
                        Ok(answer) => {
                            assert_eq!(answer[..], [number; 1000]);
                            answered += 1;
                        }
                        Err(error) => {
                            assert!(is_unreachable(&error), "{error:?}");
                            timer::sleep(Duration::from_millis(1)).await;
                        }
                    }
                }
                answered
            })
        })
        .collect();
    let answered = |peer: PeerStatistics| peer.calls - peer.failures;
    one.call(id(2), 0, "").await.unwrap();
    for _ in 0..20 {
        let before = answered(one.statistics(id(2)));
        until("answers", || answered(one.statistics(id(2))) > before + 100).await;
        let failures = one.statistics(id(2)).failures;
        proxy.close_all();
        until("failures", || one.statistics(id(2)).failures > failures).await;
        proxy.restore();
    }
    answered_again(&one).await;
    stop.send_replace(true);
    for caller in callers {
        assert!(caller.await.unwrap() > 0);
    }
    assert_eq!(one.statistics(id(2)).in_flight, 0);
    assert!(two.connected_from(id(1)));
}

#[test]
fn connections_do_not_live_where_calls_come_from() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (short, long) = (runtime(), runtime());
    let gate = Gate::default();
    let (_membership, one, _two) = long.block_on(two(PeerOptions::default(), gate.handler()));
    short.block_on(one.call(id(2), 0, "")).unwrap();
    let end = async {
        until("a call waits", || gate.running() == 1).await;
        short.shutdown_background();
        gate.open();
    };
    let answer = long.block_on(async { tokio::join!(one.call(id(2), 1, "x"), end).0 });
    assert_eq!(answer.unwrap(), "x");
}

#[test]
fn a_runtime_that_ends_leaves_no_call_waiting() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (short, long) = (runtime(), runtime());
    let gate = Gate::default();
    let membership = Arc::new(Membership::default());
    let options = PeerOptions::default();
    let one = short.block_on(Daemon::start(&membership, holder(1), options.clone(), echo()));
    let _two = long.block_on(Daemon::start(&membership, holder(2), options, gate.handler()));
    let end = async {
        until("a call waits", || gate.running() == 1).await;
        short.shutdown_background();
    };
    let lost = long.block_on(async { tokio::join!(one.call(id(2), 1, ""), end).0 });
    assert_eq!(lost.unwrap_err().sqlstate(), "08006");
    let refused = long.block_on(one.call(id(2), 0, "")).unwrap_err();
    assert_eq!(refused.sqlstate(), "08001");
}

#[tokio::test]
async fn calls_to_nobody_fail_fast_and_do_not_knock_each_time() {
    let options = PeerOptions { retry_min: LONG, ..PeerOptions::default() };
    let membership = Arc::new(Membership::default());
    let one = Daemon::start(&membership, holder(1), options, echo()).await;
    let two = Daemon::start(&membership, holder(2), PeerOptions::default(), echo()).await;
    let proxy = Proxy::to(&two.address).await;
    membership.moved(id(2), &proxy.address);
    proxy.close_all();
    let first = one.call(id(2), 0, "").await.unwrap_err();
    assert_eq!(first.sqlstate(), "08001");
    for _ in 0..1000 {
        let next = one.call(id(2), 0, "").await.unwrap_err();
        assert_eq!(next.message(), first.message());
    }
    assert_eq!(proxy.accepted(), 1);
    // Whoever is told that it is another one knocks again.
    proxy.restore();
    one.peers.forget(id(2));
    one.call(id(2), 0, "").await.unwrap();
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn all_who_wait_for_an_attempt_fail_with_it() {
    let options = PeerOptions { retry_min: Duration::ZERO, ..PeerOptions::default() };
    let membership = Arc::new(Membership::default());
    let one = Daemon::start(&membership, holder(1), options, echo()).await;
    let two = Daemon::start(&membership, holder(2), PeerOptions::default(), echo()).await;
    let proxy = Proxy::to(&two.address).await;
    membership.moved(id(2), &proxy.address);
    proxy.close_all();
    for error in join_all((0..100).map(|_| one.call(id(2), 0, ""))).await {
        assert_eq!(error.unwrap_err().sqlstate(), "08001");
    }
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn the_time_between_attempts_grows_up_to_its_bound() {
    let options = PeerOptions {
        retry_min: Duration::from_millis(1),
        retry_max: Duration::from_millis(4),
        ..PeerOptions::default()
    };
    let membership = Arc::new(Membership::default());
    let one = Daemon::start(&membership, holder(1), options, echo()).await;
    let two = Daemon::start(&membership, holder(2), PeerOptions::default(), echo()).await;
    let proxy = Proxy::to(&two.address).await;
    membership.moved(id(2), &proxy.address);
    proxy.close_all();
    let call = async || -> Result<Bytes> { one.call(id(2), 0, "").await };
    let knocks = async {
        while proxy.accepted() < 10 {
            call().await.unwrap_err();
            timer::sleep(Duration::from_millis(1)).await;
        }
    };
    timer::timeout(LONG, knocks).await.unwrap();
    proxy.restore();
    answered_again(&one).await;
}
