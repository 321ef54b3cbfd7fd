//! Scans out of the memory of reports, and filters that joins and limits make on the way, answer as scans that decode
//! the files each time.

use futures::StreamExt;
use stoa_query::Outcome;

use crate::statements::{Home, answer};

/// Random choices, the same in each run.
struct Choices(u64);

impl Choices {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % count
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn condition(&mut self, depth: usize) -> String {
        let n = self.below(97);
        match self.below(if depth == 0 { 10 } else { 13 }) {
            0 => format!("account {} {n}", self.one(&["=", "<", ">=", "<>", ">"])),
            1 => format!("account IN ({n}, {}, {})", n / 2, n + 200),
            2 => format!("day BETWEEN DATE '2026-01-{:02}' AND DATE '2026-01-19'", 1 + n % 28),
            3 => format!(
                "region {} '{}'",
                self.one(&["=", "<>", "<", ">="]),
                self.one(&["eu", "us", "", "b"])
            ),
            4 => format!("region LIKE '{}%'", self.one(&["e", "Ün", "a", "zz"])),
            5 => format!("clicks {} {}", self.one(&["<", ">", "="]), n as i64 * 20 - 1000),
            6 => format!("cost {} {}.50", self.one(&["<", ">=", "="]), n * 50),
            7 => format!("rate {} {n}.5", self.one(&["<", "=", ">"])),
            8 => format!(
                "{} IS {} NULL",
                self.one(&["day", "region", "cost", "large", "at"]),
                self.one(&["", "NOT"])
            ),
            9 => format!("at >= TIMESTAMP '2026-01-02 {:02}:00:00'", n % 24),
            10 => format!("({} OR {})", self.condition(depth - 1), self.condition(depth - 1)),
            11 => format!("({} AND {})", self.condition(depth - 1), self.condition(depth - 1)),
            _ => format!("NOT ({})", self.condition(depth - 1)),
        }
    }

    /// A statement, and whether the order of its rows is known.
    fn statement(&mut self) -> (String, bool) {
        let condition = self.condition(2);
        let other = self.condition(1);
        let columns = self.one(&[
            "*",
            "account, day, region",
            "large, cost, rate",
            "at, clicks",
            "region",
            "day, account, added",
        ]);
        match self.below(9) {
            0 | 1 => (format!("SELECT {columns} FROM events WHERE {condition}"), false),
            2 => (
                format!(
                    "SELECT region, day, count(*), sum(cost), min(large), max(at) FROM events WHERE {condition} GROUP BY region, day"
                ),
                false,
            ),
            3 => (
                format!(
                    "SELECT e.account, e.cost, a.name FROM events e JOIN accounts a ON a.id = e.account WHERE a.id < {} AND {condition}",
                    self.below(97)
                ),
                false,
            ),
            4 => (
                format!(
                    "SELECT count(*), sum(clicks) FROM events WHERE account IN (SELECT id FROM accounts WHERE name LIKE '%{}') AND {condition}",
                    self.below(10)
                ),
                false,
            ),
            5 => (
                format!(
                    "SELECT account, clicks FROM events WHERE {condition} ORDER BY clicks DESC NULLS LAST, account, cost LIMIT {}",
                    1 + self.below(20)
                ),
                true,
            ),
            6 => (
                format!(
                    "SELECT min(day), max(cost), min(region), max(clicks) FROM events WHERE {condition}"
                ),
                false,
            ),
            7 => (
                format!(
                    "SELECT a.day, count(*) FROM (SELECT * FROM events WHERE {condition}) a JOIN (SELECT DISTINCT day, region FROM events WHERE {other}) b ON a.day = b.day AND a.region = b.region GROUP BY a.day"
                ),
                false,
            ),
            _ => (
                format!(
                    "SELECT id FROM accounts WHERE NOT EXISTS (SELECT FROM events WHERE account = id AND {condition})"
                ),
                false,
            ),
        }
    }
}

/// One engine that keeps what it scans, and one that never does.
struct Homes {
    keeping: Home,
    decoding: Home,
}

