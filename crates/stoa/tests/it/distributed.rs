//! Large statements are computed by all daemons of a cluster: the same rows as on one, also while a daemon is frozen
//! or killed.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;
use stoa_testkit::PostgresServer;

use crate::harness::{Place, Server, wait_for};

/// The lines of an answer but for its head.
fn rows(server: &Server, sql: &str) -> Vec<String> {
    let (status, body) = server.post_sql(sql).unwrap_or_else(|| panic!("nobody answers {sql}"));
    assert_eq!(status, 200, "{sql}: {body}");
    body.lines().skip(1).map(str::to_owned).collect()
}

fn figure(server: &Server, name: &str) -> u64 {
    rows(server, &format!("SELECT {name} FROM system.cluster")).concat().parse().unwrap()
}

const TABLES: [&str; 3] = [
    "CREATE TABLE customer (c_custkey bigint, c_name text, c_mktsegment text, c_nationkey bigint)",
    "CREATE TABLE orders (o_orderkey bigint, o_custkey bigint, o_orderdate date, o_shippriority bigint)",
    "CREATE TABLE lineitem (l_orderkey bigint, l_quantity numeric(15, 2), l_extendedprice numeric(15, 2), \
     l_discount numeric(15, 2), l_shipdate date, l_returnflag text)",
];

/// Rows of the three tables, by a number: `n` from … to …
fn loads(from: i64, to: i64) -> [String; 3] {
    let series = |from: i64, to: i64| format!("FROM generate_series({from}, {to}) AS s(n)");
    [
        format!(
            "INSERT INTO customer SELECT n, 'Customer ' || n, \
             CASE n % 3 WHEN 0 THEN 'BUILDING' WHEN 1 THEN 'MACHINERY' ELSE 'AUTOMOBILE' END, n % 25 {}",
            series(from / 10, to / 10)
        ),
        format!(
            "INSERT INTO orders SELECT n, n * 7 % 1000, DATE '1995-01-01' + (n % 700)::int, 0 {}",
            series(from, to)
        ),
        format!(
            "INSERT INTO lineitem SELECT n / 4, n % 50, n % 9001 + 0.25, (n % 11) / 100.0, \
             DATE '1995-02-01' + (n % 500)::int, CASE n % 4 WHEN 0 THEN 'A' WHEN 1 THEN 'N' ELSE 'R' END {}",
            series(4 * from, 4 * to + 3)
        ),
    ]
}

/// Statements with an order of their rows; `{}` is always true, and makes each run a statement of its own.
const STATEMENTS: [&str; 8] = [
    "SELECT l_returnflag, sum(l_quantity), sum(l_extendedprice * (1 - l_discount)), avg(l_discount), count(*)
     FROM lineitem WHERE l_shipdate <= DATE '1996-03-01' AND {} GROUP BY l_returnflag ORDER BY l_returnflag",
    "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
     FROM customer, orders, lineitem
     WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
       AND o_orderdate < DATE '1996-03-15' AND l_shipdate > DATE '1995-03-15' AND {}
     GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10",
    "SELECT c_nationkey, count(*), sum(l_extendedprice) FROM customer
     JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
     WHERE {} GROUP BY c_nationkey ORDER BY c_nationkey",
    "SELECT c_custkey, o_orderkey FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_orderkey < 500
     WHERE {} ORDER BY c_custkey, o_orderkey",
    "SELECT count(*) FROM orders WHERE {} AND NOT EXISTS (SELECT 1 FROM customer WHERE c_custkey = o_custkey)",
    "SELECT o_custkey, o_orderkey, row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey) AS n
     FROM orders WHERE {} ORDER BY o_custkey, n LIMIT 200",
    "SELECT l_orderkey, l_extendedprice, l_shipdate FROM lineitem WHERE l_quantity > 45 AND {}
     ORDER BY l_extendedprice DESC, l_orderkey, l_shipdate LIMIT 100",
    "SELECT count(DISTINCT o_custkey), min(o_orderdate), max(o_orderkey) FROM orders
     JOIN lineitem ON l_orderkey = o_orderkey WHERE {}",
];

static RUNS: AtomicU64 = AtomicU64::new(0);

/// A statement that no daemon has answered before.
fn fresh(statement: &str) -> String {
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    statement.replace("{}", &format!("{run} = {run}"))
}

#[test]
fn daemons_compute_large_statements_together() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let url = postgres.database();
    let start = |size: &str| {
        Server::start(
            &place,
            &["--catalog", &url, "--distributed-scan-size", size, "--num-executors", "2"],
        )
    };
    let (one, two, three) = (start("0"), start("0"), start("0"));
    // It computes its own statements alone.
    let alone = start("1TiB");
    for server in [&one, &two, &three, &alone] {
        let states = || rows(server, "SELECT state FROM system.daemons");
        wait_for("all are up", || (states() == ["up"; 4]).then_some(()));
    }
    TABLES.iter().for_each(|sql| drop(rows(&one, sql)));
    for round in 0..4 {
        loads(round * 1000, round * 1000 + 999).iter().for_each(|sql| drop(rows(&one, sql)));
        for table in ["customer", "orders", "lineitem"] {
            rows(&one, &format!("FLUSH TABLE {table}"));
        }
    }
    // Rows in no file, of two daemons.
    loads(4000, 4009).iter().for_each(|sql| drop(rows(&two, sql)));
    loads(4010, 4029).iter().for_each(|sql| drop(rows(&three, sql)));

    let expected = STATEMENTS.map(|sql| rows(&alone, &fresh(sql)));
    assert_eq!(figure(&alone, "statements_distributed"), 0);
    let check = |server: &Server| {
        for (sql, expected) in STATEMENTS.iter().zip(&expected) {
            assert_eq!(&rows(server, &fresh(sql)), expected, "{sql}");
        }
    };
    // A daemon computes with others once it knows which build it is.
    wait_for("a statement is distributed", || {
        rows(&one, &fresh(STATEMENTS[0]));
        (figure(&one, "statements_distributed") > 0).then_some(())
    });
    [&one, &two, &three].into_iter().for_each(check);
    for server in [&one, &two, &three] {
        assert!(figure(server, "statements_distributed") >= STATEMENTS.len() as u64 - 1);
        assert_eq!(figure(server, "statements_distributed_failed"), 0);
        assert!(figure(server, "statements_for_others") > 0);
    }
    let plan = rows(&one, &format!("EXPLAIN {}", fresh(STATEMENTS[2]))).join("\n");
    assert!(plan.contains("DistributedExec"), "{plan}");
    let (status, error) =
        one.post_sql("SELECT sum(100 / (l_orderkey - 77)) FROM lineitem").unwrap();
    assert!(status != 200 && error.contains("22012"), "{status}: {error}");

    // One that is frozen is left out; one that is killed while statements run costs a retry.
    two.signal(Signal::STOP);
    check(&one);
    let before = figure(&three, "statements_for_others");
    let killing = stoa_env::task::spawn_thread("killing", move || {
        wait_for("it computes parts", || {
            (figure(&three, "statements_for_others") > before + 3).then_some(())
        });
        three.signal(Signal::KILL);
        three.wait();
    })
    .unwrap();
    while !killing.is_finished() {
        check(&one);
    }
    killing.join().unwrap();
    check(&one);
    two.signal(Signal::KILL);
    two.wait();
    check(&one);
}
