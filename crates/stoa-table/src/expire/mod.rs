//! Forgetting old snapshots, and deleting what only they needed.
//!
//! ```text
//! metadata without old snapshots ──swap──► files that only those reached ──► deleted
//! ```
//! In: a table and how much history is to stay. Out: the table without older history.
//!
//! History is bounded by age and by number. The number bounds what a commit costs: each writes down
//! all snapshots. It never takes what was current a few minutes ago, nor what a scan of this process
//! is reading (`pins`).
//!
//! **Invariants:** the swap comes first, so no snapshot that anybody can open lacks a file; a
//! process that dies between swap and deletion leaves orphans, nothing else; branches and tags are
//! never removed, nor what they need; log positions stay (they are properties of the table).
//! Not here: orphans (`check`), retention of rows (`retention`).

mod choose;
mod files;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use iceberg::spec::{Snapshot, TableMetadata};
use parking_lot::Mutex;
use stoa_error::{Error, Result};

use crate::commit::{self, Change, Ended, Step};
use crate::failpoint;
use crate::table::Table;
pub(crate) use choose::references;
use choose::{Crowd, Keep, choose};
use files::unneeded;

/// `history.expire.max-snapshot-age-ms`, if the table does not say: five days, as Iceberg has it.
const AGE_MAX: Duration = Duration::from_secs(5 * 24 * 60 * 60);

/// [`SNAPSHOTS_MAX`], if the table does not say.
const COUNT_MAX: usize = 200;

/// Table property: snapshots that are kept beside those of the last minutes, however young they are.
/// Each commit writes down all of them, so that without a bound what commits cost grows with their
/// number.
const SNAPSHOTS_MAX: &str = "stoa.history.snapshots-max";

const AGE: &str = "history.expire.max-snapshot-age-ms";

/// How much history stays.
#[derive(Clone, Debug)]
pub struct ExpireOptions {
    /// Snapshots that were current within this time stay; overrides the table's
    /// `history.expire.max-snapshot-age-ms` (5 days).
    pub age_max: Option<Duration>,
    /// At least so many snapshots stay; overrides the table's
    /// `history.expire.min-snapshots-to-keep` (1).
    pub retain_last: Option<usize>,
    /// Whatever the above say, snapshots that were current within this time stay: longer than any
    /// scan runs.
    pub age_min: Duration,
    /// What bounds the number of snapshots leaves those that were current within this time: longer
    /// than another engine needs to plan a scan and read its files. Scans of this process are left
    /// undisturbed for as long as they run.
    pub crowd_age_min: Duration,
}

impl Default for ExpireOptions {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        Self { age_max: None, retain_last: None, age_min: minutes(10), crowd_age_min: minutes(5) }
    }
}

/// What expiry did.
#[derive(Clone, Debug)]
pub struct ExpireOutcome {
    /// The table afterwards.
    pub table: Table,
    /// Snapshots forgotten.
    pub snapshots: usize,
    /// Data files deleted.
    pub data_files: usize,
    /// Manifests, manifest lists and statistics files deleted.
    pub metadata_files: usize,
}

impl Table {
    /// Forgets old snapshots, then deletes the files that only they needed.
    ///
    /// A scan that runs on a snapshot is not disturbed for [`ExpireOptions::age_min`] after that
    /// snapshot stopped being the current one.
    ///
    /// # Errors
    /// `Unsupported` where the table property `gc.enabled` is `false`; `Invalid` for a property
    /// that makes no sense; `Conflict`, `NotFound` as every commit; `Corrupt` or `Unavailable`
    /// where files cannot be read or deleted: the snapshots are gone then, their files orphans.
    pub fn expire_snapshots<'a>(
        &'a self,
        options: &'a ExpireOptions,
    ) -> BoxFuture<'a, Result<ExpireOutcome>> {
        Box::pin(async move {
            check_deletion(self)?;
            let expiry = Expiry { options, forgotten: Mutex::default() };
            let table = match commit::commit(self, &expiry).await? {
                Ended::Committed(table) => table,
                Ended::Stopped(table) => {
                    return Ok(ExpireOutcome {
                        table,
                        snapshots: 0,
                        data_files: 0,
                        metadata_files: 0,
                    });
                }
            };
            failpoint::at("expire.committed").await?;
            let Forgotten { snapshots, statistics } = expiry.forgotten.into_inner();
            let unneeded = unneeded(&table, &snapshots).await?;
            let files = table.warehouse().files();
            let data_files = files.delete(&unneeded.data).await?;
            failpoint::at("expire.data_deleted").await?;
            Ok(ExpireOutcome {
                snapshots: snapshots.len(),
                data_files,
                metadata_files: files.delete(&unneeded.metadata).await?
                    + files.delete(&statistics).await?,
                table,
            })
        })
    }
}