impl Homes {
    async fn new() -> Self {
        let homes = Self { keeping: Home::new().await, decoding: Home::with_cache(0).await };
        for home in [&homes.keeping, &homes.decoding] {
            home.fill().await;
        }
        homes.run("CREATE TABLE accounts (id bigint, name text)").await;
        let values = (0..120).map(|n| format!("({n}, 'account {n}')")).collect::<Vec<_>>();
        homes
            .run(&format!("INSERT INTO accounts VALUES {}, (NULL, 'nobody')", values.join(", ")))
            .await;
        homes.run("FLUSH TABLE accounts").await;
        homes
    }

    async fn run(&self, sql: &str) {
        self.keeping.run(sql).await;
        self.decoding.run(sql).await;
    }

    async fn compare(&self, choices: &mut Choices, statements: usize) {
        for _ in 0..statements {
            let (sql, ordered) = choices.statement();
            let expected = answer(&self.decoding.long, &sql, &[], ordered).await;
            if choices.below(3) == 0 {
                // The next scan of any column is the first again.
                self.keeping.run("PURGE CACHE").await;
            }
            for _ in 0..2 {
                let found = answer(&self.keeping.long, &sql, &[], ordered).await;
                assert_eq!(found, expected, "{sql}");
            }
        }
    }
}

