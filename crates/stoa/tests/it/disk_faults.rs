//! A server on a disk that fails: at each call in turn, once or until it is mended.
//!
//! A client writes in every way that small statements can (rows through the log, flushes, changes that
//! rewrite files, tables made and dropped) and keeps a ledger of what it was told. Whatever was told
//! to be done is there afterwards, after a crash, too; whatever was told not to be done is not; and
//! the server works again as soon as the disk does, unless its log has stopped, which it says.
//!
//! `STOA_DISK_FAULTS=all` runs all calls; by default it is a sample.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::Value;
use stoa_testkit::{Fault, FaultyDisk, Plan, call};

use crate::harness::{Place, Server};

/// Which calls fail: where, and of which kind.
const PLACES: [(&str, u32); 6] = [
    ("/_log/", call::ANY),
    ("/catalog.db", call::ANY),
    ("/catalog.db", call::SYNC),
    ("/data/", call::ANY),
    ("/metadata/", call::ANY),
    ("/w/", call::ANY),
];

const FAULTS: [Fault; 3] = [Fault::Eio, Fault::Enospc, Fault::Short];

/// Calls of one place that a script makes, and some more.
const CALLS_MAX: u64 = 40;

/// What a client knows of a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Done,
    NotDone,
    Unknown,
}

/// What a client was told of each statement.
#[derive(Default)]
struct Ledger {
    /// Rows of `t` by id.
    inserted: BTreeMap<i64, Told>,
    /// Rows of `d` by id: whether each is deleted.
    deleted: BTreeMap<i64, Told>,
    /// Tables by number: whether each was made.
    made: BTreeMap<i64, Told>,
    /// What was said, for the message of a failure.
    said: Vec<String>,
}

impl Ledger {
    /// Runs a statement; what it tells of its outcome.
    fn run(&mut self, server: &Server, sql: &str) -> Told {
        let (status, body) = server.post_sql(sql).unwrap_or((0, String::new()));
        if status == 200 {
            return Told::Done;
        }
        let problem: Value = serde_json::from_str(&body).unwrap_or_default();
        let error = &problem["error"];
        let code = error["code"].as_str().unwrap_or("none").to_owned();
        self.said.push(format!("{sql}: {code} {}", error["message"]));
        // Nobody gets an answer that tells nothing.
        assert!(!["none", "XX000", "XX001"].contains(&code.as_str()), "{sql}: {status} {body}");
        match code.as_str() {
            "08007" => {
                assert_eq!(error["retryable"], false, "{body}");
                Told::Unknown
            }
            _ => Told::NotDone,
        }
    }

    /// One of each kind of statement; `number` is used once.
    fn script(&mut self, server: &Server, number: i64) {
        for id in [number * 2, number * 2 + 1] {
            let told = self.run(server, &format!("INSERT INTO t VALUES ({id}, 'x')"));
            self.inserted.insert(id, told);
        }
        self.run(server, "FLUSH TABLE t");
        let told = self.run(server, &format!("DELETE FROM d WHERE id = {number}"));
        self.deleted.insert(number, told);
        let told = self.run(server, &format!("CREATE TABLE n{number} (id bigint)"));
        self.made.insert(number, told);
        self.run(server, &format!("UPDATE d SET v = 'y' WHERE id = {}", number + 1));
    }

    /// Compares with what is there. What is unknown is known from now on.
    fn check(&mut self, server: &Server, case: &str) {
        let present = column(server, "SELECT id FROM t ORDER BY id");
        let left = column(server, "SELECT id FROM d ORDER BY id");
        let tables = column(
            server,
            "SELECT substr(table_name, 2)::bigint FROM information_schema.tables
             WHERE table_schema = 'public' AND table_name LIKE 'n%' ORDER BY 1",
        );
        let said = self.said.join("\n");
        let settle = |what: &str, told: &mut BTreeMap<i64, Told>, found: &dyn Fn(i64) -> bool| {
            for (id, told) in told {
                let is_there = found(*id);
                let expected = match *told {
                    Told::Done => true,
                    Told::NotDone => false,
                    Told::Unknown => is_there,
                };
                assert_eq!(is_there, expected, "{case}: {what} {id}, told {told:?}\n{said}");
                *told = if is_there { Told::Done } else { Told::NotDone };
            }
        };
        settle("row of t", &mut self.inserted, &|id| present.contains(&id));
        settle("deletion in d", &mut self.deleted, &|id| !left.contains(&id));
        settle("table", &mut self.made, &|id| tables.contains(&id));
        let mut once = present.clone();
        once.dedup();
        assert_eq!(present, once, "{case}: rows are there twice\n{said}");
        self.said.clear();
        // Thousands of tables would make each look at their names slow.
        for (number, _) in std::mem::take(&mut self.made) {
            let told = self.run(server, &format!("DROP TABLE IF EXISTS n{number}"));
            assert_eq!(told, Told::Done, "{case}: {:?}", self.said);
        }
    }
}

