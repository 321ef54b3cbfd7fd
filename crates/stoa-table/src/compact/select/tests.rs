use std::collections::HashMap;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use stoa_rangeio::{RangeReader, ReaderOptions};

use super::*;
use crate::FileFormat;

const TARGET: u64 = 64 << 20;

fn limits() -> Limits {
    Limits {
        target_bytes: TARGET,
        runs_min: 4,
        runs_max: 32,
        group_bytes_max: 16 << 30,
        ordered: true,
        full: false,
    }
}

/// A sorted file whose leading column goes from `first` to `last`, added by `snapshot`.
fn candidate(name: &str, bytes: u64, first: i64, last: i64, snapshot: i64) -> Candidate {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let file = ScanFile {
        location: format!("file:///t/data/{name}.orc"),
        reader: RangeReader::new(Arc::clone(&store), ReaderOptions::memory()),
        store,
        path: Path::from(name),
        file_bytes: bytes,
        rows: bytes,
        partition: Vec::new(),
        partition_text: String::new(),
        value_counts: HashMap::from([(1, bytes)]),
        null_counts: HashMap::from([(1, 0)]),
        nan_counts: HashMap::new(),
        lower_bounds: HashMap::from([(1, Literal::Int(first))]),
        upper_bounds: HashMap::from([(1, Literal::Int(last))]),
        split_offsets: Vec::new(),
        sort_order_id: Some(1),
        snapshot_id: Some(snapshot),
        format: FileFormat::Orc,
        is_encrypted: false,
        deletes: Vec::new(),
        has_defaults: false,
    };
    let span = Span::of(&file, 1, SortOptions::default());
    Candidate {
        file: Arc::new(file),
        sequence_number: snapshot,
        sorted: true,
        is_plain: true,
        waits: false,
        span,
    }
}

fn files(count: i64, bytes: u64, span: impl Fn(i64) -> (i64, i64)) -> Vec<Candidate> {
    let file = |n: i64| {
        let (first, last) = span(n);
        candidate(&format!("00001-{n}"), bytes, first, last, n)
    };
    (0..count).map(file).collect()
}

#[test]
fn few_files_are_left_alone_and_many_small_ones_merged() {
    let few = files(3, 1 << 20, |_| (0, 100));
    assert_eq!(select(&few, &limits()), []);
    let many = files(5, 1 << 20, |_| (0, 100));
    let all = (0..5).map(|index| vec![index]).collect();
    assert_eq!(select(&many, &limits()), [Choice::Merge(all)]);
}

#[test]
fn tiers_are_not_mixed() {
    let mut mixed = files(3, 1 << 20, |_| (0, 100));
    mixed.extend(files(3, 20 << 20, |_| (0, 100)));
    assert_eq!(select(&mixed, &limits()), []);
    let full = Limits { full: true, ..limits() };
    let [Choice::Merge(runs)] = &select(&mixed, &full)[..] else { panic!("not one group") };
    assert_eq!(runs.len(), 6);
}

#[test]
fn whole_files_side_by_side_are_one_run() {
    let apart = files(20, TARGET, |n| (n * 10, n * 10 + 10));
    assert_eq!(select(&apart, &limits()), []);
    assert_eq!(select(&apart, &Limits { full: true, ..limits() }), []);
    let overlapping = files(20, TARGET, |_| (0, 100));
    let [Choice::Merge(runs)] = &select(&overlapping, &limits())[..] else { panic!("none") };
    assert_eq!(runs.len(), 20);
}

#[test]
fn what_one_writer_wrote_in_turn_is_one_run_even_if_bounds_touch() {
    let output = |n: i64| candidate(&format!("{:05}-w", n + 1), TARGET, n * 10, n * 10 + 15, 7);
    let one: Vec<Candidate> = (0..8).map(output).collect();
    assert_eq!(select(&one, &Limits { full: true, ..limits() }), []);
    // The same files of eight writers overlap.
    let eight = files(8, TARGET, |n| (n * 10, n * 10 + 15));
    assert_eq!(select(&eight, &Limits { full: true, ..limits() }).len(), 1);
}

