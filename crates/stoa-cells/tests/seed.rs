//! The session of 2008, word for word, over a generated query log; awk and sort say what it must print.
#![allow(clippy::unwrap_used)]

mod common;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use common::{Store, by_hand};
use stoa_cells::CellOptions;
use stoa_hql::{
    BufferOutput, LocalFiles, Session, SessionOptions, Shell, ShellOptions, TextLines,
    TimestampFormat,
};

const CREATE: &str = "CREATE TABLE \"query-log\" ( Query, ItemRank, ClickURL );";
const LOAD: &str = "LOAD DATA INFILE ROW_KEY_COLUMN=AnonID 'a.tsv' INTO TABLE \"query-log\";";
const DUMP: &str = "select * from \"query-log\"; quit;";

/// Rows by their bytes, families in the order of their creation, the newest line first.
const ORACLE: &str = r#"
awk -F '\t' 'NR > 1 {
  age = sprintf("%09d", 999999999 - NR)
  print $1 "\t1\t" age "\tQuery\t" $2
  if ($3 != "") {
    print $1 "\t2\t" age "\tItemRank\t" $3
    print $1 "\t3\t" age "\tClickURL\t" $4
  }
}' a.tsv | LC_ALL=C sort -t "$(printf '\t')" -k 1,1 -k 2,2 -k 3,3 | cut -f 1,4,5
"#;

const LINES: u64 = 30_000;

/// A log whose users come in no order and many times; the header has a `#` or not.
fn write_log(path: &Path, mark: &str) {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut text = format!("{mark}AnonID\tQuery\tItemRank\tClickURL\n");
    for _ in 0..LINES {
        let (user, query) = (random(300) * random(300), random(1000));
        write!(text, "{user}\tword {query} of caf\u{e9}").unwrap();
        if random(1000) < 534 {
            write!(text, "\t{}\thttp://www.example{query}.com", 1 + random(500)).unwrap();
        }
        text.push('\n');
    }
    std::fs::write(path, text).unwrap();
}

async fn shell(store: &Store, data: &Path, text: &str) -> BufferOutput {
    let options = SessionOptions {
        timestamp_format: TimestampFormat::Nanoseconds,
        ..SessionOptions::default()
    };
    let files = Arc::new(LocalFiles::new(data));
    let session = Session::new(Arc::new(store.cells.clone()), files, options);
    let options = ShellOptions { batch: true, ..ShellOptions::default() };
    let mut out = BufferOutput::default();
    let code = Shell::new(session, options).run(&mut TextLines::new(text), &mut out).await.unwrap();
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&out.results));
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_of_2008_prints_what_awk_says() {
    for (mark, load) in [("", LOAD.to_owned()), ("#", LOAD.replace("INFILE", "INFILE NO_LOG"))] {
        let home = tempfile::tempdir().unwrap();
        write_log(&home.path().join("a.tsv"), mark);
        let oracle = Command::new("sh").arg("-c").arg(ORACLE).current_dir(home.path()).output();
        let expected = String::from_utf8(oracle.unwrap().stdout).unwrap();
        assert!(expected.lines().count() as u64 > 2 * LINES);

        // Small pieces, so that there are many runs and the loads go to files more than once.
        let options = CellOptions { load_memory_bytes: 3 << 20, ..CellOptions::default() };
        let store = common::open(home.path(), by_hand(), options.clone()).await;
        shell(&store, home.path(), CREATE).await;
        shell(&store, home.path(), &load).await;
        let check = async |store: &Store, when: &str| {
            let printed = shell(store, home.path(), DUMP).await;
            let printed = String::from_utf8(printed.results).unwrap();
            let line = printed.lines().zip(expected.lines()).position(|(a, b)| a != b);
            assert_eq!((line, printed.len()), (None, expected.len()), "{when}");
        };
        check(&store, "loaded").await;
        store.ingest.close(false).await.unwrap();
        drop(store);
        let store = common::open(home.path(), by_hand(), options).await;
        check(&store, "started anew").await;
        store.flush().await;
        check(&store, "flushed").await;
        store.compact().await;
        check(&store, "compacted").await;
        assert_eq!(store.tables().await[0].check().await.unwrap().problems, []);
    }
}
