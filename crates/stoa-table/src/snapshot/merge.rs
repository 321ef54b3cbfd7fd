//! Keeping the number of manifests small.
//!
//! Every append adds a manifest, and a scan looks at all of them. Once there are enough
//! (`commit.manifest.min-count-to-merge`, 100), an append rewrites the small ones into few: the
//! files stay, their entries move. `commit.manifest-merge.enabled = false` switches it off.

use iceberg::spec::{DataFile, ManifestContentType, ManifestFile, ManifestWriter, TableMetadata};
use stoa_error::Result;

use crate::Table;
use crate::files::ManifestKind;
use crate::lineage::Lineage;

/// Manifests that make a merge worth while.
const MANIFESTS_MIN: usize = 100;

/// Bytes up to which manifests are merged.
const MANIFEST_BYTES: i64 = 8 << 20;

/// Where the files of one attempt go.
pub(crate) struct Target {
    /// Merged manifests go to `<prefix>-m<number>.avro`, ones without some of their files to
    /// `<prefix>-f<number>.avro`.
    pub(crate) prefix: String,
    /// The manifest list.
    pub(crate) list: String,
    pub(crate) snapshot_id: i64,
}

/// Merges the small ones of `manifests` where there are enough. New files are noted in `scratch`.
/// Merging is a kindness to readers: if it fails, the manifests stay as they are.
pub(crate) async fn merge(
    table: &Table,
    manifests: Vec<ManifestFile>,
    target: &Target,
    scratch: &mut Vec<String>,
) -> Vec<ManifestFile> {
    let Limits { count_min, bytes } = Limits::of(table.metadata());
    let spec = table.partition_spec().spec_id();
    let is_small = |manifest: &ManifestFile| {
        manifest.content == ManifestContentType::Data
            && manifest.partition_spec_id == spec
            && manifest.manifest_length < bytes
            && manifest.key_metadata.as_ref().is_none_or(Vec::is_empty)
    };
    let (small, mut kept): (Vec<_>, Vec<_>) = manifests.into_iter().partition(is_small);
    if small.len() < count_min {
        // The order of manifests has no meaning; newest first is a habit of writers.
        kept.splice(0..0, small);
        return kept;
    }
    for (number, group) in groups(small, bytes).into_iter().enumerate() {
        // 0 is the manifest of the files that are added.
        let path = format!("{}-m{}.avro", target.prefix, number + 1);
        match merge_group(table, &group, &path, target.snapshot_id).await {
            Ok(Some(merged)) => {
                scratch.push(path);
                kept.push(merged);
            }
            // Nothing alive was in there.
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(table = %table.ident(), %error, "manifests stay unmerged");
                kept.extend(group);
            }
        }
    }
    kept
}

/// Runs of manifests of about `bytes` each.
fn groups(manifests: Vec<ManifestFile>, bytes: i64) -> Vec<Vec<ManifestFile>> {
    let mut groups: Vec<Vec<ManifestFile>> = Vec::new();
    let mut size = i64::MAX;
    for manifest in manifests {
        size = size.saturating_add(manifest.manifest_length);
        match groups.last_mut() {
            Some(group) if size <= bytes => group.push(manifest),
            _ => {
                size = manifest.manifest_length;
                groups.push(vec![manifest]);
            }
        }
    }
    groups
}

async fn merge_group(
    table: &Table,
    group: &[ManifestFile],
    path: &str,
    snapshot_id: i64,
) -> Result<Option<ManifestFile>> {
    if let [only] = group {
        return Ok(Some(only.clone()));
    }
    let files = table.warehouse().files();
    let mut entries = Vec::new();
    for manifest in group {
        let (parsed, _) = files.parse_manifest(manifest).await?;
        for entry in parsed.entries().iter().filter(|entry| entry.is_alive()) {
            entries.push((entry.data_file().clone(), Lineage::of(manifest, entry)));
        }
    }
    if entries.is_empty() {
        return Ok(None);
    }
    let kind = ManifestKind {
        content: ManifestContentType::Data,
        schema: table.metadata().current_schema().clone(),
        spec: table.partition_spec().clone(),
    };
    let merged = files
        .write_manifest_with(path, snapshot_id, kind, |writer| {
            entries.into_iter().try_for_each(|(file, lineage)| keep(writer, file, lineage))
        })
        .await?;
    Ok(Some(merged))
}

/// Notes a file that stays where it was.
pub(crate) fn keep(
    writer: &mut ManifestWriter,
    file: DataFile,
    lineage: Lineage,
) -> iceberg::Result<()> {
    let Lineage { snapshot_id, sequence_number, file_sequence_number } = lineage;
    writer.add_existing_file(file, snapshot_id, sequence_number, Some(file_sequence_number))
}

struct Limits {
    count_min: usize,
    bytes: i64,
}

impl Limits {
    fn of(metadata: &TableMetadata) -> Self {
        let property = |key: &str| metadata.properties().get(key);
        let enabled = property("commit.manifest-merge.enabled").is_none_or(|text| text != "false");
        let count =
            property("commit.manifest.min-count-to-merge").and_then(|text| text.parse().ok());
        let bytes =
            property("commit.manifest.target-size-bytes").and_then(|text| text.parse().ok());
        Self {
            count_min: if enabled { count.unwrap_or(MANIFESTS_MIN).max(2) } else { usize::MAX },
            bytes: bytes.unwrap_or(MANIFEST_BYTES),
        }
    }
}
