//! From a snapshot's manifests to the files that a scan reads.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use iceberg::spec::{
    DataFile, DataFileFormat, Datum, FieldSummary, ManifestContentType, ManifestFile,
    ManifestMetadata, PrimitiveType, TableMetadata,
};
use stoa_error::Result;
use stoa_orc::{ColumnRef, Literal, Predicate};
use stoa_store::Stores;

use super::projection::{self, PartitionBounds};
use super::verdict::{self, FieldBounds};
use super::{FileFormat, PartitionResult, PartitionValue, ScanFile, ScanPlan};
use crate::data::has_defaults;
use crate::deletes::DeleteIndex;
use crate::error::from_iceberg;
use crate::files::{LiveFile, LoadedManifest};
use crate::transform::partition_path;
use crate::{Table, Transform, value};

/// Manifests read at the same time.
const MANIFEST_READS_MAX: usize = 8;

impl Table {
    /// The files that may hold rows matching `predicate` (columns by field id).
    ///
    /// # Errors
    /// `Corrupt` where metadata is missing or not valid.
    pub fn plan_scan<'a>(&'a self, predicate: &'a Predicate) -> BoxFuture<'a, Result<ScanPlan>> {
        Box::pin(async move { plan(self, predicate).await })
    }
}

/// Plans a scan of `table`'s current snapshot.
async fn plan(table: &Table, predicate: &Predicate) -> Result<ScanPlan> {
    let metadata = table.metadata();
    let mut plan = ScanPlan {
        snapshot_id: None,
        files: Vec::new(),
        manifests_total: 0,
        manifests_pruned: 0,
        files_total: 0,
        files_pruned_by_partition: 0,
        files_pruned_by_statistics: 0,
    };
    let Some(snapshot) = metadata.current_snapshot() else { return Ok(plan) };
    plan.snapshot_id = Some(snapshot.snapshot_id());
    let files = table.warehouse().files();
    let manifests = files.manifest_list(snapshot, metadata.format_version()).await?;
    let mut surviving = Vec::with_capacity(manifests.len());
    let live = manifests.iter().filter(|manifest| has_live_files(manifest));
    for manifest in live.filter(|manifest| manifest.content == ManifestContentType::Data) {
        plan.manifests_total += 1;
        if predicate.is_always() || manifest_may_match(metadata, manifest, predicate) {
            surviving.push(manifest);
        } else {
            plan.manifests_pruned += 1;
            let files = live_file_count(manifest);
            plan.files_total += files;
            plan.files_pruned_by_partition += files;
        }
    }
    // The futures are made before they are streamed: a closure over borrowed manifests inside the
    // stream would keep this future from being `Send`.
    let reads: Vec<_> = surviving.into_iter().map(|manifest| files.manifest(manifest)).collect();
    let loaded: Vec<Arc<LoadedManifest>> =
        futures::stream::iter(reads).buffered(MANIFEST_READS_MAX).try_collect().await?;
    let columns = comparable_columns(metadata);
    let deletes = DeleteIndex::load(table, &manifests).await?;
    let has_defaults = has_defaults(metadata.current_schema().as_struct().fields());
    for manifest in loaded {
        for live in &manifest.files {
            let file = &live.file;
            plan.files_total += 1;
            if !partition_may_match(file, predicate) {
                plan.files_pruned_by_partition += 1;
            } else if !statistics_may_match(file, predicate, &columns) {
                plan.files_pruned_by_statistics += 1;
            } else {
                plan.files.push(described(manifest.spec_id, live, &deletes, has_defaults));
            }
        }
    }
    Ok(plan)
}

/// The file of an entry with what concerns its rows in this version of the table.
pub(crate) fn described(
    spec_id: i32,
    live: &LiveFile,
    deletes: &DeleteIndex,
    has_defaults: bool,
) -> Arc<ScanFile> {
    let deletes = deletes.of(spec_id, live);
    if deletes.is_empty() && !has_defaults {
        return live.file.clone();
    }
    Arc::new(ScanFile { deletes, has_defaults, ..live.file.as_ref().clone() })
}

