//! What readers and flushes are given, whatever happens in between.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array};
use futures::FutureExt;
use proptest::prelude::*;

use super::*;

fn batch(values: std::ops::Range<u64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(values.map(|v| v as i64)));
    RecordBatch::try_from_iter([("v", column)]).unwrap()
}

fn rows(values: std::ops::Range<u64>, relaxed: bool) -> NewRows {
    let batch = batch(values);
    NewRows { bytes: memory_bytes(&batch), batch, schema_id: 0, relaxed }
}

fn values(chunks: &[Arc<Chunk>]) -> Vec<u64> {
    let column = |chunk: &Arc<Chunk>| chunk.batch().column(0).as_primitive::<Int64Type>().clone();
    chunks.iter().flat_map(|chunk| column(chunk).values().to_vec()).map(|v| v as u64).collect()
}

/// Adds rows to a log that is never full.
fn push(fresh: &Fresh, rows: NewRows, position: u64, durable: u64) -> bool {
    let append = std::future::ready(Ok((position, ())));
    fresh.push(rows, append, || durable).now_or_never().unwrap().unwrap().is_some()
}

/// Pushes the value of each position, one row at a time.
fn filled(positions: std::ops::Range<u64>, durable: u64) -> Fresh {
    let fresh = Fresh::new(Env::real());
    for position in positions {
        assert!(push(&fresh, rows(position..position + 1, false), position, durable));
    }
    fresh
}

#[test]
fn small_chunks_merge_and_keep_their_order() {
    let fresh = filled(0..10_000, u64::MAX);
    let chunks = fresh.since(0, || u64::MAX).unwrap();
    assert_eq!(values(&chunks), (0..10_000).collect::<Vec<_>>());
    assert!(chunks.len() < 4 * merge::FAN_IN, "{}", chunks.len());
    assert_eq!(fresh.totals().bytes, chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>());
    assert!(fresh.totals().bytes < 1 << 20, "{}", fresh.totals().bytes);
}

#[test]
fn relaxed_chunks_merge_before_they_are_durable_and_others_do_not() {
    for (relaxed, merged) in [(true, true), (false, false)] {
        let fresh = Fresh::new(Env::real());
        for position in 0..1000 {
            assert!(push(&fresh, rows(position..position + 1, relaxed), position, 0));
        }
        let found = fresh.since(0, || u64::MAX).unwrap();
        assert_eq!(found.len() < 4 * merge::FAN_IN, merged, "{}", found.len());
        assert_eq!(fresh.since(0, || 0).unwrap().is_empty(), !relaxed);
    }
}

#[test]
fn rows_are_visible_when_they_are_durable_or_relaxed() {
    let fresh = filled(0..5, 0);
    assert!(push(&fresh, rows(5..6, true), 5, 0));
    assert_eq!(values(&fresh.since(0, || 0).unwrap()), [5]);
    assert_eq!(values(&fresh.since(0, || 3).unwrap()), [0, 1, 2, 5]);
    assert_eq!(values(&fresh.since(2, || 3).unwrap()), [2, 5]);
    let set = fresh.seal(0, usize::MAX, || 3).unwrap();
    assert_eq!((values(&set.chunks), set.to), (vec![0, 1, 2], 3));
}

#[test]
fn readers_of_an_older_version_are_sent_back() {
    let fresh = filled(0..10, u64::MAX);
    let freed = fresh.committed(4);
    assert!(freed > 0);
    assert!(fresh.since(3, || u64::MAX).is_none());
    assert_eq!(values(&fresh.since(4, || u64::MAX).unwrap()), (4..10).collect::<Vec<_>>());
    assert_eq!((fresh.floor(), fresh.first_position()), (4, Some(4)));
}

#[test]
fn a_flush_takes_what_it_may() {
    let fresh = filled(0..10, u64::MAX);
    let one = fresh.totals().bytes / 10;
    assert_eq!(fresh.seal(0, 0, || u64::MAX).unwrap().to, 1);
    assert_eq!(fresh.seal(0, 3 * one, || u64::MAX).unwrap().to, 3);
    assert_eq!(fresh.seal(8, usize::MAX, || u64::MAX).unwrap().to, 10);
    assert!(fresh.seal(10, usize::MAX, || u64::MAX).is_none());
}

