//! `stoa table`: list, describe, check, clean.

use serde_json::Value;

use crate::harness::{Place, files_below};

fn filled() -> Place {
    let place = Place::new();
    place.query("CREATE TABLE t (id bigint, day date) PARTITIONED BY (month(day)) ORDER BY (id)");
    place.query("INSERT INTO t VALUES (1, DATE '2025-01-01'), (2, DATE '2025-02-01')");
    place
}

fn json(place: &Place, arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.extend(["--warehouse", "w", "--json"]);
    serde_json::from_str(&place.ok(&all)).unwrap()
}

#[test]
fn tables_are_listed_and_described() {
    let place = filled();
    let listed = place.ok(&["table", "list", "--warehouse", "w"]);
    assert!(listed.lines().nth(1).unwrap().starts_with("public.t"), "{listed}");
    let described = json(&place, &["table", "describe", "t"]);
    assert_eq!(described["rows"], 2);
    assert_eq!(described["files"], 2);
    assert_eq!(described["partition_by"][0], "month(day)");
    assert_eq!(described["columns"][1]["name"], "day");
    let ran = place.run(&["table", "describe", "absent", "--warehouse", "w"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("absent") && ran.stderr.contains("code: 42P01"), "{}", ran.stderr);
}

#[test]
fn a_lost_data_file_is_found_by_check() {
    let place = filled();
    let said = place.ok(&["table", "check", "--warehouse", "w"]);
    assert!(said.starts_with("public.t: OK: 2 rows, 2 data files"), "{said}");
    let files = files_below(&place.path("w/public/t/data"));
    std::fs::remove_file(&files[0]).unwrap();
    let ran = place.run(&["table", "check", "t", "--warehouse", "w"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.starts_with("public.t: DAMAGED"), "{}", ran.stdout);
    assert!(ran.stdout.contains("the data file is missing"), "{}", ran.stdout);
}

#[test]
fn clean_removes_old_orphans_only() {
    let place = filled();
    place.write("w/public/t/data/left-behind.orc", "half a file");
    let clean = |older_than: &str, more: &[&str]| {
        let mut all = vec!["table", "clean", "t", "--older-than", older_than];
        all.extend(more);
        let done = json(&place, &all);
        (done[0]["files"].as_u64().unwrap(), done[0]["kept"].as_u64().unwrap())
    };
    assert_eq!(clean("1h", &[]), (0, 1));
    assert_eq!(clean("0s", &["--dry-run"]), (1, 0));
    assert_eq!(json(&place, &["table", "check", "t"])[0]["orphans"].as_array().unwrap().len(), 1);
    assert_eq!(clean("0s", &[]), (1, 0));
    assert_eq!(json(&place, &["table", "check", "t"])[0]["orphans"].as_array().unwrap().len(), 0);
    assert_eq!(place.query("SELECT count(*) FROM t"), "2\n");
}

#[test]
fn clean_removes_what_a_killed_load_into_a_new_table_left() {
    let place = filled();
    std::fs::create_dir_all(place.path("w/public/never_made/data")).unwrap();
    place.write("w/public/never_made/data/left-behind.orc", "half a file");
    let removed = json(&place, &["table", "clean", "t", "--older-than", "0s"]);
    assert_eq!(removed.as_array().unwrap().len(), 1, "only the table that was named");
    let removed = json(&place, &["table", "clean", "--older-than", "0s"]);
    assert_eq!(removed[1]["table"], "(no table)");
    assert_eq!(removed[1]["files"], 1);
    assert!(!place.path("w/public/never_made/data/left-behind.orc").exists());
    assert_eq!(place.query("SELECT count(*) FROM t"), "2\n");
}
