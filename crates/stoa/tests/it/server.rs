//! `stoa server`: start, readiness, refusals, ordered end.

use rustix::process::Signal;
use stoa_env::clock::monotonic;

use crate::harness::{Place, Server, request, wait_for};

/// Runs for minutes unless it is cancelled.
const LONG: &str = "SELECT sum(a.value * b.value) FROM generate_series(1, 1000000) a(value), \
     generate_series(1, 1000000) b(value)";

#[test]
fn a_server_says_where_it_listens_and_ends_cleanly() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let said = &server.listening;
    assert_eq!(said["event"], "listening");
    assert_eq!(said["listen"], "127.0.0.1");
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
    let warehouse = said["warehouse"].as_str().unwrap();
    assert!(warehouse.starts_with("file:///") && warehouse.ends_with("/w"), "{warehouse}");
    assert!(said["pid"].as_u64().unwrap() > 1 && server.pg_port() > 0);
    assert_eq!(server.get("/ready").unwrap().0, 200);
    assert_eq!(server.get("/health").unwrap().0, 200);
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("listening") && log.contains("stopped"), "{log}");
    assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
}

#[test]
fn a_server_ends_with_the_program_that_started_it() {
    let place = Place::new();
    let mut command = place.command(&["server", "--warehouse", "w", "--stop-with-stdin"]);
    for port in ["--http-port", "--pg-port", "--flight-port", "--hive-port"] {
        command.args([port, "0"]);
    }
    command.stdin(std::process::Stdio::piped());
    let mut server = Server::run(command);
    let mut stdin = server.stdin();
    // What is written means nothing.
    std::io::Write::write_all(&mut stdin, b"hello\n").unwrap();
    assert_eq!(server.get("/ready").unwrap().0, 200);
    drop(stdin);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("the end of standard input") && log.contains("stopped"), "{log}");
}

#[test]
fn ready_says_whether_a_server_takes_statements() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let port = server.http_port().to_string();
    assert_eq!(
        place.ok(&["ready", "--http-port", &port, "--wait", "5s"]),
        format!("{} is ready\n", server.http_url())
    );
    server.signal(Signal::TERM);
    server.wait();
    let ran = place.run(&["ready", "--http-port", &port]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with("error: no server answers at http://127"), "{}", ran.stderr);
}

#[test]
fn postgresql_clients_are_answered() {
    let place = Place::new();
    place.query("CREATE TABLE t (id bigint)");
    let server = Server::start(&place, &[]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let config = format!("host=127.0.0.1 port={} user=me dbname=stoa", server.pg_port());
    let count: i64 = runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&config, tokio_postgres::NoTls).await.unwrap();
        stoa_env::task::spawn(connection);
        client.batch_execute("INSERT INTO t VALUES (1), (2)").await.unwrap();
        client.query_one("SELECT count(*) FROM t WHERE id > $1", &[&1i64]).await.unwrap().get(0)
    });
    assert_eq!(count, 1);
}

#[test]
fn running_queries_are_cancelled_after_the_grace_time() {
    let place = Place::new();
    let server = Server::start(&place, &["--shutdown-grace-s", "1"]);
    let port = server.http_port();
    let query = start_long_query(&server);
    server.signal(Signal::INT);
    let begin = monotonic();
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(begin.elapsed().as_secs() < 30);
    assert!(log.contains("cancelled queries that ran beyond the grace time"), "{log}");
    let answer = query.recv().unwrap();
    assert!(answer.is_none_or(|(status, _)| status != 200));
    assert!(request(port, "GET /ready HTTP/1.0\r\n\r\n").is_none());
}

#[test]
fn ready_turns_503_at_once_and_a_second_signal_ends_it() {
    let place = Place::new();
    let server = Server::start(&place, &["--shutdown-grace-s", "600"]);
    let query = start_long_query(&server);
    server.signal(Signal::TERM);
    wait_for("/ready to be 503", || server.get("/ready").filter(|(status, _)| *status == 503));
    server.signal(Signal::TERM);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("second signal"), "{log}");
    query.recv().unwrap();
}

fn start_long_query(server: &Server) -> std::sync::mpsc::Receiver<Option<(u16, String)>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let port = server.http_port();
    let ask = move || {
        let text = format!(
            "POST /v1/sql HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{LONG}",
            LONG.len()
        );
        let _ = sender.send(request(port, &text));
    };
    stoa_env::task::spawn_thread("ask", ask).unwrap();
    wait_for("the query to run", || {
        let (_, metrics) = server.get("/metrics")?;
        metrics.contains("\nstoa_query_running_queries 1").then_some(())
    });
    receiver
}

