//! One snapshot on top of another: files added, files removed, both at once.
//!
//! In: what is to be added and removed, and what it was decided on. Out: a new version of the table
//! that holds exactly that, or why not. Whatever else was committed in between stays.
//!
//! ```text
//! parent's manifests ──removal──► untouched, rewritten ─┐
//! new files ──────────► new manifest ───────────────────┼─► manifest list ─► metadata ─► swap
//! log positions, summary ───────────────────────────────┘
//! ```
//! Not here: writing data files (`write`), the swap (`commit`), which files to remove (callers).

mod conflict;
mod merge;
mod removal;
mod summary;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use iceberg::spec::{
    DataFile, FormatVersion, MAIN_BRANCH, ManifestContentType, ManifestFile, Operation,
    PartitionSpec, Schema, Snapshot, Summary,
};
use stoa_error::{Error, Result};

use crate::commit::{self, Attempt, Change, Ended, Step, forget, is_refusal};
use crate::error::from_iceberg;
use crate::failpoint;
use crate::files::ManifestKind;
use crate::positions::{self, LogAdvance, Standing};
use crate::scan::Coverage;
use crate::table::Table;
use crate::writers::AtWork;
use merge::{Target, merge};
pub(crate) use removal::Removal;
use removal::{Remaining, remove};
use summary::{Before, Counts, summary};
pub(crate) use summary::{ROLLED_BACK_TO, engine_keys};

/// What a commit carries beside its rows.
#[derive(Clone, Debug, Default)]
pub struct CommitOptions {
    /// Added to the snapshot's summary, such as who wrote it.
    pub summary: BTreeMap<String, String>,
    /// Positions of commit logs that the commit brings the table to. An append of rows that the
    /// table has passed already is not made again; a rewrite is a statement of its own, is made in
    /// any case, and leaves positions that are further on as they are.
    pub log: Vec<LogAdvance>,
    /// Versions of other tables that the change was decided on: it is not made where rows of one of
    /// them were changed or deleted since. (Rows that were added to them do not count.)
    pub reads: Vec<Table>,
}

/// New data files, all of one partition spec, written with one schema.
#[derive(Clone, Debug)]
pub(crate) struct NewFiles {
    pub(crate) schema: Arc<Schema>,
    pub(crate) spec: PartitionSpec,
    pub(crate) files: Vec<DataFile>,
}

/// What one snapshot changes.
pub(crate) struct Delta<'a> {
    /// Its id; a delta committed twice under one id is committed once.
    pub(crate) snapshot_id: i64,
    pub(crate) added: &'a NewFiles,
    pub(crate) removal: Removal,
    /// The files added hold the rows of the files removed, and no others.
    pub(crate) same_rows: bool,
    /// It is a stretch of the log, in the table if the log's position is.
    pub(crate) once: bool,
    /// The version that the change was decided on.
    pub(crate) seen: &'a Table,
    /// Rows that must not have been added since.
    pub(crate) reads: Option<&'a Coverage>,
    pub(crate) options: &'a CommitOptions,
}

/// Why nothing was committed.
pub(crate) enum Stop {
    /// It, or the same stretch of the log, is in the table already.
    AlreadyIn(Table),
    /// It changes nothing.
    Nothing(Table),
    /// What it was decided on is no longer so.
    Outdated { table: Table, why: Error },
}

/// Commits `delta` to `table`, which appears in the catalog now if it is staged.
///
/// # Errors
/// As [`commit::commit`] and [`positions::standing`].
pub(crate) async fn commit(table: &Table, delta: Delta<'_>) -> Result<Ended<Stop>> {
    let work = PreparedDelta::begin(table, delta).await?;
    let ended = work.commit(table).await;
    let not_in = match &ended {
        Ok(Ended::Committed(_)) => false,
        Ok(Ended::Stopped(_)) => true,
        Err(error) => is_refusal(error),
    };
    if not_in {
        work.forget_manifest(table).await;
    }
    ended
}