/// Who had the log before may commit while it is replayed: up to any of its appends.
#[test]
fn rows_of_a_replay_are_flushed_from_wherever_the_table_is() {
    for position in 0..100 {
        let fresh = Fresh::new(Env::real());
        for number in 0..100 {
            fresh.restore(rows(number..number + 1, false), number);
        }
        assert!(fresh.state.lock().chunks.len() < 40, "small chunks merge");
        fresh.committed(position);
        assert_eq!(fresh.torn(position), None);
        let set = fresh.seal(position, usize::MAX, || u64::MAX).unwrap();
        assert_eq!((values(&set.chunks), set.to), ((position..100).collect(), 100));
        assert_eq!(values(&fresh.since(position, || u64::MAX).unwrap()), values(&set.chunks));
        // Rows of this process's own do not merge with them, which would make them one.
        for number in 100..300 {
            assert!(push(&fresh, rows(number..number + 1, false), number, u64::MAX));
        }
        if position < 99 {
            fresh.committed(99);
            assert_eq!(fresh.torn(99), None);
            assert_eq!(
                values(&fresh.since(99, || u64::MAX).unwrap()),
                (99..300).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn a_position_inside_of_rows_that_have_merged_is_found() {
    let fresh = filled(0..100, u64::MAX);
    fresh.committed(3);
    assert_eq!(fresh.torn(3), Some(0));
    assert_eq!(fresh.torn(0), None);
    assert_eq!(fresh.torn(100), None);
}

#[test]
fn a_flush_has_what_was_there_when_it_began_whatever_merges_meanwhile() {
    for relaxed in [false, true] {
        let fresh = filled(0..5, u64::MAX);
        let end = fresh.mark();
        for position in 5..1000 {
            assert!(push(&fresh, rows(position..position + 1, relaxed), position, u64::MAX));
        }
        let set = fresh.seal(0, usize::MAX, || end).unwrap();
        assert_eq!((values(&set.chunks), set.to), ((0..5).collect(), 5));
    }
}

#[tokio::test]
async fn the_lock_is_free_while_the_log_has_no_room() {
    let fresh = Fresh::new(Env::real());
    let (room, wait) = tokio::sync::oneshot::channel::<u64>();
    let append = async { Ok((wait.await.unwrap(), ())) };
    let mut pushing = Box::pin(fresh.push(rows(0..1, false), append, || 9));
    assert!((&mut pushing).now_or_never().is_none());
    assert_eq!(fresh.totals(), Totals::default());
    room.send(7).unwrap();
    assert_eq!(pushing.await.unwrap().unwrap().position, 7);
    assert_eq!(fresh.first_position(), Some(7));
}

#[test]
fn a_closed_store_takes_nothing() {
    let fresh = filled(0..3, u64::MAX);
    let bytes = fresh.totals().bytes;
    assert_eq!(fresh.close(), (bytes, 3));
    assert!(!push(&fresh, rows(3..4, false), 3, 0));
    assert_eq!(fresh.totals(), Totals::default());
}

#[test]
fn a_thousand_copied_records_are_few_batches() {
    let fresh = Fresh::new(Env::real());
    for position in 1..=1000 {
        fresh.copy(rows(position..position + 1, false), position);
        fresh.merge_copies(position);
    }
    let chunks = fresh.since(0, || 1001).unwrap();
    assert_eq!(values(&chunks), (1..=1000).collect::<Vec<_>>());
    assert!(chunks.len() < 4 * merge::FAN_IN, "{}", chunks.len());
    assert_eq!(fresh.totals().bytes, chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>());
    // A burst of which nothing is shown until all of it has come.
    let fresh = Fresh::new(Env::real());
    for position in 1..=1000 {
        fresh.copy(rows(position..position + 1, false), position);
    }
    assert!(fresh.since(0, || 1).unwrap().is_empty());
    fresh.merge_copies(1001);
    let chunks = fresh.since(500, || 1001).unwrap();
    assert_eq!(values(&chunks), (500..=1000).collect::<Vec<_>>());
    assert!(chunks.len() < 4 * merge::FAN_IN, "{}", chunks.len());
}

#[derive(Clone, Debug)]
enum Step {
    Push { rows: u64, relaxed: bool, schema_id: i32 },
    Sync,
    Seal { bytes_max: usize },
    Commit,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (1_u64..40, prop::bool::weighted(0.4), 0..2)
            .prop_map(|(rows, relaxed, schema_id)| Step::Push { rows, relaxed, schema_id }),
        5 => Just(Step::Sync),
        1 => (0_usize..100_000).prop_map(|bytes_max| Step::Seal { bytes_max }),
        1 => Just(Step::Commit),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a list of all rows ever pushed: a reader who knows any position that was ever
    /// recorded sees exactly the rows from there on that are visible.
    #[test]
    fn every_reader_sees_each_visible_row_once(steps in prop::collection::vec(step(), 1..400)) {
        let fresh = Fresh::new(Env::real());
        // Value, position, relaxed.
        let mut model: Vec<(u64, u64, bool)> = Vec::new();
        let (mut next, mut durable, mut recorded) = (0_u64, 0_u64, vec![0_u64]);
        let mut sealed = None;
        for step in steps {
            match step {
                Step::Push { rows: count, relaxed, schema_id } => {
                    let first = model.len() as u64;
                    let new = NewRows { schema_id, ..rows(first..first + count, relaxed) };
                    prop_assert!(push(&fresh, new, next, durable));
                    model.extend((first..first + count).map(|value| (value, next, relaxed)));
                    next += 1;
                }
                Step::Sync => durable = next,
                Step::Seal { bytes_max } => {
                    let from = recorded.last().copied().unwrap();
                    sealed = fresh.seal(from, bytes_max, || durable);
                    if let Some(set) = &sealed {
                        let expected = model.iter().filter(|row| (from..set.to).contains(&row.1));
                        let expected: Vec<u64> = expected.map(|row| row.0).collect();
                        prop_assert_eq!(values(&set.chunks), expected);
                        prop_assert!(set.to <= durable);
                    }
                }
                // The snapshot exists before the store hears of it.
                Step::Commit => if let Some(set) = sealed.take() {
                    recorded.push(set.to);
                    fresh.committed(recorded[recorded.len() - 2]);
                }
            }
            for seen in recorded.iter().rev().take(3).copied() {
                let Some(found) = fresh.since(seen, || durable) else {
                    prop_assert!(seen < fresh.floor());
                    continue;
                };
                let visible = |row: &&(u64, u64, bool)| row.1 >= seen && (row.1 < durable || row.2);
                let expected: Vec<u64> = model.iter().filter(visible).map(|row| row.0).collect();
                prop_assert_eq!(values(&found), expected);
            }
            let totals = fresh.totals();
            let left = model.iter().filter(|row| row.1 >= fresh.floor()).count();
            prop_assert_eq!(totals.rows, left as u64);
        }
    }
}

#[derive(Clone, Debug)]
enum CopyStep {
    /// A record, after some of other tables.
    Record { rows: u64, skipped: u64, schema_id: i32 },
    /// So many of the records that have come are shown, of a thousand.
    Show(u64),
    /// The other daemon's files reach so far, of a thousand of what is shown.
    InFiles(u64),
}

fn copy_step() -> impl Strategy<Value = CopyStep> {
    prop_oneof![
        20 => (1_u64..20, 0_u64..3, prop::bool::weighted(0.02)).prop_map(|(rows, skipped, other)| {
            CopyStep::Record { rows, skipped, schema_id: i32::from(other) }
        }),
        5 => (0..=1000_u64).prop_map(CopyStep::Show),
        1 => (0..=1000_u64).prop_map(CopyStep::InFiles),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a list of all rows: files of the other daemon may end anywhere, and a reader may have read any version
    /// since those that are gone.
    #[test]
    fn copies_can_be_divided_anywhere(
        steps in prop::collection::vec(copy_step(), 1..400),
        readers in prop::collection::vec(0_u64..=1000, 4),
    ) {
        let fresh = Fresh::new(Env::real());
        let mut model: Vec<(u64, u64)> = Vec::new();
        let (mut next, mut shown, mut floor) = (1_u64, 1_u64, 0_u64);
        for step in steps {
            match step {
                CopyStep::Record { rows: count, skipped, schema_id } => {
                    next += skipped;
                    let first = model.len() as u64;
                    fresh.copy(NewRows { schema_id, ..rows(first..first + count, false) }, next);
                    model.extend((first..first + count).map(|value| (value, next)));
                    next += 1;
                }
                CopyStep::Show(part) => {
                    shown += (next - shown) * part / 1000;
                    fresh.merge_copies(shown);
                }
                CopyStep::InFiles(part) => {
                    floor = floor.max(shown * part / 1000);
                    fresh.committed(floor);
                }
            }
            for part in &readers {
                let seen = floor + (next - floor) * part / 1000;
                let found = fresh.since(seen, || shown).unwrap();
                let expected = model.iter().filter(|row| row.1 >= seen && row.1 < shown);
                prop_assert_eq!(values(&found), expected.map(|row| row.0).collect::<Vec<_>>());
            }
            prop_assert!(floor == 0 || fresh.since(floor - 1, || shown).is_none());
            let totals = fresh.totals();
            prop_assert_eq!(totals.rows, model.iter().filter(|row| row.1 >= floor).count() as u64);
            let all = fresh.since(floor, || u64::MAX).unwrap();
            prop_assert_eq!(totals.bytes, all.iter().map(|chunk| chunk.bytes()).sum::<usize>());
        }
    }
}
