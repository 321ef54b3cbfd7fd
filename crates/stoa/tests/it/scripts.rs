//! `TRANSFORM` in the real program: rows through programs, who may run them, and what is left of them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::harness::{Place, Server, wait_for};

/// What the corpus uses.
const COMMANDS: &str = "/usr/bin/cat:/usr/bin/awk:/usr/bin/sed:/usr/bin/grep:/usr/bin/false";

struct Session {
    runtime: Runtime,
    client: Client,
}

impl Session {
    fn new(server: &Server, user: &str, password: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let port = server.pg_port();
        let config =
            format!("host=127.0.0.1 port={port} user={user} password={password} dbname=stoa");
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
            stoa_env::task::spawn(connection);
            client
        });
        let session = Self { runtime, client };
        session.rows("SET dialect = hive").unwrap();
        session
    }

    /// Rows, with tabs between columns, or the SQLSTATE and all that was said.
    fn rows(&self, sql: &str) -> Result<Vec<String>, (String, String)> {
        let messages = self.runtime.block_on(self.client.simple_query(sql)).map_err(failure)?;
        let row = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => {
                let cells = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
                Some(cells.collect::<Vec<_>>().join("\t"))
            }
            _ => None,
        };
        Ok(messages.into_iter().filter_map(row).collect())
    }

    fn refused(&self, sql: &str) -> String {
        self.rows(sql).unwrap_err().0
    }
}

fn failure(error: tokio_postgres::Error) -> (String, String) {
    let Some(of_server) = error.as_db_error() else { return (String::new(), error.to_string()) };
    let said = format!(
        "{} | {} | {}",
        of_server.message(),
        of_server.detail().unwrap_or_default(),
        of_server.hint().unwrap_or_default()
    );
    (of_server.code().code().to_owned(), said)
}

