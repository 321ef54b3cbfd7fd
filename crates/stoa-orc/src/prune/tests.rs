use super::compare::{Bound, compare};
use super::*;

fn int(min: i64, max: i64) -> ValueStatistics {
    ValueStatistics::Integer { min: Some(min), max: Some(max), sum: None }
}

fn may(op: CompareOp, value: i64, bounds: &ValueStatistics) -> bool {
    may_compare(op, &Literal::Int(value), Some(TypeKind::Long), bounds)
}

#[test]
fn comparisons_with_bounds() {
    use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let bounds = int(10, 20);
    for (op, value, expected) in [
        (Eq, 9, false),
        (Eq, 10, true),
        (Eq, 21, false),
        (Lt, 10, false),
        (Lt, 11, true),
        (LtEq, 10, true),
        (LtEq, 9, false),
        (Gt, 20, false),
        (Gt, 19, true),
        (GtEq, 20, true),
        (GtEq, 21, false),
        (NotEq, 10, true),
    ] {
        assert_eq!(may(op, value, &bounds), expected, "{op:?} {value}");
    }
    assert!(!may(NotEq, 5, &int(5, 5)));
}

#[test]
fn half_known_bounds_and_other_types_do_not_prune() {
    let half = ValueStatistics::Integer { min: Some(10), max: None, sum: None };
    assert!(may(CompareOp::Gt, 1_000, &half));
    assert!(!may(CompareOp::Lt, 5, &half));
    assert!(may(CompareOp::Eq, 5, &ValueStatistics::None));
    let text = Literal::String("5".to_owned());
    assert!(may_compare(CompareOp::Eq, &text, Some(TypeKind::Long), &int(10, 20)));
}

#[test]
fn floats_are_judged_with_care() {
    let bounds = |sum| ValueStatistics::Double { min: Some(0.0), max: Some(5.0), sum };
    let may = |op, value, sum| {
        may_compare(op, &Literal::Float(value), Some(TypeKind::Double), &bounds(sum))
    };
    assert!(!may(CompareOp::Gt, 6.0, Some(7.0)));
    assert!(may(CompareOp::Gt, 6.0, Some(f64::NAN)));
    assert!(may(CompareOp::Gt, 6.0, None));
    // −0.0 may be there, and some engines order it before 0.0.
    assert!(may(CompareOp::Lt, 0.0, Some(7.0)));
    assert!(may(CompareOp::Eq, f64::NAN, Some(7.0)));
}

#[test]
fn numbers_of_different_types_compare_exactly() {
    use std::cmp::Ordering::{Equal, Less};
    assert_eq!(compare(&Bound::Int(5), &Literal::Decimal(50, 1)), Some(Equal));
    assert_eq!(compare(&Bound::Decimal(4999, 3), &Literal::Int(5)), Some(Less));
    assert_eq!(compare(&Bound::Int(i64::MAX), &Literal::Float(9.3e18)), None);
    assert_eq!(compare(&Bound::Decimal(i128::MAX, 0), &Literal::Decimal(1, 5)), None);
    assert_eq!(compare(&Bound::Date(1), &Literal::TimestampMicros(86_400_000_000)), Some(Equal));
}

#[test]
fn booleans_are_judged_by_their_count() {
    let statistics = |values, true_count| ColumnStatistics {
        values: Some(values),
        has_null: false,
        bytes_on_disk: None,
        bounds: ValueStatistics::Boolean { true_count: Some(true_count) },
    };
    assert!(!may_be_boolean(CompareOp::Eq, true, &statistics(5, 0)));
    assert!(may_be_boolean(CompareOp::Eq, false, &statistics(5, 0)));
    assert!(!may_be_boolean(CompareOp::Eq, false, &statistics(5, 5)));
    assert!(!may_be_boolean(CompareOp::NotEq, true, &statistics(5, 5)));
}
