//! Two loads into one table at once, one killed half way.

use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Place, files_below, send_signal, wait_for};

/// A load whose lines come from the test.
struct Fed {
    child: Child,
    stdin: ChildStdin,
    next: u64,
}

impl Fed {
    fn start(place: &Place, first: u64) -> Self {
        let arguments = [
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
        ];
        let mut command = place.command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        Self { child, stdin, next: first }
    }

    fn feed(&mut self, lines: u64) {
        let mut text = String::new();
        for _ in 0..lines {
            let id = self.next;
            // Text that does not compress, so that files fill up.
            let noise = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            text.push_str(&format!("{id},{noise:016x}{:016x}\n", noise.rotate_left(29) ^ id));
            self.next += 1;
        }
        self.stdin.write_all(text.as_bytes()).unwrap();
    }
}

#[test]
fn a_killed_load_leaves_nothing_but_orphans_that_can_be_cleaned() {
    let place = Place::new();
    place.query(
        "CREATE TABLE t (id bigint, noise text) \
         TBLPROPERTIES ('write.target-file-size-bytes' = '65536', 'write.orc.stripe-size-bytes' = '65536')",
    );
    let mut survivor = Fed::start(&place, 0);
    let mut victim = Fed::start(&place, 1_000_000_000);
    let data = place.path("w/public/t/data");
    // Both are at work; the victim has finished files that no snapshot refers to.
    survivor.feed(10_000);
    wait_for("finished files of a load at work", || {
        victim.feed(20_000);
        let finished =
            files_below(&data).into_iter().filter(|f| f.extension().is_some_and(|e| e == "orc"));
        // One or two of them are the survivor's.
        (finished.count() >= 5).then_some(())
    });
    send_signal(&victim.child, Signal::KILL);
    victim.child.wait().unwrap();
    survivor.feed(10_000);
    drop(survivor.stdin);
    let output = survivor.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));

    let expected = "20000,0,19999,20000\n";
    let sql = "SELECT count(*), min(id), max(id), count(DISTINCT noise) FROM t";
    assert_eq!(place.query(sql), expected);
    let check = || -> Value {
        serde_json::from_str(&place.ok(&["table", "check", "t", "--warehouse", "w", "--json"]))
            .unwrap()
    };
    let report = check();
    assert_eq!(report[0]["sound"], true);
    let orphans = report[0]["orphans"].as_array().unwrap().len();
    assert!(orphans >= 2, "{report:#}");
    let cleaned = place.ok(&["table", "clean", "t", "--older-than", "0s", "--warehouse", "w"]);
    assert!(cleaned.starts_with(&format!("public.t: removed {orphans} orphans of ")), "{cleaned}");
    assert_eq!(check()[0]["orphans"].as_array().unwrap().len(), 0);
    assert_eq!(place.query(sql), expected);
}

#[test]
fn loads_at_the_same_time_all_commit() {
    let place = Place::new();
    place.query("CREATE TABLE t (id bigint, noise text)");
    let mut loads: Vec<Fed> = (0..4).map(|n| Fed::start(&place, n * 1000)).collect();
    loads.iter_mut().for_each(|load| load.feed(500));
    for load in loads {
        drop(load.stdin);
        let output = load.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(place.query("SELECT count(*), count(DISTINCT id) FROM t"), "2000,2000\n");
    place.ok(&["table", "check", "t", "--warehouse", "w"]);
}
