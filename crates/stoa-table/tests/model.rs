//! Random histories against a plain model: a multiset of rows and a log position.
//!
//! Every step may fail at a fail point; then the table is as before, unless the point comes after
//! the swap. After each step the table holds what the model holds and is sound.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Home, append, assert_sound, ident, report_rows, report_spec, rows, sorted, texts};
use proptest::prelude::*;
use stoa_env::failpoint::{Action, Failpoints};
use stoa_error::Result;
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};
use stoa_table::{
    CompactionOptions, CompactionWork, ExpireOptions, LogAdvance, RewriteOptions, Table,
    WriteOptions,
};

/// 2015-01-01 in days.
const NEW_YEAR_2015: i32 = 16_436;

#[derive(Clone, Debug)]
enum Step {
    /// Rows from this day of the year on.
    Append {
        day: i32,
        rows: usize,
        sorted: bool,
    },
    /// The next entry of the log; `again` also the last one once more.
    Flush {
        day: i32,
        rows: usize,
        again: bool,
    },
    /// DELETE WHERE day < this one.
    Delete {
        day: i32,
    },
    /// INSERT OVERWRITE of the partitions of these rows.
    Overwrite {
        day: i32,
        rows: usize,
    },
    Truncate,
    Compact {
        full: bool,
    },
    Expire {
        least: usize,
    },
    CleanUp,
}

const POINTS: [&str; 5] = [
    "write.files_written",
    "commit.manifests_written",
    "commit.metadata_written",
    "commit.swapped",
    "expire.committed",
];

fn step() -> impl Strategy<Value = Step> {
    let day = 0..120i32;
    let rows = 1..40usize;
    prop_oneof![
        4 => (day.clone(), rows.clone(), any::<bool>())
            .prop_map(|(day, rows, sorted)| Step::Append { day, rows, sorted }),
        4 => (day.clone(), rows.clone(), any::<bool>())
            .prop_map(|(day, rows, again)| Step::Flush { day, rows, again }),
        2 => day.clone().prop_map(|day| Step::Delete { day }),
        1 => (day, rows).prop_map(|(day, rows)| Step::Overwrite { day, rows }),
        1 => Just(Step::Truncate),
        3 => any::<bool>().prop_map(|full| Step::Compact { full }),
        2 => (0..4usize).prop_map(|least| Step::Expire { least }),
        1 => Just(Step::CleanUp),
    ]
}

/// A step, and where it fails, if it comes by there.
fn history() -> impl Strategy<Value = Vec<(Step, Option<usize>)>> {
    let fault = prop_oneof![2 => Just(None), 1 => (0..POINTS.len()).prop_map(Some)];
    proptest::collection::vec((step(), fault), 1..14)
}

/// What the table should hold.
#[derive(Clone, Default)]
struct Model {
    /// Day of the year and text of each row.
    rows: Vec<(i32, String)>,
    position: u64,
}

impl Model {
    fn add(&mut self, first_day: i32, count: usize) {
        let texts = texts(&report_rows(NEW_YEAR_2015 + first_day, count));
        self.rows.extend((first_day..).zip(texts));
    }

    fn texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self.rows.iter().map(|(_, text)| text.clone()).collect();
        texts.sort_unstable();
        texts
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Append { day, rows, .. } => self.add(*day, *rows),
            Step::Flush { day, rows, .. } => {
                self.add(*day, *rows);
                self.position += 1;
            }
            Step::Delete { day } => self.rows.retain(|(of, _)| of >= day),
            Step::Overwrite { day, rows } => {
                let last = day + i32::try_from(*rows).unwrap() - 1;
                let months = month(*day)..=month(last);
                self.rows.retain(|(of, _)| !months.contains(&month(*of)));
                self.add(*day, *rows);
            }
            Step::Truncate => self.rows.clear(),
            Step::Compact { .. } | Step::Expire { .. } | Step::CleanUp => {}
        }
    }
}

/// The month of a day of 2015, from 0.
fn month(day: i32) -> usize {
    [31, 59, 90, 120, 151, 181].into_iter().take_while(|end| day >= *end).count()
}

async fn act(table: &Table, step: &Step, position: u64) -> Result<()> {
    match step {
        Step::Append { day, rows, sorted: in_order } => {
            let batch = report_rows(NEW_YEAR_2015 + day, *rows);
            let mut writer = table.writer(WriteOptions::default())?;
            writer.write(if *in_order { sorted(&batch) } else { batch }).await?;
            writer.commit().await?;
        }
        Step::Flush { day, rows, again } => {
            flush(table, *day, *rows, position).await?;
            if *again {
                assert!(flush(table, *day, *rows, position).await?);
            }
        }
        Step::Delete { day } => delete(table, *day).await?,
        Step::Overwrite { day, rows } => {
            let mut rewrite = table.rewrite(RewriteOptions::default())?;
            rewrite.replace_written_partitions()?;
            rewrite.write(report_rows(NEW_YEAR_2015 + day, *rows)).await?;
            rewrite.commit().await?.committed()?;
        }
        Step::Truncate => {
            let mut rewrite = table.rewrite(RewriteOptions::default())?;
            rewrite.truncate()?;
            rewrite.commit().await?.committed()?;
        }
        Step::Compact { full } => {
            let options = CompactionOptions {
                full: *full,
                inputs_min: Some(2),
                // A few files per group, so that there are several groups.
                inputs_max: 3,
                ..CompactionOptions::default()
            };
            table.compact(&options, &CompactionWork::default()).await?;
        }
        Step::Expire { least } => {
            let options = ExpireOptions {
                age_max: Some(Duration::ZERO),
                retain_last: Some(*least),
                age_min: Duration::ZERO,
                ..ExpireOptions::default()
            };
            table.expire_snapshots(&options).await?;
        }
        Step::CleanUp => {
            table.remove_orphans(Duration::ZERO).await?;
        }
    }
    Ok(())
}

