//! How far each commit log has been brought into a table.
//!
//! In: what a flush brings ([`LogAdvance`]). Out: the positions a table is at, and whether a flush
//! is still to be done.
//!
//! A position is the sequence number up to which, as the log counts, everything of it is in the
//! table's files; 0 is nothing. It is kept as the table property `stoa.log.<log>`, set in the same metadata version that
//! shows the rows, so a flush and its position become visible together or not at all.
//!
//! Properties and not snapshot summaries are what counts, because they outlive what others do:
//!
//! | event | summaries | properties |
//! |---|---|---|
//! | another engine commits | its snapshot lacks the keys | stay |
//! | another engine expires snapshots | keys go with them | stay |
//! | rollback to an older snapshot, by another engine or by `roll_back` | positions go back: rows whose log is recycled would be lost, the others would come back | stay: the rollback undoes those rows, as was asked |
//! | replace table, branches | no main snapshot to look at | stay |
//!
//! Each snapshot of Stoa also carries all positions in its summary, as a record for people and
//! tools; nothing here reads it.
//! **Invariant:** a position never goes back.

use std::collections::{BTreeMap, HashMap};

use stoa_error::{Error, Result};

use crate::defaults::is_of_column;
use crate::{Table, TableIdent};

/// What table properties of positions begin with.
pub(crate) const PREFIX: &str = "stoa.log.";

/// Rows of one commit log that a commit brings into the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogAdvance {
    /// The log's id: letters, digits, `-`, `_` and `.`.
    pub log: String,
    /// The position that the table must be at (0 if it knows nothing of the log); `None` for any
    /// that is before `to`.
    pub from: Option<u64>,
    /// The position that it is at afterwards, larger than `from`.
    pub to: u64,
}

/// Whether the rows of some advances are in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// None of them is.
    Ahead,
    /// All of them are.
    Passed,
}

impl Table {
    /// The position of every log that this version of the table knows: everything up to it is in
    /// the table's files.
    ///
    /// # Errors
    /// `Corrupt` where a position is not a number.
    pub fn log_positions(&self) -> Result<BTreeMap<String, u64>> {
        let properties = self.metadata().properties().iter();
        let positions =
            properties.filter_map(|(key, text)| Some((key.strip_prefix(PREFIX)?, text)));
        positions
            .map(|(log, text)| match text.parse() {
                Ok(position) => Ok((log.to_owned(), position)),
                Err(_) => Err(unreadable(self, log, text)),
            })
            .collect()
    }
}

/// Where `table` stands towards `advances`, for rows that must be there exactly once.
///
/// # Errors
/// As [`ahead`]; `Conflict` where some are in the table and others are not.
pub(crate) fn standing(table: &Table, advances: &[LogAdvance]) -> Result<Standing> {
    let ahead = ahead(table, advances)?.len();
    match advances.len() - ahead {
        0 => Ok(Standing::Ahead),
        _ if ahead == 0 => Ok(Standing::Passed),
        _ => Err(Error::conflict(format!(
            "table {}: some of the logs of this flush are in the table, others are not",
            table.ident()
        ))
        .with_hint("flush each log by itself")),
    }
}

/// Those of `advances` that `table` has not passed.
///
/// # Errors
/// `Invalid` for an advance that goes nowhere; `Conflict` where the table is at a position between
/// or before those of an advance: committing would bring rows twice or leave some out.
pub(crate) fn ahead(table: &Table, advances: &[LogAdvance]) -> Result<Vec<LogAdvance>> {
    let positions = table.log_positions()?;
    let mut ahead = Vec::new();
    for advance in advances {
        check(table, advance)?;
        let now = positions.get(&advance.log).copied().unwrap_or(0);
        if now >= advance.to {
            continue;
        }
        if advance.from.is_some_and(|from| from != now) {
            return Err(elsewhere(table, advance, now));
        }
        ahead.push(advance.clone());
    }
    Ok(ahead)
}

/// The properties that say that `advances` are in the table.
pub(crate) fn properties(advances: &[LogAdvance]) -> HashMap<String, String> {
    advances.iter().map(|a| (format!("{PREFIX}{}", a.log), a.to.to_string())).collect()
}

/// Whether a property is one of these, which only commits of rows may set.
pub(crate) fn is_position(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// Such a property in a statement of a user.
pub(crate) fn reserved(table: &TableIdent, key: &str) -> Error {
    let hint = match is_of_column(key) {
        true => "ALTER TABLE … ALTER COLUMN … SET DEFAULT or TYPE changes it",
        false => "it says which acknowledged rows are in the table's files",
    };
    Error::unsupported(format!("table {table}: property {key} cannot be changed")).with_hint(hint)
}

fn check(table: &Table, advance: &LogAdvance) -> Result<()> {
    let LogAdvance { log, from, to } = advance;
    let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if log.is_empty() || log.len() > 200 || !log.chars().all(usable) {
        return Err(Error::invalid(format!(
            "table {}: log id {log:?} is not usable",
            table.ident()
        )));
    }
    if *to == 0 || from.is_some_and(|from| from >= *to) {
        return Err(Error::invalid(format!(
            "table {}: log {log} cannot go from position {} to {to}",
            table.ident(),
            from.unwrap_or(0)
        )));
    }
    Ok(())
}

fn elsewhere(table: &Table, advance: &LogAdvance, now: u64) -> Error {
    let LogAdvance { log, from, to } = advance;
    Error::conflict(format!(
        "table {} is at position {now} of log {log}, not at {}",
        table.ident(),
        from.unwrap_or(0)
    ))
    .with_detail(format!("the flush goes up to position {to}"))
    .with_hint("read the table's position again and flush from there")
}

fn unreadable(table: &Table, log: &str, text: &str) -> Error {
    Error::corrupt(format!("table {}: property {PREFIX}{log} = {text:?}", table.ident()))
        .with_detail("it is no position of a log")
        .with_hint("restore the property from the table's previous metadata file")
}
