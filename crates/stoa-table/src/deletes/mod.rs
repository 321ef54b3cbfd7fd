//! Rows that are deleted without their data files being written anew ("merge on read").
//!
//! ```text
//! delete manifests ─► index: which delete files concern a data file?      index
//! delete files ─► positions (bitmaps), keys of equality deletes           load, vector
//! batch of a data file, number of its first row ─► rows that are left     apply
//! ```
//! Three kinds, as Iceberg's specification has them: *position deletes* name rows by file and number
//! (v2), *deletion vectors* are bitmaps of row numbers of one file (v3), *equality deletes* name rows
//! by values (v2; NULL equals NULL, NaN equals NaN, 0.0 does not equal -0.0, as in Iceberg's Java).
//!
//! **Invariant:** which delete files concern a data file depends on sequence numbers and partitions
//! only (spec, "scan planning"); in doubt one concerns it, and its content decides.
//! Not here: writing delete files (rows are changed by rewriting data files), decoding (`data`).

mod apply;
mod index;
mod load;
mod vector;

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{DataContentType, DataFile};

use crate::scan::ScanFile;
pub(crate) use apply::DeletedRows;
pub(crate) use index::{DeleteIndex, Survivors};
pub(crate) use load::DeleteCache;

/// One delete file, or one deletion vector in a file of many.
#[derive(Clone, Debug)]
pub struct DeleteFile {
    /// Where it is; `rows` counts deletes.
    pub file: Arc<ScanFile>,
    /// How it names rows.
    pub kind: DeleteKind,
    /// Its data sequence number.
    pub sequence_number: i64,
}

/// How deleted rows are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteKind {
    /// By file and row number.
    Positions {
        /// The one data file that it is about, if it says so.
        data_file: Option<String>,
    },
    /// By row number of one data file.
    Vector {
        /// That file.
        data_file: String,
        /// Where the vector begins in the file that holds it.
        offset: u64,
        /// Its length in bytes.
        bytes: u64,
    },
    /// By the values of these columns (field ids).
    Equality {
        /// Ascending.
        field_ids: Vec<i32>,
    },
}

impl DeleteFile {
    /// What an entry of a delete manifest says; the reason where it makes no sense.
    pub(crate) fn of(
        file: Arc<ScanFile>,
        entry: &DataFile,
        sequence_number: i64,
    ) -> Result<Self, &'static str> {
        let offset = entry.content_offset().and_then(|offset| u64::try_from(offset).ok());
        let bytes = entry.content_size_in_bytes().and_then(|bytes| u64::try_from(bytes).ok());
        let kind = match entry.content_type() {
            DataContentType::Data => return Err("a data file in a manifest of deletes"),
            DataContentType::EqualityDeletes => {
                let mut field_ids = entry.equality_ids().unwrap_or_default();
                field_ids.sort_unstable();
                field_ids.dedup();
                if field_ids.is_empty() {
                    return Err("equality deletes without columns");
                }
                DeleteKind::Equality { field_ids }
            }
            DataContentType::PositionDeletes => match (offset, bytes, entry.referenced_data_file())
            {
                (Some(offset), Some(bytes), Some(data_file)) => {
                    DeleteKind::Vector { data_file, offset, bytes }
                }
                (None, None, data_file) => DeleteKind::Positions { data_file },
                _ => return Err("a deletion vector without its data file, place or length"),
            },
        };
        Ok(Self { file, kind, sequence_number })
    }

    /// The one data file that it is about, if it says so.
    pub(crate) fn data_file(&self) -> Option<&str> {
        match &self.kind {
            DeleteKind::Positions { data_file } => data_file.as_deref(),
            DeleteKind::Vector { data_file, .. } => Some(data_file),
            DeleteKind::Equality { .. } => None,
        }
    }

    /// Tells delete files apart: several vectors share a file.
    pub(crate) fn id(&self) -> (&str, u64) {
        let offset = match self.kind {
            DeleteKind::Vector { offset, .. } => offset,
            _ => 0,
        };
        (&self.file.location, offset)
    }

    /// Whether its sequence number lets it concern rows of `sequence_number`.
    fn reaches(&self, sequence_number: i64) -> bool {
        match self.kind {
            // Rows that the same commit added are not concerned.
            DeleteKind::Equality { .. } => sequence_number < self.sequence_number,
            _ => sequence_number <= self.sequence_number,
        }
    }
}

/// Files and rows of delete files, as summaries of snapshots count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteCounts {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) position_deletes: u64,
    pub(crate) equality_deletes: u64,
}

impl DeleteCounts {
    pub(crate) fn add(&mut self, file: &DataFile) {
        self.files += 1;
        self.bytes += stored_bytes(file);
        match file.content_type() {
            DataContentType::EqualityDeletes => self.equality_deletes += file.record_count(),
            _ => self.position_deletes += file.record_count(),
        }
    }
}

/// Bytes that an entry stands for: of a file with several vectors only its own.
pub(crate) fn stored_bytes(file: &DataFile) -> u64 {
    let of_vector = file.content_size_in_bytes().and_then(|bytes| u64::try_from(bytes).ok());
    match file.content_type() {
        DataContentType::Data => file.file_size_in_bytes(),
        _ => of_vector.unwrap_or_else(|| file.file_size_in_bytes()),
    }
}

/// Delete files by what finds them.
type ByKey<K> = HashMap<K, Vec<Arc<DeleteFile>>>;