/// What a scan needs to know of one data file.
pub(crate) fn file_entry(
    stores: &Stores,
    manifest: &ManifestMetadata,
    file: &DataFile,
    snapshot_id: i64,
) -> Result<ScanFile> {
    let location = file.file_path();
    let place = stores.resolve(location)?;
    let spec = manifest.partition_spec();
    let types = spec.partition_type(manifest.schema()).map_err(|e| from_iceberg(location, e))?;
    let mut partition = Vec::with_capacity(spec.fields().len());
    for ((field, nested), value) in
        spec.fields().iter().zip(types.fields()).zip(file.partition().iter())
    {
        let primitive = nested.field_type.as_primitive_type();
        let value = match (value.and_then(|value| value.as_primitive_literal()), primitive) {
            (Some(value), Some(primitive)) => value::from_primitive(&value, primitive)
                .map_or(PartitionResult::Unknown, PartitionResult::Value),
            _ => PartitionResult::Null,
        };
        partition.push(PartitionValue {
            name: field.name.clone(),
            source_id: field.source_id,
            // An unknown transform prunes nothing, like void.
            transform: Transform::from_iceberg(field.transform).unwrap_or(Transform::Void),
            value,
        });
    }
    let partition_text = partition_path(partition.iter().map(|v| (v.name.as_str(), v.text())));
    Ok(ScanFile {
        location: location.to_owned(),
        store: place.store,
        reader: place.reader,
        path: place.path,
        file_bytes: file.file_size_in_bytes(),
        rows: file.record_count(),
        partition,
        partition_text,
        value_counts: file.value_counts().clone(),
        null_counts: file.null_value_counts().clone(),
        nan_counts: file.nan_value_counts().clone(),
        lower_bounds: literals(file.lower_bounds()),
        upper_bounds: literals(file.upper_bounds()),
        split_offsets: file
            .split_offsets()
            .unwrap_or_default()
            .iter()
            .filter_map(|offset| u64::try_from(*offset).ok())
            .collect(),
        sort_order_id: file.sort_order_id(),
        snapshot_id: Some(snapshot_id),
        format: match file.file_format() {
            DataFileFormat::Orc => FileFormat::Orc,
            DataFileFormat::Parquet => FileFormat::Parquet,
            DataFileFormat::Avro => FileFormat::Avro,
            DataFileFormat::Puffin => FileFormat::Puffin,
        },
        is_encrypted: file.key_metadata().is_some_and(|key| !key.is_empty()),
        deletes: Vec::new(),
        has_defaults: false,
    })
}

fn literals(bounds: &HashMap<i32, Datum>) -> HashMap<i32, Literal> {
    bounds.iter().filter_map(|(id, bound)| Some((*id, value::from_datum(bound)?))).collect()
}

/// Whether a partition that this manifest covers may hold matching rows.
pub(crate) fn manifest_may_match(
    metadata: &TableMetadata,
    manifest: &ManifestFile,
    predicate: &Predicate,
) -> bool {
    let Some(spec) = metadata.partition_spec_by_id(manifest.partition_spec_id) else { return true };
    let Some(summaries) = &manifest.partitions else { return true };
    // The spec may name columns that the current schema has dropped; without their types the
    // summaries cannot be read, and nothing is pruned.
    let Ok(types) = spec.partition_type(metadata.current_schema()) else { return true };
    if summaries.len() != spec.fields().len() || types.fields().len() != summaries.len() {
        return true;
    }
    let ranges: Vec<Range> = types
        .fields()
        .iter()
        .zip(summaries)
        .map(|(field, summary)| Range::new(field.field_type.as_primitive_type(), summary))
        .collect();
    let fields: Vec<PartitionBounds<'_>> = spec
        .fields()
        .iter()
        .zip(&ranges)
        .map(|(field, range)| PartitionBounds {
            source_id: field.source_id,
            transform: Transform::from_iceberg(field.transform),
            bounds: range.bounds(),
        })
        .collect();
    projection::may_match(predicate, &fields)
}

