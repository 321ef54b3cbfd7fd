//! Table properties that say how data files are written.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use stoa_error::{Error, Result};
use stoa_orc::{Compression, DictionaryChoice, WriterOptions};

use super::{OrcOptions, WriteOptions};
use crate::Table;

/// Bytes at which a data file is finished.
const TARGET_FILE_BYTES: u64 = 256 << 20;

/// The smallest stripe that may be asked for.
const STRIPE_BYTES_MIN: usize = 64 << 10;

/// The smallest block of compressed bytes that may be asked for.
const BLOCK_BYTES_MIN: usize = 4 << 10;

/// Levels of zstd; negative ones are faster.
const ZSTD_LEVELS: RangeInclusive<i32> = -7..=22;

/// The largest: a chunk's header in ORC has 23 bits for its length.
const BLOCK_BYTES_MAX: usize = (1 << 23) - 1;

/// Whether texts get dictionaries.
const DICTIONARY: &str = "stoa.orc.dictionary";

/// Whether data files can be written as the properties of `table` say.
///
/// # Errors
/// `Invalid`, naming property and value, for one that cannot be followed.
pub(crate) fn check_properties(table: &Table) -> Result<()> {
    FileProperties::of(table, &WriteOptions::default()).map(drop)
}

/// How data files of a table are written.
#[derive(Clone, Debug)]
pub(super) struct FileProperties {
    pub(super) target_file_bytes: u64,
    pub(super) orc: OrcOptions,
}

impl FileProperties {
    /// Reads the properties of `table`.
    ///
    /// # Errors
    /// `Invalid`, naming property and value, for one that cannot be followed.
    pub(super) fn of(table: &Table, options: &WriteOptions) -> Result<Self> {
        let target = match options.target_file_bytes {
            Some(bytes) => Some(bytes),
            None => number(table, "write.target-file-size-bytes", 1)?,
        };
        let mut orc = orc_options(table)?;
        if let Some(most) = options.stripe_bytes_max {
            orc.stripe_bytes = orc.stripe_bytes.min(most.max(STRIPE_BYTES_MIN));
        }
        let target_file_bytes = target.unwrap_or(TARGET_FILE_BYTES);
        Ok(Self { target_file_bytes, orc: Arc::new(orc) })
    }
}

fn orc_options(table: &Table) -> Result<WriterOptions> {
    let mut options = WriterOptions::default().with_named_calendar(false);
    match table.property("write.orc.compression-codec") {
        Some(codec) => options = options.with_compression(compression(table, codec)?),
        // The level waits for a codec, but must be one.
        None => {
            compression(table, "zstd")?;
        }
    }
    if let Some(bytes) = number(table, "write.orc.stripe-size-bytes", STRIPE_BYTES_MIN)? {
        options = options.with_stripe_bytes(bytes);
    }
    const BLOCK_BYTES: &str = "stoa.orc.compression-block-bytes";
    if let Some(bytes) = number(table, BLOCK_BYTES, BLOCK_BYTES_MIN)? {
        if bytes > BLOCK_BYTES_MAX {
            return Err(invalid(table, BLOCK_BYTES, &bytes.to_string()));
        }
        options = options.with_compression_block_bytes(bytes);
    }
    if let Some(rows) = number(table, "stoa.orc.row-index-stride", 100)? {
        options = options.with_row_index_stride(rows);
    }
    if let Some(choice) = table.property(DICTIONARY) {
        options = options.with_dictionary(dictionary(table, choice)?);
    }
    let bloom = table.property("write.orc.bloom.filter.columns").unwrap_or_default();
    for column in bloom.split(',').map(str::trim).filter(|column| !column.is_empty()) {
        if table.metadata().current_schema().field_by_name(column).is_none() {
            return Err(invalid(table, "write.orc.bloom.filter.columns", column)
                .with_detail("the table has no such column"));
        }
        options = options.with_bloom_column(column);
    }
    if let Some(text) = table.property("write.orc.bloom.filter.fpp") {
        let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate < 1.0);
        let rate = rate.ok_or_else(|| invalid(table, "write.orc.bloom.filter.fpp", text))?;
        options = options.with_bloom_fpp(rate);
    }
    Ok(options)
}

fn dictionary(table: &Table, choice: &str) -> Result<DictionaryChoice> {
    Ok(match choice {
        "auto" => DictionaryChoice::Auto,
        "always" => DictionaryChoice::Always,
        "never" => DictionaryChoice::Never,
        _ => {
            return Err(
                invalid(table, DICTIONARY, choice).with_hint("choose auto, always or never")
            );
        }
    })
}

fn compression(table: &Table, codec: &str) -> Result<Compression> {
    const LEVEL: &str = "stoa.orc.compression-level";
    let codec_name = codec.to_ascii_lowercase();
    let levels = if codec_name == "zlib" { 0..=9 } else { ZSTD_LEVELS };
    let level: Option<i32> = match table.property(LEVEL) {
        Some(text) => {
            let level = text.parse().ok().filter(|level| levels.contains(level));
            Some(level.ok_or_else(|| invalid(table, LEVEL, text))?)
        }
        None => None,
    };
    Ok(match codec_name.as_str() {
        "zstd" => level.map_or_else(Compression::default, |level| Compression::Zstd { level }),
        "zlib" => {
            Compression::Zlib { level: level.and_then(|l| u32::try_from(l).ok()).unwrap_or(6) }
        }
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "none" | "uncompressed" => Compression::None,
        _ => {
            return Err(invalid(table, "write.orc.compression-codec", codec)
                .with_hint("choose zstd, zlib, snappy, lz4 or none"));
        }
    })
}

/// A number of at least `least`.
fn number<T: FromStr + PartialOrd>(table: &Table, key: &str, least: T) -> Result<Option<T>> {
    let Some(text) = table.property(key) else { return Ok(None) };
    match text.trim().parse::<T>() {
        Ok(value) if value >= least => Ok(Some(value)),
        _ => Err(invalid(table, key, text)),
    }
}

fn invalid(table: &Table, key: &str, value: &str) -> Error {
    Error::invalid(format!("table {}: property {key} = {value:?} cannot be used", table.ident()))
        .with_hint(format!("set {key} to another value, or unset it"))
}
