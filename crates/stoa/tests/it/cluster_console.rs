//! What any daemon of a cluster shows of all of them, compared with what clients counted; and who is told when one dies.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use stoa_testkit::PostgresServer;

use crate::harness::{Place, Server, request, wait_for};

fn get(server: &Server, path: &str) -> Value {
    let (status, body) = server.get(path).unwrap_or_else(|| panic!("nobody answers {path}"));
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn sent(server: &Server, sql: &str) -> String {
    let (status, body) = server.post_sql(sql).unwrap_or_else(|| panic!("nobody answers {sql}"));
    assert_eq!(status, 200, "{sql}: {body}");
    body
}

/// The id of a daemon.
fn id(server: &Server) -> String {
    get(server, "/v1/status")["this_daemon"]["daemon"].as_str().unwrap().to_owned()
}

fn figure<'a>(cluster: &'a Value, group: &str, name: &str) -> &'a Value {
    let all = cluster["figures"].as_array().unwrap();
    let found = all.iter().find(|figure| figure["group"] == group && figure["name"] == name);
    found.unwrap_or_else(|| panic!("{group}.{name} is not in {cluster}"))
}

fn integer(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// How many events of a kind there are about a daemon.
fn events(cluster: &Value, event: &str, daemon: &str) -> usize {
    let all = cluster["events"].as_array().unwrap();
    all.iter().filter(|one| one["event"] == event && one["daemon"] == daemon).count()
}

#[test]
fn any_daemon_shows_the_figures_of_all() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let url = postgres.database();
    let start = || Server::start(&place, &["--catalog", &url, "--availability-zone", "z"]);
    let servers = [start(), start(), start()];
    let ids = [0, 1, 2].map(|nth: usize| id(&servers[nth]));
    sent(&servers[0], "CREATE TABLE t (id bigint, d text)");
    wait_for("all are up", || {
        let cluster = get(&servers[0], "/v1/cluster");
        let daemons = cluster["daemons"].as_array().unwrap();
        let ready =
            daemons.iter().filter(|daemon| daemon["state"] == "up" && daemon["answered"] == true);
        (ready.count() == 3).then_some(())
    });
    let before = get(&servers[1], "/v1/cluster");

    // What the clients send, and count: reports, rows and failures of each daemon.
    let (reports, rows, failures) = ([5_i64, 7, 11], [2_i64, 3, 4], [1_i64, 0, 2]);
    for (nth, server) in servers.iter().enumerate() {
        for row in 0..rows[nth] {
            sent(server, &format!("INSERT INTO t VALUES ({row}, 'x')"));
        }
        for report in 0..reports[nth] {
            sent(server, &format!("SELECT d FROM t WHERE id = {report} + 100"));
        }
        for _ in 0..failures[nth] {
            assert_ne!(server.post_sql("SELECT 1 / (id - id) FROM t").unwrap().0, 200);
        }
    }
    for asked in &servers {
        let after = get(asked, "/v1/cluster?shapes=100");
        for (group, name, counted) in [
            ("totals", "finished", [0, 1, 2].map(|nth: usize| reports[nth] + rows[nth])),
            ("totals", "failed", failures),
            ("log", "appended_rows", rows),
        ] {
            let (old, new) = (figure(&before, group, name), figure(&after, group, name));
            let sum = integer(&new["sum"]) - integer(&old["sum"]);
            assert_eq!(sum, counted.iter().sum::<i64>(), "{group}.{name}: {old} {new}");
            let each = |figure: &Value| ids.each_ref().map(|id| integer(&figure["of"][id]));
            let (old, values) = (each(old), each(new));
            for (nth, count) in counted.into_iter().enumerate() {
                assert_eq!(values[nth] - old[nth], count, "{group}.{name} of {nth}");
            }
            assert_eq!(integer(&new["min"]), *values.iter().min().unwrap());
            assert_eq!(integer(&new["max"]), *values.iter().max().unwrap());
        }
        // Whatever each daemon says of the whole cluster, or of times, is not added up.
        for (group, name, value) in [("cluster", "up", json!(3)), ("cluster", "exact", json!(true))]
        {
            let up = figure(&after, group, name);
            assert_eq!((&up["sum"], &up["min"], &up["max"]), (&Value::Null, &value, &value));
        }
        assert_eq!(figure(&after, "server", "uptime_ms")["sum"], Value::Null);
        // The statements of all daemons, and how long they took together.
        let shapes = after["shapes"].as_array().unwrap();
        let shape = |begin: &str| {
            let found =
                shapes.iter().find(|shape| shape["sql"].as_str().unwrap().starts_with(begin));
            found.unwrap_or_else(|| panic!("{begin} is not in {shapes:?}"))
        };
        let report = shape("SELECT d FROM t");
        assert_eq!(report["queries"], reports.iter().sum::<i64>());
        let failed = shape("SELECT $L0i / (id - id)");
        assert_eq!(failed["failed"], failures.iter().sum::<i64>());
        let own = |name: &str| {
            let of = servers.iter().map(|server| get(server, "/v1/shapes")["shapes"].clone());
            let of: Vec<f64> = of
                .flat_map(|shapes| shapes.as_array().unwrap().clone())
                .filter(|one| one["sql"] == report["sql"])
                .map(|one| one[name].as_f64().unwrap())
                .collect();
            assert_eq!(of.len(), 3);
            (of.iter().copied().fold(f64::MAX, f64::min), of.iter().copied().fold(0.0, f64::max))
        };
        let (least, greatest) = own("p50_ms");
        let p50 = report["p50_ms"].as_f64().unwrap();
        assert!((least - 1e-6..=greatest + 1e-6).contains(&p50), "{least} {p50} {greatest}");
        assert_eq!(report["max_ms"].as_f64().unwrap(), own("max_ms").1);
        assert!(after["latency"]["p99_ms"].as_f64().unwrap() > 0.0);
        // One daemon, from any other one, is what it shows itself.
        for (nth, id) in ids.iter().enumerate() {
            let seen = wait_for("its first sample", || {
                let seen = get(asked, &format!("/v1/cluster/{id}?since=0"));
                (!seen["history"].as_array().unwrap().is_empty()).then_some(seen)
            });
            assert_eq!(seen["this_daemon"]["daemon"], json!(id));
            assert_eq!(seen["log"], get(&servers[nth], "/v1/status")["log"]);
        }
        for id in &ids {
            assert_eq!((events(&after, "joined", id), events(&after, "up", id)), (1, 1), "{after}");
        }
    }
    // Prometheus tells which daemon an instance is.
    let metrics = servers[2].get("/metrics").unwrap().1;
    let host = get(&servers[2], "/v1/status")["this_daemon"]["host"].as_str().unwrap().to_owned();
    let info =
        format!("stoa_daemon_info{{daemon=\"{}\",host=\"{host}\",zone=\"z\",build=\"stoa ", ids[2]);
    assert!(
        metrics.lines().any(|line| line.starts_with(&info) && line.ends_with("\"} 1")),
        "{metrics}"
    );
    let unknown = servers[0].get("/v1/cluster/00000000000000ff").unwrap();
    assert!(unknown.0 == 404 && unknown.1.contains("no daemon"), "{unknown:?}");
}

