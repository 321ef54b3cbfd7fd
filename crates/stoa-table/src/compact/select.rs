//! Which files of a table partition are worth merging.
//!
//! In: the live files of one partition. Out: groups of runs to be merged, each into one run.
//!
//! A *run* is a set of files that follow each other in the order of the table: a report about one
//! account touches one place per run, not per file. Files of at least half the target size are
//! joined to runs, because one compaction wrote them or because their leading columns do not
//! overlap; every smaller file is a run of its own. Runs are sorted into tiers by size, each four
//! times the one below, and a tier with enough runs becomes one run of the next tier. So a row is
//! written about once per tier, and a partition has fewer than `runs_min` runs per tier.
//!
//! Files with deleted rows, and files that are not ORC, are always taken, so that nobody has to look for
//! their rows again. Files that are not in the order of the table are sorted first; files of an earlier partitioning
//! are always taken. In a table without order nothing overlaps, and only small files are merged.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::SortOptions;
use stoa_orc::Literal;

use crate::ScanFile;
use crate::value::compare;

/// Each tier holds runs up to this many times those of the tier below.
const TIER_FACTOR: u64 = 4;

/// A data file that could be compacted.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) file: Arc<ScanFile>,
    pub(super) sequence_number: i64,
    /// Its rows are in the order of the table.
    pub(super) sorted: bool,
    /// It is ORC, with all columns and without deleted rows.
    pub(super) is_plain: bool,
    /// It is left alone for now.
    pub(super) waits: bool,
    /// First and last value of the leading column in the table's direction, NULL aside.
    pub(super) span: Option<Span>,
}

/// A stretch of the leading sort column; both ends may be a little too wide.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) first: Literal,
    pub(super) last: Literal,
    descending: bool,
    /// Rows before `first` and after `last` that have no place between them: NULL and NaN.
    before: bool,
    after: bool,
}

/// What is worth compacting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) target_bytes: u64,
    /// Runs of one tier that are worth merging.
    pub(super) runs_min: usize,
    pub(super) runs_max: usize,
    pub(super) group_bytes_max: u64,
    /// The table has an order.
    pub(super) ordered: bool,
    /// Everything becomes one run.
    pub(super) full: bool,
}

/// A choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Merge these runs, each a list of positions among the candidates, into one.
    Merge(Vec<Vec<usize>>),
    /// Sort these files.
    Sort(Vec<usize>),
}

/// Chooses among the files of one partition of the present partitioning.
pub(super) fn select(candidates: &[Candidate], limits: &Limits) -> Vec<Choice> {
    let all = (0..candidates.len()).filter(|index| !candidates[*index].waits);
    let (sorted, unsorted): (Vec<usize>, Vec<usize>) =
        all.partition(|index| candidates[*index].sorted || !limits.ordered);
    let mut choices: Vec<Choice> =
        chunks(candidates, unsorted.into_iter().map(|index| vec![index]).collect(), limits)
            .into_iter()
            .map(|files| Choice::Sort(files.into_iter().flatten().collect()))
            .collect();
    let (plain, foreign): (Vec<usize>, Vec<usize>) =
        sorted.into_iter().partition(|index| candidates[*index].is_plain);
    let foreign = foreign.into_iter().map(|index| vec![index]).collect();
    choices.extend(chunks(candidates, foreign, limits).into_iter().map(Choice::Merge));
    let runs = runs(candidates, plain, limits);
    let tiers = if limits.full { vec![runs] } else { tiers(candidates, runs, limits) };
    let least = if limits.full { 2 } else { limits.runs_min.max(2) };
    for tier in tiers.into_iter().filter(|tier| tier.len() >= least) {
        let groups = chunks(candidates, tier, limits).into_iter();
        choices.extend(groups.filter(|group| group.len() > 1).map(Choice::Merge));
    }
    choices
}

/// All of `candidates` as one group, or as few as the limits allow: files of an earlier
/// partitioning.
pub(super) fn take_all(candidates: &[Candidate], limits: &Limits) -> Vec<Choice> {
    let single = |index: usize| vec![index];
    let all = (0..candidates.len()).filter(|index| !candidates[*index].waits);
    let in_order = !limits.ordered || candidates.iter().all(|candidate| candidate.sorted);
    let groups = chunks(candidates, all.map(single).collect(), limits);
    let choice = |runs: Vec<Vec<usize>>| match in_order {
        true => Choice::Merge(runs),
        false => Choice::Sort(runs.into_iter().flatten().collect()),
    };
    groups.into_iter().map(choice).collect()
}

/// The files at `indexes` as runs.
fn runs(candidates: &[Candidate], indexes: Vec<usize>, limits: &Limits) -> Vec<Vec<usize>> {
    let is_whole = |index: &usize| candidates[*index].file.file_bytes >= limits.target_bytes / 2;
    let (whole, small): (Vec<usize>, Vec<usize>) = indexes.into_iter().partition(is_whole);
    let small = small.into_iter().map(|index| vec![index]);
    if !limits.ordered {
        // Whole files without order are as good as they can be.
        return small.collect();
    }
    let mut runs = join_neighbours(candidates, join_siblings(candidates, whole));
    runs.extend(small);
    runs
}

