//! Whatever the options, a written batch reads back, whole and by single row groups.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;

use proptest::prelude::*;
use stoa_orc::{Compression, DictionaryChoice, ReadOptions, WriterOptions};
use support::generate;

fn options() -> impl Strategy<Value = WriterOptions> {
    let compression = prop_oneof![
        Just(Compression::None),
        Just(Compression::Snappy),
        Just(Compression::Lz4),
        (0u32..=9).prop_map(|level| Compression::Zlib { level }),
        (1i32..=6).prop_map(|level| Compression::Zstd { level }),
    ];
    let dictionary = prop_oneof![
        Just(DictionaryChoice::Auto),
        Just(DictionaryChoice::Always),
        Just(DictionaryChoice::Never),
    ];
    let block = prop_oneof![1024usize..5000, Just(256 << 10)];
    let stride = prop_oneof![Just(0u32), 1u32..40, 100u32..4000];
    let stripe_rows = prop_oneof![500u64..3000, Just(u64::MAX)];
    (compression, dictionary, block, stride, stripe_rows, any::<bool>()).prop_map(
        |(compression, dictionary, block, stride, stripe_rows, compact_index)| {
            WriterOptions::default()
                .with_compression(compression)
                .with_dictionary(dictionary)
                .with_compression_block_bytes(block)
                .with_row_index_stride(stride)
                .with_stripe_rows(stripe_rows)
                .with_compact_index(compact_index)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn batches_survive(
        options in options(),
        seed in 1000u64..1_000_000,
        rows in 1usize..3000,
        cuts in prop::collection::vec(1usize..1500, 1..4),
        wanted in any::<prop::sample::Index>(),
    ) {
        let batch = generate::batch(seed, rows);
        let (mut parts, mut from) = (Vec::new(), 0);
        for cut in cuts.into_iter().cycle() {
            if from == rows {
                break;
            }
            let length = cut.min(rows - from);
            parts.push(batch.slice(from, length));
            from += length;
        }
        let stride = options.row_index_stride as usize;
        let file = support::write(&parts, options);
        let read = support::read(&file, ReadOptions::default()).unwrap().concat().unwrap();
        for (column, field) in batch.schema().fields().iter().enumerate() {
            prop_assert!(read.column(column) == batch.column(column), "{} differs", field);
        }
        if stride == 0 {
            return Ok(());
        }
        let metadata = support::metadata(&file).unwrap();
        let stripe = wanted.index(metadata.stripes.len());
        let info = metadata.stripes[stripe];
        let group = wanted.index((info.rows as usize).div_ceil(stride));
        let mut options = ReadOptions::default().with_batch_rows(rows);
        for other in 0..metadata.stripes.len() {
            let groups = if other == stripe { BTreeSet::from([group]) } else { BTreeSet::new() };
            options = options.with_row_groups(other, groups);
        }
        let read = support::read(&file, options).unwrap().concat().unwrap();
        let length = stride.min(info.rows as usize - group * stride);
        let expected = batch.slice(info.first_row as usize + group * stride, length);
        for (column, field) in batch.schema().fields().iter().enumerate() {
            prop_assert!(read.column(column) == expected.column(column), "{} differs", field);
        }
    }
}