/// Commits one delta to each of several tables of a warehouse: all of them, or none. A delta that
/// changes nothing is left out.
///
/// # Errors
/// As [`commit`]; `Conflict` where one was decided on what is no longer so.
pub(crate) async fn commit_together(deltas: Vec<(&Table, Delta<'_>)>) -> Result<()> {
    let mut works = Vec::with_capacity(deltas.len());
    let mut begun = Ok(());
    for (table, delta) in deltas {
        match PreparedDelta::begin(table, delta).await {
            Ok(work) => works.push((table, work)),
            Err(error) => {
                begun = Err(error);
                break;
            }
        }
    }
    let changes: Vec<(&Table, &PreparedDelta<'_>)> =
        works.iter().map(|(table, work)| (*table, work)).collect();
    let (ended, not_in) = match begun {
        Ok(()) => {
            let ended = commit::commit_together(&changes, refusal).await;
            let not_in = ended.as_ref().is_err_and(is_refusal);
            (ended, not_in)
        }
        Err(error) => (Err(error), true),
    };
    if not_in {
        for (table, work) in &works {
            work.forget_manifest(table).await;
        }
    }
    ended
}

/// Why the other deltas must not be committed, either.
fn refusal(stop: Stop) -> Option<Error> {
    match stop {
        Stop::Outdated { why, .. } => Some(why),
        Stop::AlreadyIn(_) | Stop::Nothing(_) => None,
    }
}

/// Writes the manifest of the added files, if there are any.
async fn write_manifest(
    table: &Table,
    delta: &Delta<'_>,
    location: &str,
) -> Result<Option<ManifestFile>> {
    let NewFiles { schema, spec, files } = delta.added;
    if files.is_empty() {
        return Ok(None);
    }
    let kind = ManifestKind {
        content: ManifestContentType::Data,
        schema: schema.clone(),
        spec: spec.clone(),
    };
    let written = table
        .warehouse()
        .files()
        .write_manifest_with(location, delta.snapshot_id, kind, |writer| {
            // -1: the sequence number is the snapshot's, which is not known yet.
            files.iter().cloned().try_for_each(|file| writer.add_file(file, -1))
        })
        .await?;
    Ok(Some(written))
}

/// Rows that replace others must be where those were.
async fn check_inside(table: &Table, manifest: &ManifestFile, coverage: &Coverage) -> Result<()> {
    let loaded = table.warehouse().files().manifest(manifest).await?;
    let outside = loaded.files.iter().find(|live| !coverage.covers(&live.file));
    let Some(outside) = outside else { return Ok(()) };
    forget(table, std::slice::from_ref(&manifest.manifest_path)).await;
    Err(Error::invalid(format!(
        "table {}: rows lie outside of the partitions that are replaced",
        table.ident()
    ))
    .with_sqlstate("44000")
    .with_detail(format!("partition {:?}", outside.file.partition_text))
    .with_hint("write only rows of the partitions that the statement names"))
}

/// A delta on its way into the table.
struct PreparedDelta<'a> {
    delta: Delta<'a>,
    uuid: uuid::Uuid,
    /// What is written under this id is no orphan meanwhile.
    _at_work: Arc<AtWork>,
    /// The table's metadata directory.
    directory: String,
    /// Of the added files; `None` if there are none.
    manifest: Option<ManifestFile>,
    added: Counts,
}

impl Change for PreparedDelta<'_> {
    type Stop = Stop;

    fn attempt<'a>(&'a self, base: &'a Table, number: u32) -> BoxFuture<'a, Result<Step<Stop>>> {
        self.next_version(base, number).boxed()
    }

    fn is_in(&self, table: &Table) -> bool {
        table.metadata().snapshot_by_id(self.delta.snapshot_id).is_some()
    }
}

impl<'a> PreparedDelta<'a> {
    /// Writes the manifest of what `delta` adds.
    async fn begin(table: &Table, delta: Delta<'a>) -> Result<PreparedDelta<'a>> {
        check_format(table)?;
        let uuid = table.warehouse().env().uuid();
        let _at_work = table.warehouse().writers().begin(uuid);
        let directory = format!("{}/metadata", table.location());
        let manifest =
            write_manifest(table, &delta, &format!("{directory}/{uuid}-m0.avro")).await?;
        if let (Some(manifest), Removal::Matching(coverage)) = (&manifest, &delta.removal) {
            check_inside(table, manifest, coverage).await?;
        }
        let spec_id = delta.added.spec.spec_id();
        let added = Counts::of(spec_id, &delta.added.files);
        Ok(Self { delta, uuid, _at_work, directory, manifest, added })
    }

    /// Deletes it again, as far as possible.
    async fn forget_manifest(&self, table: &Table) {
        if let Some(manifest) = &self.manifest {
            forget(table, std::slice::from_ref(&manifest.manifest_path)).await;
        }
    }
}

impl PreparedDelta<'_> {
    async fn commit(&self, table: &Table) -> Result<Ended<Stop>> {
        if !table.is_staged() {
            return commit::commit(table, self).await;
        }
        let first = match self.next_version(table, 0).await? {
            Step::Commit(attempt) => attempt,
            Step::Stop(_) => commit::build(table, commit::builder(table), Vec::new())?,
        };
        commit::create(table, first).await.map(Ended::Committed)
    }

