//! The reader returns what was asked for, whatever the plan.

use std::ops::Range;
use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use stoa_rangeio::{RangeReader, ReaderOptions};

async fn check(options: ReaderOptions, ranges: &[Range<u64>]) {
    let content: Vec<u8> = (0..10_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let path = Path::from("file");
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    store.put(&path, content.clone().into()).await.unwrap();
    let reader = RangeReader::new(store, options);
    let chunks = reader.read(&path, ranges).await.unwrap();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        let (offset, bytes) = chunks
            .iter()
            .find(|(at, bytes)| *at <= range.start && range.end <= at + bytes.len() as u64)
            .unwrap_or_else(|| panic!("{range:?} is not inside one chunk"));
        let got = &bytes[(range.start - offset) as usize..(range.end - offset) as usize];
        assert_eq!(got, &content[range.start as usize..range.end as usize]);
    }
}

#[tokio::test]
async fn every_range_comes_back_whole() {
    let ranges = [0..10, 5..20, 100..4000, 4000..4010, 9000..10_000, 50..50, 3..4];
    for options in
        [ReaderOptions::memory(), ReaderOptions::local_file(), ReaderOptions::object_store()]
    {
        for max in [1, 7, 64, 1000, 100_000] {
            for gap in [0, 50, 5000] {
                for tolerance in [0.0, 0.1, 10.0] {
                    let mut options = options.clone();
                    options.plan.max_read_bytes = max;
                    options.plan.min_seek_size = gap;
                    options.plan.tolerance = tolerance;
                    check(options, &ranges).await;
                }
            }
        }
    }
}
