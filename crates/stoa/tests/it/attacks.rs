//! Statements that would bring a server down, sent to one that then has to answer a report.
//!
//! `STOA_ATTACK_PERCENT` is the size of long statements, in percent of what is promised; 10 by default.

use std::sync::mpsc;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Place, Server, request, wait_for};

/// A server with one executor, which a statement that does not give way takes from all others, and
/// a table for reports.
fn server(place: &Place) -> Server {
    place.query("CREATE TABLE clicks (account bigint, n bigint)");
    place.query("INSERT INTO clicks VALUES (1, 10), (1, 20), (2, 5)");
    Server::start(place, &["--num-executors", "1", "--shutdown-grace-s", "1"])
}

/// A report that needs the planner and an executor.
fn assert_reports_are_answered(server: &Server, after: &str) {
    let report = "SELECT a.account, count(DISTINCT a.n) FROM clicks a JOIN clicks b \
                  ON a.account = b.account GROUP BY a.account ORDER BY a.account";
    let (status, body) = server.post_sql(report).unwrap_or_else(|| panic!("gone after {after}"));
    assert_eq!(status, 200, "after {after}: {body}");
    assert!(body.contains("1,2") && body.contains("2,1"), "after {after}: {body}");
}

fn promised(count: usize) -> usize {
    #[expect(clippy::disallowed_methods, reason = "the size of a test is no setting")]
    let percent = std::env::var("STOA_ATTACK_PERCENT");
    let percent = percent.ok().and_then(|text| text.parse::<usize>().ok()).unwrap_or(10);
    count * percent / 100
}

fn list(count: usize, between: &str, each: impl Fn(usize) -> String) -> String {
    (0..count).map(each).collect::<Vec<_>>().join(between)
}

#[test]
fn long_statements_are_answered() {
    let place = Place::new();
    let server = server(&place);
    let terms = promised(10_000);
    let equal = |n: usize| format!("n = {n}");
    let unequal = |n: usize| format!("n <> {}", n + 1_000_000);
    let one = |_: usize| "1".to_owned();
    let number = |n: usize| n.to_string();
    for (what, sql, answer) in [
        (
            "OR",
            format!("SELECT count(*) FROM clicks WHERE {}", list(terms, " OR ", equal)),
            "3".to_owned(),
        ),
        (
            "AND",
            format!("SELECT count(*) FROM clicks WHERE {}", list(terms, " AND ", unequal)),
            "3".to_owned(),
        ),
        ("+", format!("SELECT {} AS sum", list(terms, "+", one)), terms.to_string()),
        (
            "+ of columns",
            format!("SELECT max({}) FROM clicks", list(terms, " + ", |_| "n".to_owned())),
            (20 * terms).to_string(),
        ),
        (
            "+ of decimals",
            format!("SELECT {} AS sum", list(terms, " + ", |_| "0.5".to_owned())),
            format!("{}.{}", terms / 2, if terms.is_multiple_of(2) { 0 } else { 5 }),
        ),
        (
            "- of decimals and integers",
            format!("SELECT {}.5 - {} AS rest", terms, list(terms, " - ", one)),
            "0.5".to_owned(),
        ),
        (
            "IN",
            format!("SELECT count(*) FROM clicks WHERE n IN ({})", {
                list(promised(100_000), ", ", number)
            }),
            "3".to_owned(),
        ),
        (
            "UNION ALL",
            format!("SELECT sum(x) FROM ({}) u", {
                list(promised(2_000), " UNION ALL ", |_| "SELECT 1 AS x".to_owned())
            }),
            promised(2_000).to_string(),
        ),
    ] {
        let (status, body) = server.post_sql(&sql).unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(status, 200, "{what}: {body}");
        let value = body.lines().nth(1).unwrap_or_default().trim();
        assert_eq!(value, answer, "{what}");
    }
    // The name of a long sum's column is what was asked for, and its overflow an error.
    let sum = list(100, " + ", |_| "2000000000".to_owned());
    let (status, body) = server.post_sql(&format!("SELECT {sum}")).unwrap();
    assert!(status == 400 && body.contains("22003"), "{status} {body}");
    assert_reports_are_answered(&server, "long statements");
}

