//! LOAD DATA INFILE through the log: what stays of a load that ends early, values that no record of the
//! log can hold.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use common::{Home, Store};
use stoa_hql::{BufferOutput, LocalFiles, Session, SessionOptions};

/// 2020-01-01 00:00:00 UTC.
const START_NS: i64 = 1_577_836_800_000_000_000;

async fn run(store: &Store, folder: &Path, statement: &str) -> stoa_error::Result<Vec<u8>> {
    let options = SessionOptions { silent: true, ..SessionOptions::default() };
    let files = Arc::new(LocalFiles::new(folder));
    let mut session = Session::new(Arc::new(store.cells.clone()), files, options);
    let mut out = BufferOutput::default();
    session.run_text(statement, &mut out).await?;
    Ok(out.results)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_says_where_and_how_many_cells_stay() {
    let home = Home::new(START_NS);
    let store = home.open().await;
    let folder = home.directory.path();
    let mut text = b"#row\tcolumn\tvalue\n".to_vec();
    for i in 0..400_000_u64 {
        writeln!(text, "row{i}\ta\tvalue {}", i * 7919 % 10_007).unwrap();
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    let bytes = gzip.finish().unwrap();
    fs::write(folder.join("cut.gz"), &bytes[..bytes.len() * 4 / 5]).unwrap();

    run(&store, folder, "CREATE TABLE t (a)").await.unwrap();
    let load = |options: &str| format!("LOAD DATA INFILE {options} 'cut.gz' INTO TABLE t");
    let count = async || {
        let rows = run(&store, folder, "SELECT * FROM t KEYS_ONLY").await.unwrap();
        rows.iter().filter(|byte| **byte == b'\n').count()
    };

    let error = run(&store, folder, &load("NO_LOG")).await.unwrap_err();
    assert_eq!(error.detail(), Some("nothing was loaded"), "{error}");
    assert_eq!(count().await, 0);

    let error = run(&store, folder, &load("")).await.unwrap_err();
    let (place, what) = error.message().rsplit_once(": ").unwrap();
    assert_eq!(what, "the file is damaged, cut off or not compressed with gzip");
    let line: usize = place.strip_prefix("cut.gz: line ").unwrap().parse().unwrap();
    let detail = error.detail().unwrap();
    let stay = detail.strip_suffix(" cells were loaded before and stay").unwrap();
    let stay: usize = stay.parse().unwrap();
    assert!(stay > 0 && stay < line && line < 400_000, "{error}: {detail}");
    assert_eq!(count().await, stay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_larger_than_a_record_of_the_log_is_loaded() {
    let home = Home::new(START_NS);
    let store = home.open().await;
    let folder = home.directory.path();
    // A record holds 64 MiB.
    let value = "x".repeat(65 << 20);
    let text = format!("#row\tcolumn\tvalue\na\ta\tsmall\nb\ta\t{value}\nc\ta\tsmall\n");
    fs::write(folder.join("large.tsv"), text).unwrap();
    run(&store, folder, "CREATE TABLE t (a)").await.unwrap();
    run(&store, folder, "LOAD DATA INFILE 'large.tsv' INTO TABLE t").await.unwrap();
    let found = run(&store, folder, "SELECT * FROM t").await.unwrap();
    let expected = format!("a\ta\tsmall\nb\ta\t{value}\nc\ta\tsmall\n");
    assert!(found == expected.as_bytes(), "{} bytes were found", found.len());
}
