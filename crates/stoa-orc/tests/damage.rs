//! Damaged files give errors or rows, never a panic, an endless loop or a huge allocation.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may end in a panic.

mod support;

use std::sync::Arc;

use bytes::Bytes;
use stoa_error::{Place, StreamPart};
use stoa_orc::{
    ColumnRef, CompareOp, Compression, Decoder, DictionaryChoice, Limits, Literal, Predicate,
    ReadOptions, Step, StringOutput, TailDecoder, TailStep, TimestampOutput, WriterOptions,
};
use support::generate::{self, Random};

/// Most batches read of a damaged file: it may say that it has any number of rows.
const BATCHES_MAX: usize = 20;

fn limits() -> Limits {
    Limits { metadata_bytes: 8 << 20, batch_bytes: 64 << 20, ..Limits::default() }
}

/// Reads what can be read.
fn read(file: &Bytes, random: &mut Random) {
    let mut tail = TailDecoder::new(file.len() as u64).with_limits(limits());
    let mut wanted = 16 << 10;
    let metadata = loop {
        let from = (file.len() as u64).saturating_sub(wanted) as usize;
        match tail.decode(file.slice(from..)) {
            Ok(TailStep::NeedsTail(more)) => {
                assert!(more > wanted.min(file.len() as u64) && more <= file.len() as u64);
                wanted = more;
            }
            Ok(TailStep::Done(metadata)) => break Arc::new(metadata),
            Err(_) => return,
        }
    };
    for column in 0..metadata.types.len() as u32 {
        metadata.file_statistics(column);
    }
    let column = ColumnRef::Id(1 + random.below(metadata.types.len() as u64) as u32);
    let value = match random.below(4) {
        0 => Literal::Int(100),
        1 => Literal::String("5".to_owned()),
        2 => Literal::TimestampMicros(0),
        _ => Literal::Float(0.5),
    };
    let predicate = Predicate::Compare { column, op: CompareOp::Eq, value };
    let mut options = ReadOptions::default()
        .with_limits(limits())
        .with_strings([StringOutput::Utf8, StringOutput::Utf8View][random.below(2) as usize])
        .with_timestamps(TimestampOutput::Micros);
    if random.below(2) == 0 {
        options = options.with_predicate(predicate);
    }
    let Ok(mut decoder) = Decoder::new(metadata, options) else { return };
    let mut batches = 0;
    while batches < BATCHES_MAX {
        match decoder.next() {
            Ok(Step::NeedsData(ranges)) => {
                for range in ranges {
                    let bytes = file.slice(range.start as usize..range.end as usize);
                    decoder.push(range.start, bytes);
                }
            }
            Ok(Step::Batch(_)) => batches += 1,
            Ok(Step::Finished) | Err(_) => return,
        }
    }
}

/// Changes some bytes, more of them near the end, where the metadata is.
fn damage(file: &[u8], random: &mut Random) -> Bytes {
    let mut bytes = file.to_vec();
    let length = bytes.len() as u64;
    if length == 0 {
        return Bytes::from(bytes);
    }
    for _ in 0..1 + random.below(4) {
        let near_end = random.below(3) == 0;
        let at = if near_end {
            length - 1 - random.below(length.min(600))
        } else {
            random.below(length)
        };
        let at = at as usize;
        match random.below(8) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = 0xff,
            3 => bytes[at] = 0,
            4 => {
                let end = (at + random.below(12) as usize).min(bytes.len());
                bytes[at..end].fill(random.next() as u8);
            }
            5 => {
                let from = random.below(length) as usize;
                let count = random.below(64).min(length - from.max(at) as u64) as usize;
                bytes.copy_within(from..from + count, at);
            }
            6 => bytes[at] = bytes[at].wrapping_add(1),
            _ if random.below(10) == 0 => {
                bytes.truncate(at + 1);
                return Bytes::from(bytes);
            }
            _ => bytes[at] = bytes[at].wrapping_sub(1),
        }
    }
    Bytes::from(bytes)
}

#[test]
fn damaged_corpus_files_do_not_panic() {
    let mut random = Random(7);
    for (name, file, _) in support::corpus() {
        let tries = match file.len() {
            0..=3_000 => 150,
            3_001..=50_000 => 60,
            _ => 8,
        };
        for number in 0..tries {
            let seed = random.next();
            let mut random = Random(seed);
            let damaged = damage(&file, &mut random);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                read(&damaged, &mut random);
            }));
            assert!(result.is_ok(), "{name}: damage {number}, seed {seed:#x}");
        }
    }
}

#[test]
fn damaged_files_of_all_types_do_not_panic() {
    let mut random = Random(8);
    for seed in 0..3 {
        let batch = generate::batch(seed, 600);
        for (compression, dictionary) in [
            (Compression::None, DictionaryChoice::Never),
            (Compression::None, DictionaryChoice::Always),
            (Compression::Zstd { level: 1 }, DictionaryChoice::Auto),
            (Compression::Lz4, DictionaryChoice::Auto),
        ] {
            let options = WriterOptions::default()
                .with_compression(compression)
                .with_checksums(false)
                .with_dictionary(dictionary)
                .with_bloom_column("int")
                .with_bloom_column("string")
                .with_row_index_stride(100)
                .with_stripe_rows(300);
            let file = support::write(std::slice::from_ref(&batch), options);
            for number in 0..150 {
                let seed = random.next();
                let mut random = Random(seed);
                let damaged = damage(&file, &mut random);
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    read(&damaged, &mut random);
                }));
                assert!(result.is_ok(), "{compression:?}: damage {number}, seed {seed:#x}");
            }
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    for (name, file, _) in support::corpus().into_iter().filter(|(_, file, _)| file.len() < 2000) {
        for length in 1..file.len() {
            assert!(support::metadata(&file.slice(..length)).is_err(), "{name} cut to {length}");
        }
    }
}

#[test]
fn an_error_names_stripe_column_and_stream() {
    let batch = generate::batch(1, 1000);
    let options = WriterOptions::default()
        .with_compression(Compression::Zstd { level: 3 })
        .with_checksums(false);
    let file = support::write(&[batch], options);
    let metadata = support::metadata(&file).unwrap();
    let mut bytes = file.to_vec();
    let stripe = metadata.stripes[0];
    let data = stripe.offset + stripe.index_bytes;
    for byte in &mut bytes[data as usize..(data + stripe.data_bytes) as usize] {
        *byte ^= 0x55;
    }
    let error = support::read(&Bytes::from(bytes), ReadOptions::default()).err().unwrap();
    let message = error.message();
    for part in ["stripe 0: column ", " stream, before offset "] {
        assert!(message.contains(part), "{message}");
    }
    let [Place::Stripe(0), Place::Column { id, path }, Place::Stream { part, .. }] = error.places()
    else {
        panic!("{:?}", error.places());
    };
    assert_eq!(metadata.types.path(*id), *path);
    let StreamPart::Before { file_offset, .. } = part else { panic!("{part:?}") };
    assert!((data..=data + stripe.data_bytes).contains(file_offset), "{file_offset}");
    assert_eq!(error.kind(), stoa_error::ErrorKind::Corrupt);
}
