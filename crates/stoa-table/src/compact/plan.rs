//! Which groups of a table's files are to be compacted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use iceberg::spec::{ManifestContentType, Struct};
use stoa_error::{Error, Result};
use stoa_orc::Predicate;

use super::select::{Candidate, Choice, Limits, Span, select, take_all};
use crate::data::has_defaults;
use crate::deletes::DeleteIndex;
use crate::order::TableOrder;
use crate::scan::{Coverage, described, has_live_files};
use crate::snapshot::parent_manifests;
use crate::{ScanFile, Table};

/// Bytes at which a data file is finished, unless the table says otherwise.
const TARGET_FILE_BYTES: u64 = 256 << 20;

/// Runs of one size that are worth merging, unless the table says otherwise.
const INPUTS_MIN: usize = 4;

/// Table property for [`CompactionOptions::inputs_min`].
const INPUTS_MIN_KEY: &str = "stoa.compaction.min-input-files";

/// What to compact.
#[derive(Clone, Debug)]
pub struct CompactionOptions {
    /// Overrides the table's `write.target-file-size-bytes`.
    pub target_file_bytes: Option<u64>,
    /// How many runs of about one size are merged; overrides the table's
    /// `stoa.compaction.min-input-files` (4). At least 2.
    pub inputs_min: Option<usize>,
    /// Most runs merged at a time.
    pub inputs_max: usize,
    /// Most bytes of a group: what is lost if a compaction dies.
    pub group_bytes_max: u64,
    /// Merge everything in a partition into one run, whatever it costs.
    pub full: bool,
    /// Only partitions that may hold rows matching this.
    pub partitions: Predicate,
    /// Files that others wrote, or deleted rows of, are left alone for so long: whoever changes a
    /// table without rewriting its files must not lose them under his hands.
    pub foreign_age_min: Duration,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self {
            target_file_bytes: None,
            inputs_min: None,
            inputs_max: 32,
            group_bytes_max: 16 << 30,
            full: false,
            partitions: Predicate::always(),
            foreign_age_min: Duration::ZERO,
        }
    }
}

/// What would be compacted.
#[derive(Clone, Debug)]
pub struct CompactionPlan {
    /// The version that was looked at.
    pub table: Table,
    /// Groups to be compacted, each in a commit of its own.
    pub groups: Vec<CompactionGroup>,
    /// Data files in the table.
    pub files_total: usize,
}

/// Files of one table partition that become one run.
#[derive(Clone, Debug)]
pub struct CompactionGroup {
    /// `name=value/name=value`; empty without partitioning.
    pub partition_text: String,
    /// Runs, oldest first, each a list of files in the order of the table.
    pub runs: Vec<Vec<Arc<ScanFile>>>,
    /// The rows are not in the table's order yet: they are sorted and merged later.
    pub sorts: bool,
    /// These are all files of the partition.
    pub whole_partition: bool,
}

impl CompactionGroup {
    /// All its files.
    pub fn files(&self) -> impl Iterator<Item = &Arc<ScanFile>> {
        self.runs.iter().flatten()
    }

    /// Rows in the files.
    pub fn rows(&self) -> u64 {
        self.files().map(|file| file.rows).sum()
    }

    /// Bytes of the files.
    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.file_bytes).sum()
    }
}

/// Files of one partition, by partition spec and value.
type Partitions = HashMap<(i32, Struct), Vec<Candidate>>;

/// Plans; `disordered` are files that claim an order they do not have.
pub(super) async fn plan(
    table: &Table,
    options: &CompactionOptions,
    disordered: &HashSet<String>,
) -> Result<CompactionPlan> {
    let order = TableOrder::of(table);
    let limits = limits(table, options, order.is_some())?;
    let age = i64::try_from(options.foreign_age_min.as_millis()).unwrap_or(i64::MAX);
    let since_ms = table.warehouse().env().unix_ms().saturating_sub(age);
    let partitions = partitions(table, order.as_ref(), disordered, since_ms).await?;
    let files_total = partitions.values().map(Vec::len).sum();
    let wanted = Coverage::new(table, options.partitions.clone());
    let spec = table.partition_spec().spec_id();
    let mut groups = Vec::new();
    for ((spec_id, _), candidates) in &partitions {
        if !candidates.iter().any(|candidate| wanted.may_match(&candidate.file)) {
            continue;
        }
        let choices = match *spec_id == spec {
            true => select(candidates, &limits),
            false => take_all(candidates, &limits),
        };
        groups.extend(choices.into_iter().map(|choice| group(candidates, choice)));
    }
    // The most files first: they slow scans down most.
    groups.sort_by(|a, b| {
        let files = |group: &CompactionGroup| group.files().count();
        files(b).cmp(&files(a)).then_with(|| a.partition_text.cmp(&b.partition_text))
    });
    Ok(CompactionPlan { table: table.clone(), groups, files_total })
}

