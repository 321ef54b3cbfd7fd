//! Three members in one process, each on a runtime and behind lines of its own, under faults.
//!
//! Writers, readers and holders go to any of them, while one fault follows the other. The oracle is a ledger
//! outside of the members:
//!
//! - an exact read shows, once, each row that was acknowledged before it began;
//! - no read shows a row twice or one that nobody has written, and none that goes on at the same member lacks a
//!   row that an earlier one has shown;
//! - a table that is held has all rows in its files that were acknowledged before;
//! - in the end all acknowledged rows are in files, once.
//!
//! `STOA_MEMBER_FAULTS=N` runs N rounds with other seeds.
#![allow(clippy::unwrap_used)]

mod network;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::FutureExt;
use network::{DATABASE, Network, Place};
use parking_lot::Mutex;
use stoa_catalog::DaemonInfo;
use stoa_cluster::DaemonId;
use stoa_cluster::lease::LeaseOptions;
use stoa_cluster::membership::MemberOptions;
use stoa_env::{clock, task, timer};
use stoa_error::Result;
use stoa_ingest::{Durability, FlushLimits, Ingest, IngestOptions};
use stoa_member::{JoinOptions, Member};
use stoa_orc::{Decoder, Predicate, Projection, ReadOptions, Step, TailDecoder, TailStep};
use stoa_table::{CatalogPlace, Table, TableIdent, TableSpec, Warehouse, WarehouseOptions};
use stoa_testkit::PostgresServer;
use tokio::runtime::{Builder, Handle, Runtime};
use url::Url;

const PLACES: usize = 3;
const WRITERS: usize = 5;
const READERS: usize = 4;
const HOLDERS: usize = 2;

/// Within which time everything works again after a fault.
const RECOVERY_LIMIT: Duration = Duration::from_secs(60);

/// SplitMix64.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    async fn sleep_ms(&mut self, from: u64, to: u64) {
        timer::sleep(Duration::from_millis(from + self.below(to - from))).await;
    }
}

/// What was written, outside of the members.
#[derive(Default)]
struct Ledger {
    /// Rows that somebody has begun to write.
    begun: Mutex<i64>,
    /// In the order of their acknowledgements.
    acknowledged: Mutex<Vec<i64>>,
    exact_reads: AtomicU64,
    other_reads: AtomicU64,
    holds: AtomicU64,
}

impl Ledger {
    fn begin(&self, rows: i64) -> std::ops::Range<i64> {
        let mut begun = self.begun.lock();
        *begun += rows;
        *begun - rows..*begun
    }

    fn acknowledge(&self, ids: std::ops::Range<i64>) {
        self.acknowledged.lock().extend(ids);
    }

    fn count(&self) -> usize {
        self.acknowledged.lock().len()
    }

    /// Checks rows that were shown; gives them as a set.
    fn check(&self, what: &str, shown: Vec<i64>, acknowledged: usize) -> BTreeSet<i64> {
        let count = shown.len();
        let set: BTreeSet<i64> = shown.into_iter().collect();
        assert_eq!(set.len(), count, "{what}: rows are shown twice");
        assert!(set.last() < Some(&self.begun.lock()), "{what}: rows that nobody has written");
        let acknowledged = self.acknowledged.lock()[..acknowledged].to_vec();
        let missing: Vec<i64> = acknowledged.into_iter().filter(|id| !set.contains(id)).collect();
        assert_eq!(missing, [0_i64; 0], "{what}: acknowledged rows are missing, of {count}");
        set
    }
}

/// A daemon without SQL.
struct Daemon {
    /// Counted over all places.
    number: u64,
    runtime: Handle,
    warehouse: Warehouse,
    ingest: Ingest,
    member: Member,
}

/// A place and who has it now.
struct Slot {
    daemon: Arc<Daemon>,
    runtime: Option<Runtime>,
}

struct Test {
    folder: tempfile::TempDir,
    server: PostgresServer,
    database: String,
    network: Arc<Network>,
    slots: Vec<Mutex<Option<Slot>>>,
    started: AtomicU64,
    ledger: Ledger,
    /// The rows of data files, which do not change.
    files: Mutex<HashMap<String, Arc<Vec<i64>>>>,
    is_over: AtomicBool,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]))
}

fn ident() -> TableIdent {
    TableIdent::new("public", "t")
}