fn column(server: &Server, sql: &str) -> Vec<i64> {
    let (status, body) = server.post_sql(sql).unwrap();
    assert_eq!(status, 200, "{sql}: {body}");
    body.lines().skip(1).map(|line| line.parse().unwrap()).collect()
}

/// One way for the disk to fail.
struct Case {
    place: usize,
    fault: Fault,
    skip: u64,
    once: bool,
    /// Whether the process is killed while the disk is ill.
    dies: bool,
}

fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for skip in 0..CALLS_MAX {
        for place in 0..PLACES.len() {
            for fault in FAULTS {
                for (once, dies) in [(true, false), (true, true), (false, false), (false, true)] {
                    all.push(Case { place, fault, skip, once, dies });
                }
            }
        }
    }
    #[expect(clippy::disallowed_methods, reason = "the size of a test is no setting")]
    let whole = std::env::var("STOA_DISK_FAULTS").is_ok_and(|size| size == "all");
    if !whole {
        // A prime, so that each place, fault and manner comes up.
        all = all.into_iter().step_by(127).collect();
    }
    all
}

fn start(place: &Place, disk: &FaultyDisk) -> Server {
    let mut command = place.command(&["server", "--warehouse", "w"]);
    command.args([
        "--http-port",
        "0",
        "--pg-port",
        "0",
        "--flight-port",
        "0",
        "--hive-port",
        "none",
    ]);
    disk.below(&mut command);
    Server::run(command)
}

/// Whether the server says that it is ready, everywhere where it says so. The log may stop between
/// two questions, and never starts again.
fn is_ready(server: &Server) -> bool {
    let stopped = || {
        let ask = || {
            let metrics = server.get("/metrics").unwrap().1;
            let has = |line: &str| metrics.lines().any(|found| found == line);
            (has("stoa_log_stopped 1"), has("stoa_process_ready 0"))
        };
        // It may stop between two lines of an answer, but of one answer only.
        let (mut stopped, mut not_ready) = ask();
        if stopped != not_ready {
            (stopped, not_ready) = ask();
        }
        assert_eq!(stopped, not_ready);
        stopped
    };
    let before = stopped();
    let (status, body) = server.get("/ready").unwrap();
    let after = stopped();
    assert!(status == 200 || after, "{body}");
    assert!(status != 200 || !before, "{body}");
    assert_eq!(body.contains("the commit log has stopped"), status != 200, "{body}");
    !after
}

#[test]
fn what_is_told_is_so_at_whichever_call_the_disk_fails() {
    let place = Place::new();
    let dir = place.path(".").canonicalize().unwrap();
    let disk = FaultyDisk::new(&dir, dir.join("w").to_str().unwrap());
    let mut server = start(&place, &disk);
    let mut ledger = Ledger::default();
    for sql in [
        "CREATE TABLE t (id bigint, v text)",
        "CREATE TABLE d (id bigint, v text)",
        "INSERT INTO d SELECT value, 'x' FROM generate_series(0, 4000) AS s(value)",
        "FLUSH TABLE d",
    ] {
        assert_eq!(ledger.run(&server, sql), Told::Done, "{:?}", ledger.said);
    }
    let (mut hits, mut unknown) = (0, 0);
    for (number, case) in (1_i64..).zip(cases()) {
        let Case { fault, skip, once, dies, .. } = case;
        let (part, calls) = PLACES[case.place];
        let text =
            format!("{fault:?} at call {skip} in {part} ({calls}), once {once}, dies {dies}");
        disk.arm(&Plan { fault, calls, part, skip, times: u64::from(once) });
        ledger.script(&server, number);
        hits += disk.counts().1.min(1);
        unknown += usize::from(ledger.said.iter().any(|said| said.contains(": 08007")));
        let mut restart = dies;
        if !dies {
            disk.heal();
            restart = !is_ready(&server);
        }
        if !restart {
            // The disk is mended, and so is the server.
            ledger.check(&server, &text);
            for sql in ["INSERT INTO t VALUES (-1, 'x')", "DELETE FROM t WHERE id = -1"] {
                assert_eq!(ledger.run(&server, sql), Told::Done, "{text}: {:?}", ledger.said);
            }
            assert!(is_ready(&server));
            continue;
        }
        server.signal(Signal::KILL);
        server.wait();
        disk.heal();
        server = start(&place, &disk);
        ledger.check(&server, &text);
        assert!(is_ready(&server));
    }
    let (status, body) = server.post_sql("SELECT count(*) FROM t").unwrap();
    assert_eq!(status, 200, "{body}");
    server.signal(Signal::TERM);
    server.wait();
    for table in ["t", "d"] {
        place.ok(&["table", "check", "--warehouse", "w", table]);
    }
    eprintln!("{hits} faults were met, {unknown} left an outcome unknown");
    assert!(hits >= 10, "{hits}");
}
