//! One daemon's side, by hand; histories of many are in `stoa-sim`.

use super::*;

const TTL: Duration = Duration::from_secs(5);

fn at(ms: u64) -> Monotonic {
    Monotonic(Duration::from_millis(ms))
}

fn database(ms: u64) -> DatabaseTime {
    DatabaseTime(Duration::from_secs(1_000_000) + Duration::from_millis(ms))
}

fn daemon(id: u64) -> DaemonId {
    DaemonId::from_bits(id)
}

/// A table with daemons 1 to `count`, all up, and daemon 1's side of it.
fn cluster(count: u64) -> (MemberTable, Membership) {
    let mut table = MemberTable::default();
    for id in 1..=count {
        let incarnation = table.join(daemon(id), TTL, database(0));
        table.set_state(Holder { daemon: daemon(id), incarnation }, MemberState::Up);
    }
    let mut me = Membership::new(daemon(1), MemberOptions::default());
    let joined = me.on(MemberEvent::Tick, at(0));
    assert_eq!(joined, [MemberAction::Join { request: 1 }]);
    me.on(MemberEvent::Joined { request: 1, incarnation: 1 }, at(10));
    (table, me)
}

fn read(me: &mut Membership, table: &MemberTable, now: u64) -> Vec<MemberAction> {
    let actions = me.on(MemberEvent::Tick, at(now));
    let request = actions.iter().find_map(|action| match action {
        MemberAction::Read { request } => Some(*request),
        _ => None,
    });
    let Some(request) = request else { return actions };
    me.on(MemberEvent::Read { request, table: table.clone() }, at(now))
}

#[test]
fn two_suspicions_declare_a_member_dead_and_one_of_a_pair() {
    let holder = |id| Holder { daemon: daemon(id), incarnation: 1 };
    let window = Duration::from_secs(180);
    let (mut table, _) = cluster(3);
    let epoch = table.epoch();
    assert!(!table.suspect(holder(3), holder(1), window, database(0)));
    assert!(!table.suspect(holder(3), holder(1), window, database(1)), "the same one twice");
    assert!(!table.suspect(holder(3), holder(2), window, database(200_000)), "too late");
    assert!(table.suspect(holder(3), holder(1), window, database(200_001)));
    assert_eq!(table.epoch(), epoch + 1);
    assert!(!table.renew(holder(3), TTL, database(200_002)));
    assert!(
        !table.suspect(holder(1), holder(3), window, database(200_003)),
        "the dead say nothing"
    );
    let (mut pair, _) = cluster(2);
    assert!(pair.suspect(holder(2), holder(1), window, database(0)));
}

#[test]
fn a_suspicion_ends_when_the_suspect_has_answered_three_probes() {
    let holder = |id| Holder { daemon: daemon(id), incarnation: 1 };
    let window = Duration::from_secs(180);
    let (mut table, mut me) = cluster(3);
    read(&mut me, &table, 20);
    let mut trusted = vec![];
    // Not reached for six seconds, and reached from then on.
    for second in 1..13 {
        let now = second * 1000;
        for action in me.on(MemberEvent::Tick, at(now)) {
            match action {
                MemberAction::Probe { peer, probe } if peer != daemon(3) || second >= 7 => {
                    me.on(MemberEvent::Answered { peer, probe }, at(now + 10));
                }
                MemberAction::Suspect { peer, me } => {
                    assert!(!table.suspect(peer, me, window, database(now)));
                }
                MemberAction::Read { request } => {
                    let table = table.clone();
                    for action in me.on(MemberEvent::Read { request, table }, at(now + 20)) {
                        if let MemberAction::Trust { peer, me } = action {
                            trusted.push((second, peer, me));
                        }
                    }
                }
                _ => {}
            }
        }
        for (_, peer, me) in &trusted {
            table.trust(*peer, *me);
        }
    }
    assert_eq!(trusted, [(11, holder(3), holder(1))]);
    assert!(!table.suspect(holder(3), holder(2), window, database(14_000)), "the only one");
    assert!(!table.trust(holder(3), holder(1)), "it is gone");
}

