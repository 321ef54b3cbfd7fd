//! One version of a table: its schema, partitioning, order, properties and snapshots.
//!
//! Not here: what is done with it (`scan`, `write`, `evolve` and others).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use futures::future::BoxFuture;
use iceberg::spec::{NullOrder, PartitionSpec, SortDirection, TableMetadata};
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};

use crate::defaults::is_of_column;
use crate::files::LoadedMetadata;
use crate::pins::Pin;
use crate::positions::is_position;
use crate::transform::transform_array;
use crate::{PartitionTerm, SortTerm, Transform, Warehouse};

/// A table at one metadata version. Cheap to clone; later commits do not change it.
#[derive(Clone)]
pub struct Table {
    inner: Arc<Inner>,
}

struct Inner {
    warehouse: Warehouse,
    ident: TableIdent,
    loaded: Arc<LoadedMetadata>,
    /// `None` for a table that is not in the catalog yet.
    metadata_location: Option<String>,
    /// For such a table: the version of another one whose name it takes over.
    replaces: Option<String>,
    /// Keeps the files of its snapshot while it is in hand.
    _pin: Option<Pin>,
}

/// One snapshot, as reports show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its id.
    pub id: i64,
    /// The snapshot before it.
    pub parent_id: Option<i64>,
    /// Milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: i64,
    /// `append`, `overwrite`, `delete` or `replace`.
    pub operation: String,
    /// What the writer said about it, such as `added-records`.
    pub summary: BTreeMap<String, String>,
}

impl Table {
    /// A positive id that no snapshot of the table has.
    pub(crate) fn new_snapshot_id(&self) -> i64 {
        loop {
            let id = (self.warehouse().env().random_u64() >> 1) as i64;
            if id > 0 && self.metadata().snapshot_by_id(id).is_none() {
                return id;
            }
        }
    }

    pub(crate) fn new(
        warehouse: Warehouse,
        ident: TableIdent,
        loaded: Arc<LoadedMetadata>,
        metadata_location: Option<String>,
    ) -> Self {
        let (metadata, replaces) = (&loaded.metadata, None);
        let snapshot = metadata.current_snapshot_id();
        let _pin = snapshot.map(|id| warehouse.pins().pin(metadata.uuid(), id));
        let inner = Inner { warehouse, ident, loaded, metadata_location, replaces, _pin };
        Self { inner: Arc::new(inner) }
    }

    /// A staged table that takes over the name of the table whose pointer is at `replaces`.
    pub(crate) fn replacing(self, replaces: String) -> Self {
        let Inner { warehouse, ident, loaded, .. } = &*self.inner;
        let (warehouse, ident, loaded) = (warehouse.clone(), ident.clone(), loaded.clone());
        let (metadata_location, replaces, _pin) = (None, Some(replaces), None);
        let inner = Inner { warehouse, ident, loaded, metadata_location, replaces, _pin };
        Self { inner: Arc::new(inner) }
    }

    /// The metadata file that the catalog must point to for a staged table to take its name over.
    pub(crate) fn replaces(&self) -> Option<&str> {
        self.inner.replaces.as_deref()
    }

    /// The name under which it was opened.
    pub fn ident(&self) -> &TableIdent {
        &self.inner.ident
    }

    /// The warehouse it belongs to.
    pub fn warehouse(&self) -> &Warehouse {
        &self.inner.warehouse
    }

    /// Columns in Arrow types; each field carries its Iceberg id under [`crate::FIELD_ID_KEY`].
    pub fn schema(&self) -> SchemaRef {
        self.inner.loaded.schema.clone()
    }

    /// The id of [`Self::schema`] in the table's metadata.
    pub fn schema_id(&self) -> i32 {
        self.metadata().current_schema_id()
    }

    /// The columns of any schema that the table has or had, as in [`Self::schema`]; `None` where
    /// the metadata does not know it.
    ///
    /// # Errors
    /// `Unsupported` for types that cannot be read.
    pub fn schema_by_id(&self, id: i32) -> Result<Option<SchemaRef>> {
        let schema = self.metadata().schema_by_id(id);
        schema.map(|schema| crate::schema::to_arrow(schema)).transpose()
    }

    /// The table's identity, which survives renaming.
    pub fn uuid(&self) -> uuid::Uuid {
        self.metadata().uuid()
    }

    /// The directory of the table, as a literal location.
    pub fn location(&self) -> &str {
        self.metadata().location()
    }

    /// The metadata file of this version; empty for a staged table.
    pub fn metadata_location(&self) -> &str {
        self.inner.metadata_location.as_deref().unwrap_or_default()
    }

    /// The metadata file of the version that this one was built on, if it still says so.
    pub fn previous_location(&self) -> Option<&str> {
        self.metadata().metadata_log().last().map(|log| log.metadata_file.as_str())
    }

    /// Whether the table is not in the catalog yet (see [`Warehouse::stage_table`]).
    pub fn is_staged(&self) -> bool {
        self.inner.metadata_location.is_none()
    }

    /// Table properties, without those that keep [`Self::log_positions`], [`Self::defaults`] and declared types.
    pub fn properties(&self) -> BTreeMap<String, String> {
        let all = self.metadata().properties().iter();
        let set = all.filter(|(key, _)| !is_position(key) && !is_of_column(key));
        set.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// One property.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.metadata().properties().get(key).map(String::as_str)
    }

    /// The table's comment.
    pub fn comment(&self) -> Option<&str> {
        self.property("comment")
    }

