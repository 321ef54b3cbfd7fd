//! Statements on one and on three engines of one process, with tiny batches: the same rows.
//!
//! The engines share a warehouse. What the membership does is done by a list; connections between workers are plain.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use stoa_cluster::DaemonId;
use stoa_distributed::Socket;
use stoa_member::Service;
use tokio::net::TcpStream;

use super::*;
use crate::Outcome;
use crate::engine::{Engine, EngineOptions};
use crate::run::pool::PoolOptions;
use crate::run::pools::DEFAULT_POOL;
use crate::session::{Session, SessionOptions};

type Services = BTreeMap<u16, Arc<dyn Service>>;

/// The engines that are there.
#[derive(Clone, Default)]
struct Town {
    services: Arc<Mutex<BTreeMap<DaemonId, Services>>>,
    /// Nobody knows of others.
    is_empty: Arc<AtomicBool>,
    /// Nobody can connect to others.
    is_cut: Arc<AtomicBool>,
    /// What every other one tells that it has done, instead of the truth: bytes read, bytes of memory.
    told: Arc<Mutex<Option<(u64, u64)>>>,
}

/// What statements may read, and may have in memory, on all daemons together.
const BYTES_READ_MAX: u64 = 1 << 40;
const MEMORY_BYTES_MAX: usize = 1 << 41;

/// What one engine knows of the others.
struct Citizen {
    me: DaemonId,
    town: Town,
}

impl Daemons for Citizen {
    fn me(&self) -> DaemonId {
        self.me
    }

    fn others(&self) -> Vec<DaemonId> {
        if self.town.is_empty.load(Ordering::SeqCst) {
            return Vec::new();
        }
        self.town.services.lock().keys().copied().filter(|daemon| *daemon != self.me).collect()
    }

    fn ask(
        &self,
        daemon: DaemonId,
        kind: ServiceKind,
        body: Bytes,
        _limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes>> {
        if let Some((read, memory)) = self.town.told.lock().filter(|_| kind == ServiceKind::Done) {
            let counts = [0, read, 0, memory, memory].map(u64::to_le_bytes).concat();
            return async move { Ok(Bytes::from(counts)) }.boxed();
        }
        let services = self.town.services.lock();
        let service = services.get(&daemon).and_then(|services| services.get(&(kind as u16)));
        match service {
            Some(service) => service.answer(self.me, body),
            None => async { Err(Error::unavailable("it is gone")) }.boxed(),
        }
    }
}

/// Plain connections on this machine.
struct Loopback(Town);

impl Network for Loopback {
    fn connect(&self, _to: DaemonId, port: u16) -> BoxFuture<'static, Result<Box<dyn Socket>>> {
        let is_cut = self.0.is_cut.load(Ordering::SeqCst);
        async move {
            if is_cut {
                return Err(Error::unavailable("nobody answers"));
            }
            let failed = |e| Error::unavailable("nobody answers").with_source(e);
            let socket = TcpStream::connect(("127.0.0.1", port)).await.map_err(failed)?;
            Ok(Box::new(socket) as Box<dyn Socket>)
        }
        .boxed()
    }

    fn admit(&self, socket: TcpStream) -> BoxFuture<'static, Result<Box<dyn Socket>>> {
        async move { Ok(Box::new(socket) as Box<dyn Socket>) }.boxed()
    }
}

/// A warehouse with engines that compute together.
struct Home {
    together: Vec<(Arc<Engine>, Arc<Spreading>)>,
    town: Town,
    _folder: tempfile::TempDir,
}

async fn open(folder: &tempfile::TempDir, batch_rows: usize) -> Arc<Engine> {
    let url = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        url::Url::from_directory_path(path).unwrap()
    };
    let options = EngineOptions {
        logs: Some(url("log")),
        memory_limit_bytes: 512 << 20,
        threads: 2,
        query_slots: 8,
        batch_rows,
        pools: vec![PoolOptions {
            name: DEFAULT_POOL.to_owned(),
            bytes_read_max: Some(BYTES_READ_MAX),
            memory_bytes_max: Some(MEMORY_BYTES_MAX),
            ..PoolOptions::default()
        }],
        // Each scan has several plan partitions.
        spread_bytes_min: 0,
        ..EngineOptions::new(url("warehouse"))
    };
    Engine::open(options).await.unwrap()
}

