//! What a manifest's entry says about when its file came to be.

use iceberg::spec::{ManifestEntry, ManifestFile, ManifestStatus};

/// Snapshot and sequence numbers of an entry, as a rewritten manifest must repeat them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lineage {
    /// The snapshot that added the file.
    pub(crate) snapshot_id: i64,
    /// The data sequence number.
    pub(crate) sequence_number: i64,
    /// The sequence number of the snapshot that added the file.
    pub(crate) file_sequence_number: i64,
}

impl Lineage {
    /// Reads them off a live entry. What an entry does not say it inherits from its manifest (spec,
    /// "sequence number inheritance"); what neither says is of a table that was once version 1,
    /// where all numbers are 0.
    pub(crate) fn of(manifest: &ManifestFile, entry: &ManifestEntry) -> Self {
        let inherited =
            (entry.status() == ManifestStatus::Added).then_some(manifest.sequence_number);
        let sequence_number = entry.sequence_number().or(inherited).unwrap_or(0);
        let own = entry.file_sequence_number.or(inherited);
        Self {
            snapshot_id: entry.snapshot_id().unwrap_or(manifest.added_snapshot_id),
            sequence_number,
            file_sequence_number: own.unwrap_or(sequence_number),
        }
    }
}