#[test]
fn a_server_alone_is_no_cluster() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let (status, body) = server.get("/v1/cluster").unwrap();
    assert!(status == 404 && body.contains("not a member of a cluster"), "{status} {body}");
    assert!(!server.get("/metrics").unwrap().1.contains("stoa_daemon_info"));
    let (status, body) = server.post_sql("SELECT count(*) FROM system.cluster_events").unwrap();
    assert_eq!((status, body.lines().nth(1)), (200, Some("0")), "{body}");
}

/// A receiver of alerts that is away, then broken, then well: it hangs up on the first one, answers 503 to the next, and
/// takes the rest.
fn receiver() -> (String, Receiver<(u16, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?token=secret", listener.local_addr().unwrap());
    let (sender, taken) = channel();
    let serve = move || {
        for (nth, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            if nth == 0 {
                let _ = sender.send((0, Value::Null));
                continue;
            }
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let Some((head, body)) = read(&mut stream) else { continue };
            assert!(head.starts_with("POST /hook?token=secret HTTP/1.1\r\n"), "{head}");
            assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
            let status = if nth == 1 { 503 } else { 200 };
            let answer =
                format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
            if sender.send((status, body)).is_err() {
                return;
            }
        }
    };
    stoa_env::task::spawn_thread("receiver", serve).unwrap();
    (url, taken)
}

fn read(stream: &mut impl Read) -> Option<(String, Value)> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        text.extend_from_slice(&buffer[..read]);
        let all = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = all.split_once("\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_str(body) {
            return Some((head.to_owned(), body));
        }
    }
}

