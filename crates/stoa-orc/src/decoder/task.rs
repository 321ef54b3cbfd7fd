//! One stripe on its way to being decoded: what is known about it and what it needs next.
//!
//! In: bytes of the stripe's footer, indexes and data. Out: [`Progress`], and finally the row
//! groups to read and the bytes of their streams.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use stoa_error::{Place, StreamPart};

use super::DecodeMetrics;
use super::data::{RunData, StripeData, runs_of};
use crate::bloom::BloomIndex;
use crate::checked_segments::CheckedSegments;
use crate::compression::{CompressionKind, decompress_section};
use crate::decode::context::Context;
use crate::decode::plan::Plan;
use crate::error::{Error, Result, corrupt, stream_place};
use crate::message::Budget;
use crate::metadata::{FileMetadata, GROUPS_MAX, group_count};
use crate::options::ReadOptions;
use crate::proto::StreamKind;
use crate::prune::{Condition, Evidence, Level, Trust};
use crate::row_index::RowIndex;
use crate::statistics::ColumnStatistics;
use crate::stripe::StripeMetadata;
use crate::stripe_info::StripeInfo;

/// A stripe to read.
pub(super) struct Task {
    pub(super) index: usize,
    pub(super) metadata: Option<Arc<StripeMetadata>>,
    stage: Stage,
}

enum Stage {
    /// The footer is wanted.
    Footer,
    /// Row indexes and bloom filters of predicate columns are wanted.
    PredicateIndexes,
    /// Some row groups are left out; positions of all columns are wanted.
    Positions { groups: Vec<bool> },
    /// Bytes of these runs are wanted.
    Data { runs: Vec<RunData>, bytes: u64 },
    /// All is here.
    Ready { data: StripeData, bytes: u64 },
}

/// How far a task came.
pub(super) enum Progress {
    /// It can be decoded and holds this many bytes.
    Ready {
        bytes: u64,
    },
    /// No row group may match.
    Empty,
    NeedsMetadata(Vec<Range<u64>>),
    NeedsData(Vec<Range<u64>>),
    /// It would ask for data, but may not yet.
    Waits,
}

/// What is the same for all stripes.
pub(super) struct Env<'a> {
    pub(super) file: &'a FileMetadata,
    pub(super) options: &'a ReadOptions,
    pub(super) plan: &'a Plan,
    pub(super) condition: Option<&'a Condition>,
}