impl Home {
    async fn new(engines: usize, batch_rows: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (town, mut together) = (Town::default(), Vec::new());
        for number in 0..engines as u64 {
            let engine = open(&folder, batch_rows).await;
            let me = DaemonId::from_bits(number + 1);
            let taking = Taking {
                daemons: Arc::new(Citizen { me, town: town.clone() }),
                network: Arc::new(Loopback(town.clone())),
                listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
                bytes_min: 0,
                base: engine.new_state(),
                data: Arc::downgrade(&engine.handles().data),
            };
            let spreading = Spreading::start(&engine.handles().runner, taking).unwrap();
            let services = spreading.services().map(|(kind, service)| (kind as u16, service));
            town.services.lock().insert(me, services.into_iter().collect());
            while spreading.build().is_none() {
                stoa_env::timer::sleep(Duration::from_millis(5)).await;
            }
            together.push((engine, spreading));
        }
        Self { together, town, _folder: folder }
    }

    /// A session of the first engine that plans each statement.
    async fn session(&self) -> Arc<Session> {
        let session = self.together[0].0.session(SessionOptions::default());
        for sql in ["SET short_path = off", "SET result_reuse = off"] {
            answer(&session, sql).await.unwrap();
        }
        session
    }

    fn spreading(&self) -> &Spreading {
        &self.together[0].1
    }

    /// What the first engine answers alone.
    async fn alone(&self, session: &Session, sql: &str) -> Result<Vec<String>> {
        self.town.is_empty.store(true, Ordering::SeqCst);
        let rows = answer(session, sql).await;
        self.town.is_empty.store(false, Ordering::SeqCst);
        rows
    }

