//! Files that say much with few bytes take no more memory than the limits allow (among them the
//! message sizes of ORC-2187 and ORC-2193).
//!
//! One test: the allocator counts for the whole process.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use stoa_error::{ErrorKind, Result};
use stoa_orc::proto::{
    BloomFilter, BloomFilterIndex, ColumnStatistics, EncodingKind, Footer, PostScript, RowIndex,
    RowIndexEntry, StreamKind, StripeInformation, StripeStatistics, Type, TypeKind,
    UserMetadataItem,
};
use stoa_orc::{
    ColumnRef, CompareOp, CompressionKind, Decoder, Limits, Literal, Predicate, ReadOptions, Step,
    TailDecoder, TailStep,
};
use support::build::{FileBuilder, compressed_chunk, encoding, leaf, parent};
use support::memory::{Counting, peak_bytes};

use EncodingKind::{Dictionary, Direct, DirectV2};
use StreamKind::{BloomFilterUtf8, Data, DictionaryData, Length, Present};

#[global_allocator]
static COUNTING: Counting = Counting;

const MIB: usize = 1 << 20;

/// The limits of this test.
const LIMITS: Limits =
    Limits { metadata_bytes: 8 * MIB, columns: 1 << 12, stripes: 1 << 12, batch_bytes: 16 * MIB };

/// What reading may take: the limits several times over (inflated, decoded, as arrays), and nothing
/// that depends on what the file says.
const PEAK_BYTES_MAX: usize = 96 * MIB;

/// Reads at most a hundred batches.
fn read(file: &Bytes) -> Result<u64> {
    let mut tail = TailDecoder::new(file.len() as u64).with_limits(LIMITS);
    let metadata = match tail.decode(file.clone())? {
        TailStep::Done(metadata) => Arc::new(metadata),
        TailStep::NeedsTail(_) => panic!("all of the file is here"),
    };
    for stripe in 0..metadata.stripes.len().min(100) {
        metadata.stripe_statistics(stripe);
    }
    let last = metadata.types.len() as u32 - 1;
    let (column, value) = (ColumnRef::Id(last), Literal::Int(7));
    let predicate = Predicate::Compare { column, op: CompareOp::Eq, value };
    let options = ReadOptions::default().with_limits(LIMITS).with_predicate(predicate);
    let mut decoder = Decoder::new(metadata, options)?;
    let mut rows = 0;
    for _ in 0..100 {
        match decoder.next()? {
            Step::NeedsData(ranges) => {
                for range in ranges {
                    let bytes = file.slice(range.start as usize..range.end as usize);
                    decoder.push(range.start, bytes);
                }
            }
            Step::Batch(batch) => rows += batch.num_rows() as u64,
            Step::Finished => break,
        }
    }
    Ok(rows)
}

/// A chunk that inflates to `content`.
fn zstd(content: &[u8]) -> Vec<u8> {
    compressed_chunk(&zstd::bulk::compress(content, 3).unwrap())
}

/// A file of nothing but this footer, compressed.
fn only_footer(footer: &[u8], metadata: &[u8]) -> Bytes {
    let section = |content: &[u8]| content.chunks(4 * MIB).flat_map(zstd).collect::<Vec<_>>();
    let (footer, metadata) = (section(footer), section(metadata));
    let postscript = PostScript {
        footer_length: Some(footer.len() as u64),
        metadata_length: Some(metadata.len() as u64),
        compression: Some(CompressionKind::Zstd.number()),
        compression_block_size: Some(4 * MIB as u64),
        magic: Some("ORC".to_owned()),
        ..PostScript::default()
    };
    let postscript = postscript.encode_to_vec();
    let length = [postscript.len() as u8];
    Bytes::from([&metadata[..], &footer, &postscript, &length].concat())
}

