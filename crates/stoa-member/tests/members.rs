//! Three daemons over one catalog in a real PostgreSQL, in one process: each with connections, a log and a
//! peer port of its own.
//!
//! The oracle is a ledger outside of them: every number that was acknowledged, by any, is shown by all, once.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use futures::future::BoxFuture;
use stoa_catalog::DaemonInfo;
use stoa_cluster::DaemonId;
use stoa_cluster::lease::LeaseOptions;
use stoa_cluster::membership::{MemberOptions, MemberState};
use stoa_ingest::{Durability, FlushLimits, Ingest, IngestOptions};
use stoa_member::{JoinOptions, Member, Service, ServiceKind};
use stoa_table::{CatalogPlace, Table, TableIdent, TableSpec, Warehouse, WarehouseOptions};
use stoa_testkit::PostgresServer;
use tokio::net::TcpListener;
use url::Url;

/// A daemon without SQL.
struct Daemon {
    warehouse: Warehouse,
    ingest: Ingest,
    member: Member,
}

/// Where daemons meet.
struct Place {
    folder: tempfile::TempDir,
    database: String,
}

impl Place {
    fn new() -> Option<Self> {
        let database = PostgresServer::shared()?.database();
        Some(Self { folder: tempfile::tempdir().unwrap(), database })
    }

    fn url(&self, name: &str) -> Url {
        Url::from_file_path(self.folder.path().join(name)).unwrap()
    }

    async fn warehouse(&self) -> Warehouse {
        let catalog = Some(CatalogPlace::Postgres(self.database.clone()));
        let options = WarehouseOptions { catalog, ..WarehouseOptions::new(self.url("warehouse")) };
        Warehouse::open_with(&options).await.unwrap()
    }

    /// Starts a daemon, whose host is called `host`.
    async fn daemon(&self, host: &str) -> Daemon {
        self.try_daemon(host, "127.0.0.1", false).await.unwrap()
    }

    async fn try_daemon(
        &self,
        host: &str,
        address: &str,
        local_log: bool,
    ) -> stoa_error::Result<Daemon> {
        let warehouse = self.warehouse().await;
        let log = self.url(&format!("log/{}", stoa_env::random::u64()));
        let never = FlushLimits {
            rows: u64::MAX,
            age: Duration::from_secs(1 << 30),
            ..FlushLimits::default()
        };
        let options = IngestOptions { ships: true, flush: never, ..IngestOptions::default() };
        let (ingest, _) = Ingest::open(warehouse.clone(), &log, options.clone()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let none = String::new;
        let info = DaemonInfo {
            id: DaemonId::from_bits(0),
            name: host.to_owned(),
            peer_address: format!("{address}:{port}"),
            pg_address: none(),
            http_address: none(),
            flight_address: none(),
            zone: none(),
            build: "test".to_owned(),
            protocol_min: 1,
            protocol_max: 1,
            cores: 1,
            cache_bytes: 0,
            certificate: [0; 32],
        };
        let lease = LeaseOptions {
            ttl: Duration::from_secs(3),
            renew_each: Duration::from_millis(500),
            margin: Duration::from_millis(300),
        };
        let members =
            MemberOptions { lease, read_each: Duration::from_secs(1), ..MemberOptions::default() };
        let options = JoinOptions {
            folder: self.folder.path().join("ids"),
            listener,
            info,
            log,
            local_log,
            ingest: options,
            members,
        };
        let member = Member::join(warehouse.clone(), ingest.clone(), options).await?.unwrap();
        Ok(Daemon { warehouse, ingest, member })
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]))
}

fn rows(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids = Int64Array::from_iter_values(ids);
    RecordBatch::try_new(schema(), vec![Arc::new(ids)]).unwrap()
}

fn ident() -> TableIdent {
    TableIdent::new("public", "t")
}

impl Daemon {
    async fn make_table(&self) -> Table {
        self.warehouse.create_table(&ident(), TableSpec::new(schema())).await.unwrap()
    }

    async fn append(&self, ids: impl IntoIterator<Item = i64>) {
        let table = self.warehouse.table(&ident()).await.unwrap();
        self.ingest.append(&table, rows(ids), Durability::Synced).await.unwrap();
    }