fn group(candidates: &[Candidate], choice: Choice) -> CompactionGroup {
    let (runs, sorts) = match choice {
        Choice::Merge(runs) => (runs, false),
        Choice::Sort(files) => (vec![files], true),
    };
    let file = |index: usize| candidates.get(index).map(|candidate| candidate.file.clone());
    let runs: Vec<Vec<Arc<ScanFile>>> =
        runs.into_iter().map(|run| run.into_iter().filter_map(file).collect()).collect();
    let files = runs.iter().map(Vec::len).sum::<usize>();
    let partition_text = candidates.first().map(|c| c.file.partition_text.clone());
    CompactionGroup {
        partition_text: partition_text.unwrap_or_default(),
        whole_partition: files == candidates.len(),
        runs,
        sorts,
    }
}

fn limits(table: &Table, options: &CompactionOptions, ordered: bool) -> Result<Limits> {
    let number = |key: &str| match table.property(key) {
        None => Ok(None),
        Some(text) => {
            text.trim().parse::<u64>().ok().filter(|n| *n > 0).map(Some).ok_or_else(|| {
                Error::invalid(format!(
                    "table {}: property {key} = {text:?} cannot be used",
                    table.ident()
                ))
                .with_hint(format!("set {key} to a positive number, or unset it"))
            })
        }
    };
    let inputs = number(INPUTS_MIN_KEY)?.and_then(|inputs| usize::try_from(inputs).ok());
    let target = number("write.target-file-size-bytes")?;
    Ok(Limits {
        target_bytes: options.target_file_bytes.or(target).unwrap_or(TARGET_FILE_BYTES),
        runs_min: options.inputs_min.or(inputs).unwrap_or(INPUTS_MIN),
        runs_max: options.inputs_max.max(2),
        group_bytes_max: options.group_bytes_max,
        ordered,
        full: options.full,
    })
}

async fn partitions(
    table: &Table,
    order: Option<&TableOrder>,
    disordered: &HashSet<String>,
    since_ms: i64,
) -> Result<Partitions> {
    let lead = order.and_then(|order| {
        let (column, options) = order.leading_column()?;
        let field = table.metadata().current_schema().as_struct().fields().get(column)?;
        Some((field.id, options))
    });
    let mut partitions = Partitions::new();
    let manifests = parent_manifests(table).await?;
    let deletes = DeleteIndex::load(table, &manifests).await?;
    let has_defaults = has_defaults(table.metadata().current_schema().as_struct().fields());
    let live = manifests.iter().filter(|manifest| has_live_files(manifest));
    for manifest in live.filter(|manifest| manifest.content == ManifestContentType::Data) {
        let loaded = table.warehouse().files().manifest(manifest).await?;
        for live in &loaded.files {
            let file = described(manifest.partition_spec_id, live, &deletes, has_defaults);
            let marked = order.is_some_and(|order| file.sort_order_id == Some(order.id()));
            let candidate = Candidate {
                sorted: marked && !disordered.contains(&file.location),
                is_plain: file.is_plain(),
                waits: !file.is_plain() && newest_ms(table, &file) > since_ms,
                span: lead.and_then(|(field, options)| Span::of(&file, field, options)),
                sequence_number: live.sequence_number,
                file,
            };
            let key = (manifest.partition_spec_id, live.partition.clone());
            partitions.entry(key).or_default().push(candidate);
        }
    }
    Ok(partitions)
}

/// When a file, or the last delete file that concerns it, came into the table, as far as snapshots
/// still tell.
fn newest_ms(table: &Table, file: &ScanFile) -> i64 {
    let at = |file: &ScanFile| {
        let snapshot = table.metadata().snapshot_by_id(file.snapshot_id?)?;
        Some(snapshot.timestamp_ms())
    };
    let deletes = file.deletes.iter().filter_map(|delete| at(&delete.file));
    deletes.chain(at(file)).max().unwrap_or(i64::MIN)
}
