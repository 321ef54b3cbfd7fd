//! Members and leases in PostgreSQL: many daemons at once, and what happens when PostgreSQL is away.
//! `cluster_rules.rs` compares each answer with the model.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::postgres::PgListener;
use sqlx::{Connection, Executor, PgConnection};
use stoa_catalog::{Catalog, Cluster, DaemonInfo};
use stoa_cluster::DaemonId;
use stoa_cluster::lease::Holder;
use stoa_cluster::membership::MemberState;
use stoa_env::{clock, task};
use stoa_error::ErrorKind;
use stoa_testkit::PostgresServer;

use self::common::Database;
use self::common::proxy::{Cut, Proxy};

mod common;

const TTL: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(20);
const WINDOW: Duration = Duration::from_secs(180);

fn info(id: u64) -> DaemonInfo {
    DaemonInfo {
        id: DaemonId::from_bits(id),
        name: format!("host \\' \" {id} ä"),
        peer_address: format!("10.0.0.{}:1", id % 256),
        pg_address: "a:2".to_owned(),
        http_address: "b:3".to_owned(),
        flight_address: "c:4".to_owned(),
        zone: String::new(),
        build: "0.1.0-abc".to_owned(),
        protocol_min: 1,
        protocol_max: u16::MAX,
        cores: u32::MAX,
        cache_bytes: 1 << 40,
        certificate: [0xfe; 32],
    }
}

fn holder(id: u64, incarnation: u64) -> Holder {
    Holder { daemon: DaemonId::from_bits(id), incarnation }
}

async fn cluster(database: &Database) -> Cluster {
    database.open().await.cluster().unwrap()
}

