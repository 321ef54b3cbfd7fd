//! Predicates on columns, judged against partition values (Iceberg: inclusive projection).
//!
//! A partition field holds T(x) for every row's x, and T either keeps order (day, truncate, …) or
//! only equality (bucket). So `x < v` can hold only where T(x) ≤ T(v); where x is counted in whole
//! steps, T(x) ≤ T(v - 1), which is what leaves out the day itself for `x < midnight`.

use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};

use super::verdict::FieldBounds;
use crate::Transform;
use crate::transform::transform_literal;

/// One partition field and what is known about its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionBounds<'a> {
    pub(crate) source_id: i32,
    /// `None` for a transform that is not known.
    pub(crate) transform: Option<Transform>,
    pub(crate) bounds: FieldBounds<'a>,
}

/// Whether rows in these partitions may match `predicate`.
pub(crate) fn may_match(predicate: &Predicate, fields: &[PartitionBounds<'_>]) -> bool {
    match predicate {
        Predicate::And(parts) => parts.iter().all(|part| may_match(part, fields)),
        Predicate::Or(parts) => parts.iter().any(|part| may_match(part, fields)),
        Predicate::Compare { column, op, value } => {
            every(fields, *column, |field, transform| field.may_compare(transform, *op, value))
        }
        Predicate::In { column, values } => {
            !values.is_empty()
                && every(fields, *column, |field, transform| {
                    values.iter().any(|v| field.may_compare(transform, CompareOp::Eq, v))
                })
        }
        Predicate::IsNull(column) => {
            every(fields, *column, |field, _| field.bounds.has_null != Some(false))
        }
        Predicate::IsNotNull(column) => {
            every(fields, *column, |field, _| field.bounds.has_value != Some(false))
        }
    }
}

/// Whether every field of `column` that says anything allows a match. Void says nothing.
fn every(
    fields: &[PartitionBounds<'_>],
    column: ColumnRef,
    allows: impl Fn(&PartitionBounds<'_>, Transform) -> bool,
) -> bool {
    fields.iter().filter(|field| ColumnRef::Field(field.source_id) == column).all(|field| {
        match field.transform {
            None | Some(Transform::Void) => true,
            Some(transform) => allows(field, transform),
        }
    })
}

impl PartitionBounds<'_> {
    fn may_compare(&self, transform: Transform, op: CompareOp, value: &Literal) -> bool {
        if self.bounds.has_value == Some(false) {
            return false;
        }
        if transform == Transform::Identity {
            return self.bounds.may_compare(op, value);
        }
        let (op, value) = match op {
            CompareOp::Eq => (CompareOp::Eq, Some(value.clone())),
            // T(x) = T(v) does not make x equal to v.
            CompareOp::NotEq => return true,
            _ if !transform.keeps_order() => return true,
            CompareOp::LtEq => (CompareOp::LtEq, Some(value.clone())),
            CompareOp::GtEq => (CompareOp::GtEq, Some(value.clone())),
            CompareOp::Lt => (CompareOp::LtEq, neighbour(value, -1)),
            CompareOp::Gt => (CompareOp::GtEq, neighbour(value, 1)),
        };
        match value.and_then(|value| transform_literal(transform, &value)) {
            Some(result) => self.bounds.may_compare(op, &result),
            None => true,
        }
    }
}

/// The value one step away, where values are counted in steps; else the value itself, which is
/// the wider choice. `None` at the end of the range.
fn neighbour(value: &Literal, step: i64) -> Option<Literal> {
    match value {
        Literal::Int(value) => value.checked_add(step).map(Literal::Int),
        Literal::Date(days) => days.checked_add(i32::try_from(step).ok()?).map(Literal::Date),
        Literal::TimestampMicros(micros) => micros.checked_add(step).map(Literal::TimestampMicros),
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        transform: Transform,
        partition: Literal,
        op: CompareOp,
        value: Literal,
        expected: bool,
    ) {
        let bounds = FieldBounds {
            lower: Some(&partition),
            upper: Some(&partition),
            has_null: Some(false),
            has_value: Some(true),
            has_nan: Some(false),
        };
        let field = PartitionBounds { source_id: 1, transform: Some(transform), bounds };
        let predicate =
            Predicate::Compare { column: ColumnRef::Field(1), op, value: value.clone() };
        let verdict = may_match(&predicate, &[field]);
        assert_eq!(verdict, expected, "{transform} {partition:?} {op:?} {value:?}");
    }

    #[test]
    fn days_of_timestamps() {
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        const DAY: i64 = 86_400_000_000;
        let ts = Literal::TimestampMicros;
        let ten = || Literal::Date(10);
        check(Transform::Day, ten(), Eq, ts(10 * DAY + 5), true);
        check(Transform::Day, ten(), Eq, ts(11 * DAY), false);
        check(Transform::Day, ten(), NotEq, ts(10 * DAY), true);
        check(Transform::Day, ten(), Lt, ts(10 * DAY), false);
        check(Transform::Day, ten(), Lt, ts(10 * DAY + 1), true);
        check(Transform::Day, ten(), LtEq, ts(10 * DAY), true);
        check(Transform::Day, ten(), LtEq, ts(10 * DAY - 1), false);
        check(Transform::Day, ten(), Gt, ts(11 * DAY - 1), false);
        check(Transform::Day, ten(), Gt, ts(11 * DAY - 2), true);
        check(Transform::Day, ten(), GtEq, ts(11 * DAY - 1), true);
        check(Transform::Day, ten(), GtEq, ts(11 * DAY), false);
    }

    #[test]
    fn buckets_prune_only_equality() {
        use CompareOp::{Eq, Lt};
        let own = transform_literal(Transform::Bucket(16), &Literal::Int(34)).unwrap();
        let Literal::Int(bucket) = own else { panic!("{own:?}") };
        let other = Literal::Int((bucket + 1) % 16);
        check(Transform::Bucket(16), own, Eq, Literal::Int(34), true);
        check(Transform::Bucket(16), other.clone(), Eq, Literal::Int(34), false);
        check(Transform::Bucket(16), other, Lt, Literal::Int(34), true);
    }

    #[test]
    fn prefixes_of_text() {
        use CompareOp::{Eq, Gt, Lt};
        let text = |text: &str| Literal::String(text.to_owned());
        check(Transform::Truncate(2), text("ab"), Eq, text("abc"), true);
        check(Transform::Truncate(2), text("ab"), Eq, text("bbc"), false);
        check(Transform::Truncate(2), text("ab"), Lt, text("aa"), false);
        check(Transform::Truncate(2), text("ab"), Gt, text("ac"), false);
        check(Transform::Truncate(2), text("ab"), Gt, text("abz"), true);
    }

    /// Every pair of values near each other, under every transform and operator: where `x op v`
    /// holds, the partition of x must survive.
    #[test]
    fn no_partition_of_a_matching_value_is_left_out() {
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        const HOUR: i64 = 3_600_000_000;
        let moments = (-30..30).flat_map(|hour| [-1, 0, 1].map(|step| hour * HOUR + step));
        let domains: [Vec<Literal>; 5] = [
            (-70..70).map(Literal::Date).collect(),
            moments.map(Literal::TimestampMicros).collect(),
            (-20..20).map(Literal::Int).collect(),
            (-20..20).map(|v| Literal::Decimal(v, 2)).collect(),
            ["", "a", "aa", "aab", "ab", "b", "ba"].map(|t| Literal::String(t.into())).to_vec(),
        ];
        let transforms = [
            Transform::Identity,
            Transform::Year,
            Transform::Month,
            Transform::Day,
            Transform::Hour,
            Transform::Bucket(3),
            Transform::Truncate(1),
            Transform::Truncate(7),
        ];
        let mut judged = 0;
        for (domain, transform) in domains.iter().flat_map(|d| transforms.map(|t| (d, t))) {
            for x in domain {
                let Some(partition) = transform_literal(transform, x) else { continue };
                for (v, op) in
                    domain.iter().flat_map(|v| [Eq, NotEq, Lt, LtEq, Gt, GtEq].map(|o| (v, o)))
                {
                    let order = crate::value::compare(x, v).unwrap();
                    let holds = match op {
                        Eq => order.is_eq(),
                        NotEq => order.is_ne(),
                        Lt => order.is_lt(),
                        LtEq => order.is_le(),
                        Gt => order.is_gt(),
                        GtEq => order.is_ge(),
                    };
                    if holds {
                        check(transform, partition.clone(), op, v.clone(), true);
                        judged += 1;
                    }
                }
            }
        }
        assert!(judged > 100_000, "{judged}");
    }
}
