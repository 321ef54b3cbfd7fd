//! How well the files of a table partition are sorted: how many of them hold the same keys.
//!
//! In: the files' bounds, the columns that the table is sorted by. Out: a depth per file, that is the
//! most files, itself among them, that a reader of one key within its bounds must look into; 1 is best.
//!
//! ```text
//! account  1 ├───┤               depth 1: it only touches the next
//!                5├──────┤        depth 2
//!                     7├──────┤   depth 2
//! ```
//!
//! Files that only touch do not overlap: the rows of one key may lie in two files of a sorted run.
//! Files that hold a single value of a column are compared by the next one. **Invariant:** depths
//! depend on the bounds only, not on the order of the files. Not here: reading anything.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use stoa_orc::Literal;

/// The bounds of a file: one pair per sort column, the first one first; `None` where there is none.
pub(crate) type Bounds<'a> = Vec<Option<(&'a Literal, &'a Literal)>>;

/// A file's place in the list that was given, and its bounds as ranks among all bounds.
#[derive(Clone, Copy)]
struct Span {
    file: usize,
    from: usize,
    to: usize,
}

/// The depth of each file; `None` where a file has no bounds of the first column, or where the bounds
/// of that column cannot be compared.
pub(crate) fn depths(files: &[Bounds]) -> Vec<Option<usize>> {
    let all: Vec<usize> = (0..files.len()).collect();
    depths_by(files, &all, 0)
}

/// The depths of the files `group` among themselves, by column number `column` and those after it.
fn depths_by(files: &[Bounds], group: &[usize], column: usize) -> Vec<Option<usize>> {
    let mut found = vec![None; group.len()];
    let Some((spans, ranks)) = spans(files, group, column) else { return found };
    let mut cover = cover(&spans, ranks);
    for (rank, equals) in points(&spans) {
        let inner = depths_of_equals(files, group, &equals, column + 1);
        let outside = cover[2 * rank];
        cover[2 * rank] += inner.iter().copied().max().unwrap_or(0);
        for (place, depth) in equals.into_iter().zip(inner) {
            found[place] = Some(outside + depth);
        }
    }
    for span in spans.iter().filter(|span| span.from < span.to) {
        found[span.file] = cover[2 * span.from + 1..2 * span.to].iter().copied().max();
    }
    found
}

/// How many spans lie over each place. Even places are values, odd ones the room between them; a span
/// lies between its bounds, not on them.
fn cover(spans: &[Span], ranks: usize) -> Vec<usize> {
    let mut change = vec![0isize; 2 * ranks];
    for span in spans.iter().filter(|span| span.from < span.to) {
        change[2 * span.from + 1] += 1;
        change[2 * span.to] -= 1;
    }
    let mut open = 0;
    let sum = |change: isize| {
        open += change;
        open.unsigned_abs()
    };
    change.into_iter().map(sum).collect()
}

/// Files that hold one and the same value of a column: by the next column; where none is left to tell
/// them apart, they overlap.
fn depths_of_equals(
    files: &[Bounds],
    group: &[usize],
    equals: &[usize],
    column: usize,
) -> Vec<usize> {
    let members: Vec<usize> = equals.iter().map(|place| group[*place]).collect();
    let depths = depths_by(files, &members, column);
    depths.into_iter().map(|depth| depth.unwrap_or(members.len())).collect()
}

/// Files with a single value, by its rank.
fn points(spans: &[Span]) -> BTreeMap<usize, Vec<usize>> {
    let mut points: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.from == span.to) {
        points.entry(span.from).or_default().push(span.file);
    }
    points
}