#[test]
fn other_addresses_can_be_insisted_on() {
    let place = Place::new();
    let server = Server::start(&place, &["--listen", "0.0.0.0", "--insecure-listen"]);
    assert_eq!(server.get("/ready").unwrap().0, 200);
}

#[test]
fn a_port_in_use_is_named() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let port = server.http_port().to_string();
    let ran = place.run(&[
        "server",
        "--warehouse",
        "w",
        "--http-port",
        &port,
        "--pg-port",
        "0",
        "--flight-port",
        "0",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let expected = format!("error: cannot listen on 127.0.0.1:{port} (http_port)");
    assert!(
        ran.stderr.contains(&expected) && ran.stderr.contains("--http-port 0"),
        "{}",
        ran.stderr
    );
}

#[test]
fn hive_has_a_port_if_one_is_free_or_chosen() {
    const FREE_PORTS: [&str; 9] =
        ["server", "--warehouse", "w", "--http-port", "0", "--pg-port", "0", "--flight-port", "0"];
    let place = Place::new();
    let arguments = |hive: &[&'static str]| [&FREE_PORTS[..], hive].concat();
    let none = Server::run(place.command(&arguments(&["--hive-port", "none"])));
    assert!(none.listening["hive_port"].is_null());
    // Somebody has Hive's own port: this test, or another program.
    let _taken = std::net::TcpListener::bind("127.0.0.1:10000");
    let without = Server::run(place.command(&arguments(&[])));
    assert!(without.listening["hive_port"].is_null());
    without.signal(Signal::TERM);
    let (status, log) = without.wait();
    assert!(status.success() && log.contains("starting without HiveServer2"), "{log}");
    let ran = place.run(&arguments(&["--hive-port", "10000"]));
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cannot listen on 127.0.0.1:10000 (hive_port)"), "{}", ran.stderr);
    let chosen = Server::run(place.command(&arguments(&["--hive-port", "0"])));
    assert!(chosen.listening["hive_port"].as_u64().is_some_and(|port| port > 0));
}

#[test]
fn two_servers_may_share_a_warehouse() {
    let place = Place::new();
    let (one, two) = (Server::start(&place, &[]), Server::start(&place, &[]));
    assert_eq!(one.post_sql("CREATE TABLE t (id bigint)").unwrap().0, 200);
    assert_eq!(two.post_sql("INSERT INTO t VALUES (1), (2)").unwrap().0, 200);
    assert_eq!(count(&two), 2);
    // What one has in its log the other sees once it is in files.
    assert_eq!(two.post_sql("FLUSH TABLE t").unwrap().0, 200);
    assert_eq!(count(&one), 2);
    assert_eq!(two.post_sql("INSERT INTO t VALUES (3)").unwrap().0, 200);
    two.signal(Signal::TERM);
    assert!(two.wait().0.success());
    assert_eq!(count(&one), 3);
}

#[test]
fn acknowledged_rows_survive_a_kill() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    assert_eq!(server.post_sql("CREATE TABLE t (id bigint)").unwrap().0, 200);
    for id in 0..5 {
        assert_eq!(server.post_sql(&format!("INSERT INTO t VALUES ({id})")).unwrap().0, 200);
    }
    assert_eq!(server.post_sql("DELETE FROM t WHERE id = 1").unwrap().0, 200);
    assert_eq!(server.post_sql("INSERT INTO t VALUES (5)").unwrap().0, 200);
    server.signal(Signal::KILL);
    server.wait();
    let server = Server::start(&place, &[]);
    let (_, ids) = server.post_sql("SELECT id FROM t ORDER BY id").unwrap();
    assert!(ids.contains("id\n0\n2\n3\n4\n5\n"), "{ids}");
    server.signal(Signal::KILL);
    server.wait();
    // Without a server, too; and what it brings into files is there once.
    assert_eq!(place.query("SELECT count(*), count(DISTINCT id) FROM t"), "5,5\n");
    assert_eq!(place.query("SELECT sum(id) FROM t"), "14\n");
}

fn count(server: &Server) -> u64 {
    let (status, body) = server.post_sql("SELECT count(*) AS n FROM t").unwrap();
    assert_eq!(status, 200, "{body}");
    let number = body.split_once("n\n").unwrap().1.lines().next().unwrap();
    number.parse().unwrap()
}