/// A folder with programs.
fn programs(place: &Place, all: &[(&str, &str)]) -> String {
    let folder = place.path("scripts");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in all {
        let path = place.write(&format!("scripts/{name}"), text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder.display().to_string()
}

/// Cells as Hive writes them, whatever PostgreSQL's text of them is.
fn plain(row: &str) -> String {
    let cell = |cell: &str| match cell {
        "t" => "true".to_owned(),
        "f" => "false".to_owned(),
        other => match other.parse::<f64>() {
            Ok(number) => format!("{number}"),
            Err(_) => other.to_owned(),
        },
    };
    row.split('\t').map(cell).collect::<Vec<_>>().join("\t")
}

#[test]
fn rows_are_those_of_hive() {
    let place = Place::new();
    let server = Server::start(&place, &["--scripts", COMMANDS]);
    let session = Session::new(&server, "stoa", "x");
    let corpus =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../stoa-query/tests/hiveql/scripts.txt");
    let text = std::fs::read_to_string(corpus).unwrap();
    let (mut wrong, mut count) = (String::new(), 0);
    for block in text.split("\nQ ").skip(1) {
        count += 1;
        let mut lines = block.lines();
        let statement = lines.next().unwrap();
        let (mut rows, mut sqlstate) = (Vec::new(), None);
        for line in lines {
            match line.split_at(line.len().min(2)) {
                ("R ", row) => rows.push(plain(row)),
                ("X ", code) => sqlstate = Some(code.to_owned()),
                _ => {}
            }
        }
        rows.sort();
        let found = session.rows(statement).map(|rows| {
            let mut rows: Vec<String> = rows.iter().map(|row| plain(row)).collect();
            rows.sort();
            rows
        });
        let is_right = match (&found, &sqlstate) {
            (Ok(found), None) => *found == rows,
            (Err((found, _)), Some(sqlstate)) => found == sqlstate,
            _ => false,
        };
        if !is_right {
            wrong.push_str(&format!(
                "{statement}\n  found {found:?}\n  not {rows:?} {sqlstate:?}\n"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 60, "{count}");
}

const MAPPER: &str = "#!/usr/bin/python3
import sys
for line in sys.stdin:
    for word in line.rstrip('\\n').split(' '):
        print(word, 1, sep='\\t')
";
const REDUCER: &str = "#!/usr/bin/python3
import itertools, sys
rows = (line.rstrip('\\n').split('\\t') for line in sys.stdin)
for word, group in itertools.groupby(rows, lambda row: row[0]):
    print(word, sum(int(row[1]) for row in group), sep='\\t')
";

#[test]
fn words_are_counted_as_sql_counts_them() {
    let place = Place::new();
    let folder = programs(&place, &[("map.py", MAPPER), ("reduce.py", REDUCER)]);
    let server = Server::start(&place, &["--scripts", &folder, "--num-executors", "4"]);
    let session = Session::new(&server, "stoa", "x");
    session.rows("CREATE TABLE lines (line STRING)").unwrap();
    for part in 0..4 {
        let lines: Vec<String> = (0..20_000)
            .map(|at| format!("('w{} w{} w{}')", at % 97, (at * part) % 1013, at % 7))
            .collect();
        session.rows(&format!("INSERT INTO lines VALUES {}", lines.join(","))).unwrap();
    }
    let sorted = |sql: &str| {
        let mut rows = session.rows(sql).unwrap();
        rows.sort();
        rows
    };
    let by_scripts = sorted(
        "FROM (FROM lines MAP line USING 'map.py' AS (word STRING, n INT) CLUSTER BY word) m \
         REDUCE m.word, m.n USING 'reduce.py' AS (word STRING, n BIGINT)",
    );
    let by_sql = sorted(
        "SELECT word, count(*) FROM lines LATERAL VIEW explode(split(line, ' ')) t AS word GROUP BY word",
    );
    assert!(by_sql.len() > 1000, "{}", by_sql.len());
    assert_eq!(by_scripts, by_sql);
    // Each word is counted by one process, and there are several.
    let processes = "#!/bin/sh\nexec awk -v pid=$$ '{print $1 \"\\t\" pid}'\n";
    programs(&place, &[("pids.sh", processes)]);
    let rows = session.rows(
        "SELECT count(DISTINCT pid), count(DISTINCT word), count(*) FROM (SELECT DISTINCT word, pid FROM (SELECT TRANSFORM (word) \
         USING 'pids.sh' AS (word STRING, pid STRING) FROM (FROM lines MAP line USING 'map.py' AS (word STRING, n INT) DISTRIBUTE BY word) m) p) q",
    );
    let row = rows.unwrap().remove(0);
    let counts: Vec<u32> = row.split('\t').map(|count| count.parse().unwrap()).collect();
    assert!(counts[0] > 1 && counts[1] == counts[2], "{row}");
}

#[test]
fn only_what_is_listed_runs_and_only_for_whom_it_is_allowed() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let session = Session::new(&server, "stoa", "x");
    let cat = "SELECT TRANSFORM (1) USING 'cat' AS (a INT)";
    let (code, said) = session.rows(cat).unwrap_err();
    assert!(code == "42501" && said.contains("scripts are off"), "{code} {said}");
    assert_eq!(session.refused("ADD FILE /etc/passwd"), "42501");
    assert_eq!(session.refused("SET stoa.scripts='/bin'"), "42704");
    drop(session);
    server.signal(Signal::TERM);
    server.wait();

    let folder = programs(&place, &[("hello.sh", "#!/bin/sh\ncat; cat words.txt\n")]);
    place.write("scripts/words.txt", "hello\n");
    let role = |sql: &str| place.ok(&["sql", "--warehouse", "w", "-c", sql]);
    role("CREATE ROLE root LOGIN SUPERUSER PASSWORD 'secret1'");
    role("CREATE ROLE etl");
    for user in ["ann", "bob"] {
        role(&format!("CREATE ROLE {user} LOGIN PASSWORD 'secret1'"));
    }
    role("GRANT etl TO ann");
    let arguments = ["--scripts", &folder, "--script-roles", "etl", "--access-control"];
    let server = Server::start(&place, &arguments);
    let hello = "SELECT TRANSFORM ('a') USING 'hello.sh x; rm -rf /' AS (a STRING)";
    for user in ["root", "ann"] {
        let session = Session::new(&server, user, "secret1");
        // The file is not there before it is added.
        assert_eq!(session.refused(hello), "38000", "{user}");
        session.rows(&format!("ADD FILE {folder}/words.txt")).unwrap();
        assert_eq!(session.rows("LIST FILES").unwrap(), [format!("{folder}/words.txt")]);
        assert_eq!(session.rows(hello).unwrap(), ["a", "hello"], "{user}");
        session.rows("DELETE FILES words.txt").unwrap();
        assert_eq!(session.rows("LIST FILES").unwrap(), Vec::<String>::new());
        for command in ["cat", "/bin/cat", "sh hello.sh", "../scripts/../hello.sh", "words.txt"] {
            let sql = format!("SELECT TRANSFORM (1) USING '{command}' AS (a INT)");
            assert_eq!(session.refused(&sql), "42501", "{command}");
        }
        assert_eq!(session.refused("ADD FILE /etc/passwd"), "42501");
    }
    // A view runs its program for who asks, not for who made it.
    let root = Session::new(&server, "root", "secret1");
    root.rows("CREATE VIEW v AS SELECT TRANSFORM (1) USING 'hello.sh' AS (a STRING)").unwrap();
    root.rows("GRANT SELECT ON v TO USER bob").unwrap();
    let bob = Session::new(&server, "bob", "secret1");
    assert_eq!(bob.refused(hello), "42501");
    assert_eq!(bob.refused(&format!("ADD FILE {folder}/words.txt")), "42501");
    assert_eq!(bob.refused("SELECT * FROM v"), "42501");
}

/// Processes whose command lines have `mark`, without the server itself.
fn processes(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}

/// A program that wants to stay: it ignores signals, and leaves a process in another session.
fn staying(mark: &str) -> String {
    format!(
        "#!/bin/sh\ntrap '' TERM HUP INT\n(setsid sleep 9{mark} &)\nsleep 9{mark}\nsleep 9{mark}\n"
    )
}

#[test]
fn nothing_is_left_of_a_query_that_ends() {
    let place = Place::new();
    let mark = std::process::id().to_string();
    let folder = programs(&place, &[("stay.sh", &staying(&mark))]);
    let mark = format!("9{mark}");
    let spill = place.path("spill");
    let spill = spill.to_str().unwrap();
    let start = || Server::start(&place, &["--scripts", &folder, "--spill-dir", spill]);
    let stay = "SELECT TRANSFORM (1) USING 'stay.sh' AS (a INT)";
    let gone = |how: &str| {
        wait_for(how, || (processes(&mark) == 0).then_some(()));
        let left = || {
            let entries = std::fs::read_dir(spill).unwrap().flatten();
            entries.filter(|e| e.file_name().to_string_lossy().starts_with("stoa-script")).count()
        };
        wait_for("folders of programs are removed", || (left() == 0).then_some(()));
    };
    let server = start();
    let session = Session::new(&server, "stoa", "x");

    session.rows("SET stoa.statement_timeout = '500ms'").unwrap();
    assert_eq!(session.refused(stay), "57014");
    gone("after a timeout");
    session.rows("SET stoa.statement_timeout = 0").unwrap();

    let token = session.client.cancel_token();
    let other = Session::new(&server, "stoa", "x");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| session.refused(stay));
        wait_for("it runs", || (processes(&mark) >= 2).then_some(()));
        other.runtime.block_on(token.cancel_query(NoTls)).unwrap();
        assert_eq!(running.join().unwrap(), "57014");
    });
    gone("after a cancel");

    std::thread::scope(|scope| {
        let running = scope.spawn(|| session.refused(stay));
        wait_for("it runs", || (processes(&mark) >= 2).then_some(()));
        let find = "SELECT id FROM system.queries WHERE state = 'running' AND sql LIKE '%stay.sh%' AND sql NOT LIKE '%queries%'";
        let id = server.post_sql(find).unwrap().1;
        let id = id.lines().nth(1).unwrap();
        assert_eq!(server.post_sql(&format!("KILL QUERY {id}")).unwrap().0, 200);
        assert_eq!(running.join().unwrap(), "57014");
    });
    gone("after KILL");

    // The client goes away.
    let leaving = Session::new(&server, "stoa", "x");
    {
        let query = leaving.client.simple_query(stay);
        leaving.runtime.block_on(async {
            let _ = stoa_env::timer::timeout(std::time::Duration::from_millis(10), query).await;
        });
        wait_for("it runs", || (processes(&mark) >= 2).then_some(()));
    }
    drop(leaving);
    gone("after the client went away");

    for (signal, how) in [(Signal::TERM, "after SIGTERM"), (Signal::KILL, "after kill -9")] {
        let server = start();
        let session = Session::new(&server, "stoa", "x");
        std::thread::scope(|scope| {
            scope.spawn(|| session.rows(stay));
            wait_for("it runs", || (processes(&mark) >= 2).then_some(()));
            server.signal(signal);
            gone(how);
        });
    }
}

#[test]
fn programs_that_fail_say_why() {
    let place = Place::new();
    let fails = "#!/bin/sh\nread line\necho \"cannot use $line\" >&2\nexit 7\n";
    let folder = programs(
        &place,
        &[
            ("fails.sh", fails),
            ("early.sh", "#!/bin/sh\nexit 0\n"),
            ("endless.sh", "#!/bin/sh\nwhile true; do echo x; done\n"),
        ],
    );
    let server = Server::start(&place, &["--scripts", &folder]);
    let session = Session::new(&server, "stoa", "x");
    let (code, said) =
        session.rows("SELECT TRANSFORM ('a') USING 'fails.sh' AS (a STRING)").unwrap_err();
    assert_eq!(code, "38000");
    assert!(said.contains("failed with exit code 7") && said.contains("cannot use a"), "{said}");
    // As many rows as no pipe holds.
    let many = "FROM (SELECT repeat('x', 1000) AS x LATERAL VIEW explode(split(repeat('a ', 5000), ' ')) t AS y) r";
    let early = format!("SELECT TRANSFORM (r.x) USING 'early.sh' AS (a STRING) {many}");
    let (code, said) = session.rows(&early).unwrap_err();
    assert!(code == "38000" && said.contains("before it had read all its rows"), "{code} {said}");
    // One that writes without end is read as far as rows are wanted.
    let few = "SELECT TRANSFORM ('a') USING 'endless.sh' AS (a STRING) LIMIT 3";
    assert_eq!(session.rows(few).unwrap(), ["x", "x", "x"]);
}