/// The bounds of a column as ranks, and how many ranks there are; `None` where they have no order.
fn spans(files: &[Bounds], group: &[usize], column: usize) -> Option<(Vec<Span>, usize)> {
    let of = |(place, file): (usize, &usize)| {
        let (from, to) = (*files[*file].get(column)?)?;
        Some((place, from, to))
    };
    let bounds: Vec<(usize, &Literal, &Literal)> =
        group.iter().enumerate().filter_map(of).collect();
    let mut values: Vec<&Literal> = bounds.iter().flat_map(|(_, from, to)| [*from, *to]).collect();
    let first = *values.first()?;
    if values.iter().any(|value| compare(first, value).is_none()) {
        return None;
    }
    let order = |a: &Literal, b: &Literal| compare(a, b).unwrap_or(Ordering::Equal);
    values.sort_by(|a, b| order(a, b));
    values.dedup_by(|a, b| order(a, b) == Ordering::Equal);
    let rank = |value: &Literal| values.binary_search_by(|known| order(known, value)).ok();
    let span = |(file, from, to): &(usize, &Literal, &Literal)| {
        let (from, to) = (rank(from)?, rank(to)?);
        (from <= to).then_some(Span { file: *file, from, to })
    };
    Some((bounds.iter().filter_map(span).collect(), values.len()))
}

/// Compares bounds of one column; `None` where its type has changed meanwhile.
pub(crate) fn compare(a: &Literal, b: &Literal) -> Option<Ordering> {
    match (a, b) {
        (Literal::Boolean(a), Literal::Boolean(b)) => Some(a.cmp(b)),
        (Literal::Int(a), Literal::Int(b)) => Some(a.cmp(b)),
        (Literal::Float(a), Literal::Float(b)) => Some(a.total_cmp(b)),
        (Literal::Decimal(a, s), Literal::Decimal(b, t)) if s == t => Some(a.cmp(b)),
        (Literal::String(a), Literal::String(b)) => Some(a.cmp(b)),
        (Literal::Binary(a), Literal::Binary(b)) => Some(a.cmp(b)),
        (Literal::Date(a), Literal::Date(b)) => Some(a.cmp(b)),
        (Literal::TimestampMicros(a), Literal::TimestampMicros(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each file as `(from, to)` per column.
    fn check(files: &[&[(i64, i64)]], expected: &[usize]) {
        let literals: Vec<Vec<(Literal, Literal)>> = files
            .iter()
            .map(|file| file.iter().map(|(a, b)| (Literal::Int(*a), Literal::Int(*b))).collect())
            .collect();
        let bounds: Vec<Bounds> =
            literals.iter().map(|file| file.iter().map(|(a, b)| Some((a, b))).collect()).collect();
        let expected: Vec<Option<usize>> = expected.iter().copied().map(Some).collect();
        assert_eq!(depths(&bounds), expected, "{files:?}");
        let backwards: Vec<Bounds> = bounds.into_iter().rev().collect();
        let mut turned = depths(&backwards);
        turned.reverse();
        assert_eq!(turned, expected, "backwards: {files:?}");
    }

    #[test]
    fn a_sorted_run_has_depth_one() {
        check(&[&[(1, 4)], &[(4, 7)], &[(8, 9)]], &[1, 1, 1]);
        check(&[&[(7, 7)]], &[1]);
    }

    #[test]
    fn depth_is_that_of_the_deepest_place() {
        check(&[&[(1, 9)], &[(2, 3)], &[(5, 8)], &[(6, 7)]], &[3, 2, 3, 3]);
        check(&[&[(1, 9)], &[(5, 5)], &[(9, 12)]], &[2, 2, 1]);
        check(&[&[(1, 5)], &[(1, 5)], &[(5, 6)]], &[2, 2, 1]);
    }

    #[test]
    fn files_of_one_value_are_told_apart_by_the_next_column() {
        // A large account fills whole files of a run.
        check(&[&[(3, 5), (1, 9)], &[(5, 5), (1, 4)], &[(5, 5), (4, 9)]], &[1, 1, 1]);
        check(&[&[(5, 5), (1, 4)], &[(5, 5), (2, 9)], &[(4, 6), (1, 9)]], &[3, 3, 3]);
        check(&[&[(5, 5)], &[(5, 5)]], &[2, 2]);
    }

    #[test]
    fn without_bounds_or_an_order_nothing_is_said() {
        let (number, text) = (Literal::Int(1), Literal::String("a".into()));
        assert_eq!(depths(&[vec![None], vec![Some((&number, &number))]]), [None, Some(1)]);
        assert_eq!(
            depths(&[vec![Some((&number, &number))], vec![Some((&text, &text))]]),
            [None, None]
        );
        assert_eq!(depths(&[vec![]]), [None]);
    }
}