    /// The ids that an exact read shows, sorted; none of rows in files.
    async fn fresh(&self) -> Vec<i64> {
        loop {
            self.member.wait_until_exact().await.unwrap();
            let snapshot = self.ingest.snapshot(&ident()).await.unwrap();
            if !self.member.is_exact() {
                continue;
            }
            let batches = snapshot.fresh.batches().map(|batch| batch.unwrap());
            let ids = batches
                .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
            let mut ids: Vec<i64> = ids.collect();
            ids.sort_unstable();
            return ids;
        }
    }

    /// Rows in files and fresh ones.
    async fn count(&self) -> u64 {
        self.member.wait_until_exact().await.unwrap();
        let snapshot = self.ingest.snapshot(&ident()).await.unwrap();
        let scan = snapshot.table.plan_scan(&stoa_orc::Predicate::always()).await.unwrap();
        let stored: u64 = scan.files.iter().map(|file| file.rows).sum();
        stored + snapshot.fresh.rows()
    }

    fn state_of(&self, daemon: DaemonId) -> Option<MemberState> {
        let members = self.member.status().members;
        members.into_iter().find(|member| member.info.id == daemon).map(|member| member.state)
    }
}

/// Waits for a fact.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = stoa_env::clock::monotonic();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "in vain: {what}");
        stoa_env::timer::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_one_has_acknowledged_all_show() {
    let Some(place) = Place::new() else { return };
    let first = place.daemon("here").await;
    first.make_table().await;
    first.append(0..3).await;
    let second = place.daemon("here").await;
    // The second one joined after the rows were acknowledged, and does not answer before it has them.
    assert_eq!(second.fresh().await, [0, 1, 2]);
    let third = place.daemon("here").await;
    let daemons = [first, second, third];
    let mut all = vec![0, 1, 2];
    for round in 0..30_i64 {
        let ids = [3 + 2 * round, 4 + 2 * round];
        daemons[round as usize % 3].append(ids).await;
        all.extend(ids);
        for daemon in &daemons {
            assert_eq!(daemon.fresh().await, all, "round {round}");
        }
    }
    for daemon in &daemons {
        until("all are up", || {
            let states = daemons.iter().map(|d| daemon.state_of(d.member.id()));
            states.into_iter().all(|state| state == Some(MemberState::Up))
        })
        .await;
        assert_eq!(daemon.member.status().logs.len(), 3);
    }
    // A statement that rewrites the table has all rows in its files.
    let table = daemons[1].warehouse.table(&ident()).await.unwrap();
    let hold = daemons[1].ingest.hold_flush(&table).await.unwrap();
    let scan = hold.table().plan_scan(&stoa_orc::Predicate::always()).await.unwrap();
    assert_eq!(scan.files.iter().map(|file| file.rows).sum::<u64>(), 63);
    drop(hold);
    for daemon in &daemons {
        assert_eq!(daemon.fresh().await, [0_i64; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_that_leaves_takes_its_log_along() {
    let Some(place) = Place::new() else { return };
    let (first, second) = (place.daemon("here").await, place.daemon("here").await);
    first.make_table().await;
    second.append(0..5).await;
    assert_eq!(first.fresh().await, [0, 1, 2, 3, 4]);
    let leaving = second.member.id();
    second.member.drain().await;
    until("others see it drain", || first.state_of(leaving) == Some(MemberState::Draining)).await;
    second.ingest.close(true).await.unwrap();
    second.member.leave(true).await;
    until("others see it gone", || first.state_of(leaving) == Some(MemberState::Dead)).await;
    until("its log is retired", || first.member.status().logs.len() == 1).await;
    assert_eq!(first.fresh().await, [0_i64; 0]);
    assert_eq!(first.count().await, 5);
    // Nobody waits for it any more.
    first.append(5..6).await;
    assert_eq!(second.member.wait_until_exact().await.unwrap_err().sqlstate(), "57P01");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_one_leaves_behind_is_taken_over() {
    let Some(place) = Place::new() else { return };
    let (first, second) = (place.daemon("here").await, place.daemon("here").await);
    first.make_table().await;
    second.append(0..5).await;
    // Its rows are in its log only.
    second.ingest.close(false).await.unwrap();
    let vanished = second.member.id();
    second.member.leave(false).await;
    until("its log was taken over", || first.member.status().takeovers == 1).await;
    assert_eq!(first.state_of(vanished), Some(MemberState::Dead));
    assert_eq!(first.count().await, 5);
    until("its log is retired", || first.member.status().logs.len() == 1).await;
    first.append(5..6).await;
    // A new one has to hear of nobody but the first.
    let third = place.daemon("here").await;
    assert_eq!(third.count().await, 6);
    assert_eq!(first.count().await, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn daemons_that_cannot_reach_each_other_do_not_join() {
    let Some(place) = Place::new() else { return };
    let _first = place.daemon("here").await;
    let error = place.try_daemon("there", "127.0.0.1", true).await.err().unwrap();
    assert!(error.message().contains("would not reach each other"), "{error}");
    let place = Place::new().unwrap();
    let _first = place.try_daemon("here", "10.0.0.1", true).await.unwrap();
    let error = place.try_daemon("there", "10.0.0.2", false).await.err().unwrap();
    assert!(error.message().contains("commit log is on a disk of there"), "{error}");
    assert!(error.hint().unwrap().contains("allow_local_log"));
    place.try_daemon("there", "10.0.0.2", true).await.unwrap();
}

/// Ids stay with the folder, and are used by one process at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_daemon_that_starts_again_is_the_same_one() {
    let Some(place) = Place::new() else { return };
    let first = place.daemon("here").await;
    let id = first.member.id();
    first.ingest.close(true).await.unwrap();
    first.member.leave(true).await;
    let Daemon { member, ingest, warehouse } = first;
    drop((member, ingest, warehouse));
    assert!(Path::new(&place.folder.path().join("ids").join("daemon-0.id")).exists());
    let again = place.daemon("here").await;
    let status = again.member.status();
    if again.member.id() == id {
        assert!(status.members[0].incarnation > 1);
    } else {
        // Tasks of the first one may still hold the file.
        assert_eq!(status.members.len(), 2);
    }
}

struct Echo;

impl Service for Echo {
    fn answer(&self, from: DaemonId, body: Bytes) -> BoxFuture<'static, stoa_error::Result<Bytes>> {
        Box::pin(async move {
            if body.is_empty() {
                let error =
                    stoa_error::Error::not_found("nothing was asked").with_sqlstate("02000");
                return Err(error.with_hint("ask"));
            }
            Ok([&from.bits().to_le_bytes()[..], &body].concat().into())
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn daemons_ask_each_other_for_services() {
    let Some(place) = Place::new() else { return };
    let (one, two) = (place.daemon("here").await, place.daemon("here").await);
    let (a, b) = (&one.member, &two.member);
    let limit = Duration::from_secs(20);
    let ask = |body| a.ask_others(ServiceKind::Kill, Bytes::from_static(body), limit);
    let unknown = loop {
        // The first may not have read yet that there is another.
        if let Some((_, answer)) = ask(b"x").await.pop() {
            break answer.unwrap_err();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(unknown.sqlstate(), "0A000", "{unknown}");
    b.serve(ServiceKind::Kill, Arc::new(Echo));
    let answers = ask(b"x").await;
    let [(daemon, Ok(answer))] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(*daemon, b.id());
    assert_eq!((a.number(), b.number()), (0, 1));
    assert_eq!([0, 1, 2].map(|number| a.numbered(number)), [Some(a.id()), Some(b.id()), None]);
    assert_eq!(answer[..], [&a.id().bits().to_le_bytes()[..], b"x"].concat());
    let [(_, Err(error))] = &ask(b"").await[..] else { panic!() };
    assert_eq!((error.sqlstate(), error.hint()), ("02000", Some("ask")));
    let ended = b.ask(DaemonId::from_bits(1), ServiceKind::Kill, Bytes::new(), limit).await;
    assert_eq!(ended.unwrap_err().kind(), stoa_error::ErrorKind::Unavailable);
}
