//! What is hot survives a restart.

use super::*;
use crate::hot::{HotList, RewarmOptions, Rewarmed};

/// A list as another process reads it.
fn saved(reports: &Reports, chunks_max: usize) -> HotList {
    let list = reports.hot_list(chunks_max);
    let again = HotList::from_json(&list.to_json().unwrap()).unwrap();
    assert_eq!(again, list);
    list
}

async fn rewarm(home: &Home, reports: &Reports, list: &HotList, bytes_max: u64) -> Rewarmed {
    let options = RewarmOptions { bytes_max, files_at_once: 2 };
    let lookup = |ident| async move { home.warehouse.table(&ident).await.ok() };
    sendable(reports.rewarm(list, options, lookup)).await
}

#[tokio::test]
async fn a_rewarmed_cache_answers_without_reading() {
    let home = Home::new(4, 5000).await;
    let report = report(&home.table, 150, 260);
    let before = reports();
    let answer = home.ask(&before, &report).await;
    let list = saved(&before, 1000);
    assert_eq!(list.files.len(), 4);
    assert_eq!(list.files[0].parts.len(), 1);
    assert_eq!(list.files[0].parts[0].groups, [(1, 2)]);
    let after = reports();
    let rewarmed = rewarm(&home, &after, &list, u64::MAX).await;
    assert_eq!(rewarmed, Rewarmed { files: 4, chunks: 4 * 2 * 3, ..Rewarmed::default() });
    let again = home.ask(&after, &report).await;
    assert_eq!((again.work.requests, again.batch), (0, answer.batch));
}

#[tokio::test]
async fn the_hottest_come_first_and_heat_fades() {
    let home = Home::new(1, 5000).await;
    let reports = reports();
    let (early, late) = (report(&home.table, 0, 99), report(&home.table, 400, 499));
    let hottest = |list: HotList| list.files[0].parts[0].groups.clone();
    for _ in 0..10 {
        home.ask(&reports, &early).await;
    }
    home.ask(&reports, &late).await;
    assert_eq!(hottest(saved(&reports, 3)), [(0, 1)]);
    for _ in 0..7 {
        home.ask(&reports, &late).await;
    }
    assert_eq!(hottest(saved(&reports, 3)), [(4, 1)]);
    assert_eq!(saved(&reports, 0).files, []);
}

#[tokio::test]
async fn what_is_gone_is_left_out_and_the_bound_holds() {
    let home = Home::new(6, 5000).await;
    let report = report(&home.table, 0, 499);
    let before = reports();
    home.ask(&before, &report).await;
    let whole = before.cache_status().bytes;
    let mut list = saved(&before, 1000);
    list.files[1].location.push('x');
    list.files[2].file_bytes += 1;
    list.files[3].table = "00000000-0000-0000-0000-000000000000".to_owned();
    list.files[3].name = "nobody".to_owned();
    list.files[4].parts[0].groups.push((4_000_000_000, 4_000_000_000));
    let path = home.files.iter().find(|file| file.location == list.files[5].location).unwrap();
    path.store.delete(&path.path).await.unwrap();
    let expected =
        Rewarmed { files: 2, chunks: 2 * 15, files_gone: 3, files_failed: 1, files_left: 0 };
    assert_eq!(rewarm(&home, &reports(), &list, u64::MAX).await, expected);

    let small = reports();
    let rewarmed = rewarm(&home, &small, &saved(&before, 1000), whole / 4).await;
    assert!(rewarmed.files_left >= 2, "{rewarmed:?}");
    // A sixth each: two were being read when there was no more room.
    assert!(small.cache_status().bytes < whole / 3 * 2);
}

#[test]
fn other_lists_are_refused() {
    use stoa_error::ErrorKind::{Corrupt, Unsupported};
    for (text, kind) in [
        ("", Corrupt),
        ("{\"version\":1}", Corrupt),
        ("{\"version\":2,\"hot\":[]}", Unsupported),
        ("[[[[[", Corrupt),
    ] {
        assert_eq!(HotList::from_json(text.as_bytes()).unwrap_err().kind(), kind, "{text}");
    }
}
