//! The wide file, and reads of its columns under several rules.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use serde::Serialize;
use stoa_error::{Error, Result};
use stoa_orc::{
    FileMetadata, Projection, ReadOptions, TailDecoder, TailStep, Writer, WriterOptions,
};
use stoa_rangeio::{PlanOptions, ReadCounts};

use super::fetch::{RemoteFile, Slowness};
use crate::mix::Sequence;

/// Which columns are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Columns {
    /// All.
    All,
    /// Every second one.
    Alternate,
}

/// By which rule reads are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Only neighbours that touch.
    NoMerging,
    /// As [`Self::NoMerging`], but what touches is divided among the connections: what merging must beat.
    Split,
    /// Gaps up to 4 MiB, whatever the store (`orc.min.disk.seek.size`, as advised for S3).
    Orc1136,
    /// What costs least on this store, whose latency and bandwidth the reader is told.
    Adaptive,
    /// As [`Self::Adaptive`], but the reader begins with the preset for S3 and has seen what its requests take when it
    /// read the file before: as the server reads.
    Learnt,
}

/// One read of the wide file.
#[derive(Clone, Debug, Serialize)]
pub struct WideRead {
    /// Which columns.
    pub columns: Columns,
    /// Wait before the first byte of a request, in milliseconds.
    pub latency_ms: u64,
    /// Bytes per second of a connection.
    pub bandwidth: f64,
    /// Requests that run at once.
    pub parallelism: usize,
    /// How much longer than that a request waits on average, in milliseconds: exponentially distributed.
    pub jitter_ms: u64,
    /// Stripes of the file, which are read one after the other.
    pub stripes: usize,
    /// By which rule.
    pub rule: Rule,
    /// Requests sent.
    pub requests: u64,
    /// Bytes asked for.
    pub bytes_needed: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Until everything was there.
    pub seconds: f64,
}

const RULES: [Rule; 5] =
    [Rule::NoMerging, Rule::Split, Rule::Orc1136, Rule::Adaptive, Rule::Learnt];

/// How often a reader that learns has read the file before.
const READ_BEFORE: usize = 4;
/// A connection's part is not smaller.
const SPLIT_BYTES_MIN: u64 = 256 << 10;
/// Stripes of a file that has several.
pub(super) const STRIPES: usize = 4;

/// The original's gap and tolerance.
const SEEK_BYTES: u64 = 4 << 20;
const TOLERANCE: f64 = 10.0;
/// The original's row groups, digits after the point and seed.
const STRIDE: u32 = 8192;
const DECIMAL: (u8, i8) = (20, 6);
const SEED: u64 = 1024;
/// No stripe ends because it is this large.
const STRIPE_BYTES: usize = 1 << 30;

impl Rule {
    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::NoMerging => "no merging",
            Self::Split => "split, unmerged",
            Self::Orc1136 => "ORC-1136, 4 MiB",
            Self::Adaptive => "adaptive, told",
            Self::Learnt => "adaptive, learnt",
        }
    }

    /// The plan for reads of so many bytes at a time.
    fn plan(self, slowness: Slowness, bytes: u64) -> PlanOptions {
        match self {
            Self::NoMerging => PlanOptions::orc_1136(0, TOLERANCE),
            Self::Split => {
                let part = bytes.div_ceil(slowness.parallelism as u64).max(SPLIT_BYTES_MIN);
                PlanOptions { max_read_bytes: part, ..PlanOptions::orc_1136(0, TOLERANCE) }
            }
            Self::Orc1136 => PlanOptions::orc_1136(SEEK_BYTES, TOLERANCE),
            Self::Adaptive => {
                PlanOptions { profile: Some(slowness.profile()), ..PlanOptions::object_store() }
            }
            Self::Learnt => PlanOptions::object_store(),
        }
    }
}

/// The file: a row number and `columns` columns, in so many stripes of equally many rows.
pub(super) fn file(columns: usize, rows: u64, stripes: usize) -> Result<Bytes> {
    let mut fields = vec![Field::new("id", DataType::Int64, true)];
    fields.extend((1..=columns).map(|at| Field::new(format!("f_{at}"), data_type(at), true)));
    let schema = Arc::new(Schema::new(fields));
    let stripe_rows = rows.div_ceil(stripes as u64);
    let options = WriterOptions::default()
        .with_row_index_stride(STRIDE)
        .with_stripe_bytes(STRIPE_BYTES)
        .with_stripe_rows(stripe_rows);
    let mut writer = Writer::new(&schema, options)?;
    let mut file = Vec::new();
    let mut sequence = Sequence::new(SEED);
    for first in (0..rows).step_by(STRIDE as usize) {
        let ids = first..rows.min(first + u64::from(STRIDE));
        let values: Vec<i64> = ids.clone().map(|_| sequence.next() as i64).collect();
        let kinds = [strings(&values), decimals(&values)?, Arc::new(Int64Array::from(values))];
        let mut arrays: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from_iter_values(ids.map(|id| id as i64)))];
        arrays.extend((1..=columns).map(|at| Arc::clone(&kinds[at % kinds.len()])));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)
            .map_err(|e| Error::internal("columns do not fit the schema").with_source(e))?;
        writer.write(&batch)?;
        file.extend_from_slice(&writer.take_output());
    }
    writer.finish()?;
    file.extend_from_slice(&writer.take_output());
    Ok(file.into())
}

