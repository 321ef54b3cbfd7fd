//! Which delete files concern a data file.
//!
//! In: the delete manifests of a snapshot. Out: per data file the delete files that may name rows of
//! it. Rules are those of the specification and of Iceberg's Java (`DeleteFileIndex`):
//!
//! | kind | data file | sequence number of the data file |
//! |---|---|---|
//! | vector, positions of one file | that file | not above that of the deletes |
//! | other positions | same partition spec and values | not above |
//! | equality, partitioned | same partition spec and values | below |
//! | equality, of an unpartitioned spec | any | below |

use std::collections::HashSet;
use std::sync::Arc;

use iceberg::spec::{ManifestContentType, ManifestFile, Struct};
use stoa_error::Result;

use super::{ByKey, DeleteFile, DeleteKind};
use crate::Table;
use crate::files::LiveFile;
use crate::scan::has_live_files;

/// Delete files of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct DeleteIndex {
    by_data_file: ByKey<String>,
    by_partition: ByKey<(i32, Struct)>,
    everywhere: Vec<Arc<DeleteFile>>,
}

impl DeleteIndex {
    /// Reads the delete manifests among `manifests`, which are of `table`.
    pub(crate) async fn load(table: &Table, manifests: &[ManifestFile]) -> Result<Self> {
        let mut index = Self::default();
        for manifest in manifests.iter().filter(|manifest| is_of_deletes(manifest)) {
            let loaded = table.warehouse().files().manifest(manifest).await?;
            for live in &loaded.files {
                if let Some(delete) = &live.delete {
                    index.add(table, manifest.partition_spec_id, live, delete);
                }
            }
        }
        Ok(index)
    }

    fn add(&mut self, table: &Table, spec_id: i32, live: &LiveFile, delete: &Arc<DeleteFile>) {
        let delete = delete.clone();
        let of_whole_table =
            matches!(delete.kind, DeleteKind::Equality { .. }) && is_unpartitioned(table, spec_id);
        match delete.data_file() {
            Some(file) => self.by_data_file.entry(file.to_owned()).or_default().push(delete),
            None if of_whole_table => self.everywhere.push(delete),
            None => {
                let key = (spec_id, live.partition.clone());
                self.by_partition.entry(key).or_default().push(delete);
            }
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_data_file.is_empty() && self.by_partition.is_empty() && self.everywhere.is_empty()
    }

    /// The delete files that may name rows of a data file, which was written with `spec_id`.
    pub(crate) fn of(&self, spec_id: i32, data: &LiveFile) -> Vec<Arc<DeleteFile>> {
        if self.is_empty() {
            return Vec::new();
        }
        let of_file = self.by_data_file.get(&data.file.location).into_iter().flatten();
        let of_partition = self.by_partition.get(&(spec_id, data.partition.clone()));
        let all = of_file.chain(of_partition.into_iter().flatten()).chain(&self.everywhere);
        all.filter(|delete| delete.reaches(data.sequence_number)).cloned().collect()
    }
}

/// Data files that stay, to judge which delete files are still needed.
#[derive(Debug, Default)]
pub(crate) struct Survivors {
    locations: HashSet<String>,
    /// The least sequence number per partition.
    partitions: std::collections::HashMap<(i32, Struct), i64>,
    least: Option<i64>,
}

impl Survivors {
    pub(crate) fn add(&mut self, spec_id: i32, data: &LiveFile) {
        let number = data.sequence_number;
        self.locations.insert(data.file.location.clone());
        let of_partition =
            self.partitions.entry((spec_id, data.partition.clone())).or_insert(number);
        *of_partition = number.min(*of_partition);
        self.least = Some(self.least.map_or(number, |least| least.min(number)));
    }

    /// Whether a delete file may still name rows of one of them.
    pub(crate) fn need(
        &self,
        table: &Table,
        spec_id: i32,
        live: &LiveFile,
        delete: &DeleteFile,
    ) -> bool {
        if let Some(file) = delete.data_file() {
            return self.locations.contains(file);
        }
        let of_whole_table =
            matches!(delete.kind, DeleteKind::Equality { .. }) && is_unpartitioned(table, spec_id);
        let least = match of_whole_table {
            true => self.least,
            false => self.partitions.get(&(spec_id, live.partition.clone())).copied(),
        };
        least.is_some_and(|least| delete.reaches(least))
    }
}

/// Whether a manifest lists delete files that are alive.
pub(crate) fn is_of_deletes(manifest: &ManifestFile) -> bool {
    manifest.content == ManifestContentType::Deletes && has_live_files(manifest)
}

fn is_unpartitioned(table: &Table, spec_id: i32) -> bool {
    let spec = table.metadata().partition_spec_by_id(spec_id);
    spec.is_some_and(|spec| spec.is_unpartitioned())
}
