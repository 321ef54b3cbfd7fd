//! Reading any row groups gives the same rows as a slice of the whole read; pruning never drops a
//! row that matches.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod support;

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use stoa_orc::{Compression, DictionaryChoice, Projection, ReadOptions, WriterOptions};
use support::generate::{self, Random};

/// Reads random row groups of each stripe and compares them with the whole read.
fn check_subsets(name: &str, file: &Bytes, random: &mut Random, tries: usize) {
    let metadata = support::metadata(file).unwrap();
    let stride = metadata.row_index_stride as usize;
    let Some(whole) = support::read(file, ReadOptions::default()).unwrap().concat() else { return };
    if stride == 0 {
        return;
    }
    for _ in 0..tries {
        let mut options = ReadOptions::default().with_batch_rows(1 + random.below(3000) as usize);
        let mut expected: Vec<RecordBatch> = Vec::new();
        let sparse = 1 + random.below(4);
        for (stripe, info) in metadata.stripes.iter().enumerate() {
            let groups = (info.rows as usize).div_ceil(stride);
            let wanted: BTreeSet<usize> =
                (0..groups).filter(|_| random.below(sparse) == 0).collect();
            for group in &wanted {
                let start = info.first_row as usize + group * stride;
                let end = (start + stride).min((info.first_row + info.rows) as usize);
                expected.push(whole.slice(start, end - start));
            }
            options = options.with_row_groups(stripe, wanted);
        }
        let columns = metadata.types.types()[0].children.clone();
        let subset: Vec<usize> = (0..columns.len()).filter(|_| random.below(2) == 0).collect();
        let is_struct = !columns.is_empty();
        if is_struct {
            let ids = subset.iter().map(|i| columns[*i]).collect();
            options = options.with_projection(Projection::Columns(ids));
            expected = expected.iter().map(|batch| batch.project(&subset).unwrap()).collect();
        }
        let read = match support::read(file, options.clone()) {
            Ok(read) => read,
            // Files of some writers have no usable index.
            Err(error) if error.message().contains("row index does not say") => return,
            Err(error) => panic!("{name}: {error:?} reading {:?}", options.row_groups),
        };
        let rows: usize = expected.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(read.rows(), rows, "{name}: rows of {:?}", options.row_groups);
        if rows > 0 && !subset.is_empty() {
            let expected = concat_batches(&expected[0].schema(), &expected).unwrap();
            let read = read.concat().unwrap();
            for (column, (a, b)) in read.columns().iter().zip(expected.columns()).enumerate() {
                let field = &read.schema().fields()[column].clone();
                assert!(a == b, "{name}: {field} differs in {:?}", options.row_groups);
            }
        }
    }
}

#[test]
fn row_groups_of_the_corpus_are_slices_of_the_whole() {
    let mut random = Random(1);
    for (name, file, _) in support::corpus() {
        let tries = if file.len() < 200_000 && !name.starts_with("demo") { 12 } else { 1 };
        check_subsets(&name, &file, &mut random, tries);
    }
}

fn variants() -> Vec<(&'static str, WriterOptions)> {
    let options = WriterOptions::default;
    vec![
        ("default", options().with_row_index_stride(1000)),
        (
            "plain",
            options()
                .with_compression(Compression::None)
                .with_row_index_stride(700)
                .with_dictionary(DictionaryChoice::Never),
        ),
        (
            "tiny chunks",
            options()
                .with_compression(Compression::Snappy)
                .with_compression_block_bytes(1024)
                .with_row_index_stride(500)
                .with_stripe_rows(3000),
        ),
        (
            "zlib",
            options()
                .with_compression(Compression::Zlib { level: 3 })
                .with_row_index_stride(1500)
                .with_dictionary(DictionaryChoice::Always),
        ),
        (
            "lz4",
            options()
                .with_compression(Compression::Lz4)
                .with_compression_block_bytes(10_000)
                .with_row_index_stride(2000)
                .with_stripe_rows(4000),
        ),
        ("no index", options().with_row_index_stride(0)),
    ]
}

#[test]
fn all_types_come_back() {
    for seed in 0..12 {
        let batch = generate::batch(seed, 5000);
        for (name, options) in variants() {
            let file = support::write(&[batch.slice(0, 1234), batch.slice(1234, 3766)], options);
            let read = support::read(&file, ReadOptions::default()).unwrap().concat().unwrap();
            for (column, (a, b)) in read.columns().iter().zip(batch.columns()).enumerate() {
                let field = batch.schema().fields()[column].clone();
                assert!(a == b, "{name}, seed {seed}: {field} differs");
            }
        }
    }
}

#[test]
fn row_groups_of_our_files_are_slices_of_the_whole() {
    let mut random = Random(2);
    for seed in 100..106 {
        let batch = generate::batch(seed, 7000);
        for (name, options) in variants() {
            let file = support::write(std::slice::from_ref(&batch), options);
            check_subsets(&format!("{name}, seed {seed}"), &file, &mut random, 6);
        }
    }
}
