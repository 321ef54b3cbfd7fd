//! What a scan may leave out, as a predicate over the columns of the table.
//!
//! **Invariant:** a cell that the scan needs matches: where bounds are no text, they are left away.

use std::collections::BTreeSet;
use std::ops::Bound;

use stoa_error::Result;
use stoa_hql::CellKind;
use stoa_hql::batch::{FAMILY, KIND, ROW, TIMESTAMP};
use stoa_hql::scan::{KeyRange, Pushdown};
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};

use crate::layout::Layout;

/// The predicate that every cell meets which counts for the answer.
pub(super) fn predicate(layout: &Layout, pushdown: &Pushdown) -> Result<Predicate> {
    let column = |name: &str| layout.id(name).map(ColumnRef::Field);
    let mut parts = Vec::new();
    if !pushdown.rows.is_empty() {
        let row = column(ROW)?;
        let ranges = pushdown.rows.iter().map(|range| in_range(row, range));
        // Row keys that are no text are not judged.
        parts.push(Predicate::Or(ranges.chain([Predicate::IsNull(row)]).collect()));
    }
    if let Some(families) = &pushdown.families {
        parts.push(in_families(column(FAMILY)?, families));
    }
    let timestamp = column(TIMESTAMP)?;
    if pushdown.oldest > i64::MIN {
        parts.push(compare(timestamp, CompareOp::GtEq, Literal::Int(pushdown.oldest)));
    }
    if let Some(end) = pushdown.values_before {
        let insert = Literal::Int(i64::from(CellKind::INSERT_CODE));
        let is_marker = compare(column(KIND)?, CompareOp::NotEq, insert);
        let before = compare(timestamp, CompareOp::Lt, Literal::Int(end));
        parts.push(Predicate::Or(vec![before, is_marker]));
    }
    Ok(Predicate::And(parts))
}

/// Whether single rows are asked for, so that little is read of each file.
pub(super) fn picks_rows(pushdown: &Pushdown) -> bool {
    let single = |range: &KeyRange| matches!(range.row_bounds(), (Bound::Included(a), Bound::Included(b)) if a == b);
    !pushdown.rows.is_empty() && pushdown.rows.iter().all(single)
}

fn in_range(row: ColumnRef, range: &KeyRange) -> Predicate {
    let (start, end) = range.row_bounds();
    let text =
        |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(|s| Literal::String(s.to_owned()));
    if let (Bound::Included(a), Bound::Included(b)) = (start, end)
        && a == b
    {
        // No text is equal to what is no text.
        return match text(a) {
            Some(row_key) => compare(row, CompareOp::Eq, row_key),
            None => Predicate::Or(Vec::new()),
        };
    }
    let bound = |op: CompareOp, bytes: &[u8]| text(bytes).map(|row_key| compare(row, op, row_key));
    let start = match start {
        Bound::Unbounded => None,
        Bound::Included(bytes) => bound(CompareOp::GtEq, bytes),
        Bound::Excluded(bytes) => bound(CompareOp::Gt, bytes),
    };
    let end = match end {
        Bound::Unbounded => None,
        Bound::Included(bytes) => bound(CompareOp::LtEq, bytes),
        Bound::Excluded(bytes) => bound(CompareOp::Lt, bytes),
    };
    Predicate::And(start.into_iter().chain(end).collect())
}

fn in_families(column: ColumnRef, families: &BTreeSet<u8>) -> Predicate {
    let values = families.iter().map(|id| Literal::Int(i64::from(*id))).collect();
    Predicate::In { column, values }
}

fn compare(column: ColumnRef, op: CompareOp, value: Literal) -> Predicate {
    Predicate::Compare { column, op, value }
}
