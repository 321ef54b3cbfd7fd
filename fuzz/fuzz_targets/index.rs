//! Row indexes, bloom filters and the compact copy of the indexes: whatever they say, reading gives
//! rows or an error.
//!
//! ```text
//! tree u8 · codec u8 · flags u8 · stride u8 · rows u16 · wanted groups u8
//! · per column: streams as in `streams` · row index · bloom filter
//! ```
#![no_main]

use std::collections::BTreeSet;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use prost::Message;
use stoa_fuzz::build::{FileBuilder, encoding, original_chunk};
use stoa_fuzz::input::Input;
use stoa_fuzz::read;
use stoa_fuzz::streams::{ENCODINGS, KINDS, trees};
use stoa_orc::proto::{
    BloomFilter, BloomFilterIndex, ColumnStatistics, IntegerStatistics, RowIndex, RowIndexEntry,
    StreamKind, StripeFooter, StripeInformation, UserMetadataItem,
};
use stoa_orc::{ColumnRef, CompareOp, CompressionKind, Literal, Predicate, ReadOptions};

/// The key of the compact copy.
const COPY_KEY: &str = "stoa.compact-index";

fuzz_target!(init: stoa_fuzz::start(), |bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let trees = trees();
    let tree = &trees[input.below(trees.len())];
    let framed = input.flag();
    let flags = input.byte();
    let (stride, rows) = (input.byte(), input.word() & 0xfff);
    let wanted = input.byte();
    let codec = if framed { CompressionKind::Zstd } else { CompressionKind::None };
    let mut builder = FileBuilder::new(tree.clone(), codec);
    builder.postscript.compression_block_size = Some([256 << 10, 64][usize::from(flags >> 7)]);
    builder.footer.row_index_stride = Some(u32::from(stride));
    builder.footer.writer = Some(1);
    let (mut encodings, mut data, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
    for column in 0..tree.len() as u32 {
        encodings.push(encoding(ENCODINGS[input.below(4)], u32::from(input.byte())));
        let mask = input.byte();
        for (_, kind) in KINDS.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1) {
            let piece = 1 + usize::from(mask >> 5) * 16;
            data.push((column, *kind, frame(framed, input.block(), piece)));
        }
        indexes.push(row_index(&mut input));
    }
    let bloom = bloom(&mut input).encode_to_vec();
    let last = tree.len() as u32 - 1;
    let mut streams: Vec<(u32, StreamKind, Vec<u8>)> = Vec::new();
    for (column, index) in indexes.iter().enumerate() {
        streams.push((column as u32, StreamKind::RowIndex, frame(framed, index, 1 << 20)));
    }
    streams.push((last, StreamKind::BloomFilterUtf8, frame(framed, &bloom, 1 << 20)));
    streams.extend(data);
    let streams: Vec<_> =
        streams.iter().map(|(c, kind, bytes)| (*c, *kind, bytes.as_slice())).collect();
    builder.stripe(u64::from(rows), encodings.clone(), &streams);
    if flags & 1 == 1 {
        let footer = StripeFooter {
            streams: streams
                .iter()
                .map(|(column, kind, bytes)| stream(*column, *kind, bytes.len()))
                .collect(),
            columns: encodings,
            ..StripeFooter::default()
        };
        let value = copy(&builder.footer.stripes[0], &footer, &indexes, flags & 2 == 2);
        let item = UserMetadataItem { name: Some(COPY_KEY.to_owned()), value: Some(value.into()) };
        builder.footer.metadata.push(item);
    }
    let file = builder.finish();
    let metadata = read::tail(&file).expect("the tail is not damaged");
    let column = ColumnRef::Id(last);
    let predicate = match flags >> 2 & 3 {
        0 => Predicate::Compare { column, op: CompareOp::Eq, value: Literal::Int(7) },
        1 => Predicate::IsNull(column),
        2 => Predicate::In { column, values: vec![Literal::Int(1), Literal::Int(2)] },
        _ => Predicate::Compare { column, op: CompareOp::Gt, value: Literal::Int(100) },
    };
    let mut options = ReadOptions::default()
        .with_limits(read::limits())
        .with_batch_rows(500)
        .with_align_to_row_groups(flags & 16 == 16);
    if flags & 32 == 32 {
        options = options.with_predicate(predicate);
    }
    if flags & 64 == 64 {
        let groups: BTreeSet<usize> = (0..8).filter(|group| wanted >> group & 1 == 1).collect();
        options = options.with_row_groups(0, groups);
    }
    let _ = read::rows(&file, &metadata, options, read::BATCHES_MAX);
});

/// Content as chunks of `piece` bytes each, or as it is.
fn frame(framed: bool, content: &[u8], piece: usize) -> Vec<u8> {
    if !framed {
        return content.to_vec();
    }
    content.chunks(piece).flat_map(original_chunk).collect()
}

/// A row index: bytes as they are, or entries of a few numbers each.
fn row_index(input: &mut Input) -> Vec<u8> {
    let kind = input.byte();
    if kind & 3 == 3 {
        return input.block().to_vec();
    }
    let entries = (0..kind >> 4).map(|_| {
        let numbers = input.byte() & 15;
        let positions = (0..numbers).map(|_| input.number()).collect();
        let range = (input.byte(), input.byte());
        let int_statistics = Some(IntegerStatistics {
            minimum: Some(i64::from(range.0)),
            maximum: Some(i64::from(range.1)),
            sum: None,
        });
        let statistics = ColumnStatistics {
            number_of_values: Some(1),
            int_statistics,
            has_null: Some(range.0 & 1 == 1),
            ..ColumnStatistics::default()
        };
        RowIndexEntry { positions, statistics: Some(statistics) }
    });
    RowIndex { entry: entries.collect() }.encode_to_vec()
}

fn bloom(input: &mut Input) -> BloomFilterIndex {
    let filters = (0..input.byte() & 7).map(|_| BloomFilter {
        num_hash_functions: Some(u32::from(input.byte())),
        bitset: Vec::new(),
        utf8bitset: Some(input.block().to_vec()),
    });
    BloomFilterIndex { bloom_filter: filters.collect() }
}

fn stream(column: u32, kind: StreamKind, length: usize) -> stoa_orc::proto::Stream {
    let (kind, length) = (Some(kind as i32), Some(length as u64));
    stoa_orc::proto::Stream { kind, column: Some(column), length }
}

/// The value of the copy's key; `damaged`: without the last byte of its content.
fn copy(
    info: &StripeInformation,
    footer: &StripeFooter,
    indexes: &[Vec<u8>],
    damaged: bool,
) -> Bytes {
    let mut content = Vec::new();
    let place = [
        info.offset(),
        info.index_length(),
        info.data_length(),
        info.footer_length(),
        info.number_of_rows(),
    ];
    place.iter().for_each(|number| prost::encoding::encode_varint(*number, &mut content));
    let footer = footer.encode_to_vec();
    for message in std::iter::once(&footer).chain(indexes) {
        prost::encoding::encode_varint(message.len() as u64, &mut content);
        content.extend_from_slice(message);
    }
    if damaged {
        content.pop();
    }
    let mut value = vec![1];
    value.extend_from_slice(&(content.len() as u32).to_le_bytes());
    // A Zstandard frame of one raw block, as large as it says.
    value.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000]);
    value.extend_from_slice(&(content.len() as u32).to_le_bytes());
    value.extend_from_slice(&((content.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    value.extend_from_slice(&content);
    Bytes::from(value)
}
