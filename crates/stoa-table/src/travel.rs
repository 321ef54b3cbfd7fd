//! Earlier versions of a table: by snapshot, by time, by the name of a tag or branch.
//!
//! In: which version. Out: a [`Table`] whose current snapshot is that one, with the columns that it had then.
//! **Invariant:** such a table is only read. Not here: how long snapshots stay (`expire`).

use std::sync::Arc;

use iceberg::spec::{
    MAIN_BRANCH, SnapshotReference, SnapshotRetention, SortOrder, TableMetadataBuilder,
    UnboundPartitionSpec,
};
use stoa_error::{Error, Result};

use crate::Table;
use crate::expire::references;
use crate::files::LoadedMetadata;

/// A version of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableVersion {
    /// The snapshot with this id.
    Snapshot(i64),
    /// The snapshot that a tag or branch names.
    Named(String),
    /// The snapshot that was current at this moment, in microseconds since 1970-01-01 UTC.
    At(i64),
}

/// A name for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSnapshot {
    /// The name.
    pub name: String,
    /// The snapshot.
    pub snapshot_id: i64,
    /// Whether it moves with commits; a tag does not.
    pub is_branch: bool,
}

impl Table {
    /// The table as it was: its rows in files, and its columns.
    ///
    /// # Errors
    /// `NotFound` (42704) where there is no such version any more, or never was.
    pub fn at_version(&self, version: &TableVersion) -> Result<Self> {
        let id = match version {
            TableVersion::Snapshot(id) => *id,
            TableVersion::Named(name) => self.named_snapshot(name)?,
            TableVersion::At(micros) => self.snapshot_at(*micros)?,
        };
        let metadata = self.metadata();
        let snapshot = metadata.snapshot_by_id(id).ok_or_else(|| self.no_version(id))?;
        let schema_id = snapshot.schema_id().unwrap_or_else(|| metadata.current_schema_id());
        let main = SnapshotReference::new(
            id,
            SnapshotRetention::Branch {
                min_snapshots_to_keep: None,
                max_snapshot_age_ms: None,
                max_ref_age_ms: None,
            },
        );
        let mut builder = TableMetadataBuilder::new_from_metadata((**metadata).clone(), None)
            .set_ref(MAIN_BRANCH, main);
        if schema_id != metadata.current_schema_id() {
            // Nobody writes to it, and the columns of these may not be there yet.
            builder = builder
                .and_then(|b| b.add_default_partition_spec(UnboundPartitionSpec::default()))
                .and_then(|b| b.add_sort_order(SortOrder::unsorted_order()))
                .and_then(|b| b.set_default_sort_order(SortOrder::unsorted_order().order_id))
                .and_then(|b| b.set_current_schema(schema_id));
        }
        let built = builder.and_then(TableMetadataBuilder::build).map_err(|source| {
            Error::internal(format!("table {} cannot be read as of {id}", self.ident()))
                .with_source(source)
        })?;
        let schema = crate::declared::schema_of(&built.metadata)?;
        let (metadata, bytes) = (Arc::new(built.metadata), self.metadata_bytes());
        let loaded = Arc::new(LoadedMetadata { metadata, schema, bytes });
        let location = Some(self.metadata_location().to_owned());
        Ok(Self::new(self.warehouse().clone(), self.ident().clone(), loaded, location))
    }

    /// Tags and branches by name; the branch `main` is the table itself.
    ///
    /// # Errors
    /// `Internal` where the metadata cannot be read for them.
    pub fn named_snapshots(&self) -> Result<Vec<NamedSnapshot>> {
        let named = references(self.metadata())?.into_iter().map(|(name, reference)| {
            let is_branch = reference.is_branch();
            NamedSnapshot { name, snapshot_id: reference.snapshot_id, is_branch }
        });
        let mut named: Vec<NamedSnapshot> = named.collect();
        named.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(named)
    }

    /// Which snapshot was current from when on, oldest first: milliseconds since 1970-01-01 UTC, and its id.
    pub fn history(&self) -> Vec<(i64, i64)> {
        let entries = self.metadata().history().iter();
        entries.map(|entry| (entry.timestamp_ms, entry.snapshot_id)).collect()
    }

    fn named_snapshot(&self, name: &str) -> Result<i64> {
        let named = self.named_snapshots()?;
        match named.iter().find(|named| named.name == name) {
            Some(named) => Ok(named.snapshot_id),
            None => Err(Error::not_found(format!(
                "table {} has no tag or branch \"{name}\"",
                self.ident()
            ))
            .with_sqlstate("42704")
            .with_hint(format!("SELECT * FROM \"{}$refs\" lists them", self.ident().name))),
        }
    }

    fn snapshot_at(&self, micros: i64) -> Result<i64> {
        let at_ms = micros.div_euclid(1000);
        let history = self.history();
        let then = history.iter().rev().find(|(since_ms, _)| *since_ms <= at_ms);
        then.map(|(_, id)| *id).ok_or_else(|| {
            let error = Error::not_found(format!(
                "table {} has no snapshot that was current then",
                self.ident()
            ))
            .with_sqlstate("42704")
            .with_hint(format!("SELECT * FROM \"{}$history\" lists them", self.ident().name));
            let first =
                history.first().and_then(|(ms, _)| chrono::DateTime::from_timestamp_millis(*ms));
            match first {
                Some(first) => {
                    error.with_detail(format!("the oldest is of {}", first.to_rfc3339()))
                }
                None => error.with_detail("it has none yet"),
            }
        })
    }

    fn no_version(&self, id: i64) -> Error {
        Error::not_found(format!("table {} has no snapshot {id}", self.ident()))
            .with_sqlstate("42704")
            .with_detail("it may have expired")
            .with_hint(format!("SELECT * FROM \"{}$snapshots\" lists them", self.ident().name))
    }
}