#[test]
fn a_death_is_seen_by_all_and_told_once() {
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let catalog = postgres.database();
    let (url, taken) = receiver();
    let start = || {
        let mut command = place.command(&["server", "--warehouse", "w", "--catalog", &catalog]);
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
        command.env("STOA_ALERT_WEBHOOK", &url).env("NO_PROXY", "127.0.0.1");
        Server::run(command)
    };
    let (one, two, three) = (start(), start(), start());
    let dead = id(&three);
    sent(&three, "CREATE TABLE t (id bigint)");
    sent(&three, "INSERT INTO t VALUES (1)");
    three.signal(Signal::KILL);
    three.wait();
    // It is dead on both others, and each knows who has taken its log over.
    for server in [&one, &two] {
        let cluster = wait_for("the others know that it is dead", || {
            let cluster = get(server, "/v1/cluster");
            let all = [events(&cluster, "died", &dead), events(&cluster, "took over", &dead)];
            // On a busy machine the other one may answer late.
            let of = figure(&cluster, "totals", "finished")["of"].as_object().map(|of| of.len());
            (all == [1, 1] && of == Some(2)).then_some(cluster)
        });
        let daemons = cluster["daemons"].as_array().unwrap();
        let of: Vec<&Value> =
            daemons.iter().filter(|daemon| daemon["daemon"] == dead.as_str()).collect();
        assert_eq!(
            (&of[0]["state"], &of[0]["answered"], &of[0]["trouble"]),
            (&json!("dead"), &json!(false), &json!("it is dead"))
        );
        let own = "SELECT count(*) FROM system.cluster_events WHERE event = 'died'";
        assert_eq!(sent(server, own).lines().nth(1), Some("1"));
        assert_eq!(server.get(&format!("/v1/cluster/{dead}")).unwrap().0, 404);
        wait_for("the alert is on", || {
            let alerts = get(server, "/v1/status")["alerts"].clone();
            alerts.as_array()?.iter().any(|alert| alert["alert"] == "daemon_died").then_some(())
        });
        let alerts = get(server, "/v1/cluster")["alerts"].clone();
        let of_death = |alert: &&Value| alert["alert"] == "daemon_died";
        assert_eq!(alerts.as_array().unwrap().iter().filter(of_death).count(), 1, "{alerts}");
        let metrics = server.get("/metrics").unwrap().1;
        let on = format!("stoa_alert_on{{alert=\"daemon_died\",about=\"{dead}\"}} 1");
        assert!(metrics.contains(&on), "{metrics}");
    }
    let next = || taken.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(next(), (0, Value::Null), "the first one was hung up on");
    let (refused, first) = next();
    let (status, alert) = next();
    assert_eq!((refused, status, &first), (503, 200, &alert), "it is sent again until it is taken");
    assert_eq!((&alert["status"], &alert["alert"]), (&json!("firing"), &json!("daemon_died")));
    assert_eq!(alert["daemon"], dead.as_str());
    let lowest = id(&one).min(id(&two));
    assert_eq!(alert["sent_by"], lowest.as_str(), "the daemon with the lowest id tells");
    assert!(alert["text"].as_str().unwrap().contains(&dead), "{alert}");
    // It comes back as the same daemon: the alert is over, and that is told, too.
    let three = start();
    assert_eq!(id(&three), dead);
    let (status, resolved) = next();
    assert_eq!((status, &resolved["status"]), (200, &json!("resolved")));
    assert_eq!((&resolved["alert"], &resolved["key"]), (&alert["alert"], &alert["key"]));
    wait_for("all see that it is over", || {
        let on = |server| !get(server, "/v1/status")["alerts"].as_array().unwrap().is_empty();
        (![&one, &two, &three].into_iter().any(on)).then_some(())
    });
    let cluster = get(&three, "/v1/cluster");
    assert_eq!((events(&cluster, "alert", &dead), events(&cluster, "resolved", &dead)), (1, 1));
    assert_eq!(events(&cluster, "joined", &dead), 2);
    // Whoever ends in order has not died.
    let left = id(&two);
    two.signal(Signal::TERM);
    let (status, log) = two.wait();
    assert!(status.success() && !log.contains("secret"), "{log}");
    wait_for("it has left", || {
        (events(&get(&one, "/v1/cluster"), "left", &left) == 1).then_some(())
    });
    one.signal(Signal::TERM);
    let (status, log) = one.wait();
    assert!(status.success() && !log.contains("secret"), "{log}");
    assert!(taken.try_recv().is_err(), "each is told once");
}

