//! `stoa log`: verify, dump, repair.

use rustix::process::Signal;

use crate::harness::{Place, Server};

/// A log with four records that are in no file.
fn killed() -> Place {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    assert_eq!(server.post_sql("CREATE TABLE t (id bigint)").unwrap().0, 200);
    for id in 0..4 {
        assert_eq!(server.post_sql(&format!("INSERT INTO t VALUES ({id})")).unwrap().0, 200);
    }
    server.signal(Signal::KILL);
    server.wait();
    place
}

fn segment(place: &Place) -> std::path::PathBuf {
    let logs = std::fs::read_dir(place.path("w/_log/0")).unwrap();
    let is_segment = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "log");
    logs.map(|entry| entry.unwrap().path()).find(is_segment).unwrap()
}

#[test]
fn a_sound_log_is_counted_and_dumped() {
    let place = killed();
    let verified = place.ok(&["log", "verify", "w/_log"]);
    assert!(verified.contains("4 frames") || verified.contains("4 records"), "{verified}");
    let dumped = place.ok(&["log", "dump", "w/_log", "--from", "2", "--to", "3"]);
    assert_eq!(dumped.lines().count(), 2, "{dumped}");
    for line in dumped.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(record.is_object());
    }
    let missing = place.run(&["log", "verify", "nowhere"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.stderr.contains("nowhere") && missing.stderr.contains("hint"),
        "{}",
        missing.stderr
    );
}

/// As the daemons of a cluster have them.
#[test]
fn each_of_several_logs_is_read() {
    let place = killed();
    let log = place.path("w/_log");
    for name in ["9805dd55b3b6e9bb", "00252d6e352890d8"] {
        std::fs::create_dir(log.join(name)).unwrap();
        std::fs::copy(segment(&place), log.join(name).join("00000000000000000001.log")).unwrap();
    }
    std::fs::remove_file(segment(&place)).unwrap();
    let verified = place.ok(&["log", "verify", "w/_log"]);
    assert_eq!(verified.matches("4 frames").count(), 2, "{verified}");
    assert_eq!(place.ok(&["log", "dump", "w/_log"]).lines().count(), 8);
    let damaged = log.join("00252d6e352890d8/00000000000000000001.log");
    let mut bytes = std::fs::read(&damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let found = place.run(&["log", "verify", "w/_log"]);
    assert_eq!(found.code, Some(1), "{}", found.stdout);
}

#[test]
fn damage_is_refused_named_and_repaired() {
    let place = killed();
    let path = segment(&place);
    let dumped = place.ok(&["log", "dump", "w/_log"]);
    let second: serde_json::Value = serde_json::from_str(dumped.lines().nth(1).unwrap()).unwrap();
    let offset = usize::try_from(second["offset"].as_u64().unwrap()).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[offset + 40] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    assert_eq!(place.run(&["log", "verify", "w/_log"]).code, Some(1));
    let started = place.run(&[
        "server",
        "--warehouse",
        "w",
        "--http-port",
        "0",
        "--pg-port",
        "0",
        "--flight-port",
        "0",
    ]);
    assert_eq!(started.code, Some(1));
    assert!(started.stderr.contains(&offset.to_string()), "{}", started.stderr);
    assert!(started.stderr.contains("stoa log"), "{}", started.stderr);

    let planned = place.ok(&["log", "repair", "w/_log", "--warehouse", "w"]);
    assert!(planned.contains("would be lost: record 2"), "{planned}");
    let repaired = place.ok(&["log", "repair", "w/_log", "--warehouse", "w", "--yes"]);
    assert!(repaired.contains("lost: record 2"), "{repaired}");
    assert_eq!(place.query("SELECT id FROM t ORDER BY id"), "0\n2\n3\n");
}
