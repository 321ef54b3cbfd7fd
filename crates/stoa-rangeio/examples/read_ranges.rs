//! Reads byte ranges of an object through a range reader and shows what it did.
//!
//! `cargo run -p stoa-rangeio --example read_ranges -- FILE 0-100 4000-5000 …` reads a local file;
//! without arguments a generated object in a store made as slow as S3. Any other `object_store`
//! (S3, GCS, Azure) goes in the same place.
#![allow(clippy::expect_used)]

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use stoa_rangeio::throttle::{Throttle, ThrottledStore};
use stoa_rangeio::{RangeReader, ReaderOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (reader, path, ranges) = match arguments.next() {
        Some(file) => {
            let file = PathBuf::from(file).canonicalize().expect("the file exists");
            let path = Path::from_absolute_path(&file).expect("a path");
            let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new());
            let ranges = arguments.map(|text| parse(&text)).collect();
            (RangeReader::new(store, ReaderOptions::local_file()), path, ranges)
        }
        None => {
            let path = Path::from("generated");
            let memory = InMemory::new();
            memory.put(&path, vec![7; 64 << 20].into()).await.expect("memory");
            let like_s3 = Throttle {
                latency: Duration::from_millis(30),
                bandwidth: Some(90e6),
                ..Throttle::default()
            };
            let store: Arc<dyn ObjectStore> =
                Arc::new(ThrottledStore::new(Arc::new(memory), like_s3));
            // Every second half mebibyte.
            let ranges = (0..64).map(|at| at << 20..(at << 20) + (512 << 10)).collect();
            (RangeReader::new(store, ReaderOptions::object_store()), path, ranges)
        }
    };
    let ranges: Vec<Range<u64>> = ranges;
    println!("{} ranges, {} reads:", ranges.len(), reader.plan(&ranges).len());
    for read in reader.plan(&ranges) {
        println!(
            "  {:?}: {} of {} bytes needed",
            read.range,
            read.needed_bytes(),
            read.read_bytes()
        );
    }
    let chunks = reader.read(&path, &ranges).await.expect("read");
    let held: usize = chunks.iter().map(|(_, bytes)| bytes.len()).sum();
    println!("{} chunks of {held} bytes in all; {:?}", chunks.len(), reader.metrics().counts());
}

fn parse(text: &str) -> Range<u64> {
    let (start, end) = text.split_once('-').expect("a range such as 0-100");
    start.parse().expect("a number")..end.parse().expect("a number")
}