#[test]
fn nulls_between_files_count_as_overlap() {
    let mut apart = files(6, TARGET, |n| (n * 10, n * 10 + 5));
    for candidate in &mut apart {
        let mut file = ScanFile::clone(&candidate.file);
        file.null_counts.insert(1, 3);
        candidate.span = Span::of(&file, 1, SortOptions::default());
        candidate.file = Arc::new(file);
    }
    // NULL comes first: each file begins with what no other may hold before it.
    assert_eq!(select(&apart, &limits()).len(), 1);
}

#[test]
fn unsorted_files_are_sorted_first() {
    let mut some = files(6, 1 << 20, |_| (0, 100));
    some[2].sorted = false;
    some[4].sorted = false;
    let choices = select(&some, &limits());
    assert_eq!(choices[0], Choice::Sort(vec![2, 4]));
    assert_eq!(choices.len(), 2);
    let unordered = Limits { ordered: false, ..limits() };
    assert_eq!(select(&some, &unordered).len(), 1);
    // Whole files without order are done.
    assert_eq!(select(&files(6, TARGET, |_| (0, 100)), &unordered), []);
}

#[test]
fn groups_stay_within_their_limits() {
    let many = files(100, 1 << 20, |n| (n, n));
    let tight = Limits { runs_max: 10, group_bytes_max: 8 << 20, ..limits() };
    let choices = select(&many, &tight);
    let mut seen = Vec::new();
    for choice in choices {
        let Choice::Merge(runs) = choice else { panic!("sorted files are not sorted again") };
        assert!((2..=8).contains(&runs.len()));
        seen.extend(runs.into_iter().flatten());
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 100);
}

/// What a compaction of `group` writes: one run of files of the target size.
fn merged(candidates: &[Candidate], group: &[Vec<usize>], snapshot: i64) -> Vec<Candidate> {
    let bytes: u64 = group.iter().map(|run| bytes_of(candidates, run)).sum();
    let files = i64::try_from(bytes.div_ceil(TARGET)).unwrap();
    let name = |n: i64| format!("{:05}-w{snapshot}", n + 1);
    let size = bytes / u64::try_from(files).unwrap();
    (0..files).map(|n| candidate(&name(n), size, n * 100 / files, 100, snapshot)).collect()
}

/// Compacts until there is nothing to do; gives back what is left and the bytes written.
fn settle(mut files: Vec<Candidate>, snapshot: &mut i64) -> (Vec<Candidate>, u64) {
    let mut written = 0;
    for _ in 0..20 {
        let choices = select(&files, &limits());
        if choices.is_empty() {
            return (files, written);
        }
        let mut gone = vec![false; files.len()];
        let mut added = Vec::new();
        for choice in choices {
            let Choice::Merge(group) = choice else { panic!("sorted files are not sorted again") };
            *snapshot += 1;
            added.extend(merged(&files, &group, *snapshot));
            for index in group.into_iter().flatten() {
                assert!(!std::mem::replace(&mut gone[index], true), "chosen twice");
                written += files[index].file.file_bytes;
            }
        }
        let left = files.into_iter().zip(gone).filter(|(_, gone)| !gone).map(|(file, _)| file);
        files = left.chain(added).collect();
    }
    panic!("compaction does not come to an end");
}

#[test]
fn a_row_is_written_about_once_per_tier() {
    const FLUSHES: i64 = 2000;
    let (mut files, mut written, mut snapshot) = (Vec::new(), 0, 10_000);
    for flush in 0..FLUSHES {
        files.push(candidate(&format!("00001-{flush}"), 1 << 20, 0, 100, flush));
        let (left, bytes) = settle(files, &mut snapshot);
        (files, written) = (left, written + bytes);
    }
    let total: u64 = files.iter().map(|file| file.file.file_bytes).sum();
    let tiers = (total / (1 << 20)).ilog(TIER_FACTOR) + 1;
    let amplification = written as f64 / total as f64;
    assert!(amplification <= f64::from(tiers), "{amplification} > {tiers}");
    let everything = (0..files.len()).collect();
    let runs = runs(&files, everything, &limits()).len();
    assert!(runs <= 3 * tiers as usize, "{runs} runs, {tiers} tiers");
}
