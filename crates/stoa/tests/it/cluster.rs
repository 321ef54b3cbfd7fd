//! Three daemons over one catalog in a real PostgreSQL are one server: also while one is killed, one is frozen
//! and one drained.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use stoa_env::clock::monotonic;
use stoa_testkit::PostgresServer;

use crate::harness::{Place, Server, wait_for};

/// The lines of an answer but for its head.
fn rows(server: &Server, sql: &str) -> Vec<String> {
    let (status, body) = server.post_sql(sql).unwrap_or_else(|| panic!("nobody answers {sql}"));
    assert_eq!(status, 200, "{sql}: {body}");
    body.lines().skip(1).map(str::to_owned).collect()
}

fn sent(server: &Server, sql: &str) {
    rows(server, sql);
}

/// All ids that a daemon shows; none twice.
fn ids(server: &Server) -> BTreeSet<i64> {
    let ids = rows(server, "SELECT id FROM t ORDER BY id");
    let distinct: BTreeSet<i64> = ids.iter().map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids.len(), distinct.len(), "a row is there twice: {ids:?}");
    distinct
}

fn states(server: &Server) -> Vec<String> {
    rows(server, "SELECT state FROM system.daemons ORDER BY state")
}

fn log_count(server: &Server) -> String {
    rows(server, "SELECT logs FROM system.cluster").concat()
}

/// How a request ended.
enum Sent {
    Done(String),
    /// It was not taken: it may be sent elsewhere.
    NotTaken,
    /// Nobody knows.
    Cut(String),
}

fn send(port: u16, sql: &str) -> Sent {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return Sent::NotTaken };
    let request = format!(
        "POST /v1/sql?format=csv HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{sql}",
        sql.len()
    );
    let mut answer = String::new();
    let sent =
        stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    match answer.split(' ').nth(1) {
        Some("200") => Sent::Done(answer),
        // 57P01 and 57P03: before the statement began.
        Some("503") if answer.contains("57P0") => Sent::NotTaken,
        _ => Sent::Cut(format!("{sql}: {sent:?}: {answer}")),
    }
}

/// Sends a statement to the first daemon that takes it, as a client behind a balancer does.
fn send_to_any(ports: &Mutex<Vec<u16>>, turn: usize, sql: &str) -> Result<String, String> {
    let began = monotonic();
    for attempt in turn.. {
        let all = ports.lock().unwrap().clone();
        match send(all[attempt % all.len()], sql) {
            Sent::Done(answer) => return Ok(answer),
            Sent::Cut(why) => return Err(why),
            Sent::NotTaken if began.elapsed() > Duration::from_secs(60) => break,
            Sent::NotTaken => std::thread::park_timeout(Duration::from_millis(5)),
        }
    }
    Err(format!("nobody takes {sql}"))
}

/// An upgrade: each daemon is ended and another one started in its place, while all are read and written.
#[test]
fn daemons_are_replaced_one_by_one_without_a_failed_request() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let url = postgres.database();
    let start = || Server::start(&place, &["--catalog", &url]);
    let mut servers: Vec<Server> = (0..3).map(|_| start()).collect();
    sent(&servers[0], "CREATE TABLE t (id bigint, d text)");
    let ports = Mutex::new(servers.iter().map(Server::http_port).collect::<Vec<_>>());
    let (done, next) = (AtomicBool::new(false), AtomicI64::new(0));
    let acknowledged = Mutex::new(BTreeSet::new());
    let client = |turn: usize| {
        let mut requests = 0;
        while !done.load(Ordering::SeqCst) {
            let id = next.fetch_add(1, Ordering::SeqCst);
            send_to_any(&ports, turn, &format!("INSERT INTO t VALUES ({id}, 'x')"))?;
            acknowledged.lock().unwrap().insert(id);
            let expected = format!("\n{id}");
            let seen = send_to_any(&ports, turn + 1, &format!("SELECT id FROM t WHERE id = {id}"))?;
            if !seen.trim_end().ends_with(&expected) {
                return Err(format!("{id} was acknowledged and is not shown: {seen}"));
            }
            requests += 2;
        }
        Ok::<u64, String>(requests)
    };
    let requests: u64 = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|turn| scope.spawn(move || client(turn))).collect();
        for nth in 0..3 {
            let new = start();
            let old = std::mem::replace(&mut servers[nth], new);
            *ports.lock().unwrap() = servers.iter().map(Server::http_port).collect();
            old.signal(Signal::TERM);
            let (status, log) = old.wait();
            assert!(status.success(), "{log}");
        }
        done.store(true, Ordering::SeqCst);
        clients.into_iter().map(|client| client.join().unwrap().unwrap()).sum()
    });
    assert!(requests > 20, "{requests}");
    for server in &servers {
        assert_eq!(ids(server), *acknowledged.lock().unwrap());
    }
    let dead = rows(&servers[0], "SELECT count(*) FROM system.daemons WHERE state = 'dead'");
    assert!(dead.concat().parse::<u32>().unwrap() <= 3, "{dead:?}");
}

