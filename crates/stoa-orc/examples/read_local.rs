//! Reads a local ORC file and prints its schema, row count and first rows.
//!
//! `cargo run --release -p stoa-orc --example read_local -- FILE`

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use stoa_error::{Error, Result};
use stoa_orc::{Decoder, ReadOptions, Step, TailDecoder, TailStep};

fn main() -> Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| Error::invalid("usage: read_local FILE"))?;
    let file = File::open(&path).map_err(|e| Error::not_found(&path).with_source(e))?;
    let length = file.metadata().map_err(|e| Error::unavailable(&path).with_source(e))?.len();
    let read = |offset: u64, bytes: u64| {
        let mut buffer = vec![0; bytes as usize];
        let result = file.read_exact_at(&mut buffer, offset);
        result.map(|()| Bytes::from(buffer)).map_err(|e| Error::unavailable(&path).with_source(e))
    };

    let mut tail = TailDecoder::new(length);
    let mut wanted = tail.first_read();
    let metadata = loop {
        match tail.decode(read(length - wanted, wanted)?)? {
            TailStep::NeedsTail(more) => wanted = more,
            TailStep::Done(metadata) => break Arc::new(metadata),
        }
    };
    let mut decoder = Decoder::new(metadata, ReadOptions::default())?;
    println!("{:#?}", decoder.schema());
    let mut rows = 0;
    loop {
        match decoder.next()? {
            Step::NeedsData(ranges) => {
                for range in ranges {
                    let bytes = read(range.start, range.end - range.start)?;
                    decoder.push(range.start, bytes);
                }
            }
            Step::Batch(batch) => {
                if rows == 0 {
                    let first = batch.slice(0, batch.num_rows().min(5));
                    let table = arrow_cast::pretty::pretty_format_batches(&[first]);
                    println!("{}", table.map_err(|e| Error::internal(e.to_string()))?);
                }
                rows += batch.num_rows();
            }
            Step::Finished => break,
        }
    }
    println!("{rows} rows, {:?}", decoder.metrics());
    Ok(())
}
