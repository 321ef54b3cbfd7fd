//! How a file is written.

use std::collections::{BTreeMap, BTreeSet};

use stoa_error::Error;

use super::column::can_have_bloom;
use crate::compression::{BLOCK_BYTES_DEFAULT, CHUNK_BYTES_MAX, Compression};
use crate::error::Result;
use crate::schema::TypeTree;

/// Whether strings get a dictionary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DictionaryChoice {
    /// Per column and stripe, if it is smaller; decided after the first row group.
    #[default]
    Auto,
    /// In every stripe.
    Always,
    /// In none.
    Never,
}

/// How a file is written; the default suits report tables on object stores.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Codec and level of all streams; zstd level 3.
    pub compression: Compression,
    /// Most content of a compression chunk in bytes; 256 KiB.
    pub compression_block_bytes: usize,
    /// A stripe ends at the first row group that brings its data to this many bytes; 64 MiB.
    pub stripe_bytes: usize,
    /// Most rows in a stripe; no limit.
    pub stripe_rows: u64,
    /// Rows in a row group; 10,000. 0 = no row index.
    pub row_index_stride: u32,
    /// Whether strings get a dictionary.
    pub dictionary: DictionaryChoice,
    /// Columns with a bloom filter per row group: names from the root, joined by `.`, as
    /// [`TypeTree::path`] has them.
    pub bloom_columns: BTreeSet<String>,
    /// Share of false positives of the bloom filters, between 0 and 1; 0.01.
    pub bloom_fpp: f64,
    /// The user's own keys in the footer.
    pub user_metadata: BTreeMap<String, Vec<u8>>,
    /// Whether the footer carries a copy of all stripe footers and row indexes (if that takes at
    /// most 1 MiB), so that a cold read needs the tail and the data only; yes.
    pub compact_index: bool,
    /// Whether the footer names the calendar of dates and timestamps, which is the proleptic
    /// Gregorian one; yes. Not for data files of Iceberg tables: there it is so whatever the footer
    /// says, and ORC Java below Iceberg's readers would convert if it did say so.
    pub names_calendar: bool,
    /// Whether the file carries checksums of all its bytes, four bytes for 16 KiB; yes.
    pub checksums: bool,
    /// Whether the writer remembers checksums for a [`crate::Validator`], 24 bytes per column and
    /// row group; no.
    pub validate: bool,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            compression: Compression::default(),
            compression_block_bytes: BLOCK_BYTES_DEFAULT,
            stripe_bytes: 64 << 20,
            stripe_rows: u64::MAX,
            row_index_stride: 10_000,
            dictionary: DictionaryChoice::default(),
            bloom_columns: BTreeSet::new(),
            bloom_fpp: 0.01,
            user_metadata: BTreeMap::new(),
            compact_index: true,
            names_calendar: true,
            checksums: true,
            validate: false,
        }
    }
}

impl WriterOptions {
    /// Sets the codec.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the most content of a chunk in bytes.
    #[must_use]
    pub fn with_compression_block_bytes(mut self, bytes: usize) -> Self {
        self.compression_block_bytes = bytes;
        self
    }

    /// Sets at how many bytes a stripe ends.
    #[must_use]
    pub fn with_stripe_bytes(mut self, bytes: usize) -> Self {
        self.stripe_bytes = bytes;
        self
    }

    /// Sets at how many rows a stripe ends.
    #[must_use]
    pub fn with_stripe_rows(mut self, rows: u64) -> Self {
        self.stripe_rows = rows;
        self
    }

    /// Sets the rows of a row group; 0 = no row index.
    #[must_use]
    pub fn with_row_index_stride(mut self, rows: u32) -> Self {
        self.row_index_stride = rows;
        self
    }

    /// Sets whether strings get a dictionary.
    #[must_use]
    pub fn with_dictionary(mut self, dictionary: DictionaryChoice) -> Self {
        self.dictionary = dictionary;
        self
    }

    /// Adds a column with bloom filters.
    #[must_use]
    pub fn with_bloom_column(mut self, path: impl Into<String>) -> Self {
        self.bloom_columns.insert(path.into());
        self
    }

    /// Sets the share of false positives of bloom filters.
    #[must_use]
    pub fn with_bloom_fpp(mut self, fpp: f64) -> Self {
        self.bloom_fpp = fpp;
        self
    }

    /// Adds a key of the user's own.
    #[must_use]
    pub fn with_user_metadata(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.user_metadata.insert(key.into(), value.into());
        self
    }

    /// Sets whether the footer carries a copy of all indexes.
    #[must_use]
    pub fn with_compact_index(mut self, compact_index: bool) -> Self {
        self.compact_index = compact_index;
        self
    }

    /// Sets whether the footer names the calendar.
    #[must_use]
    pub fn with_named_calendar(mut self, names_calendar: bool) -> Self {
        self.names_calendar = names_calendar;
        self
    }

    /// Sets whether the file carries checksums of its bytes.
    #[must_use]
    pub fn with_checksums(mut self, checksums: bool) -> Self {
        self.checksums = checksums;
        self
    }

    /// Sets whether the file can be validated once it is finished.
    #[must_use]
    pub fn with_validation(mut self, validate: bool) -> Self {
        self.validate = validate;
        self
    }

    /// # Errors
    /// `Invalid` for a number out of its range or a bloom column that does not exist.
    pub(crate) fn check(&self, tree: &TypeTree) -> Result<()> {
        let block_bytes = self.compression_block_bytes;
        if !(1 << 10..=CHUNK_BYTES_MAX).contains(&block_bytes) {
            return Err(Error::invalid(format!(
                "compression block of {block_bytes} bytes is out of range"
            ))
            .with_hint(format!("choose 1,024 to {CHUNK_BYTES_MAX} bytes")));
        }
        if self.bloom_columns.is_empty() {
            return Ok(());
        }
        if !(self.bloom_fpp > 0.0 && self.bloom_fpp < 1.0) {
            let message = format!("bloom filter false positive rate {}", self.bloom_fpp);
            return Err(Error::invalid(format!("{message} is out of range"))
                .with_hint("choose a number between 0 and 1, such as 0.01"));
        }
        if self.row_index_stride == 0 {
            return Err(Error::invalid("bloom filters need a row index")
                .with_hint("set the row index stride to 10000"));
        }
        for path in &self.bloom_columns {
            let column = (1..tree.len() as u32).find(|column| tree.path(*column) == *path);
            let Some(kind) = column.and_then(|column| tree.get(column)).map(|ty| ty.kind) else {
                return Err(Error::invalid(format!("bloom column {path} does not exist")));
            };
            if !can_have_bloom(kind) {
                let message = format!("bloom column {path}: {kind:?} has no bloom filter");
                return Err(Error::invalid(message)
                    .with_hint("choose a column of numbers, strings, dates or timestamps"));
            }
        }
        Ok(())
    }
}