    /// How rows written from now on are partitioned; terms of dropped columns and unknown
    /// transforms are left out.
    pub fn partition_terms(&self) -> Vec<PartitionTerm> {
        let schema = self.metadata().current_schema();
        let term = |field: &iceberg::spec::PartitionField| {
            let column = schema.name_by_field_id(field.source_id)?;
            let transform = Transform::from_iceberg(field.transform)?;
            (transform != Transform::Void).then(|| PartitionTerm::new(column, transform))
        };
        self.metadata().default_partition_spec().fields().iter().filter_map(term).collect()
    }

    /// The columns that identify a row, in the order of the table's columns; empty where none are declared. Nothing
    /// keeps two rows from having the same values there.
    pub fn identifiers(&self) -> Vec<String> {
        let schema = self.metadata().current_schema();
        let ids: Vec<i32> = schema.identifier_field_ids().collect();
        let fields = schema.as_struct().fields().iter();
        fields.filter(|field| ids.contains(&field.id)).map(|field| field.name.clone()).collect()
    }

    /// The field id of the column by whose values rows inside a file are ordered first; `None` where they are not, or
    /// by something computed from it.
    pub fn first_sort_column(&self) -> Option<i32> {
        let first = self.metadata().default_sort_order().fields.first()?;
        let transform = Transform::from_iceberg(first.transform)?;
        (transform == Transform::Identity).then_some(first.source_id)
    }

    /// How rows inside a file are ordered.
    pub fn sort_terms(&self) -> Vec<SortTerm> {
        let schema = self.metadata().current_schema();
        let term = |field: &iceberg::spec::SortField| {
            Some(SortTerm {
                column: schema.name_by_field_id(field.source_id)?.to_owned(),
                transform: Transform::from_iceberg(field.transform)?,
                descending: field.direction == SortDirection::Descending,
                nulls_first: field.null_order == NullOrder::First,
            })
        };
        self.metadata().default_sort_order().fields.iter().map_while(term).collect()
    }

    /// All retained snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        let mut snapshots: Vec<_> = self.metadata().snapshots().map(|s| snapshot_info(s)).collect();
        snapshots.sort_by_key(|snapshot| (snapshot.timestamp_ms, snapshot.id));
        snapshots
    }

    /// The snapshot that scans read; `None` for a table without rows ever written.
    pub fn current_snapshot(&self) -> Option<SnapshotInfo> {
        self.metadata().current_snapshot().map(|snapshot| snapshot_info(snapshot))
    }

    /// The version of Iceberg's format that its metadata is in.
    pub fn format_version(&self) -> u8 {
        self.metadata().format_version() as u8
    }

    /// Bytes of the data files of the current snapshot; `None` where its writer did not count them.
    pub fn data_bytes(&self) -> Option<u64> {
        let Some(snapshot) = self.metadata().current_snapshot() else { return Some(0) };
        snapshot.summary().additional_properties.get("total-files-size")?.parse().ok()
    }

    /// Rows in the current snapshot, if its writer said so; `None` where rows are deleted by delete
    /// files, or may be.
    pub fn row_count(&self) -> Option<u64> {
        let Some(snapshot) = self.metadata().current_snapshot() else { return Some(0) };
        let total =
            |key: &str| snapshot.summary().additional_properties.get(key)?.parse::<u64>().ok();
        total("total-delete-files").filter(|files| *files == 0)?;
        total("total-records")
    }

    /// Partition values of the rows of `batch` (which has the table's columns), one array per
    /// partition field: rows sorted by these arrays are written with one open file at a time.
    ///
    /// # Errors
    /// `Invalid` where a value has no partition value.
    pub fn partition_columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.partition_sources()?
            .into_iter()
            .map(|(column, transform)| {
                let array = batch.columns().get(column).ok_or_else(|| {
                    Error::internal(format!("batch for {} lacks column {column}", self.ident()))
                })?;
                transform_array(transform, array)
            })
            .collect()
    }

    /// The table as it is now.
    ///
    /// # Errors
    /// `NotFound` (42P01) where it was dropped or renamed.
    pub fn reload(&self) -> BoxFuture<'_, Result<Self>> {
        Box::pin(async move { self.warehouse().table(self.ident()).await })
    }

    /// Column position and transform of each partition field of the default spec.
    pub(crate) fn partition_sources(&self) -> Result<Vec<(usize, Transform)>> {
        let unsupported = |what: String| {
            Error::unsupported(format!("table {}: {what}", self.ident()))
                .with_hint("write to it with the engine that partitioned it")
        };
        let columns = self.metadata().current_schema().as_struct().fields();
        let source = |field: &iceberg::spec::PartitionField| {
            let column = columns.iter().position(|column| column.id == field.source_id);
            let column = column.ok_or_else(|| {
                unsupported(format!("partition field {:?} has no top-level column", field.name))
            })?;
            let transform = Transform::from_iceberg(field.transform).ok_or_else(|| {
                unsupported(format!("partition field {:?} has an unknown transform", field.name))
            })?;
            Ok((column, transform))
        };
        self.partition_spec().fields().iter().map(source).collect()
    }

    pub(crate) fn partition_spec(&self) -> &PartitionSpec {
        self.metadata().default_partition_spec()
    }

    pub(crate) fn metadata(&self) -> &Arc<TableMetadata> {
        &self.inner.loaded.metadata
    }

    /// Bytes of the metadata file, unpacked.
    pub(crate) fn metadata_bytes(&self) -> usize {
        self.inner.loaded.bytes
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} at {:?})", self.ident(), self.metadata_location())
    }
}

fn snapshot_info(snapshot: &iceberg::spec::Snapshot) -> SnapshotInfo {
    let summary = snapshot.summary();
    SnapshotInfo {
        id: snapshot.snapshot_id(),
        parent_id: snapshot.parent_snapshot_id(),
        timestamp_ms: snapshot.timestamp_ms(),
        operation: summary.operation.as_str().to_owned(),
        summary: summary.additional_properties.clone().into_iter().collect(),
    }
}
