//! What the format allows and few writers do: codecs, calendars, roots, files without parts.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use bytes::Bytes;
use stoa_error::ErrorKind;
use stoa_orc::proto::{CalendarKind, EncodingKind, StreamKind, Type, TypeKind};
use stoa_orc::{
    ColumnRef, CompareOp, Compression, CompressionKind, Literal, Predicate, Projection,
    ReadOptions, StringOutput, TimestampOutput, Writer, WriterOptions,
};
use support::build::{
    self, FileBuilder, bits, byte_literals, compressed_chunk, encoding, leaf, original_chunk,
    parent, signed_v1, unsigned_v1,
};

use EncodingKind::{Dictionary, Direct, DirectV2};
use StreamKind::{Data, DictionaryData, Length, Present, Secondary};

fn read(file: &Bytes, options: ReadOptions) -> RecordBatch {
    support::read(file, options).unwrap().concat().unwrap()
}

/// A file of one column `a` of a type.
fn one(ty: Type, rows: u64, kind: EncodingKind, streams: &[(StreamKind, &[u8])]) -> FileBuilder {
    let types = vec![parent(TypeKind::Struct, &[1]), ty];
    let mut builder = FileBuilder::new(types, CompressionKind::None);
    let streams: Vec<_> = streams.iter().map(|(kind, bytes)| (1, *kind, *bytes)).collect();
    builder.stripe(rows, vec![encoding(Direct, 0), encoding(kind, 0)], &streams);
    builder
}

/// One chunk's bytes, as each codec's own library writes them.
fn compress(codec: CompressionKind, content: &[u8]) -> Vec<u8> {
    match codec {
        CompressionKind::None => content.to_vec(),
        CompressionKind::Zlib => {
            let level = flate2::Compression::best();
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
        CompressionKind::Snappy => snap::raw::Encoder::new().compress_vec(content).unwrap(),
        CompressionKind::Lzo => lzokay_native::compress(content).unwrap(),
        CompressionKind::Lz4 => lz4_flex::block::compress(content),
        CompressionKind::Zstd => zstd::bulk::compress(content, 3).unwrap(),
        CompressionKind::Brotli => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 18);
            encoder.write_all(content).unwrap();
            encoder.into_inner()
        }
    }
}

const CODECS: [CompressionKind; 7] = [
    CompressionKind::None,
    CompressionKind::Zlib,
    CompressionKind::Snappy,
    CompressionKind::Lzo,
    CompressionKind::Lz4,
    CompressionKind::Zstd,
    CompressionKind::Brotli,
];

#[test]
fn every_codec_in_chunks_of_every_size() {
    let values: Vec<i64> = (0..3000).map(|row| row * row % 1000 - 77 * (row % 13)).collect();
    let (content, expected) = (signed_v1(&values), Int64Array::from(values));
    for codec in CODECS {
        for piece in [1, 7, 100, 1000, 100_000] {
            let types = vec![parent(TypeKind::Struct, &[1]), leaf(TypeKind::Long)];
            let mut builder = FileBuilder::new(types, codec);
            let chunk = |(number, part): (usize, &[u8])| match codec {
                CompressionKind::None => part.to_vec(),
                // Some chunks are stored, as writers do where compressing does not help.
                _ if number % 3 == 1 => original_chunk(part),
                _ => compressed_chunk(&compress(codec, part)),
            };
            let data: Vec<u8> = content.chunks(piece).enumerate().flat_map(chunk).collect();
            builder.stripe(3000, vec![encoding(Direct, 0); 2], &[(1, Data, &data)]);
            let file = builder.finish();
            assert_eq!(support::metadata(&file).unwrap().compression, codec);
            for batch_rows in [1, 999, 5000] {
                let rows = read(&file, ReadOptions::default().with_batch_rows(batch_rows));
                assert_eq!(rows.column(0).as_ref(), &expected, "{codec:?} {piece} {batch_rows}");
            }
        }
    }
}

