//! What was hardened in ORC Java and C++ in 2026 (ORC-2161 … ORC-2200), issue by issue: bytes that
//! made other readers crash, allocate or read out of bounds give an error here.
#![allow(clippy::unwrap_used)]

mod support;

use bytes::Bytes;
use stoa_error::{Error, ErrorKind};
use stoa_orc::proto::{EncodingKind, StreamKind, StripeInformation, TypeKind};
use stoa_orc::{CompressionKind, ReadOptions};
use support::build::{
    self, FileBuilder, bits, byte_literals, compressed_chunk, encoding, leaf, parent, unsigned_v1,
};

use EncodingKind::{Dictionary, Direct};
use StreamKind::{Data, DictionaryData, Length, Present};

/// The error that reading the file comes to.
fn error_of(file: &Bytes) -> Error {
    match support::read(file, ReadOptions::default()) {
        Ok(read) => panic!("{} rows are read", read.rows()),
        Err(error) => error,
    }
}

fn check(file: &Bytes, kind: ErrorKind, parts: &[&str]) {
    let error = error_of(file);
    assert_eq!(error.kind(), kind, "{error:?}");
    for part in parts {
        assert!(error.message().contains(part), "{part:?} is not in {error:?}");
    }
}

/// A file of one STRING column `a` with these streams.
fn strings(rows: u64, kind: EncodingKind, entries: u32, streams: &[(StreamKind, &[u8])]) -> Bytes {
    let types = vec![parent(TypeKind::Struct, &[1]), leaf(TypeKind::String)];
    let mut builder = FileBuilder::new(types, CompressionKind::None);
    let streams: Vec<_> = streams.iter().map(|(kind, bytes)| (1, *kind, *bytes)).collect();
    builder.stripe(rows, vec![encoding(Direct, 0), encoding(kind, entries)], &streams);
    builder.finish()
}

/// A small file that is not damaged, not compressed.
fn sound() -> Bytes {
    let lengths = unsigned_v1(&[1, 2]);
    let file = strings(2, Direct, 0, &[(Data, b"abb"), (Length, &lengths)]);
    assert_eq!(support::read(&file, ReadOptions::default()).unwrap().rows(), 2);
    file
}

/// ORC-2161 (C++), ORC-2199 (Java): tags of a union beyond its variants.
#[test]
fn union_tags_are_below_the_number_of_variants() {
    let types = vec![
        parent(TypeKind::Struct, &[1]),
        parent(TypeKind::Union, &[2, 3]),
        leaf(TypeKind::Byte),
        leaf(TypeKind::Boolean),
    ];
    for (tag, is_sound) in [(1, true), (2, false), (127, false), (128, false), (255, false)] {
        let mut builder = FileBuilder::new(types.clone(), CompressionKind::None);
        let tags = byte_literals(&[0, tag, 0]);
        let (values, flags) = (byte_literals(&[7, 8]), bits(&[true]));
        let streams: [(u32, StreamKind, &[u8]); 3] =
            [(1, Data, &tags), (2, Data, &values), (3, Data, &flags)];
        builder.stripe(3, vec![encoding(Direct, 0); 4], &streams);
        let file = builder.finish();
        if is_sound {
            assert_eq!(support::read(&file, ReadOptions::default()).unwrap().rows(), 3);
        } else {
            let place = format!("column 1 (a): tag {tag} of a union of 2 variants");
            check(&file, ErrorKind::Corrupt, &["stripe 0", &place]);
        }
    }
}

/// ORC-2165 (C++): LZO input that ends within its end marker, or anywhere else.
#[test]
fn lzo_input_may_end_anywhere() {
    let types = vec![parent(TypeKind::Struct, &[1]), leaf(TypeKind::Byte)];
    let content = byte_literals(&[9; 100]);
    let compressed = lzokay_native::compress(&content).unwrap();
    for length in 0..=compressed.len() {
        let mut builder = FileBuilder::new(types.clone(), CompressionKind::Lzo);
        let chunk = compressed_chunk(&compressed[..length]);
        builder.stripe(100, vec![encoding(Direct, 0); 2], &[(1, Data, &chunk)]);
        let file = builder.finish();
        if length == compressed.len() {
            assert_eq!(support::read(&file, ReadOptions::default()).unwrap().rows(), 100);
        } else {
            check(&file, ErrorKind::Corrupt, &["column 1 (a): DATA stream", "LZO chunk"]);
        }
    }
}

/// ORC-2167 (C++), ORC-2191 (Java): lengths in the postscript that overflow when they are added.
#[test]
fn lengths_of_the_tail_do_not_overflow() {
    for length in [1 << 31, 1 << 32, i64::MAX as u64, u64::MAX - 10, u64::MAX] {
        for which in 0..3 {
            let file = build::edit_tail(&sound(), |tail| {
                tail.postscript.footer_length = (which != 1).then_some(length);
                tail.postscript.metadata_length = (which != 0).then_some(length);
            });
            check(&file, ErrorKind::Corrupt, &["file tail: tail of", "in a file of"]);
        }
    }
}

