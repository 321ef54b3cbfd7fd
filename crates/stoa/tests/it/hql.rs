//! `stoa hql` and `POST /v1/hql`: the same statements without a server and on one.

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Place, Server, at_terminal, request};

const LOG: &str = "#AnonID\tQuery\tItemRank\tClickURL\n\
                   142\trentdirect.com\t\t\n\
                   142\tstaple.com\t1\thttp://www.staple.com\n\
                   217\tlottery\t1\thttp://www.calottery.com\n";

const SESSION: &str = "CREATE TABLE \"query-log\" ( Query, ItemRank, ClickURL );\n\
    LOAD DATA INFILE ROW_KEY_COLUMN=AnonID 'a.tsv' INTO TABLE \"query-log\";\n";

const CELLS: &str = "142\tQuery\tstaple.com\n\
                     142\tQuery\trentdirect.com\n\
                     142\tItemRank\t1\n\
                     142\tClickURL\thttp://www.staple.com\n\
                     217\tQuery\tlottery\n\
                     217\tItemRank\t1\n\
                     217\tClickURL\thttp://www.calottery.com\n";

/// What a batch prints and how it ends, on a warehouse or a server.
fn batch(place: &Place, at: &[&str], statements: &str) -> (Option<i32>, String, String) {
    let arguments = [&["hql", "--batch", "--timestamp-format=usecs"], at].concat();
    let ran = place.run_with_input(&arguments, statements);
    (ran.code, ran.stdout, ran.stderr)
}

#[test]
fn the_seed_session_runs_without_a_server_and_on_one() {
    let place = Place::new();
    place.write("a.tsv", LOG);
    let server = Server::start(&place, &[]);
    let url = server.http_url();
    for at in [["--warehouse", "other"], ["--url", url.as_str()]] {
        let (code, _, stderr) = batch(&place, &at, SESSION);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stderr.contains("Total cells:  7"), "{stderr}");
        let (code, cells, _) = batch(&place, &at, "select * from \"query-log\"; quit;");
        assert_eq!((code, cells.as_str()), (Some(0), CELLS));
        // A file that a statement writes is one of the shell's machine.
        let (code, _, stderr) =
            batch(&place, &at, "select Query from \"query-log\" into file 'out.tsv';");
        assert_eq!(code, Some(0), "{stderr}");
        let written = std::fs::read_to_string(place.path("out.tsv")).unwrap();
        assert!(written.ends_with("217\tQuery\tlottery\n"), "{written}");
        std::fs::remove_file(place.path("out.tsv")).unwrap();
        // The namespace stays from statement to statement; the first error ends a batch.
        let (code, out, _) = batch(
            &place,
            &at,
            "create namespace a; use a; create table t (c); show tables; nonsense; show tables;",
        );
        assert_eq!(code, Some(2));
        assert!(out.starts_with("t\nHypertable CRITICAL - "), "{out}");
        let (code, ..) = batch(&place, &at, "exit 7");
        assert_eq!(code, Some(7));
        let (_, missing, _) =
            batch(&place, &at, "load data infile 'nowhere.tsv' into table \"query-log\";");
        assert!(missing.contains("nowhere.tsv does not exist"), "{missing}");
        assert!(!place.path("out.tsv").exists());
    }
}

