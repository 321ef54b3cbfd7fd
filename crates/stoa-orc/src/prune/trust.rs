//! Which statistics and bloom filters of a file may be trusted, by who wrote it.
//!
//! The bugs are those of ORC Java before certain writer versions and of ORC C++ before 1.7.1
//! (see the comments on `writer_version` in `orc_proto.proto`, and `StripePlanner` and `Reader.cc`
//! in apache/orc).

use crate::calendar::{DateRule, FIRST_GREGORIAN_DAY};
use crate::metadata::{FileMetadata, WriterId};
use crate::proto::StreamKind;
use crate::schema::TypeKind;
use crate::statistics::{ColumnStatistics, ValueStatistics};
use crate::stripe::{Encoding, StripeMetadata};

/// Writer versions of ORC Java from which a bug is fixed.
mod java {
    /// Maxima of stripes and files; UTF-8 in string statistics.
    pub(super) const HIVE_8732: u32 = 1;
    /// Strings in old bloom filters.
    pub(super) const HIVE_12055: u32 = 3;
    /// Timestamps in statistics and bloom filters are UTC.
    pub(super) const ORC_135: u32 = 6;
    /// Small decimals in statistics.
    pub(super) const ORC_517: u32 = 7;
}

/// Releases of ORC C++ that hashed numbers differently (ORC-1024).
const CPP_BAD_BLOOM: [&str; 13] = [
    "1.6.0", "1.6.1", "1.6.2", "1.6.3", "1.6.4", "1.6.5", "1.6.6", "1.6.7", "1.6.8", "1.6.9",
    "1.6.10", "1.6.11", "1.7.0",
];

/// The first day of the Gregorian calendar in milliseconds.
const FIRST_GREGORIAN_MILLIS: i64 = FIRST_GREGORIAN_DAY as i64 * 86_400_000;

/// What level statistics are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Stripe,
    RowGroup,
}

/// Rules for one file.
#[derive(Clone, Copy)]
pub(crate) struct Trust<'a> {
    file: &'a FileMetadata,
}

impl<'a> Trust<'a> {
    pub(crate) fn of(file: &'a FileMetadata) -> Self {
        Self { file }
    }

    /// The statistics without what may not be trusted.
    pub(crate) fn statistics(
        &self,
        column: u32,
        level: Level,
        mut statistics: ColumnStatistics,
    ) -> Option<ColumnStatistics> {
        let writer = &self.file.writer;
        let ty = self.file.types.get(column)?;
        if self.file.is_encrypted(column) {
            return None;
        }
        let old_texts = !self.texts();
        if old_texts && level == Level::Stripe {
            return None;
        }
        let hybrid = DateRule::of(self.file) == DateRule::Hybrid;
        let bad = match &statistics.bounds {
            ValueStatistics::String { .. } => old_texts,
            ValueStatistics::Timestamp { min, .. } => {
                let is_julian = min.is_some_and(|min| min.millis < FIRST_GREGORIAN_MILLIS);
                writer.is_java_before(java::ORC_135) || (hybrid && is_julian)
            }
            ValueStatistics::Date { min, .. } => {
                hybrid && min.is_some_and(|min| min < FIRST_GREGORIAN_DAY)
            }
            ValueStatistics::Decimal { .. } => {
                let small = ty.precision <= 18;
                // Values are cut to the scale that Hive 0.11 did not say.
                ty.precision == 0 || (small && writer.is_java_before(java::ORC_517))
            }
            _ => false,
        };
        if bad {
            statistics.bounds = ValueStatistics::None;
        }
        Some(statistics)
    }

    /// Whether bounds of texts may be trusted.
    fn texts(&self) -> bool {
        !self.file.writer.is_java_before(java::HIVE_8732)
    }

    /// Whether bounds of the texts of row groups may be compared as bytes, and those without NULL have none.
    pub(super) fn may_bisect(&self, column: u32) -> bool {
        let types = &self.file.types;
        // CHAR compares without trailing spaces.
        let kind = types.get(column).map(|ty| ty.kind);
        let is_text = matches!(kind, Some(TypeKind::String | TypeKind::Varchar));
        // Below a struct, rows without a parent are NULL, too.
        let is_top = types.types()[0].children.contains(&column);
        is_text && is_top && self.texts() && !self.file.is_encrypted(column)
    }

    /// Whether the bloom filters of a column may be asked.
    pub(crate) fn bloom(&self, column: u32, stream: StreamKind, encoding: Encoding) -> bool {
        let writer = &self.file.writer;
        let Some(ty) = self.file.types.get(column) else { return false };
        if self.file.is_encrypted(column) || self.has_bad_cpp_bloom() {
            return false;
        }
        match ty.kind {
            TypeKind::String | TypeKind::Varchar => {
                stream == StreamKind::BloomFilterUtf8 || !writer.is_java_before(java::HIVE_12055)
            }
            TypeKind::Timestamp | TypeKind::TimestampInstant => {
                encoding.bloom_is_utc && !writer.is_java_before(java::ORC_135)
            }
            TypeKind::Date => DateRule::of(self.file) == DateRule::Proleptic,
            // Texts of decimals differ between writers; CHAR may be padded.
            TypeKind::Decimal | TypeKind::Char => false,
            _ => true,
        }
    }

    fn has_bad_cpp_bloom(&self) -> bool {
        let writer = &self.file.writer;
        let release = writer.software.as_deref().map(|s| s.split('-').next().unwrap_or(s));
        writer.code == WriterId::CPP && release.is_none_or(|r| CPP_BAD_BLOOM.contains(&r))
    }
}

impl FileMetadata {
    /// Statistics of each row group of a column of a stripe, from its row index; `None` where the
    /// writer's may not be trusted. Empty where the row index is not known.
    pub fn row_group_statistics(
        &self,
        stripe: &StripeMetadata,
        column: u32,
    ) -> Vec<Option<ColumnStatistics>> {
        let Some(index) = stripe.row_index(column) else { return Vec::new() };
        let trust = Trust::of(self);
        let trusted =
            |group: usize| trust.statistics(column, Level::RowGroup, index.statistics(group)?);
        (0..index.len()).map(trusted).collect()
    }
}