/// What runs on a daemon is ended at another one, as behind a balancer; nothing else is.
#[test]
fn what_runs_on_one_daemon_is_ended_at_another() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let url = postgres.database();
    let start = || Server::start(&place, &["--catalog", &url]);
    let (one, two) = (start(), start());
    let daemons = |server| rows(server, "SELECT count(*) FROM system.daemons").concat() == "2";
    wait_for("both to know of two", || (daemons(&one) && daemons(&two)).then_some(()));
    let sleeping = "SELECT id FROM system.queries WHERE sql LIKE '%pg_sleep%' AND state = 'running'
                    AND sql NOT LIKE '%system.queries%'";
    std::thread::scope(|scope| {
        for (runs_on, asked) in [(&one, &two), (&two, &one)] {
            let [sleeps, bystander] = [runs_on, asked].map(|server| {
                let port = server.http_port();
                scope.spawn(move || match send(port, "SELECT pg_sleep(300)") {
                    Sent::Cut(why) => why,
                    Sent::Done(_) | Sent::NotTaken => panic!("it did not run until it was ended"),
                })
            });
            let id_at = |server| wait_for("a query to run", || rows(server, sleeping).pop());
            let (id, other) = (id_at(runs_on), id_at(asked));
            assert_ne!(id, other, "ids of queries are those of one daemon");
            sent(asked, &format!("KILL QUERY {id}"));
            let ended = sleeps.join().unwrap();
            assert!(ended.contains("57014"), "{ended}");
            assert_eq!(rows(asked, sleeping), [other.as_str()], "another one was ended");
            let (status, body) = asked.post_sql(&format!("KILL QUERY {id}")).unwrap();
            assert!(status == 404 && body.contains("42704"), "{status}: {body}");
            sent(runs_on, &format!("KILL QUERY {other}"));
            let ended = bystander.join().unwrap();
            assert!(ended.contains("57014"), "{ended}");
        }
    });
    for unknown in ["KILL QUERY 17000000000017", "KILL QUERY 18446744073709551615"] {
        let (status, body) = one.post_sql(unknown).unwrap();
        assert!(status == 404 && body.contains("42704"), "{unknown}: {status}: {body}");
    }
    let process = |server| rows(server, "SELECT pg_backend_pid()").concat().parse::<u32>().unwrap();
    assert_eq!((process(&one) >> 21, process(&two) >> 21), (0, 1));
    // Of sessions that are gone, or were never there.
    let gone = "SELECT pg_cancel_backend(2097152), pg_terminate_backend(77000000), pg_cancel_backend(NULL)";
    assert_eq!(rows(&one, gone), ["false,false,"]);
}

