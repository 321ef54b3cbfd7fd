//! Conditions, judged against bounds and against values.

use crate::report::Test;

/// What is known of the values of one column in some rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bounds<'a> {
    /// Nothing.
    Unknown,
    /// Numbers from the first to the second, both inclusive.
    Numbers(i128, i128),
    /// Texts from the first to the second, both inclusive, as bytes.
    Texts(&'a [u8], &'a [u8]),
    /// There is no value: all are NULL.
    NoValue,
}

/// An end of the values that may meet a test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End<'a> {
    Number(i128),
    Text(&'a [u8]),
}

impl Test {
    /// No value below the first or above the second meets this; `None` where there is no such end.
    pub(crate) fn ends(&self) -> (Option<End<'_>>, Option<End<'_>>) {
        fn text(text: &str) -> End<'_> {
            End::Text(text.as_bytes())
        }
        match self {
            Self::Between(low, high) => (Some(End::Number(*low)), Some(End::Number(*high))),
            Self::OneOf(values) => {
                let end = |value: Option<&i128>| value.copied().map(End::Number);
                (end(values.first()), end(values.last()))
            }
            Self::TextBetween { low, high } => {
                (low.as_ref().map(|(low, _)| text(low)), high.as_ref().map(|(high, _)| text(high)))
            }
            Self::TextOneOf(values) => {
                (values.first().map(|low| text(low)), values.last().map(|high| text(high)))
            }
            Self::NotEqual(_)
            | Self::NoneOf(_)
            | Self::TextNotEqual(_)
            | Self::TextNoneOf(_)
            | Self::IsNull
            | Self::IsNotNull => (None, None),
        }
    }

    /// Whether rows with values in `bounds`, and NULLs where `has_null`, may meet this.
    pub(crate) fn may_match(&self, bounds: Bounds<'_>, has_null: bool) -> bool {
        match (self, bounds) {
            (Self::IsNull, _) => has_null,
            (_, Bounds::NoValue) => false,
            (_, Bounds::Unknown) | (Self::IsNotNull, _) => true,
            (Self::Between(low, high), Bounds::Numbers(least, greatest)) => {
                *low <= greatest && least <= *high
            }
            (Self::OneOf(values), Bounds::Numbers(least, greatest)) => {
                let first = values.partition_point(|value| *value < least);
                values.get(first).is_some_and(|value| *value <= greatest)
            }
            (Self::NotEqual(value), Bounds::Numbers(least, greatest)) => {
                !(least == *value && greatest == *value)
            }
            (Self::NoneOf(values), Bounds::Numbers(least, greatest)) => {
                !(least == greatest && values.binary_search(&least).is_ok())
            }
            (Self::TextBetween { low, high }, Bounds::Texts(least, greatest)) => {
                low.as_ref().is_none_or(|(low, within)| after(greatest, low.as_bytes(), *within))
                    && high
                        .as_ref()
                        .is_none_or(|(high, within)| after(high.as_bytes(), least, *within))
            }
            (Self::TextOneOf(values), Bounds::Texts(least, greatest)) => {
                let first = values.partition_point(|value| value.as_bytes() < least);
                values.get(first).is_some_and(|value| value.as_bytes() <= greatest)
            }
            (Self::TextNotEqual(value), Bounds::Texts(least, greatest)) => {
                !(least == value.as_bytes() && greatest == value.as_bytes())
            }
            (Self::TextNoneOf(values), Bounds::Texts(least, greatest)) => {
                let is_among = || values.binary_search_by(|one| one.as_bytes().cmp(least)).is_ok();
                !(least == greatest && is_among())
            }
            // Bounds of another kind than the test say nothing.
            _ => true,
        }
    }

    /// Whether a number that is not NULL meets this.
    pub(crate) fn holds_for_number(&self, value: i128) -> bool {
        match self {
            Self::Between(low, high) => (*low..=*high).contains(&value),
            Self::OneOf(values) => values.binary_search(&value).is_ok(),
            Self::NotEqual(other) => value != *other,
            Self::NoneOf(values) => values.binary_search(&value).is_err(),
            Self::IsNotNull => true,
            _ => false,
        }
    }

    /// Whether a text that is not NULL meets this.
    pub(crate) fn holds_for_text(&self, value: &str) -> bool {
        match self {
            Self::TextBetween { low, high } => {
                let value = value.as_bytes();
                low.as_ref().is_none_or(|(low, within)| after(value, low.as_bytes(), *within))
                    && high
                        .as_ref()
                        .is_none_or(|(high, within)| after(high.as_bytes(), value, *within))
            }
            Self::TextOneOf(values) => {
                values.binary_search_by(|one| one.as_bytes().cmp(value.as_bytes())).is_ok()
            }
            Self::TextNotEqual(other) => value != &**other,
            Self::TextNoneOf(values) => {
                values.binary_search_by(|one| one.as_bytes().cmp(value.as_bytes())).is_err()
            }
            Self::IsNotNull => true,
            _ => false,
        }
    }
}