/// Joins files that one writer wrote one after the other.
fn join_siblings(candidates: &[Candidate], files: Vec<usize>) -> Vec<Vec<usize>> {
    let mut families: BTreeMap<_, Vec<(&str, usize)>> = BTreeMap::new();
    for index in files {
        let file = &candidates[index].file;
        // `<number>-<uuid of the writer>.orc`
        let name = file.location.rsplit('/').next().unwrap_or_default();
        let (number, writer) = name.split_once('-').unwrap_or((name, name));
        families.entry((file.snapshot_id, writer)).or_default().push((number, index));
    }
    let mut runs = Vec::new();
    for mut family in families.into_values() {
        family.sort_unstable();
        let mut run: Vec<usize> = Vec::new();
        for (_, index) in family {
            let goes_back = run.last().is_some_and(|last| {
                let (last, next) = (&candidates[*last].span, &candidates[index].span);
                let firsts = last.as_ref().zip(next.as_ref());
                firsts.is_some_and(|(last, next)| last.order(&next.first, &last.first).is_lt())
            });
            if goes_back {
                runs.push(std::mem::take(&mut run));
            }
            run.push(index);
        }
        runs.push(run);
    }
    runs
}

/// Joins runs that do not overlap into fewer; runs of unknown span stay alone.
fn join_neighbours(candidates: &[Candidate], runs: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let (mut known, unknown): (Vec<_>, Vec<_>) = runs
        .into_iter()
        .map(|run| (span_of(candidates, &run), run))
        .partition(|(span, _)| span.is_some());
    known.sort_by(|(a, _), (b, _)| match (a, b) {
        (Some(a), Some(b)) => a.order(&a.first, &b.first),
        _ => Ordering::Equal,
    });
    let mut joined: Vec<(Span, Vec<usize>)> = Vec::new();
    for (span, run) in known {
        let Some(span) = span else { continue };
        match joined.iter_mut().find(|(before, _)| before.ends_before(&span)) {
            Some((before, files)) => {
                before.last = span.last;
                before.after = span.after;
                files.extend(run);
            }
            None => joined.push((span, run)),
        }
    }
    joined.into_iter().map(|(_, run)| run).chain(unknown.into_iter().map(|(_, r)| r)).collect()
}

/// The span of a whole run; `None` where that of a file is unknown.
fn span_of(candidates: &[Candidate], run: &[usize]) -> Option<Span> {
    let mut spans = run.iter().map(|index| candidates[*index].span.clone());
    let mut whole = spans.next()??;
    for span in spans {
        let span = span?;
        if whole.order(&span.last, &whole.last).is_gt() {
            whole.last = span.last;
        }
        whole.before |= span.before;
        whole.after |= span.after;
    }
    Some(whole)
}

/// Runs by size, smallest first; runs too large to be merged within the limits are left out.
fn tiers(candidates: &[Candidate], runs: Vec<Vec<usize>>, limits: &Limits) -> Vec<Vec<Vec<usize>>> {
    let unit = (limits.target_bytes / 64).max(1);
    let mut tiers: BTreeMap<u32, Vec<Vec<usize>>> = BTreeMap::new();
    for run in runs {
        let bytes = bytes_of(candidates, &run);
        if bytes.saturating_mul(2) <= limits.group_bytes_max {
            tiers.entry((bytes / unit).max(1).ilog(TIER_FACTOR)).or_default().push(run);
        }
    }
    tiers.into_values().collect()
}

/// Cuts runs, neighbours together, into groups within the limits; the files of a group are in the
/// order in which they were added.
fn chunks(
    candidates: &[Candidate],
    mut runs: Vec<Vec<usize>>,
    limits: &Limits,
) -> Vec<Vec<Vec<usize>>> {
    let span = |run: &[usize]| candidates.get(*run.first()?)?.span.as_ref();
    runs.sort_by(|a, b| match (span(a), span(b)) {
        (Some(a), Some(b)) => a.order(&a.first, &b.first),
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    let mut groups: Vec<(u64, Vec<Vec<usize>>)> = Vec::new();
    for run in runs {
        let bytes = bytes_of(candidates, &run);
        match groups.last_mut() {
            Some((sum, group))
                if group.len() < limits.runs_max.max(2)
                    && *sum + bytes <= limits.group_bytes_max =>
            {
                *sum += bytes;
                group.push(run);
            }
            _ => groups.push((bytes, vec![run])),
        }
    }
    let age = |run: &Vec<usize>| run.iter().map(|index| candidates[*index].sequence_number).max();
    groups
        .into_iter()
        .map(|(_, mut group)| {
            group.sort_by_key(age);
            group
        })
        .collect()
}

fn bytes_of(candidates: &[Candidate], run: &[usize]) -> u64 {
    run.iter().map(|index| candidates[*index].file.file_bytes).sum()
}

impl Span {
    /// The stretch that `file` covers of the column `field_id`, sorted as `options` say.
    pub(super) fn of(file: &ScanFile, field_id: i32, options: SortOptions) -> Option<Self> {
        let lower = file.lower_bounds.get(&field_id)?.clone();
        let upper = file.upper_bounds.get(&field_id)?.clone();
        let some = |counts: &std::collections::HashMap<i32, u64>| {
            counts.get(&field_id).is_none_or(|count| *count > 0)
        };
        let nulls = some(&file.null_counts);
        let nans = matches!(lower, Literal::Float(_)) && some(&file.nan_counts);
        let descending = options.descending;
        let (first, last) = if descending { (upper, lower) } else { (lower, upper) };
        Some(Self {
            first,
            last,
            descending,
            before: (nulls && options.nulls_first) || (nans && descending),
            after: (nulls && !options.nulls_first) || (nans && !descending),
        })
    }

    /// Compares two values in the direction of the order.
    fn order(&self, left: &Literal, right: &Literal) -> Ordering {
        let order = compare(left, right).unwrap_or(Ordering::Equal);
        if self.descending { order.reverse() } else { order }
    }

    /// Whether all of this comes before all of `next`.
    fn ends_before(&self, next: &Self) -> bool {
        !self.after && !next.before && self.order(&self.last, &next.first).is_le()
    }
}

#[cfg(test)]
mod tests;
