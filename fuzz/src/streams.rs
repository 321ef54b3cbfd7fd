//! A file of one stripe whose streams are the fuzzer's bytes.
//!
//! ```text
//! tree u8 · codec u8 · flags u8 · rows u16 · batch rows u16
//! · per column: encoding u8 · dictionary size u16 · which streams u8 · their blocks
//! ```

use bytes::Bytes;
use stoa_orc::CompressionKind;
use stoa_orc::proto::{CalendarKind, ColumnEncoding, EncodingKind, StreamKind, Type, TypeKind};

use crate::build::{FileBuilder, decimal, encoding, leaf, parent};
use crate::input::Input;

/// The streams of a column, in the order of the bits that choose them.
pub const KINDS: [StreamKind; 5] = [
    StreamKind::Present,
    StreamKind::Data,
    StreamKind::Length,
    StreamKind::DictionaryData,
    StreamKind::Secondary,
];

/// The encodings, by number.
pub const ENCODINGS: [EncodingKind; 4] = [
    EncodingKind::Direct,
    EncodingKind::Dictionary,
    EncodingKind::DirectV2,
    EncodingKind::DictionaryV2,
];

/// The codecs, by number.
pub const CODECS: [CompressionKind; 7] = [
    CompressionKind::None,
    CompressionKind::Zlib,
    CompressionKind::Snappy,
    CompressionKind::Lzo,
    CompressionKind::Lz4,
    CompressionKind::Zstd,
    CompressionKind::Brotli,
];

/// Most rows of the file.
const ROWS_MAX: u16 = 4095;

/// A column of its own beside `b`, an INT that predicates test.
fn beside_int(column: Vec<Type>) -> Vec<Type> {
    let b = column.len() as u32 + 1;
    let mut types = vec![parent(TypeKind::Struct, &[1, b])];
    let move_down = |ty: Type| Type { subtypes: ty.subtypes.iter().map(|c| c + 1).collect(), ..ty };
    types.extend(column.into_iter().map(move_down));
    types.push(leaf(TypeKind::Int));
    types
}

/// The type trees to choose from.
pub fn trees() -> Vec<Vec<Type>> {
    let leaves = [
        TypeKind::Boolean,
        TypeKind::Byte,
        TypeKind::Short,
        TypeKind::Int,
        TypeKind::Long,
        TypeKind::Float,
        TypeKind::Double,
        TypeKind::String,
        TypeKind::Binary,
        TypeKind::Timestamp,
        TypeKind::TimestampInstant,
        TypeKind::Date,
        TypeKind::Char,
    ];
    let mut trees: Vec<_> = leaves.iter().map(|kind| beside_int(vec![leaf(*kind)])).collect();
    let (int, text) = (leaf(TypeKind::Int), leaf(TypeKind::String));
    let nested: [Vec<Type>; 9] = [
        vec![decimal(38, 5)],
        vec![decimal(9, 2)],
        vec![decimal(0, 0)],
        vec![parent(TypeKind::List, &[1]), int.clone()],
        vec![parent(TypeKind::Map, &[1, 2]), text.clone(), int.clone()],
        vec![parent(TypeKind::Struct, &[1, 2]), text.clone(), leaf(TypeKind::Boolean)],
        vec![parent(TypeKind::Union, &[1, 2]), int.clone(), text.clone()],
        vec![
            parent(TypeKind::List, &[1]),
            parent(TypeKind::Struct, &[2, 3]),
            parent(TypeKind::List, &[3]),
            leaf(TypeKind::Byte),
            parent(TypeKind::Struct, &[]),
        ],
        vec![parent(TypeKind::List, &[1]), parent(TypeKind::Union, &[2]), leaf(TypeKind::Double)],
    ];
    // Ids within the deep one are its own.
    let mut nested = nested;
    nested[7][1].subtypes = vec![2, 4];
    trees.extend(nested.into_iter().map(beside_int));
    trees.push(vec![leaf(TypeKind::Timestamp)]);
    trees.push(vec![parent(TypeKind::Union, &[1, 2]), int, text]);
    trees.push(vec![parent(TypeKind::Map, &[1, 2]), leaf(TypeKind::Long), leaf(TypeKind::Date)]);
    trees
}

/// A file, how many rows it has and how many to read at once.
pub struct StreamsFile {
    pub file: Bytes,
    pub rows: usize,
    pub batch_rows: usize,
    /// Whether `b` is there to be tested.
    pub has_b: bool,
}

/// Builds the file.
pub fn build(input: &mut Input) -> StreamsFile {
    let trees = trees();
    let tree = &trees[input.below(trees.len())];
    let codec = CODECS[input.below(CODECS.len())];
    let flags = input.byte();
    let rows = input.word() & ROWS_MAX;
    let batch_rows = input.word() & ROWS_MAX;
    let mut builder = FileBuilder::new(tree.clone(), codec);
    let block_bytes = [256 << 10, (8 << 20) - 1, 1024, 85][usize::from(flags >> 6)];
    builder.postscript.compression_block_size = Some(block_bytes);
    if flags & 1 == 1 {
        builder.postscript.version = vec![1, 9999];
    }
    if flags & 2 == 2 {
        builder.footer.calendar = Some(CalendarKind::JulianGregorian as i32);
    }
    let zones = [None, Some("UTC"), Some("America/Los_Angeles"), Some("GMT+09:00")];
    builder.stripe_footer.writer_timezone = zones[usize::from(flags >> 2 & 3)].map(str::to_owned);
    let mut encodings: Vec<ColumnEncoding> = Vec::new();
    let mut streams = Vec::new();
    for column in 0..tree.len() as u32 {
        let kind = ENCODINGS[input.below(ENCODINGS.len())];
        encodings.push(encoding(kind, u32::from(input.word())));
        let mask = input.byte();
        for (_, kind) in KINDS.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1) {
            streams.push((column, *kind, input.block()));
        }
    }
    builder.stripe(u64::from(rows), encodings, &streams);
    let has_b = tree.len() > 1 && tree[0].kind() == TypeKind::Struct;
    let (rows, batch_rows) = (usize::from(rows), usize::from(batch_rows).max(1));
    StreamsFile { file: builder.finish(), rows, batch_rows, has_b }
}
