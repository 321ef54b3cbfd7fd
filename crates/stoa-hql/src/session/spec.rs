//! From the conditions of SELECT and DUMP to scans.

use std::ops::Bound;

use stoa_error::{Error, Result};

use super::Session;
use super::write::split_column;
use crate::lang::ast::{
    CellExpr, ColumnExpr, Conditions, Interval, KeyCondition, Limit, QualifierExpr, ValueTest,
};
use crate::pattern::Pattern;
use crate::scan::{
    CellKey, ColumnPredicate, ColumnSelector, Combine, KeyRange, QualifierFilter, ScanSpec,
    TimeRange, ValueFilter,
};
use crate::schema::TableSchema;

impl Session {
    /// The scan of these columns under these conditions, without ranges and limits.
    pub(super) fn spec(
        &self,
        schema: &TableSchema,
        columns: &[ColumnExpr],
        conditions: &Conditions,
    ) -> Result<ScanSpec> {
        let pattern = |text: &Option<String>| text.as_deref().map(Pattern::new).transpose();
        let mut predicates = Vec::new();
        for condition in &conditions.columns {
            let value = match &condition.test {
                ValueTest::Exists => ValueFilter::Exists,
                ValueTest::Equal(value) => ValueFilter::Equals(value.clone().into_bytes()),
                ValueTest::Prefix(value) => ValueFilter::Prefix(value.clone().into_bytes()),
                ValueTest::Regexp(text) => ValueFilter::Matches(Pattern::new(text)?),
            };
            predicates
                .push(ColumnPredicate { column: selector(schema, &condition.column)?, value });
        }
        let columns: Result<Vec<_>> = columns.iter().map(|c| selector(schema, c)).collect();
        let time = conditions.time.as_ref().map(|time| self.time_range(time)).transpose()?;
        Ok(ScanSpec {
            columns: columns?,
            time: time.unwrap_or_default(),
            row_pattern: pattern(&conditions.row_regexp)?,
            value_pattern: pattern(&conditions.value_regexp)?,
            predicates,
            combine: if conditions.any_column { Combine::Any } else { Combine::All },
            ..ScanSpec::default()
        })
    }

    fn time_range(&self, time: &Interval<String>) -> Result<TimeRange> {
        let limits = |start: &Option<Limit<String>>, end: &Option<Limit<String>>| {
            let mut range = TimeRange::default();
            if let Some(Limit { key, inclusive }) = start {
                range.start = self.timestamp(key)?.saturating_add(i64::from(!inclusive));
            }
            if let Some(Limit { key, inclusive }) = end {
                let end = self.timestamp(key)?;
                // Past the last timestamp there is none to leave out.
                range.end = if *inclusive { end.checked_add(1) } else { Some(end) };
            }
            Ok(range)
        };
        match time {
            Interval::Between { start, end } => limits(start, end),
            Interval::Equal(at) | Interval::Prefix(at) => {
                let limit = Some(Limit { key: at.clone(), inclusive: true });
                limits(&limit, &limit)
            }
        }
    }
}

/// The column in ids.
fn selector(schema: &TableSchema, column: &ColumnExpr) -> Result<ColumnSelector> {
    let family = schema.require_family(&column.family)?.id;
    let bytes = |text: &String| text.clone().into_bytes();
    let qualifier = match &column.qualifier {
        QualifierExpr::Any => QualifierFilter::Any,
        QualifierExpr::Exact(exact) => QualifierFilter::Exact(bytes(exact)),
        QualifierExpr::Prefix(prefix) => QualifierFilter::Prefix(bytes(prefix)),
        QualifierExpr::Regexp(text) => QualifierFilter::Matches(Pattern::new(text)?),
    };
    Ok(ColumnSelector { family, qualifier })
}

/// The ranges that the conditions name, in the order in which they are written; each is answered
/// by itself. None: the whole table.
pub(super) fn ranges(schema: &TableSchema, keys: &[KeyCondition]) -> Result<Option<Vec<KeyRange>>> {
    let mut all: Option<Vec<KeyRange>> = None;
    for condition in keys {
        let ranges = match condition {
            KeyCondition::Rows(rows) => {
                let key = |row: &String| Ok(CellKey::row(row.clone()));
                rows.iter().map(|row| range(row, key)).collect::<Result<Vec<_>>>()?
            }
            KeyCondition::Cells(cells) => {
                let key = |cell: &CellExpr| cell_key(schema, cell);
                cells.iter().map(|cell| range(cell, key)).collect::<Result<Vec<_>>>()?
            }
        };
        ranges.iter().try_for_each(check_order)?;
        all = Some(match all {
            None => ranges,
            Some(before) => both(&before, &ranges),
        });
    }
    Ok(all)
}

fn both(left: &[KeyRange], right: &[KeyRange]) -> Vec<KeyRange> {
    let pairs = left.iter().flat_map(|a| right.iter().map(|b| a.intersect(b)));
    pairs.filter(|range| !range.is_empty()).collect()
}

fn cell_key(schema: &TableSchema, cell: &CellExpr) -> Result<CellKey> {
    let (family, qualifier) = split_column(&cell.column);
    Ok(CellKey::cell(cell.row.clone(), schema.require_family(family)?.id, qualifier))
}

fn range<K>(interval: &Interval<K>, key: impl Fn(&K) -> Result<CellKey>) -> Result<KeyRange> {
    let bound = |limit: &Option<Limit<K>>| match limit {
        None => Ok(Bound::Unbounded),
        Some(Limit { key: at, inclusive: true }) => key(at).map(Bound::Included),
        Some(Limit { key: at, inclusive: false }) => key(at).map(Bound::Excluded),
    };
    match interval {
        Interval::Equal(at) => key(at).map(KeyRange::at),
        Interval::Prefix(prefix) => key(prefix).map(KeyRange::prefix),
        Interval::Between { start, end } => Ok(KeyRange { start: bound(start)?, end: bound(end)? }),
    }
}

fn check_order(range: &KeyRange) -> Result<()> {
    if !range.is_inverted() {
        return Ok(());
    }
    let name = |key: Option<&CellKey>| {
        key.map_or(String::new(), |key| String::from_utf8_lossy(&key.row).into_owned())
    };
    let (start, end) = (name(range.start_key()), name(range.end_key()));
    let text = format!("bad scan specification (start_row ({start}) > end_row ({end}))");
    Err(Error::invalid(text).with_sqlstate("22023").with_hint("swap the two limits"))
}
