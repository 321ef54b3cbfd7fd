//! What manifests tell of the values of a scan, for the engine's choice between plans.
//!
//! In: the files of a scan, and its predicate. Out: numbers of NULLs and of different values of its columns, and which
//! share of the rows the predicate keeps, all of them estimates: bounds of files may be wider than their values, and
//! rows of files may be deleted or left out. **Invariant:** nothing is answered by them.
//! Bounds themselves are not told: the engine computes with them how much a filter leaves, fails where that is more than
//! all by a rounding error, and has nothing to compare texts by.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ColumnStatistics;
use datafusion::common::stats::Precision;
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};
use stoa_table::ScanFile;

use super::selected::id_of;

/// Files of which bounds are put together; of more, nothing is told.
const FILES_MAX: usize = 4096;

/// Statistics of the columns of a scan, in the order of its schema.
pub(super) fn column_estimates(files: &[Arc<ScanFile>], schema: &Schema) -> Vec<ColumnStatistics> {
    let of = |field: &Arc<Field>| column_estimate(files, field).unwrap_or_default();
    schema.fields().iter().map(of).collect()
}

fn column_estimate(files: &[Arc<ScanFile>], field: &Field) -> Option<ColumnStatistics> {
    let id = id_of(field.metadata())?;
    if files.is_empty() || files.len() > FILES_MAX {
        return None;
    }
    let nulls: Option<u64> = files.iter().map(|file| file.null_counts.get(&id).copied()).sum();
    let bound = |of: fn(&ScanFile) -> &HashMap<i32, Literal>| {
        // A file without a value has no bounds, and nothing to say.
        let has_values = |file: &&Arc<ScanFile>| {
            let counts = file.null_counts.get(&id).zip(file.value_counts.get(&id));
            counts.is_none_or(|(nulls, values)| nulls < values)
        };
        let bounds = files.iter().filter(has_values);
        let bounds = bounds.map(|file| number_of(of(file).get(&id)?, field.data_type()));
        bounds.collect::<Option<Vec<i128>>>()
    };
    let least = bound(|file| &file.lower_bounds).and_then(|bounds| bounds.into_iter().min());
    let greatest = bound(|file| &file.upper_bounds).and_then(|bounds| bounds.into_iter().max());
    let rows: u64 = files.iter().map(|file| file.rows).sum();
    let values = rows.saturating_sub(nulls.unwrap_or_default());
    let different = least.zip(greatest).map(|(least, greatest)| {
        let within = greatest.saturating_sub(least).saturating_add(1);
        u64::try_from(within).unwrap_or(u64::MAX).min(values)
    });
    let precise = |count: Option<u64>| {
        let count = count.and_then(|count| usize::try_from(count).ok());
        count.map_or(Precision::Absent, Precision::Inexact)
    };
    Some(ColumnStatistics {
        null_count: precise(nulls),
        distinct_count: precise(different),
        ..ColumnStatistics::default()
    })
}

/// A bound as a number among as many as there may be values; `None` for types that are not counted.
fn number_of(bound: &Literal, data_type: &DataType) -> Option<i128> {
    match bound {
        Literal::Int(value) => Some((*value).into()),
        Literal::Date(value) => Some((*value).into()),
        Literal::Decimal(value, of) => {
            matches!(data_type, DataType::Decimal128(_, scale) if of == scale).then_some(*value)
        }
        _ => None,
    }
}

/// Share of the rows that one comparison keeps of which nothing is known.
const UNKNOWN_SHARE: f64 = 0.3;

/// Share of the rows that have one certain value, where it is not known how many values there are.
const ONE_VALUE_SHARE: f64 = 0.05;