/// Each part of a table is in one daemon's memory, and reports on it are answered there; whoever is asked, and whoever is
/// frozen or killed, the answers are those that the rows were made for.
#[test]
fn reports_are_answered_by_who_has_their_part_in_memory() {
    const ACCOUNTS: i64 = 1000;
    // Row groups of 1,000 rows begin within an account.
    const EACH: i64 = 230;
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let url = postgres.database();
    let start = || Server::start(&place, &["--catalog", &url, "--shared-table-size", "0"]);
    let (one, two, three) = (start(), start(), start());
    let all = [&one, &two, &three];
    for server in all {
        wait_for("all are up", || (states(server) == ["up"; 3]).then_some(()));
    }
    sent(
        &one,
        "CREATE TABLE ads (account bigint, clicks bigint) ORDER BY (account)
         WITH ('stoa.orc.row-index-stride' = '1000')",
    );
    let made = ACCOUNTS * EACH;
    sent(
        &one,
        &format!(
            "INSERT INTO ads SELECT i / {EACH}, i FROM generate_series(0, {made} - 1) AS s(i)"
        ),
    );
    sent(&one, "FLUSH TABLE ads");
    let mut more = 0;
    let sum = |account: i64| EACH * EACH * account + EACH * (EACH - 1) / 2;
    let ask = |server: &Server, account: i64, more: i64| {
        let sql = format!("SELECT sum(clicks), count(*) FROM ads WHERE account = {account}");
        let expected = format!("{},{}", sum(account) + more, EACH + i64::from(more > 0));
        assert_eq!(rows(server, &sql), [expected], "account {account}");
    };
    let figure = |server: &Server, name: &str| {
        let found = rows(server, &format!("SELECT {name} FROM system.cluster")).concat();
        found.parse::<u64>().unwrap()
    };
    let misses = |server: &Server| {
        let metrics = server.get("/metrics").unwrap().1;
        let line = metrics.lines().find_map(|l| l.strip_prefix("stoa_cache_chunk_misses_total "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let accounts = || (0..ACCOUNTS).step_by(7);
    for server in all {
        accounts().for_each(|account| ask(server, account, 0));
    }
    let forwarded = all.map(|server| figure(server, "reports_forwarded"));
    let for_others = all.map(|server| figure(server, "reports_for_others"));
    let asked = 3 * accounts().count() as u64;
    let (sent_on, taken): (u64, u64) = (forwarded.iter().sum(), for_others.iter().sum());
    // On a busy machine some homes are not soon enough, and whoever was asked answers as well.
    let hedged = || all.iter().map(|server| figure(server, "reports_hedged")).sum::<u64>();
    let late = hedged();
    assert!(taken >= sent_on, "{forwarded:?}, {for_others:?}");
    assert!(sent_on + late > asked / 3, "{forwarded:?} and {late} of {asked}");
    assert!(for_others.iter().all(|count| *count > 0), "each has some: {for_others:?}");
    // Who has once read its part reads nothing any more, and nobody reads another's. A part that was asked for by many at a
    // time has up to three homes, each of which reads it once.
    let mut passes = 0;
    loop {
        let (read, late) = (all.map(misses), hedged());
        for server in all {
            accounts().for_each(|account| ask(server, account, 0));
        }
        let again: u64 = all.map(misses).iter().sum::<u64>() - read.iter().sum::<u64>();
        // Two columns in two row groups at most, of each that was late again.
        let late = 4 * (hedged() - late);
        passes += 1;
        if again <= late {
            break;
        }
        assert!(passes < 5, "{again} chunks were not in the home's memory, {late} may have been");
    }

    // Over many parts, each home answers for its own.
    let ask_wide = |server: &Server, accounts: std::ops::Range<i64>, more: i64| {
        let (first, last) = (accounts.start, accounts.end - 1);
        let clicks: i64 = accounts.clone().map(sum).sum();
        let count = EACH * (last - first + 1) + i64::from(more > 0);
        let (least, greatest) = (EACH * first, EACH * (last + 1) - 1);
        let sql = format!(
            "SELECT count(*), sum(clicks), min(clicks), max(clicks) FROM ads
             WHERE account BETWEEN {first} AND {last}"
        );
        let expected = format!("{count},{},{least},{greatest}", clicks + more);
        assert_eq!(rows(server, &sql), [expected], "accounts {first} to {last}");
        let sql = format!(
            "SELECT account, count(*) FROM ads WHERE account BETWEEN {first} AND {last}
             GROUP BY account ORDER BY account DESC LIMIT 2"
        );
        let expected = [last, last - 1].map(|account| format!("{account},{EACH}"));
        assert_eq!(rows(server, &sql), expected, "accounts {first} to {last}");
    };
    all.iter().for_each(|server| ask_wide(server, 100..900, 0));
    let in_parts = all.map(|server| figure(server, "reports_in_parts"));
    assert!(in_parts.iter().all(|count| *count > 0), "{in_parts:?}");

    // A row that is in no file yet shows wherever the report is answered.
    sent(&two, "INSERT INTO ads VALUES (7, 5)");
    more += 5;
    for server in all {
        ask(server, 7, more);
        ask_wide(server, 0..500, more);
    }

    two.signal(Signal::STOP);
    for server in [&one, &three] {
        accounts().for_each(|account| ask(server, account, if account == 7 { more } else { 0 }));
    }
    ask_wide(&one, 500..1000, 0);
    let helped = figure(&one, "reports_hedged") + figure(&three, "reports_hedged");
    assert!(helped > 0, "the frozen one was asked");
    two.signal(Signal::KILL);
    two.wait();
    for server in [&one, &three] {
        accounts().for_each(|account| ask(server, account, if account == 7 { more } else { 0 }));
        ask_wide(server, 0..999, more);
    }
}

#[test]
fn a_rollback_undoes_rows_in_the_logs_of_all_daemons() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let url = postgres.database();
    let start = || Server::start(&place, &["--catalog", &url]);
    let (one, two) = (start(), start());
    sent(&one, "CREATE TABLE t (id bigint)");
    sent(&one, "INSERT INTO t VALUES (1)");
    sent(&two, "INSERT INTO t VALUES (2)");
    sent(&one, "FLUSH TABLE t");
    let newest = "SELECT snapshot_id FROM \"t$history\" ORDER BY made_current_at DESC LIMIT 1";
    let version = rows(&one, newest).concat();
    // In the logs of both, and in no file.
    sent(&one, "INSERT INTO t VALUES (3)");
    sent(&two, "INSERT INTO t VALUES (4)");
    sent(&two, &format!("ALTER TABLE t ROLLBACK TO VERSION {version}"));
    for reader in [&one, &two] {
        assert_eq!(ids(reader), BTreeSet::from([1, 2]));
    }
    let undone =
        "SELECT snapshot_id FROM \"t$history\" ORDER BY made_current_at DESC LIMIT 1 OFFSET 1";
    let undone = rows(&one, undone).concat();
    assert_eq!(rows(&one, &format!("SELECT id FROM t@{undone} ORDER BY id")), ["1", "2", "3", "4"]);
    // Rows that come later stay; those of a log that another daemon takes over do not come again.
    sent(&one, "INSERT INTO t VALUES (5)");
    one.signal(Signal::KILL);
    one.wait();
    assert_eq!(ids(&two), BTreeSet::from([1, 2, 5]));
    wait_for("its log is taken over", || (log_count(&two) == "1").then_some(()));
    assert_eq!(ids(&two), BTreeSet::from([1, 2, 5]));
    sent(&two, &format!("ALTER TABLE t ROLLBACK TO VERSION {undone}"));
    assert_eq!(ids(&two), BTreeSet::from([1, 2, 3, 4]));
}

#[test]
fn three_daemons_are_one_server() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let url = postgres.database();
    let start = || Server::start(&place, &["--catalog", &url]);
    let (one, two, three) = (start(), start(), start());
    sent(&one, "CREATE TABLE t (id bigint, d text)");
    let mut expected = BTreeSet::new();
    for round in 0..10 {
        for (nth, server) in [&one, &two, &three].into_iter().enumerate() {
            let id = round * 10 + nth as i64;
            sent(server, &format!("INSERT INTO t VALUES ({id}, 'x')"));
            expected.insert(id);
            for reader in [&one, &two, &three] {
                assert_eq!(ids(reader), expected, "after {id}");
            }
        }
    }
    // Rows that are in the logs of all daemons, and in no file.
    sent(&two, "DELETE FROM t WHERE id < 30");
    expected.retain(|id| *id >= 30);
    sent(&three, "UPDATE t SET d = 'y' WHERE id % 10 = 1");
    for reader in [&one, &two, &three] {
        assert_eq!(ids(reader), expected);
        assert_eq!(rows(reader, "SELECT count(*) FROM t WHERE d = 'y'"), ["7"]);
    }
    wait_for("all are up", || (states(&one) == ["up"; 3]).then_some(()));
    let listed = place.ok(&["daemons", "list", "--warehouse", "w", "--catalog", &url]);
    assert_eq!(listed.matches(" up ").count(), 3, "{listed}");

    // Killed: its rows stay visible, appends wait until it is dead, its log comes into files.
    sent(&three, "INSERT INTO t VALUES (1000, 'x')");
    expected.insert(1000);
    three.signal(Signal::KILL);
    three.wait();
    assert_eq!(ids(&one), expected);
    sent(&one, "INSERT INTO t VALUES (1001, 'x')");
    expected.insert(1001);
    assert_eq!(ids(&two), expected);
    wait_for("its log is taken over", || (log_count(&one) == "2").then_some(()));
    assert_eq!(states(&one), ["dead", "up", "up"]);
    let three = start();
    assert_eq!(ids(&three), expected);
    wait_for("it is up again", || (states(&one) == ["up"; 3]).then_some(()));

    // Frozen: the others go on without it, and when it wakes it answers nothing.
    sent(&two, "INSERT INTO t VALUES (1002, 'x')");
    expected.insert(1002);
    two.signal(Signal::STOP);
    sent(&one, "INSERT INTO t VALUES (1003, 'x')");
    expected.insert(1003);
    for reader in [&one, &three] {
        assert_eq!(ids(reader), expected);
    }
    wait_for("it is dead", || states(&one).contains(&"dead".to_owned()).then_some(()));
    two.signal(Signal::CONT);
    let (status, log) = two.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("declared this one dead"), "{log}");
    wait_for("its log is taken over", || (log_count(&one) == "2").then_some(()));
    for reader in [&one, &three] {
        assert_eq!(ids(reader), expected);
    }

    // Drained by an operator while it is written to: no request fails.
    let id = rows(&three, "SELECT daemon FROM system.daemons WHERE is_this").concat();
    let drained = place.ok(&["daemons", "drain", &id, "--warehouse", "w", "--catalog", &url]);
    assert!(drained.contains(&id), "{drained}");
    let (status, log) = three.wait();
    assert!(status.success(), "{log}");
    assert_eq!(ids(&one), expected);
    sent(&one, "INSERT INTO t VALUES (1004, 'x')");
    expected.insert(1004);
    assert_eq!(ids(&one), expected);
    for id in rows(&one, "SELECT daemon FROM system.daemons WHERE state = 'dead'") {
        place.ok(&["daemons", "remove", &id, "--warehouse", "w", "--catalog", &url]);
    }
    wait_for("the dead are removed", || (states(&one) == ["up"]).then_some(()));
    let alive = rows(&one, "SELECT daemon FROM system.daemons").concat();
    let refused = place.run(&["daemons", "remove", &alive, "--warehouse", "w", "--catalog", &url]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("is not dead"),
        "{}",
        refused.stderr
    );
    one.signal(Signal::TERM);
    let (status, log) = one.wait();
    assert!(status.success(), "{log}");

    // All in files: a daemon that starts alone has them all.
    let again = start();
    assert_eq!(ids(&again), expected);
}
