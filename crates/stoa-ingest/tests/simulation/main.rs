//! Seeded histories in a simulated world: appends, loads, flushes and maintenance, while storage stalls and
//! fails, clocks jump, and processes die. A ledger outside knows what each client was told; after every
//! recovery, acknowledged rows are there once, refused ones are not, and unanswered ones are there once or
//! not at all.
//!
//! The log is on a simulated disk and is written step by step. Data files and the catalog (SQLite) are
//! real, in a directory of their own; how long they take is not the seed's to say, so a history that failed
//! may need more than one run to fail again.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod ledger;
mod life;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use ledger::Ledger;
use life::{Life, TABLE};
use stoa_commitlog::sim::{Fault, SimDisk, SimRandom};
use stoa_env::{Env, Simulation};
use stoa_error::{ErrorKind, Result};
use stoa_ingest::{Ack, Durability};
use stoa_table::WriteOptions;
use tokio::task::JoinHandle;

/// Seeds that are tried, from 0 on.
const SEEDS: &str = "STOA_SIMULATION_SEEDS";

/// The one seed to try.
const SEED: &str = "STOA_SIMULATION_SEED";

const SEEDS_DEFAULT: u64 = 4;

const STEPS: usize = 40;

/// Rows of one append at most.
const ROWS_MAX: u64 = 60;

struct History {
    random: SimRandom,
    world: (Env, Simulation),
    directory: tempfile::TempDir,
    disk: SimDisk,
    ledger: Ledger,
}

