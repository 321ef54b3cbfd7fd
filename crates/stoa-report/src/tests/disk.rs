//! Reports on remote files with chunks on disk.

use std::path::Path;

use super::*;
use crate::disk::DiskOptions;
use crate::hot::RewarmOptions;

async fn with_disk(folder: &Path, cache_bytes_max: u64) -> Reports {
    let options = DiskOptions { folder: folder.to_owned(), bytes_max: 64 << 20 };
    let reports = Reports::new(ReportOptions { cache_bytes_max, ..ReportOptions::default() });
    let reports = reports.with_disk(options);
    reports.disk.as_ref().unwrap().opened().await;
    reports
}

#[tokio::test]
async fn after_a_restart_chunks_come_from_disk() {
    let home = Home::new(4, 5000).await;
    let (_, files) = home.copied(latency(0)).await;
    let folder = tempfile::tempdir().unwrap();
    let report = report(&home.table, 150, 260);
    let before = with_disk(folder.path(), 64 << 20).await;
    home.show(&before, &files);
    let cold = home.ask(&before, &report).await;
    let list = before.hot_list(1000);
    drop(before);

    let after = with_disk(folder.path(), 64 << 20).await;
    home.show(&after, &files);
    let again = home.ask(&after, &report).await;
    assert_eq!(again.batch, cold.batch);
    // Only tails, which say what the files are now.
    assert_eq!((again.work.requests, again.work.disk_hits), (4, 4 * 2 * 3));
    assert!(after.cache_status().disk_hits > 0 && after.cache_status().disk_is_writing);
    drop(after);

    let rewarmed = with_disk(folder.path(), 64 << 20).await;
    home.show(&rewarmed, &files);
    let lookup = |_| std::future::ready(Some(home.table.clone()));
    let came = rewarmed.rewarm(&list, RewarmOptions::default(), lookup).await;
    assert_eq!((came.files, came.chunks), (4, 4 * 2 * 3));
    assert_eq!(rewarmed.cache_status().disk_misses, 0);
    assert_eq!(home.ask(&rewarmed, &report).await.work.requests, 0);
}

#[tokio::test]
async fn what_memory_drops_comes_from_disk() {
    let home = Home::new(2, 20_000).await;
    let (_, files) = home.copied(latency(0)).await;
    let folder = tempfile::tempdir().unwrap();
    // Room for the tails and few chunks.
    let reports = with_disk(folder.path(), 200 << 10).await;
    home.show(&reports, &files);
    let expected = crate::tests::reports();
    let all = report(&home.table, 0, 2000);
    let mut from_disk = 0;
    for _ in 0..5 {
        let answer = home.ask(&reports, &all).await;
        assert_eq!(answer.batch, home.ask(&expected, &all).await.batch);
        from_disk += answer.work.disk_hits;
        let written = |status: crate::CacheStatus| status.disk_written + status.disk_dropped;
        while written(reports.cache_status()) < 2 * 20 * 3 {
            tokio::task::yield_now().await;
        }
    }
    assert!(from_disk > 100, "{from_disk}");
}

#[tokio::test]
async fn an_overwritten_file_is_not_answered_from_disk() {
    let home = Home::new(1, 3000).await;
    let (memory, files) = home.copied(latency(0)).await;
    let folder = tempfile::tempdir().unwrap();
    let report = report(&home.table, 0, 299);
    let before = with_disk(folder.path(), 64 << 20).await;
    home.show(&before, &files);
    let old = home.ask(&before, &report).await;
    drop(before);
    let path = &files[0].path;
    let bytes = memory.get(path).await.unwrap().bytes().await.unwrap();
    memory.put(path, bytes.into()).await.unwrap();
    let after = with_disk(folder.path(), 64 << 20).await;
    home.show(&after, &files);
    let new = home.ask(&after, &report).await;
    // The store calls it by another name, so it was read, though it is the same.
    assert_eq!((new.batch, new.work.disk_hits), (old.batch, 0));
    assert_eq!(after.cache_status().disk_misses, 9);
}

#[tokio::test]
async fn local_files_are_not_kept_twice() {
    let home = Home::new(1, 3000).await;
    let folder = tempfile::tempdir().unwrap();
    let reports = with_disk(folder.path(), 64 << 20).await;
    home.ask(&reports, &report(&home.table, 0, 299)).await;
    let status = reports.cache_status();
    assert_eq!((status.disk_misses, status.disk_written, status.disk_bytes), (0, 0, 0));
}
