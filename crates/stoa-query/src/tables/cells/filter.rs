//! Filters on row keys and times as ranges that a scan of cells can keep to.
//!
//! **Invariant:** every cell for which the filter may be true is in the ranges; there may be more.

use std::ops::Bound;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{BinaryExpr, InList, Like};
use datafusion::logical_expr::{Expr, Operator};
use stoa_hql::scan::{CellKey, KeyRange};

/// An interval of row keys.
type Interval = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Intervals in ascending order, apart from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rows(Vec<Interval>);

impl Rows {
    /// The rows that all of `filters` leave; column `name` holds the keys.
    pub(super) fn of(filters: &[Expr], name: &str) -> Self {
        let ranges = filters.iter().filter_map(|filter| of_expr(filter, name));
        ranges.fold(Self::all(), |all, one| all.and(&one))
    }

    fn all() -> Self {
        Self(vec![(Bound::Unbounded, Bound::Unbounded)])
    }

    fn one(start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Self {
        Self(vec![(start, end)])
    }

    fn at(key: Vec<u8>) -> Self {
        Self::one(Bound::Included(key.clone()), Bound::Included(key))
    }

    fn prefix(prefix: &[u8]) -> Self {
        let range = KeyRange::prefix(CellKey::row(prefix));
        let (start, end) = range.row_bounds();
        Self::one(start.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec))
    }

    fn and(&self, other: &Self) -> Self {
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| (a, b)));
        let both = pairs.map(|(a, b)| (later(&a.0, &b.0), earlier(&a.1, &b.1)));
        Self(both.filter(|range| !is_empty(range)).collect()).joined()
    }

    fn or(self, other: Self) -> Self {
        Self([self.0, other.0].concat()).joined()
    }

    /// In order, with what touches or overlaps made one.
    fn joined(mut self) -> Self {
        self.0.sort_by(|a, b| start_key(&a.0).cmp(&start_key(&b.0)));
        let mut joined: Vec<Interval> = Vec::with_capacity(self.0.len());
        for next in self.0 {
            match joined.last_mut() {
                Some(last) if !ends_before(&last.1, &next.0) => {
                    last.1 = later_end(&last.1, &next.1)
                }
                _ => joined.push(next),
            }
        }
        Self(joined)
    }

    /// For a scan; none where there is no row to read.
    pub(super) fn into_ranges(self) -> Option<Vec<KeyRange>> {
        match self.0.as_slice() {
            [] => None,
            [(Bound::Unbounded, Bound::Unbounded)] => Some(Vec::new()),
            _ => Some(
                self.0
                    .into_iter()
                    .map(|(start, end)| KeyRange {
                        start: start.map(CellKey::row),
                        end: end.map(CellKey::row),
                    })
                    .collect(),
            ),
        }
    }
}

/// The rows for which `expr` may be true; `None` if it says nothing of them.
fn of_expr(expr: &Expr, name: &str) -> Option<Rows> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (of_expr(left, name), of_expr(right, name)) {
                (Some(left), Some(right)) => Some(left.and(&right)),
                (one, other) => one.or(other),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(of_expr(left, name)?.or(of_expr(right, name)?))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match (is_column(left, name), is_column(right, name)) {
                (true, false) => compare(*op, bytes_of(right)?),
                (false, true) => compare(op.swap()?, bytes_of(left)?),
                _ => None,
            }
        }
        Expr::Between(between) if !between.negated && is_column(&between.expr, name) => {
            let (low, high) = (bytes_of(&between.low)?, bytes_of(&between.high)?);
            Some(Rows::all().and(&Rows::one(Bound::Included(low), Bound::Included(high))))
        }
        Expr::InList(InList { expr, list, negated: false }) if is_column(expr, name) => {
            let keys = list.iter().map(bytes_of).collect::<Option<Vec<_>>>()?;
            Some(keys.into_iter().map(Rows::at).fold(Rows(Vec::new()), Rows::or))
        }
        Expr::Like(like) => of_like(like, name),
        Expr::Alias(alias) => of_expr(&alias.expr, name),
        _ => None,
    }
}