#[test]
fn a_chunk_inflates_to_the_block_size_and_not_beyond() {
    for codec in CODECS.into_iter().skip(1) {
        let content = byte_literals(&[7; 1000]);
        let data = compressed_chunk(&compress(codec, &content));
        for (block_bytes, is_sound) in [(content.len(), true), (content.len() - 1, false)] {
            let types = vec![parent(TypeKind::Struct, &[1]), leaf(TypeKind::Byte)];
            let mut builder = FileBuilder::new(types, codec);
            builder.postscript.compression_block_size = Some(block_bytes as u64);
            builder.stripe(1000, vec![encoding(Direct, 0); 2], &[(1, Data, &data)]);
            let result = support::read(&builder.finish(), ReadOptions::default());
            match is_sound {
                true => assert_eq!(result.unwrap().rows(), 1000, "{codec:?}"),
                false => {
                    let error = result.err().unwrap();
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{codec:?}");
                    let name = format!("{} chunk", codec.name());
                    assert!(error.message().contains(&name), "{error:?}");
                }
            }
        }
    }
}

/// Year, month and day stay what they were; only the number of days changes.
#[test]
fn the_hybrid_calendar_keeps_dates() {
    // Days of the hybrid calendar, and the proleptic day of the same name.
    let days = [
        (0, 0),
        (-141_427, -141_427), // 1582-10-15, the first Gregorian day
        (-141_428, -141_438), // 1582-10-04, the day before it
        (-171_655, -171_664), // 1500-01-01
        (-719_164, -719_162), // 0001-01-01
    ];
    let schema = Schema::new(vec![
        Field::new("d", DataType::Date32, true),
        Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true),
    ]);
    let hybrid = days.iter().map(|(hybrid, _)| *hybrid);
    let micros = |day: i32| i64::from(day) * 86_400_000_000 + 3_600_000_000;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Date32Array::from_iter_values(hybrid.clone())),
        Arc::new(TimestampMicrosecondArray::from_iter_values(hybrid.map(micros))),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let options = WriterOptions::default().with_compression(Compression::None);
    let file = support::write(&[batch], options);
    let micro_options = ReadOptions::default().with_timestamps(TimestampOutput::Micros);
    // Who does not name the calendar means the hybrid one if it is ORC Java.
    let (java, cpp) = (0, 1);
    for (writer, calendar, is_hybrid) in [
        (cpp, Some(CalendarKind::JulianGregorian), true),
        (java, Some(CalendarKind::ProlepticGregorian), false),
        (cpp, Some(CalendarKind::Unknown), false),
        (cpp, None, false),
        (java, Some(CalendarKind::Unknown), true),
        (java, None, true),
    ] {
        let file = build::edit_tail(&file, |tail| {
            tail.footer.calendar = calendar.map(|calendar| calendar as i32);
            tail.footer.writer = Some(writer);
        });
        let rows = read(&file, micro_options.clone());
        let expected: Vec<i32> =
            days.iter().map(|(day, proleptic)| if is_hybrid { *proleptic } else { *day }).collect();
        assert_eq!(rows.column(0).as_primitive::<Date32Type>().values(), &expected[..]);
        let expected: Vec<i64> = expected.into_iter().map(micros).collect();
        let found = rows.column(1).as_primitive::<TimestampMicrosecondType>().values();
        assert_eq!(found, &expected[..], "{calendar:?}");
        // A predicate on the name of a day finds it.
        let value = Literal::Date(if is_hybrid { -171_664 } else { -171_655 });
        let predicate = Predicate::Compare { column: ColumnRef::Id(1), op: CompareOp::Eq, value };
        let found = support::read(&file, micro_options.clone().with_predicate(predicate)).unwrap();
        assert_eq!(found.rows(), 1, "{calendar:?}");
    }
}

/// Points that `i64` nanoseconds or microseconds just hold.
#[test]
fn timestamps_reach_to_the_ends_of_their_range() {
    let file = |array: ArrayRef| {
        let batch = RecordBatch::try_from_iter([("t", array)]).unwrap();
        support::write(&[batch], WriterOptions::default())
    };
    let ends = vec![i64::MIN, i64::MIN + 1, i64::MIN + 999_999_999, i64::MAX - 1, i64::MAX];
    let nanos = TimestampNanosecondArray::from(ends.clone());
    let rows = read(&file(Arc::new(nanos.clone())), ReadOptions::default());
    assert_eq!(rows.column(0).as_ref(), &nanos);
    let micros = TimestampMicrosecondArray::from(ends);
    let options = ReadOptions::default().with_timestamps(TimestampOutput::Micros);
    let rows = read(&file(Arc::new(micros.clone())), options);
    assert_eq!(rows.column(0).as_ref(), &micros);
}

