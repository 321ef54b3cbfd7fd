//! `stoa sql` on a warehouse and on a server.

use std::io::Write;
use std::process::Stdio;

use crate::harness::{Place, Server, at_terminal};

const TABLE: &str = "CREATE TABLE t (id bigint, name text, day date)";
const ROWS: &str = "INSERT INTO t VALUES (1, 'a', DATE '2025-01-01'), (2, NULL, DATE '2025-01-02')";

fn filled() -> Place {
    let place = Place::new();
    place.ok(&["sql", "--warehouse", "w", "-c", TABLE, "-c", ROWS]);
    place
}

#[test]
fn statements_run_without_a_server() {
    let place = Place::new();
    let said = place.ok(&["sql", "--warehouse", "w", "-c", TABLE, "-c", ROWS]);
    assert_eq!(said, "CREATE TABLE\nINSERT 0 2\n");
    let table = place.ok(&["sql", "--warehouse", "w", "-c", "SELECT * FROM t ORDER BY id"]);
    assert_eq!(
        table,
        " id | name |    day\n----+------+------------\n  1 | a    | 2025-01-01\n  \
         2 |      | 2025-01-02\n(2 rows)\n"
    );
}

#[test]
fn rows_come_in_every_format() {
    let place = filled();
    let check = |arguments: &[&str], expected: &str| {
        let mut all = vec!["sql", "--warehouse", "w", "-c", "SELECT * FROM t ORDER BY id"];
        all.extend(arguments);
        assert_eq!(place.ok(&all), expected, "{arguments:?}");
    };
    check(&["--format", "csv"], "id,name,day\n1,a,2025-01-01\n2,,2025-01-02\n");
    check(&["--format", "tsv", "--no-header"], "1\ta\t2025-01-01\n2\t\\N\t2025-01-02\n");
    check(
        &["--format", "jsonl"],
        "{\"id\":1,\"name\":\"a\",\"day\":\"2025-01-01\"}\n\
         {\"id\":2,\"name\":null,\"day\":\"2025-01-02\"}\n",
    );
    check(
        &["--expanded"],
        "-[ RECORD 1 ]-\nid   | 1\nname | a\nday  | 2025-01-01\n\
         -[ RECORD 2 ]-\nid   | 2\nname |\nday  | 2025-01-02\n",
    );
}

#[test]
fn errors_name_place_and_code_and_exit_1() {
    let place = filled();
    let ran = place.run(&["sql", "--warehouse", "w", "-c", "SELECT nothing FROM t"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("nothing") && ran.stderr.contains("code: 42703\n"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&["sql", "--warehouse", "w", "-c", "SELECT * FROM absent"]);
    assert!(
        ran.stderr.contains("absent") && ran.stderr.contains("code: 42P01\n"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&["sql", "--warehouse", "w", "-c", "SELEC 1"]);
    assert!(ran.stderr.contains("code: 42601\n"), "{}", ran.stderr);
}

#[test]
fn scripts_go_on_after_errors_unless_told_to_stop() {
    let place = filled();
    place.write("s.sql", "SELECT 1;\nSELECT nothing;\n-- a comment; here\nSELECT 'a;b'");
    let arguments = ["sql", "--warehouse", "w", "--format", "csv", "--no-header", "-f", "s.sql"];
    let ran = place.run(&arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "1\na;b\n"));
    let mut stopping = arguments.to_vec();
    stopping.push("--stop-on-error");
    let ran = place.run(&stopping);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "1\n"));
}

#[test]
fn a_pipe_holds_statements_commands_and_rows_to_copy() {
    let place = filled();
    let input = "\\format csv\nCOPY t FROM STDIN;\n3\tc\t2025-01-03\n\\N\t\\N\t\\N\n\\.\n\
                 SELECT count(*), max(id)\n  FROM t;\n\\echo done\n\\x\n";
    let ran = place.run_with_input(&["sql", "--warehouse", "w", "-q", "--no-header"], input);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "4,3\ndone\n"), "{}", ran.stderr);
}

#[test]
fn commands_describe_tables() {
    let place = filled();
    let said = place.ok(&["sql", "--warehouse", "w", "-c", "\\dt", "-c", "\\d t"]);
    assert!(said.contains("public    | t"), "{said}");
    assert!(said.contains("bigint"), "{said}");
    let ran = place.run(&["sql", "--warehouse", "w", "-c", "\\timng"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("did you mean \\timing?"), "{}", ran.stderr);
}

#[test]
fn a_statement_ends_with_g_and_runs_again() {
    let place = filled();
    let input = "SELECT max(id)\nFROM t \\g\n\\g\n\\conninfo\n\\gx\nSELECT '\\g' \\g out.csv\n";
    let ran = place.run_with_input(&["sql", "--warehouse", "w", "--no-header", "-q"], input);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout, " 2\n 2\n-[ RECORD 1 ]-\nmax | 2\n");
    assert_eq!(std::fs::read_to_string(place.path("out.csv")).unwrap(), " \\g\n");
    let ran = place.run_with_input(&["sql", "--warehouse", "w"], "\\g\n");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("there is no statement to run yet"), "{}", ran.stderr);
}