fn data_type(column: usize) -> DataType {
    match column % 3 {
        0 => DataType::Utf8,
        1 => DataType::Decimal128(DECIMAL.0, DECIMAL.1),
        _ => DataType::Int64,
    }
}

fn strings(values: &[i64]) -> ArrayRef {
    let mut strings = StringBuilder::new();
    values.iter().for_each(|value| strings.append_value(value.to_string()));
    Arc::new(strings.finish())
}

fn decimals(values: &[i64]) -> Result<ArrayRef> {
    let decimals = Decimal128Array::from_iter_values(values.iter().map(|value| i128::from(*value)));
    let decimals = decimals.with_precision_and_scale(DECIMAL.0, DECIMAL.1);
    decimals
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|e| Error::internal("a decimal does not fit").with_source(e))
}

/// A file, and what is known of it.
pub(super) struct Wide {
    file: Bytes,
    rows: u64,
    stripes: usize,
    metadata: Arc<FileMetadata>,
}

impl Wide {
    pub(super) fn new(file: Bytes, rows: u64) -> Result<Self> {
        let tail = TailDecoder::new(file.len() as u64).decode(file.clone())?;
        let TailStep::Done(metadata) = tail else {
            return Err(Error::internal("the whole file is no tail"));
        };
        let stripes = metadata.stripes.len();
        Ok(Self { file, rows, stripes, metadata: Arc::new(metadata) })
    }

    /// Reads it by all rules on each of `stores`.
    pub(super) async fn read_all(
        &self,
        stores: impl Iterator<Item = Slowness> + Clone,
    ) -> Result<Vec<WideRead>> {
        let mut reads = Vec::new();
        for columns in [Columns::All, Columns::Alternate] {
            for slowness in stores.clone() {
                for rule in RULES {
                    reads.push(self.read(columns, slowness, rule).await?);
                }
            }
        }
        Ok(reads)
    }

    async fn read(&self, columns: Columns, slowness: Slowness, rule: Rule) -> Result<WideRead> {
        let share = match columns {
            Columns::All => 1,
            Columns::Alternate => 2,
        };
        let at_once = self.file.len() as u64 / (share * self.stripes as u64);
        let plan = rule.plan(slowness, at_once);
        let remote = RemoteFile::new(self.file.clone(), slowness, plan).await?;
        if rule == Rule::Learnt {
            for _ in 0..READ_BEFORE {
                self.read_rows(&remote, columns).await?;
            }
        }
        let before = remote.reader.metrics().counts();
        self.read_rows(&remote, columns).await?;
        let counts: ReadCounts = remote.reader.metrics().counts();
        Ok(WideRead {
            columns,
            latency_ms: slowness.latency_ms,
            bandwidth: slowness.bandwidth,
            parallelism: slowness.parallelism,
            jitter_ms: slowness.jitter_ms,
            stripes: self.stripes,
            rule,
            requests: counts.requests - before.requests,
            bytes_needed: counts.bytes_needed - before.bytes_needed,
            bytes_read: counts.bytes_read - before.bytes_read,
            seconds: rounded(counts.elapsed - before.elapsed),
        })
    }

    async fn read_rows(&self, remote: &RemoteFile, columns: Columns) -> Result<()> {
        let mut found = 0;
        let mut count = |batch: RecordBatch| {
            found += batch.num_rows() as u64;
            Ok(())
        };
        let options = options(&self.metadata, columns);
        remote.read(Arc::clone(&self.metadata), options, &mut count).await?;
        match found == self.rows {
            true => Ok(()),
            false => Err(Error::corrupt(format!("{found} rows were read, not {}", self.rows))),
        }
    }
}

/// Seconds to the millisecond, the resolution of the clock.
pub(super) fn rounded(elapsed: Duration) -> f64 {
    elapsed.as_millis() as f64 / 1e3
}

/// Every second column is the row number, f_2, f_4 and so on.
fn options(metadata: &FileMetadata, columns: Columns) -> ReadOptions {
    let all = metadata.types.get(0).map(|root| root.children.clone()).unwrap_or_default();
    match columns {
        Columns::All => ReadOptions::default(),
        Columns::Alternate => ReadOptions::default()
            .with_projection(Projection::Columns(all.into_iter().step_by(2).collect())),
    }
}