#[test]
fn timestamps_out_of_range_are_an_error() {
    let ends = [i64::MIN, i64::MIN + 1_420_070_400, i64::MAX, i64::MAX / 1000, i64::MIN / 1000];
    for seconds in ends {
        let data = signed_v1(&[seconds]);
        // 999,999,999 ns.
        let nanos = unsigned_v1(&[999_999_999 << 3]);
        let streams: [(StreamKind, &[u8]); 2] = [(Data, &data), (Secondary, &nanos)];
        for zone in ["UTC", "Asia/Tokyo", "America/New_York"] {
            let types = vec![parent(TypeKind::Struct, &[1]), leaf(TypeKind::Timestamp)];
            let mut builder = FileBuilder::new(types, CompressionKind::None);
            builder.stripe_footer.writer_timezone = Some(zone.to_owned());
            let streams: Vec<_> = streams.iter().map(|(kind, bytes)| (1, *kind, *bytes)).collect();
            builder.stripe(1, vec![encoding(Direct, 0); 2], &streams);
            let error = support::read(&builder.finish(), ReadOptions::default()).err().unwrap();
            assert!(error.message().contains("out of range"), "{seconds}: {error:?}");
        }
    }
}

/// Arrow C++ rounds seconds before 1970 towards zero and writes what is left as it is: negative.
#[test]
fn negative_nanoseconds_are_those_of_arrow() {
    // −750 ms with seven zeros taken off, −1 ns, 0; seconds −5, −5, 3.
    let nanos = [-75i64 << 3 | 6, -1 << 3, 0].map(|nanos| nanos as u64);
    let seconds = [-5, -5, 3].map(|second: i64| second - 1_420_070_400);
    let (data, nanos) = (signed_v1(&seconds), unsigned_v1(&nanos));
    let file = one(leaf(TypeKind::Timestamp), 3, Direct, &[(Data, &data), (Secondary, &nanos)]);
    let file = file.finish();
    let rows = read(&file, ReadOptions::default());
    let expected = [-5_750_000_000, -5_000_000_001, 3_000_000_000];
    assert_eq!(rows.column(0).as_primitive::<TimestampNanosecondType>().values(), &expected);
    let rows = read(&file, ReadOptions::default().with_timestamps(TimestampOutput::Micros));
    let expected = [-5_750_000, -5_000_001, 3_000_000];
    assert_eq!(rows.column(0).as_primitive::<TimestampMicrosecondType>().values(), &expected);
}

#[test]
fn nanoseconds_of_more_than_a_second_are_an_error() {
    for encoded in [1_000_000_000 << 3, (10 << 3) | 7, ((u64::MAX - 9) << 3) | 7, 1 << 63] {
        let (data, nanos) = (signed_v1(&[0]), unsigned_v1(&[encoded]));
        let file = one(leaf(TypeKind::Timestamp), 1, Direct, &[(Data, &data), (Secondary, &nanos)]);
        let error = support::read(&file.finish(), ReadOptions::default()).err().unwrap();
        assert!(error.message().contains("column 1 (a): nanoseconds"), "{error:?}");
    }
}

#[test]
fn zones_that_are_not_known_matter_for_timestamps_only() {
    let types =
        vec![parent(TypeKind::Struct, &[1, 2]), leaf(TypeKind::Byte), leaf(TypeKind::Timestamp)];
    let mut builder = FileBuilder::new(types, CompressionKind::None);
    builder.stripe_footer.writer_timezone = Some("Mars/Olympus".to_owned());
    let (bytes, data, nanos) = (byte_literals(&[9]), signed_v1(&[0]), unsigned_v1(&[0]));
    let streams: [(u32, StreamKind, &[u8]); 3] =
        [(1, Data, &bytes), (2, Data, &data), (2, Secondary, &nanos)];
    builder.stripe(1, vec![encoding(Direct, 0); 3], &streams);
    let file = builder.finish();
    let options =
        |column| ReadOptions::default().with_projection(Projection::Columns(vec![column]));
    assert_eq!(support::read(&file, options(1)).unwrap().rows(), 1);
    let error = support::read(&file, options(2)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("Mars/Olympus"), "{error:?}");
}

