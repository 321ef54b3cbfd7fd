//! Fresh rows: the same answers, whatever is kept of them.

use std::collections::BTreeMap as Map;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use proptest::prelude::*;
use stoa_ingest::{Durability, FlushLimits, Ingest, IngestOptions};

use super::*;

async fn ingest(home: &Home) -> Ingest {
    let never = FlushLimits { bytes: 64 << 20, rows: u64::MAX, age: Duration::from_secs(1 << 30) };
    let options = IngestOptions { flush: never, ..IngestOptions::default() };
    let place = home.directory.path().join("log");
    let url = stoa_store::parse_location(place.to_str().unwrap()).unwrap();
    Ingest::open(home.warehouse.clone(), &url, options).await.unwrap().0
}

/// Accounts are scattered over small batches, and ascend in large ones.
fn fresh_rows(batch: i64, count: i64) -> RecordBatch {
    rows(-1, count, batch * 77)
}

/// What a report of accounts from `low` to `high` must answer: clicks and rows per region.
fn expected(batches: &[RecordBatch], low: i64, high: i64) -> Map<Option<String>, (i64, i64)> {
    let mut sums = Map::new();
    for batch in batches {
        let accounts = batch.column(1).as_primitive::<Int64Type>();
        let regions = batch.column(2).as_string::<i32>();
        let clicks = batch.column(3).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            if (low..=high).contains(&accounts.value(row)) {
                let region = regions.iter().nth(row).unwrap().map(str::to_owned);
                let sum: &mut (i64, i64) = sums.entry(region).or_default();
                *sum = (sum.0 + clicks.value(row), sum.1 + 1);
            }
        }
    }
    sums
}

fn given(answer: &RecordBatch) -> Map<Option<String>, (i64, i64)> {
    let regions = answer.column(0).as_string::<i32>().iter();
    let numbers = |column| answer.column(column).as_primitive::<Int64Type>().values().iter();
    let sums = numbers(1).zip(numbers(2)).map(|(clicks, rows)| (*clicks, *rows));
    regions.map(|region| region.map(str::to_owned)).zip(sums).collect()
}

#[tokio::test]
async fn blocks_of_fresh_rows_answer_as_all_rows_would() {
    let home = Home::new(1, 500).await;
    let ingest = ingest(&home).await;
    let mut all = vec![rows(0, 500, 0)];
    for (batch, count) in [3_i64, 1500, 40, 20_000, 8192, 8193, 600].into_iter().enumerate() {
        let fresh = fresh_rows(batch as i64, count);
        ingest.append(&home.table, fresh.clone(), Durability::Relaxed).await.unwrap();
        all.push(fresh);
    }
    let reports = reports();
    let fresh = ingest.snapshot(home.table.ident()).await.unwrap().fresh;
    let mut seen_fewer = false;
    for (low, high) in [(0, 1), (5, 5), (0, 5000), (100, 180), (1999, 1999), (819, 820), (-5, -1)] {
        // Twice: made, and as it is kept.
        for _ in 0..2 {
            let report = report(&home.table, low.into(), high.into());
            let answer = reports.run(&home.table, &fresh, &report).await.unwrap().unwrap();
            assert_eq!(given(&answer.batch), expected(&all, low, high), "{low}..={high}");
            seen_fewer |= answer.work.rows_read < fresh.rows() / 3;
        }
    }
    assert!(seen_fewer);
}

#[tokio::test]
async fn only_rows_that_may_match_count_against_the_bound() {
    let home = Home::new(1, 100).await;
    let ingest = ingest(&home).await;
    for batch in 0..3 {
        let fresh = fresh_rows(batch, 40_000);
        ingest.append(&home.table, fresh, Durability::Relaxed).await.unwrap();
    }
    let fresh = ingest.snapshot(home.table.ident()).await.unwrap().fresh;
    let reports = Reports::new(ReportOptions { rows_max: 50_000, ..ReportOptions::default() });
    let narrow = report(&home.table, 7, 9);
    // The first reports learn bounds, no more of them at a time than they might look at.
    let mut answer = None;
    for _ in 0..3 {
        answer = reports.run(&home.table, &fresh, &narrow).await.unwrap();
    }
    let work = answer.unwrap().work;
    assert_eq!((work.rows_read, work.rows_selected), (3 * 8192 + 100, 4 * 30));
    let wide = report(&home.table, 0, 4000);
    assert!(reports.run(&home.table, &fresh, &wide).await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_kept_of_fresh_rows_goes_with_them() {
    let home = Home::new(1, 100).await;
    let ingest = ingest(&home).await;
    let reports = reports();
    let report = report(&home.table, 0, 5000);
    let mut entries = 0;
    for round in 0..4 {
        ingest.append(&home.table, fresh_rows(round, 20_000), Durability::Synced).await.unwrap();
        let snapshot = ingest.snapshot(home.table.ident()).await.unwrap();
        reports.run(&home.table, &snapshot.fresh, &report).await.unwrap().unwrap();
        drop(snapshot);
        match round {
            0 => entries = reports.cache_status().entries,
            _ => assert_eq!(reports.cache_status().entries, entries, "{round}"),
        }
        ingest.flush_now(&home.table).await.unwrap();
    }
    // Zones of accounts, and three columns of three blocks.
    assert!(entries > 10, "{entries}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_batches_and_any_report(
        counts in prop::collection::vec(prop_oneof![1_i64..60, 900_i64..1200, 8000_i64..18_000], 1..6),
        ranges in prop::collection::vec((-3_i64..2000, 0_i64..600), 1..6),
        cache_bytes_max in prop_oneof![Just(1_u64 << 14), Just(8 << 20)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let home = Home::new(1, 10).await;
            let ingest = ingest(&home).await;
            let mut all = vec![rows(0, 10, 0)];
            for (batch, count) in counts.into_iter().enumerate() {
                let fresh = fresh_rows(batch as i64, count);
                ingest.append(&home.table, fresh.clone(), Durability::Relaxed).await.unwrap();
                all.push(fresh);
            }
            let reports = Reports::new(ReportOptions { cache_bytes_max, ..ReportOptions::default() });
            let fresh = ingest.snapshot(home.table.ident()).await.unwrap().fresh;
            for (low, width) in ranges {
                let report = report(&home.table, low.into(), (low + width).into());
                let answer = reports.run(&home.table, &fresh, &report).await.unwrap().unwrap();
                assert_eq!(given(&answer.batch), expected(&all, low, low + width));
            }
        });
    }
}
