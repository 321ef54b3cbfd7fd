//! Several processes that write the same table, each with a log of its own: what one has deleted stays deleted, though an
//! older cell is in the log of another one.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{Store, by_hand, open_with_log};
use stoa_cells::{CellMergeHooks, CellOptions};
use stoa_hql::{
    BufferOutput, LocalFiles, Session, SessionOptions, Shell, ShellOptions, TextLines,
    TimestampSource,
};
use stoa_orc::Predicate;

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