/// With a role and its password.
fn get_as(server: &Server, credentials: &str, path: &str) -> (u16, Value) {
    let text = format!(
        "GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Basic {credentials}\r\n\r\n"
    );
    let (status, body) = request(server.http_port(), &text).unwrap();
    (status, serde_json::from_str(&body).unwrap())
}

#[test]
fn a_plain_role_sees_of_the_cluster_what_it_sees_of_a_server() {
    // root:pw-root-1234, ann:pw-ann-1234
    const ROOT: &str = "cm9vdDpwdy1yb290LTEyMzQ=";
    const ANN: &str = "YW5uOnB3LWFubi0xMjM0";
    let Some(postgres) = PostgresServer::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let catalog = postgres.database();
    let roles = "CREATE TABLE hidden (id bigint); \
                 CREATE ROLE root LOGIN SUPERUSER PASSWORD 'pw-root-1234'; \
                 CREATE ROLE ann LOGIN PASSWORD 'pw-ann-1234'";
    place.ok(&["sql", "--warehouse", "w", "--catalog", &catalog, "--stop-on-error", "-c", roles]);
    let start = || Server::start(&place, &["--catalog", &catalog, "--access-control"]);
    let servers = [start(), start()];
    let sql = "INSERT INTO hidden VALUES (1)";
    let insert = format!(
        "POST /v1/sql HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/plain\r\n\
         Authorization: Basic {ROOT}\r\nContent-Length: {}\r\n\r\n{sql}",
        sql.len()
    );
    let written = request(servers[1].http_port(), &insert).unwrap();
    assert_eq!(written.0, 200, "{}", written.1);
    let other = get_as(&servers[1], ROOT, "/v1/status").1["this_daemon"]["daemon"].clone();
    let path = format!("/v1/cluster/{}", other.as_str().unwrap());
    let (status, root) = get_as(&servers[0], ROOT, "/v1/cluster?shapes=9");
    assert!(status == 200 && root["shapes"].to_string().contains("hidden"), "{root}");
    let (status, root) = get_as(&servers[0], ROOT, &path);
    assert!(status == 200 && root["ingest"][0]["table"] == "public.hidden", "{root}");
    for path in ["/v1/cluster?shapes=9", &path] {
        let (status, ann) = get_as(&servers[0], ANN, path);
        assert_eq!(status, 200, "{ann}");
        assert!(!ann.to_string().contains("hidden"), "{ann}");
        assert_eq!(servers[0].get(path).unwrap().0, 401);
    }
    let (_, ann) = get_as(&servers[0], ANN, "/v1/cluster?shapes=9");
    assert_eq!(ann["shapes"], Value::Null);
    assert!(ann["figures"].as_array().unwrap().len() > 50);
}