/// The values of one partition field in a manifest.
struct Range {
    lower: Option<Literal>,
    upper: Option<Literal>,
    has_null: bool,
    has_value: Option<bool>,
    has_nan: Option<bool>,
}

impl Range {
    fn new(primitive: Option<&PrimitiveType>, summary: &FieldSummary) -> Self {
        let bound = |bytes: Option<&[u8]>| -> Option<Literal> {
            value::from_datum(&Datum::try_from_bytes(bytes?, primitive?.clone()).ok()?)
        };
        // Without any bound there is nothing but NULLs, unless NaNs are hidden.
        let nothing = summary.lower_bound.is_none()
            && summary.upper_bound.is_none()
            && summary.contains_null
            && summary.contains_nan == Some(false);
        Self {
            lower: bound(summary.lower_bound.as_ref().map(|b| b.as_slice())),
            upper: bound(summary.upper_bound.as_ref().map(|b| b.as_slice())),
            has_null: summary.contains_null,
            has_value: nothing.then_some(false),
            has_nan: summary.contains_nan,
        }
    }

    fn bounds(&self) -> FieldBounds<'_> {
        FieldBounds {
            lower: self.lower.as_ref(),
            upper: self.upper.as_ref(),
            has_null: Some(self.has_null),
            has_value: self.has_value,
            has_nan: self.has_nan,
        }
    }
}

pub(crate) fn partition_may_match(file: &ScanFile, predicate: &Predicate) -> bool {
    if file.partition.is_empty() {
        return true;
    }
    let fields: Vec<PartitionBounds<'_>> = file.partition.iter().map(single_value).collect();
    projection::may_match(predicate, &fields)
}

/// The bounds of one partition value.
fn single_value(value: &PartitionValue) -> PartitionBounds<'_> {
    let is_null = value.value == PartitionResult::Null;
    let (bound, has_nan) = match &value.value {
        PartitionResult::Value(Literal::Float(v)) if v.is_nan() => (None, Some(true)),
        PartitionResult::Value(value) => (Some(value), Some(false)),
        PartitionResult::Null => (None, Some(false)),
        PartitionResult::Unknown => (None, None),
    };
    PartitionBounds {
        source_id: value.source_id,
        transform: Some(value.transform),
        bounds: FieldBounds {
            lower: bound,
            upper: bound,
            has_null: Some(is_null),
            has_value: Some(!is_null),
            has_nan,
        },
    }
}

pub(crate) fn statistics_may_match(
    file: &ScanFile,
    predicate: &Predicate,
    columns: &HashSet<i32>,
) -> bool {
    let bounds = |column: ColumnRef| match column {
        ColumnRef::Field(id) if columns.contains(&id) => file_bounds(file, id),
        _ => FieldBounds::default(),
    };
    verdict::may_match(predicate, &bounds)
}

fn file_bounds(file: &ScanFile, id: i32) -> FieldBounds<'_> {
    let nulls = file.null_counts.get(&id).copied();
    let values = file.value_counts.get(&id).copied();
    FieldBounds {
        lower: file.lower_bounds.get(&id),
        upper: file.upper_bounds.get(&id),
        has_null: nulls.map(|nulls| nulls > 0),
        has_value: nulls.zip(values).map(|(nulls, values)| nulls < values),
        has_nan: file.nan_counts.get(&id).map(|nans| *nans > 0),
    }
}

/// Columns whose counts and bounds speak of rows: top-level primitives. (Counts inside lists, maps
/// and nullable structs are of elements, not rows.)
pub(crate) fn comparable_columns(metadata: &TableMetadata) -> HashSet<i32> {
    let fields = metadata.current_schema().as_struct().fields();
    fields.iter().filter(|field| field.field_type.is_primitive()).map(|field| field.id).collect()
}

pub(crate) fn has_live_files(manifest: &ManifestFile) -> bool {
    manifest.has_added_files() || manifest.has_existing_files()
}

fn live_file_count(manifest: &ManifestFile) -> usize {
    let added = manifest.added_files_count.unwrap_or(0);
    let existing = manifest.existing_files_count.unwrap_or(0);
    added as usize + existing as usize
}
