//! What the tests of this crate share: reading files in memory, and comparing rows with JSON.
#![allow(dead_code)]

pub mod build;
pub mod generate;
pub mod json;
pub mod memory;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use stoa_error::Result;
use stoa_orc::{
    DecodeMetrics, Decoder, FileMetadata, ReadOptions, Step, TailDecoder, TailStep, Writer,
    WriterOptions,
};

/// Reads the tail of a file.
pub fn metadata(file: &Bytes) -> Result<FileMetadata> {
    let mut decoder = TailDecoder::new(file.len() as u64);
    let mut wanted = decoder.first_read();
    for _ in 0..3 {
        let from = (file.len() as u64).saturating_sub(wanted) as usize;
        match decoder.decode(file.slice(from..))? {
            TailStep::NeedsTail(more) => wanted = more,
            TailStep::Done(metadata) => return Ok(metadata),
        }
    }
    panic!("the tail decoder asks again and again");
}

/// What reading came to.
pub struct Read {
    pub batches: Vec<RecordBatch>,
    pub metrics: DecodeMetrics,
    pub ranges: Vec<Range<u64>>,
}

impl Read {
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    pub fn concat(&self) -> Option<RecordBatch> {
        let first = self.batches.first()?;
        Some(arrow_select::concat::concat_batches(&first.schema(), &self.batches).unwrap())
    }
}

/// Reads a file, pushing exactly the ranges that are asked for.
pub fn read(file: &Bytes, options: ReadOptions) -> Result<Read> {
    let metadata = Arc::new(metadata(file)?);
    let mut decoder = Decoder::new(metadata, options)?;
    drain(file, &mut decoder)
}

/// Runs a decoder to its end.
pub fn drain(file: &Bytes, decoder: &mut Decoder) -> Result<Read> {
    let (mut batches, mut all) = (Vec::new(), Vec::new());
    loop {
        match decoder.next()? {
            Step::NeedsData(ranges) => {
                for range in ranges {
                    let bytes = file.slice(range.start as usize..range.end as usize);
                    decoder.push(range.start, bytes);
                    all.push(range);
                }
            }
            Step::Batch(batch) => {
                assert_eq!(batch.schema(), decoder.schema());
                batches.push(batch);
            }
            Step::Finished => break,
        }
    }
    Ok(Read { batches, metrics: decoder.metrics().clone(), ranges: all })
}

/// Writes batches to a file in memory.
pub fn write(batches: &[RecordBatch], options: WriterOptions) -> Bytes {
    let mut writer = Writer::new(&batches[0].schema(), options).unwrap();
    let mut file = Vec::new();
    for batch in batches {
        writer.write(batch).unwrap();
        file.extend_from_slice(&writer.take_output());
    }
    writer.finish().unwrap();
    file.extend_from_slice(&writer.take_output());
    Bytes::from(file)
}

/// Files of the corpus, by name, with the expected rows if there are some.
pub fn corpus() -> Vec<(String, Bytes, Option<String>)> {
    let Some(dir) = stoa_testkit::shared_dir("orc-corpus") else { return Vec::new() };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "orc") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let expected = dir.join("expected").join(format!("{name}.jsn.gz"));
        let expected = std::fs::File::open(expected).ok().map(|file| {
            let mut text = String::new();
            let mut gz = flate2::read::MultiGzDecoder::new(file);
            std::io::Read::read_to_string(&mut gz, &mut text).unwrap();
            text
        });
        files.push((name, Bytes::from(std::fs::read(&path).unwrap()), expected));
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}