    async fn next_version(&self, base: &Table, number: u32) -> Result<Step<Stop>> {
        if let Some(stop) = self.reason_to_stop(base).await? {
            return Ok(Step::Stop(stop));
        }
        let mut scratch = Vec::new();
        let step = self.write_manifests(base, number, &mut scratch).await;
        if matches!(step, Ok(Step::Commit(_))) {
            failpoint::at("commit.manifests_written").await?;
        } else {
            forget(base, &scratch).await;
        }
        step
    }

    /// Writes what the next version refers to; notes new files in `scratch`.
    async fn write_manifests(
        &self,
        base: &Table,
        number: u32,
        scratch: &mut Vec<String>,
    ) -> Result<Step<Stop>> {
        let Self { directory, uuid, .. } = self;
        let snapshot_id = self.delta.snapshot_id;
        let target = Target {
            prefix: format!("{directory}/{uuid}-{number}"),
            list: format!("{directory}/snap-{snapshot_id}-{number}-{uuid}.avro"),
            snapshot_id,
        };
        let manifests = parent_manifests(base).await?;
        let narrowed = removal::narrowed(&self.delta.removal, self.delta.seen, base).await?;
        let removal = narrowed.as_ref().unwrap_or(&self.delta.removal);
        let remaining = remove(base, manifests, removal, &target, scratch).await?;
        if !remaining.missing.is_empty() {
            let why = conflict::removed_already(self.delta.seen, base, &remaining.missing);
            return Ok(Step::Stop(Stop::Outdated { table: base.clone(), why }));
        }
        let mut unmoved = Vec::new();
        for read in &self.delta.options.reads {
            match conflict::changed_since(read).await? {
                Ok(now) => unmoved.push((now.ident().clone(), now.metadata_location().to_owned())),
                Err(why) => return Ok(Step::Stop(Stop::Outdated { table: base.clone(), why })),
            }
        }
        if matches!(self.delta.removal, Removal::Files(_)) {
            let deleted = conflict::deleted_since(self.delta.seen, base, &remaining.gone).await?;
            if let Some(why) = deleted {
                return Ok(Step::Stop(Stop::Outdated { table: base.clone(), why }));
            }
        }
        let attempt = match self.manifest.is_some() || !remaining.rewritten.is_empty() {
            true => Some(self.with_snapshot(base, remaining, &target, scratch).await?),
            false => self.without_snapshot(base)?,
        };
        Ok(match attempt {
            Some(mut attempt) => {
                attempt.unmoved = unmoved;
                Step::Commit(attempt)
            }
            None => Step::Stop(Stop::Nothing(base.clone())),
        })
    }

    async fn reason_to_stop(&self, base: &Table) -> Result<Option<Stop>> {
        if self.is_in(base) {
            return Ok(Some(Stop::AlreadyIn(base.clone())));
        }
        let log = &self.delta.options.log;
        if self.delta.once && positions::standing(base, log)? == Standing::Passed {
            return Ok(Some(Stop::AlreadyIn(base.clone())));
        }
        let Some(coverage) = self.delta.reads else { return Ok(None) };
        let conflict = conflict::added_since(self.delta.seen, base, coverage).await?;
        Ok(conflict.map(|why| Stop::Outdated { table: base.clone(), why }))
    }

    /// A version with new log positions only; `None` if there are none.
    fn without_snapshot(&self, base: &Table) -> Result<Option<Attempt>> {
        let log = positions::ahead(base, &self.delta.options.log)?;
        if log.is_empty() {
            return Ok(None);
        }
        let builder = commit::builder(base)
            .set_properties(positions::properties(&log))
            .map_err(|e| from_iceberg(format!("table {}", base.ident()), e))?;
        commit::build(base, builder, Vec::new()).map(Some)
    }