/// An append that a client waits for.
struct Append {
    ids: Range<i64>,
    task: JoinHandle<Result<Ack>>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = SimRandom::new(seed);
        let world = Env::simulated(random.bits());
        let disk = SimDisk::new(random.bits());
        let directory = tempfile::tempdir().unwrap();
        Self { random, world, directory, disk, ledger: Ledger::default() }
    }

    async fn run(mut self) {
        let mut life = self.recover().await;
        for _ in 0..STEPS {
            self.step(&mut life).await;
            if life.ingest.log_stopped().is_some() || self.random.chance(8) {
                life = self.crash(life).await;
            }
        }
        self.look(&mut life).await;
        let life = self.crash(life).await;
        life.end().await;
    }

    async fn step(&mut self, life: &mut Life) {
        match self.random.below(20) {
            0..7 => {
                let appends = self.appends(life);
                self.finish(life, appends).await;
            }
            7 => self.stall(life).await,
            8 => self.refused(life).await,
            9 | 10 => self.load(life).await,
            11 | 12 => {
                let flush = life.ingest.clone();
                let table = life.table.clone();
                // It may fail where the log has stopped: its rows stay fresh then.
                let _ = life.drive(async move { flush.flush_now(&table).await }).await;
            }
            13 | 14 => self.look_after(life).await,
            15 | 16 => {
                let duration = Duration::from_millis(self.random.below(120_000));
                life.world.advance(duration);
                life.go_on(20).await;
            }
            17 => {
                let by = Duration::from_secs(self.random.below(3 * 24 * 60 * 60));
                match self.random.chance(50) {
                    true => life.world.jump_forwards(by),
                    false => life.world.jump_backwards(by),
                }
            }
            18 => {
                let fault = if self.random.chance(50) { Fault::Error } else { Fault::Death };
                let after = self.random.below(8) as usize;
                self.disk.inject(self.disk.operations().len() + after, fault);
            }
            _ => self.look(life).await,
        }
    }

    /// Clients that append at the same time.
    fn appends(&mut self, life: &Life) -> Vec<Append> {
        let clients = 1 + self.random.below(4);
        (0..clients)
            .map(|_| {
                let ids = self.ledger.new_ids(1 + self.random.below(ROWS_MAX));
                let (ingest, table) = (life.ingest.clone(), life.table.clone());
                let rows = common::rows(ids.clone());
                let append = async move { ingest.append(&table, rows, Durability::Synced).await };
                Append { ids, task: life.env.spawn(append) }
            })
            .collect()
    }

    async fn finish(&mut self, life: &mut Life, appends: Vec<Append>) {
        for Append { ids, task } in appends {
            let outcome = life.drive(task).await.unwrap();
            self.ledger.note(ids, outcome);
        }
    }

    /// While nothing can be made durable, nothing is acknowledged.
    async fn stall(&mut self, life: &mut Life) {
        let appends = self.appends(life);
        life.stall(Duration::from_millis(self.random.below(20_000))).await;
        let early: Vec<bool> = appends.iter().map(|append| append.task.is_finished()).collect();
        for (Append { ids, task }, is_early) in appends.into_iter().zip(early) {
            let outcome = life.drive(task).await.unwrap();
            assert!(!is_early || outcome.is_err(), "rows {ids:?} were acknowledged too early");
            self.ledger.note(ids, outcome);
        }
    }

    /// Rows that do not fit the table.
    async fn refused(&mut self, life: &mut Life) {
        let ids = self.ledger.new_ids(2);
        let fields = ["id", "n"].into_iter().zip([DataType::Int64, DataType::Int32]);
        let fields: Vec<_> = fields.map(|(name, of)| Field::new(name, of, true)).collect();
        let id: ArrayRef = Arc::new(Int64Array::from(vec![Some(ids.start), None]));
        let n: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![id, n]).unwrap();
        let (ingest, table) = (life.ingest.clone(), life.table.clone());
        let append = async move { ingest.append(&table, rows, Durability::Synced).await };
        let error = life.drive(append).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unavailable), "{error:?}");
        self.ledger.note::<()>(ids, Err(error));
    }

    /// A load: rows in files, committed beside what flushes and maintenance commit.
    async fn load(&mut self, life: &mut Life) {
        let ids = self.ledger.new_ids(1 + self.random.below(ROWS_MAX));
        let (table, rows) = (life.table.clone(), common::rows(ids.clone()));
        let load = async move {
            let mut writer = table.writer(WriteOptions::default())?;
            writer.write(rows).await?;
            writer.commit().await
        };
        let outcome = life.drive(load).await;
        self.ledger.note(ids, outcome);
    }

    /// A round of maintenance, sometimes long after the last one.
    async fn look_after(&mut self, life: &mut Life) {
        life.world.advance(Duration::from_secs(self.random.below(2 * 60 * 60)));
        life.look_after().await;
    }

    async fn look(&mut self, life: &mut Life) {
        let ingest = life.ingest.clone();
        let found = life.drive(async move { common::ids(&ingest, TABLE).await }).await;
        self.ledger.check(&found);
    }

    /// The process dies with clients waiting, and perhaps a flush under way; another one takes over.
    async fn crash(&mut self, mut life: Life) -> Life {
        let appends = self.appends(&life);
        if self.random.chance(50) {
            let (ingest, table) = (life.ingest.clone(), life.table.clone());
            life.env.spawn(async move { ingest.flush_now(&table).await.map(drop) });
        }
        life.go_on(self.random.below(200)).await;
        match self.random.chance(40) {
            true => self.disk.kill(),
            false => self.disk.power_cut(),
        }
        life.end().await;
        for Append { ids, task } in appends {
            match task.await {
                Ok(outcome) => self.ledger.note(ids, outcome),
                Err(_) => self.ledger.unanswered(ids),
            }
        }
        self.recover().await
    }

    /// Starts a process, perhaps after one that dies while it starts.
    async fn recover(&mut self) -> Life {
        if self.random.chance(20) {
            self.disk.inject(self.random.below(6) as usize, Fault::Death);
            let life = Life::begin(&self.world, self.directory.path(), &self.disk).await;
            self.disk.power_cut();
            if let Ok(life) = life {
                life.end().await;
            }
        }
        let life = Life::begin(&self.world, self.directory.path(), &self.disk).await;
        let mut life = life.unwrap();
        let ingest = life.ingest.clone();
        let found = life.drive(async move { common::ids(&ingest, TABLE).await }).await;
        self.ledger.settle(&found);
        life
    }
}

/// Says how to run a history again, if it fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0;
            eprintln!("the history of seed {seed} failed; to run it again:");
            eprintln!("    {SEED}={seed} cargo test -p stoa-ingest --test simulation");
        }
    }
}

fn check(seed: u64) {
    let _told = Told(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(History::new(seed).run());
}

#[expect(clippy::disallowed_methods, reason = "the size of a test is no setting")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn what_clients_were_told_is_true_after_every_recovery() {
    match number(SEED) {
        Some(seed) => check(seed),
        None => (0..number(SEEDS).unwrap_or(SEEDS_DEFAULT)).for_each(check),
    }
}
