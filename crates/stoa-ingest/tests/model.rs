//! Any sequence of appends, flushes, schema changes, truncations, renames and crashes, against a
//! model that knows which rows must be there: each exactly once, whoever looks, whenever.
//!
//! The log is on a simulated disk that loses what was not synced; tables are in a real directory,
//! whose writes are atomic by construction. Crashes happen at any fail point of a flush, with
//! appends under way, and during the recovery of an earlier crash.
#![allow(clippy::unwrap_used)]

mod common;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field};
use common::{Home, by_hand, ident, ids, log_options};
use proptest::prelude::*;
use stoa_commitlog::CommitLog;
use stoa_commitlog::sim::{Fault, SimDisk};
use stoa_env::failpoint::{Action, Failpoints};
use stoa_error::{ErrorKind, Result};
use stoa_ingest::{Ack, Durability, Ingest};
use stoa_table::{ColumnPosition, RewriteOptions, Table, TableChange};

/// Where a flush may be interrupted, in the order in which it passes them.
const POINTS: [&str; 9] = [
    "flush.sealed",
    "write.files_written",
    "flush.before_commit",
    "commit.manifests_written",
    "commit.metadata_written",
    "commit.swapped",
    "flush.after_commit",
    "flush.dropped",
    "flush.released",
];

const TABLES: usize = 2;