/// Which share of the rows of `files` a predicate keeps, from 0 to 1.
pub(super) fn share_kept(predicate: &Predicate, files: &[Arc<ScanFile>]) -> f64 {
    let share = match predicate {
        Predicate::And(parts) => {
            // Both ends of a range together say more than each alone.
            let mut ranges: Vec<(ColumnRef, (i128, i128))> = Vec::new();
            let mut share = 1.0;
            for part in parts {
                match range_of(part) {
                    Some((column, (low, high))) => {
                        match ranges.iter_mut().find(|(known, _)| *known == column) {
                            Some((_, known)) => *known = (known.0.max(low), known.1.min(high)),
                            None => ranges.push((column, (low, high))),
                        }
                    }
                    None => share *= share_kept(part, files),
                }
            }
            let of_range = |(column, range): &(ColumnRef, (i128, i128))| {
                share_of_range(*column, *range, files)
            };
            share * ranges.iter().map(of_range).product::<f64>()
        }
        Predicate::Or(parts) => {
            1.0 - parts.iter().map(|part| 1.0 - share_kept(part, files)).product::<f64>()
        }
        Predicate::In { column, values } => values.len() as f64 * share_of_one(*column, files),
        Predicate::Compare { column, op: CompareOp::Eq, .. } => share_of_one(*column, files),
        Predicate::Compare { op: CompareOp::NotEq, .. } | Predicate::IsNotNull(_) => 1.0,
        Predicate::IsNull(_) => ONE_VALUE_SHARE,
        Predicate::Compare { .. } => match range_of(predicate) {
            Some((column, range)) => share_of_range(column, range, files),
            None => UNKNOWN_SHARE,
        },
    };
    share.clamp(0.0, 1.0)
}

/// The whole numbers that a comparison lets a column have, if it is about a range of them.
fn range_of(predicate: &Predicate) -> Option<(ColumnRef, (i128, i128))> {
    let Predicate::Compare { column, op, value } = predicate else { return None };
    let value = match value {
        Literal::Int(value) | Literal::TimestampMicros(value) => i128::from(*value),
        Literal::Date(value) => i128::from(*value),
        Literal::Decimal(value, _) => *value,
        _ => return None,
    };
    let range = match op {
        CompareOp::Lt | CompareOp::LtEq => (i128::MIN, value),
        CompareOp::Gt | CompareOp::GtEq => (value, i128::MAX),
        CompareOp::Eq | CompareOp::NotEq => return None,
    };
    Some((*column, range))
}

/// Least and greatest number of a column in all files, as far as they are known.
fn ends_of(column: ColumnRef, files: &[Arc<ScanFile>]) -> Option<(i128, i128)> {
    let ColumnRef::Field(id) = column else { return None };
    let number = |bound: Option<&Literal>| match bound? {
        Literal::Int(value) | Literal::TimestampMicros(value) => Some(i128::from(*value)),
        Literal::Date(value) => Some(i128::from(*value)),
        Literal::Decimal(value, _) => Some(*value),
        _ => None,
    };
    let files = || files.iter().take(FILES_MAX);
    let least = files().filter_map(|file| number(file.lower_bounds.get(&id))).min()?;
    let greatest = files().filter_map(|file| number(file.upper_bounds.get(&id))).max()?;
    Some((least, greatest))
}

fn share_of_range(column: ColumnRef, (low, high): (i128, i128), files: &[Arc<ScanFile>]) -> f64 {
    let Some((least, greatest)) = ends_of(column, files) else { return UNKNOWN_SHARE };
    let (low, high) = (low.max(least), high.min(greatest));
    let count = |low: i128, high: i128| high.saturating_sub(low).saturating_add(1).max(0) as f64;
    count(low, high) / count(least, greatest).max(1.0)
}

/// Which share of the rows has one value.
fn share_of_one(column: ColumnRef, files: &[Arc<ScanFile>]) -> f64 {
    let rows: u64 = files.iter().map(|file| file.rows).sum();
    match ends_of(column, files) {
        Some((least, greatest)) => {
            let values = greatest.saturating_sub(least).saturating_add(1).max(1) as f64;
            1.0 / values.min(rows.max(1) as f64)
        }
        None => ONE_VALUE_SHARE,
    }
}
