//! What daemons need to share reports: whether one is warm, and in which part of its table it reads.

use stoa_ingest::FreshRows;

use super::{Home, report, reports};
use crate::memory::Uncounted;
use crate::outcome::{Answer, Missing, Outcome};
use crate::report::Report;
use crate::reports::Reports;
use crate::{PARTS, warm::columns_of};

async fn without_reading(home: &Home, reports: &Reports, report: &Report) -> Option<Answer> {
    let fresh = FreshRows::none(&home.table);
    let missing = Missing::Leave;
    let run = reports.run_reading(&home.table, &fresh, report, &Uncounted, missing);
    match run.await.unwrap() {
        Outcome::Done(answer) => Some(answer),
        Outcome::Cold => None,
        Outcome::Beyond => panic!("it is small"),
    }
}

#[tokio::test]
async fn what_is_not_in_memory_is_not_read_where_it_is_not_to_be() {
    let home = Home::new(2, 20_000).await;
    let reports = reports();
    let (some, others) = (report(&home.table, 0, 10), report(&home.table, 1500, 1510));
    assert!(without_reading(&home, &reports, &some).await.is_none(), "no tail");
    let asked = home.ask(&reports, &some).await;
    assert!(asked.work.requests > 0);
    let warm = without_reading(&home, &reports, &some).await.unwrap();
    assert_eq!((warm.batch, warm.work.requests), (asked.batch, 0));
    assert!(without_reading(&home, &reports, &others).await.is_none(), "tails, and no chunks");
    assert_eq!(reports.cache_status().chunk_misses, asked.work.chunk_misses);
}

#[tokio::test]
async fn all_daemons_find_the_same_parts() {
    let home = Home::new(3, 50_000).await;
    let account = columns_of(&home.table)[1].field_id;
    let (one, other) = (reports(), reports());
    let mut before = 0;
    let mut distinct = std::collections::BTreeSet::new();
    for low in (0..5000).step_by(250) {
        let asked = report(&home.table, low, low);
        let parts = one.parts(&home.table, &asked, account).await.unwrap().unwrap();
        assert_eq!(other.parts(&home.table, &asked, account).await.unwrap(), Some(parts));
        assert!(parts.first() >= before && parts.iter().count() <= 2);
        assert!(parts.last() < PARTS);
        before = parts.first();
        distinct.insert(before);
    }
    assert_eq!(distinct.len(), 20, "accounts are spread over the parts");
    let parts = async |low, high| {
        let asked = report(&home.table, low, high);
        let parts = one.parts(&home.table, &asked, account).await.unwrap().unwrap();
        assert_eq!(parts.iter().last(), Some(parts.last()));
        assert_eq!(parts.with_rows(), 50);
        parts.iter().collect::<Vec<u32>>()
    };
    // A file of 50 row groups: no number between theirs is a part.
    assert_eq!(parts(0, 10_000).await, (0..50).map(|n| PARTS * n / 50).collect::<Vec<_>>());
    assert_eq!(parts(9000, 9000).await, [PARTS * 49 / 50], "behind the last");
    assert_eq!(parts(-5, -5).await, [0]);
    let clicks = columns_of(&home.table)[3].field_id;
    let asked = report(&home.table, 0, 0);
    assert_eq!(one.parts(&home.table, &asked, clicks).await.unwrap(), None, "no condition");
    assert!(one.table_bytes(&home.table).await.unwrap() > 10_000);
}
