//! Processes that are killed: by a signal while they write, and by themselves at each fail point.
//!
//! A child process appends and prints what was acknowledged; tables are flushed all the while. It is
//! killed, and the next child goes on in the same place. In the end every row that any of them
//! acknowledged is there exactly once, and no row that none of them tried to write.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{ident, ids, open_ingest, open_warehouse, rows, spec};
use stoa_env::failpoint;
use stoa_ingest::{Durability, FlushLimits, IngestOptions};

/// What a child is told: `DIRECTORY FIRST_ID FAILPOINTS`, one per line.
const HELPER: &str = "STOA_TEST_HELPER";

const WRITERS: i64 = 4;
const ROWS: i64 = 20;

/// Ids that one child may use.
const IDS_PER_CHILD: i64 = 1_000_000;

/// Where a child kills itself, and at which hit.
const POINTS: [(&str, u32); 14] = [
    ("flush.sealed", 1),
    ("flush.sealed", 4),
    ("write.files_written", 2),
    ("flush.before_commit", 1),
    ("flush.before_commit", 3),
    ("commit.manifests_written", 2),
    ("commit.metadata_written", 2),
    ("commit.swapped", 1),
    ("commit.swapped", 3),
    ("flush.after_commit", 1),
    ("flush.after_commit", 3),
    ("flush.dropped", 1),
    ("flush.dropped", 3),
    ("flush.released", 2),
];

/// Children that are killed from outside, after as many acknowledgements.
const KILLS: [usize; 6] = [1, 7, 25, 60, 120, 250];

fn options() -> IngestOptions {
    let often = FlushLimits { bytes: 1 << 20, rows: 200, age: Duration::from_millis(20) };
    IngestOptions { flush: often, ..IngestOptions::default() }
}

/// Not a test but the child: several tasks append until the process dies, or is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods)]
async fn helper() {
    let Ok(orders) = std::env::var(HELPER) else { return };
    let orders: Vec<&str> = orders.lines().collect();
    let (directory, first): (_, i64) = (Path::new(orders[0]), orders[1].parse().unwrap());
    failpoint::arm_process(orders.get(2).copied().unwrap_or_default()).unwrap();
    let warehouse = open_warehouse(directory).await;
    let (ingest, _) = open_ingest(directory, &warehouse, options()).await;
    let writers = (0..WRITERS).map(|writer| {
        let (ingest, warehouse) = (ingest.clone(), warehouse.clone());
        stoa_env::task::spawn(async move {
            let table = warehouse.table(&ident(&format!("t{}", writer % 2))).await.unwrap();
            for batch in (writer..IDS_PER_CHILD / ROWS).step_by(WRITERS as usize) {
                let first = first + batch * ROWS;
                ingest.append(&table, rows(first..first + ROWS), Durability::Synced).await.unwrap();
                println!("\nkept {} {first}", writer % 2);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

/// Runs a child until it dies, or until it has acknowledged `kill_after` appends, and notes what it
/// acknowledged: table and first id.
fn run(directory: &Path, first: i64, points: &str, kill_after: usize, kept: &mut [BTreeSet<i64>]) {
    let orders = format!("{}\n{first}\n{points}", directory.to_str().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["helper", "--exact", "--nocapture"])
        .env(HELPER, orders)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut count = 0;
    // What it had printed before it was killed counts as well.
    for line in output.lines().map_while(Result::ok) {
        let mut words = line.split(' ');
        if words.next() != Some("kept") {
            continue;
        }
        let mut number = || words.next().unwrap().parse::<i64>().unwrap();
        let (table, first) = (number(), number());
        kept[table as usize].insert(first);
        count += 1;
        if count == kill_after {
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success(), "the child ended by itself");
    assert!(count > 0 || kill_after == 0, "nothing was acknowledged before {points}");
}

async fn check(directory: &Path, children: i64, kept: &[BTreeSet<i64>]) {
    let warehouse = open_warehouse(directory).await;
    let (ingest, _) = open_ingest(directory, &warehouse, common::by_hand()).await;
    for (number, kept) in kept.iter().enumerate() {
        let name = format!("t{number}");
        let found = ids(&ingest, &name).await;
        let unique: BTreeSet<i64> = found.iter().copied().collect();
        assert_eq!(unique.len(), found.len(), "{name}: rows are there twice");
        for first in kept {
            let all = (*first..*first + ROWS).all(|id| unique.contains(&id));
            assert!(all, "{name}: acknowledged rows from {first} on are gone");
        }
        // Of what was not acknowledged: one append per writer that died, as a whole.
        let others = unique.iter().filter(|id| !kept.contains(&(*id - *id % ROWS)));
        let others: Vec<i64> = others.copied().collect();
        assert_eq!(others.len() as i64 % ROWS, 0, "{name}: a part of an append");
        assert!(others.len() as i64 <= children * WRITERS / 2 * ROWS, "{name}: {others:?}");
        // The rows are where they are when they are flushed, too.
        let table = warehouse.table(&ident(&name)).await.unwrap();
        let flushed = ingest.flush_now(&table).await.unwrap();
        assert_eq!(common::sorted(common::stored_ids(&flushed).await), found);
        assert_eq!(flushed.check().await.unwrap().problems, []);
    }
    ingest.close(true).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_lose_nothing_and_repeat_nothing() {
    let home = tempfile::tempdir().unwrap();
    let warehouse = open_warehouse(home.path()).await;
    for name in ["t0", "t1"] {
        warehouse.create_table(&ident(name), spec()).await.unwrap();
    }
    let mut kept = [BTreeSet::new(), BTreeSet::new()];
    let mut children = 0;
    for (point, nth) in POINTS {
        let points = format!("{point}=abort@{nth}");
        run(home.path(), children * IDS_PER_CHILD, &points, 0, &mut kept);
        children += 1;
    }
    check(home.path(), children, &kept).await;
    for acknowledged in KILLS {
        run(home.path(), children * IDS_PER_CHILD, "", acknowledged, &mut kept);
        children += 1;
    }
    check(home.path(), children, &kept).await;
    assert!(kept.iter().all(|kept| kept.len() > 100));
}