#[test]
fn rows_go_to_a_file_or_a_command() {
    let place = filled();
    let input = "\\o rows.csv\nSELECT id FROM t ORDER BY id;\nINSERT INTO t VALUES (3, 'c', NULL);\n\\o\n\
                 SELECT 'here';\n\\o |sort -r > sorted.csv\nSELECT id FROM t ORDER BY id;\n";
    let arguments = ["sql", "--warehouse", "w", "--format", "csv", "--no-header"];
    let ran = place.run_with_input(&arguments, input);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "here\n"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(place.path("rows.csv")).unwrap(), "1\n2\n");
    assert_eq!(std::fs::read_to_string(place.path("sorted.csv")).unwrap(), "3\n2\n1\n");
    let ran = place.run_with_input(&arguments, "\\o absent/rows.csv\nSELECT 1;\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "1\n"));
    assert!(ran.stderr.contains("cannot write to absent/rows.csv"), "{}", ran.stderr);
}

#[test]
fn watch_runs_a_statement_until_it_fails_or_has_run_so_often() {
    let place = filled();
    let arguments = ["sql", "--warehouse", "w", "--format", "csv", "--no-header", "-q"];
    let ran = place.run_with_input(&arguments, "SELECT 7 \\watch 0.01 c=3\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "7\n7\n7\n"), "{}", ran.stderr);
    let ran = place.run_with_input(&arguments, "SELECT nothing \\watch 0.01\n");
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.stderr.matches("code: 42703").count(), 1, "{}", ran.stderr);
}

#[test]
fn an_editor_changes_the_statement() {
    let place = filled();
    let mut command = place.command(&["sql", "--warehouse", "w", "--format", "csv", "--no-header"]);
    command.env("VISUAL", "").env("EDITOR", "sed -i s/1/2;/").stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT 1 AS n\n\\e\n").unwrap();
    let ended = child.wait_with_output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(out, "SELECT 2; AS n\n2\n", "{err}");
    // What is left after the semicolon is the next statement.
    assert!(err.contains("AS n"), "{err}");
}

#[test]
fn a_terminal_pages_long_results_and_is_left_with_a_word() {
    let place = filled();
    let typed = "SELECT value FROM generate_series(1, 100) AS s(value);\n\
                 SELECT 'short';\n\\pset pager off\nexit\nSELECT 'not run';\n";
    let mut command = place.command(&["sql", "--warehouse", "w"]);
    command.env("PAGER", "tee paged");
    let (ended, shown) = at_terminal(command, typed);
    assert_eq!(ended.code(), Some(0), "{shown}");
    let paged = std::fs::read_to_string(place.path("paged")).unwrap();
    assert!(paged.contains("\n   100\n(100 rows)\n"), "{paged}");
    assert!(!paged.contains("short"), "{paged}");
    // What is typed is shown, too.
    assert_eq!(shown.matches("(100 rows)").count(), 1, "{shown}");
    assert!(shown.contains("(1 row)") && shown.contains("The pager is off."), "{shown}");
    assert!(!shown.contains(" not run"), "{shown}");
}

#[test]
fn a_server_answers_the_same() {
    let place = filled();
    let server = Server::start(&place, &[]);
    let port = server.http_port().to_string();
    let on_server =
        |sql: &str| place.run(&["sql", "--http-port", &port, "--format", "csv", "-c", sql]);
    assert_eq!(
        on_server("SELECT * FROM t ORDER BY id").stdout,
        "id,name,day\n1,a,2025-01-01\n2,,2025-01-02\n"
    );
    let done = on_server("INSERT INTO t VALUES (3, 'c', NULL)");
    assert_eq!(
        (done.code, done.stdout.as_str(), done.stderr.as_str()),
        (Some(0), "", "INSERT 0 1\n")
    );
    let failed = on_server("SELECT * FROM absent");
    assert_eq!(failed.code, Some(1));
    assert!(
        failed.stderr.contains("absent") && failed.stderr.contains("code: 42P01\n"),
        "{}",
        failed.stderr
    );
    let url = server.http_url();
    let many = "SELECT sum(value) FROM generate_series(1, 300000) AS s(value)";
    assert_eq!(
        place.ok(&["sql", "--url", &url, "--format", "tsv", "--no-header", "-c", many]),
        "45000150000\n"
    );
}

#[test]
fn without_a_server_the_hint_says_what_to_do() {
    let place = Place::new();
    let ran = place.run(&["sql", "--url", "http://127.0.0.1:1", "-c", "SELECT 1"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.starts_with("error: no server answers at http://127.0.0.1:1"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: start one with `stoa server`"), "{}", ran.stderr);
}

#[test]
fn large_results_stream_with_little_memory() {
    let place = Place::new();
    // 300 MB of text, which a shell that collects results first would hold.
    let sql = "SELECT value, repeat('x', 1000) FROM generate_series(1, 300000) AS s(value)";
    // Some batches are always on their way: small ones here.
    let small = "SET datafusion.execution.batch_size = 1024";
    let arguments = ["sql", "--warehouse", "w", "--format", "tsv", "-c", small, "-c", sql];
    let mut command = place.command(&arguments);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let out = std::io::BufReader::with_capacity(1 << 20, child.stdout.take().unwrap());
    let mut lines = 0;
    let mut peak = None;
    for line in std::io::BufRead::lines(out) {
        line.unwrap();
        lines += 1;
        // While it still has rows to write, so that it is there to be looked at.
        if lines == 280_000 {
            peak = peak_kib(child.id());
        }
    }
    assert_eq!(lines, 300_001);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let peak = peak.expect("Linux shows a process's peak memory");
    assert!(peak < 380 << 10, "{peak} KiB");
}

fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
