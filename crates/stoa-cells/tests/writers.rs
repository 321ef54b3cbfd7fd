//! Several processes that write the same table, each with a log of its own: what one has deleted stays deleted, though an
//! older cell is in the log of another one.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{Store, by_hand, open_with_log};
use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_cells::{CellMergeHooks, CellOptions};
use stoa_error::Result;
use stoa_hql::{
    BufferOutput, LocalFiles, Session, SessionOptions, Shell, ShellOptions, TextLines,
    TimestampSource,
};
use stoa_ingest::{OtherHold, Others, Turn};
use stoa_orc::Predicate;
use stoa_table::Table;

async fn ask(store: &Store, text: &str) -> String {
    let files = Arc::new(LocalFiles::new(Path::new("/nonexistent")));
    let session = Session::new(Arc::new(store.cells.clone()), files, SessionOptions::default());
    let options = ShellOptions { batch: true, ..ShellOptions::default() };
    let mut out = BufferOutput::default();
    let code = Shell::new(session, options).run(&mut TextLines::new(text), &mut out).await.unwrap();
    let printed = String::from_utf8(out.results).unwrap();
    assert_eq!(code, 0, "{printed}");
    printed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn markers_stay_while_cells_may_be_in_other_logs() {
    let home = tempfile::tempdir().unwrap();
    let timestamps = Arc::new(TimestampSource::manual(1_000_000));
    let options = || CellOptions { timestamps: Arc::clone(&timestamps), ..CellOptions::default() };
    let one = open_with_log(home.path(), "log", by_hand(), options()).await;
    let other = open_with_log(home.path(), "other", by_hand(), options()).await;
    ask(&one, "CREATE TABLE t (c);").await;
    ask(&one, "INSERT INTO t VALUES ('old', 'c', 'v');").await;
    ask(&other, "INSERT INTO t VALUES ('new', 'c', 'v');").await;
    ask(&other, "DELETE * FROM t WHERE ROW = 'old';").await;
    other.flush().await;
    ask(&other, "INSERT INTO t VALUES ('newer', 'c', 'v');").await;
    other.flush().await;
    let hooks = CellMergeHooks::new(Arc::clone(&timestamps)).beside_others(true);
    other.merge_with(hooks).await;
    let plan = other.tables().await[0].plan_scan(&Predicate::always()).await.unwrap();
    assert_eq!(plan.files.len(), 1, "all files are one");
    one.flush().await;
    for store in [&one, &other] {
        let rows = ask(store, "SELECT * FROM t KEYS_ONLY;").await;
        assert_eq!(rows, "new\nnewer\n");
    }
}

/// A cell that is on its way into the log while a later marker is brought into a file, and merged with all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn young_markers_outlive_a_merge_in_the_background() {
    let home = tempfile::tempdir().unwrap();
    let timestamps = Arc::new(TimestampSource::manual(1_000_000));
    let options = || CellOptions { timestamps: Arc::clone(&timestamps), ..CellOptions::default() };
    // The log of `late` stands for the way into the log.
    let late = open_with_log(home.path(), "log", by_hand(), options()).await;
    let own = open_with_log(home.path(), "own", by_hand(), options()).await;
    ask(&own, "CREATE TABLE t (c, n COUNTER);").await;
    ask(&late, "INSERT INTO t VALUES ('old', 'c', 'v'), ('n', 'n', '1');").await;
    ask(&own, "DELETE * FROM t WHERE ROW = 'old'; INSERT INTO t VALUES ('n', 'n', '2');").await;
    own.flush().await;
    ask(&own, "INSERT INTO t VALUES ('newer', 'c', 'v'), ('n', 'n', '4');").await;
    own.flush().await;
    let hooks = CellMergeHooks::new(Arc::clone(&timestamps)).in_background();
    own.merge_with(hooks.clone()).await;
    let plan = own.tables().await[0].plan_scan(&Predicate::always()).await.unwrap();
    assert_eq!(plan.files.len(), 1, "all files are one");
    late.flush().await;
    for store in [&late, &own] {
        assert_eq!(ask(store, "SELECT * FROM t;").await, "n\tn\t7\nnewer\tc\tv\n");
    }
    // An hour later it hides what it hid, and goes.
    timestamps.advance(2 * 3_600_000_000_000);
    own.merge_with(hooks).await;
    for store in [&late, &own] {
        assert_eq!(ask(store, "SELECT * FROM t;").await, "n\tn\t7\nnewer\tc\tv\n");
        let deletes = ask(store, "SELECT * FROM t RETURN_DELETES KEYS_ONLY;").await;
        assert!(!deletes.contains("old"), "{deletes}");
    }
}

/// Another daemon, in whose log a cell comes once it has flushed, which is deleted here at once.
struct Busy {
    own: Store,
    other: Store,
}

struct Flushed(Option<i64>);

impl OtherHold for Flushed {
    fn settled(&self) -> Option<i64> {
        self.0
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        async { Ok(()) }.boxed()
    }
}

impl Others for Busy {
    fn epoch(&self) -> BoxFuture<'_, Result<u64>> {
        async { Ok(7) }.boxed()
    }

    fn hold<'a>(
        &'a self,
        table: &'a Table,
        turn: Turn,
    ) -> BoxFuture<'a, Result<Vec<Box<dyn OtherHold>>>> {
        async move {
            if turn == Turn::After {
                return Ok(Vec::new());
            }
            let held = self.other.ingest.hold_own(table).await?;
            let flushed = Flushed(held.settled());
            drop(held);
            self.other.timestamps.advance(1000);
            ask(&self.other, "INSERT INTO t VALUES ('meanwhile', 'c', 'v'), ('n', 'n', '4');")
                .await;
            self.own.timestamps.advance(1000);
            let text =
                "DELETE * FROM t WHERE ROW = 'meanwhile'; INSERT INTO t VALUES ('n', 'n', '2');";
            ask(&self.own, text).await;
            Ok(vec![Box::new(flushed) as Box<dyn OtherHold>])
        }
        .boxed()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn markers_of_while_others_flushed_stay_and_counts_are_not_lost() {
    let home = tempfile::tempdir().unwrap();
    let timestamps = Arc::new(TimestampSource::manual(1_000_000));
    let options = || CellOptions { timestamps: Arc::clone(&timestamps), ..CellOptions::default() };
    let own = open_with_log(home.path(), "log", by_hand(), options()).await;
    let other = open_with_log(home.path(), "other", by_hand(), options()).await;
    ask(&own, "CREATE TABLE t (c, n COUNTER);").await;
    ask(&own, "INSERT INTO t VALUES ('gone', 'c', 'v'), ('stays', 'c', 'v'), ('n', 'n', '1');")
        .await;
    ask(&other, "DELETE * FROM t WHERE ROW = 'gone';").await;
    own.ingest.set_others(Arc::new(Busy { own: own.clone(), other: other.clone() }));
    ask(&own, "COMPACT TABLE 't';").await;
    let plan = own.tables().await[0].plan_scan(&Predicate::always()).await.unwrap();
    assert_eq!(plan.files.len(), 1, "all files are one");
    other.flush().await;
    for store in [&own, &other] {
        assert_eq!(ask(store, "SELECT * FROM t;").await, "n\tn\t7\nstays\tc\tv\n");
    }
    let deletes = ask(&own, "SELECT * FROM t RETURN_DELETES KEYS_ONLY;").await;
    assert!(!deletes.contains("gone"), "its marker is settled: {deletes}");
    assert!(deletes.contains("meanwhile"), "{deletes}");
}
