//! One flipped bit anywhere in a file gives an error or the right rows, never other rows.
//!
//! `STOA_FLIPPED_BITS` says how many places are tried; 1,000 by default.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use stoa_error::{ErrorKind, Result};
use stoa_orc::{
    ColumnRef, CompareOp, Compression, Decoder, Literal, Predicate, Projection, ReadOptions,
    TimestampOutput, WriterOptions,
};
use support::generate::{self, Random};

const ROWS: usize = 3000;
const STRIDE: u32 = 250;
/// Column ids of `generate::schema`.
const LONG: u32 = 5;
const STRING: u32 = 8;

fn places() -> u64 {
    #[allow(clippy::disallowed_methods)] // A test has no settings.
    let said = std::env::var("STOA_FLIPPED_BITS").ok();
    said.map_or(1000, |said| said.parse().unwrap())
}

fn options(compression: Compression) -> WriterOptions {
    WriterOptions::default()
        .with_compression(compression)
        .with_compression_block_bytes(8 << 10)
        .with_row_index_stride(STRIDE)
        .with_stripe_rows(ROWS as u64 / 2)
        .with_bloom_column("long")
}

/// The ways to read a file that ask for different bytes.
fn ways() -> Vec<ReadOptions> {
    let base = || ReadOptions::default().with_timestamps(TimestampOutput::Micros);
    let column = ColumnRef::Id(LONG);
    let predicate = Predicate::Compare { column, op: CompareOp::Gt, value: Literal::Int(0) };
    vec![
        base(),
        base().with_predicate(predicate.clone()),
        base().with_row_groups(0, BTreeSet::from([1, 4])).with_row_groups(1, BTreeSet::from([2])),
        base()
            .with_projection(Projection::Columns(vec![STRING, LONG]))
            .with_predicate(predicate)
            .with_row_groups(1, BTreeSet::from([5]))
            .with_stripes(1..2),
    ]
}

fn rows(file: &Bytes, options: ReadOptions) -> Result<Vec<RecordBatch>> {
    support::read(file, options).map(|read| read.batches)
}

/// What came of the places tried.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    errors: u64,
    right: u64,
    wrong: u64,
}

fn flip(file: &Bytes, places: u64, random: &mut Random) -> Tally {
    let ways = ways();
    let right: Vec<_> = ways.iter().map(|way| rows(file, way.clone()).unwrap()).collect();
    assert!(right[2].iter().map(RecordBatch::num_rows).sum::<usize>() == 3 * STRIDE as usize);
    let mut tally = Tally::default();
    for place in 0..places {
        // Each fourth one is in the tail, where most of what is read at all is.
        let bits = file.len() as u64 * 8;
        let bit =
            if place % 4 == 0 { bits - 1 - random.below(bits / 8) } else { random.below(bits) };
        let mut bytes = file.to_vec();
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        let damaged = Bytes::from(bytes);
        let way = (place % ways.len() as u64) as usize;
        match rows(&damaged, ways[way].clone()) {
            Err(error) => {
                let kinds = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::Exhausted];
                assert!(kinds.contains(&error.kind()), "{error}");
                tally.errors += 1;
            }
            Ok(found) if found == right[way] => tally.right += 1,
            Ok(_) => tally.wrong += 1,
        }
    }
    tally
}

const CODECS: [Compression; 5] = [
    Compression::Zstd { level: 1 },
    Compression::None,
    Compression::Zlib { level: 1 },
    Compression::Snappy,
    Compression::Lz4,
];

#[test]
fn no_flipped_bit_gives_other_rows() {
    let places = places().div_ceil(CODECS.len() as u64);
    for (seed, codec) in (0u64..).zip(CODECS) {
        let batch = generate::batch(seed, ROWS);
        let file = support::write(std::slice::from_ref(&batch), options(codec));
        let tally = flip(&file, places, &mut Random(seed));
        assert_eq!(tally.wrong, 0, "{codec:?}: {tally:?}");
        assert!(tally.errors > places / 4, "{codec:?}: {tally:?}");
    }
}