#[test]
fn deep_statements_are_refused() {
    let place = Place::new();
    let server = server(&place);
    for (what, sql, codes) in [
        ("EXPLAIN", format!("{} SELECT 1", "EXPLAIN ".repeat(445)), "54001"),
        ("casts", format!("SELECT 1{}", "::bigint".repeat(1_500)), "54001"),
        ("IS NULL", format!("SELECT 1{}", " IS NULL".repeat(2_000)), "54001"),
        ("products", format!("SELECT {}", list(40_000, "*", |_| "1".to_owned())), "54001"),
        ("bits", format!("SELECT {}", list(100_000, "|", |_| "1".to_owned())), "54001"),
        ("parentheses", format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000)), "54001"),
        ("COALESCE", format!("SELECT {}1{}", "coalesce(".repeat(20), ", 1)".repeat(20)), "54001"),
        ("NOT", format!("SELECT {} true", "NOT ".repeat(5_000)), "42601 54001"),
        ("signs", format!("SELECT {} 1", "- ".repeat(5_000)), "54001"),
        ("types", format!("SELECT NULL::int{}", "[]".repeat(5_000)), "54001"),
        ("CASE", format!("SELECT {}1", "CASE WHEN true THEN ".repeat(5_000)), "42601 54001"),
        ("queries", format!("SELECT {}1", "(SELECT ".repeat(5_000)), "54001"),
        ("UNION", list(6_000, " UNION ALL ", |_| "SELECT 1".to_owned()), "54001"),
        ("joins", format!("SELECT 1 FROM {}", list(5_000, ", ", |_| "clicks".to_owned())), "54001"),
        ("ARRAY", format!("SELECT {}", "ARRAY[".repeat(48)), "42601 54001"),
        ("ARRAY and more", format!("SELECT {}1 1", "ARRAY[".repeat(48)), "42601 54001"),
        ("CAST", format!("SELECT {}", "CAST(".repeat(48)), "42601 54001"),
        ("EXTRACT", format!("SELECT {}", "EXTRACT(".repeat(48)), "42601 54001"),
        ("derived", format!("SELECT 1 FROM {}", "((SELECT 1 FROM ".repeat(40)), "42601 54001"),
        ("COPY", format!("COPY ({} SELECT 1) TO STDOUT", "EXPLAIN ".repeat(445)), "54001"),
        ("CREATE", format!("CREATE TABLE t (a {}", "ARRAY<".repeat(5_000)), "54001"),
        ("INSERT", format!("INSERT INTO clicks SELECT 1, 1{}", "::bigint".repeat(1_500)), "54001"),
    ] {
        let (status, body) = server.post_sql(&sql).unwrap_or_else(|| panic!("{what}: no answer"));
        assert_ne!(status, 200, "{what}");
        let error: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{what}: {body}"));
        let code = error["error"]["code"].as_str().unwrap_or_default();
        assert!(code.len() == 5 && codes.contains(code), "{what}: {body}");
    }
    assert_reports_are_answered(&server, "deep statements");
}

