//! `stoa load`: good files, bad files, and what is said about them.

use std::io::Write;
use std::process::Stdio;

use crate::harness::Place;

const GOOD: &str = "id,day,n\n1,2025-01-01,10\n2,2025-01-02,20\n3,2025-02-01,\n";

fn load(place: &Place, arguments: &[&str]) -> crate::harness::Ran {
    let mut all = vec!["load", "--warehouse", "w", "--into", "t"];
    all.extend(arguments);
    place.run(&all)
}

#[test]
fn a_file_makes_a_table() {
    let place = Place::new();
    place.write("good.csv", GOOD);
    let ran = load(
        &place,
        &["good.csv", "--create", "--partition-by", "month(day)", "--order-by", "id DESC"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("loaded 3 rows into t: 0 rejected, 55 B read, 2 files of "),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.ends_with(" rows/s\n"), "{}", ran.stdout);
    assert_eq!(
        place.query("SELECT * FROM t ORDER BY id"),
        "1,2025-01-01,10\n2,2025-01-02,20\n3,2025-02-01,\n"
    );
    let said = place.ok(&["table", "describe", "t", "--warehouse", "w"]);
    assert!(said.contains("month(day)") && said.contains("id DESC"), "{said}");
    assert_eq!(load(&place, &["good.csv", "-q"]).stdout, "");
    assert_eq!(place.query("SELECT count(*), sum(n) FROM t"), "6,60\n");
}

#[test]
fn rows_go_to_no_other_table_than_the_one_named() {
    let place = Place::new();
    place.write("good.csv", GOOD);
    place.query("CREATE TABLE t (id bigint, day date, n bigint)");
    for name in ["t-x y", "t;", "t (id)", "t x"] {
        let ran = place.run(&["load", "good.csv", "--into", name, "--create", "--warehouse", "w"]);
        assert_eq!(ran.code, Some(1), "{name}: {}", ran.stdout);
        assert!(ran.stderr.contains("is not the name of a table"), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains("in double quotes"), "{name}: {}", ran.stderr);
    }
    assert_eq!(place.query("SELECT count(*) FROM t"), "0\n");
    place.ok(&["load", "good.csv", "--into", "\"t-x y\"", "--create", "--warehouse", "w"]);
    assert_eq!(place.query("SELECT count(*) FROM \"t-x y\""), "3\n");
}

#[test]
fn options_for_a_new_table_are_not_ignored_for_one_that_is_there() {
    let place = Place::new();
    place.write("good.csv", GOOD);
    let like = ["--partition-by", "month(day)", "--order-by", "id DESC"];
    let create = |options: &[&str]| {
        let mut all = vec!["good.csv", "--create"];
        all.extend(options);
        load(&place, &all)
    };
    assert_eq!(create(&like).code, Some(0));
    // The same again adds rows, and so does a load that asks for nothing.
    assert_eq!(create(&like).code, Some(0));
    assert_eq!(create(&[]).code, Some(0));
    for (options, why) in [
        (["--partition-by", "day"], "is partitioned by month(day), not by day"),
        (["--order-by", "n"], "is ordered by id DESC NULLS LAST, not by n ASC NULLS FIRST"),
        (["--property", "write.target-file-size-bytes=1000000"], "has no property write.target"),
    ] {
        let ran = create(&options);
        assert_eq!(ran.code, Some(1), "{options:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("table public.t already exists and "), "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
        assert!(ran.stderr.contains("code: 42P07"), "{}", ran.stderr);
    }
    let ran = load(&place, &["good.csv", "--order-by", "id"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("--create"), "{}", ran.stderr);
    assert_eq!(place.query("SELECT count(*) FROM t"), "9\n");
}

#[test]
fn ctrl_c_says_that_nothing_is_loaded() {
    let place = Place::new();
    place.query("CREATE TABLE t (id bigint, day date, n bigint)");
    let mut command =
        place.command(&["load", "-", "--format", "csv", "--into", "t", "--warehouse", "w"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // More than a pipe holds: when all is taken, it reads.
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(b"id,day,n\n").unwrap();
    for id in 0..20_000 {
        stdin.write_all(format!("{id},2025-01-01,{id}\n").as_bytes()).unwrap();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("error: cancelled with Ctrl-C"), "{said}");
    assert!(said.contains("hint: `stoa table describe t`"), "{said}");
    assert_eq!(place.query("SELECT count(*) FROM t"), "0\n");
}

#[test]
fn stdin_loads_with_options() {
    let place = Place::new();
    place.query("CREATE TABLE t (id bigint, day date, n bigint)");
    let input = "7;31/12/2025;1.234\n8;01/01/2026;-\n";
    let ran = place.run_with_input(
        &[
            "load",
            "-",
            "--into",
            "t",
            "--warehouse",
            "w",
            "--format",
            "csv",
            "--header",
            "false",
            "--delimiter",
            ";",
            "--date-format",
            "%d/%m/%Y",
            "--null-text",
            "-",
            "--thousands-separator",
            ".",
            "--decimal-point",
            ",",
        ],
        input,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(place.query("SELECT * FROM t ORDER BY id"), "7,2025-12-31,1234\n8,2026-01-01,\n");
}

#[test]
fn a_bad_line_loads_nothing_and_names_its_place() {
    let place = Place::new();
    place.query("CREATE TABLE t (id bigint, day date, n bigint)");
    let check = |text: &str, message: &str, code: &str| {
        place.write("bad.csv", text);
        let ran = load(&place, &["bad.csv"]);
        assert_eq!(ran.code, Some(1), "{text:?}: {}", ran.stderr);
        let first = ran.stderr.lines().next().unwrap_or("");
        assert_eq!(first, format!("error: bad.csv {message}"), "{text:?}");
        assert!(ran.stderr.ends_with(&format!("code: {code}\n")), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
        assert_eq!(place.query("SELECT count(*) FROM t"), "0\n", "{text:?}");
    };
    check(
        "id,day,n\n1,2025-01-01,10\n2,2025-01-02,many\n",
        "line 3, column \"n\": \"many\" is not a bigint",
        "22P02",
    );
    check("id,day,n\n1,soon,10\n", "line 2, column \"day\": \"soon\" is not a date", "22007");
    check("id,day,n\n1,2025-01-01\n", "line 2: 2 fields, expected 3", "22P04");
}

#[test]
fn bad_lines_can_be_kept_aside() {
    let place = Place::new();
    place.query("CREATE TABLE t (id bigint, day date, n bigint)");
    place.write("mixed.csv", "id,day,n\n1,2025-01-01,10\nx,2025-01-02,20\n3,2025-01-03,30\n");
    let ran = load(&place, &["mixed.csv", "--max-errors", "1", "--reject-file", "bad.csv"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("loaded 2 rows into t: 1 rejected, "), "{}", ran.stdout);
    assert_eq!(place.query("SELECT sum(id) FROM t"), "4\n");
    let rejected = std::fs::read_to_string(place.path("bad.csv")).unwrap();
    assert!(rejected.contains("x,2025-01-02,20"), "{rejected}");
}

#[test]
fn a_missing_table_or_file_is_named() {
    let place = Place::new();
    place.write("good.csv", GOOD);
    let ran = load(&place, &["good.csv"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("t") && ran.stderr.contains("--create"), "{}", ran.stderr);
    assert!(ran.stderr.contains("code: 42P01"), "{}", ran.stderr);
    let ran = load(&place, &["absent.csv", "--create"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("error: file absent.csv does not exist\n"), "{}", ran.stderr);
}

#[test]
fn real_data_loads_with_exact_sums() {
    let Some(data) = stoa_testkit::shared_dir("data") else { return };
    let place = Place::new();
    let file = data.join("fhv-daily-2015.csv");
    let file = file.to_str().unwrap();
    let ran = load(
        &place,
        &[file, "--create", "--partition-by", "month(day)", "--order-by", "base, day"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (mut rows, mut trips) = (0u64, 0u64);
    for line in std::fs::read_to_string(file).unwrap().lines().skip(1) {
        rows += 1;
        // base, base_name (may be quoted), day, trips, vehicles
        let trip = line.rsplit(',').nth(1).unwrap();
        trips += trip.parse::<u64>().unwrap_or(0);
    }
    assert_eq!(place.query("SELECT count(*), sum(trips) FROM t"), format!("{rows},{trips}\n"));
}
