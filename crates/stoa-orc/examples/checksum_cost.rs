//! What comparing checksums costs a cold read: the same rows with and without them, in turn.
//!
//! `cargo run --release -p stoa-orc --example checksum_cost [ROUNDS]` prints the time of a read of all
//! columns for each codec, the fastest round of each, and how much more the checksums take.
#![allow(clippy::disallowed_methods)] // It measures.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use bytes::Bytes;
use stoa_orc::{
    Compression, Decoder, ReadOptions, Step, TailDecoder, TailStep, Writer, WriterOptions,
};

const ROWS: usize = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(15), |text| text.parse())?;
    let batch = report()?;
    for compression in [Compression::Zstd { level: 3 }, Compression::Lz4, Compression::None] {
        let [plain, sealed] = [false, true].map(|checksums| write(&batch, compression, checksums));
        let (plain, sealed) = (plain?, sealed?);
        let mut fastest = [Duration::MAX; 2];
        for _ in 0..rounds {
            for (file, fastest) in [&plain, &sealed].into_iter().zip(&mut fastest) {
                *fastest = read(file)?.min(*fastest);
            }
        }
        let [without, with] = fastest.map(|time| time.as_secs_f64());
        println!(
            "{:5} {:>10} bytes: {:6.2} ms without, {:6.2} ms with checksums: {:+.2} %; {} bytes more",
            compression.kind().name(),
            plain.len(),
            without * 1e3,
            with * 1e3,
            (with / without - 1.0) * 100.0,
            sealed.len() - plain.len(),
        );
    }
    Ok(())
}

/// Rows such as a report reads: days, ids with repetition, counts, costs and texts.
fn report() -> Result<RecordBatch, Box<dyn Error>> {
    let noise = |row: usize, salt: u64| {
        (row as u64 ^ salt)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(31)
            .wrapping_mul(salt | 1)
            >> 33
    };
    let rows = || 0..ROWS;
    let costs =
        Decimal128Array::from_iter_values(rows().map(|row| noise(row, 77) as i128 % 900_000));
    let columns: [(&str, ArrayRef); 7] = [
        (
            "day",
            Arc::new(Date32Array::from_iter_values(rows().map(|row| 19_000 + row as i32 / 3000))),
        ),
        (
            "account",
            Arc::new(Int64Array::from_iter_values(rows().map(|row| row as i64 / 700 * 37))),
        ),
        (
            "campaign",
            Arc::new(Int64Array::from_iter_values(rows().map(|row| (noise(row, 3) % 5000) as i64))),
        ),
        (
            "impressions",
            Arc::new(Int32Array::from_iter_values(
                rows().map(|row| (noise(row, 5) % 100_000) as i32),
            )),
        ),
        (
            "clicks",
            Arc::new(Int32Array::from_iter_values(rows().map(|row| (noise(row, 9) % 300) as i32))),
        ),
        ("cost", Arc::new(costs.with_precision_and_scale(18, 4)?)),
        (
            "region",
            Arc::new(StringArray::from_iter_values(
                rows().map(|row| format!("region {}", noise(row, 11) % 400)),
            )),
        ),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn write(
    batch: &RecordBatch,
    compression: Compression,
    checksums: bool,
) -> Result<Bytes, Box<dyn Error>> {
    let options = WriterOptions::default().with_compression(compression).with_checksums(checksums);
    let mut writer = Writer::new(&batch.schema(), options)?;
    writer.write(batch)?;
    writer.finish()?;
    Ok(writer.take_output())
}

/// The time of a read of everything. Bytes are copied, as from a file.
fn read(file: &Bytes) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let copy = |from: u64, to: u64| Bytes::copy_from_slice(&file[from as usize..to as usize]);
    let bytes = file.len() as u64;
    let mut tail = TailDecoder::new(bytes);
    let mut wanted = tail.first_read();
    let metadata = loop {
        match tail.decode(copy(bytes - wanted, bytes))? {
            TailStep::NeedsTail(more) => wanted = more,
            TailStep::Done(metadata) => break metadata,
        }
    };
    let mut decoder = Decoder::new(Arc::new(metadata), ReadOptions::default())?;
    let mut rows = 0;
    loop {
        match decoder.next()? {
            Step::NeedsData(ranges) => {
                for range in ranges {
                    decoder.push(range.start, copy(range.start, range.end));
                }
            }
            Step::Batch(batch) => rows += batch.num_rows(),
            Step::Finished => break,
        }
    }
    assert_eq!(rows, ROWS);
    Ok(start.elapsed())
}