/// Gives back whether it was there before.
async fn flush(table: &Table, day: i32, rows: usize, position: u64) -> Result<bool> {
    let log = vec![LogAdvance { log: "a".to_owned(), from: Some(position), to: position + 1 }];
    let mut writer = table.writer(WriteOptions { log, ..WriteOptions::default() })?;
    writer.write(sorted(&report_rows(NEW_YEAR_2015 + day, rows))).await?;
    Ok(writer.commit().await?.already_committed)
}

/// As SQL DELETE does it: whole files unread, the others rewritten.
async fn delete(table: &Table, day: i32) -> Result<()> {
    let bound = NEW_YEAR_2015 + day;
    let column = ColumnRef::Field(1);
    let older = Predicate::Compare { column, op: CompareOp::Lt, value: Literal::Date(bound) };
    let isolation = table.isolation("delete", older.clone())?;
    let mut rewrite = table.rewrite(RewriteOptions { isolation, ..RewriteOptions::default() })?;
    let plan = table.plan_scan(&older).await?;
    let (covered, others) = table.split_covered(plan.files, &older);
    rewrite.remove(&covered)?;
    rewrite.remove(&others)?;
    for file in &others {
        for batch in common::read(table, file).await {
            let days = batch.column(0);
            let bound = arrow_array::Scalar::new(arrow_array::Date32Array::from(vec![bound]));
            let stays = arrow_ord::cmp::gt_eq(days, &bound).unwrap();
            rewrite
                .write(arrow_select::filter::filter_record_batch(&batch, &stays).unwrap())
                .await?;
        }
    }
    rewrite.commit().await?.committed()?;
    Ok(())
}

async fn run(history: Vec<(Step, Option<usize>)>) {
    let home = Home::new().await;
    let mut table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    let mut model = Model::default();
    for (step, fault) in history {
        let points = Failpoints::new();
        let point = fault.and_then(|fault| POINTS.get(fault).copied());
        if let Some(point) = point {
            points.arm(point, Action::Error);
        }
        let done = points.scope(act(&table, &step, model.position)).await;
        let swapped = matches!(point, Some("commit.swapped" | "expire.committed"));
        match &done {
            Ok(()) => model.apply(&step),
            Err(error) => {
                assert!(point.is_some_and(|point| points.hits(point) > 0), "{step:?}: {error:?}");
                if swapped {
                    model.apply(&step);
                }
            }
        }
        table = table.reload().await.unwrap();
        assert_eq!(rows(&table).await, model.texts(), "after {step:?} at {point:?}");
        let position = table.log_positions().unwrap().get("a").copied().unwrap_or(0);
        assert_eq!(position, model.position, "after {step:?} at {point:?}");
        let report = assert_sound(&table).await;
        assert_eq!(usize::try_from(report.rows).unwrap(), model.rows.len());
        if done.is_ok() && matches!(step, Step::CleanUp) {
            assert_eq!(report.orphans, []);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn histories_end_as_the_model_says(history in history()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(history));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_at_once() {
    let home = Home::new().await;
    let mut table = home.warehouse.create_table(&ident("t"), report_spec()).await.unwrap();
    for day in 0..4 {
        table = append(&table, sorted(&report_rows(NEW_YEAR_2015 + day, 30))).await;
    }
    let appends = (0..3).map(|writer| {
        let table = table.clone();
        stoa_env::task::spawn(async move {
            for round in 0..5 {
                append(&table, sorted(&report_rows(NEW_YEAR_2015 + 40 + writer, 10 + round))).await;
            }
        })
    });
    let keepers = (0..2).map(|keeper| {
        let table = table.clone();
        stoa_env::task::spawn(async move {
            for _ in 0..4 {
                let step = match keeper {
                    0 => Step::Compact { full: true },
                    _ => Step::Expire { least: 12 },
                };
                act(&table.reload().await.unwrap(), &step, 0).await.unwrap();
            }
        })
    });
    let deleting = table.clone();
    let delete_january = stoa_env::task::spawn(async move {
        // Decided anew until nobody comes in between.
        while let Err(error) = delete(&deleting.reload().await.unwrap(), 31).await {
            assert_eq!(error.sqlstate(), "40001", "{error:?}");
        }
    });
    let tasks: Vec<_> = appends.chain(keepers).chain([delete_january]).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let table = table.reload().await.unwrap();
    let mut model = Model::default();
    (0..4).for_each(|day| model.add(day, 30));
    (0..3).for_each(|writer| (0..5).for_each(|round| model.add(40 + writer, 10 + round)));
    model.apply(&Step::Delete { day: 31 });
    assert_eq!(rows(&table).await, model.texts());
    assert_sound(&table).await;
    table.remove_orphans(Duration::ZERO).await.unwrap();
    assert_eq!(rows(&table).await, model.texts());
}
