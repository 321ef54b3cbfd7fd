//! The table and the holder, by hand; histories of many holders are in `stoa-sim`.

use super::*;
use crate::{DaemonId, DatabaseTime};

const TTL: Duration = Duration::from_secs(5);

fn holder(id: u64) -> Holder {
    Holder { daemon: DaemonId::from_bits(id), incarnation: 1 }
}

fn database(ms: u64) -> DatabaseTime {
    DatabaseTime(Duration::from_millis(1_000_000 + ms))
}

fn at(ms: u64) -> Monotonic {
    Monotonic(Duration::from_millis(ms))
}

#[test]
fn a_lease_changes_hands_only_when_expired_and_as_observed() {
    let mut rows = Arbiter::default();
    assert_eq!(rows.acquire("log", holder(1), None, TTL, database(0)), Some(1));
    assert_eq!(rows.acquire("log", holder(1), None, TTL, database(1)), Some(1), "asked again");
    let until = rows.row(&"log").map(|row| row.until);
    assert_eq!(
        rows.acquire("log", holder(2), until, TTL, database(5001)),
        None,
        "until is exclusive"
    );
    assert_eq!(rows.acquire("log", holder(2), None, TTL, database(5002)), None, "not observed");
    assert!(rows.renew(&"log", holder(1), 1, TTL, database(5002)), "nobody took it");
    assert_eq!(rows.acquire("log", holder(2), until, TTL, database(20_000)), None, "renewed since");
    let until = rows.row(&"log").map(|row| row.until);
    assert_eq!(rows.acquire("log", holder(2), until, TTL, database(20_000)), Some(2));
    assert!(!rows.renew(&"log", holder(1), 1, TTL, database(20_001)));
    assert!(!rows.check(&"log", holder(1), 1) && rows.check(&"log", holder(2), 2));
}

#[test]
fn a_released_lease_keeps_its_epoch() {
    let mut rows = Arbiter::default();
    rows.acquire("log", holder(1), None, TTL, database(0));
    rows.release(&"log", holder(1), 1);
    let observed = Some(DatabaseTime::default());
    assert_eq!(rows.acquire("log", holder(2), observed, TTL, database(1)), Some(2));
}

#[test]
fn a_later_life_takes_over_at_once_and_an_earlier_one_does_not() {
    let life = |incarnation| Holder { incarnation, ..holder(1) };
    let mut rows = Arbiter::default();
    assert_eq!(rows.acquire("log", life(2), None, TTL, database(0)), Some(1));
    assert_eq!(rows.acquire("log", life(1), None, TTL, database(1)), None);
    assert_eq!(rows.acquire("log", life(4), None, TTL, database(1)), Some(2));
    assert!(!rows.renew(&"log", life(2), 1, TTL, database(2)));
    assert!(rows.check(&"log", life(4), 2));
}

#[test]
fn a_forgotten_lease_begins_anew() {
    let mut rows = Arbiter::default();
    rows.acquire("log", holder(1), None, TTL, database(0));
    assert!(!rows.forget(&"log", holder(2), 1) && !rows.forget(&"log", holder(1), 2));
    assert!(rows.forget(&"log", holder(1), 1) && rows.row(&"log").is_none());
    assert_eq!(rows.acquire("log", holder(2), None, TTL, database(1)), Some(1));
}

#[test]
fn a_holder_counts_from_before_its_request() {
    let mut lease = Lease::new(LeaseOptions::default());
    let actions = lease.on(LeaseEvent::Acquire { observed: None }, at(0));
    assert_eq!(actions, [LeaseAction::Acquire { request: 1, observed: None }]);
    lease.on(LeaseEvent::Granted { request: 1, epoch: 4 }, at(3000));
    assert_eq!(lease.holds(at(4499)), Some(4));
    assert_eq!(lease.holds(at(4500)), None);
    // Late, but nobody took it.
    let renewal = lease.on(LeaseEvent::Tick, at(6000));
    assert_eq!(renewal, [LeaseAction::Renew { request: 2, epoch: 4 }]);
    assert_eq!(lease.on(LeaseEvent::Tick, at(6999)), []);
    lease.on(LeaseEvent::Renewed { request: 2 }, at(6010));
    assert_eq!(lease.holds(at(10_499)), Some(4));
    let renewal = lease.on(LeaseEvent::Tick, at(7000));
    assert_eq!(renewal, [LeaseAction::Renew { request: 3, epoch: 4 }]);
    assert_eq!(lease.on(LeaseEvent::Refused { request: 3 }, at(7001)), [LeaseAction::Stop]);
    assert_eq!(lease.holds(at(7001)), None);
}

#[test]
fn answers_that_are_too_late_mean_nothing() {
    let mut lease = Lease::new(LeaseOptions::default());
    lease.on(LeaseEvent::Acquire { observed: None }, at(0));
    lease.on(LeaseEvent::Acquire { observed: None }, at(9000));
    lease.on(LeaseEvent::Granted { request: 1, epoch: 1 }, at(9001));
    assert_eq!(lease.holds(at(9001)), None);
    lease.on(LeaseEvent::Granted { request: 2, epoch: 2 }, at(9002));
    assert_eq!(lease.holds(at(9002)), Some(2));
}