/// Adds a daemon that is up.
async fn join_up(cluster: &Cluster, id: u64) -> Holder {
    let incarnation = cluster.join(&info(id), TTL).await.unwrap();
    let me = holder(id, incarnation);
    assert!(cluster.set_state(me, MemberState::Up).await.unwrap());
    me
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn there_is_no_cluster_on_a_file() {
    assert!(Database::sqlite().open().await.cluster().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_daemons_say_of_themselves_is_read_back() {
    let Some(database) = Database::postgres() else { return };
    let cluster = cluster(&database).await;
    let before = cluster.state().await.unwrap();
    assert_eq!((before.members.epoch(), before.format, before.daemons.len()), (0, 1, 0));
    let ids = [0, 1, i64::MAX as u64, 1 << 63, u64::MAX];
    for id in ids {
        assert_eq!(cluster.join(&info(id), TTL).await.unwrap(), 1);
    }
    let newer = DaemonInfo { zone: "east".to_owned(), cores: 0, ..info(1) };
    assert_eq!(cluster.join(&newer, TTL).await.unwrap(), 2);
    cluster.acquire("name '", "about \\", holder(0, 1), None, TTL).await.unwrap().unwrap();
    let state = cluster.state().await.unwrap();
    assert_eq!(state.members.epoch(), 6);
    assert_eq!(state.daemons.keys().map(|id| id.bits()).collect::<Vec<_>>(), ids);
    for id in ids {
        let expected = if id == 1 { newer.clone() } else { info(id) };
        assert_eq!(state.daemons[&DaemonId::from_bits(id)], expected);
        let row = state.members.get(DaemonId::from_bits(id)).unwrap();
        assert!(row.until.since(state.read_at) <= TTL, "{row:?} at {:?}", state.read_at);
        let life = state.lives[&DaemonId::from_bits(id)];
        assert!((clock::unix_ms() - life.joined_at_ms).abs() < 60_000, "{life:?}");
        assert_eq!(life.joined_at_ms, life.state_since_ms);
    }
    assert_eq!(state.leases["name '"].about, "about \\");
    // Another catalog of the same database is another cluster.
    let other = database.open_as("other").await.cluster().unwrap();
    let other_state = other.state().await.unwrap();
    assert!(other_state.daemons.is_empty() && other_state.leases.is_empty());
    for (name, code) in [("n".repeat(256), "22001"), ("a\0b".to_owned(), "22023")] {
        let error = cluster.acquire(&name, "", holder(0, 1), None, TTL).await.unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Invalid, code), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn living_daemons_have_numbers_of_their_own() {
    let Some(database) = Database::postgres() else { return };
    let mut joining = Vec::new();
    for id in 10..22 {
        let cluster = cluster(&database).await;
        joining.push(task::spawn(async move { cluster.join(&info(id), TTL).await.unwrap() }));
    }
    for joined in joining {
        joined.await.unwrap();
    }
    let cluster = cluster(&database).await;
    let numbers = async || {
        let state = cluster.state().await.unwrap();
        let living = state.lives.iter().filter(|(id, _)| {
            state.members.get(**id).is_some_and(|row| row.state != MemberState::Dead)
        });
        living.map(|(id, life)| (life.number, id.bits())).collect::<BTreeMap<_, _>>()
    };
    let all = numbers().await;
    assert_eq!(all.keys().copied().collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
    // Numbers of the dead are free again, the smallest first; a daemon that comes back may get another one.
    for number in [3, 7] {
        let leaves = holder(all[&number], 1);
        assert!(cluster.set_state(leaves, MemberState::Dead).await.unwrap());
    }
    cluster.join(&info(99), TTL).await.unwrap();
    cluster.join(&info(all[&3]), TTL).await.unwrap();
    cluster.join(&info(all[&7]), TTL).await.unwrap();
    let after = numbers().await;
    assert_eq!((after[&3], after[&7], after[&12]), (99, all[&3], all[&7]));
    // A new life of a living daemon keeps its number.
    cluster.join(&info(99), TTL).await.unwrap();
    assert_eq!(numbers().await, after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_race_for_a_lease_and_each_epoch_has_one_holder() {
    const GRANTS: usize = 300;
    let Some(database) = Database::postgres() else { return };
    let granted = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for number in 0..16 {
        let (cluster, granted) = (cluster(&database).await, Arc::clone(&granted));
        tasks.push(task::spawn(async move {
            let me = holder(number, 1);
            let mut epochs = Vec::new();
            while granted.load(Ordering::SeqCst) < GRANTS {
                let state = cluster.state().await.unwrap();
                let row = state.leases.get("job").map(|lease| lease.row);
                // Its own lease it lets expire, or gives back.
                if let Some(row) = row.filter(|row| row.holder == me) {
                    if number % 2 == 0 {
                        cluster.release("job", me, row.epoch).await.unwrap();
                    }
                    continue;
                }
                let until = row.map(|row| row.until);
                if let Some(epoch) = cluster.acquire("job", "", me, until, SHORT).await.unwrap() {
                    granted.fetch_add(1, Ordering::SeqCst);
                    epochs.push(epoch);
                }
            }
            epochs
        }));
    }
    let mut epochs = Vec::new();
    for task in tasks {
        epochs.extend(task.await.unwrap());
    }
    epochs.sort_unstable();
    let expected: Vec<u64> = (1..=epochs.len() as u64).collect();
    assert_eq!(epochs, expected);
    assert!(epochs.len() >= GRANTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_joins_give_each_incarnation_once() {
    let Some(database) = Database::postgres() else { return };
    let mut tasks = Vec::new();
    for number in 0..16 {
        let cluster = cluster(&database).await;
        tasks.push(task::spawn(async move {
            let id = number % 4;
            let mut lives = Vec::new();
            for _ in 0..20 {
                lives.push((id, cluster.join(&info(id), TTL).await.unwrap()));
            }
            lives
        }));
    }
    let mut lives = BTreeMap::<u64, BTreeSet<u64>>::new();
    for task in tasks {
        for (id, incarnation) in task.await.unwrap() {
            assert!(lives.entry(id).or_default().insert(incarnation), "{id} {incarnation}");
        }
    }
    let state = cluster(&database).await.state().await.unwrap();
    assert_eq!(state.members.epoch(), 16 * 20);
    for incarnations in lives.values() {
        assert_eq!(*incarnations, (1..=80).collect());
    }
    assert!(state.members.iter().all(|(_, row)| row.incarnation == 80));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn suspicions_at_once_declare_a_member_dead_once() {
    let Some(database) = Database::postgres() else { return };
    let clusters = [cluster(&database).await, cluster(&database).await, cluster(&database).await];
    let mut peers = Vec::new();
    for id in 1..=3 {
        peers.push(join_up(&clusters[0], id).await);
    }
    for _ in 0..40 {
        let victim = join_up(&clusters[0], 9).await;
        let epoch = clusters[0].state().await.unwrap().members.epoch();
        let suspect = |number: usize| clusters[number].suspect(victim, peers[number], WINDOW);
        let renewal = clusters[1].renew(victim, TTL);
        let (first, second, third, renewed) =
            tokio::join!(suspect(0), suspect(1), suspect(2), renewal);
        let dead = [first, second, third].map(|answer| u32::from(answer.unwrap()));
        assert_eq!(dead.iter().sum::<u32>(), 1);
        renewed.unwrap();
        let state = clusters[2].state().await.unwrap();
        assert!(!state.members.lives(victim));
        assert_eq!(state.members.epoch(), epoch + 1);
        assert!(!clusters[2].renew(victim, TTL).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_renewal_and_a_death_are_one_after_the_other() {
    let Some(database) = Database::postgres() else { return };
    let (renewing, expiring) = (cluster(&database).await, cluster(&database).await);
    let (mut renewals, mut deaths) = (0, 0);
    for _ in 0..100 {
        let incarnation = renewing.join(&info(1), Duration::ZERO).await.unwrap();
        let me = holder(1, incarnation);
        let until = renewing.state().await.unwrap().members.get(me.daemon).unwrap().until;
        let (renewed, died) = tokio::join!(renewing.renew(me, TTL), expiring.expire(me, until));
        let (renewed, died) = (renewed.unwrap(), died.unwrap());
        assert!(renewed != died, "one of them is first, and refuses the other");
        assert_eq!(renewing.state().await.unwrap().members.lives(me), renewed);
        renewals += u32::from(renewed);
        deaths += u32::from(died);
    }
    eprintln!("{renewals} renewals, {deaths} deaths were first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_happens_at_once_each_change_counts_once() {
    let Some(database) = Database::postgres() else { return };
    let mut tasks = Vec::new();
    for number in 0..8 {
        let cluster = cluster(&database).await;
        tasks.push(task::spawn(async move {
            let mut changes = 0;
            for round in 0..60 {
                let state = cluster.state().await.unwrap();
                let id = (number + round) % 5;
                let row = state.members.get(DaemonId::from_bits(id)).cloned();
                let life = holder(id, row.as_ref().map_or(0, |row| row.incarnation));
                let by = state.members.iter().find(|(by, _)| by.bits() != id);
                let by = by
                    .map_or(life, |(daemon, row)| Holder { daemon, incarnation: row.incarnation });
                let has_changed = match (number + round * 3) % 7 {
                    0 | 1 => cluster.join(&info(id), SHORT).await.unwrap() > 0,
                    2 => cluster.set_state(life, MemberState::Dead).await.unwrap(),
                    3 | 4 => cluster.suspect(life, by, WINDOW).await.unwrap(),
                    5 => {
                        let until = row.map(|row| row.until).unwrap_or_default();
                        cluster.expire(life, until).await.unwrap()
                    }
                    _ => cluster.remove(life.daemon).await.is_ok_and(|removed| removed),
                };
                changes += u64::from(has_changed);
            }
            changes
        }));
    }
    let mut changes = 0;
    for task in tasks {
        changes += task.await.unwrap();
    }
    assert_eq!(cluster(&database).await.state().await.unwrap().members.epoch(), changes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_account_that_may_not_create_is_a_member() {
    let Some(database) = Database::postgres() else { return };
    let name = format!("member_{}", stoa_env::random::u64());
    database.open().await;
    let rights = "REVOKE CREATE ON SCHEMA public FROM PUBLIC;
                  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO";
    database.run(&format!("CREATE ROLE {name} LOGIN; {rights} {name}")).await;
    let url = database.url().replace("//stoa@", &format!("//{name}@"));
    let cluster = Catalog::connect(&url, "stoa").await.unwrap().cluster().unwrap();
    let (me, other) = (join_up(&cluster, 1).await, join_up(&cluster, 2).await);
    assert!(cluster.renew(me, TTL).await.unwrap());
    assert_eq!(cluster.acquire("job", "", me, None, TTL).await.unwrap(), Some(1));
    assert!(cluster.renew_lease("job", me, 1, TTL).await.unwrap());
    assert!(cluster.release("job", me, 1).await.unwrap());
    assert!(cluster.forget_lease("job", me, 1).await.unwrap());
    assert!(cluster.suspect(other, me, WINDOW).await.unwrap());
    assert!(cluster.remove(other.daemon).await.unwrap());
    database.run(&format!("REVOKE ALL ON stoa_daemons FROM {name}")).await;
    let error = cluster.renew(me, TTL).await.unwrap_err();
    assert_eq!(error.sqlstate(), "42501", "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn only_the_dead_are_removed_and_come_back_as_somebody_new() {
    let Some(database) = Database::postgres() else { return };
    let cluster = cluster(&database).await;
    let (me, other) = (join_up(&cluster, 1).await, join_up(&cluster, 2).await);
    let error = cluster.remove(me.daemon).await.unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Conflict, "55006"));
    assert!(error.message().contains(&me.daemon.to_string()) && error.hint().is_some());
    assert!(cluster.suspect(other, me, WINDOW).await.unwrap());
    let epoch = cluster.state().await.unwrap().members.epoch();
    assert!(cluster.remove(other.daemon).await.unwrap());
    assert!(!cluster.remove(other.daemon).await.unwrap());
    let state = cluster.state().await.unwrap();
    assert_eq!(state.members.epoch(), epoch + 1);
    assert!(state.members.get(other.daemon).is_none() && state.daemons.len() == 1);
    assert!(!cluster.renew(other, TTL).await.unwrap());
    assert_eq!(cluster.join(&info(2), TTL).await.unwrap(), other.incarnation + 1);
    assert!(
        cluster.state().await.unwrap().members.get(other.daemon).unwrap().suspicions.is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_of_a_catalog_has_no_members_of_it() {
    let Some(database) = Database::postgres() else { return };
    let source = database.open().await;
    source.create_namespace("public", &BTreeMap::new()).await.unwrap();
    let target = database.another().open_as("copy").await;
    let (old, new) = (source.cluster().unwrap(), target.cluster().unwrap());
    let me = join_up(&old, 1).await;
    old.acquire("job", "", me, None, TTL).await.unwrap();
    // A daemon that runs on the empty target does not keep the copy from being made.
    join_up(&new, 2).await;
    let before = new.state().await.unwrap();
    source.copy_to(&target).await.unwrap();
    let after = new.state().await.unwrap();
    assert_eq!((after.members, after.leases), (before.members, before.leases));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_catalog_of_an_older_version_gets_the_tables_of_the_cluster() {
    let Some(database) = Database::postgres() else { return };
    database.open().await.create_namespace("public", &BTreeMap::new()).await.unwrap();
    database.run("DROP TABLE stoa_cluster, stoa_daemons, stoa_suspicions, stoa_leases").await;
    let catalog = database.open().await;
    join_up(&catalog.cluster().unwrap(), 1).await;
    assert_eq!(catalog.namespaces().await.unwrap(), ["public"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_joins_a_cluster_of_a_newer_format() {
    let Some(database) = Database::postgres() else { return };
    let cluster = cluster(&database).await;
    let me = join_up(&cluster, 1).await;
    database.run("UPDATE stoa_cluster SET format = 2").await;
    let before = cluster.state().await.unwrap();
    assert_eq!(before.format, 2);
    for id in [1, 2] {
        let error = cluster.join(&info(id), TTL).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
        assert!(error.message().contains("format 2") && error.hint().is_some());
    }
    let after = cluster.state().await.unwrap();
    assert_eq!((before.members, before.daemons), (after.members, after.daemons));
    assert!(cluster.renew(me, TTL).await.unwrap(), "who is in, stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_are_notified_and_renewals_are_not() {
    let Some(database) = Database::postgres() else { return };
    let cluster = cluster(&database).await;
    let mut listener = PgListener::connect(database.url()).await.unwrap();
    listener.listen("stoa_cluster").await.unwrap();
    let incarnation = cluster.join(&info(1), TTL).await.unwrap();
    assert_eq!(listener.recv().await.unwrap().payload(), "stoa");
    let me = holder(1, incarnation);
    cluster.renew(me, TTL).await.unwrap();
    assert!(!cluster.renew_lease("job", me, 1, TTL).await.unwrap());
    // What is sent next comes next, so none was sent before.
    database.run("NOTIFY stoa_cluster, 'end'").await;
    assert_eq!(listener.recv().await.unwrap().payload(), "end");
    cluster.acquire("job", "", me, None, TTL).await.unwrap();
    assert_eq!(listener.recv().await.unwrap().payload(), "stoa");
    cluster.set_state(me, MemberState::Up).await.unwrap();
    assert_eq!(listener.recv().await.unwrap().payload(), "stoa");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hints_come_from_other_daemons_and_go_on_after_a_restart() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else { return };
    let url = server.database();
    let catalog = Catalog::connect(&url, "stoa").await.unwrap();
    let mut hints = catalog.cluster().unwrap().hints();
    hints.next().await;
    let other = Catalog::connect(&url, "stoa").await.unwrap().cluster().unwrap();
    let stranger = Catalog::connect(&url, "stranger").await.unwrap().cluster().unwrap();
    let me = join_up(&other, 1).await;
    hints.next().await;
    server.stop();
    server.begin();
    // Told by the new connection.
    hints.next().await;
    // Drains what is still on its way.
    while stoa_env::timer::timeout(Duration::from_millis(300), hints.next()).await.is_ok() {}
    join_up(&stranger, 1).await;
    let next = stoa_env::timer::timeout(Duration::from_millis(300), hints.next()).await;
    assert!(next.is_err(), "another catalog's changes are no hint");
    other.acquire("job", "", me, None, TTL).await.unwrap();
    hints.next().await;
    catalog.close().await;
    let next = stoa_env::timer::timeout(Duration::from_millis(300), hints.next()).await;
    assert!(next.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_that_waits_keeps_no_renewal_waiting() {
    let Some(database) = Database::postgres() else { return };
    let cluster = cluster(&database).await;
    let me = join_up(&cluster, 1).await;
    let mut blocking = PgConnection::connect(database.url()).await.unwrap();
    blocking.execute("BEGIN; SELECT FROM stoa_cluster FOR UPDATE").await.unwrap();
    let started = clock::monotonic();
    let waiting = (0..8).map(|_| cluster.set_state(me, MemberState::Draining));
    let waiting = futures::future::join_all(waiting);
    let renewing = async {
        for _ in 0..100 {
            assert!(cluster.renew(me, TTL).await.unwrap());
            cluster.state().await.unwrap();
            assert!(cluster.acquire("job", "", me, None, TTL).await.unwrap().is_some());
        }
        started.elapsed()
    };
    let (refused, renewed) = tokio::join!(waiting, renewing);
    assert!(renewed < Duration::from_secs(2), "{renewed:?}");
    for answer in refused {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert!(started.elapsed() < Duration::from_secs(7), "{:?}", started.elapsed());
    blocking.execute("COMMIT").await.unwrap();
    assert!(cluster.set_state(me, MemberState::Draining).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_silent_database_is_unavailable_within_seconds() {
    let Some(database) = Database::postgres() else { return };
    let port = PostgresServer::shared().unwrap().port();
    let proxy = Proxy::before(port).await;
    let catalog = Catalog::connect(&proxy.url(database.url()), "stoa").await.unwrap();
    let cluster = catalog.cluster().unwrap();
    let me = join_up(&cluster, 1).await;
    assert!(cluster.renew(me, TTL).await.unwrap());
    cluster.state().await.unwrap();
    proxy.set(Cut::Silence);
    let other = info(2);
    let started = clock::monotonic();
    let (renewed, read, joined) =
        tokio::join!(cluster.renew(me, TTL), cluster.state(), cluster.join(&other, TTL));
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    for error in [renewed.unwrap_err(), read.map(|_| ()).unwrap_err(), joined.unwrap_err()] {
        assert_eq!((error.kind(), error.hint().is_some()), (ErrorKind::Unavailable, true));
    }
    proxy.set(Cut::Never);
    assert!(cluster.renew(me, TTL).await.is_ok());
    catalog.close().await;
    assert_eq!(cluster.renew(me, TTL).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_first_renewal_after_a_restart_of_the_database_succeeds() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else { return };
    let cluster = Catalog::connect(&server.database(), "stoa").await.unwrap().cluster().unwrap();
    let me = join_up(&cluster, 1).await;
    assert!(cluster.renew(me, TTL).await.unwrap());
    assert_eq!(cluster.acquire("job", "", me, None, TTL).await.unwrap(), Some(1));
    let before = cluster.state().await.unwrap();
    server.stop();
    let error = cluster.renew(me, TTL).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    server.begin();
    assert!(cluster.renew(me, TTL).await.unwrap());
    assert!(cluster.renew_lease("job", me, 1, TTL).await.unwrap());
    let after = cluster.state().await.unwrap();
    assert_eq!((before.members.epoch(), before.daemons), (after.members.epoch(), after.daemons));
}
