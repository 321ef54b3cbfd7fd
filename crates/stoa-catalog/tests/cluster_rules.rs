//! The statements of members and leases against their model: random histories, every answer and every row.
//!
//! Both have the same clock. The database's is a function of a schema that the search path names before
//! `pg_catalog`, so the statements are those that a daemon sends.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection};
use stoa_catalog::{Catalog, Cluster, DaemonInfo};
use stoa_cluster::lease::{Arbiter, Holder};
use stoa_cluster::membership::{Member, MemberState, MemberTable};
use stoa_cluster::{DaemonId, DatabaseTime};

use self::common::Database;

mod common;

const HISTORIES: u64 = 20;
const STEPS: usize = 400;
const TTL: Duration = Duration::from_millis(20);
const WINDOW: Duration = Duration::from_millis(10);
/// Of the clock, in microseconds. It divides both of the above, so that "until" is often exactly now.
const TICK: u64 = 2500;
const DAEMONS: [u64; 5] = [0, 7, 1 << 63, u64::MAX, 42];
const LEASES: [&str; 3] = ["log", "maintenance '", "ä"];

const CLOCK: &str = "CREATE SCHEMA simulated;
    CREATE TABLE simulated.present (at TIMESTAMPTZ NOT NULL);
    INSERT INTO simulated.present VALUES ('epoch');
    CREATE FUNCTION simulated.clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE sql VOLATILE
        AS 'SELECT at FROM simulated.present'";

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// The database and the model of it.
struct Twins {
    cluster: Cluster,
    admin: PgConnection,
    members: MemberTable,
    leases: Arbiter<String>,
    now: DatabaseTime,
    dice: Dice,
    steps: usize,
    /// How often each answer was given.
    answers: BTreeMap<String, u64>,
}

impl Twins {
    /// Moves both clocks, sometimes backwards, as after a failover.
    async fn pass_time(&mut self) {
        let now = u64::try_from(self.now.0.as_micros()).unwrap();
        let now = match self.dice.below(20) {
            0 => now - TICK * self.dice.below(12),
            1..5 => now,
            5 => now + 24 * TICK,
            _ => now + TICK * self.dice.below(3),
        };
        self.now = DatabaseTime(Duration::from_micros(now));
        let set = "UPDATE simulated.present
                   SET at = timestamptz 'epoch' + $1 * interval '1 microsecond'";
        let set = sqlx::query(set).bind(i64::try_from(now).unwrap());
        self.admin.execute(set).await.unwrap();
    }

    /// A life of a daemon: mostly its newest, sometimes one that has ended or has not begun.
    fn life(&mut self) -> Holder {
        // For some steps, much happens to one and the same.
        let favourite = DAEMONS[self.steps / 16 % DAEMONS.len()];
        let daemon = [favourite, self.dice.one_of(&DAEMONS)][usize::from(self.dice.below(2) == 0)];
        let daemon = DaemonId::from_bits(daemon);
        let newest = self.members.get(daemon).map_or(0, |row| row.incarnation);
        let incarnation = match self.dice.below(8) {
            0 => newest.saturating_sub(1),
            1 => newest + 1,
            _ => newest,
        };
        Holder { daemon, incarnation }
    }

    /// A point in time as it was read, or a little later.
    fn observed(&mut self, until: DatabaseTime) -> DatabaseTime {
        until + Duration::from_micros(u64::from(self.dice.below(5) == 0))
    }

    fn note(&mut self, what: &str, database: impl PartialEq + std::fmt::Debug, model: String) {
        let database = format!("{database:?}");
        assert_eq!(database, model, "{what} at {:?}", self.now);
        let is_refused = ["false", "None"].contains(&model.as_str());
        *self.answers.entry(format!("{what}: {}", !is_refused)).or_default() += 1;
    }

    async fn step(&mut self) {
        self.steps += 1;
        self.pass_time().await;
        let cluster = self.cluster.clone();
        let (now, ttl, life) = (self.now, TTL, self.life());
        match self.dice.below(26) {
            0..3 => {
                let id = life.daemon;
                let joined = cluster.join(&info(id), ttl).await.unwrap();
                let expected = self.members.join(id, ttl, now);
                self.note("join", joined, format!("{expected:?}"));
            }
            3..6 => {
                let renewed = cluster.renew(life, ttl).await.unwrap();
                let expected = self.members.renew(life, ttl, now);
                self.note("renew", renewed, format!("{expected:?}"));
            }
            6..9 => {
                use MemberState::{Dead, Draining, Joining, Up};
                let state = self.dice.one_of(&[Joining, Up, Up, Up, Up, Draining, Dead]);
                let set = cluster.set_state(life, state).await.unwrap();
                let expected = self.members.set_state(life, state);
                self.note("set_state", set, format!("{expected:?}"));
            }
            9..12 => {
                let by = self.life();
                let dead = cluster.suspect(life, by, WINDOW).await.unwrap();
                let expected = self.members.suspect(life, by, WINDOW, now);
                self.note("suspect", dead, format!("{expected:?}"));
            }
            12..14 => {
                let until = self.members.get(life.daemon).map_or(now, |row| row.until);
                let until = self.observed(until);
                let dead = cluster.expire(life, until).await.unwrap();
                let expected = self.members.expire(life, until, now);
                self.note("expire", dead, format!("{expected:?}"));
            }
            14..16 => {
                let (mut life, mut by) = (life, self.life());
                let mut several = vec![];
                if self.dice.below(4) == 0 {
                    // Among several that are up, one suspicion waits for another one.
                    for number in 0..3 {
                        several.push(self.set_up(DaemonId::from_bits(number)).await);
                    }
                    (life, by) = (several[0], several[1]);
                    let dead = cluster.suspect(life, by, WINDOW).await.unwrap();
                    let expected = self.members.suspect(life, by, WINDOW, now);
                    self.note("suspect", dead, format!("{expected:?}"));
                }
                let done = cluster.trust(life, by).await.unwrap();
                let expected = self.members.trust(life, by);
                self.note("trust", done, format!("{expected:?}"));
                for life in several {
                    self.set_state(life, MemberState::Dead).await;
                }
            }
            16 => {
                let removed = cluster.remove(life.daemon).await.is_ok_and(|removed| removed);
                let expected = self.members.remove(life.daemon);
                self.note("remove", removed, format!("{expected:?}"));
            }
            _ => self.step_of_lease(life).await,
        }
        self.compare().await;
    }