impl Task {
    pub(super) fn new(index: usize, metadata: Option<Arc<StripeMetadata>>) -> Self {
        Self { index, metadata, stage: Stage::Footer }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready { .. })
    }

    /// The stripe's bytes, once it is ready.
    pub(super) fn into_data(self) -> Option<(Arc<StripeMetadata>, StripeData)> {
        match (self.metadata, self.stage) {
            (Some(metadata), Stage::Ready { data, .. }) => Some((metadata, data)),
            _ => None,
        }
    }

    /// Goes on as far as the bytes in `segments` allow.
    pub(super) fn advance(
        &mut self,
        env: &Env,
        segments: &mut CheckedSegments,
        cx: &mut Context,
        may_ask_data: bool,
        metrics: &mut DecodeMetrics,
    ) -> Result<Progress> {
        let info = env.file.stripes[self.index];
        loop {
            let next = match &mut self.stage {
                Stage::Footer => match self.read_footer(env, &info, segments, cx)? {
                    Some(needs) => return Ok(Progress::NeedsMetadata(needs)),
                    None => Stage::PredicateIndexes,
                },
                Stage::PredicateIndexes => {
                    let streams = self.wanted_indexes(env, &info);
                    if let Some(needs) = self.read_indexes(env, &streams, segments, cx)? {
                        return Ok(Progress::NeedsMetadata(needs));
                    }
                    let groups = self.groups(env, &info);
                    let wanted = env.options.row_groups.get(&self.index);
                    let asked = wanted.map_or(groups.len(), |wanted| {
                        wanted.iter().filter(|group| **group < groups.len()).count()
                    });
                    let left = groups.iter().filter(|keep| **keep).count();
                    metrics.row_groups_total += asked as u64;
                    metrics.row_groups_pruned += (asked - left) as u64;
                    match left {
                        0 => return Ok(Progress::Empty),
                        n if n == groups.len() => self.whole(env, &info)?,
                        _ => Stage::Positions { groups },
                    }
                }
                Stage::Positions { groups } => {
                    let groups = groups.clone();
                    let streams = self.position_streams(env);
                    if let Some(needs) = self.read_indexes(env, &streams, segments, cx)? {
                        return Ok(Progress::NeedsMetadata(needs));
                    }
                    match self.partial(env, &info, &groups)? {
                        Some(stage) => stage,
                        // The index is of no use: read the whole stripe, if that is allowed.
                        None if env.options.row_groups.contains_key(&self.index) => {
                            return Err(corrupt("the row index does not say where row groups are"));
                        }
                        None => self.whole(env, &info)?,
                    }
                }
                Stage::Data { runs, bytes } => {
                    let missing: Vec<_> = runs
                        .iter()
                        .flat_map(RunData::ranges)
                        .filter(|range| !segments.covers(range))
                        .collect();
                    if missing.is_empty() {
                        let data = StripeData::take(std::mem::take(runs), env.file, segments)?;
                        Stage::Ready { data, bytes: *bytes }
                    } else if may_ask_data {
                        return Ok(Progress::NeedsData(missing));
                    } else {
                        return Ok(Progress::Waits);
                    }
                }
                Stage::Ready { bytes, .. } => return Ok(Progress::Ready { bytes: *bytes }),
            };
            self.stage = next;
        }
    }

    /// Parses the footer, or says what is needed for it.
    fn read_footer(
        &mut self,
        env: &Env,
        info: &StripeInfo,
        segments: &mut CheckedSegments,
        cx: &mut Context,
    ) -> Result<Option<Vec<Range<u64>>>> {
        if self.metadata.is_some() {
            return Ok(None);
        }
        let range = info.footer_range();
        let found = segments.get(&range).map_err(|e| e.at("stripe footer"))?;
        let Some(bytes) = found else {
            let mut needs = vec![range.clone()];
            let is_partial =
                env.condition.is_some() || env.options.row_groups.contains_key(&self.index);
            let uses_index = is_partial && may_use_index(env, info);
            if uses_index && (1..=env.options.whole_index_bytes).contains(&info.index_bytes) {
                needs.push(info.index_range());
            }
            return Ok(Some(needs));
        };
        let place = |e: Error| e.at(Place::Offset(range.start));
        let bytes = inflate(env, cx, &bytes).map_err(|e| place(e.at("stripe footer")))?;
        let mut budget = Budget::new(env.options.limits.metadata_bytes);
        let metadata =
            StripeMetadata::parse(info, env.file.types.len(), bytes, &mut budget).map_err(place)?;
        self.metadata = Some(Arc::new(metadata));
        Ok(None)
    }

    /// Index streams that the condition is judged by.
    fn wanted_indexes(&self, env: &Env, info: &StripeInfo) -> Vec<(u32, StreamKind)> {
        let mut wanted = Vec::new();
        let Some(condition) = env.condition.filter(|_| may_use_index(env, info)) else {
            return wanted;
        };
        condition.for_each_column(&mut |column, bloom| {
            wanted.push((column, StreamKind::RowIndex));
            if bloom && let Some(kind) = self.bloom_kind(env, column) {
                wanted.push((column, kind));
            }
        });
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// The bloom filter stream of a column to use, if there is one to be trusted.
    fn bloom_kind(&self, env: &Env, column: u32) -> Option<StreamKind> {
        let metadata = self.metadata.as_ref()?;
        let encoding = metadata.encoding(column).ok()?;
        [StreamKind::BloomFilterUtf8, StreamKind::BloomFilter].into_iter().find(|kind| {
            metadata.stream(column, *kind).is_some()
                && Trust::of(env.file).bloom(column, *kind, encoding)
        })
    }

    /// Row indexes of all columns that are read.
    fn position_streams(&self, env: &Env) -> Vec<(u32, StreamKind)> {
        env.plan.columns.iter().map(|column| (*column, StreamKind::RowIndex)).collect()
    }

    /// Parses the index streams that are not yet known, or says what is needed for it.
    fn read_indexes(
        &mut self,
        env: &Env,
        streams: &[(u32, StreamKind)],
        segments: &mut CheckedSegments,
        cx: &mut Context,
    ) -> Result<Option<Vec<Range<u64>>>> {
        let Some(metadata) = &mut self.metadata else { return Ok(None) };
        let mut needs = Vec::new();
        let mut found = Vec::new();
        for (column, kind) in streams {
            let is_known = match kind {
                StreamKind::RowIndex => metadata.row_indexes.contains_key(column),
                _ => metadata.blooms.contains_key(column),
            };
            let Some(stream) = metadata.stream(*column, *kind).filter(|_| !is_known) else {
                continue;
            };
            let place = |e: Error| at_stream(e, env.file, *column, *kind);
            match segments.get(&stream.range).map_err(place)? {
                Some(bytes) => found.push((*column, *kind, stream.range.start, bytes)),
                None => needs.push(stream.range.clone()),
            }
        }
        if !needs.is_empty() {
            return Ok(Some(needs));
        }
        if found.is_empty() {
            return Ok(None);
        }
        let metadata = Arc::make_mut(metadata);
        let mut budget = Budget::new(env.options.limits.metadata_bytes);
        for (column, kind, offset, bytes) in found {
            let part = StreamPart::From { file_offset: offset };
            let place = |e: Error| e.at(stream_place(kind, part)).at(env.file.types.place(column));
            let bytes = inflate(env, cx, &bytes).map_err(place)?;
            if kind == StreamKind::RowIndex {
                let index = RowIndex::parse(bytes, &mut budget).map_err(place)?;
                metadata.row_indexes.insert(column, Arc::new(index));
            } else {
                metadata.blooms.insert(column, Arc::new(BloomIndex::parse(bytes, &mut budget)));
            }
        }
        Ok(None)
    }

    /// Which row groups may match.
    fn groups(&self, env: &Env, info: &StripeInfo) -> Vec<bool> {
        let count = group_count(env.file, info);
        let mut groups = match env.options.row_groups.get(&self.index) {
            Some(wanted) => (0..count).map(|group| wanted.contains(&group)).collect(),
            None => vec![true; count],
        };
        if let (Some(condition), Some(metadata)) = (env.condition, &self.metadata)
            && may_use_index(env, info)
        {
            condition.narrow(env.file, metadata, &mut groups);
            for (group, keep) in groups.iter_mut().enumerate().filter(|(_, keep)| **keep) {
                let evidence = OfGroup { trust: Trust::of(env.file), metadata, group };
                *keep = condition.may_match(env.file, &evidence);
            }
        }
        groups
    }

    /// The next stage: all of the stripe.
    fn whole(&self, env: &Env, info: &StripeInfo) -> Result<Stage> {
        let Some(metadata) = &self.metadata else { return Ok(Stage::Footer) };
        let run = RunData::whole(metadata, env.plan, env.file, info);
        Ok(Self::data_stage(vec![run]))
    }

    /// The next stage: some row groups; `None` if the index does not tell where they are.
    fn partial(&self, env: &Env, info: &StripeInfo, groups: &[bool]) -> Result<Option<Stage>> {
        let Some(metadata) = &self.metadata else { return Ok(Some(Stage::Footer)) };
        let mut runs = Vec::new();
        for groups in runs_of(groups) {
            match RunData::of_groups(metadata, env.plan, env.file, info, groups)? {
                Some(run) => runs.push(run),
                None => return Ok(None),
            }
        }
        Ok(Some(Self::data_stage(runs)))
    }

    fn data_stage(runs: Vec<RunData>) -> Stage {
        let bytes = runs.iter().flat_map(RunData::ranges).map(|r| r.end - r.start).sum();
        Stage::Data { runs, bytes }
    }
}

