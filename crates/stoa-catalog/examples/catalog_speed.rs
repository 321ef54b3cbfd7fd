//! Measures the catalog over SQLite and PostgreSQL: pointer reads and swaps per second, by 1 and 16
//! callers.
//!
//! ```text
//! cargo run --release -p stoa-catalog --example catalog_speed [seconds for each figure]
//! ```
//!
//! PostgreSQL is a server of its own on this machine, with fsync on, as SQLite has it. Reads are of a
//! catalog that nobody changes: SQLite's come from memory as long as the file does not change, those
//! of PostgreSQL ask it (a group check). The last reads are beside one writer that swaps all the time.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use stoa_catalog::{Catalog, TableIdent};
use stoa_env::task::spawn;
use stoa_env::timer::{self, Instant};
use stoa_testkit::PostgresServer;

const TABLES: usize = 16;

fn table(number: usize) -> TableIdent {
    TableIdent::new("public", format!("t{number}"))
}

#[tokio::main]
async fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3.0);
    let seconds = Duration::from_secs_f64(seconds);
    println!(
        "{:<12} {:<28} {:>8} {:>12} {:>12}",
        "database", "what", "callers", "per second", "mean µs"
    );
    let directory = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(&directory.path().join("catalog.db"), "stoa").await.unwrap();
    measure("SQLite", &catalog, seconds).await;
    let Some(server) = PostgresServer::start(&[]) else { return };
    let catalog = Catalog::connect(&server.database(), "stoa").await.unwrap();
    measure("PostgreSQL", &catalog, seconds).await;
}

async fn measure(database: &str, catalog: &Catalog, seconds: Duration) {
    catalog.create_namespace("public", &BTreeMap::new()).await.unwrap();
    for number in 0..TABLES {
        catalog.create_table(&table(number), "0").await.unwrap();
    }
    for callers in [1, 16] {
        let rate = run(catalog, callers, seconds, read).await;
        print(database, "pointer reads", callers, rate);
    }
    for callers in [1, 16] {
        let rate = run(catalog, callers, seconds, swap).await;
        print(database, "swaps", callers, rate);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (catalog, stop) = (catalog.clone(), Arc::clone(&stop));
        spawn(async move {
            let mut at = catalog.pointer(&table(0)).await.unwrap();
            while !stop.load(Ordering::Relaxed) {
                at = swap_once(&catalog, &table(0), at).await;
            }
        })
    };
    let rate = run(catalog, 16, seconds, read).await;
    print(database, "pointer reads beside swaps", 16, rate);
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
}

fn print(database: &str, what: &str, callers: usize, rate: f64) {
    let mean = callers as f64 / rate * 1e6;
    println!("{database:<12} {what:<28} {callers:>8} {rate:>12.0} {mean:>12.1}");
}

/// How often per second `callers` do `work`, each with a table of its own.
async fn run<F, W>(catalog: &Catalog, callers: usize, seconds: Duration, work: F) -> f64
where
    F: Fn(Catalog, TableIdent, Instant, Arc<AtomicU64>) -> W,
    W: Future<Output = ()> + Send + 'static,
{
    let done = Arc::new(AtomicU64::new(0));
    let begin = timer::now();
    let tasks: Vec<_> = (0..callers)
        .map(|number| {
            spawn(work(catalog.clone(), table(number), begin + seconds, Arc::clone(&done)))
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    done.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64()
}

async fn read(catalog: Catalog, table: TableIdent, end: Instant, done: Arc<AtomicU64>) {
    while timer::now() < end {
        catalog.pointer(&table).await.unwrap();
        done.fetch_add(1, Ordering::Relaxed);
    }
}

async fn swap(catalog: Catalog, table: TableIdent, end: Instant, done: Arc<AtomicU64>) {
    let mut at = catalog.pointer(&table).await.unwrap();
    while timer::now() < end {
        at = swap_once(&catalog, &table, at).await;
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Gives back where the pointer is then.
async fn swap_once(catalog: &Catalog, table: &TableIdent, at: String) -> String {
    let next = (at.parse::<u64>().unwrap() + 1).to_string();
    catalog.swap(table, &at, &next).await.unwrap();
    next
}