/// `a > b`, or `a >= b` where ends belong to the range.
fn after(a: &[u8], b: &[u8], within: bool) -> bool {
    if within { a >= b } else { a > b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_rule_out_what_cannot_match() {
        let numbers = |test: Test, expected: bool| {
            assert_eq!(test.may_match(Bounds::Numbers(10, 20), false), expected, "{test:?}");
        };
        numbers(Test::Between(0, 9), false);
        numbers(Test::Between(0, 10), true);
        numbers(Test::Between(20, 30), true);
        numbers(Test::Between(21, 30), false);
        numbers(Test::Between(15, 14), true);
        numbers(Test::OneOf(vec![1, 15]), true);
        numbers(Test::OneOf(vec![1, 25]), false);
        numbers(Test::OneOf(vec![]), false);
        numbers(Test::NotEqual(10), true);
        numbers(Test::NoneOf(vec![10, 20]), true);
        numbers(Test::IsNull, false);
        numbers(Test::IsNotNull, true);
        assert!(!Test::NoneOf(vec![5, 7]).may_match(Bounds::Numbers(7, 7), true));
        assert!(!Test::NotEqual(7).may_match(Bounds::Numbers(7, 7), true));
        assert!(!Test::IsNotNull.may_match(Bounds::NoValue, true));
        assert!(Test::IsNull.may_match(Bounds::NoValue, true));
    }

    #[test]
    fn texts_compare_by_bytes() {
        let range = |low: Option<(&str, bool)>, high: Option<(&str, bool)>| Test::TextBetween {
            low: low.map(|(text, within)| (text.into(), within)),
            high: high.map(|(text, within)| (text.into(), within)),
        };
        let bounds = Bounds::Texts(b"bb", b"dd");
        assert!(range(Some(("dd", true)), None).may_match(bounds, false));
        assert!(!range(Some(("dd", false)), None).may_match(bounds, false));
        assert!(!range(None, Some(("bb", false))).may_match(bounds, false));
        assert!(range(None, Some(("z", false))).may_match(bounds, false));
        assert!(Test::TextOneOf(vec!["a".into(), "c".into()]).may_match(bounds, false));
        assert!(!Test::TextOneOf(vec!["a".into(), "e".into()]).may_match(bounds, false));
        assert!(range(Some(("a", false)), Some(("b", true))).holds_for_text("b"));
        assert!(!range(Some(("b", false)), None).holds_for_text("b"));
        assert!(Test::TextNotEqual("x".into()).holds_for_text("y"));
        assert!(!Test::TextNoneOf(vec!["b".into(), "c".into()]).holds_for_text("b"));
        let one = Bounds::Texts(b"c", b"c");
        assert!(!Test::TextNoneOf(vec!["b".into(), "c".into()]).may_match(one, false));
    }
}
