//! Which snapshots are old enough to be forgotten.
//!
//! Iceberg counts the age of a snapshot from when it was made. Here it counts from when it stopped
//! being the current one: a scan may have begun on it until then, and its files must outlive that
//! scan. This keeps more than Iceberg asks for, never less.

use std::collections::{HashMap, HashSet};

use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention, TableMetadata};
use stoa_error::{Error, Result};

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keep {
    /// Snapshots that were current after this moment, in milliseconds since 1970-01-01 UTC.
    pub(super) since_ms: i64,
    /// At least so many of each branch.
    pub(super) least: usize,
    /// What bounds their number.
    pub(super) crowd: Option<Crowd>,
}

/// How many snapshots a table keeps that are young enough to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crowd {
    /// So many.
    pub(super) count_max: usize,
    /// Those that were current after this moment stay in any case.
    pub(super) since_ms: i64,
}

impl Keep {
    /// Whether a snapshot that was left behind at `left_ms` may be one too many.
    fn is_crowded_out(&self, number: usize, left_ms: i64) -> bool {
        self.crowd.is_some_and(|crowd| number >= crowd.count_max && left_ms < crowd.since_ms)
    }
}

/// The ids of snapshots that may go. Heads of branches, and tags, stay; and of those that are only
/// too many, the ones that are `in_use`.
pub(super) fn choose(
    metadata: &TableMetadata,
    now_ms: i64,
    keep: Keep,
    in_use: &HashSet<i64>,
) -> Result<Vec<i64>> {
    let left = moments_left(metadata);
    let mut kept: HashSet<i64> = HashSet::new();
    let mut on_branches: HashSet<i64> = HashSet::new();
    for (name, reference) in references(metadata)? {
        let keep = match reference.retention {
            SnapshotRetention::Tag { .. } => {
                kept.insert(reference.snapshot_id);
                continue;
            }
            SnapshotRetention::Branch { .. } if name == MAIN_BRANCH => keep,
            SnapshotRetention::Branch { min_snapshots_to_keep, max_snapshot_age_ms, .. } => {
                let least = min_snapshots_to_keep.and_then(|least| usize::try_from(least).ok());
                Keep {
                    since_ms: max_snapshot_age_ms
                        .map_or(keep.since_ms, |age| keep.since_ms.min(now_ms - age)),
                    least: least.unwrap_or(keep.least),
                    crowd: None,
                }
            }
        };
        let branch = ancestors(metadata, reference.snapshot_id);
        let is_old = |id: &i64| left.get(id).is_some_and(|left_ms| *left_ms < keep.since_ms);
        let stays = |(index, id): &(usize, &i64)| {
            let crowded = left.get(*id).is_some_and(|at| keep.is_crowded_out(*index, *at));
            // The head stays in any case.
            *index < keep.least.max(1) || (!is_old(id) && !crowded)
        };
        kept.extend(branch.iter().enumerate().take_while(stays).map(|(_, id)| *id));
        kept.extend(branch.iter().filter(|id| in_use.contains(id) && !is_old(id)));
        on_branches.extend(branch);
    }
    let total = metadata.snapshots().len();
    let gone = |id: &i64| match on_branches.contains(id) {
        true => !kept.contains(id),
        // Nothing leads to it any more: it was rolled back, or those after it were too many.
        false => {
            let left = left.get(id).copied().unwrap_or(i64::MAX);
            let crowded = !in_use.contains(id) && keep.is_crowded_out(total, left);
            !kept.contains(id) && (left < keep.since_ms || crowded)
        }
    };
    Ok(metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).filter(gone).collect())
}

/// When each snapshot stopped being current; the current one is left out.
fn moments_left(metadata: &TableMetadata) -> HashMap<i64, i64> {
    let mut left: HashMap<i64, i64> = HashMap::new();
    let mut note = |id: i64, at: i64| {
        let known = left.entry(id).or_insert(at);
        *known = at.max(*known);
    };
    for snapshot in metadata.snapshots() {
        // Of one that was never current, and is nobody's parent, nothing else is known.
        note(snapshot.snapshot_id(), snapshot.timestamp_ms());
        if let Some(parent) = snapshot.parent_snapshot_id() {
            note(parent, snapshot.timestamp_ms());
        }
    }
    for pair in metadata.history().windows(2) {
        note(pair[0].snapshot_id, pair[1].timestamp_ms);
    }
    if let Some(current) = metadata.current_snapshot_id() {
        left.remove(&current);
    }
    left
}

/// `head`, its parent, and so on, as far as they are there.
fn ancestors(metadata: &TableMetadata, head: i64) -> Vec<i64> {
    let snapshot = |id: i64| metadata.snapshot_by_id(id);
    std::iter::successors(snapshot(head), |next| snapshot(next.parent_snapshot_id()?))
        .map(|snapshot| snapshot.snapshot_id())
        .collect()
}

/// Branches and tags.
pub(crate) fn references(metadata: &TableMetadata) -> Result<HashMap<String, SnapshotReference>> {
    // The library hands them out one by one, by name, only.
    let read = || {
        let mut whole = serde_json::to_value(metadata)?;
        serde_json::from_value(
            whole.get_mut("refs").map(serde_json::Value::take).unwrap_or_default(),
        )
    };
    let references: Option<HashMap<String, SnapshotReference>> =
        read().map_err(|source: serde_json::Error| {
            Error::internal("branches of a table cannot be listed").with_source(source)
        })?;
    let mut references = references.unwrap_or_default();
    if let Some(current) = metadata.current_snapshot_id() {
        let retention = SnapshotRetention::Branch {
            min_snapshots_to_keep: None,
            max_snapshot_age_ms: None,
            max_ref_age_ms: None,
        };
        let main = SnapshotReference::new(current, retention);
        references.entry(MAIN_BRANCH.to_owned()).or_insert(main);
    }
    Ok(references)
}

#[cfg(test)]
mod tests;
