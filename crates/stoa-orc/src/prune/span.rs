//! Texts between which those of matching rows are, so that row groups are found and not all judged.
//!
//! **Invariant:** a row whose text is outside the span does not match. A row with NULL may:
//! row groups with NULL are not left out by a span.
//! Not here: where the texts of row groups are (`row_index`), whose bounds may be compared so (`trust`).

use super::{Condition, Test, Trust};
use crate::metadata::FileMetadata;
use crate::predicate::{CompareOp, Literal};
use crate::stripe::StripeMetadata;

/// Bounds of the texts of a column, both inclusive; `None` is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span<'a> {
    column: u32,
    low: Option<&'a str>,
    high: Option<&'a str>,
}

impl Condition {
    /// Takes out of `groups` those that are quickly known not to match; the rest is to be judged.
    pub(crate) fn narrow(
        &self,
        file: &FileMetadata,
        metadata: &StripeMetadata,
        groups: &mut [bool],
    ) {
        let Some(Span { column, low, high }) = self.span() else { return };
        if low.is_none() && high.is_none() || !Trust::of(file).may_bisect(column) {
            return;
        }
        if let Some(index) = metadata.row_index(column) {
            index.leave_out_beyond(low.map(str::as_bytes), high.map(str::as_bytes), groups);
        }
    }

    fn span(&self) -> Option<Span<'_>> {
        match self {
            Self::And(parts) => {
                let mut spans = parts.iter().filter_map(Self::span);
                let first = spans.next()?;
                let same = spans.filter(|other| other.column == first.column);
                Some(same.fold(first, Span::both))
            }
            Self::Or(parts) => {
                let (mut hull, mut with_nulls) = (None, Vec::new());
                for part in parts {
                    match part {
                        Self::Constant(false) => {}
                        // True only in row groups with NULL.
                        Self::Test { column, test: Test::IsNull } => with_nulls.push(*column),
                        _ => {
                            let span = part.span()?;
                            let known = hull.get_or_insert(span);
                            if known.column != span.column {
                                return None;
                            }
                            *known = known.either(span);
                        }
                    }
                }
                hull.filter(|span: &Span| with_nulls.iter().all(|column| *column == span.column))
            }
            Self::Constant(_) => None,
            Self::Test { column, test } => test.span(*column),
        }
    }
}

impl Test {
    fn span(&self, column: u32) -> Option<Span<'_>> {
        let (low, high) = match self {
            Self::Compare(op, Literal::String(text)) => match op {
                CompareOp::Eq => (Some(text.as_str()), Some(text.as_str())),
                CompareOp::Lt | CompareOp::LtEq => (None, Some(text.as_str())),
                CompareOp::Gt | CompareOp::GtEq => (Some(text.as_str()), None),
                CompareOp::NotEq => return None,
            },
            Self::In(values) => {
                let mut texts = Vec::with_capacity(values.len());
                for value in values {
                    let Literal::String(text) = value else { return None };
                    texts.push(text.as_str());
                }
                (Some(*texts.iter().min()?), texts.into_iter().max())
            }
            Self::Compare(..) | Self::IsNull | Self::IsNotNull => return None,
        };
        Some(Span { column, low, high })
    }
}

impl Span<'_> {
    /// What is in both.
    fn both(self, other: Self) -> Self {
        let high = match (self.high, other.high) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        // No bound is the least that there is.
        Self { low: self.low.max(other.low), high, ..self }
    }

    /// What is in one of them, and what is between.
    fn either(self, other: Self) -> Self {
        let high = self.high.zip(other.high).map(|(a, b)| a.max(b));
        Self { low: self.low.min(other.low), high, ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMN: u32 = 1;

    fn test() -> impl Strategy<Value = Condition> {
        let text = "[a-d]{0,2}";
        let value = text.prop_map(Literal::String);
        let op = prop::sample::select(vec![
            CompareOp::Eq,
            CompareOp::NotEq,
            CompareOp::Lt,
            CompareOp::LtEq,
            CompareOp::Gt,
            CompareOp::GtEq,
        ]);
        let of = |test| Condition::Test { column: COLUMN, test };
        prop_oneof![
            4 => (op, value.clone()).prop_map(move |(op, value)| of(Test::Compare(op, value))),
            2 => prop::collection::vec(value, 0..3).prop_map(move |values| of(Test::In(values))),
            1 => Just(of(Test::IsNull)),
            1 => Just(of(Test::IsNotNull)),
            1 => any::<bool>().prop_map(Condition::Constant),
        ]
    }

    fn condition() -> impl Strategy<Value = Condition> {
        test().prop_recursive(3, 12, 3, |inner| {
            let parts = prop::collection::vec(inner, 0..4);
            prop_oneof![parts.clone().prop_map(Condition::And), parts.prop_map(Condition::Or)]
        })
    }

    /// Whether a row with this text, which is not NULL, matches: as a reader of rows would say.
    fn matches(condition: &Condition, text: &str) -> bool {
        let equals = |value: &Literal| *value == Literal::String(text.to_owned());
        match condition {
            Condition::And(parts) => parts.iter().all(|part| matches(part, text)),
            Condition::Or(parts) => parts.iter().any(|part| matches(part, text)),
            Condition::Constant(value) => *value,
            Condition::Test { test, .. } => match test {
                Test::IsNull => false,
                Test::IsNotNull => true,
                Test::In(values) => values.iter().any(equals),
                Test::Compare(op, Literal::String(value)) => {
                    let order = text.cmp(value);
                    match op {
                        CompareOp::Eq => order.is_eq(),
                        CompareOp::NotEq => order.is_ne(),
                        CompareOp::Lt => order.is_lt(),
                        CompareOp::LtEq => order.is_le(),
                        CompareOp::Gt => order.is_gt(),
                        CompareOp::GtEq => order.is_ge(),
                    }
                }
                Test::Compare(..) => true,
            },
        }
    }

    proptest! {
        #[test]
        fn texts_that_match_are_in_the_span(condition in condition(), text in "[a-e]{0,3}") {
            if let Some(Span { low, high, .. }) = condition.span() {
                let is_inside = low.is_none_or(|low| low <= text.as_str())
                    && high.is_none_or(|high| text.as_str() <= high);
                prop_assert!(is_inside || !matches(&condition, &text), "{condition:?} {text:?}");
            }
        }
    }

    #[test]
    fn a_key_or_null_is_a_span() {
        let of = |test| Condition::Test { column: COLUMN, test };
        let equals =
            |text: &str| of(Test::Compare(CompareOp::Eq, Literal::String(text.to_owned())));
        let key = Condition::Or(vec![equals("k"), of(Test::IsNull)]);
        let other = Condition::Test { column: 2, test: Test::In(vec![Literal::Int(1)]) };
        let both = Condition::And(vec![other, key]);
        assert_eq!(both.span(), Some(Span { column: COLUMN, low: Some("k"), high: Some("k") }));
        let two = Condition::Or(vec![equals("k"), equals("c")]);
        assert_eq!(two.span(), Some(Span { column: COLUMN, low: Some("c"), high: Some("k") }));
    }
}