#[test]
fn the_root_may_be_of_any_type() {
    let (ints, texts, lengths) = (signed_v1(&[5, -6]), b"xy", unsigned_v1(&[1, 1]));
    let (tags, present) = (byte_literals(&[0, 1, 0, 1]), bits(&[true, true, false, true, true]));
    let types = vec![parent(TypeKind::Union, &[1, 2]), leaf(TypeKind::Int), leaf(TypeKind::String)];
    let mut builder = FileBuilder::new(types, CompressionKind::None);
    let streams: [(u32, StreamKind, &[u8]); 5] = [
        (0, Present, &present),
        (0, Data, &tags),
        (1, Data, &ints),
        (2, Data, texts),
        (2, Length, &lengths),
    ];
    builder.stripe(5, vec![encoding(Direct, 0); 3], &streams);
    let file = builder.finish();
    for batch_rows in [1, 2, 100] {
        let rows = read(&file, ReadOptions::default().with_batch_rows(batch_rows));
        assert_eq!(rows.schema().field(0).name(), "value");
        let union = rows.column(0).as_union();
        let number = |row: usize| union.value(row).as_primitive::<Int32Type>().value(0);
        let text = |row: usize| union.value(row).as_string::<i32>().value(0).to_owned();
        assert_eq!((number(0), text(1), number(3), text(4)), (5, "x".into(), -6, "y".into()));
        assert!(union.value(2).is_null(0));
    }

    let types = vec![parent(TypeKind::List, &[1]), leaf(TypeKind::Byte)];
    let mut builder = FileBuilder::new(types, CompressionKind::None);
    let (lengths, items) = (unsigned_v1(&[2, 0, 1]), byte_literals(&[1, 2, 3]));
    builder.stripe(3, vec![encoding(Direct, 0); 2], &[(0, Length, &lengths), (1, Data, &items)]);
    let rows = read(&builder.finish(), ReadOptions::default());
    let lists = rows.column(0).as_list::<i32>();
    assert_eq!(lists.value_offsets(), [0, 2, 2, 3]);
    assert_eq!(lists.values().as_primitive::<Int8Type>().values(), &[1, 2, 3]);
}

#[test]
fn unions_within_unions_have_nulls() {
    let types = vec![
        parent(TypeKind::Struct, &[1]),
        parent(TypeKind::Union, &[2]),
        parent(TypeKind::Union, &[3]),
        leaf(TypeKind::Byte),
    ];
    let mut builder = FileBuilder::new(types, CompressionKind::None);
    let (outer, inner) = (bits(&[true, false, true]), bits(&[false, true]));
    let (two, one, values) = (byte_literals(&[0, 0]), byte_literals(&[0]), byte_literals(&[9]));
    let streams: [(u32, StreamKind, &[u8]); 5] = [
        (1, Present, &outer),
        (1, Data, &two),
        (2, Present, &inner),
        (2, Data, &one),
        (3, Data, &values),
    ];
    builder.stripe(3, vec![encoding(Direct, 0); 4], &streams);
    let rows = read(&builder.finish(), ReadOptions::default());
    let union = rows.column(0).as_union();
    let leaf = |row: usize| union.value(row).as_union().value(0);
    assert!(leaf(0).is_null(0) && leaf(1).is_null(0));
    assert_eq!(leaf(2).as_primitive::<Int8Type>().value(0), 9);
}

