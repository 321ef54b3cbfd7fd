//! Taking data files out of a snapshot's manifests, and delete files that none of the others needs.
//!
//! In: the manifests of the parent snapshot and what is to go. Out: the manifests of the new one:
//! untouched ones by reference, the others written anew, with every file that stays as `existing`
//! and every file that goes as `deleted`, both with the sequence numbers they had (spec, "manifest
//! entry fields"). Manifests in which nothing is alive are left out: what they say was deleted, an
//! earlier snapshot has said already.

use std::collections::HashSet;
use std::sync::Arc;

use iceberg::spec::{ManifestContentType, ManifestFile, Struct};
use stoa_error::{Error, Result};

use super::merge::{Target, keep};
use super::summary::Counts;
use super::{current_id, parent_manifests};
use crate::Table;
use crate::deletes::Survivors;
use crate::files::{LiveFile, LoadedManifest, ManifestKind};
use crate::lineage::Lineage;
use crate::scan::{Coverage, has_live_files, manifest_may_match};

/// What goes.
#[derive(Debug)]
pub(crate) enum Removal {
    /// Nothing.
    Nothing,
    /// The data files at these locations, all of which must be there.
    Files(HashSet<String>),
    /// Everything, row-level deletes too.
    Everything,
    /// All files of these partitions of a spec.
    Partitions { spec_id: i32, values: HashSet<Struct> },
    /// Files that a predicate covers; one of which it matches a part is an error.
    Matching(Coverage),
    /// Files whose partition a predicate covers; all others stay.
    WholePartitions(Coverage),
}

/// Manifests after a removal.
#[derive(Debug, Default)]
pub(crate) struct Remaining {
    /// Untouched ones.
    pub(crate) kept: Vec<ManifestFile>,
    /// Ones written anew, with entries of files that go.
    pub(crate) rewritten: Vec<ManifestFile>,
    /// What went.
    pub(crate) removed: Counts,
    /// Files that should have gone but were not there.
    pub(crate) missing: Vec<String>,
    /// The data files that went, one by one: partition spec, manifest, place in it.
    pub(crate) gone: Vec<(i32, Arc<LoadedManifest>, usize)>,
}

/// Removes from `manifests`, the ones of `table`'s current snapshot. New files are noted in
/// `scratch`.
pub(crate) async fn remove(
    table: &Table,
    manifests: Vec<ManifestFile>,
    removal: &Removal,
    target: &Target,
    scratch: &mut Vec<String>,
) -> Result<Remaining> {
    let mut work =
        RemovalRun { table, removal, target, found: HashSet::new(), number: 0, survivors: None };
    let mut remaining = Remaining::default();
    let live = manifests.into_iter().filter(has_live_files);
    let (deletes, data): (Vec<_>, Vec<_>) =
        live.partition(|manifest| manifest.content == ManifestContentType::Deletes);
    if !deletes.is_empty() && !matches!(removal, Removal::Nothing) {
        work.survivors = Some(Survivors::default());
    }
    // Data files first: delete files that none of the others needs go with them.
    for manifest in data.into_iter().chain(deletes) {
        let going = match manifest.content {
            ManifestContentType::Data => work.going(&manifest, &mut remaining.gone).await?,
            ManifestContentType::Deletes => work.unneeded(&manifest, &remaining.removed).await?,
        };
        if going.iter().any(|goes| *goes) {
            let rewritten = work.rewrite(&manifest, &going, &mut remaining.removed).await?;
            scratch.push(rewritten.manifest_path.clone());
            remaining.rewritten.push(rewritten);
        } else {
            remaining.kept.push(manifest);
        }
    }
    if let Removal::Files(wanted) = removal {
        remaining.missing = wanted.difference(&work.found).cloned().collect();
        remaining.missing.sort_unstable();
    }
    Ok(remaining)
}

/// What `removal`, which was decided on `seen`, is about in `base`, if that is another version:
/// the files that `seen` had, not those that came since. `None` where it is about the same.
pub(crate) async fn narrowed(
    removal: &Removal,
    seen: &Table,
    base: &Table,
) -> Result<Option<Removal>> {
    let concerns = |spec_id: i32, live: &LiveFile| match removal {
        Removal::Everything => true,
        Removal::Partitions { spec_id: wanted, values } => {
            spec_id == *wanted && values.contains(&live.partition)
        }
        _ => false,
    };
    let is_wide = matches!(removal, Removal::Everything | Removal::Partitions { .. });
    if !is_wide || current_id(seen) == current_id(base) {
        return Ok(None);
    }
    let mut files = HashSet::new();
    for manifest in parent_manifests(seen).await?.iter().filter(|m| has_live_files(m)) {
        if manifest.content == ManifestContentType::Deletes {
            continue;
        }
        if let Removal::Partitions { spec_id, .. } = removal
            && manifest.partition_spec_id != *spec_id
        {
            return Err(other_partitioning(seen));
        }
        let loaded = seen.warehouse().files().manifest(manifest).await?;
        let going = loaded.files.iter().filter(|live| concerns(manifest.partition_spec_id, live));
        files.extend(going.map(|live| live.file.location.clone()));
    }
    Ok(Some(if files.is_empty() { Removal::Nothing } else { Removal::Files(files) }))
}

struct RemovalRun<'a> {
    table: &'a Table,
    removal: &'a Removal,
    target: &'a Target,
    /// Files found, of those that must be there.
    found: HashSet<String>,
    /// Manifests written so far.
    number: usize,
    /// The data files that stay, where there are delete files to be judged by them.
    survivors: Option<Survivors>,
}

