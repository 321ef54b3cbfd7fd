//! The tier alone: bound, restart, damage, a full disk.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use arrow_array::Int64Array;

use super::*;
use crate::chunk::chunk;

/// 8 KB that do not pack.
fn some_chunk(seed: i64) -> Arc<Chunk> {
    let values =
        (0..1000).map(|n: i64| (n + 1000 * seed).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64));
    Arc::new(chunk(Int64Array::from_iter_values(values)).compact())
}

fn key(group: u32) -> DiskKey {
    DiskKey::new("s3://bucket/file.orc", 1234, "\"etag\"", group, 7)
}

async fn open(folder: &Path, bytes_max: u64) -> DiskTier {
    let tier = DiskTier::open(DiskOptions { folder: folder.to_owned(), bytes_max });
    tier.opened().await;
    tier
}

/// Puts chunks one after another, so that none is dropped, and closes the tier.
async fn filled(folder: &Path, bytes_max: u64, groups: std::ops::Range<u32>) {
    let tier = open(folder, bytes_max).await;
    for group in groups {
        put(&tier, group).await;
    }
}

async fn put(tier: &DiskTier, group: u32) {
    tier.put(key(group), some_chunk(group.into()));
    let is_done = |status: &DiskStatus| status.written + status.dropped;
    let before = is_done(&tier.status());
    // Either it was written before this looked, or it will be.
    while tier.shared.index.lock().find(&key(group)).is_none() && is_done(&tier.status()) == before
    {
        tokio::task::yield_now().await;
    }
}

/// Whether a chunk is there, and is the one that was put.
async fn has(tier: &DiskTier, group: u32) -> bool {
    let found = tier.get(vec![key(group)]).await.remove(0);
    let Some(found) = found else { return false };
    let expected = some_chunk(group.into());
    assert_eq!(found.rows(), expected.rows());
    (0..found.rows()).for_each(|row| assert_eq!(found.number(row), expected.number(row)));
    true
}

fn folder_bytes(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().metadata().unwrap());
    files.map(|file| file.len()).sum()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some()).collect();
    files.sort_unstable();
    files
}

#[tokio::test]
async fn the_bound_holds_and_the_oldest_go() {
    let folder = tempfile::tempdir().unwrap();
    let tier = open(folder.path(), 1 << 20).await;
    for group in 0..400 {
        put(&tier, group).await;
        assert!(tier.status().bytes <= 1 << 20 && folder_bytes(folder.path()) <= 1 << 20);
    }
    assert_eq!(tier.status().written, 400);
    assert!(tier.status().entries > 100, "{:?}", tier.status());
    assert!(has(&tier, 399).await && has(&tier, 320).await && !has(&tier, 0).await);
    drop(tier);
    // A lower bound holds from the start.
    let tier = open(folder.path(), 256 << 10).await;
    assert!(folder_bytes(folder.path()) <= 256 << 10);
    assert!(has(&tier, 399).await && !has(&tier, 330).await);
}

#[tokio::test]
async fn what_is_read_again_and_again_stays() {
    let folder = tempfile::tempdir().unwrap();
    let tier = open(folder.path(), 1 << 20).await;
    for group in 0..600 {
        put(&tier, group).await;
        assert!(has(&tier, 3.min(group)).await, "{group}");
    }
    assert!(!has(&tier, 4).await);
}

#[tokio::test]
async fn a_restart_finds_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 8 << 20, 0..50).await;
    filled(folder.path(), 8 << 20, 50..60).await;
    let tier = open(folder.path(), 8 << 20).await;
    assert_eq!(tier.status().entries, 60);
    for group in 0..60 {
        assert!(has(&tier, group).await, "{group}");
    }
    let other = DiskKey::new("s3://bucket/file.orc", 1234, "\"other\"", 1, 7);
    assert!(tier.get(vec![other]).await[0].is_none());
    assert_eq!((tier.status().hits, tier.status().misses), (60, 1));
    tier.clear();
    assert!(!has(&tier, 1).await);
    assert_eq!((tier.status().bytes, segments(folder.path()).len()), (0, 0));
    put(&tier, 1).await;
    assert!(has(&tier, 1).await);
}

#[tokio::test]
async fn damaged_and_torn_entries_are_misses() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 8 << 20, 0..10).await;
    let [segment] = segments(folder.path()).try_into().unwrap();
    let whole = std::fs::read(&segment).unwrap();
    let entry = whole.len() / 10;
    for at in (0..whole.len()).step_by(487) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        std::fs::write(&segment, &bytes).unwrap();
        let tier = open(folder.path(), 8 << 20).await;
        for group in 0..10_u32 {
            let is_damaged = at / entry == group as usize;
            // Behind a damaged length nothing can be found.
            let may_be_lost = at / entry < group as usize && at % entry < 16;
            let found = has(&tier, group).await;
            assert!(if is_damaged { !found } else { found || may_be_lost }, "{at} {group}");
        }
    }
    for cut in [0, 1, 15, 16, 100, entry - 1, entry, entry + 1, 5 * entry + 7] {
        std::fs::write(&segment, &whole[..cut]).unwrap();
        let tier = open(folder.path(), 8 << 20).await;
        for group in 0..10_u32 {
            assert_eq!(
                has(&tier, group).await,
                (group as usize + 1) * entry <= cut,
                "{cut} {group}"
            );
        }
    }
}

#[tokio::test]
async fn two_do_not_use_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), 1 << 20).await;
    put(&first, 1).await;
    let second = open(folder.path(), 1 << 20).await;
    assert!(!second.status().is_writing && !has(&second, 1).await);
    assert!(first.status().is_writing && has(&first, 1).await);
}

#[tokio::test]
async fn a_folder_that_cannot_be_is_no_folder() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let tier = open(file.path(), 1 << 20).await;
    tier.put(key(1), some_chunk(1));
    assert!(!has(&tier, 1).await && !tier.status().is_writing);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_ends_the_writing_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 8 << 20, 0..1).await;
    let tier = open(folder.path(), 8 << 20).await;
    assert!(tier.status().is_writing);
    std::os::unix::fs::symlink("/dev/full", folder.path().join("chunks-00000001.seg")).unwrap();
    tier.put(key(1), some_chunk(1));
    while tier.status().is_writing {
        tokio::task::yield_now().await;
    }
    assert!(has(&tier, 0).await && !has(&tier, 1).await);
    tier.put(key(2), some_chunk(2));
    while tier.status().dropped == 0 {
        tokio::task::yield_now().await;
    }
    assert!(has(&tier, 0).await && !has(&tier, 2).await);
}