fn column(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

impl Test {
    fn new() -> Option<Arc<Self>> {
        let server = PostgresServer::start(&["fsync=off", "max_connections=300"])?;
        let database = server.database();
        let network = Network::new();
        network.listens(DATABASE, server.port());
        Some(Arc::new(Self {
            folder: tempfile::tempdir().unwrap(),
            server,
            database,
            network,
            slots: (0..PLACES).map(|_| Mutex::default()).collect(),
            started: AtomicU64::new(0),
            ledger: Ledger::default(),
            files: Mutex::default(),
            is_over: AtomicBool::new(false),
        }))
    }

    fn url(&self, name: &str) -> Url {
        Url::from_file_path(self.folder.path().join(name)).unwrap()
    }

    /// Starts a daemon at a place.
    async fn start(self: &Arc<Self>, place: Place) {
        let began = clock::monotonic();
        loop {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let runtime = runtime.unwrap();
            let (test, handle) = (Arc::clone(self), runtime.handle().clone());
            let joined =
                runtime.spawn(async move { test.join(place, handle).await }).await.unwrap();
            match joined {
                Ok(daemon) => {
                    let daemon = Arc::new(daemon);
                    *self.slots[place].lock() = Some(Slot { daemon, runtime: Some(runtime) });
                    return;
                }
                Err(error) => {
                    runtime.shutdown_background();
                    assert!(began.elapsed() < RECOVERY_LIMIT, "a daemon does not start: {error}");
                    timer::sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    async fn join(&self, place: Place, runtime: Handle) -> Result<Daemon> {
        let port = self.server.port();
        let by_line = format!(":{}/", self.network.port(place, port));
        let database = self.database.replace(&format!(":{port}/"), &by_line);
        let options = WarehouseOptions {
            catalog: Some(CatalogPlace::Postgres(database)),
            ..WarehouseOptions::new(self.url("warehouse"))
        };
        let warehouse = Warehouse::open_with(&options).await?;
        let number = self.started.fetch_add(1, Ordering::SeqCst);
        let log = self.url(&format!("log/{number}"));
        let flush =
            FlushLimits { rows: 60, age: Duration::from_millis(1500), ..FlushLimits::default() };
        let retry_wait_max = Duration::from_secs(1);
        let ingest_options =
            IngestOptions { ships: true, flush, retry_wait_max, ..IngestOptions::default() };
        let (ingest, _) = Ingest::open(warehouse.clone(), &log, ingest_options.clone()).await?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        self.network.listens(place, port);
        let none = String::new;
        let info = DaemonInfo {
            id: DaemonId::from_bits(0),
            name: "here".to_owned(),
            peer_address: format!("127.0.0.1:{port}"),
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
            ttl: Duration::from_secs(2),
            renew_each: Duration::from_millis(400),
            margin: Duration::from_millis(200),
        };
        let members = MemberOptions {
            lease,
            read_each: Duration::from_millis(500),
            probe_each: Duration::from_millis(500),
            ..MemberOptions::default()
        };
        let options = JoinOptions {
            folder: self.folder.path().join("ids"),
            listener,
            info,
            log,
            local_log: false,
            ingest: ingest_options,
            members,
        };
        let network = Arc::clone(&self.network);
        let route = move |address: &str| {
            let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
            format!("127.0.0.1:{}", network.port(place, port))
        };
        let member =
            Member::join_by(warehouse.clone(), ingest.clone(), options, Arc::new(route)).await?;
        Ok(Daemon { number, runtime, warehouse, ingest, member: member.unwrap() })
    }

    fn daemon(&self, place: Place) -> Option<Arc<Daemon>> {
        self.slots[place].lock().as_ref().map(|slot| Arc::clone(&slot.daemon))
    }

    /// Ends a daemon as a crash does: its tasks stop where they are, its sockets close.
    fn vanish(&self, place: Place) {
        let slot = self.slots[place].lock().take();
        if let Some(runtime) = slot.and_then(|mut slot| slot.runtime.take()) {
            runtime.shutdown_background();
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// The rows in a table's files.
    async fn stored(&self, table: &Table) -> Result<Vec<i64>> {
        let plan = table.plan_scan(&Predicate::always()).await?;
        let mut ids = Vec::new();
        for file in plan.files {
            let known = self.files.lock().get(&file.location).cloned();
            let rows = known.unwrap_or_else(|| {
                let path = Url::parse(&file.location).map(|url| url.to_file_path().unwrap());
                let path = path.unwrap_or_else(|_| file.location.clone().into());
                let rows = Arc::new(decode(std::fs::read(path).unwrap().into()));
                self.files.lock().insert(file.location.clone(), Arc::clone(&rows));
                rows
            });
            ids.extend(rows.iter());
        }
        Ok(ids)
    }

    /// All rows, and whether the read is exact; `None` where it may not be answered.
    async fn read(&self, daemon: &Daemon) -> Result<Option<(Vec<i64>, bool)>> {
        daemon.member.wait_until_exact().await?;
        let snapshot = daemon.ingest.snapshot(&ident()).await?;
        let is_exact = daemon.member.is_exact();
        if !is_exact && !daemon.member.may_answer() {
            return Ok(None);
        }
        let mut ids = self.stored(&snapshot.table).await?;
        for batch in snapshot.fresh.batches() {
            ids.extend(column(&batch?));
        }
        Ok(Some((ids, is_exact)))
    }

    async fn write(&self, daemon: &Arc<Daemon>, rows: i64) -> bool {
        let ids = self.ledger.begin(rows);
        let batch = Int64Array::from_iter_values(ids.clone());
        let batch = RecordBatch::try_new(schema(), vec![Arc::new(batch)]).unwrap();
        let by = Arc::clone(daemon);
        let written = on(daemon, async move {
            let table = by.warehouse.table(&ident()).await?;
            by.ingest.append(&table, batch, Durability::Synced).await
        });
        match written.await {
            Some(Ok(_)) => {
                self.ledger.acknowledge(ids);
                true
            }
            _ => false,
        }
    }

    async fn keep_writing(self: Arc<Self>, mut random: Random) {
        while !self.is_over() {
            let place = random.below(PLACES as u64) as usize;
            let rows = 1 + random.below(3) as i64;
            if let Some(daemon) = self.daemon(place) {
                self.write(&daemon, rows).await;
            }
            random.sleep_ms(1, 40).await;
        }
    }

    async fn keep_reading(self: Arc<Self>, mut random: Random) {
        // What was shown, by daemon.
        let mut seen: HashMap<u64, BTreeSet<i64>> = HashMap::new();
        while !self.is_over() {
            let place = random.below(PLACES as u64) as usize;
            if let Some(daemon) = self.daemon(place) {
                let acknowledged = self.ledger.count();
                let (test, by) = (Arc::clone(&self), Arc::clone(&daemon));
                let read = on(&daemon, async move { test.read(&by).await }).await;
                if let Some(Ok(Some((ids, is_exact)))) = read {
                    let what = format!("a read at daemon {}, exact: {is_exact}", daemon.number);
                    let acknowledged = if is_exact { acknowledged } else { 0 };
                    let shown = self.ledger.check(&what, ids, acknowledged);
                    let seen = seen.entry(daemon.number).or_default();
                    let lost: Vec<_> = seen.difference(&shown).collect();
                    assert!(lost.is_empty(), "{what}: {lost:?} were shown before");
                    *seen = shown;
                    let ledger = &self.ledger;
                    let count = if is_exact { &ledger.exact_reads } else { &ledger.other_reads };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            random.sleep_ms(5, 60).await;
        }
    }

    async fn keep_holding(self: Arc<Self>, mut random: Random) {
        while !self.is_over() {
            let place = random.below(PLACES as u64) as usize;
            if let Some(daemon) = self.daemon(place) {
                let (test, by) = (Arc::clone(&self), Arc::clone(&daemon));
                let (is_own, keep_ms) = (random.below(3) == 0, random.below(200));
                let held = async move { test.hold(&by, is_own, keep_ms).await };
                if let Some(Err(error)) = on(&daemon, held).await {
                    eprintln!("daemon {} could not hold: {error}", daemon.number);
                }
            }
            random.sleep_ms(50, 600).await;
        }
    }

    /// Holds the table as a statement does that rewrites it.
    async fn hold(&self, daemon: &Daemon, is_own: bool, keep_ms: u64) -> Result<()> {
        let table = daemon.warehouse.table(&ident()).await?;
        if is_own {
            return daemon.ingest.hold_own(&table).await.map(drop);
        }
        let acknowledged = self.ledger.count();
        let mut hold = daemon.ingest.hold_flush(&table).await?;
        let what = format!("a hold at daemon {}", daemon.number);
        let ids = self.stored(hold.table()).await?;
        self.ledger.check(&what, ids, acknowledged);
        hold.read_with(&[]).await?;
        let ids = self.stored(hold.table()).await?;
        self.ledger.check(&what, ids, acknowledged);
        self.ledger.holds.fetch_add(1, Ordering::Relaxed);
        timer::sleep(Duration::from_millis(keep_ms)).await;
        Ok(())
    }

    /// Ends the processes of members that were declared dead, after a look whether they still answer.
    async fn keep_burying(self: Arc<Self>) {
        loop {
            for place in 0..PLACES {
                let Some(daemon) = self.daemon(place).filter(|daemon| has_ended(daemon)) else {
                    continue;
                };
                assert!(!daemon.member.is_exact() && !daemon.member.may_answer());
                let error = daemon.member.wait_until_exact().await.unwrap_err();
                assert_eq!(error.sqlstate(), "57P01");
                self.vanish(place);
            }
            timer::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends the fault, and waits until each place takes and shows rows. Who was declared dead is replaced.
    async fn recover(self: &Arc<Self>, torn: bool) {
        self.network.heal(torn);
        let began = clock::monotonic();
        // One of them may be declared dead because of the fault while another one is looked at.
        loop {
            self.recover_each(began).await;
            let is_there = |place| self.daemon(place).is_some_and(|daemon| !has_ended(&daemon));
            if (0..PLACES).all(is_there) {
                return;
            }
        }
    }

    async fn recover_each(self: &Arc<Self>, began: std::time::Instant) {
        for place in 0..PLACES {
            loop {
                assert!(began.elapsed() < RECOVERY_LIMIT, "place {place} does not recover");
                let Some(daemon) = self.daemon(place) else {
                    self.start(place).await;
                    continue;
                };
                if has_ended(&daemon) {
                    timer::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                let (test, by) = (Arc::clone(self), Arc::clone(&daemon));
                let write = async { self.write(&daemon, 1).await };
                let is_written = timer::timeout(Duration::from_secs(5), write).await;
                let read = on(&daemon, async move { test.read(&by).await }).await;
                if is_written == Ok(true) && matches!(read, Some(Ok(Some((_, true))))) {
                    break;
                }
                timer::sleep(Duration::from_millis(100)).await;
            }
        }
    }

    async fn fault(self: &Arc<Self>, fault: Fault, random: &mut Random) {
        let one = random.below(PLACES as u64) as usize;
        let [other, third] = [(one + 1) % PLACES, (one + 2) % PLACES];
        match fault {
            Fault::FromDatabase => {
                self.network.cut(one, DATABASE);
                random.sleep_ms(2500, 6000).await;
            }
            Fault::Pair => {
                self.network.cut(one, other);
                random.sleep_ms(500, 4000).await;
            }
            Fault::FromPeers => {
                self.network.cut(one, other);
                self.network.cut(one, third);
                random.sleep_ms(500, 6000).await;
            }
            Fault::Database => {
                let (test, wait_ms) = (Arc::clone(self), random.below(3000));
                let restart = task::spawn_blocking(move || {
                    test.server.kill();
                    std::thread::sleep(Duration::from_millis(wait_ms));
                    test.server.begin();
                });
                restart.await.unwrap();
            }
            Fault::Vanish => {
                self.vanish(one);
                random.sleep_ms(1, 4000).await;
            }
        }
    }

    /// One member vanishes; the others bring all rows into files.
    async fn finish(self: &Arc<Self>, random: &mut Random) -> usize {
        self.vanish(random.below(PLACES as u64) as usize);
        let began = clock::monotonic();
        loop {
            // One more may be declared dead because of an earlier fault.
            let left: Vec<_> = (0..PLACES).filter_map(|place| self.daemon(place)).collect();
            let is_taken =
                left.iter().all(|daemon| daemon.member.status().logs.len() == left.len());
            if is_taken && let Some(rows) = self.all_in_files(&left).await {
                return rows;
            }
            assert!(began.elapsed() < RECOVERY_LIMIT, "the last log is not taken over");
            timer::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn all_in_files(self: &Arc<Self>, left: &[Arc<Daemon>]) -> Option<usize> {
        let acknowledged = self.ledger.count();
        let (test, by) = (Arc::clone(self), Arc::clone(left.first()?));
        let in_files = on(left.first()?, async move {
            let table = by.warehouse.table(&ident()).await?;
            let hold = by.ingest.hold_flush(&table).await?;
            test.stored(hold.table()).await
        });
        let in_files = self.ledger.check("the end", in_files.await?.ok()?, acknowledged);
        for daemon in left {
            let (test, by) = (Arc::clone(self), Arc::clone(daemon));
            let shown = on(daemon, async move { test.read(&by).await }).await;
            let (shown, _) = shown?.ok()??;
            assert_eq!(self.ledger.check("the end", shown, acknowledged), in_files);
        }
        Some(in_files.len())
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        (0..PLACES).for_each(|place| self.vanish(place));
    }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    FromDatabase,
    Pair,
    FromPeers,
    Database,
    Vanish,
}

const FAULTS: [Fault; 5] =
    [Fault::FromDatabase, Fault::Pair, Fault::FromPeers, Fault::Database, Fault::Vanish];

fn has_ended(daemon: &Daemon) -> bool {
    daemon.member.ended().now_or_never().is_some()
}

/// Runs something on a daemon's runtime; `None` where the daemon has vanished.
async fn on<T: Send + 'static>(
    daemon: &Daemon,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    match daemon.runtime.spawn(work).await {
        Ok(done) => Some(done),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => None,
    }
}

fn decode(file: bytes::Bytes) -> Vec<i64> {
    let mut tail = TailDecoder::new(file.len() as u64);
    let metadata = match tail.decode(file.clone()).unwrap() {
        TailStep::Done(metadata) => Arc::new(metadata),
        TailStep::NeedsTail(more) => panic!("{more} bytes of tail are not in the file"),
    };
    let options = ReadOptions::default().with_projection(Projection::Fields(schema()));
    let mut decoder = Decoder::new(metadata, options).unwrap();
    let mut ids = Vec::new();
    loop {
        match decoder.next().unwrap() {
            Step::NeedsData(ranges) => ranges.into_iter().for_each(|range| {
                decoder.push(range.start, file.slice(range.start as usize..range.end as usize));
            }),
            Step::Batch(batch) => ids.extend(column(&batch)),
            Step::Finished => return ids,
        }
    }
}

async fn round(seed: u64) {
    let Some(test) = Test::new() else { return };
    let mut random = Random(seed);
    let began = clock::monotonic();
    for place in 0..PLACES {
        test.start(place).await;
    }
    let first = test.daemon(0).unwrap();
    let by = Arc::clone(&first);
    let made =
        async move { by.warehouse.create_table(&ident(), TableSpec::new(schema())).await.is_ok() };
    assert_eq!(on(&first, made).await, Some(true));
    drop(first);
    let burying = task::spawn(Arc::clone(&test).keep_burying());
    let mut tasks = Vec::new();
    for _ in 0..WRITERS {
        tasks.push(task::spawn(Arc::clone(&test).keep_writing(Random(random.next()))));
    }
    for _ in 0..READERS {
        tasks.push(task::spawn(Arc::clone(&test).keep_reading(Random(random.next()))));
    }
    for _ in 0..HOLDERS {
        tasks.push(task::spawn(Arc::clone(&test).keep_holding(Random(random.next()))));
    }
    let mut faults = FAULTS.to_vec();
    for last in (1..faults.len()).rev() {
        faults.swap(last, random.below(last as u64 + 1) as usize);
    }
    for fault in &faults {
        eprintln!("seed {seed}: {fault:?}");
        test.fault(*fault, &mut random).await;
        let fault_took = began.elapsed();
        test.recover(random.below(2) == 0).await;
        let recovery_ms = (began.elapsed() - fault_took).as_millis();
        eprintln!("seed {seed}: {fault:?} over, works again after {recovery_ms} ms");
        let failed = tasks.iter().position(|task| task.is_finished());
        if let Some(failed) = failed {
            tasks.swap_remove(failed).await.unwrap();
        }
        assert!(!burying.is_finished());
        random.sleep_ms(200, 1000).await;
    }
    test.is_over.store(true, Ordering::SeqCst);
    for task in tasks {
        timer::timeout(RECOVERY_LIMIT, task).await.unwrap().unwrap();
    }
    let rows = test.finish(&mut random).await;
    burying.abort();
    let ledger = &test.ledger;
    eprintln!(
        "seed {seed}: {} s, {} faults, {} daemons, {} rows acknowledged, {rows} in files, {} exact reads, \
         {} other reads, {} holds",
        began.elapsed().as_secs(),
        faults.len() + 1,
        test.started.load(Ordering::SeqCst),
        ledger.count(),
        ledger.exact_reads.load(Ordering::Relaxed),
        ledger.other_reads.load(Ordering::Relaxed),
        ledger.holds.load(Ordering::Relaxed),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[expect(clippy::disallowed_methods, reason = "how long to test")]
async fn members_keep_every_promise_under_faults() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("STOA_MEMBER_FAULTS").unwrap_or(1);
    let first = number("STOA_MEMBER_SEED").unwrap_or(1);
    for seed in first..first + rounds {
        round(seed).await;
    }
}