#[test]
fn every_bit_of_the_tail_counts() {
    // Enough columns and keys for a tail of more than one kind of content.
    let batch = generate::batch(9, 40);
    for codec in [Compression::Zstd { level: 1 }, Compression::None] {
        let file = support::write(std::slice::from_ref(&batch), options(codec));
        let right = rows(&file, ReadOptions::default().with_timestamps(TimestampOutput::Micros));
        let right = right.unwrap();
        // Statistics and footer are under one checksum: some of their bytes will do.
        let from = file.len() - 400;
        for bit in from * 8..file.len() * 8 {
            let mut bytes = file.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let options = ReadOptions::default().with_timestamps(TimestampOutput::Micros);
            match rows(&Bytes::from(bytes), options) {
                Err(_) => {}
                Ok(found) => assert!(found == right, "{codec:?}: bit {bit}"),
            }
            // The key of the checksum or the magic: without them there would be no checksum.
            let mut bytes = file.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(support::metadata(&Bytes::from(bytes)).is_err(), "{codec:?}: bit {bit}");
        }
    }
}

#[test]
fn the_error_names_stripe_column_and_bytes() {
    let batch = generate::batch(3, ROWS);
    let file = support::write(std::slice::from_ref(&batch), options(Compression::None));
    let metadata = support::metadata(&file).unwrap();
    let stripe = metadata.stripes[1];
    let mut bytes = file.to_vec();
    bytes[(stripe.offset + stripe.index_bytes + stripe.data_bytes / 2) as usize] ^= 1;
    let file = Bytes::from(bytes);
    let error = rows(&file, ReadOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Corrupt, "XX001"));
    let message = error.to_string();
    for part in ["stripe 1: column ", " stream: bytes ", " of the file are not those written"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn files_without_checksums_are_read_as_before() {
    let batch = generate::batch(4, 500);
    let with = options(Compression::default());
    let without = with.clone().with_checksums(false);
    let files = [with, without].map(|o| support::write(std::slice::from_ref(&batch), o));
    let [sealed, plain] = files.map(|file| (support::metadata(&file).unwrap(), file));
    assert!(sealed.0.checksums().is_some() && plain.0.checksums().is_none());
    assert!(sealed.0.user_metadata.is_empty(), "the key is not one of the user's");
    let read = |file| rows(file, ReadOptions::default().with_timestamps(TimestampOutput::Micros));
    assert!(read(&sealed.1).unwrap() == read(&plain.1).unwrap());
}

#[test]
fn bytes_in_any_parts_are_put_together() {
    let batch = generate::batch(5, ROWS);
    let file = support::write(std::slice::from_ref(&batch), options(Compression::default()));
    let right = rows(&file, ReadOptions::default()).unwrap();
    let metadata = Arc::new(support::metadata(&file).unwrap());
    let mut decoder = Decoder::new(metadata, ReadOptions::default()).unwrap();
    let mut found = Vec::new();
    loop {
        match decoder.next().unwrap() {
            stoa_orc::Step::NeedsData(ranges) => {
                for range in ranges {
                    for at in (range.start..range.end).step_by(5000) {
                        let part = at as usize..range.end.min(at + 5000) as usize;
                        decoder.push(at, file.slice(part));
                    }
                }
            }
            stoa_orc::Step::Batch(batch) => found.push(batch),
            stoa_orc::Step::Finished => break,
        }
    }
    assert!(found == right);
}

#[test]
fn a_footer_by_another_tool_has_no_checksums() {
    let batch = generate::batch(6, 200);
    let file = support::write(std::slice::from_ref(&batch), options(Compression::None));
    // The key stayed, the postscript is new.
    let rewritten = |writer: u32| {
        support::build::edit_tail(&file, |tail| {
            tail.footer.writer = Some(writer);
            tail.footer.metadata.push(stoa_orc::proto::UserMetadataItem {
                name: Some("stoa.checksums".to_owned()),
                value: Some(vec![1, 14, 0, 0, 0, 0].into()),
            });
        })
    };
    let (java, ours) = (0, 1);
    assert!(support::metadata(&rewritten(java)).unwrap().checksums().is_none());
    let error = support::metadata(&rewritten(ours)).unwrap_err();
    assert!(error.message().contains("the checksum in the postscript is damaged"), "{error}");
}
