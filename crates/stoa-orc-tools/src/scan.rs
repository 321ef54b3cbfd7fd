//! `scan`: reads everything, and finds what cannot be read.
//!
//! In: a file. Out: a line with counts, and places of damage. A stripe is read as a whole; only if
//! that fails its row groups are tried one by one, and then the columns of those that fail, by
//! halves.
//!
//! **Invariants:** every row of the file is counted once, as read or as bad; what is read of a
//! damaged stripe grows with its row groups and with its columns, not with the square of either.

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use stoa_error::{Error, ErrorKind, Result};
use stoa_orc::{Projection, ReadOptions, StripeMetadata, TimestampOutput, TypeKind};

use crate::file::OrcFile;
use crate::output::Output;

/// More row groups than this in a stripe are not tried one by one.
const PROBED_GROUPS_MAX: u64 = 1 << 16;

/// More columns of a stripe that cannot be read are not named.
const BAD_COLUMNS_MAX: usize = 64;

/// What to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanOptions {
    /// Whether to say why something cannot be read.
    pub verbose: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub struct ScanReport {
    /// Rows that were read.
    pub rows: u64,
    /// Rows that the file says it has.
    pub rows_total: u64,
    /// What cannot be read, in the order of the file.
    pub bad: Vec<BadSpot>,
}

impl ScanReport {
    /// Whether all was read.
    pub fn is_sound(&self) -> bool {
        self.bad.is_empty() && self.rows == self.rows_total
    }

    /// Row groups that cannot be read; a stripe without row groups counts as one.
    pub fn bad_batches(&self) -> u64 {
        self.bad.iter().map(|spot| spot.batches).sum()
    }
}

/// Neighbouring row groups of a stripe that cannot be read.
#[derive(Debug)]
pub struct BadSpot {
    /// Index of the stripe.
    pub stripe: usize,
    /// Rows of the file.
    pub rows: Range<u64>,
    /// Number of row groups.
    pub batches: u64,
    /// The top-level columns that cannot be read, by column id, and why; empty if it is none of
    /// them but the stripe itself.
    pub columns: Vec<(u32, Error)>,
    /// Whether there may be more such columns.
    pub has_more_columns: bool,
    /// Why the first of the row groups cannot be read.
    pub error: Error,
}

/// Reads all of a file.
///
/// # Errors
/// If the file cannot be opened, its tail makes no sense, or reading or writing fails on this side.
/// Damage behind the tail is no error: it is in the report.
pub fn scan(path: &Path, options: &ScanOptions, sink: &mut dyn Write) -> Result<ScanReport> {
    let file = OrcFile::open(path)?;
    let mut output = Output::new(sink);
    let mut report = ScanReport { rows_total: file.metadata.rows, ..ScanReport::default() };
    for stripe in 0..file.metadata.stripes.len() {
        scan_stripe(&file, stripe, &mut report)?;
    }
    for spot in &report.bad {
        print_spot(&file, spot, options, &mut output)?;
    }
    output.line(format_args!(
        "File: {}, bad batches: {}, rows: {}/{}",
        file.name(),
        report.bad_batches(),
        report.rows,
        report.rows_total
    ))?;
    output.finish()?;
    Ok(report)
}

fn scan_stripe(file: &OrcFile, stripe: usize, report: &mut ScanReport) -> Result<()> {
    let mut reader = StripeReader { file, stripe, metadata: None };
    match reader.read(None, Projection::All) {
        Ok(rows) => {
            report.rows += rows;
            Ok(())
        }
        Err(error) => probe(&mut reader, damage(error)?, report),
    }
}

/// Passes on errors that are no property of the file.
fn damage(error: Error) -> Result<Error> {
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Internal => Err(error),
        _ => Ok(error),
    }
}

/// Tries the row groups of a stripe that cannot be read as a whole.
fn probe(reader: &mut StripeReader, error: Error, report: &mut ScanReport) -> Result<()> {
    let metadata = &reader.file.metadata;
    let rows = metadata.stripes[reader.stripe].rows;
    let stride = u64::from(metadata.row_index_stride);
    let groups = if stride == 0 { 1 } else { rows.div_ceil(stride) };
    if groups <= 1 || groups > PROBED_GROUPS_MAX {
        return add_spot(reader, None, error, report);
    }
    let mut bad: Option<(Range<u64>, Error)> = None;
    for group in 0..groups {
        match reader.read(Some(group..group + 1), Projection::All) {
            Ok(rows) => {
                report.rows += rows;
                if let Some((groups, error)) = bad.take() {
                    add_spot(reader, Some(groups), error, report)?;
                }
            }
            Err(error) => {
                let error = damage(error)?;
                match &mut bad {
                    Some((groups, _)) => groups.end = group + 1,
                    None => bad = Some((group..group + 1, error)),
                }
            }
        }
    }
    match bad {
        Some((groups, error)) => add_spot(reader, Some(groups), error, report),
        None => Ok(()),
    }
}

