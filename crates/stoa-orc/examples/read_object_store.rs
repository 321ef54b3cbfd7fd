//! Reads an ORC file from an object store: the tail, then only what a filter needs, in few requests.
//!
//! `cargo run --release -p stoa-orc --example read_object_store -- [FILE]`
//!
//! The store is a directory with FILE, or memory with a generated file, both made as slow as S3 in the
//! same region. Any other `object_store` (S3, GCS, Azure) goes in the same place. `stoa_rangeio`
//! merges ranges into few requests, retries and counts; anything else that reads ranges would do.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch};
use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use stoa_error::{Error, Result};
use stoa_orc::{
    ColumnRef, CompareOp, Decoder, FileMetadata, Literal, Predicate, ReadOptions, Step,
    TailDecoder, TailStep, Writer, WriterOptions,
};
use stoa_rangeio::throttle::{Throttle, ThrottledStore};
use stoa_rangeio::{RangeReader, ReaderOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (store, path, options) = match std::env::args().nth(1) {
        Some(file) => {
            let path = std::path::Path::new(&file).canonicalize();
            let path = path.map_err(|e| Error::not_found(&file).with_source(e))?;
            let path = Path::from_absolute_path(path).map_err(|e| store_error(e.into()))?;
            let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new());
            (store, path, ReadOptions::default())
        }
        None => {
            let path = Path::from("squares.orc");
            let memory = InMemory::new();
            memory.put(&path, squares()?.into()).await.map_err(store_error)?;
            let options = ReadOptions::default().with_predicate(number_is(1_234_567));
            (Arc::new(memory) as Arc<dyn ObjectStore>, path, options)
        }
    };
    let like_s3 = Throttle {
        latency: Duration::from_millis(30),
        bandwidth: Some(90e6),
        ..Throttle::default()
    };
    let store = Arc::new(ThrottledStore::new(store, like_s3));
    // Tables know the length of their files; here the store is asked.
    let file_bytes = store.head(&path).await.map_err(store_error)?.size;
    let reader = RangeReader::new(store, ReaderOptions::object_store());

    let metadata = Arc::new(read_tail(&reader, &path, file_bytes).await?);
    println!("{} rows in {} stripes, {file_bytes} bytes", metadata.rows, metadata.stripes.len());
    let mut decoder = Decoder::new(metadata, options)?;
    let mut rows = 0;
    loop {
        match decoder.next()? {
            Step::NeedsData(ranges) => {
                for (offset, bytes) in reader.read(&path, &ranges).await? {
                    decoder.push(offset, bytes);
                }
            }
            // What cannot match is mostly left out; a batch may still hold rows that do not.
            Step::Batch(batch) => rows += batch.num_rows(),
            Step::Finished => break,
        }
    }
    println!("{rows} rows read; {:?}", decoder.metrics());
    let counts = reader.metrics().counts();
    println!(
        "{} round trips, {} requests, {} bytes needed, {} bytes read",
        counts.calls, counts.requests, counts.bytes_needed, counts.bytes_read
    );
    Ok(())
}

async fn read_tail(reader: &RangeReader, path: &Path, file_bytes: u64) -> Result<FileMetadata> {
    let mut tail = TailDecoder::new(file_bytes);
    let mut wanted = tail.first_read();
    loop {
        let bytes = reader.read_one(path, file_bytes - wanted..file_bytes).await?;
        match tail.decode(bytes)? {
            TailStep::NeedsTail(more) => wanted = more,
            TailStep::Done(metadata) => return Ok(metadata),
        }
    }
}

/// A file of two million numbers and their squares.
fn squares() -> Result<Bytes> {
    let batch = |first: i64| {
        let numbers = Int64Array::from_iter_values(first..first + 10_000);
        let squares = Int64Array::from_iter_values((first..first + 10_000).map(|n| n * n));
        RecordBatch::try_from_iter([
            ("number", Arc::new(numbers) as _),
            ("square", Arc::new(squares) as _),
        ])
        .map_err(|e| Error::internal("columns of different lengths").with_source(e))
    };
    let mut writer = Writer::new(&batch(0)?.schema(), WriterOptions::default())?;
    let mut file = Vec::new();
    for at in 0..200 {
        writer.write(&batch(at * 10_000)?)?;
        file.extend_from_slice(&writer.take_output());
    }
    writer.finish()?;
    file.extend_from_slice(&writer.take_output());
    Ok(file.into())
}

/// `number = value`; columns are numbered in the order of the schema, the root is 0.
fn number_is(value: i64) -> Predicate {
    let (column, value) = (ColumnRef::Id(1), Literal::Int(value));
    Predicate::Compare { column, op: CompareOp::Eq, value }
}

fn store_error(error: object_store::Error) -> Error {
    Error::unavailable("the store does not answer").with_source(error)
}
