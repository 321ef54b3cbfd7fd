use std::collections::HashMap;

use stoa_rangeio::{RangeReader, ReaderOptions};

use super::*;

fn file(bytes: u64) -> Arc<ScanFile> {
    let store: Arc<dyn object_store::ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    Arc::new(ScanFile {
        location: "memory:///a.orc".into(),
        reader: RangeReader::new(Arc::clone(&store), ReaderOptions::memory()),
        store,
        path: "a.orc".into(),
        file_bytes: bytes,
        rows: 1,
        partition: Vec::new(),
        partition_text: String::new(),
        value_counts: HashMap::new(),
        null_counts: HashMap::new(),
        nan_counts: HashMap::new(),
        lower_bounds: HashMap::new(),
        upper_bounds: HashMap::new(),
        split_offsets: Vec::new(),
        sort_order_id: None,
        snapshot_id: None,
        format: stoa_table::FileFormat::Orc,
        is_encrypted: false,
        deletes: Vec::new(),
        has_defaults: false,
    })
}

fn check(files: &[u64], count: usize) {
    let files: Vec<Arc<ScanFile>> = files.iter().map(|bytes| file(*bytes)).collect();
    let partitions = deal(cut(&files, count, PARTITION_BYTES_MIN), count);
    assert_eq!(partitions.len(), count.max(1));
    let mut parts = 0;
    for split in partitions.iter().flatten() {
        assert!(split.part < split.parts);
        parts += 1;
    }
    assert!(parts >= files.len(), "every file is dealt");
}

#[test]
fn files_are_dealt_to_all_partitions() {
    check(&[], 1);
    check(&[1, 2, 3], 1);
    check(&[100 << 20], 4);
    check(&[100 << 20, 1, 50 << 20], 2);
}

#[test]
fn a_large_file_is_cut_by_stripes() {
    let partitions = deal(cut(&[file(64 << 20)], 2, PARTITION_BYTES_MIN), 2);
    assert_eq!(partitions.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(partitions[0][0].parts, 2);
}
