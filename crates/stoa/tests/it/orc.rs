//! `stoa orc`: metadata, rows and damage of ORC files.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Place, files_below};

/// A table of two rows, and its only data file.
fn filled() -> (Place, PathBuf) {
    let place = Place::new();
    place.query("CREATE TABLE t (id bigint, name text, price decimal(10,2))");
    place.query("INSERT INTO t VALUES (1, 'a', 1.50), (2, NULL, -3)");
    let mut files = files_below(&place.path("w/public/t/data"));
    files.retain(|path| path.extension().is_some_and(|e| e == "orc"));
    assert_eq!(files.len(), 1, "{files:?}");
    let file = files.remove(0);
    (place, file)
}

fn text(path: &std::path::Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn rows_are_json_lines() {
    let (place, file) = filled();
    let data = |more: &[&str]| {
        let mut all = vec!["orc", "data", text(&file)];
        all.extend(more);
        place.ok(&all)
    };
    assert_eq!(
        data(&[]),
        "{\"id\": 1, \"name\": \"a\", \"price\": 1.50}\n{\"id\": 2, \"name\": null, \"price\": -3.00}\n"
    );
    assert_eq!(data(&["--columns", "price,id", "-n", "1"]), "{\"price\": 1.50, \"id\": 1}\n");
    assert_eq!(
        data(&["--format", "java", "--columns", "price", "--limit", "1"]),
        "{\"price\":\"1.5\"}\n"
    );
    let ran = place.run(&["orc", "data", text(&file), "--columns", "absent"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("no column \"absent\"") && ran.stderr.contains("code: 42703"));
}

#[test]
fn metadata_is_text_or_json() {
    let (place, file) = filled();
    let shown = place.ok(&["orc", "meta", text(&file), "-r", "id"]);
    for part in [
        "\nRows: 2\n",
        "\nType: struct<id:bigint,name:string,price:decimal(10,2)>\n",
        "\n  iceberg.id: 1\n",
        "\n    Row group indices for column 1:\n      Entry 0: count: 2 hasNull: false",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let one: Value =
        serde_json::from_str(&place.ok(&["orc", "meta", "--json", text(&file)])).unwrap();
    assert_eq!((&one["numberOfRows"], &one["status"]), (&2.into(), &"OK".into()));

    let other = place.write("none.orc", "this is no ORC file");
    let ran = place.run(&["orc", "meta", "--json", "--pretty", text(&file), text(&other)]);
    assert_eq!(ran.code, Some(1));
    let both: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&both[0]["status"], &both[1]["status"]), (&"OK".into(), &"FAILED".into()));
    assert!(ran.stderr.contains("none.orc: file tail"), "{}", ran.stderr);
}

#[test]
fn scan_finds_damage() {
    let (place, file) = filled();
    let said = place.ok(&["orc", "scan", text(&file)]);
    assert_eq!(said, format!("File: {}, bad batches: 0, rows: 2/2\n", file.display()));

    // A directory is the files below it.
    let mut bytes = std::fs::read(&file).unwrap();
    let about = place.ok(&["orc", "meta", "--json", text(&file)]);
    let about: Value = serde_json::from_str(&about).unwrap();
    let streams = about["stripes"][0]["streams"].as_array().unwrap();
    let data = streams.iter().find(|s| s["columnId"] == 2 && s["section"] == "DATA").unwrap();
    bytes[data["startOffset"].as_u64().unwrap() as usize] ^= 0x55;
    std::fs::create_dir(place.path("files")).unwrap();
    place.write("files/bad.orc", &bytes);
    std::fs::copy(&file, place.path("files/good.orc")).unwrap();
    let ran = place.run(&["orc", "scan", "--verbose", "files"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    for part in [
        "Unable to read batch at row 0 in stripe 0 (rows 0-2)",
        "files/bad.orc: stripe 0: column 2 (name): ",
        " of the file are not those written: the checksum differs",
        "File: files/bad.orc, bad batches: 1, rows: 0/2",
        "File: files/good.orc, bad batches: 0, rows: 2/2",
    ] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let (place, file) = filled();
    // More than a pipe holds.
    let mut command = place.command(&["orc", "data"]);
    command.args(vec![file; 5000]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}
