//! What comparing checksums costs a cold read: the same rows with and without them, in turn.
//!
//! `cargo run --release -p stoa-orc --example checksum_cost [ROUNDS]` prints for each codec what a read
//! of all columns takes without and with checksums (medians; how much more is the median of what each
//! round says), and what comparing alone takes, right after the bytes were copied. It is processor time
//! where the system tells it (Linux), else time.
#![allow(clippy::disallowed_methods)] // It measures.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use bytes::Bytes;
use stoa_orc::{
    Compression, Decoder, FileMetadata, ReadOptions, Step, TailDecoder, TailStep, Writer,
    WriterOptions,
};

const ROWS: usize = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(101), |text| text.parse())?;
    let batch = report()?;
    for compression in [Compression::Zstd { level: 3 }, Compression::Lz4, Compression::None] {
        let [plain, sealed] = [false, true].map(|checksums| write(&batch, compression, checksums));
        let (plain, sealed) = (plain?, sealed?);
        let [mut without, mut with, mut alone, mut ratios] = [const { Vec::new() }; 4];
        for round in 0..rounds.max(1) {
            // Neither is always the one that follows the other.
            let (of_plain, of_sealed) = if round % 2 == 0 {
                let of_plain = read(&plain)?;
                (of_plain, read(&sealed)?)
            } else {
                let of_sealed = read(&sealed)?;
                (read(&plain)?, of_sealed)
            };
            without.push(of_plain);
            with.push(of_sealed);
            ratios.push(of_sealed / of_plain);
            alone.push(compare(&sealed)?);
        }
        let [without, with, alone, ratio] = [without, with, alone, ratios].map(median);
        println!(
            "{:5} {:>10} bytes: {without:6.2} ms without, {with:6.2} ms with checksums: {:+6.2} %; \
             comparing alone {alone:5.2} ms, {:5.2} %; {} bytes more",
            compression.kind().name(),
            plain.len(),
            (ratio - 1.0) * 100.0,
            alone / without * 100.0,
            sealed.len() - plain.len(),
        );
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
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

/// The milliseconds of a read of everything. Bytes are copied, as from a file.
fn read(file: &Bytes) -> Result<f64, Box<dyn Error>> {
    let clock = Clock::start();
    let metadata = metadata(file)?;
    let mut decoder = Decoder::new(Arc::new(metadata), ReadOptions::default())?;
    let mut rows = 0;
    loop {
        match decoder.next()? {
            Step::NeedsData(ranges) => {
                for range in ranges {
                    decoder.push(range.start, copy(file, range.start, range.end));
                }
            }
            Step::Batch(batch) => rows += batch.num_rows(),
            Step::Finished => break,
        }
    }
    assert_eq!(rows, ROWS);
    Ok(clock.milliseconds())
}

/// The milliseconds that comparing all checksums of a file takes.
fn compare(file: &Bytes) -> Result<f64, Box<dyn Error>> {
    let metadata = metadata(file)?;
    let checksums = metadata.checksums().ok_or("a file without checksums")?;
    let content = copy(file, 0, checksums.content_bytes());
    let clock = Clock::start();
    checksums.check(0, &content)?;
    Ok(clock.milliseconds())
}

fn metadata(file: &Bytes) -> Result<FileMetadata, Box<dyn Error>> {
    let bytes = file.len() as u64;
    let mut tail = TailDecoder::new(bytes);
    let mut wanted = tail.first_read();
    loop {
        match tail.decode(copy(file, bytes - wanted, bytes))? {
            TailStep::NeedsTail(more) => wanted = more,
            TailStep::Done(metadata) => return Ok(metadata),
        }
    }
}

fn copy(file: &Bytes, from: u64, to: u64) -> Bytes {
    Bytes::copy_from_slice(&file[from as usize..to as usize])
}

/// Measures processor time where the system tells it, as other programs may be running.
struct Clock {
    start: Instant,
    on_cpu: Option<Duration>,
}

impl Clock {
    fn start() -> Self {
        Self { on_cpu: Self::on_cpu(), start: Instant::now() }
    }

    fn milliseconds(&self) -> f64 {
        let on_cpu = self.on_cpu.zip(Self::on_cpu()).map(|(from, to)| to - from);
        on_cpu.unwrap_or_else(|| self.start.elapsed()).as_secs_f64() * 1e3
    }

    /// What this program has taken; it has one thread.
    fn on_cpu() -> Option<Duration> {
        // Else it is as of the last tick.
        std::thread::yield_now();
        let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
        Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
    }
}