/// Notes that some row groups (`None`: the whole stripe) cannot be read, and which columns of them.
fn add_spot(
    reader: &mut StripeReader,
    groups: Option<Range<u64>>,
    error: Error,
    report: &mut ScanReport,
) -> Result<()> {
    let metadata = &reader.file.metadata;
    let info = metadata.stripes[reader.stripe];
    let stride = u64::from(metadata.row_index_stride);
    let rows = match &groups {
        Some(groups) => groups.start * stride..(groups.end * stride).min(info.rows),
        None => 0..info.rows,
    };
    let root = &metadata.types.types()[0];
    let all = if root.kind == TypeKind::Struct { root.children.clone() } else { Vec::new() };
    let mut columns = Vec::new();
    // Without its footer no column of a stripe can be read.
    let has_more_columns =
        reader.metadata.is_some() && !bad_columns(reader, groups.as_ref(), &all, &mut columns)?;
    // Where all columns fail for the same reason it is none of theirs.
    if columns.iter().all(|(_, why)| why.message() == error.message()) && columns.len() > 1 {
        columns.clear();
    }
    report.bad.push(BadSpot {
        stripe: reader.stripe,
        rows: info.first_row + rows.start..info.first_row + rows.end,
        batches: groups.map_or(1, |groups| groups.end - groups.start),
        has_more_columns: has_more_columns && !columns.is_empty(),
        columns,
        error,
    });
    Ok(())
}

/// Adds those of `columns` that cannot be read; false if there were too many to look at all.
fn bad_columns(
    reader: &mut StripeReader,
    groups: Option<&Range<u64>>,
    columns: &[u32],
    bad: &mut Vec<(u32, Error)>,
) -> Result<bool> {
    if columns.is_empty() {
        return Ok(true);
    }
    if bad.len() >= BAD_COLUMNS_MAX {
        return Ok(false);
    }
    let Err(error) = reader.read(groups.cloned(), Projection::Columns(columns.to_vec())) else {
        return Ok(true);
    };
    let error = damage(error)?;
    if let [column] = columns {
        bad.push((*column, error));
        return Ok(true);
    }
    let (left, right) = columns.split_at(columns.len() / 2);
    Ok(bad_columns(reader, groups, left, bad)? && bad_columns(reader, groups, right, bad)?)
}

/// Reads parts of a stripe.
struct StripeReader<'a> {
    file: &'a OrcFile,
    stripe: usize,
    /// Its footer and indexes, once they were read: they are as long as the stripe has columns.
    metadata: Option<Arc<StripeMetadata>>,
}

impl StripeReader<'_> {
    /// Reads the stripe, or some of its row groups, and counts the rows.
    fn read(&mut self, groups: Option<Range<u64>>, projection: Projection) -> Result<u64> {
        let mut options = ReadOptions::default()
            .with_projection(projection)
            .with_timestamps(TimestampOutput::Micros);
        if let Some(groups) = groups {
            let groups: BTreeSet<usize> =
                groups.filter_map(|group| usize::try_from(group).ok()).collect();
            options = options.with_row_groups(self.stripe, groups);
        }
        if let Some(metadata) = &self.metadata {
            options = options.with_stripe_metadata(self.stripe, metadata.clone());
        }
        let mut batches = self.file.stripe(self.stripe, options)?;
        let mut rows = 0;
        let result = loop {
            match batches.next() {
                Ok(Some(batch)) => rows += batch.num_rows() as u64,
                Ok(None) => break Ok(rows),
                Err(error) => break Err(error),
            }
        };
        self.metadata = batches.stripe_metadata(self.stripe).or(self.metadata.take());
        result
    }
}

fn print_spot(
    file: &OrcFile,
    spot: &BadSpot,
    options: &ScanOptions,
    output: &mut Output,
) -> Result<()> {
    let place = |row: u64| {
        let stripes = &file.metadata.stripes;
        let of_row = |s: &stoa_orc::StripeInfo| (s.first_row..s.first_row + s.rows).contains(&row);
        match stripes.iter().position(of_row).and_then(|index| Some((index, stripes.get(index)?))) {
            Some((index, s)) => {
                format!(
                    "row {row} in stripe {index} (rows {}-{})",
                    s.first_row,
                    s.first_row + s.rows
                )
            }
            None => format!("row {row}, the end of the file"),
        }
    };
    let (first, next) = (place(spot.rows.start), place(spot.rows.end));
    output.line(format_args!("Unable to read batch at {first}, recovery at {next}"))?;
    if options.verbose {
        output.line(format_args!("  {}", spot.error.message_with_sources()))?;
    }
    for (column, error) in &spot.columns {
        let path = file.metadata.types.path(*column);
        output.line(format_args!("Column {column} ({path}) failed at row {}", spot.rows.start))?;
        if options.verbose && error.message() != spot.error.message() {
            output.line(format_args!("  {}", error.message_with_sources()))?;
        }
    }
    if spot.has_more_columns {
        output.line(format_args!("More columns may have failed at row {}", spot.rows.start))?;
    }
    Ok(())
}