#[test]
fn statements_of_a_flag_or_a_file_end_with_the_first_error() {
    let place = Place::new();
    place.write("script.hql", "nonsense;\nstatus;\n");
    for given in [vec!["-e", "nonsense; status;"], vec!["--command-file", "script.hql"]] {
        let ran =
            place.run_with_input(&[&["hql", "--warehouse", "w"], given.as_slice()].concat(), "");
        assert_eq!(ran.code, Some(2), "{given:?}");
        assert!(!ran.stdout.contains("Hypertable OK"), "{}", ran.stdout);
    }
    let ran = place.run_with_input(&["hql", "--warehouse", "w", "-e", "status"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hypertable OK\n"));
}

#[test]
fn a_script_may_bring_the_rows_that_it_loads() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let url = server.http_url();
    for at in [["--warehouse", "other"], ["--url", url.as_str()]] {
        let script = format!(
            "create table t (a);\nload data infile \"-\" into table t;\n{}",
            "row\ta\nk\tv;quit;\n"
        );
        let (code, _, stderr) = batch(&place, &at, &script);
        assert_eq!(code, Some(0), "{stderr}");
        let (_, cells, _) = batch(&place, &at, "select * from t;");
        assert_eq!(cells, "k\ta\tv;quit;\n", "{at:?}");
    }
}

#[test]
fn lines_that_are_pasted_at_a_terminal_are_run() {
    let place = Place::new();
    // All of it is there before the first line is read.
    let pasted = "status;\ncreate table t (a); exists table t;\nexists\ntable u;\nexit 7\n";
    let command = place.command(&["hql", "--warehouse", "w"]);
    let (ended, shown) = at_terminal(command, pasted);
    assert_eq!(ended.code(), Some(7), "{shown}");
    for answer in ["Hypertable OK", "true", "false"] {
        assert_eq!(shown.matches(answer).count(), 1, "{shown}");
    }
}

#[test]
fn a_load_over_http_shows_its_progress() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let url = server.http_url();
    place.write("a.tsv", LOG);
    for at in [["--warehouse", "other"], ["--url", url.as_str()]] {
        let (code, out, stderr) = batch(&place, &at, SESSION);
        assert_eq!(code, Some(0), "{stderr}");
        let size = format!("\nLoading {} bytes of input data...\n", LOG.len());
        assert!(out.starts_with(&size), "{at:?}: {out}");
        assert!(out.ends_with(&format!("{}\n", "*".repeat(51))), "{at:?}: {out}");
    }
}

#[test]
fn a_line_without_end_meets_the_memory_limit() {
    let place = Place::new();
    place.write("endless.tsv", format!("k\ta\n1\t{}", "x".repeat(80 << 20)));
    let script = "create table t (a); load data infile 'endless.tsv' into table t;";
    let arguments = ["hql", "--batch", "--silent", "--warehouse", "w", "--memory-limit", "128MiB"];
    let ran = place.run_with_input(&arguments, script);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let place_of_line = "Hypertable CRITICAL - endless.tsv: line 2: memory_limit has no room for ";
    assert!(ran.stdout.starts_with(place_of_line), "{}", ran.stdout);
}

#[test]
fn a_server_reads_dates_in_the_zone_of_the_shell() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let url = server.http_url();
    for at in [["--warehouse", "other"], ["--url", url.as_str()]] {
        let statements = "create table t (a); insert into t values ('2026-01-15 00:30:00', 'k', 'a', 'v'); \
                          select * from t display_timestamps;";
        let arguments =
            [&["hql", "--timestamp-format=nanoseconds"], &at[..], &["-e", statements]].concat();
        let ran = place.command(&arguments).env("TZ", "America/New_York").output().unwrap();
        let printed = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(printed, "1768455000000000000\tk\ta\tv\n", "{at:?}");
    }
}

