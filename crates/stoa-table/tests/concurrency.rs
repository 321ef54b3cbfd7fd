//! Writers at the same time: tasks, processes, and one that is killed half way.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use arrow_schema::{DataType, Field};
use common::{Home, append, ident, report_rows, report_spec};
use stoa_orc::Predicate;
use stoa_table::{ColumnPosition, CommitOptions, TableChange, WriteOptions};

const NEW_YEAR_2015: i32 = 16_436;

/// What a helper process is told: `WAREHOUSE TABLE COMMITS ROWS [hang]`, one per line.
const HELPER: &str = "STOA_TEST_HELPER";

/// Starts this test binary once more, to run [`helper`] alone.
fn start(home: &Home, table: &str, commits: u32, rows: u32, more: &[&str]) -> Child {
    let mut orders = vec![home.directory.path().to_str().unwrap().to_owned()];
    orders.extend([table.to_owned(), commits.to_string(), rows.to_string()]);
    orders.extend(more.iter().map(|word| (*word).to_owned()));
    Command::new(std::env::current_exe().unwrap())
        .args(["helper", "--exact", "--nocapture"])
        .env(HELPER, orders.join("\n"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test but the process that [`start`] starts: appends rows commit by commit; told to hang,
/// it does so before the last commit, after it has said `written`.
#[tokio::test]
#[allow(clippy::disallowed_methods)]
async fn helper() {
    let Ok(orders) = std::env::var(HELPER) else { return };
    let orders: Vec<&str> = orders.lines().collect();
    let (commits, rows): (u32, usize) = (orders[2].parse().unwrap(), orders[3].parse().unwrap());
    let warehouse = common::open(std::path::Path::new(orders[0])).await;
    let table = warehouse.table(&ident(orders[1])).await.unwrap();
    let options = WriteOptions { open_files_max: 1, ..WriteOptions::default() };
    for number in 1..=commits {
        let mut writer = table.writer(options.clone()).unwrap();
        writer.write(report_rows(NEW_YEAR_2015, rows)).await.unwrap();
        if orders.get(4) == Some(&"hang") && number == commits {
            println!("\nwritten");
            std::future::pending::<()>().await;
        }
        writer.commit().await.unwrap();
    }
}

/// Reads what `child` prints until `line`.
fn wait_for(child: &mut Child, line: &str) {
    let output = BufReader::new(child.stdout.take().unwrap());
    let found = output.lines().map_while(Result::ok).any(|printed| printed == line);
    assert!(found, "the helper never said {line:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_commit_at_once_all_succeed() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let writers: Vec<_> = (0..8)
        .map(|number| {
            let table = table.clone();
            stoa_env::task::spawn(async move {
                for _ in 0..3 {
                    append(&table, report_rows(NEW_YEAR_2015 + number, 10)).await;
                }
            })
        })
        .collect();
    let alter = table.alter(vec![TableChange::AddColumn {
        field: Field::new("note", DataType::Utf8, true),
        position: ColumnPosition::Last,
    }]);
    alter.await.unwrap();
    for writer in writers {
        writer.await.unwrap();
    }
    let table = table.reload().await.unwrap();
    assert_eq!(table.row_count(), Some(240));
    assert_eq!(table.snapshots().len(), 24);
    assert_eq!(table.schema().fields().len(), 5);
    assert_eq!(table.plan_scan(&Predicate::always()).await.unwrap().rows(), 240);
    let report = table.check().await.unwrap();
    assert_eq!(report.problems, []);
    assert_eq!((report.snapshots, report.manifests, report.rows), (24, 24, 240));
    assert_eq!(report.orphans, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_commit_at_once_all_succeed() {
    let home = Home::new().await;
    home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let children: Vec<_> = (0..3).map(|_| start(&home, "t", 5, 200, &[])).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let table = home.warehouse.table(&ident("t")).await.unwrap();
    assert_eq!(table.row_count(), Some(3000));
    assert_eq!(table.snapshots().len(), 15);
    let report = table.check().await.unwrap();
    assert_eq!((report.problems.as_slice(), report.rows), ([].as_slice(), 3000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_leaves_only_orphans() {
    let home = Home::new().await;
    home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let mut survivor = start(&home, "t", 4, 500, &[]);
    let mut victim = start(&home, "t", 2, 500, &["hang"]);
    wait_for(&mut victim, "written");
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(survivor.wait().unwrap().success());

    let table = home.warehouse.table(&ident("t")).await.unwrap();
    // Four commits of the survivor, one of the victim before it hung.
    assert_eq!(table.row_count(), Some(2500));
    let report = table.check().await.unwrap();
    assert_eq!((report.problems.as_slice(), report.rows), ([].as_slice(), 2500));
    assert!(!report.orphans.is_empty());

    let kept = table.remove_orphans(Duration::from_secs(3600)).await.unwrap();
    assert_eq!((kept.files, kept.kept), (0, report.orphans.len()));
    let removed = table.remove_orphans(Duration::ZERO).await.unwrap();
    assert_eq!((removed.files, removed.kept), (report.orphans.len(), 0));
    let after = table.check().await.unwrap();
    assert_eq!(
        (after.problems.as_slice(), after.orphans.len(), after.rows),
        ([].as_slice(), 0, 2500)
    );
}

#[tokio::test]
async fn a_dropped_or_aborted_writer_changes_nothing() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let one_file = WriteOptions { open_files_max: 1, ..WriteOptions::default() };
    let mut dropped = table.writer(one_file.clone()).unwrap();
    dropped.write(report_rows(NEW_YEAR_2015, 100)).await.unwrap();
    drop(dropped);
    let report = table.check().await.unwrap();
    assert_eq!((report.problems.as_slice(), report.rows), ([].as_slice(), 0));

    // Another table: what a dropped writer had begun may still be on its way.
    let table = home.warehouse.create_table(&ident("u"), report_spec()).await.unwrap();
    let mut aborted = table.writer(one_file).unwrap();
    aborted.write(report_rows(NEW_YEAR_2015, 100)).await.unwrap();
    aborted.abort().await.unwrap();
    assert_eq!(table.check().await.unwrap().orphans, []);
    assert_eq!(table.reload().await.unwrap().row_count(), Some(0));
}

/// As after a jump of the clock: all files are older than any age.
#[tokio::test]
async fn files_of_writers_at_work_are_no_orphans_whatever_their_age() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let mut writer = table.writer(WriteOptions::default()).unwrap();
    writer.write(report_rows(NEW_YEAR_2015, 100)).await.unwrap();
    writer.end_files().await.unwrap();
    assert_eq!(table.remove_orphans(Duration::ZERO).await.unwrap().files, 0);
    let written = writer.finish().await.unwrap();
    assert_eq!(table.remove_orphans(Duration::ZERO).await.unwrap().files, 0);
    written.commit(&CommitOptions::default()).await.unwrap();
    drop(written);
    let report = table.check().await.unwrap();
    assert_eq!((report.problems.as_slice(), report.rows), ([].as_slice(), 100));

    // A table that is not in the catalog yet.
    let staged = home.warehouse.stage_table(&ident("u"), report_spec()).await.unwrap();
    let mut writer = staged.writer(WriteOptions::default()).unwrap();
    writer.write(report_rows(NEW_YEAR_2015, 100)).await.unwrap();
    writer.end_files().await.unwrap();
    assert_eq!(home.warehouse.remove_abandoned(Duration::ZERO).await.unwrap().files, 0);
    writer.commit().await.unwrap();

    // What nobody writes any more is one.
    let mut writer = table.writer(WriteOptions::default()).unwrap();
    writer.write(report_rows(NEW_YEAR_2015, 100)).await.unwrap();
    writer.end_files().await.unwrap();
    drop(writer);
    assert!(table.remove_orphans(Duration::ZERO).await.unwrap().files > 0);
}

#[tokio::test]
async fn damage_is_found() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let table = append(&table, report_rows(NEW_YEAR_2015, 70)).await;
    let files = table.plan_scan(&Predicate::always()).await.unwrap().files;
    let path = |index: usize| format!("/{}", files[index].path);
    std::fs::remove_file(path(0)).unwrap();
    std::fs::write(path(1), b"short").unwrap();
    let bytes = usize::try_from(files[2].file_bytes).unwrap();
    std::fs::write(path(2), vec![0; bytes]).unwrap();
    let report = table.check().await.unwrap();
    let found: Vec<_> = report.problems.iter().map(|p| (p.place.clone(), p.what.clone())).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().any(|(_, what)| what == "the data file is missing"));
    assert!(found.iter().any(|(_, what)| what.starts_with("the data file has 5 bytes")));
    assert!(found.iter().any(|(_, what)| what.starts_with("file tail")));
    let refused = table.remove_orphans(Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.sqlstate(), "XX001");
}

#[tokio::test]
async fn a_table_replaced_meanwhile_is_not_written_to() {
    let home = Home::new().await;
    let table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let mut writer = table.writer(WriteOptions::default()).unwrap();
    writer.write(report_rows(NEW_YEAR_2015, 10)).await.unwrap();
    home.warehouse.drop_table(&ident("t"), false).await.unwrap();
    home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    assert_eq!(writer.commit().await.unwrap_err().sqlstate(), "40001");

    let table = home.warehouse.table(&ident("t")).await.unwrap();
    let mut writer = table.writer(WriteOptions::default()).unwrap();
    writer.write(report_rows(NEW_YEAR_2015, 10)).await.unwrap();
    home.warehouse.drop_table(&ident("t"), true).await.unwrap();
    assert_eq!(writer.commit().await.unwrap_err().sqlstate(), "42P01");
}

#[tokio::test]
async fn what_a_table_that_never_came_to_be_leaves_is_found() {
    let home = Home::new().await;
    let kept = home.warehouse.create_table(&ident("kept"), report_spec()).await.unwrap();
    append(&kept, report_rows(NEW_YEAR_2015, 10)).await;
    let gone = home.warehouse.create_table(&ident("gone"), report_spec()).await.unwrap();
    append(&gone, report_rows(NEW_YEAR_2015, 10)).await;
    home.warehouse.drop_table(&ident("gone"), false).await.unwrap();
    let staged = home.warehouse.stage_table(&ident("new"), report_spec()).await.unwrap();
    let data = home.directory.path().join("public/new/data");
    assert!(staged.location().ends_with("/public/new"));
    // As a process leaves them that is killed while it writes into the staged table.
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("00001-x.orc"), b"whole").unwrap();
    std::fs::write(data.join(".00002-x.orc.1f.tmp"), b"half").unwrap();
    // The catalog of a warehouse s3://bucket/data is no data of a table.
    let catalog = home.directory.path().join("_s3/bucket/data");
    std::fs::create_dir_all(&catalog).unwrap();
    std::fs::write(catalog.join("catalog.db"), b"names").unwrap();

    let abandoned = home.warehouse.abandoned().await.unwrap();
    assert_eq!(abandoned.len(), 2);
    assert!(abandoned.iter().all(|file| file.location.contains("/public/new/data/")));
    let young = home.warehouse.remove_abandoned(Duration::from_secs(3600)).await.unwrap();
    assert_eq!((young.files, young.kept), (0, abandoned.len()));
    let removed = home.warehouse.remove_abandoned(Duration::ZERO).await.unwrap();
    assert_eq!(removed.files, abandoned.len());
    assert_eq!(kept.reload().await.unwrap().check().await.unwrap().problems, []);
}