/// ORC-2188: a block size of 0, or one that a chunk header can't say.
#[test]
fn the_block_size_is_checked() {
    // Sections in chunks of one byte: they fit any block size.
    let mut builder = FileBuilder::new(vec![leaf(TypeKind::Byte)], CompressionKind::Zlib);
    builder.postscript.compression_block_size = Some(1);
    let file = builder.finish();
    for block_bytes in [1, 85, (1 << 23) - 1] {
        let file = with_block_size(&file, block_bytes);
        assert_eq!(support::metadata(&file).unwrap().block_bytes as u64, block_bytes);
    }
    for block_bytes in [0, 1 << 23, 1 << 32, u64::MAX] {
        let file = with_block_size(&file, block_bytes);
        check(&file, ErrorKind::Corrupt, &["compression block size of"]);
    }
}

/// The file with another block size in its postscript.
fn with_block_size(file: &Bytes, block_bytes: u64) -> Bytes {
    use prost::Message;
    let (length, rest) = file.split_last().unwrap();
    let (body, postscript) = rest.split_at(rest.len() - usize::from(*length));
    let mut postscript = stoa_orc::proto::PostScript::decode(postscript).unwrap();
    postscript.compression_block_size = Some(block_bytes);
    let postscript = postscript.encode_to_vec();
    let length = [postscript.len() as u8];
    Bytes::from([body, &postscript, &length].concat())
}

/// ORC-2190 (C++; Java has it): a chunk longer than the block size.
#[test]
fn chunks_are_not_longer_than_the_block_size() {
    let types = vec![parent(TypeKind::Struct, &[1]), leaf(TypeKind::Byte)];
    let values = byte_literals(&[5; 128]);
    let mut deflated = flate2::Compress::new(flate2::Compression::none(), false);
    let mut stored = Vec::with_capacity(400);
    deflated.compress_vec(&values, &mut stored, flate2::FlushCompress::Finish).unwrap();
    for chunk in [build::original_chunk(&values), compressed_chunk(&stored)] {
        for (block_bytes, is_sound) in [(200, true), (128, false)] {
            let mut builder = FileBuilder::new(types.clone(), CompressionKind::Zlib);
            builder.postscript.compression_block_size = Some(block_bytes);
            builder.stripe(128, vec![encoding(Direct, 0); 2], &[(1, Data, &chunk)]);
            let file = builder.finish();
            match is_sound {
                true => {
                    let read = support::read(&file, ReadOptions::default()).unwrap();
                    assert_eq!(read.rows(), 128);
                }
                false => check(&file, ErrorKind::Corrupt, &["DATA stream", "block size is 128"]),
            }
        }
    }
}

/// ORC-2192 (C++; Java has it): lengths of strings that are negative as signed numbers, or that
/// overflow when they are added.
#[test]
fn lengths_of_strings_are_checked() {
    for lengths in [&[u64::MAX, 1][..], &[1 << 63, 0], &[1, 1 << 63], &[i64::MAX as u64, 3]] {
        let stream = unsigned_v1(lengths);
        let file = strings(2, Direct, 0, &[(Data, b"abc"), (Length, &stream)]);
        let kind = error_of(&file).kind();
        assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::Exhausted), "{lengths:?}: {kind:?}");
    }
}

