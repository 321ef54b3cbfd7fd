//! Measures the CPU time of reading a local ORC file that is in memory, without I/O.
//!
//! `cargo run --release -p stoa-orc --example measure_read -- FILE [COLUMN,… [utf8|view|dictionary]]`
//!
//! Prints the median of nine reads in CPU seconds of this thread (Linux: `/proc/thread-self`).

use std::sync::Arc;

use bytes::Bytes;
use stoa_error::{Error, Result};
use stoa_orc::{
    Decoder, FileMetadata, Projection, ReadOptions, Step, StringOutput, TailDecoder, TailStep,
};

const READS: usize = 9;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or_else(|| Error::invalid("usage: measure_read FILE"))?;
    let file = std::fs::read(&path).map_err(|e| Error::not_found(&path).with_source(e))?;
    let file = Bytes::from(file);
    let TailStep::Done(metadata) = TailDecoder::new(file.len() as u64).decode(file.clone())? else {
        return Err(Error::internal("the whole file was given"));
    };
    let metadata = Arc::new(metadata);
    let columns = arguments.next().filter(|names| !names.is_empty());
    let strings = match arguments.next().as_deref() {
        Some("view") => StringOutput::Utf8View,
        Some("dictionary") => StringOutput::Dictionary,
        _ => StringOutput::Utf8,
    };
    let options = options(&metadata, columns.as_deref())?.with_strings(strings);
    let mut seconds = Vec::new();
    let (mut rows, mut bytes) = (0, 0);
    for _ in 0..READS {
        let before = cpu_seconds()?;
        (rows, bytes) = read(&file, metadata.clone(), options.clone())?;
        seconds.push(cpu_seconds()? - before);
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[READS / 2];
    println!(
        "{rows} rows, {} MB of Arrow: {median:.3} s CPU ({:.0} MB/s), from {:.3} to {:.3}",
        bytes / 1_000_000,
        bytes as f64 / 1e6 / median,
        seconds[0],
        seconds[READS - 1],
    );
    Ok(())
}

fn options(metadata: &FileMetadata, names: Option<&str>) -> Result<ReadOptions> {
    let Some(names) = names else { return Ok(ReadOptions::default()) };
    let root = &metadata.types.types()[0];
    let column = |name: &str| {
        let index = root.field_names.iter().position(|n| n == name);
        index.map(|i| root.children[i]).ok_or_else(|| Error::not_found(format!("column {name}")))
    };
    let columns = names.split(',').map(column).collect::<Result<_>>()?;
    Ok(ReadOptions::default().with_projection(Projection::Columns(columns)))
}

/// Reads all rows; returns their number and the memory of their arrays.
fn read(file: &Bytes, metadata: Arc<FileMetadata>, options: ReadOptions) -> Result<(usize, usize)> {
    let mut decoder = Decoder::new(metadata, options)?;
    let (mut rows, mut bytes) = (0, 0);
    loop {
        match decoder.next()? {
            Step::NeedsData(ranges) => {
                for range in ranges {
                    let part = file.slice(range.start as usize..range.end as usize);
                    decoder.push(range.start, part);
                }
            }
            Step::Batch(batch) => {
                rows += batch.num_rows();
                bytes += batch.get_array_memory_size();
            }
            Step::Finished => return Ok((rows, bytes)),
        }
    }
}

/// CPU time of this thread.
fn cpu_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")
        .map_err(|e| Error::unsupported("CPU time is known on Linux only").with_source(e))?;
    let nanos = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanos.map(|nanos| nanos / 1e9).ok_or_else(|| Error::internal("no CPU time"))
}
