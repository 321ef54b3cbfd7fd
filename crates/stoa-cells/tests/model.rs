//! Random writes, loads, flushes, compactions and restarts against cells in memory: whatever is done,
//! every question has the same answer.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use common::{Home, Store, name};
use futures::TryStreamExt;
use proptest::prelude::*;
use stoa_hql::scan::{
    CellKey, ColumnPredicate, ColumnSelector, KeyRange, QualifierFilter, ScanSpec, TimeRange,
    ValueFilter,
};
use stoa_hql::{
    Cell, CellBatch, CellBatchBuilder, CellKind, CellRef, CellStore, CompactScope,
    FamilyDefinition, FamilyOptions, MemoryCells, TableDefinitions, TableOptions, TableSchema,
    TimeOrder, TimestampSource,
};

/// What time it is, in seconds; cells are from 0 to 9.
const NOW_S: i64 = 12;

const SECOND: i64 = 1_000_000_000;

/// Row keys, some of which are no text.
const ROWS: [&[u8]; 6] =
    [b"a", b"ab", b"\xc3\x28", "\u{fc}".as_bytes(), b"b\xff", b"row with 16 bytes"];

#[derive(Clone, Debug)]
enum Step {
    Mutate(Vec<Cell>),
    Load { batches: Vec<Vec<Cell>>, logged: bool, finishes: bool },
    Flush,
    Merge,
    Compact,
    Reopen { flush: bool },
    Ask(Box<ScanSpec>),
}

fn schema() -> TableSchema {
    let family = |name: &str, options| FamilyDefinition { name: name.into(), options };
    let plain = FamilyOptions::default();
    let families = vec![
        family("all", plain.clone()),
        family("few", FamilyOptions { max_versions: Some(2), ..plain.clone() }),
        family("young", FamilyOptions { ttl_s: Some(7), ..plain.clone() }),
        family("counter", FamilyOptions { counter: Some(true), ..plain.clone() }),
        family("old", FamilyOptions { time_order: Some(TimeOrder::OldestFirst), ..plain }),
    ];
    let definitions = TableDefinitions { families, ..TableDefinitions::default() };
    TableSchema::create(&definitions, TableOptions::default()).unwrap()
}

fn cell() -> impl Strategy<Value = Cell> {
    let kind = prop_oneof![
        1 => Just(CellKind::DeleteRow),
        1 => Just(CellKind::DeleteFamily),
        2 => Just(CellKind::DeleteCell),
        2 => Just(CellKind::DeleteVersion),
        24 => Just(CellKind::Insert)
    ];
    let row = (0..ROWS.len()).prop_map(|nth| ROWS[nth].to_vec());
    let qualifier = prop_oneof![Just(&b""[..]), Just(&b"q"[..]), Just(&b"\xfe"[..])];
    let parts = (row, 1_u8..6, qualifier, 0_i64..9, "[=+]?[1-9]", kind);
    parts.prop_map(|(row, family, qualifier, second, value, kind)| {
        let timestamp = second * SECOND;
        let (qualifier, value) = (qualifier.to_vec(), value.into_bytes());
        let cell = Cell { row, family, qualifier, timestamp, value, kind };
        match kind {
            CellKind::Insert => cell,
            CellKind::DeleteRow => Cell { family: 0, qualifier: vec![], value: vec![], ..cell },
            CellKind::DeleteFamily => Cell { qualifier: vec![], value: vec![], ..cell },
            CellKind::DeleteCell | CellKind::DeleteVersion => Cell { value: vec![], ..cell },
        }
    })
}

fn cells() -> impl Strategy<Value = Vec<Cell>> {
    prop::collection::vec(cell(), 0..12)
}

fn range() -> impl Strategy<Value = KeyRange> {
    let key = || {
        let row = (0..ROWS.len()).prop_map(|nth| ROWS[nth].to_vec());
        (row, prop::option::of((1_u8..6, prop_oneof![Just(b"".to_vec()), Just(b"q".to_vec())])))
            .prop_map(|(row, column)| CellKey { row, column })
    };
    let bound = || {
        prop_oneof![
            Just(Bound::Unbounded),
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded)
        ]
    };
    let between = (bound(), bound()).prop_map(|(start, end)| KeyRange { start, end });
    prop_oneof![between, key().prop_map(KeyRange::at), key().prop_map(KeyRange::prefix)]
}

fn selector() -> impl Strategy<Value = ColumnSelector> {
    let qualifier = prop_oneof![
        Just(QualifierFilter::Any),
        Just(QualifierFilter::Exact(b"".to_vec())),
        Just(QualifierFilter::Prefix(b"q".to_vec()))
    ];
    (1_u8..6, qualifier).prop_map(|(family, qualifier)| ColumnSelector { family, qualifier })
}