    async fn with_snapshot(
        &self,
        base: &Table,
        remaining: Remaining,
        target: &Target,
        scratch: &mut Vec<String>,
    ) -> Result<Attempt> {
        let log = positions::ahead(base, &self.delta.options.log)?;
        let snapshot = self.write_snapshot(base, remaining, target, scratch).await?;
        let failed = |e| from_iceberg(format!("table {}", base.ident()), e);
        let builder = commit::builder(base)
            .set_properties(positions::properties(&log))
            .and_then(|builder| builder.set_branch_snapshot(snapshot, MAIN_BRANCH))
            .map_err(failed)?;
        commit::build(base, builder, scratch.clone())
    }

    /// Writes the manifest list of the new snapshot.
    async fn write_snapshot(
        &self,
        base: &Table,
        remaining: Remaining,
        target: &Target,
        scratch: &mut Vec<String>,
    ) -> Result<Snapshot> {
        let metadata = base.metadata();
        let snapshot_id = self.delta.snapshot_id;
        let summary = self.summary(base, &remaining.removed)?;
        let Remaining { kept, rewritten, .. } = remaining;
        let kept = merge(base, kept, target, scratch).await;
        let manifests = self.manifest.iter().cloned().chain(rewritten).chain(kept).collect();
        let list = target.list.clone();
        scratch.push(list.clone());
        let parent_id = metadata.current_snapshot_id();
        let sequence_number = metadata.next_sequence_number();
        base.warehouse()
            .files()
            .write_manifest_list(&list, snapshot_id, parent_id, sequence_number, manifests)
            .await?;
        Ok(Snapshot::builder()
            .with_snapshot_id(snapshot_id)
            .with_parent_snapshot_id(parent_id)
            .with_sequence_number(sequence_number)
            // Clocks differ between machines; time must not run backwards inside a table.
            .with_timestamp_ms(base.warehouse().env().unix_ms().max(metadata.last_updated_ms()))
            .with_manifest_list(list)
            .with_summary(summary)
            .with_schema_id(metadata.current_schema_id())
            .build())
    }

    fn summary(&self, base: &Table, removed: &Counts) -> Result<Summary> {
        let parent = base.metadata().current_snapshot();
        let is_all = matches!(self.delta.removal, Removal::Everything)
            && current_id(self.delta.seen) == current_id(base);
        let before = match parent {
            _ if is_all => Before::Nothing,
            None => Before::Nothing,
            Some(parent) => Before::Parent(&parent.summary().additional_properties),
        };
        let mut keys = summary(before, &self.added, removed);
        let CommitOptions { summary: extra, log, .. } = self.delta.options;
        // What a snapshot adds and holds is not for the caller to say.
        for (key, value) in extra {
            keys.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let now = base.log_positions()?.into_iter();
        keys.extend(now.map(|(log, at)| (format!("{}{log}", positions::PREFIX), at.to_string())));
        keys.extend(positions::properties(&positions::ahead(base, log)?));
        let operation = match (self.added.files > 0, removed.files > 0) {
            _ if self.delta.same_rows => Operation::Replace,
            (true, false) => Operation::Append,
            (true, true) => Operation::Overwrite,
            (false, _) => Operation::Delete,
        };
        Ok(Summary { operation, additional_properties: keys })
    }
}

fn current_id(table: &Table) -> Option<i64> {
    table.metadata().current_snapshot_id()
}

/// The manifests of the current snapshot.
pub(crate) async fn parent_manifests(base: &Table) -> Result<Vec<ManifestFile>> {
    let metadata = base.metadata();
    let Some(parent) = metadata.current_snapshot() else { return Ok(Vec::new()) };
    let list = base.warehouse().files().manifest_list(parent, metadata.format_version()).await?;
    Ok(list.to_vec())
}

/// Only format version 2 is written.
pub(crate) fn check_format(table: &Table) -> Result<()> {
    let version = table.metadata().format_version();
    if version == FormatVersion::V2 {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "table {} has format version {version}; only version 2 is written",
        table.ident()
    ))
    .with_hint("write to it with the engine that made it"))
}