/// The sum of what the scans of a statement counted under a name.
async fn counted(home: &Home, sql: &str, name: &str) -> f64 {
    let lines = answer(&home.long, &format!("EXPLAIN ANALYZE {sql}"), &[], true).await;
    let text = lines.join("\n");
    let before = format!(" {name}=");
    let values = text.split(&before).skip(1);
    values
        .map(|rest| {
            let end = rest.find([',', ']']).unwrap();
            let (number, unit) = rest[..end].split_once(' ').unwrap_or((&rest[..end], ""));
            number.parse::<f64>().unwrap() * if unit == "K" { 1e3 } else { 1.0 }
        })
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_of_chunks_answer_as_scans_of_files() {
    let homes = Homes::new().await;
    let mut choices = Choices(7);
    homes.compare(&mut choices, 120).await;
    homes.run("DELETE FROM events WHERE account % 7 = 3").await;
    homes.run("UPDATE events SET cost = NULL, region = 'moved' WHERE account = 40").await;
    homes.compare(&mut choices, 40).await;
    for changes in [
        ["ALTER COLUMN clicks TYPE bigint", "ALTER COLUMN cost TYPE decimal(20,2)"],
        ["RENAME COLUMN rate TO rated", "ADD COLUMN rate double"],
        ["DROP COLUMN added", "ADD COLUMN added text"],
    ] {
        for change in changes {
            homes.run(&format!("ALTER TABLE events {change}")).await;
        }
        homes.compare(&mut choices, 20).await;
    }
    homes
        .run("INSERT INTO events (account, day, region, added) VALUES (1, NULL, 'new', 'x')")
        .await;
    homes.compare(&mut choices, 30).await;
    homes.run("FLUSH TABLE events").await;
    homes.compare(&mut choices, 30).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_scanned_again_is_in_memory() {
    let homes = Homes::new().await;
    let sql = "SELECT sum(cost), count(region) FROM events";
    let (keeping, decoding) = (&homes.keeping, &homes.decoding);
    assert_eq!(counted(keeping, sql, "chunk_misses").await, 0.0, "the first time");
    assert!(counted(keeping, sql, "chunk_misses").await > 0.0, "the second time");
    assert_eq!(counted(keeping, sql, "chunk_misses").await, 0.0, "from then on");
    assert!(counted(keeping, sql, "chunk_hits").await > 0.0);
    assert_eq!(counted(keeping, sql, "bytes_read").await, 0.0);
    for _ in 0..3 {
        assert_eq!(counted(decoding, sql, "chunk_misses").await, 0.0);
        assert!(counted(decoding, sql, "bytes_read").await > 0.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_join_and_the_best_rows_leave_rows_out() {
    let homes = Homes::new().await;
    let keeping = &homes.keeping;
    homes.run("CREATE TABLE numbers (n bigint, text text) TBLPROPERTIES ('stoa.orc.row-index-stride' = '1000')").await;
    homes
        .run("INSERT INTO numbers SELECT n, 'text ' || n FROM generate_series(1, 50000) AS s(n)")
        .await;
    homes.run("FLUSH TABLE numbers").await;
    homes.run("CREATE TABLE few (k bigint)").await;
    homes.run("INSERT INTO few VALUES (17), (NULL), (49000), (60000)").await;
    homes.run("FLUSH TABLE few").await;
    let join = "SELECT text FROM few JOIN numbers ON n = k";
    let top = "SELECT text FROM numbers ORDER BY n LIMIT 2";
    for (sql, expected) in [(join, ["text 17", "text 49000"]), (top, ["text 1", "text 2"])] {
        for _ in 0..3 {
            let found = answer(&keeping.long, sql, &[], sql == top).await;
            assert_eq!(found, expected, "{sql}");
        }
        let explained =
            answer(&keeping.long, &format!("EXPLAIN ANALYZE {sql}"), &[], true).await.join("\n");
        assert!(explained.contains("dynamic_filters=1"), "{explained}");
        assert!(
            counted(keeping, sql, "output_rows").await < 20_000.0,
            "{sql} gives all rows of a scan"
        );
    }
}

/// Keys of which one is part of another: a filter made of them may not be moved to the columns of a scan one by one.
#[tokio::test(flavor = "multi_thread")]
async fn the_best_rows_by_keys_within_keys_are_the_best() {
    let homes = Homes::new().await;
    let keeping = &homes.keeping;
    homes.run("CREATE TABLE lines (id int, j int, other int)").await;
    homes
        .run("INSERT INTO lines SELECT n, n * 31 % 100, 0 FROM generate_series(1, 300000) AS s(n)")
        .await;
    homes.run("FLUSH TABLE lines").await;
    // The columns that are sorted by are not the first ones.
    homes.run("CREATE TABLE copied (other int, id int, j int)").await;
    homes.run("INSERT INTO copied SELECT other, id, j FROM lines").await;
    homes.run("FLUSH TABLE copied").await;
    let rows = || (1..=300_000_i64).map(|id| (id * 31 % 100, id));
    let best = |mut rows: Vec<[i64; 5]>| {
        rows.sort_unstable();
        rows.iter().take(3).map(|[.., j, id]| format!("{j}|{id}")).collect::<Vec<_>>()
    };
    for (sql, expected) in [
        (
            "SELECT j, id FROM lines ORDER BY j - id, j % 10, id LIMIT 3",
            best(rows().map(|(j, id)| [j - id, j % 10, id, j, id]).collect()),
        ),
        (
            "SELECT j, id FROM lines ORDER BY id - j DESC, id, j % 10 LIMIT 3",
            best(rows().map(|(j, id)| [j - id, id, j % 10, j, id]).collect()),
        ),
        (
            "SELECT j, id FROM lines ORDER BY CASE WHEN other = 0 THEN id END DESC, id % 7, id LIMIT 3",
            best(rows().map(|(j, id)| [-id, id % 7, id, j, id]).collect()),
        ),
        (
            "SELECT j, id FROM (SELECT * FROM copied ORDER BY j - id, j % 10, j, id LIMIT 3) c",
            best(rows().map(|(j, id)| [j - id, j % 10, j, j, id]).collect()),
        ),
    ] {
        for _ in 0..3 {
            assert_eq!(answer(&keeping.long, sql, &[], true).await, expected, "{sql}");
        }
    }
}

/// A sort leaves out a key that is equal to another one; the window above it must still know that they are.
#[tokio::test(flavor = "multi_thread")]
async fn windows_over_groups_by_equal_keys_know_their_order() {
    let homes = Homes::new().await;
    let keeping = &homes.keeping;
    homes.run("CREATE TABLE lines (n int, text text)").await;
    homes.run("INSERT INTO lines SELECT n % 70, 'text ' || n % 70 FROM generate_series(1, 5000) AS s(n)").await;
    homes.run("FLUSH TABLE lines").await;
    let fresh = "INSERT INTO lines VALUES (7, 'text 7'), (100, 'text 100')";
    for groups in [70, 71] {
        let distinct = format!("{groups}|1|{groups}");
        for (sql, expected) in [
            (
                "SELECT count(*), max(n), count(DISTINCT text) FROM (SELECT text, row_number() OVER (PARTITION BY text, other) AS n \
                 FROM (SELECT DISTINCT text, text AS other FROM lines) g) w",
                distinct.as_str(),
            ),
            (
                "SELECT count(*), max(r), count(DISTINCT a) FROM (SELECT a, rank() OVER (PARTITION BY a, b, 1 ORDER BY c) AS r \
                 FROM (SELECT n AS a, n AS b, count(*) AS c FROM lines GROUP BY 1, 2) g) w",
                distinct.as_str(),
            ),
            (
                "SELECT count(*) FROM (SELECT text, text FROM lines EXCEPT ALL (SELECT text, text FROM lines INTERSECT SELECT 'text 3', 'text 3')) e",
                if groups == 70 { "4999" } else { "5001" },
            ),
        ] {
            for _ in 0..3 {
                assert_eq!(answer(&keeping.long, sql, &[], true).await, [expected], "{sql}");
            }
        }
        homes.run(fresh).await;
    }
}

/// With `c.nation = s.nation` and `s.nation = n.id`, the keys of nations also filter customers, which a join further down
/// puts into its hash table.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_join_reach_what_they_are_equal_to() {
    let homes = Homes::new().await;
    let keeping = &homes.keeping;
    let stride = "TBLPROPERTIES ('stoa.orc.row-index-stride' = '1000')";
    for (table, columns, rows) in [
        (
            "nations",
            "id int, name text",
            "SELECT n, 'nation ' || n FROM generate_series(0, 4) AS s(n)",
        ),
        (
            "customers",
            "id int, nation int",
            "SELECT n, CASE WHEN n % 1000 = 7 THEN NULL ELSE n / 1000 END FROM generate_series(0, 4999) AS s(n)",
        ),
        ("suppliers", "id int, nation int", "SELECT n, n % 5 FROM generate_series(0, 99) AS s(n)"),
        (
            "lines",
            "customer int, supplier int",
            "SELECT n * 7 % 5000, n % 100 FROM generate_series(0, 49999) AS s(n)",
        ),
    ] {
        homes.run(&format!("CREATE TABLE {table} ({columns}) {stride}")).await;
        homes.run(&format!("INSERT INTO {table} {rows}")).await;
        homes.run(&format!("FLUSH TABLE {table}")).await;
    }
    let lines = (0..50_000_u32).map(|n| (n * 7 % 5000, n % 100));
    let is_local = |(customer, supplier): &(u32, u32)| {
        customer % 1000 != 7 && customer / 1000 == 3 && supplier % 5 == 3
    };
    let expected = lines.filter(is_local).count().to_string();
    let sql = "SELECT count(*) FROM customers c JOIN lines l ON l.customer = c.id \
         JOIN suppliers s ON l.supplier = s.id AND c.nation = s.nation \
         JOIN nations n ON s.nation = n.id WHERE n.name = 'nation 3'";
    for _ in 0..3 {
        assert_eq!(answer(&keeping.long, sql, &[], true).await, [expected.as_str()]);
    }
    let explained = answer(&keeping.long, &format!("EXPLAIN ANALYZE {sql}"), &[], true).await;
    let scan = explained.iter().find(|line| line.contains("customers")).unwrap();
    let rows = scan.split("output_rows=").nth(1).and_then(|rest| rest.split([',', ']']).next());
    assert_eq!(rows, Some("999"), "{}", explained.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn recursion_does_not_keep_the_filters_of_its_last_step() {
    let homes = Homes::new().await;
    homes.run("CREATE TABLE edges (a bigint, b bigint)").await;
    homes.run("INSERT INTO edges SELECT n, n + 1 FROM generate_series(1, 200) AS s(n)").await;
    homes.run("FLUSH TABLE edges").await;
    let sql = "WITH RECURSIVE reached(n) AS (SELECT 1::bigint UNION SELECT b FROM reached JOIN edges ON a = n) \
         SELECT count(*), max(n) FROM reached";
    for _ in 0..3 {
        assert_eq!(answer(&homes.keeping.long, sql, &[], true).await, ["201|201"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_that_nobody_waits_for_leaves_the_next_one_whole() {
    let homes = Homes::new().await;
    let sql =
        "SELECT e.account, e.cost, o.region FROM events e JOIN events o ON e.account = o.account";
    let expected = answer(&homes.decoding.long, sql, &[], false).await;
    for batches in [0, 1, 3, 0, 1] {
        let session = &homes.keeping.long;
        let Outcome::Rows(mut rows) = session.sql(sql).await.unwrap() else { panic!("no rows") };
        for _ in 0..batches {
            rows.next().await.unwrap().unwrap();
        }
    }
    assert_eq!(answer(&homes.keeping.long, sql, &[], false).await, expected);
    assert_eq!(answer(&homes.keeping.long, sql, &[], false).await, expected);
}