    /// A new life, which is up.
    async fn set_up(&mut self, daemon: DaemonId) -> Holder {
        let incarnation = self.cluster.join(&info(daemon), TTL).await.unwrap();
        assert_eq!(incarnation, self.members.join(daemon, TTL, self.now));
        let life = Holder { daemon, incarnation };
        self.set_state(life, MemberState::Up).await;
        life
    }

    async fn set_state(&mut self, life: Holder, state: MemberState) {
        let set = self.cluster.set_state(life, state).await.unwrap();
        assert_eq!(set, self.members.set_state(life, state));
    }

    async fn step_of_lease(&mut self, life: Holder) {
        let cluster = self.cluster.clone();
        let (now, ttl, name) = (self.now, TTL, self.dice.one_of(&LEASES));
        let key = name.to_owned();
        let row = self.leases.row(&key).copied();
        // Mostly who has it.
        let life = match (row, self.dice.below(3)) {
            (Some(row), 1..) => row.holder,
            _ => life,
        };
        let epoch = row.map_or(1, |row| row.epoch) + u64::from(self.dice.below(8) == 0);
        match self.dice.below(9) {
            0..4 => {
                let until = row.map(|row| self.observed(row.until));
                let life = if self.dice.below(2) == 0 { self.life() } else { life };
                let granted = cluster.acquire(name, "a test", life, until, ttl).await.unwrap();
                let expected = self.leases.acquire(key, life, until, ttl, now);
                self.note("acquire", granted, format!("{expected:?}"));
            }
            4..6 => {
                let renewed = cluster.renew_lease(name, life, epoch, ttl).await.unwrap();
                let expected = self.leases.renew(&key, life, epoch, ttl, now);
                self.note("renew_lease", renewed, format!("{expected:?}"));
            }
            6..8 => {
                let released = cluster.release(name, life, epoch).await.unwrap();
                let expected = self.leases.release(&key, life, epoch);
                self.note("release", released, format!("{expected:?}"));
            }
            _ => {
                let forgotten = cluster.forget_lease(name, life, epoch).await.unwrap();
                let expected = self.leases.forget(&key, life, epoch);
                self.note("forget_lease", forgotten, format!("{expected:?}"));
            }
        }
    }

    async fn compare(&self) {
        let state = self.cluster.state().await.unwrap();
        assert_eq!(state.read_at, self.now);
        assert_eq!(state.members.epoch(), self.members.epoch());
        assert_eq!(rows(&state.members), rows(&self.members));
        let infos = self.members.iter().map(|(id, _)| (id, info(id)));
        assert_eq!(state.daemons, infos.collect());
        let leases = state.leases.iter().map(|(name, lease)| (name, &lease.row));
        assert!(leases.eq(self.leases.iter()), "{:?}, not {:?}", state.leases, self.leases);
    }
}

/// The rows of a table; suspicions by daemon, because two at the same time have no order.
fn rows(table: &MemberTable) -> Vec<(DaemonId, Member)> {
    let rows = table.iter().map(|(daemon, row)| {
        let mut row = row.clone();
        row.suspicions.sort_unstable();
        (daemon, row)
    });
    rows.collect()
}

fn info(id: DaemonId) -> DaemonInfo {
    DaemonInfo {
        id,
        name: format!("host-{id}"),
        peer_address: "a:1".to_owned(),
        pg_address: "a:2".to_owned(),
        http_address: "a:3".to_owned(),
        flight_address: "a:4".to_owned(),
        zone: "z".to_owned(),
        build: "b".to_owned(),
        protocol_min: 1,
        protocol_max: 2,
        cores: 3,
        cache_bytes: 4,
        certificate: [5; 32],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn statements_answer_as_the_model_does() {
    let Some(database) = Database::postgres() else { return };
    database.run(CLOCK).await;
    let url = format!("{}?options=-csearch_path%3Dsimulated,pg_catalog", database.url());
    let mut answers = BTreeMap::<String, u64>::new();
    for seed in 0..HISTORIES {
        // Each is a cluster of its own in the same tables.
        let catalog = Catalog::connect(&url, &format!("history {seed}")).await.unwrap();
        let mut twins = Twins {
            cluster: catalog.cluster().unwrap(),
            admin: PgConnection::connect(database.url()).await.unwrap(),
            members: MemberTable::default(),
            leases: Arbiter::default(),
            now: DatabaseTime(Duration::from_micros(1_800_000_000_000_001)),
            dice: Dice(seed),
            steps: 0,
            answers: BTreeMap::new(),
        };
        for _ in 0..STEPS {
            twins.step().await;
        }
        for (answer, times) in twins.answers {
            *answers.entry(answer).or_default() += times;
        }
        catalog.close().await;
    }
    eprintln!("{answers:#?}");
    // Of nothing there is only one kind of answer, but for a join.
    assert_eq!(answers.len(), 21, "{answers:#?}");
    assert!(answers.values().all(|times| *times >= 20), "{answers:#?}");
}