#[test]
fn a_removed_daemon_never_gets_an_incarnation_again() {
    let (mut table, _) = cluster(2);
    table.join(daemon(1), TTL, database(0));
    assert!(!table.remove(daemon(1)), "it is not dead");
    table.set_state(Holder { daemon: daemon(1), incarnation: 2 }, MemberState::Dead);
    let epoch = table.epoch();
    assert!(table.remove(daemon(1)) && !table.remove(daemon(1)));
    assert_eq!(table.epoch(), epoch + 1);
    let rows = table.iter().map(|(daemon, row)| (daemon, row.clone()));
    assert_eq!(MemberTable::from_rows(epoch + 1, 2, rows), table);
    assert_eq!(table.join(daemon(1), TTL, database(1)), 3);
    assert_eq!(table.join(daemon(2), TTL, database(1)), 2);
}

#[test]
fn the_deadline_counts_from_before_the_request() {
    let (table, mut me) = cluster(2);
    assert!(me.holds(at(4499)), "5 s after the request was sent at 0, minus the margin");
    assert!(!me.holds(at(4500)));
    read(&mut me, &table, 20);
    let renewal = me.on(MemberEvent::Tick, at(4600));
    let request = renewal.iter().find_map(|action| match action {
        MemberAction::Renew { request, .. } => Some(*request),
        _ => None,
    });
    me.on(MemberEvent::Renewed { request: request.unwrap() }, at(9000));
    assert!(me.holds(at(9099)) && !me.holds(at(9100)));
    assert_eq!(me.on(MemberEvent::Refused, at(9001)), [MemberAction::End]);
    assert!(!me.holds(at(9001)));
}

#[test]
fn a_lease_must_be_seen_unchanged_for_its_whole_time() {
    let (table, mut me) = cluster(2);
    let expires = |actions: &[MemberAction]| {
        actions.iter().any(|action| matches!(action, MemberAction::Expire { .. }))
    };
    assert!(!expires(&read(&mut me, &table, 100)));
    assert!(!expires(&read(&mut me, &table, 2100)));
    assert!(!expires(&read(&mut me, &table, 4100)));
    assert!(expires(&read(&mut me, &table, 6100)));
    // The database was away: whoever lives has not been able to renew.
    assert!(!expires(&read(&mut me, &table, 60_000)));
    assert!(!expires(&read(&mut me, &table, 62_000)));
}

#[test]
fn a_peer_leaves_routing_at_once_and_comes_back_after_three_good_probes() {
    let (table, mut me) = cluster(2);
    read(&mut me, &table, 20);
    assert!(me.is_routed(daemon(2)));
    me.on(MemberEvent::Failed { peer: daemon(2) }, at(30));
    assert!(!me.is_routed(daemon(2)));
    let mut routed = vec![];
    for second in 1..5 {
        for action in me.on(MemberEvent::Tick, at(second * 1000 + 20)) {
            if let MemberAction::Probe { peer, probe } = action {
                me.on(MemberEvent::Answered { peer, probe }, at(second * 1000 + 30));
            }
        }
        routed.push(me.is_routed(daemon(2)));
    }
    assert_eq!(routed, [false, false, true, true]);
}

#[test]
fn suspects_are_probed_and_suspected_less_and_less() {
    let (table, mut me) = cluster(2);
    read(&mut me, &table, 20);
    let (mut probes, mut suspicions) = (vec![], vec![]);
    for second in 1..120 {
        for action in me.on(MemberEvent::Tick, at(second * 1000)) {
            match action {
                MemberAction::Probe { .. } => probes.push(second),
                MemberAction::Suspect { .. } => suspicions.push(second),
                _ => {}
            }
        }
    }
    assert_eq!(probes[..8], [1, 2, 3, 4, 5, 6, 7, 9]);
    assert_eq!(suspicions, [6, 21]);
}

#[test]
fn each_probes_ten_and_is_probed_by_ten() {
    let (table, _) = cluster(40);
    let mut probed = BTreeMap::<DaemonId, usize>::new();
    for id in 1..=40 {
        let mut peers = Peers::new(daemon(id), Duration::from_secs(1));
        let living = table.iter().map(|(daemon, _)| Holder { daemon, incarnation: 1 });
        peers.set(living, at(0));
        (1..=40).map(daemon).filter(|peer| peers.is_probed(*peer)).for_each(|peer| {
            *probed.entry(peer).or_default() += 1;
        });
    }
    assert!(probed.len() == 40 && probed.values().all(|count| *count == PROBED_MAX));
}