#[derive(Clone, Debug)]
enum Step {
    Append { table: usize, writers: Vec<u32>, relaxed: bool },
    Flush { table: usize, fails_at: Option<usize> },
    Alter { table: usize, how: usize },
    Truncate { table: usize },
    Rename { table: usize },
    Replace { table: usize },
    Crash { how: Crash, in_flight: usize, flush_at: Option<usize>, again_at: Option<usize> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Crash {
    PowerCut,
    Kill,
    Close,
    CloseAndFlush,
    /// An operation of the disk fails: the log stops, and the process goes on until it is killed.
    Fault(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let point = || prop::option::of(0..POINTS.len());
    let crash = prop_oneof![
        3 => Just(Crash::PowerCut),
        2 => Just(Crash::Kill),
        1 => Just(Crash::Close),
        1 => Just(Crash::CloseAndFlush),
        1 => (0_usize..6).prop_map(Crash::Fault),
    ];
    prop_oneof![
        10 => (0..TABLES, prop::collection::vec(1_u32..50, 1..5), prop::bool::weighted(0.2))
            .prop_map(|(table, writers, relaxed)| Step::Append { table, writers, relaxed }),
        5 => (0..TABLES, point()).prop_map(|(table, fails_at)| Step::Flush { table, fails_at }),
        2 => (0..TABLES, 0_usize..3).prop_map(|(table, how)| Step::Alter { table, how }),
        1 => (0..TABLES).prop_map(|table| Step::Truncate { table }),
        1 => (0..TABLES).prop_map(|table| Step::Rename { table }),
        1 => (0..TABLES).prop_map(|table| Step::Replace { table }),
        4 => (crash, 0_usize..4, point(), prop::option::of(0_usize..5)).prop_map(
            |(how, in_flight, flush_at, again_at)| Step::Crash { how, in_flight, flush_at, again_at }
        ),
    ]
}

/// A table, and the appends it has seen.
struct Model {
    table: Table,
    /// Must be there.
    kept: Vec<Range<i64>>,
    /// Acknowledged before they were durable: there until the power is cut.
    relaxed: Vec<Range<i64>>,
    /// Never acknowledged: there as a whole, or not at all. Once seen, they stay, unless they were
    /// relaxed.
    unsure: Vec<Unsure>,
    changes: usize,
}

#[derive(Clone)]
struct Unsure {
    ids: Range<i64>,
    relaxed: bool,
}

struct World {
    home: Home,
    disk: SimDisk,
    ingest: Ingest,
    tables: Vec<Model>,
    next_id: i64,
    names: usize,
}

impl World {
    async fn new(seed: u64) -> Self {
        let home = Home::new().await;
        let disk = SimDisk::new(seed);
        let ingest = open(&home, &disk).await.unwrap();
        let mut world = Self { home, disk, ingest, tables: Vec::new(), next_id: 0, names: 0 };
        for _ in 0..TABLES {
            let model = world.new_table().await;
            world.tables.push(model);
        }
        world
    }

    async fn new_table(&mut self) -> Model {
        self.names += 1;
        let table = self.home.table(&format!("t{}", self.names)).await;
        Model { table, kept: vec![], relaxed: vec![], unsure: vec![], changes: 0 }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Append { table, writers, relaxed } => {
                let durability = if relaxed { Durability::Relaxed } else { Durability::Synced };
                let appends = writers.iter().map(|rows| self.start(table, *rows, durability));
                let appends: Vec<_> = appends.collect();
                self.finish(table, appends, relaxed).await;
            }
            Step::Flush { table, fails_at } => self.flush(table, fails_at).await,
            Step::Alter { table, how } => self.alter(table, how).await,
            Step::Truncate { table } => self.truncate(table).await,
            Step::Rename { table } => {
                self.names += 1;
                let name = ident(&format!("t{}", self.names));
                let model = &mut self.tables[table];
                self.home.warehouse.rename_table(model.table.ident(), &name).await.unwrap();
                model.table = self.home.warehouse.table(&name).await.unwrap();
            }
            Step::Replace { table } => {
                let name = self.tables[table].table.ident().clone();
                self.home.warehouse.drop_table(&name, true).await.unwrap();
                if self.next_id % 2 == 0 {
                    self.ingest.forget(&self.tables[table].table).await;
                }
                self.tables[table] = self.new_table().await;
            }
            Step::Crash { how, in_flight, flush_at, again_at } => {
                self.crash(how, in_flight, flush_at, again_at).await;
            }
        }
    }

    /// Starts an append in a task of its own.
    fn start(&mut self, table: usize, rows: u32, durability: Durability) -> Append {
        let ids = self.next_id..self.next_id + i64::from(rows);
        self.next_id = ids.end;
        let (ingest, table) = (self.ingest.clone(), self.tables[table].table.clone());
        let batch = batch(&table, ids.clone());
        let task =
            stoa_env::task::spawn(async move { ingest.append(&table, batch, durability).await });
        Append { ids, task }
    }

    async fn finish(&mut self, table: usize, appends: Vec<Append>, relaxed: bool) {
        for Append { ids, task } in appends {
            let model = &mut self.tables[table];
            match task.await.unwrap() {
                Ok(ack) if relaxed => {
                    assert_eq!(ack.rows, (ids.end - ids.start) as u64);
                    model.relaxed.push(ids);
                }
                Ok(_) => model.kept.push(ids),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
                    model.unsure.push(Unsure { ids, relaxed });
                }
            }
        }
    }

    async fn flush(&mut self, table: usize, fails_at: Option<usize>) {
        let points = Failpoints::new();
        if let Some(at) = fails_at {
            points.arm(POINTS[at], Action::Error);
        }
        let flush = self.ingest.flush_now(&self.tables[table].table);
        if points.scope(flush).await.is_ok() {
            let model = &mut self.tables[table];
            model.kept.append(&mut model.relaxed);
        }
    }

    async fn alter(&mut self, table: usize, how: usize) {
        let model = &mut self.tables[table];
        model.changes += 1;
        let schema = model.table.schema();
        // The column that is not the id, whatever it is called by now.
        let other = schema.fields().iter().find(|field| field.name() != "id").unwrap();
        let change = match how {
            0 => TableChange::AddColumn {
                field: Field::new(format!("c{}", model.changes), DataType::Utf8, true),
                position: ColumnPosition::First,
            },
            1 => TableChange::RenameColumn {
                from: other.name().clone(),
                to: format!("r{}", model.changes),
            },
            _ if other.data_type() == &DataType::Int32 => TableChange::ChangeType {
                column: other.name().clone(),
                data_type: DataType::Int64,
                declared: None,
            },
            _ => TableChange::SetNullable(other.name().clone()),
        };
        model.table = model.table.alter(vec![change]).await.unwrap();
    }

    async fn truncate(&mut self, table: usize) {
        let model = &mut self.tables[table];
        let Ok(hold) = self.ingest.hold_flush(&model.table).await else { return };
        let mut rewrite = hold.table().rewrite(RewriteOptions::default()).unwrap();
        rewrite.truncate().unwrap();
        rewrite.commit().await.unwrap().committed().unwrap();
        model.kept.clear();
        model.relaxed.clear();
    }

    async fn crash(
        &mut self,
        how: Crash,
        in_flight: usize,
        flush_at: Option<usize>,
        again_at: Option<usize>,
    ) {
        if let Crash::Fault(after) = how {
            self.disk.inject(self.disk.operations().len() + after, Fault::Error);
        }
        let appends: Vec<_> =
            (0..in_flight).map(|_| self.start(0, 3, Durability::Synced)).collect();
        let flush = match flush_at {
            Some(at) => Some(self.flush_until(1, POINTS[at]).await),
            None => None,
        };
        let seen = ids(&self.ingest, &self.tables[0].table.ident().name).await;
        match how {
            Crash::PowerCut => self.disk.power_cut(),
            Crash::Kill => self.disk.kill(),
            Crash::Close | Crash::CloseAndFlush => {
                flush.iter().for_each(|task| task.abort());
                let _ = self.ingest.close(how == Crash::CloseAndFlush).await;
            }
            Crash::Fault(_) => {}
        }
        self.finish(0, appends, false).await;
        self.tables[0].note_seen(&seen);
        if let Crash::Fault(_) = how {
            self.look().await;
            self.disk.power_cut();
        }
        if let Some(flush) = flush {
            flush.abort();
            let _ = flush.await;
        }
        if let Some(at) = again_at {
            self.disk.inject(at, Fault::Death);
            if let Ok(ingest) = open(&self.home, &self.disk).await {
                self.ingest = ingest;
            }
            self.disk.power_cut();
        }
        self.ingest = open(&self.home, &self.disk).await.unwrap();
        for model in &mut self.tables {
            // A process that only dies keeps what it has written.
            let lost = matches!(how, Crash::PowerCut | Crash::Fault(_)) || again_at.is_some();
            let relaxed = std::mem::take(&mut model.relaxed);
            match lost {
                true => model
                    .unsure
                    .extend(relaxed.into_iter().map(|ids| Unsure { ids, relaxed: true })),
                false => model.kept.extend(relaxed),
            }
            model.table = self.home.warehouse.table(model.table.ident()).await.unwrap();
        }
        self.settle().await;
    }

    /// Starts a flush that stops at `point` and comes back when it is there, or done.
    async fn flush_until(&self, table: usize, point: &'static str) -> tokio::task::JoinHandle<()> {
        let points = Failpoints::new();
        points.arm(point, Action::Pause);
        let (ingest, table) = (self.ingest.clone(), self.tables[table].table.clone());
        let (scope, done) = (points.clone(), Arc::new(tokio::sync::Notify::new()));
        let tell = done.clone();
        let task = stoa_env::task::spawn(async move {
            let _ = scope.scope(ingest.flush_now(&table)).await;
            tell.notify_one();
        });
        tokio::select! {
            () = points.reached(point) => {}
            () = done.notified() => {}
        }
        task
    }

    /// After a crash, what is there stays, and what is not never comes.
    async fn settle(&mut self) {
        for model in &mut self.tables {
            let found = ids(&self.ingest, &model.table.ident().name).await;
            for unsure in std::mem::take(&mut model.unsure) {
                if found.binary_search(&unsure.ids.start).is_ok() {
                    model.kept.push(unsure.ids);
                }
            }
        }
    }

    /// Every row that must be there is there once, and no others but those nobody can tell of.
    async fn look(&mut self) {
        for model in &mut self.tables {
            let found = ids(&self.ingest, &model.table.ident().name).await;
            model.note_seen(&found);
            let relaxed = model.unsure.iter().map(|unsure| &unsure.ids);
            let relaxed = relaxed.filter(|ids| found.binary_search(&ids.start).is_ok());
            let all = model.kept.iter().chain(&model.relaxed).chain(relaxed);
            let expected = common::sorted(all.cloned().flatten());
            assert_eq!(found, expected, "table {}", model.table.ident());
        }
        let status = self.ingest.status();
        assert!(status.fresh_bytes <= status.fresh_bytes_max);
        let bytes: usize = status.tables.iter().map(|table| table.fresh_bytes).sum();
        assert_eq!(status.fresh_bytes, bytes);
    }
}

impl Model {
    /// What somebody has seen must not vanish.
    fn note_seen(&mut self, found: &[i64]) {
        let is_seen =
            |unsure: &mut Unsure| !unsure.relaxed && found.binary_search(&unsure.ids.start).is_ok();
        self.kept.extend(self.unsure.extract_if(.., is_seen).map(|unsure| unsure.ids));
    }
}

struct Append {
    ids: Range<i64>,
    task: tokio::task::JoinHandle<Result<Ack>>,
}

async fn open(home: &Home, disk: &SimDisk) -> Result<Ingest> {
    let log = CommitLog::open(disk.storage(), log_options()).await?;
    Ok(Ingest::with_log(home.warehouse.clone(), log, by_hand()).await?.0)
}

/// Rows with these ids; NULL in all other columns that the table has by now.
fn batch(table: &Table, ids: Range<i64>) -> RecordBatch {
    let count = (ids.end - ids.start) as usize;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let schema = table.schema();
    let columns = schema.fields().iter().map(|field| match field.name().as_str() {
        "id" => ids.clone(),
        _ => new_null_array(field.data_type(), count),
    });
    let columns: Vec<ArrayRef> = columns.collect();
    RecordBatch::try_new(schema, columns).unwrap()
}

fn run(seed: u64, steps: Vec<Step>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed).await;
        for step in steps {
            world.take(step).await;
            world.look().await;
        }
    });
}

/// A case takes half a second: PROPTEST_CASES counts for an eighth.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases / 8, max_shrink_iters: 60, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_acknowledged_row_is_there_exactly_once(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..30),
    ) {
        run(seed, steps);
    }
}
