//! Settings of the engine, and what a table's properties say otherwise.

use std::sync::Arc;
use std::time::Duration;

use stoa_error::{Error, Result};
use stoa_table::Table;

use crate::sorted::FlushOrder;

/// Table property: `off` acknowledges rows before they are synced.
pub const LOG_SYNC: &str = "stoa.log-sync";

/// Table property: bytes of fresh rows at which a table is flushed.
pub const FLUSH_BYTES: &str = "stoa.flush-bytes";

/// Table property: number of fresh rows at which a table is flushed.
pub const FLUSH_ROWS: &str = "stoa.flush-rows";

/// Table property: milliseconds after which a fresh row is flushed.
pub const FLUSH_AGE_MS: &str = "stoa.flush-age-ms";

/// The properties of a table that this crate reads.
pub const PROPERTIES: [&str; 4] = [LOG_SYNC, FLUSH_BYTES, FLUSH_ROWS, FLUSH_AGE_MS];

/// How long stores that come back are usually away.
pub const LOG_STORE_WAIT: Duration = Duration::from_secs(120);

/// Settings of [`crate::Ingest`].
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// How long a log in an object store that does not answer is written to again before it stops; appends wait meanwhile.
    pub log_store_wait: Duration,
    /// Memory for fresh rows of all tables together; appends wait beyond it.
    pub fresh_bytes_max: usize,
    /// How long an append waits for room before it fails with 53200.
    pub room_wait_max: Duration,
    /// When a table is flushed, unless its properties say otherwise.
    pub flush: FlushLimits,
    /// Tables that are flushed at the same time.
    pub flushes_max: usize,
    /// Memory that one flush may use beside the rows themselves: files being written.
    pub flush_memory_bytes: usize,
    /// The longest wait between tries of a flush that fails.
    pub retry_wait_max: Duration,
    /// Whether other daemons are to have the records of the log: an append is acknowledged only once
    /// [`crate::Shipping::acknowledge`] allows it. For a log that has no records yet.
    pub ships: bool,
    /// Sorts the rows of tables that it knows; those of others are sorted by their columns.
    pub order: Option<Arc<dyn FlushOrder>>,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            log_store_wait: LOG_STORE_WAIT,
            fresh_bytes_max: 256 << 20,
            room_wait_max: Duration::from_secs(10),
            flush: FlushLimits::default(),
            flushes_max: 2,
            flush_memory_bytes: 128 << 20,
            retry_wait_max: Duration::from_secs(60),
            ships: false,
            order: None,
        }
    }
}

/// What makes a table due for a flush: the first limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushLimits {
    /// Bytes of memory; also the most that one commit of a flush takes.
    pub bytes: usize,
    /// Rows.
    pub rows: u64,
    /// Age of the oldest row.
    pub age: Duration,
}

impl Default for FlushLimits {
    fn default() -> Self {
        Self { bytes: 64 << 20, rows: 2_000_000, age: Duration::from_secs(30) }
    }
}

impl FlushLimits {
    /// The limits of `table`.
    ///
    /// # Errors
    /// `Invalid` for a property that is no number.
    pub(crate) fn of(table: &Table, defaults: Self) -> Result<Self> {
        let bytes = number(table, FLUSH_BYTES)?;
        let bytes = bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let age = number(table, FLUSH_AGE_MS)?.map(Duration::from_millis);
        Ok(Self {
            bytes: bytes.unwrap_or(defaults.bytes),
            rows: number(table, FLUSH_ROWS)?.unwrap_or(defaults.rows),
            age: age.unwrap_or(defaults.age),
        })
    }
}

/// When an append is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// As the table's property `stoa.log-sync` says: `on`, the default, or `off`.
    #[default]
    Table,
    /// When the rows survive a power cut.
    Synced,
    /// When the rows have been handed to the log's storage, and are visible: they survive the end of the
    /// process, not a power cut. Where the log is in an object store, they survive neither.
    Relaxed,
}

impl Durability {
    /// Whether rows of `table` are acknowledged, and visible, before they are synced.
    ///
    /// # Errors
    /// `Invalid` where the property is neither `on` nor `off`.
    pub(crate) fn is_relaxed(self, table: &Table) -> Result<bool> {
        match self {
            Self::Synced => Ok(false),
            Self::Relaxed => Ok(true),
            Self::Table => match table.property(LOG_SYNC) {
                None | Some("on") => Ok(false),
                Some("off") => Ok(true),
                Some(other) => {
                    Err(invalid(table, LOG_SYNC, other).with_hint("set it to on or off"))
                }
            },
        }
    }
}

/// Checks a value that is to be set. Properties that this crate does not read are not judged.
///
/// # Errors
/// `Invalid`, naming property and value, and what it may be.
pub fn check_property(key: &str, value: &str) -> Result<()> {
    let at_least = |least: u64| value.parse().is_ok_and(|number: u64| number >= least);
    let (is_right, may_be) = match key {
        LOG_SYNC => (matches!(value, "on" | "off"), "on or off"),
        FLUSH_BYTES | FLUSH_ROWS => (at_least(1), "a whole number from 1"),
        FLUSH_AGE_MS => (at_least(0), "a whole number from 0"),
        _ => return Ok(()),
    };
    match is_right {
        true => Ok(()),
        false => Err(Error::invalid(format!("property {key} = {value:?} cannot be used"))
            .with_hint(format!("set it to {may_be}"))),
    }
}

/// Checks the properties that this crate reads.
///
/// # Errors
/// `Invalid`, naming property and value.
pub fn check_properties(table: &Table) -> Result<()> {
    Durability::Table.is_relaxed(table)?;
    FlushLimits::of(table, FlushLimits::default()).map(|_| ())
}

fn number(table: &Table, key: &str) -> Result<Option<u64>> {
    let Some(text) = table.property(key) else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(invalid(table, key, text).with_hint("set it to a whole number, or unset it")),
    }
}

fn invalid(table: &Table, key: &str, value: &str) -> Error {
    Error::invalid(format!("table {}: property {key} = {value:?} cannot be used", table.ident()))
}