/// ORC-2196 (C++): type trees that are none.
#[test]
fn the_type_tree_is_checked() {
    let int = || leaf(TypeKind::Int);
    let bad = [
        // No types at all; a child that does not exist; itself; an ancestor; a child twice.
        vec![],
        vec![parent(TypeKind::Struct, &[7])],
        vec![parent(TypeKind::Struct, &[0])],
        vec![parent(TypeKind::Struct, &[1]), parent(TypeKind::List, &[0])],
        vec![parent(TypeKind::Struct, &[1, 1]), int()],
        // Too few, too many children; types outside of the tree.
        vec![parent(TypeKind::List, &[])],
        vec![parent(TypeKind::Map, &[1]), int()],
        vec![parent(TypeKind::Union, &[])],
        vec![parent(TypeKind::Int, &[1]), int()],
        vec![int(), int()],
    ];
    for types in bad {
        let file = FileBuilder::new(types.clone(), CompressionKind::None).finish();
        let error = support::metadata(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{types:?}");
        assert!(error.message().contains("type tree"), "{error:?}");
    }
    let mut unnamed = parent(TypeKind::Struct, &[1]);
    unnamed.field_names.clear();
    let file = FileBuilder::new(vec![unnamed, int()], CompressionKind::None).finish();
    assert_eq!(support::metadata(&file).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// ORC-2197 (Java; C++ has it): lengths of dictionary entries that are negative.
#[test]
fn lengths_of_dictionary_entries_are_checked() {
    let keys = unsigned_v1(&[0, 1]);
    for lengths in [[u64::MAX, 3], [3, u64::MAX], [1 << 63, 1 << 63], [1 << 31, 0], [5, 5]] {
        let stream = unsigned_v1(&lengths);
        let streams: [(StreamKind, &[u8]); 3] =
            [(Data, &keys), (Length, &stream), (DictionaryData, b"abcdef")];
        let file = strings(2, Dictionary, 2, &streams);
        check(&file, ErrorKind::Corrupt, &["stripe 0", "column 1 (a)"]);
    }
}

/// Beside ORC-2197: keys beyond the dictionary, and streams of a dictionary that are not there.
#[test]
fn dictionaries_without_what_is_asked_of_them() {
    let (keys, lengths) = (unsigned_v1(&[0, 2]), unsigned_v1(&[1, 1]));
    let all: [(StreamKind, &[u8]); 3] =
        [(Data, &keys), (Length, &lengths), (DictionaryData, b"ab")];
    check(
        &strings(2, Dictionary, 2, &all),
        ErrorKind::Corrupt,
        &["index 2 into a dictionary of 2"],
    );
    for without in 0..3 {
        let streams: Vec<_> =
            all.iter().enumerate().filter(|(at, _)| *at != without).map(|(_, s)| *s).collect();
        check(&strings(2, Dictionary, 2, &streams), ErrorKind::Corrupt, &["ends before"]);
    }
}

/// ORC-2198 (Java; C++ has it): streams that reach beyond the data of their stripe.
#[test]
fn streams_lie_within_their_stripe() {
    for length in [4, 1 << 32, u64::MAX] {
        let types = vec![parent(TypeKind::Struct, &[1]), leaf(TypeKind::Byte)];
        let mut builder = FileBuilder::new(types, CompressionKind::None);
        // The streams of the template come first in the footer, but have no bytes.
        builder.stripe_footer.streams = vec![stoa_orc::proto::Stream {
            kind: Some(Present as i32),
            column: Some(1),
            length: Some(length),
        }];
        builder.stripe(1, vec![encoding(Direct, 0); 2], &[(1, Data, &byte_literals(&[1]))]);
        check(&builder.finish(), ErrorKind::Corrupt, &["stripe footer", "ends behind the stripe"]);
    }
}

/// ORC-2200 (Java; C++ has it): stripes that lie outside of the file.
#[test]
fn stripes_lie_within_the_file() {
    let change = |change: fn(&mut StripeInformation, u64), value: u64| {
        build::edit_tail(&sound(), |tail| change(&mut tail.footer.stripes[0], value))
    };
    for value in [1 << 20, 1 << 31, 1 << 40, i64::MAX as u64, u64::MAX] {
        let files = [
            change(|stripe, value| stripe.offset = Some(value), value),
            change(|stripe, value| stripe.index_length = Some(value), value),
            change(|stripe, value| stripe.data_length = Some(value), value),
            change(|stripe, value| stripe.footer_length = Some(value), value),
        ];
        for file in files {
            check(&file, ErrorKind::Corrupt, &["stripe 0 at offset", "ends behind the file"]);
        }
    }
    let rows = build::edit_tail(&sound(), |tail| {
        tail.footer.stripes[0].number_of_rows = Some(u64::MAX);
        tail.footer.number_of_rows = Some(u64::MAX);
    });
    check(&rows, ErrorKind::Corrupt, &["too many rows"]);
    let rows = build::edit_tail(&sound(), |tail| tail.footer.number_of_rows = Some(3));
    check(&rows, ErrorKind::Corrupt, &["footer says 3 rows, its stripes have 2"]);
}

/// Streams of a stripe that are cut off, of every type.
#[test]
fn streams_may_end_anywhere() {
    let batch = support::generate::batch(3, 200);
    let options = stoa_orc::WriterOptions::default().with_compression(stoa_orc::Compression::None);
    let file = support::write(&[batch], options);
    let stripe = support::metadata(&file).unwrap().stripes[0];
    let footer = stripe.footer_range();
    let footer = &file[footer.start as usize..footer.end as usize];
    let footer = <stoa_orc::proto::StripeFooter as prost::Message>::decode(footer).unwrap();
    let mut at = stripe.offset as usize;
    for stream in &footer.streams {
        let range = at..at + stream.length() as usize;
        at = range.end;
        if range.is_empty() || matches!(stream.kind(), StreamKind::RowIndex) {
            continue;
        }
        let types = support::metadata(&file).unwrap().types.to_proto();
        let mut builder = FileBuilder::new(types, CompressionKind::None);
        let mut streams = Vec::new();
        let mut from = stripe.offset as usize;
        for other in &footer.streams {
            let to = from + other.length() as usize;
            let cut = if from == range.start && to == range.end { to - 1 } else { to };
            if !matches!(other.kind(), StreamKind::RowIndex) {
                streams.push((other.column(), other.kind(), &file[from..cut]));
            }
            from = to;
        }
        builder.stripe(stripe.rows, footer.columns.clone(), &streams);
        let column = format!("column {} (", stream.column());
        check(&builder.finish(), ErrorKind::Corrupt, &["stripe 0", &column]);
    }
}
