//! Reports on files that nothing is known of, and on files that change.

use super::*;

#[tokio::test]
async fn a_cold_report_takes_two_round_trips() {
    let home = Home::new(12, 100_000).await;
    let (_, files) = home.copied(latency(30)).await;
    let report = report(&home.table, 4000, 4600);
    let expected = home.ask(&reports(), &report).await;
    let reports = reports();
    home.show(&reports, &files);
    tokio::time::pause();
    let started = stoa_env::timer::now();
    let cold = home.ask(&reports, &report).await;
    let took = started.elapsed();
    // Timers round up to milliseconds; another round would be 30 more.
    assert!((60..70).contains(&took.as_millis()), "{took:?}");
    assert_eq!(cold.batch, expected.batch);
    // Of some 170 KB per file; whole blocks of 16 KiB are read, which have a checksum each.
    assert!(cold.work.bytes_read <= 2_000_000, "{:?}", cold.work);
    assert_eq!((cold.work.files_read, cold.work.chunk_hits), (12, 0));
    let started = stoa_env::timer::now();
    let warm = home.ask(&reports, &report).await;
    assert_eq!((warm.work.requests, warm.work.chunk_misses), (0, 0));
    assert_eq!(warm.batch, expected.batch);
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn of_two_cold_reports_at_once_one_reads() {
    let home = Home::new(3, 5000).await;
    let (_, files) = home.copied(latency(30)).await;
    let report = report(&home.table, 0, 1000);
    let reports = reports();
    home.show(&reports, &files);
    tokio::time::pause();
    let (one, other) = tokio::join!(home.ask(&reports, &report), home.ask(&reports, &report));
    assert_eq!(one.batch, other.batch);
    let alone = super::reports();
    home.show(&alone, &files);
    let alone = home.ask(&alone, &report).await;
    assert_eq!(one.work.requests + other.work.requests, alone.work.requests);
}

/// Bytes of two files of one length and different rows.
async fn twins() -> (Home, bytes::Bytes) {
    let home = Home::new(1, 3000).await;
    for salt in 1..400 {
        let other = home.rewritten(salt).await;
        if other.len() as u64 == home.files[0].file_bytes {
            return (home, other);
        }
    }
    panic!("no two files have the same length");
}

#[tokio::test]
async fn a_file_that_is_overwritten_is_never_mixed_with_what_it_was() {
    let (home, other) = twins().await;
    let (low, all) = (report(&home.table, 0, 99), report(&home.table, 0, 299));
    let expected = home.ask(&reports(), &all).await;
    let file = home.files[0].clone();
    let (memory, copied) = home.copied(latency(1)).await;
    let on_memory: Arc<dyn ObjectStore> = memory;
    for (store, file) in [(on_memory, copied[0].clone()), (file.store.clone(), file)] {
        let reports = reports();
        home.show(&reports, std::slice::from_ref(&file));
        let before = home.ask(&reports, &low).await;
        store.put(&file.path, other.clone().into()).await.unwrap();
        // What is in memory is all of one version.
        assert_eq!(home.ask(&reports, &low).await.batch, before.batch);
        // What is read is all of the other.
        let mixed = home.ask(&reports, &all).await.batch;
        let others = crate::tests::reports();
        home.show(&others, std::slice::from_ref(&file));
        assert_eq!(mixed, home.ask(&others, &all).await.batch);
        assert_ne!(mixed, expected.batch);
        let low_again = home.ask(&reports, &low).await;
        assert_ne!(low_again.batch, before.batch);
    }
}

#[tokio::test]
async fn a_local_file_that_is_written_over_in_place_is_noticed() {
    let (home, other) = twins().await;
    let (low, all) = (report(&home.table, 0, 99), report(&home.table, 0, 299));
    let reports = reports();
    let before = home.ask(&reports, &low).await;
    std::fs::write(format!("/{}", home.files[0].path), &other).unwrap();
    assert_eq!(home.ask(&reports, &low).await.batch, before.batch);
    assert!(sendable(reports.warm(&home.table)).await.unwrap().complete);
    let expected = home.ask(&super::reports(), &all).await;
    let after = home.ask(&reports, &all).await;
    assert_eq!((after.batch, after.work.chunk_misses), (expected.batch, 0));
    assert_ne!(home.ask(&reports, &low).await.batch, before.batch);
}
