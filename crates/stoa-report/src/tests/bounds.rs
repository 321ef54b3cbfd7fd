//! Bounds of a report: within them the answer is that of a full sort, beyond them there is none.

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use futures::FutureExt;

use super::*;
use crate::aggregate::Groups;
use crate::chunk::chunk;
use crate::memory::Memory;
use crate::rows::ChunkRows;

type Key = (Option<String>, i64);

/// Memory of `limit` bytes that knows what was taken.
#[derive(Default)]
struct Counted {
    limit: usize,
    taken: AtomicUsize,
    most: AtomicUsize,
}

impl Counted {
    fn of(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl Memory for Counted {
    fn resize(&self, bytes: usize) -> bool {
        if bytes > self.limit {
            return false;
        }
        self.taken.store(bytes, Ordering::Relaxed);
        self.most.fetch_max(bytes, Ordering::Relaxed);
        true
    }
}

/// Region and clicks of all rows, regions in order, most clicks first.
fn rows_in_order(table: &Table, limit: Option<usize>, offset: usize) -> Report {
    let by =
        |column, descending| Order { by: Item::Column(column), descending, nulls_first: false };
    Report {
        grouped: false,
        group_by: Vec::new(),
        aggregates: Vec::new(),
        items: vec![Item::Column(1), Item::Column(2)],
        schema: Arc::new(Schema::new(vec![
            Field::new("region", DataType::Utf8, true),
            Field::new("clicks", DataType::Int64, true),
        ])),
        order: vec![by(1, false), by(2, true)],
        offset,
        limit,
        ..report(table, 0, i64::MAX.into())
    }
}

/// Rows per account.
fn accounts(table: &Table) -> Report {
    Report {
        group_by: vec![0],
        aggregates: vec![Aggregate { function: Function::Count, column: None }],
        items: vec![Item::Column(0), Item::Aggregate(0)],
        schema: Arc::new(Schema::new(vec![
            Field::new("account", DataType::Int64, true),
            Field::new("n", DataType::Int64, true),
        ])),
        order: vec![Order { by: Item::Column(0), descending: true, nulls_first: true }],
        ..report(table, 0, i64::MAX.into())
    }
}

fn with_rows(answer_rows_max: usize) -> Reports {
    Reports::new(ReportOptions { answer_rows_max, ..ReportOptions::default() })
}

async fn run(home: &Home, reports: &Reports, report: &Report) -> Option<RecordBatch> {
    let fresh = FreshRows::none(&home.table);
    let answer = sendable(reports.run(&home.table, &fresh, report)).await.unwrap();
    answer.map(|answer| answer.batch)
}

fn keys(batch: &RecordBatch) -> Vec<Key> {
    let regions = batch.column(0).as_string::<i32>().iter();
    let clicks = batch.column(1).as_primitive::<Int64Type>().values();
    regions.map(|region| region.map(str::to_owned)).zip(clicks.iter().copied()).collect()
}

/// All rows in the order of [`rows_in_order`], sorted by the standard library.
fn expected(parts: i32, part_rows: i64) -> Vec<Key> {
    let of_part = |part: i32| {
        let batch = rows(part, part_rows, i64::from(part));
        keys(&batch.project(&[2, 3]).unwrap())
    };
    let mut all: Vec<Key> = (0..parts).flat_map(of_part).collect();
    // NULL last.
    all.sort_by_key(|(region, clicks)| (region.is_none(), region.clone(), -clicks));
    all
}

#[tokio::test]
async fn the_first_rows_are_those_of_a_full_sort() {
    let home = Home::new(3, 20_000).await;
    let all = expected(3, 20_000);
    let reports = with_rows(30_000);
    for (limit, offset) in [(0, 0), (1, 0), (10, 0), (10, 7), (0, 9), (3000, 5000), (29_000, 1000)]
    {
        let report = rows_in_order(&home.table, Some(limit), offset);
        let batch = run(&home, &reports, &report).await.unwrap();
        assert_eq!(keys(&batch), all[offset..offset + limit], "{limit} {offset}");
    }
    // One more than may be kept, and all rows.
    for (limit, offset) in [(Some(30_001), 0), (Some(1), 30_000), (Some(usize::MAX), 1), (None, 0)]
    {
        let report = rows_in_order(&home.table, limit, offset);
        assert_eq!(run(&home, &reports, &report).await, None, "{limit:?} {offset}");
    }
    // All rows where they are just as many as may be kept: sorted in several runs.
    let batch = run(&home, &with_rows(60_000), &rows_in_order(&home.table, None, 0)).await;
    assert_eq!(keys(&batch.unwrap()), all);
    assert_eq!(run(&home, &with_rows(59_999), &rows_in_order(&home.table, None, 0)).await, None);
}

#[tokio::test]
async fn a_limit_without_an_order_ends_the_report() {
    let home = Home::new(2, 20_000).await;
    let mut report = rows_in_order(&home.table, Some(10), 5);
    report.order.clear();
    let fresh = FreshRows::none(&home.table);
    let answer = reports().run(&home.table, &fresh, &report).await.unwrap().unwrap();
    assert_eq!(answer.batch.num_rows(), 10);
    let all = expected(2, 20_000);
    assert!(keys(&answer.batch).iter().all(|key| all.contains(key)));
}

#[tokio::test]
async fn groups_are_counted() {
    let home = Home::new(2, 20_000).await;
    let report = accounts(&home.table);
    let batch = run(&home, &with_rows(2000), &report).await.unwrap();
    let accounts = batch.column(0).as_primitive::<Int64Type>().values();
    assert!(accounts.iter().copied().eq((0..2000).rev()));
    let counts = batch.column(1).as_primitive::<Int64Type>().values();
    assert!(counts.iter().all(|rows| *rows == 20));
    assert_eq!(run(&home, &with_rows(1999), &report).await, None);
    // A limit shows fewer, but all groups are kept until the end.
    let first = Report { limit: Some(3), ..report };
    assert_eq!(run(&home, &with_rows(1999), &first).await, None);
    let batch = run(&home, &with_rows(2000), &first).await.unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[1999, 1998, 1997]);
}

#[tokio::test]
async fn memory_is_asked_for_and_given_back() {
    let home = Home::new(3, 50_000).await;
    let (fresh, report) = (FreshRows::none(&home.table), report(&home.table, 0, i64::MAX.into()));
    let reports = reports();
    let small = Counted::of(2 << 20);
    let refused = reports.run_within(&home.table, &fresh, &report, &small).await.unwrap();
    assert!(refused.is_none());
    assert_eq!((small.most(), reports.cache_status().chunk_misses), (0, 0));
    let own = Reports::new(ReportOptions { bytes_max: 2 << 20, ..ReportOptions::default() });
    assert!(own.run(&home.table, &fresh, &report).await.unwrap().is_none());
    // 150,000 rows of two numbers and a text.
    let large = Counted::of(64 << 20);
    let cold = reports.run_within(&home.table, &fresh, &report, &large).await.unwrap().unwrap();
    assert!((6 << 20..16 << 20).contains(&large.most()), "{}", large.most());
    assert_eq!(large.taken(), 0, "a small answer takes nothing");
    // What is in the cache is not asked for once more.
    let warm = reports.run_within(&home.table, &fresh, &report, &small).await.unwrap().unwrap();
    assert_eq!((warm.batch, small.most()), (cold.batch, 0));
}

#[tokio::test]
async fn a_long_report_lets_others_have_their_turn() {
    let home = Home::new(3, 50_000).await;
    let (fresh, all) = (FreshRows::none(&home.table), report(&home.table, 0, i64::MAX.into()));
    let reports = reports();
    let expected = home.ask(&reports, &all).await.batch;
    // All of it is in memory: what is waited for are others. Here it can be dropped.
    assert!(reports.run(&home.table, &fresh, &all).now_or_never().is_none());
    assert_eq!(home.ask(&reports, &all).await.batch, expected);
    // A short one is answered at once.
    let few = report(&home.table, 7, 8);
    assert!(reports.run(&home.table, &fresh, &few).now_or_never().is_some());
}

#[tokio::test]
async fn chunks_of_rows_that_are_not_among_the_first_are_dropped() {
    let home = Home::new(1, 10).await;
    let columns = vec![report(&home.table, 0, 1).columns[0].clone()];
    let by = Order { by: Item::Column(0), descending: false, nulls_first: false };
    let report = Report {
        columns,
        conditions: Vec::new(),
        items: vec![Item::Column(0)],
        order: vec![by],
        ..rows_in_order(&home.table, Some(5), 0)
    };
    let mut groups = Groups::new(&report, 100);
    let mut most = 0;
    // Each has the least rows so far.
    for source in (0..2000_i64).rev() {
        let values = (0..1000).map(|row| source * 1000 + row);
        let chunks = vec![Arc::new(chunk(Int64Array::from_iter_values(values)))];
        assert!(groups.add(chunks, &ChunkRows::Range(0..1000)));
        most = most.max(groups.memory_bytes());
    }
    assert!((7 << 20..12 << 20).contains(&most), "{most}");
    let first: Vec<_> = groups.ordered().await;
    let cells = first.iter().map(|group| groups.cell(*group, Item::Column(0)));
    assert!(cells.eq((0..5).map(crate::aggregate::Cell::Number)));
}