fn compare(op: Operator, key: Vec<u8>) -> Option<Rows> {
    Some(match op {
        Operator::Eq => Rows::at(key),
        Operator::Lt => Rows::one(Bound::Unbounded, Bound::Excluded(key)),
        Operator::LtEq => Rows::one(Bound::Unbounded, Bound::Included(key)),
        Operator::Gt => Rows::one(Bound::Excluded(key), Bound::Unbounded),
        Operator::GtEq => Rows::one(Bound::Included(key), Bound::Unbounded),
        _ => return None,
    })
}

/// What stands before the first wildcard.
fn of_like(like: &Like, name: &str) -> Option<Rows> {
    let plain = !like.negated && !like.case_insensitive && like.escape_char.is_none();
    if !plain || !is_column(&like.expr, name) {
        return None;
    }
    let pattern = bytes_of(&like.pattern)?;
    let prefix: Vec<u8> =
        pattern.into_iter().take_while(|byte| !matches!(byte, b'%' | b'_' | b'\\')).collect();
    Some(Rows::prefix(&prefix))
}

pub(super) fn is_column(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Column(column) if column.name == name)
}

fn bytes_of(expr: &Expr) -> Option<Vec<u8>> {
    literal_text(expr).map(|text| text.as_bytes().to_vec())
}

/// The text of a literal.
pub(super) fn literal_text(expr: &Expr) -> Option<&str> {
    let Expr::Literal(value, _) = expr else { return None };
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.as_deref()
        }
        _ => None,
    }
}

/// Orders starts: unbounded first, included before excluded.
fn start_key(bound: &Bound<Vec<u8>>) -> (bool, &[u8], bool) {
    match bound {
        Bound::Unbounded => (false, &[], false),
        Bound::Included(key) => (true, key, false),
        Bound::Excluded(key) => (true, key, true),
    }
}

/// Orders ends: excluded before included, unbounded last.
fn end_key(bound: &Bound<Vec<u8>>) -> (bool, &[u8], bool) {
    match bound {
        Bound::Unbounded => (true, &[], false),
        Bound::Included(key) => (false, key, true),
        Bound::Excluded(key) => (false, key, false),
    }
}

fn later(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    if start_key(a) >= start_key(b) { a.clone() } else { b.clone() }
}

fn earlier(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    if end_key(a) <= end_key(b) { a.clone() } else { b.clone() }
}

fn later_end(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    if end_key(a) >= end_key(b) { a.clone() } else { b.clone() }
}

fn is_empty((start, end): &Interval) -> bool {
    match (start, end) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
        | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
    }
}

/// Whether a range that ends here has nothing in common with one that starts there.
fn ends_before(end: &Bound<Vec<u8>>, start: &Bound<Vec<u8>>) -> bool {
    is_empty(&(start.clone(), end.clone()))
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    fn rows(filters: &[Expr]) -> Vec<Interval> {
        Rows::of(filters, "row").0
    }

    fn included(key: &str) -> Bound<Vec<u8>> {
        Bound::Included(key.into())
    }

    fn excluded(key: &str) -> Bound<Vec<u8>> {
        Bound::Excluded(key.into())
    }

    #[test]
    fn comparisons_are_intervals() {
        let row = || col("row");
        assert_eq!(rows(&[row().eq(lit("a"))]), [(included("a"), included("a"))]);
        assert_eq!(rows(&[lit("a").lt(row())]), [(excluded("a"), Bound::Unbounded)]);
        let both = rows(&[row().gt_eq(lit("b")), row().lt(lit("d"))]);
        assert_eq!(both, [(included("b"), excluded("d"))]);
        assert_eq!(rows(&[row().like(lit("ab%"))]), [(included("ab"), excluded("ac"))]);
        assert_eq!(rows(&[row().gt(lit("b")), row().lt(lit("a"))]), []);
        assert_eq!(rows(&[col("x").eq(lit("a"))]), [(Bound::Unbounded, Bound::Unbounded)]);
    }

    #[test]
    fn lists_are_sorted_and_joined() {
        let list = col("row").in_list(vec![lit("c"), lit("a"), lit("c")], false);
        let expected = [(included("a"), included("a")), (included("c"), included("c"))];
        assert_eq!(rows(std::slice::from_ref(&list)), expected);
        let wide = col("row").between(lit("b"), lit("d")).or(list.clone());
        assert_eq!(rows(&[wide]), [(included("a"), included("a")), (included("b"), included("d"))]);
        assert_eq!(rows(&[list.or(col("x").eq(lit("a")))]), [(Bound::Unbounded, Bound::Unbounded)]);
    }
}
