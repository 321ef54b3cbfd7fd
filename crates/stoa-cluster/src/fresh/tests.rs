//! Small histories of an owner and a replica; large ones are in `stoa-sim`.

use std::time::Duration;

use super::*;
use crate::lease::{Deadline, Holder, LeaseOptions};
use crate::membership::PeerLease;
use crate::{DaemonId, Monotonic};

const LOG: LogId = LogId::from_bits(1);

fn peer(id: u64) -> Holder {
    Holder { daemon: DaemonId::from_bits(id), incarnation: 1 }
}

fn at(ms: u64) -> Monotonic {
    Monotonic(Duration::from_millis(ms))
}

fn acknowledged(actions: &[OwnerAction]) -> Option<u64> {
    actions.iter().find_map(|action| match action {
        OwnerAction::Acknowledge { to } => Some(*to),
        _ => None,
    })
}

fn pushes(actions: &[OwnerAction]) -> Vec<Push> {
    let pushes = actions.iter().filter_map(|action| match action {
        OwnerAction::Push { push, .. } => Some(*push),
        _ => None,
    });
    pushes.collect()
}

#[test]
fn a_record_is_acknowledged_when_durable_and_told() {
    let mut owner = Owner::new(LOG, 0, [(peer(2), PeerLease::Live)], OwnerOptions::default());
    let mut replica = Replica::new();
    replica.on(ReplicaEvent::Logs(vec![LOG]));
    assert!(!replica.is_complete());

    let actions = owner.on(OwnerEvent::Append, at(0));
    for push in pushes(&actions) {
        replica.on(ReplicaEvent::Pushed(push));
    }
    assert_eq!(replica.shown(LOG), 0, "not durable");
    assert!(replica.is_complete());

    let actions = owner.on(OwnerEvent::Durable { to: 1 }, at(30));
    assert_eq!(acknowledged(&actions), None);
    let told = pushes(&actions).into_iter().flat_map(|p| replica.on(ReplicaEvent::Pushed(p)));
    assert_eq!(told.collect::<Vec<_>>(), [ReplicaAction::Tell { log: LOG, to: 1 }]);
    let actions = owner.on(OwnerEvent::Told { peer: peer(2), to: 1 }, at(31));
    assert_eq!(acknowledged(&actions), Some(1));
}

#[test]
fn a_peer_that_does_not_answer_is_waited_for_until_its_lease_is_over() {
    let mut owner = Owner::new(LOG, 0, [(peer(2), PeerLease::Live)], OwnerOptions::default());
    owner.on(OwnerEvent::Append, at(0));
    assert_eq!(acknowledged(&owner.on(OwnerEvent::Durable { to: 1 }, at(30))), None);
    let again = pushes(&owner.on(OwnerEvent::Tick, at(300)));
    assert_eq!(again, [Push { log: LOG, base: 0, from: 1, to: 1, durable: 1 }]);
    let over = PeerLease::OverAt(at(9000));
    owner.on(OwnerEvent::Peers(vec![(peer(2), over)]), at(5000));
    assert_eq!(acknowledged(&owner.on(OwnerEvent::Tick, at(8999))), None);
    assert_eq!(acknowledged(&owner.on(OwnerEvent::Tick, at(9000))), Some(1));
    assert_eq!(owner.on(OwnerEvent::Fenced, at(9001)), [OwnerAction::Stop]);
}

#[test]
fn a_life_known_by_its_hello_only_ends_when_a_later_one_is_read() {
    let mut owner = Owner::new(LOG, 0, [], OwnerOptions::default());
    owner.on(OwnerEvent::Hello { peer: peer(2) }, at(0));
    owner.on(OwnerEvent::Append, at(0));
    owner.on(OwnerEvent::Durable { to: 1 }, at(30));
    let later = Holder { incarnation: 2, ..peer(2) };
    owner.on(OwnerEvent::Peers(vec![(later, PeerLease::Live)]), at(1000));
    assert_eq!(acknowledged(&owner.on(OwnerEvent::Told { peer: later, to: 1 }, at(1100))), None);
    assert_eq!(acknowledged(&owner.on(OwnerEvent::Tick, at(5999))), None);
    assert_eq!(acknowledged(&owner.on(OwnerEvent::Tick, at(6000))), Some(1));
}

#[test]
fn a_peer_that_was_dead_when_the_log_began_is_waited_for() {
    let over = PeerLease::OverAt(at(3000));
    let mut owner = Owner::new(LOG, 0, [(peer(2), over)], OwnerOptions::default());
    owner.on(OwnerEvent::Append, at(0));
    assert_eq!(acknowledged(&owner.on(OwnerEvent::Durable { to: 1 }, at(30))), None);
    assert_eq!(acknowledged(&owner.on(OwnerEvent::Tick, at(3000))), Some(1));
}

#[test]
fn gaps_are_not_shown_and_files_close_them() {
    let mut replica = Replica::new();
    let push = |base, from, to| Push { log: LOG, base, from, to, durable: 9 };
    replica.on(ReplicaEvent::Logs(vec![]));
    replica.on(ReplicaEvent::Pushed(push(0, 1, 2)));
    replica.on(ReplicaEvent::Pushed(push(0, 5, 6)));
    assert_eq!(replica.shown(LOG), 2);
    let actions = replica.on(ReplicaEvent::Pushed(push(4, 5, 6)));
    assert!(actions.contains(&ReplicaAction::ReadVersion));
    replica.on(ReplicaEvent::Version { number: 1, positions: Vector::from([(LOG, 4)]) });
    replica.on(ReplicaEvent::Pushed(push(4, 5, 6)));
    assert_eq!(replica.shown(LOG), 6);
    assert!(!replica.is_complete(), "what was durable first was 9");
}

#[test]
fn reads_wait_for_what_their_session_has_seen() {
    let mut replica = Replica::new();
    replica.on(ReplicaEvent::Logs(vec![]));
    replica.on(ReplicaEvent::Pushed(Push { log: LOG, base: 0, from: 1, to: 2, durable: 2 }));
    let mut deadline = Deadline::default();
    deadline.extend(at(0), LeaseOptions::default());
    let read = |replica: &Replica, freshness, seen, now| {
        let seen = &Seen { version: 0, logs: Vector::from([(LOG, seen)]) };
        replica.read(ReadRequest { freshness, seen, deadline }, at(now))
    };
    let shown = ReadAnswer::Show(Seen { version: 0, logs: Vector::from([(LOG, 2)]) });
    assert_eq!(read(&replica, Freshness::Exact, 2, 100), shown);
    assert_eq!(read(&replica, Freshness::Exact, 3, 100), ReadAnswer::Behind { log: Some(LOG) });
    assert_eq!(read(&replica, Freshness::Exact, 2, 4500), ReadAnswer::Refuse);
    assert_eq!(read(&replica, Freshness::Known, 2, 4500), shown);
    replica.on(ReplicaEvent::Retired(LOG));
    let empty = ReadAnswer::Show(Seen::default());
    assert_eq!(read(&replica, Freshness::Known, 3, 100), empty);
}