/// A file of zero bytes is a table without rows and columns: Hive writes them.
#[test]
fn a_file_of_zero_bytes_is_empty() {
    let metadata = support::metadata(&Bytes::new()).unwrap();
    assert_eq!((metadata.rows, metadata.stripes.len(), metadata.types.len()), (0, 0, 1));
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
    for options in
        [ReadOptions::default(), ReadOptions::default().with_projection(Projection::Fields(schema))]
    {
        assert_eq!(support::read(&Bytes::new(), options).unwrap().rows(), 0);
    }
    for length in 1..4 {
        let file = Bytes::from_static(b"ORC").slice(..length);
        assert_eq!(support::metadata(&file).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

/// No Metadata section, no index, no statistics, no zone, no version: the first writers.
#[test]
fn a_file_may_lack_all_that_is_optional() {
    let values = signed_v1(&[1, 2, 3]);
    let mut builder = one(leaf(TypeKind::Int), 3, Direct, &[(Data, &values)]);
    builder.postscript.version.clear();
    builder.postscript.writer_version = None;
    builder.postscript.compression_block_size = None;
    builder.postscript.metadata_length = None;
    builder.footer.number_of_rows = None;
    let file = builder.finish();
    let metadata = support::metadata(&file).unwrap();
    assert_eq!((metadata.rows, metadata.row_index_stride), (3, 0));
    assert!(metadata.file_statistics(1).is_none() && metadata.stripe_statistics(0).is_none());
    let (column, value) = (ColumnRef::Id(1), Literal::Int(2));
    let predicate = Predicate::Compare { column, op: CompareOp::Eq, value };
    let options = ReadOptions::default().with_predicate(predicate);
    let read = support::read(&file, options.clone()).unwrap();
    assert_eq!((read.rows(), read.metrics.stripes_pruned), (1, 0));
    // A stride, but no index.
    let file = build::edit_tail(&file, |tail| tail.footer.row_index_stride = Some(1));
    assert_eq!(support::read(&file, options).unwrap().rows(), 1);
}

/// Fewer statistics than stripes: they can't be matched.
#[test]
fn too_few_statistics_of_stripes_are_not_asked() {
    let batch = support::generate::batch(5, 900);
    let options =
        WriterOptions::default().with_compression(Compression::None).with_stripe_rows(300);
    let file = support::write(&[batch], options);
    assert!(support::metadata(&file).unwrap().stripe_statistics(2).is_some());
    let file = build::edit_tail(&file, |tail| tail.metadata.stripe_stats.truncate(2));
    let metadata = support::metadata(&file).unwrap();
    assert!((0..3).all(|stripe| metadata.stripe_statistics(stripe).is_none()));
    assert_eq!(support::read(&file, ReadOptions::default()).unwrap().rows(), 900);
}

#[test]
fn nesting_is_read_and_written_to_the_limit() {
    let nested = |depth: usize| {
        let wrap = |inner: Field, _| Field::new_list("item", inner, true);
        let field = (0..depth).fold(Field::new("item", DataType::Int8, true), wrap);
        Schema::new(vec![field.with_name("deep")])
    };
    // The root and the innermost type are levels, too.
    let schema = nested(98);
    let mut array: ArrayRef = Arc::new(Int8Array::from(vec![Some(1), None, Some(3)]));
    for _ in 0..98 {
        let item = Arc::new(Field::new("item", array.data_type().clone(), true));
        let offsets = arrow_buffer::OffsetBuffer::from_lengths([array.len()]);
        array = Arc::new(ListArray::new(item, offsets, array, None));
    }
    let batch = RecordBatch::try_new(Arc::new(schema), vec![array]).unwrap();
    let file = support::write(std::slice::from_ref(&batch), WriterOptions::default());
    assert_eq!(read(&file, ReadOptions::default()), batch);

    let error = Writer::new(&nested(101), WriterOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let deep = |kind: TypeKind, levels: u32| {
        let mut types: Vec<Type> = (1..levels).map(|child| parent(kind, &[child])).collect();
        types.push(leaf(TypeKind::Int));
        support::metadata(&FileBuilder::new(types, CompressionKind::None).finish())
    };
    for kind in [TypeKind::List, TypeKind::Struct, TypeKind::Union] {
        assert!(deep(kind, 101).is_ok());
        let error = deep(kind, 102).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("nested deeper than 100"), "{error:?}");
        assert_eq!(deep(kind, 100_000).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

/// Format 1.9999: decimals of up to 18 digits are integers, without a scale for each.
#[test]
fn small_decimals_of_the_unreleased_format() {
    // SHORT_REPEAT of three values of two bytes: 1,234 and −1,234, zigzag.
    let data = [0b00_001_000, 0x09, 0xa4, 0b00_001_000, 0x09, 0xa3];
    let mut builder = one(build::decimal(9, 2), 6, DirectV2, &[(Data, &data)]);
    builder.postscript.version = vec![1, 9999];
    let file = builder.finish();
    let expected = [1234i128, 1234, 1234, -1234, -1234, -1234];
    let rows = read(&file, ReadOptions::default());
    let decimals = rows.column(0).as_primitive::<Decimal128Type>();
    assert_eq!((decimals.precision(), decimals.scale()), (9, 2));
    assert_eq!(decimals.values(), &expected);
    let wanted = Schema::new(vec![Field::new("a", DataType::Decimal128(20, 4), true)]);
    let options = ReadOptions::default().with_projection(Projection::Fields(Arc::new(wanted)));
    let rows = read(&file, options.with_batch_rows(4));
    let wider = expected.map(|value| value * 100);
    assert_eq!(rows.column(0).as_primitive::<Decimal128Type>().values(), &wider);
    // Above 18 digits, and in released formats, they are varints with scales.
    let (varints, scales) = (build::decimal_varints(&expected), signed_v1(&[2; 6]));
    for (precision, version) in [(19, vec![1, 9999]), (9, vec![0, 12])] {
        let streams: [(StreamKind, &[u8]); 2] = [(Data, &varints), (Secondary, &scales)];
        let mut builder = one(build::decimal(precision, 2), 6, Direct, &streams);
        builder.postscript.version = version;
        let rows = read(&builder.finish(), ReadOptions::default());
        assert_eq!(rows.column(0).as_primitive::<Decimal128Type>().values(), &expected);
    }
}

/// Each value has a scale of its own; Hive 0.11 does not even say the type's.
#[test]
fn decimals_are_brought_to_one_scale() {
    let (values, scales) =
        (build::decimal_varints(&[5, 50, -123_456_789, 0]), signed_v1(&[0, 1, 7, 60]));
    let streams: [(StreamKind, &[u8]); 2] = [(Data, &values), (Secondary, &scales)];
    for (precision, scale, expected) in
        [(10, 2, [500, 500, -1234, 0]), (0, 0, [5_000_000, 5_000_000, -12_345_678, 0])]
    {
        let file = one(build::decimal(precision, scale), 4, Direct, &streams).finish();
        let rows = read(&file, ReadOptions::default());
        assert_eq!(rows.column(0).as_primitive::<Decimal128Type>().values(), &expected);
    }
    let (values, scales) = (build::decimal_varints(&[5]), signed_v1(&[-40]));
    let streams: [(StreamKind, &[u8]); 2] = [(Data, &values), (Secondary, &scales)];
    let file = one(build::decimal(38, 0), 1, Direct, &streams).finish();
    let error = support::read(&file, ReadOptions::default()).err().unwrap();
    assert!(error.message().contains("more than 38 digits"), "{error:?}");
}

/// A dictionary may hold entries twice, in any order, and ones that nobody uses.
#[test]
fn dictionaries_need_not_be_sorted() {
    let keys = unsigned_v1(&[2, 0, 1, 2]);
    let lengths = unsigned_v1(&[1, 2, 1, 0]);
    let types = vec![parent(TypeKind::Struct, &[1]), leaf(TypeKind::String)];
    let mut builder = FileBuilder::new(types, CompressionKind::None);
    let streams: [(u32, StreamKind, &[u8]); 3] =
        [(1, Data, &keys), (1, Length, &lengths), (1, DictionaryData, b"zaaz")];
    builder.stripe(4, vec![encoding(Direct, 0), encoding(Dictionary, 4)], &streams);
    let file = builder.finish();
    for strings in [StringOutput::Utf8, StringOutput::Utf8View, StringOutput::Dictionary] {
        let rows = read(&file, ReadOptions::default().with_strings(strings));
        let texts = arrow_cast::cast(rows.column(0), &DataType::Utf8).unwrap();
        assert_eq!(texts.as_ref(), &StringArray::from(vec!["z", "z", "aa", "z"]), "{strings:?}");
    }
}

#[test]
fn texts_are_utf8() {
    let lengths = unsigned_v1(&[1, 1]);
    for (data, is_sound) in [(b"ab", true), (b"\xc3\xa4", false), (b"a\xff", false)] {
        let streams: [(StreamKind, &[u8]); 2] = [(Data, data), (Length, &lengths)];
        let file = one(leaf(TypeKind::String), 2, Direct, &streams).finish();
        match support::read(&file, ReadOptions::default()) {
            Ok(read) => assert!(is_sound && read.rows() == 2),
            Err(error) => assert!(!is_sound && error.message().contains("not UTF-8"), "{error:?}"),
        }
        // As bytes they can be had.
        let wanted = Schema::new(vec![Field::new("a", DataType::Binary, true)]);
        let options = ReadOptions::default().with_projection(Projection::Fields(Arc::new(wanted)));
        let rows = read(&file, options);
        assert_eq!(rows.column(0).as_binary::<i32>().value_data(), data);
    }
}

/// A version that is still to come is read as far as it is understood; ORC Java refuses it.
#[test]
fn a_later_version_of_the_format_is_tried() {
    let values = signed_v1(&[4]);
    let mut builder = one(leaf(TypeKind::Int), 1, Direct, &[(Data, &values)]);
    builder.postscript.version = vec![19, 99];
    assert_eq!(support::read(&builder.finish(), ReadOptions::default()).unwrap().rows(), 1);
    let mut builder = one(leaf(TypeKind::Int), 1, Direct, &[(Data, &values)]);
    builder.postscript.compression = Some(7);
    let error = support::metadata(&builder.finish()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let mut unknown = leaf(TypeKind::Int);
    unknown.kind = Some(99);
    let error = support::metadata(&FileBuilder::new(vec![unknown], CompressionKind::None).finish());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unsupported);
}