fn question() -> impl Strategy<Value = ScanSpec> {
    let what = (
        prop::collection::vec(range(), 0..3),
        prop::collection::vec(selector(), 0..3),
        prop::option::of((0_i64..9, prop::option::of(0_i64..10))),
    );
    let predicate = selector()
        .prop_map(|column| ColumnPredicate { column, value: ValueFilter::Prefix(b"1".to_vec()) });
    let how = (
        prop::option::of(1_u32..3),
        prop::option::of(0_u64..4),
        prop::option::of(0_u64..6),
        any::<bool>(),
        any::<bool>(),
        prop::collection::vec(predicate, 0..2),
    );
    (what, how).prop_map(|((ranges, columns, time), how)| {
        let (max_versions, row_limit, cell_limit, keys_only, return_deletes, predicates) = how;
        let time = time.map_or_else(TimeRange::default, |(start, end)| TimeRange {
            start: start * SECOND,
            end: end.map(|end| end * SECOND),
        });
        let ranges = KeyRange::union(ranges);
        ScanSpec {
            ranges,
            columns,
            time,
            max_versions,
            row_limit,
            cell_limit,
            keys_only,
            return_deletes,
            predicates,
            ..ScanSpec::default()
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let load = (prop::collection::vec(cells(), 0..3), any::<bool>(), prop::bool::weighted(0.8));
    prop_oneof![
        5 => cells().prop_map(Step::Mutate),
        2 => load.prop_map(|(batches, logged, finishes)| Step::Load { batches, logged, finishes }),
        3 => Just(Step::Flush),
        2 => Just(Step::Merge),
        1 => Just(Step::Compact),
        2 => any::<bool>().prop_map(|flush| Step::Reopen { flush }),
        6 => question().prop_map(|spec| Step::Ask(Box::new(spec))),
    ]
}

fn batch(cells: &[Cell]) -> CellBatch {
    let mut builder = CellBatchBuilder::new();
    cells.iter().for_each(|cell| builder.push(cell.as_cell_ref()).unwrap());
    builder.finish()
}

async fn write(store: &dyn CellStore, step: &Step) {
    let table = name("t");
    match step {
        Step::Mutate(cells) => store.mutate(&table, batch(cells)).await.unwrap(),
        Step::Load { batches, logged, finishes } => {
            let mut load = store.bulk_load(&table, *logged).await.unwrap();
            for cells in batches {
                load.write(batch(cells)).await.unwrap();
            }
            if *finishes {
                load.finish().await.unwrap();
            }
        }
        Step::Compact => store.compact(CompactScope::Everything, None).await.unwrap(),
        Step::Flush | Step::Merge | Step::Reopen { .. } | Step::Ask(_) => {}
    }
}

async fn answer(store: &dyn CellStore, spec: &ScanSpec) -> Vec<Cell> {
    let batches = store.scan(&name("t"), spec.clone()).await.unwrap();
    let batches: Vec<CellBatch> = batches.try_collect().await.unwrap();
    batches.iter().flat_map(|batch| batch.iter().map(|cell| cell.to_cell())).collect()
}

async fn restarted(home: &Home, store: Store, flush: bool) -> Store {
    store.ingest.close(flush).await.unwrap();
    drop(store);
    home.open().await
}

async fn check(steps: Vec<Step>) {
    let home = Home::new(NOW_S * SECOND);
    let memory = MemoryCells::new(TimestampSource::manual(NOW_S * SECOND));
    let mut store = home.open().await;
    memory.create_table(&name("t"), schema()).await.unwrap();
    store.cells.create_table(&name("t"), schema()).await.unwrap();
    for (nth, step) in steps.iter().enumerate() {
        write(&memory, step).await;
        write(&store.cells, step).await;
        match step {
            Step::Flush => store.flush().await,
            Step::Merge => store.merge().await,
            Step::Reopen { flush } => store = restarted(&home, store, *flush).await,
            Step::Ask(spec) => {
                let (found, expected) =
                    (answer(&store.cells, spec).await, answer(&memory, spec).await);
                assert_eq!(found, expected, "step {nth} of {steps:#?}");
            }
            Step::Mutate(_) | Step::Load { .. } | Step::Compact => {}
        }
    }
    let all = ScanSpec::default();
    assert_eq!(answer(&store.cells, &all).await, answer(&memory, &all).await, "{steps:#?}");
    for table in store.tables().await {
        assert_eq!(table.check().await.unwrap().problems, []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn tables_answer_as_memory_does(steps in prop::collection::vec(step(), 1..20)) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(check(steps));
    }
}

/// New timestamps go on after those of the process before, which ran ahead of the clock; those that
/// were given by hand do not count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_timestamp_is_handed_out_again() {
    for (flush, compact) in [(false, false), (true, false), (true, true)] {
        let mut home = Home::new(NOW_S * SECOND);
        let mut seen = BTreeSet::new();
        home.open().await.cells.create_table(&name("t"), schema()).await.unwrap();
        for _ in 0..3 {
            // A new process: it knows what its clock says, and nothing else.
            home.timestamps = Arc::new(TimestampSource::manual(NOW_S * SECOND));
            let store = home.open().await;
            let mut builder = CellBatchBuilder::new();
            for _ in 0..5 {
                let timestamp = store.cells.timestamps().reserve(1);
                assert!(seen.insert(timestamp), "{timestamp} comes twice: {flush} {compact}");
                builder.push_insert(b"r", 1, b"", timestamp, b"v").unwrap();
            }
            let new = builder.finish().with_new_timestamps();
            store.cells.mutate(&name("t"), new).await.unwrap();
            let future = CellRef::insert(b"r", 1, b"", i64::MAX, b"v").to_cell();
            if compact {
                store.compact().await;
            }
            store.cells.mutate(&name("t"), batch(&[future])).await.unwrap();
            store.ingest.close(flush).await.unwrap();
        }
        // Not behind the one that was given by hand, in the year 2262.
        assert!(seen.iter().all(|timestamp| *timestamp < i64::MAX / 2));
    }
}