#[test]
fn a_namespace_that_was_dropped_can_be_left() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let url = server.http_url();
    for at in [["--warehouse", "other"], ["--url", url.as_str()]] {
        let arguments = [&["hql", "--no-prompt"], &at[..]].concat();
        let script = "create namespace a;\nuse a;\ndrop namespace '/a';\nshow tables;\nuse '/';\n\
                      create table left_it (c);\nshow tables;\n";
        let ran = place.run_with_input(&arguments, script);
        assert!(ran.stdout.ends_with("left_it\n"), "{at:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    }
}

#[test]
fn sql_reads_cells_with_conditions_joins_and_groups() {
    let place = Place::new();
    place.write("a.tsv", LOG);
    let (code, _, stderr) = batch(&place, &["--warehouse", "w"], SESSION);
    assert_eq!(code, Some(0), "{stderr}");
    let newest = place.query("SELECT * FROM \"query-log\" ORDER BY row");
    assert_eq!(
        newest,
        "142,staple.com,1,http://www.staple.com\n217,lottery,1,http://www.calottery.com\n"
    );
    assert_eq!(place.query("SELECT count(*) FROM \"query-log\""), "2\n");
    let found = place.query("SELECT \"Query\" FROM \"query-log\" WHERE row = '217'");
    assert_eq!(found, "lottery\n");
    let by_value =
        "SELECT row FROM \"query-log\" WHERE \"ItemRank\"::int < 2 AND \"Query\" LIKE 's%'";
    assert_eq!(place.query(by_value), "142\n");
    let grouped =
        "SELECT family, count(*) FROM \"query-log$cells\" GROUP BY family ORDER BY family";
    assert_eq!(place.query(grouped), "ClickURL,2\nItemRank,2\nQuery,3\n");
    let joined = "SELECT c.value FROM \"query-log\" t JOIN \"query-log$cells\" c ON t.row = c.row \
                  WHERE c.family = 'Query' AND t.row < '2' ORDER BY c.timestamp_ns";
    assert_eq!(place.query(joined), "rentdirect.com\nstaple.com\n");
    assert_eq!(place.query("SELECT count(*) FROM \"query-log$raw\""), "7\n");
    let columns = "SELECT column_name FROM information_schema.columns \
                   WHERE table_name = 'query-log' ORDER BY ordinal_position";
    assert_eq!(place.query(columns), "row\nQuery\nItemRank\nClickURL\n");
    for refused in [
        "DELETE FROM \"query-log\"",
        "DELETE FROM \"query-log$raw\"",
        "INSERT INTO \"query-log\" VALUES ('a', 'b', 'c', 'd')",
        "UPDATE \"query-log$raw\" SET value = value",
        "TRUNCATE \"query-log\"",
        "ALTER TABLE \"query-log\" DROP COLUMN value",
    ] {
        let ran = place.run(&["sql", "--warehouse", "w", "-c", refused]);
        assert_eq!(ran.code, Some(1), "{refused}");
        assert!(ran.stderr.contains("code: 42809"), "{refused}: {}", ran.stderr);
        assert!(ran.stderr.contains("stoa hql"), "{refused}: {}", ran.stderr);
    }
    // Deletes and new versions are seen by SQL as by HQL.
    let changes = "DELETE * FROM \"query-log\" WHERE ROW = '142'; \
                   INSERT INTO \"query-log\" VALUES ('217', 'ItemRank', '9');";
    let (code, out, stderr) = batch(&place, &["--warehouse", "w"], changes);
    assert_eq!(code, Some(0), "{out}{stderr}");
    let left = place.query("SELECT row, \"ItemRank\" FROM \"query-log\"");
    assert_eq!(left, "217,9\n");
    place.ok(&["sql", "--warehouse", "w", "-c", "COMPACT TABLE \"query-log\" FULL"]);
    assert_eq!(place.query("SELECT row, \"ItemRank\" FROM \"query-log\""), left);
}

#[test]
fn statements_over_http_are_text_in_and_text_out() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let post = |text: &str| {
        let length = text.len();
        request(
            server.http_port(),
            &format!(
                "POST /v1/hql HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\
                 Content-Length: {length}\r\n\r\n{text}"
            ),
        )
        .unwrap()
    };
    let (status, body) = post(
        "create table t (c); insert into t values ('a', 'c:q', 'one'), ('b', 'c', 'two'); \
         select * from t;",
    );
    assert_eq!((status, body.as_str()), (200, "a\tc:q\tone\nb\tc\ttwo\n"));
    let (status, body) = post("select * from nowhere");
    assert_eq!(status, 404, "{body}");
    let problem: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["error"]["code"], "42P01");
    let (status, body) = post("selec * from t");
    assert_eq!(status, 400, "{body}");
    // Files of the server are nobody's business.
    let (status, body) = post("load data infile '/etc/hostname' into table t");
    assert_eq!(status, 403, "{body}");

    // Acknowledged is kept.
    server.signal(Signal::KILL);
    server.wait();
    let (code, cells, _) = batch(&place, &["--warehouse", "w"], "select * from t;");
    assert_eq!((code, cells.as_str()), (Some(0), "a\tc:q\tone\nb\tc\ttwo\n"));
}