impl Table {
    /// Whether the table has so many snapshots that it is time to forget some: a quarter more than it
    /// is to keep.
    ///
    /// # Errors
    /// `Invalid` for a property that makes no sense.
    pub fn has_many_snapshots(&self) -> Result<bool> {
        let many = count_max(self)?.map(|count| count.saturating_add(count / 4));
        Ok(many.is_some_and(|many| self.metadata().snapshots().len() > many))
    }
}

/// Files are not to be deleted from tables that share them with others.
pub(crate) fn check_deletion(table: &Table) -> Result<()> {
    if table.property("gc.enabled") != Some("false") {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "table {}: gc.enabled is false, so none of its files may be deleted",
        table.ident()
    ))
    .with_hint("its files may belong to other tables, too; unset the property if they do not"))
}

struct Expiry<'a> {
    options: &'a ExpireOptions,
    forgotten: Mutex<Forgotten>,
}

/// What the last attempt left out.
#[derive(Default)]
struct Forgotten {
    snapshots: Vec<Arc<Snapshot>>,
    /// Locations of their statistics files.
    statistics: Vec<String>,
}

impl Change for Expiry<'_> {
    /// There is nothing to forget in this version.
    type Stop = Table;

    fn attempt<'a>(&'a self, base: &'a Table, _: u32) -> BoxFuture<'a, Result<Step<Table>>> {
        std::future::ready(self.next_version(base)).boxed()
    }

    /// That snapshots are gone does not tell who removed them.
    fn is_in(&self, _: &Table) -> bool {
        false
    }
}

impl Expiry<'_> {
    fn next_version(&self, base: &Table) -> Result<Step<Table>> {
        let metadata = base.metadata();
        let now = base.warehouse().env().unix_ms();
        let in_use = base.warehouse().pins().of(base.uuid());
        let gone = choose(metadata, now, keep(base, self.options, now)?, &in_use)?;
        if gone.is_empty() {
            return Ok(Step::Stop(base.clone()));
        }
        *self.forgotten.lock() = Forgotten::of(metadata, &gone);
        let builder = commit::builder(base).remove_snapshots(&gone);
        let builder = gone.iter().fold(builder, |builder, id| {
            builder.remove_statistics(*id).remove_partition_statistics(*id)
        });
        Ok(Step::Commit(commit::build(base, builder, Vec::new())?))
    }
}

fn keep(table: &Table, options: &ExpireOptions, now_ms: i64) -> Result<Keep> {
    let age = match options.age_max {
        Some(age) => Some(age),
        None => number(table, AGE)?.map(Duration::from_millis),
    };
    let age = age.unwrap_or(AGE_MAX).max(options.age_min);
    let least = match options.retain_last {
        Some(least) => Some(least),
        None => count(table, "history.expire.min-snapshots-to-keep")?,
    };
    let ago =
        |age: Duration| now_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    let count_max = if options.age_max.is_some() { None } else { count_max(table)? };
    let crowd =
        count_max.map(|count_max| Crowd { count_max, since_ms: ago(options.crowd_age_min) });
    Ok(Keep { since_ms: ago(age), least: least.unwrap_or(1), crowd })
}

/// How many snapshots the table keeps; `None` where only their age counts: the table says so (0), or
/// says how old they may get and nothing of their number.
fn count_max(table: &Table) -> Result<Option<usize>> {
    Ok(match count(table, SNAPSHOTS_MAX)? {
        Some(0) => None,
        Some(count) => Some(count),
        None => table.property(AGE).is_none().then_some(COUNT_MAX),
    })
}

fn count(table: &Table, key: &str) -> Result<Option<usize>> {
    Ok(number(table, key)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

fn number(table: &Table, key: &str) -> Result<Option<u64>> {
    let Some(text) = table.property(key) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| {
        Error::invalid(format!("table {}: property {key} = {text:?} cannot be used", table.ident()))
            .with_hint(format!("set {key} to a number, or unset it"))
    })
}

impl Forgotten {
    fn of(metadata: &TableMetadata, gone: &[i64]) -> Self {
        let snapshots = gone.iter().filter_map(|id| metadata.snapshot_by_id(*id)).cloned();
        let statistics = gone
            .iter()
            .filter_map(|id| Some(metadata.statistics_for_snapshot(*id)?.statistics_path.clone()));
        let of_partitions = gone.iter().filter_map(|id| {
            Some(metadata.partition_statistics_for_snapshot(*id)?.statistics_path.clone())
        });
        Self {
            snapshots: snapshots.collect(),
            statistics: statistics.chain(of_partitions).collect(),
        }
    }
}