/// Names the stream that an error is about.
#[cold]
pub(super) fn at_stream(error: Error, file: &FileMetadata, column: u32, kind: StreamKind) -> Error {
    error.at(stream_place(kind, StreamPart::Whole)).at(file.types.place(column))
}

/// Whether the stripe has row groups that can be left out. A stripe of one row group may still
/// have bloom filters.
fn may_use_index(env: &Env, info: &StripeInfo) -> bool {
    env.file.row_index_stride > 0
        && info.index_bytes > 0
        && info.rows.div_ceil(u64::from(env.file.row_index_stride)) <= GROUPS_MAX
}

/// The content of a section of the file.
fn inflate(env: &Env, cx: &mut Context, bytes: &Bytes) -> Result<Bytes> {
    if env.file.compression == CompressionKind::None {
        return Ok(bytes.clone());
    }
    let limit = env.options.limits.metadata_bytes;
    decompress_section(&mut cx.decompressor, env.file.block_bytes, bytes, limit).map(Bytes::from)
}

/// Statistics of a row group.
struct OfGroup<'a> {
    trust: Trust<'a>,
    metadata: &'a StripeMetadata,
    group: usize,
}

impl Evidence for OfGroup<'_> {
    fn statistics(&self, column: u32) -> Option<ColumnStatistics> {
        let statistics = self.metadata.row_index(column)?.statistics(self.group)?;
        self.trust.statistics(column, Level::RowGroup, statistics)
    }

    fn bloom(&self, column: u32) -> Option<(&BloomIndex, usize)> {
        Some((self.metadata.blooms.get(&column)?.as_ref(), self.group))
    }
}
