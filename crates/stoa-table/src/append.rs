//! Committing new data files as a snapshot.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use iceberg::spec::{
    DataFile, FormatVersion, MAIN_BRANCH, ManifestFile, Operation, PartitionSpec, Schema, Snapshot,
    Summary,
};
use stoa_env::clock;
use stoa_error::Result;

use crate::commit::{self, Attempt, Change};
use crate::error::from_iceberg;
use crate::merge::{Target, merge};
use crate::table::Table;

/// New data files, all of one partition spec, written with one schema.
pub(crate) struct Append {
    pub(crate) schema: Arc<Schema>,
    pub(crate) spec: PartitionSpec,
    pub(crate) files: Vec<DataFile>,
    /// Added to the snapshot's summary.
    pub(crate) summary: BTreeMap<String, String>,
}

/// Adds the files to `table` in one snapshot; creates the table if it is staged.
pub(crate) async fn append(table: &Table, append: Append) -> Result<Table> {
    let snapshot_id = new_snapshot_id(table);
    let uuid = stoa_env::random::uuid();
    let counts = Counts::of(&append.files);
    let directory = format!("{}/metadata", table.location());
    let manifest = table
        .warehouse()
        .files()
        .write_manifest(
            &format!("{directory}/{uuid}-m0.avro"),
            snapshot_id,
            append.schema,
            append.spec,
            append.files,
        )
        .await?;
    let addition =
        Addition { snapshot_id, uuid, manifest, counts, directory, summary: append.summary };
    if table.is_staged() {
        let first = addition.attempt(table, 0).await?;
        return commit::create(table, first.metadata).await;
    }
    commit::commit(table, &addition).await
}

/// A written manifest that becomes part of the next snapshot.
struct Addition {
    snapshot_id: i64,
    uuid: uuid::Uuid,
    manifest: ManifestFile,
    counts: Counts,
    /// The table's metadata directory.
    directory: String,
    summary: BTreeMap<String, String>,
}

impl Change for Addition {
    fn attempt<'a>(&'a self, base: &'a Table, number: u32) -> BoxFuture<'a, Result<Attempt>> {
        self.next_version(base, number).boxed()
    }
}

impl Addition {
    async fn next_version(&self, base: &Table, number: u32) -> Result<Attempt> {
        let Self { snapshot_id, uuid, directory, .. } = self;
        let list = format!("{directory}/snap-{snapshot_id}-{number}-{uuid}.avro");
        let mut scratch = vec![list.clone()];
        let snapshot = self.write_snapshot(base, &list, number, &mut scratch).await?;
        let builder = commit::builder(base)
            .set_branch_snapshot(snapshot, MAIN_BRANCH)
            .map_err(|e| from_iceberg(format!("table {}", base.ident()), e))?;
        Ok(Attempt { metadata: commit::build(base, builder)?, scratch })
    }

    /// Writes the manifest list of a snapshot that adds the manifest to `base`'s current one.
    async fn write_snapshot(
        &self,
        base: &Table,
        list: &str,
        number: u32,
        scratch: &mut Vec<String>,
    ) -> Result<Snapshot> {
        let metadata = base.metadata();
        let files = base.warehouse().files();
        let parent = metadata.current_snapshot();
        let mut manifests = vec![self.manifest.clone()];
        if let Some(parent) = parent {
            let earlier = files.manifest_list(parent, metadata.format_version()).await?;
            let prefix = format!("{}/{}-{number}", self.directory, self.uuid);
            let target = Target { prefix: &prefix, snapshot_id: self.snapshot_id };
            manifests.extend(merge(base, earlier.to_vec(), &target, scratch).await);
        }
        let parent_id = parent.map(|parent| parent.snapshot_id());
        let sequence_number = metadata.next_sequence_number();
        files
            .write_manifest_list(list, self.snapshot_id, parent_id, sequence_number, manifests)
            .await?;
        let before = parent.map(|parent| &parent.summary().additional_properties);
        let additional_properties = self.counts.summary(before, &self.summary);
        Ok(Snapshot::builder()
            .with_snapshot_id(self.snapshot_id)
            .with_parent_snapshot_id(parent_id)
            .with_sequence_number(sequence_number)
            // Clocks differ between machines; time must not run backwards inside a table.
            .with_timestamp_ms(clock::unix_ms().max(metadata.last_updated_ms()))
            .with_manifest_list(list)
            .with_summary(Summary { operation: Operation::Append, additional_properties })
            .with_schema_id(metadata.current_schema_id())
            .build())
    }
}

/// A positive id that the table does not have.
fn new_snapshot_id(table: &Table) -> i64 {
    loop {
        let id = (stoa_env::random::u64() >> 1) as i64;
        if id > 0 && table.metadata().snapshot_by_id(id).is_none() {
            return id;
        }
    }
}

/// What a snapshot adds.
struct Counts {
    files: u64,
    rows: u64,
    bytes: u64,
    partitions: usize,
}

impl Counts {
    fn of(files: &[DataFile]) -> Self {
        let partitions: HashSet<_> = files.iter().map(|file| file.partition()).collect();
        Self {
            files: files.len() as u64,
            rows: files.iter().map(DataFile::record_count).sum(),
            bytes: files.iter().map(DataFile::file_size_in_bytes).sum(),
            partitions: partitions.len(),
        }
    }

    /// The summary, with the keys that other engines write.
    fn summary(
        &self,
        parent: Option<&HashMap<String, String>>,
        extra: &BTreeMap<String, String>,
    ) -> HashMap<String, String> {
        let mut summary: HashMap<String, String> =
            extra.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut set = |key: &str, value: String| summary.insert(key.to_owned(), value);
        set("added-data-files", self.files.to_string());
        set("added-records", self.rows.to_string());
        set("added-files-size", self.bytes.to_string());
        set("changed-partition-count", self.partitions.to_string());
        set("engine-name", "stoa".to_owned());
        set("engine-version", env!("CARGO_PKG_VERSION").to_owned());
        for (key, added) in [
            ("total-data-files", self.files),
            ("total-records", self.rows),
            ("total-files-size", self.bytes),
            ("total-delete-files", 0),
            ("total-position-deletes", 0),
            ("total-equality-deletes", 0),
        ] {
            // A total that the parent does not know stays unknown.
            let before = match parent {
                None => Some(0),
                Some(parent) => parent.get(key).and_then(|text| text.parse::<u64>().ok()),
            };
            if let Some(total) = before.and_then(|before| before.checked_add(added)) {
                set(key, total.to_string());
            }
        }
        summary
    }
}

/// Only format version 2 is written.
pub(crate) fn check_format(table: &Table) -> Result<()> {
    let version = table.metadata().format_version();
    if version == FormatVersion::V2 {
        return Ok(());
    }
    Err(stoa_error::Error::unsupported(format!(
        "table {} has format version {version}; only version 2 is written",
        table.ident()
    ))
    .with_hint("write to it with the engine that made it"))
}