/// A column `a` of a type with these streams in a zstd file, and `b`, an INT with a row index.
fn columns(
    rows: u64,
    types: Vec<Type>,
    kind: EncodingKind,
    entries: u32,
    streams: &[(u32, StreamKind, &[u8])],
) -> Bytes {
    let mut builder = FileBuilder::new(types, CompressionKind::Zstd);
    builder.postscript.compression_block_size = Some(4 * MIB as u64);
    builder.footer.row_index_stride = Some(1000);
    let encodings = builder.footer.types.iter().map(|_| encoding(kind, entries)).collect();
    builder.stripe(rows, encodings, streams);
    builder.finish()
}

fn one(kind: TypeKind) -> Vec<Type> {
    vec![parent(TypeKind::Struct, &[1]), leaf(kind)]
}

/// Name, file, what reading comes to.
fn files() -> Vec<(&'static str, Bytes, Option<ErrorKind>)> {
    let exhausted = Some(ErrorKind::Exhausted);
    let corrupt = Some(ErrorKind::Corrupt);
    let types = one(TypeKind::Int);
    let footer = |change: fn(&mut Footer)| {
        let mut footer = Footer { types: one(TypeKind::Int), ..Footer::default() };
        change(&mut footer);
        only_footer(&footer.encode_to_vec(), &[])
    };
    let statistics = StripeStatistics { col_stats: vec![ColumnStatistics::default(); 2 * MIB] };
    let statistics = stoa_orc::proto::Metadata { stripe_stats: vec![statistics] };
    let few_types = Footer { types: types.clone(), ..Footer::default() };
    // Zeros: runs of 130 bytes of zeros in byte RLE, of 3 values 0 in RLE version 1.
    let zeros = vec![0u8; 4 * MIB];
    // Runs of 130 bytes of ones: all rows present, all bits set.
    let ones = [127u8, 255].repeat(2 * MIB);
    // Runs of 512 values of 0 in RLE version 2: width 1, delta 0.
    let many_zeros = [0xc1u8, 0xff, 0, 0].repeat(MIB);
    // The same of 2³⁰.
    let large = [0xc1u8, 0xff, 0x80, 0x80, 0x80, 0x80, 0x04, 0].repeat(MIB / 2);
    let (zeros, ones) = (zstd(&zeros), zstd(&ones));
    let (many_zeros, large) = (zstd(&many_zeros), zstd(&large));
    let wide = (0..2000u32).map(|_| leaf(TypeKind::String));
    let wide: Vec<_> = std::iter::once(parent(TypeKind::Struct, &(1..=2000).collect::<Vec<_>>()))
        .chain(wide)
        .collect();
    let wide_streams: Vec<_> = (1..=2000u32)
        .flat_map(|column| {
            [(column, Data, zeros.as_slice()), (column, Length, many_zeros.as_slice())]
        })
        .collect();
    let index = RowIndex { entry: vec![RowIndexEntry::default(); 2 * MIB] }.encode_to_vec();
    let positions = RowIndexEntry { positions: vec![1; 4 * MIB - 100], statistics: None };
    let positions = RowIndex { entry: vec![positions] }.encode_to_vec();
    let bloom = BloomFilterIndex { bloom_filter: vec![BloomFilter::default(); 2 * MIB] };
    let (index, positions) = (zstd(&index), zstd(&positions));
    let bloom = zstd(&bloom.encode_to_vec());
    let lists = vec![
        parent(TypeKind::Struct, &[1]),
        parent(TypeKind::List, &[2]),
        parent(TypeKind::List, &[3]),
        leaf(TypeKind::Boolean),
    ];
    let empty_structs = vec![
        parent(TypeKind::Struct, &[1]),
        parent(TypeKind::List, &[2]),
        parent(TypeKind::Struct, &[]),
    ];
    vec![
        ("types", footer(|f| f.types = vec![Type::default(); 2 * MIB]), exhausted),
        ("children", footer(|f| f.types[0].subtypes = vec![1; 7 * MIB]), exhausted),
        (
            "field names",
            footer(|f| f.types[0].field_names = vec![String::new(); 3 * MIB]),
            exhausted,
        ),
        ("stripes", footer(|f| f.stripes = vec![StripeInformation::default(); 2 * MIB]), exhausted),
        ("keys", footer(|f| f.metadata = vec![UserMetadataItem::default(); 2 * MIB]), exhausted),
        (
            "statistics of stripes are only a help",
            only_footer(&few_types.encode_to_vec(), &statistics.encode_to_vec()),
            None,
        ),
        ("a footer", only_footer(&vec![0; 64 * MIB], &[]), exhausted),
        (
            "rows without end",
            {
                let mut builder = FileBuilder::new(types.clone(), CompressionKind::None);
                builder.footer.row_index_stride = Some(1);
                builder.stripe(1 << 60, vec![encoding(Direct, 0); 2], &[(1, Data, &[0, 0, 0])]);
                builder.finish()
            },
            corrupt,
        ),
        ("buffers of many columns", columns(10, wide, Direct, 0, &wide_streams), exhausted),
        (
            "a dictionary",
            columns(
                10,
                one(TypeKind::String),
                EncodingKind::DictionaryV2,
                u32::MAX,
                &[(1, Data, &many_zeros), (1, Length, &many_zeros), (1, DictionaryData, &zeros)],
            ),
            exhausted,
        ),
        (
            "entries of a dictionary",
            columns(
                10,
                one(TypeKind::String),
                EncodingKind::DictionaryV2,
                1,
                &[(1, Data, &many_zeros), (1, Length, &large), (1, DictionaryData, &zeros)],
            ),
            exhausted,
        ),
        (
            "keys of a dictionary with one long entry",
            columns(
                8000,
                one(TypeKind::String),
                Dictionary,
                1,
                &[
                    (1, Data, &zeros),
                    // One literal: 3 MiB.
                    (1, Length, &zstd(&[0xff, 0x80, 0x80, 0xc0, 0x01])),
                    (1, DictionaryData, &zeros),
                ],
            ),
            exhausted,
        ),
        (
            "strings",
            columns(
                8000,
                one(TypeKind::String),
                DirectV2,
                0,
                &[(1, Data, &zeros), (1, Length, &large)],
            ),
            exhausted,
        ),
        (
            "lists of lists",
            columns(
                8000,
                lists,
                DirectV2,
                0,
                &[(1, Length, &large), (2, Length, &large), (3, Data, &ones)],
            ),
            exhausted,
        ),
        (
            "lists of structs without fields",
            columns(8000, empty_structs, DirectV2, 0, &[(1, Length, &large), (2, Present, &ones)]),
            exhausted,
        ),
        (
            "entries of a row index",
            columns(
                8000,
                types.clone(),
                Direct,
                0,
                &[(1, StreamKind::RowIndex, &index), (1, Data, &zeros)],
            ),
            exhausted,
        ),
        (
            "positions of a row index",
            columns(
                8000,
                types.clone(),
                Direct,
                0,
                &[(1, StreamKind::RowIndex, &positions), (1, Data, &zeros)],
            ),
            exhausted,
        ),
        (
            "bloom filters are only a help",
            columns(
                8000,
                types,
                DirectV2,
                0,
                &[(1, BloomFilterUtf8, &bloom), (1, Data, &many_zeros)],
            ),
            None,
        ),
    ]
}

#[test]
fn memory_is_bounded_by_the_limits() {
    for (name, file, kind) in files() {
        let (result, peak) = peak_bytes(|| read(&file));
        let found = result.as_ref().err().map(stoa_error::Error::kind);
        assert_eq!(found, kind, "{name}: {result:?}");
        assert!(peak < PEAK_BYTES_MAX, "{name}: {} MiB", peak / MIB);
        println!("{name}: {} bytes of file, {} KiB of memory", file.len(), peak >> 10);
    }
}