#[test]
fn the_shell_without_a_server_stands_them_as_well() {
    let place = Place::new();
    let terms = promised(10_000);
    let sum = list(terms, "+", |_| "1".to_owned());
    let file = place.write("sum.sql", format!("SELECT {sum} AS sum;\n"));
    let file = file.to_str().unwrap();
    let told = place.ok(&["sql", "--warehouse", "w", "--format", "csv", "--no-header", "-f", file]);
    assert_eq!(told.trim(), terms.to_string());
    place.write("deep.sql", format!("SELECT 1{};\n", "::bigint".repeat(30_000)));
    let ran = place.run(&["sql", "--warehouse", "w", "-f", "deep.sql"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("code: 54001"), "{}", ran.stderr);
}

#[test]
fn planning_keeps_nobody_else_waiting() {
    let place = Place::new();
    let server = server(&place);
    let columns = list(promised(40_000), ", ", |n| format!("n + {n} AS c{n}"));
    let wide = format!("SELECT {columns} FROM clicks");
    let answers: Vec<_> = (0..3).map(|_| send(&server, &wide)).collect();
    for _ in 0..20 {
        assert_eq!(server.get("/health").map(|(status, _)| status), Some(200));
        assert_reports_are_answered(&server, "wide statements");
    }
    let limited = format!("SET statement_timeout = 1; {wide}");
    let (status, body) = server.post_sql(&limited).unwrap();
    assert!(status != 200 && body.contains("57014"), "{status} {body:.500}");
    // The end does not wait for who plans.
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    drop(answers);
}

/// Statements that run for hours, each in another operator.
const ENDLESS: [(&str, &str); 12] = [
    (
        "nested loops without a match",
        "SELECT count(*) FROM generate_series(1, 1000000) a(value), generate_series(1, 1000000) b(value) \
         WHERE a.value + b.value = -1",
    ),
    (
        "nested loops of an outer join",
        "SELECT count(*) FROM generate_series(1, 1000000) a(value) LEFT JOIN generate_series(1, 1000000) b(value) \
         ON a.value + b.value = -1",
    ),
    (
        "a semi join",
        "SELECT count(*) FROM generate_series(1, 1000000) a(value) WHERE EXISTS \
         (SELECT 1 FROM generate_series(1, 1000000) b(value) WHERE a.value + b.value = -1)",
    ),
    (
        "an anti join",
        "SELECT count(*) FROM generate_series(1, 1000000) a(value) WHERE NOT EXISTS \
         (SELECT 1 FROM generate_series(1, 1000000) b(value) WHERE a.value + b.value = -1)",
    ),
    (
        "a cross join",
        "SELECT sum(a.value * b.value) FROM generate_series(1, 1000000) a(value), \
         generate_series(1, 1000000) b(value)",
    ),
    (
        "a hash join without a match",
        "SELECT count(*) FROM generate_series(1, 1000000) a(value) JOIN generate_series(1, 1000000) b(value) \
         ON a.value % 2 = b.value % 2 AND a.value + b.value < 0",
    ),
    (
        "groups",
        "SELECT a.value % 7, count(*) FROM generate_series(1, 1000000) a(value), \
         generate_series(1, 1000000) b(value) GROUP BY 1",
    ),
    (
        "distinct values",
        "SELECT count(DISTINCT a.value % 7) FROM generate_series(1, 1000000) a(value), \
         generate_series(1, 1000000) b(value)",
    ),
    (
        "a sort that keeps a few",
        "SELECT a.value FROM generate_series(1, 1000000) a(value), generate_series(1, 1000000) b(value) \
         ORDER BY a.value * b.value DESC LIMIT 3",
    ),
    (
        "a window",
        "SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY a.value ORDER BY b.value) AS r \
         FROM generate_series(1, 1000000) b(value), generate_series(1, 1000000) a(value)) w",
    ),
    (
        "a recursive query",
        "WITH RECURSIVE r AS (SELECT 1::bigint AS n UNION ALL \
         SELECT n + 1 FROM r WHERE n < 1000000000000) SELECT count(*) FROM r",
    ),
    (
        "a series",
        "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(value) WHERE value < 0",
    ),
];

#[test]
fn every_operator_gives_way_and_stops() {
    let place = Place::new();
    let server = server(&place);
    for (what, sql) in ENDLESS {
        let answer = send(&server, sql);
        let id = wait_for(what, || id_of(&server, sql));
        wait_for(&format!("{what} to have a plan"), || {
            server.get(&format!("/v1/queries/{id}/plan")).filter(|(status, _)| *status == 200)
        });
        assert_reports_are_answered(&server, &format!("{what} began"));
        let kill = format!("DELETE /v1/queries/{id} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        assert_eq!(request(server.http_port(), &kill).map(|(status, _)| status), Some(204));
        let (_, body) = answer.recv().unwrap().unwrap();
        assert!(body.contains("57014"), "{what}: {body}");
        assert_reports_are_answered(&server, &format!("{what} was killed"));
        // A client that goes away kills as well.
        request_and_leave(&server, sql);
    }
    let overdue = || {
        let (status, body) = server.get("/ready")?;
        let body: Value = serde_json::from_str(&body).unwrap();
        (status == 200 && body["statements_overdue"] == 0).then_some(())
    };
    wait_for("all threads to answer", overdue);
    wait_for("all queries to end", || {
        let (_, body) = server.get("/v1/queries")?;
        let queries: Value = serde_json::from_str(&body).unwrap();
        queries["running"].as_array()?.is_empty().then_some(())
    });
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
}

/// Sends a statement from another thread.
fn send(server: &Server, sql: &str) -> mpsc::Receiver<Option<(u16, String)>> {
    let (sender, receiver) = mpsc::channel();
    let (port, text) = (server.http_port(), post(sql));
    stoa_env::task::spawn_thread("ask", move || drop(sender.send(request(port, &text)))).unwrap();
    receiver
}

fn post(sql: &str) -> String {
    format!(
        "POST /v1/sql HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{sql}",
        sql.len()
    )
}

/// Sends a statement, waits until it runs, and closes the connection.
fn request_and_leave(server: &Server, sql: &str) {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.http_port())).unwrap();
    stream.write_all(post(sql).as_bytes()).unwrap();
    wait_for("it to run", || id_of(server, sql));
}

/// The number of a statement that runs.
fn id_of(server: &Server, sql: &str) -> Option<u64> {
    let (_, body) = server.get("/v1/queries")?;
    let queries: Value = serde_json::from_str(&body).unwrap();
    let running = queries["running"].as_array()?;
    let is_it = |query: &&Value| query["sql"] == sql && query["state"] != "planning";
    running.iter().find(is_it)?["id"].as_u64()
}
