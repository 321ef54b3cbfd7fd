//! What a snapshot says about itself, with the keys that other engines write.

use std::collections::{HashMap, HashSet};

use iceberg::spec::{DataFile, Struct};

use crate::deletes::DeleteCounts;

/// Summary key of a snapshot that holds what an earlier one held: the id of that one.
pub(crate) const ROLLED_BACK_TO: &str = "stoa.rolled-back-to";

/// Files and what is in them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) files: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Delete files, whose bytes are not in `bytes`.
    pub(crate) deletes: DeleteCounts,
    /// Partition spec and values.
    partitions: HashSet<(i32, Struct)>,
}

impl Counts {
    pub(crate) fn of(spec_id: i32, files: &[DataFile]) -> Self {
        let mut counts = Self::default();
        files.iter().for_each(|file| counts.add(spec_id, file));
        counts
    }

    pub(crate) fn add(&mut self, spec_id: i32, file: &DataFile) {
        self.files += 1;
        self.rows += file.record_count();
        self.bytes += file.file_size_in_bytes();
        self.partitions.insert((spec_id, file.partition().clone()));
    }
}

/// What is in a snapshot before something is added and removed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before<'a> {
    /// Nothing, or nothing of it stays.
    Nothing,
    /// What the parent's summary says.
    Parent(&'a HashMap<String, String>),
}

/// The keys of a snapshot that adds and removes files.
pub(crate) fn summary(
    before: Before<'_>,
    added: &Counts,
    removed: &Counts,
) -> HashMap<String, String> {
    let mut summary = HashMap::new();
    let mut set = |key: &str, value: u64| summary.insert(key.to_owned(), value.to_string());
    if added.files > 0 {
        set("added-data-files", added.files);
        set("added-records", added.rows);
        set("added-files-size", added.bytes);
    }
    if removed.files > 0 {
        set("deleted-data-files", removed.files);
        set("deleted-records", removed.rows);
    }
    if removed.files > 0 || removed.deletes.files > 0 {
        set("removed-files-size", removed.bytes + removed.deletes.bytes);
    }
    let deletes = &removed.deletes;
    for (key, value) in [
        ("removed-delete-files", deletes.files),
        ("removed-position-deletes", deletes.position_deletes),
        ("removed-equality-deletes", deletes.equality_deletes),
    ] {
        if value > 0 {
            set(key, value);
        }
    }
    set("changed-partition-count", added.partitions.union(&removed.partitions).count() as u64);
    for (key, plus, minus) in [
        ("total-data-files", added.files, removed.files),
        ("total-records", added.rows, removed.rows),
        ("total-files-size", added.bytes, removed.bytes + deletes.bytes),
        ("total-delete-files", 0, deletes.files),
        ("total-position-deletes", 0, deletes.position_deletes),
        ("total-equality-deletes", 0, deletes.equality_deletes),
    ] {
        let total = match before {
            Before::Nothing => Some(plus),
            // A total that the parent does not know stays unknown.
            Before::Parent(parent) => {
                let parent = parent.get(key).and_then(|text| text.parse::<u64>().ok());
                parent.and_then(|total| total.checked_add(plus)?.checked_sub(minus))
            }
        };
        if let Some(total) = total {
            set(key, total);
        }
    }
    summary.extend(engine_keys());
    summary
}

/// Who made a snapshot.
pub(crate) fn engine_keys() -> [(String, String); 2] {
    [("engine-name", "stoa"), ("engine-version", env!("CARGO_PKG_VERSION"))]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
}