impl RemovalRun<'_> {
    /// Which of the live data files of `manifest` go, in its order; empty for none.
    async fn going(
        &mut self,
        manifest: &ManifestFile,
        gone: &mut Vec<(i32, Arc<LoadedManifest>, usize)>,
    ) -> Result<Vec<bool>> {
        let untouched = self.cannot_concern(manifest)?;
        if untouched && self.survivors.is_none() {
            return Ok(Vec::new());
        }
        let loaded = self.table.warehouse().files().manifest(manifest).await?;
        let going = match untouched {
            true => vec![false; loaded.files.len()],
            false => {
                let going = loaded.files.iter().map(|file| self.goes(manifest, file));
                going.collect::<Result<Vec<bool>>>()?
            }
        };
        self.note_found(&loaded, &going);
        for (at, (live, goes)) in loaded.files.iter().zip(&going).enumerate() {
            match (*goes, &mut self.survivors) {
                (true, _) => gone.push((manifest.partition_spec_id, loaded.clone(), at)),
                (false, Some(survivors)) => survivors.add(manifest.partition_spec_id, live),
                (false, None) => {}
            }
        }
        Ok(going)
    }

    /// Which of the delete files of `manifest` no data file needs that stays, in its order.
    async fn unneeded(&self, manifest: &ManifestFile, removed: &Counts) -> Result<Vec<bool>> {
        let Some(survivors) = &self.survivors else { return Ok(Vec::new()) };
        // A commit that removes nothing leaves delete files alone too.
        if removed.files == 0 && !matches!(self.removal, Removal::Everything) {
            return Ok(Vec::new());
        }
        let loaded = self.table.warehouse().files().manifest(manifest).await?;
        let spec_id = manifest.partition_spec_id;
        let needed = |live: &LiveFile| {
            live.delete.as_ref().is_none_or(|d| survivors.need(self.table, spec_id, live, d))
        };
        Ok(loaded.files.iter().map(|live| !needed(live)).collect())
    }

    /// Whether nothing of `manifest`, which is of data files, goes, as its entry in the list tells.
    fn cannot_concern(&self, manifest: &ManifestFile) -> Result<bool> {
        Ok(match self.removal {
            Removal::Nothing => true,
            Removal::Everything => false,
            Removal::Files(wanted) => wanted.len() == self.found.len(),
            Removal::Partitions { spec_id, .. } if manifest.partition_spec_id != *spec_id => {
                return Err(other_partitioning(self.table));
            }
            Removal::Partitions { values, .. } => values.is_empty(),
            Removal::Matching(coverage) | Removal::WholePartitions(coverage) => {
                !manifest_may_match(self.table.metadata(), manifest, coverage.predicate())
            }
        })
    }

    fn goes(&self, manifest: &ManifestFile, live: &LiveFile) -> Result<bool> {
        Ok(match self.removal {
            Removal::Nothing => false,
            Removal::Everything => true,
            Removal::Files(wanted) => wanted.contains(&live.file.location),
            Removal::Partitions { spec_id, values } => {
                manifest.partition_spec_id == *spec_id && values.contains(&live.partition)
            }
            Removal::Matching(coverage) if coverage.covers(&live.file) => true,
            Removal::Matching(coverage) if coverage.may_match(&live.file) => {
                return Err(partly_matching(self.table, &live.file.location));
            }
            Removal::Matching(_) => false,
            Removal::WholePartitions(coverage) => coverage.covers_partition(&live.file),
        })
    }

    fn note_found(&mut self, loaded: &LoadedManifest, going: &[bool]) {
        if matches!(self.removal, Removal::Files(_)) {
            let gone = loaded.files.iter().zip(going).filter(|(_, goes)| **goes);
            self.found.extend(gone.map(|(live, _)| live.file.location.clone()));
        }
    }

    /// Writes `manifest` anew; `going` is in the order of its live entries.
    async fn rewrite(
        &mut self,
        manifest: &ManifestFile,
        going: &[bool],
        removed: &mut Counts,
    ) -> Result<ManifestFile> {
        let files = self.table.warehouse().files();
        let (parsed, _) = files.parse_manifest(manifest).await?;
        let live = parsed.entries().iter().filter(|entry| entry.is_alive());
        let entries: Vec<_> = live
            .zip(going)
            .map(|(entry, goes)| (entry.data_file().clone(), Lineage::of(manifest, entry), *goes))
            .collect();
        for (file, ..) in entries.iter().filter(|(_, _, goes)| *goes) {
            match manifest.content {
                ManifestContentType::Data => removed.add(manifest.partition_spec_id, file),
                ManifestContentType::Deletes => removed.deletes.add(file),
            }
        }
        self.number += 1;
        let path = format!("{}-f{}.avro", self.target.prefix, self.number);
        let kind = ManifestKind {
            content: manifest.content,
            schema: parsed.metadata().schema().clone(),
            spec: parsed.metadata().partition_spec().clone(),
        };
        files
            .write_manifest_with(&path, self.target.snapshot_id, kind, |writer| {
                entries.into_iter().try_for_each(|(file, lineage, goes)| match goes {
                    true => writer.add_delete_file(
                        file,
                        lineage.sequence_number,
                        Some(lineage.file_sequence_number),
                    ),
                    false => keep(writer, file, lineage),
                })
            })
            .await
    }
}

fn other_partitioning(table: &Table) -> Error {
    Error::unsupported(format!(
        "table {} has files of an earlier partitioning, whose partitions cannot be replaced",
        table.ident()
    ))
    .with_hint("compact the table first, which brings all files into its present partitioning")
}

fn partly_matching(table: &Table, location: &str) -> Error {
    Error::invalid(format!(
        "table {}: the partitions to be replaced do not hold whole files",
        table.ident()
    ))
    .with_detail(format!("only some rows of {location} match"))
    .with_hint("name whole partitions, or use DELETE and INSERT")
}