    /// Waits until no engine keeps anything of a statement.
    async fn all_ended(&self) {
        while self.together.iter().any(|(_, spreading)| spreading.parts.count() > 0) {
            stoa_env::timer::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Two tables of several files each, and rows of both that are in none: those of the last round.
    async fn fill(&self) {
        let session = self.session().await;
        for sql in TABLES {
            answer(&session, sql).await.unwrap();
        }
        for file in 0..6 {
            let from = file * 40;
            let rows = format!("generate_series({from}, {})", from + 39);
            for sql in [
                format!(
                    "INSERT INTO events SELECT n, n % 17, DATE '2026-01-01' + (n % 31)::int, \
                     (n * 7 % 100)::numeric(9, 2) / 4, 'name ' || n % 5, \
                     CASE WHEN n % 11 = 0 THEN NULL ELSE n % 3 END, n::float8 / 8 FROM {rows} AS t(n)"
                ),
                format!(
                    "INSERT INTO accounts SELECT n, 'account ' || n, n % 4 FROM {rows} AS t(n)"
                ),
            ] {
                answer(&session, &sql).await.unwrap();
            }
            for table in ["events", "accounts"].into_iter().filter(|_| file < 5) {
                let ident = stoa_catalog::TableIdent::new("public", table);
                let table = self.together[0].0.warehouse().table(&ident).await.unwrap();
                self.together[0].0.ingest().unwrap().flush_now(&table).await.unwrap();
            }
        }
    }
}

const TABLES: [&str; 2] = [
    "CREATE TABLE events (id bigint, account bigint, day date, amount numeric(9, 2), name text, kind bigint, x float8)",
    "CREATE TABLE accounts (account bigint, title text, region bigint)",
];

/// The rows of an answer as text, in their order.
async fn answer(session: &Session, sql: &str) -> Result<Vec<String>> {
    let Outcome::Rows(rows) = session.sql(sql).await? else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    let options = FormatOptions::default().with_null("NULL");
    for batch in rows.collect().await? {
        let columns: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        lines.extend((0..batch.num_rows()).map(|row| {
            let cells: Vec<String> =
                columns.iter().map(|column| column.value(row).to_string()).collect();
            cells.join("|")
        }));
    }
    Ok(lines)
}

/// Statements that are computed together.
const TOGETHER: &[&str] = &[
    "SELECT id, name FROM events WHERE amount > 10 ORDER BY id",
    "SELECT account, count(*), sum(amount), min(day), max(x) FROM events GROUP BY account ORDER BY account",
    "SELECT count(*), count(kind), sum(x) FROM events WHERE account < 9",
    "SELECT count(DISTINCT account), count(DISTINCT kind) FROM events WHERE id > 3",
    "SELECT kind, name, sum(amount) FROM events GROUP BY kind, name ORDER BY kind NULLS FIRST, name",
    "SELECT * FROM events ORDER BY x DESC, id LIMIT 7 OFFSET 2",
    "SELECT e.id, a.title FROM events e JOIN accounts a ON a.account = e.account ORDER BY e.id, a.title",
    "SELECT a.account, e.id FROM accounts a LEFT JOIN events e ON e.id = a.account * 3 ORDER BY a.account, e.id",
    "SELECT a.account, e.id FROM accounts a RIGHT JOIN events e ON e.id = a.account * 3 ORDER BY e.id, a.account",
    "SELECT a.account, e.id FROM accounts a FULL JOIN events e ON e.id = a.account * 3 ORDER BY a.account, e.id",
    "SELECT region, sum(amount) FROM events e JOIN accounts a ON a.account = e.account GROUP BY region ORDER BY 1",
    "SELECT id FROM events e WHERE EXISTS (SELECT 1 FROM accounts a WHERE a.account = e.id AND a.region = 2) ORDER BY id",
    "SELECT id FROM events e WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.account = e.id * 2) ORDER BY id",
    "SELECT id FROM events WHERE account IN (SELECT account FROM accounts WHERE region = 1) ORDER BY id",
    "SELECT id, row_number() OVER (PARTITION BY account ORDER BY id) FROM events ORDER BY id",
    "SELECT DISTINCT name, kind FROM events ORDER BY name, kind",
    "SELECT name FROM events GROUP BY name HAVING sum(amount) > 100 ORDER BY name",
    "SELECT day, avg(amount) FROM events GROUP BY day ORDER BY day",
    "SELECT sum(100 / (id - 239)) FROM events",
    "SELECT e.id, f.id FROM events e JOIN events f ON f.id > e.id + 230 ORDER BY 1, 2",
    "SELECT id FROM events WHERE amount > (SELECT avg(amount) FROM events) ORDER BY id",
    "SELECT id FROM events WHERE amount > (SELECT max(amount) FROM events WHERE id < 0) ORDER BY id",
    "SELECT id FROM events WHERE amount > (SELECT min(amount) FROM events WHERE id > 7) AND x < (SELECT avg(region) FROM accounts) ORDER BY id",
    "SELECT name, sum(amount) FROM events GROUP BY name HAVING sum(amount) > (SELECT sum(amount) / 6 FROM events) ORDER BY name",
    "SELECT extract(year FROM day), extract(dow FROM day), count(*), sum(round(x)) FROM events GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT id, round(x, 1), extract(epoch FROM day), date_part('month', day) FROM events ORDER BY id",
];

/// Statements that may be computed alone, and are answered as well.
const ANYWHERE: &[&str] = &[
    "SELECT account FROM events WHERE id < 100 UNION ALL SELECT account FROM accounts ORDER BY 1",
    "SELECT account FROM events WHERE id < 100 UNION SELECT account FROM accounts ORDER BY 1",
    "SELECT id, sum(amount) OVER (PARTITION BY kind ORDER BY day, id) FROM events ORDER BY id",
    "SELECT id FROM events WHERE id NOT IN (SELECT kind FROM events WHERE kind IS NOT NULL) ORDER BY id",
    "SELECT id FROM events WHERE kind NOT IN (SELECT kind FROM events) ORDER BY id",
    "SELECT id FROM events WHERE amount > (SELECT amount FROM events WHERE id < 9) ORDER BY id",
    "SELECT id FROM events WHERE amount > (SELECT 1 / (id - 5) FROM events WHERE id = 5) ORDER BY id",
    "SELECT id, (SELECT max(region) FROM accounts) FROM events ORDER BY id",
    "SELECT e.id, v.n FROM events e JOIN (VALUES (1, 'a'), (2, 'b')) v(k, n) ON v.k = e.kind ORDER BY 1, 2",
    "SELECT current_user, count(*) FROM events WHERE name <> current_setting('TimeZone')",
    "SELECT e.id FROM events e CROSS JOIN (VALUES (1), (2)) v(n) WHERE e.id < 20 ORDER BY 1",
    "SELECT string_agg(name, ',' ORDER BY id) FROM events WHERE id < 30",
    "SELECT upper(name), to_char(day, 'YYYY-MM'), round(amount, 1) FROM events ORDER BY id",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, count(*) FROM r JOIN events ON events.kind = n GROUP BY n ORDER BY n",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM events",
    "SELECT count(*) FROM events e, system.queries q WHERE e.id < 5 AND q.id < 0",
    "SELECT unnest(ARRAY[id, account]) FROM events WHERE id < 9 ORDER BY 1",
];

async fn check(engines: usize, batch_rows: usize) {
    let home = Home::new(engines, batch_rows).await;
    home.fill().await;
    let session = home.session().await;
    let mut stayed = Vec::new();
    for sql in TOGETHER.iter().chain(ANYWHERE) {
        let expected = home.alone(&session, sql).await;
        let before = home.spreading().counts();
        let found = answer(&session, sql).await;
        let after = home.spreading().counts();
        match (&expected, &found) {
            (Ok(expected), Ok(found)) => assert_eq!(found, expected, "{sql}"),
            (Err(expected), Err(found)) => {
                let of = |error: &Error| (error.sqlstate(), error.message().to_owned());
                assert_eq!(of(found), of(expected), "{sql}");
            }
            _ => panic!("{sql}: {found:?} instead of {expected:?}"),
        }
        let spread = after.spread - before.spread;
        assert_eq!(after.failed - before.failed, u64::from(expected.is_err()) * spread, "{sql}");
        if TOGETHER.contains(sql) && spread == 0 {
            stayed.push(*sql);
        }
    }
    assert_eq!(stayed, if engines > 1 { Vec::new() } else { TOGETHER.to_vec() }, "ran alone");
    home.all_ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_engines_give_the_rows_of_one() {
    check(3, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_engine_computes_alone() {
    check(1, 8192).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_cannot_be_reached_costs_a_retry() {
    let home = Home::new(2, 100).await;
    home.fill().await;
    let session = home.session().await;
    let sql = "SELECT account, sum(amount) FROM events GROUP BY account ORDER BY account";
    let expected = home.alone(&session, sql).await.unwrap();
    home.town.is_cut.store(true, Ordering::SeqCst);
    assert_eq!(answer(&session, sql).await.unwrap(), expected);
    let counts = home.spreading().counts();
    assert_eq!((counts.spread, counts.failed), (1, 1));
    home.town.is_cut.store(false, Ordering::SeqCst);
    assert_eq!(answer(&session, sql).await.unwrap(), expected);
    let counts = home.spreading().counts();
    assert_eq!((counts.spread, counts.failed), (2, 1));
    home.all_ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_shows_what_others_compute() {
    let home = Home::new(2, 100).await;
    home.fill().await;
    let session = home.session().await;
    let sql = "EXPLAIN SELECT account, count(*) FROM events GROUP BY account";
    let plan = answer(&session, sql).await.unwrap().join("\n");
    assert!(plan.contains("DistributedExec") && plan.contains("OrcScanExec"), "{plan}");
    assert_eq!(home.spreading().counts().spread, 0);
    home.all_ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_is_given_up_ends_everywhere() {
    let home = Home::new(3, 2).await;
    home.fill().await;
    let session = home.session().await;
    let sql = "SELECT e.id FROM events e, events f, events g WHERE e.id + f.id + g.id > 1";
    let Outcome::Rows(mut rows) = session.sql(sql).await.unwrap() else { panic!("{sql}") };
    assert!(rows.next().await.unwrap().is_ok());
    assert!(home.together.iter().all(|(_, spreading)| spreading.parts.count() == 1));
    drop(rows);
    home.all_ended().await;
}

/// A statement that takes long on all daemons.
const ENDLESS: &str = "SELECT count(*) FROM events e, events f, events g, events h WHERE e.id + f.id + g.id + h.id < 0";

/// Runs [`ENDLESS`] until `end` has done something to it; its error.
async fn ended_by(home: &Home, end: impl AsyncFnOnce()) -> Error {
    let session = home.session().await;
    let running = stoa_env::task::spawn(async move { answer(&session, ENDLESS).await });
    while home.together.iter().any(|(_, spreading)| spreading.parts.count() == 0) {
        stoa_env::timer::sleep(Duration::from_millis(5)).await;
    }
    end().await;
    let error = running.await.unwrap().unwrap_err();
    home.all_ended().await;
    assert_eq!(home.spreading().counts().failed, 0, "{error}");
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_statement_ends_everywhere() {
    let home = Home::new(3, 100).await;
    home.fill().await;
    let error = ended_by(&home, async || {
        let queries = home.together[0].0.queries();
        let running = queries.running().into_iter().find(|query| query.sql == ENDLESS).unwrap();
        assert!(queries.cancel(running.id));
    })
    .await;
    assert_eq!(error.sqlstate(), "57014");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_pool_are_those_of_all_daemons_together() {
    let home = Home::new(3, 100).await;
    home.fill().await;
    for (read, memory, sqlstate, said) in [
        // Each of two others has read more than half.
        (BYTES_READ_MAX / 2 + 1, 0, "57014", "read too much"),
        (0, MEMORY_BYTES_MAX as u64 / 2 + 1, "53200", "memory of pool default is used up"),
    ] {
        let told = Arc::clone(&home.town.told);
        let error = ended_by(&home, async || *told.lock() = Some((read, memory))).await;
        assert_eq!(error.sqlstate(), sqlstate, "{error}");
        assert!(error.message().contains(said), "{error}");
        *home.town.told.lock() = None;
    }
}

/// The number behind a name in a line.
fn figure(line: &str, name: &str) -> u64 {
    let (_, rest) =
        line.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("{name}: {line}"));
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_analyze_shows_what_each_daemon_did() {
    let home = Home::new(3, 100).await;
    home.fill().await;
    let session = home.session().await;
    let sql = "EXPLAIN ANALYZE SELECT account, sum(amount) FROM events GROUP BY account";
    let plan = answer(&session, sql).await.unwrap();
    assert_eq!(home.spreading().counts(), SpreadCounts { spread: 1, failed: 0, for_others: 0 });
    let daemons: Vec<&String> = plan.iter().filter(|line| line.contains("DaemonExec")).collect();
    assert_eq!(daemons.len(), 3, "{plan:#?}");
    // All rows that are in files, each on one daemon; the others are read where the statement is.
    let sum = |name: &str| daemons.iter().map(|line| figure(line, name)).sum::<u64>();
    assert_eq!(sum("rows_scanned"), 200, "{plan:#?}");
    let query = home.together[0].0.queries().recent().into_iter().find(|query| query.sql == sql);
    let query = query.unwrap();
    assert!(query.bytes_read > 0);
    assert_eq!((query.bytes_read, query.requests), (sum("bytes_read"), sum("read_requests")));
    // Every daemon has tasks below its line, with figures.
    for at in
        plan.iter().enumerate().filter(|(_, line)| line.contains("DaemonExec")).map(|(at, _)| at)
    {
        let tasks = plan[at + 1..].iter().take_while(|line| !line.contains("DaemonExec"));
        let tasks: Vec<&String> = tasks.collect();
        assert!(tasks.iter().any(|line| line.contains("AggregateExec")), "{plan:#?}");
        let scan = tasks.iter().find(|line| line.contains("OrcScanExec"));
        assert!(scan.is_some_and(|line| line.contains("output_rows=")), "{plan:#?}");
    }
    // A plain statement counts what all have read, too.
    let sql = "SELECT name, sum(amount), count(*) FROM events GROUP BY name";
    answer(&session, sql).await.unwrap();
    let query = home.together[0].0.queries().recent().into_iter().find(|query| query.sql == sql);
    assert!(query.unwrap().bytes_read > 0);
    home.all_ended().await;
    // An error is that of one daemon.
    let sql = "EXPLAIN ANALYZE SELECT sum(100 / (id - 239)) FROM events";
    assert_eq!(answer(&session, sql).await.unwrap_err().sqlstate(), "22012");
    home.all_ended().await;
}
