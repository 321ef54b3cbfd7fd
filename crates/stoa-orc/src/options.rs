//! What to read of a file, and how.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::limits::Limits;
use crate::predicate::Predicate;
use crate::schema::{StringOutput, TimestampOutput};
use crate::stripe::StripeMetadata;

/// Which columns to read.
#[derive(Clone, Debug, Default)]
pub enum Projection {
    /// All.
    #[default]
    All,
    /// Some top-level columns by column id, in this order.
    Columns(Vec<u32>),
    /// The fields of an Arrow schema, found as [`FieldMatching`] says. Types are promoted (int to
    /// long, float to double, wider decimals); nullable fields that the file lacks are NULL.
    Fields(SchemaRef),
}

/// How the fields of [`Projection::Fields`] are found in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldMatching {
    /// By Iceberg field id (`PARQUET:field_id`) where the file has ids, else by name. Top-level
    /// columns by position if they have no names of their own (`_col0`, `_col1`, …: Hive before
    /// HIVE-4243).
    #[default]
    Auto,
    /// By name.
    Name,
    /// Top-level columns by position, fields of structs by name.
    Position,
}

/// Options of a [`crate::Decoder`].
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Which columns to read.
    pub projection: Projection,
    /// How fields are found (only for [`Projection::Fields`]).
    pub matching: FieldMatching,
    /// Rows that cannot match need not be read. What is read may still hold rows that do not.
    pub predicate: Option<Predicate>,
    /// Most rows in a batch.
    pub batch_rows: usize,
    /// Which stripes to read.
    pub stripes: Option<Range<usize>>,
    /// Which row groups to read of some stripes, for a cache that has the others; a stripe that
    /// is not named is read as a whole.
    pub row_groups: BTreeMap<usize, BTreeSet<usize>>,
    /// Arrow type of strings (not for [`Projection::Fields`]).
    pub strings: StringOutput,
    /// Arrow unit of timestamps (not for [`Projection::Fields`]).
    pub timestamps: TimestampOutput,
    /// Whether a batch ends where a row group does.
    pub align_to_row_groups: bool,
    /// An index section up to this many bytes is read whole together with the stripe footer,
    /// which saves a round trip; else only the streams that are needed, after it.
    pub whole_index_bytes: u64,
    /// Data of several stripes is asked for together up to this many bytes.
    pub ahead_bytes: u64,
    /// Stripe metadata that is known from before, by index of the stripe.
    pub stripe_metadata: BTreeMap<usize, Arc<StripeMetadata>>,
    /// Limits on memory.
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            projection: Projection::All,
            matching: FieldMatching::default(),
            predicate: None,
            batch_rows: 8192,
            stripes: None,
            row_groups: BTreeMap::new(),
            strings: StringOutput::default(),
            timestamps: TimestampOutput::default(),
            align_to_row_groups: false,
            whole_index_bytes: 256 << 10,
            ahead_bytes: 32 << 20,
            stripe_metadata: BTreeMap::new(),
            limits: Limits::default(),
        }
    }
}

impl ReadOptions {
    /// Sets which columns to read.
    #[must_use]
    pub fn with_projection(mut self, projection: Projection) -> Self {
        self.projection = projection;
        self
    }

    /// Sets how fields are found.
    #[must_use]
    pub fn with_matching(mut self, matching: FieldMatching) -> Self {
        self.matching = matching;
        self
    }

    /// Sets the predicate.
    #[must_use]
    pub fn with_predicate(mut self, predicate: Predicate) -> Self {
        self.predicate = Some(predicate);
        self
    }

    /// Sets the most rows in a batch; 0 counts as 1.
    #[must_use]
    pub fn with_batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// Sets which stripes to read.
    #[must_use]
    pub fn with_stripes(mut self, stripes: Range<usize>) -> Self {
        self.stripes = Some(stripes);
        self
    }

    /// Sets which row groups of a stripe to read, counted from 0 in each stripe.
    #[must_use]
    pub fn with_row_groups(mut self, stripe: usize, groups: BTreeSet<usize>) -> Self {
        self.row_groups.insert(stripe, groups);
        self
    }

    /// Sets the Arrow type of strings.
    #[must_use]
    pub fn with_strings(mut self, strings: StringOutput) -> Self {
        self.strings = strings;
        self
    }

    /// Sets the Arrow unit of timestamps.
    #[must_use]
    pub fn with_timestamps(mut self, timestamps: TimestampOutput) -> Self {
        self.timestamps = timestamps;
        self
    }

    /// Sets whether a batch ends where a row group does.
    #[must_use]
    pub fn with_align_to_row_groups(mut self, align: bool) -> Self {
        self.align_to_row_groups = align;
        self
    }

    /// Sets up to how many bytes the data of several stripes is asked for together.
    #[must_use]
    pub fn with_ahead_bytes(mut self, bytes: u64) -> Self {
        self.ahead_bytes = bytes;
        self
    }

    /// Hands in what is known about a stripe.
    #[must_use]
    pub fn with_stripe_metadata(mut self, stripe: usize, metadata: Arc<StripeMetadata>) -> Self {
        self.stripe_metadata.insert(stripe, metadata);
        self
    }

    /// Sets limits on memory.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
