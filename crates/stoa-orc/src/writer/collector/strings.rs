//! Bounds of strings, cut to 1024 bytes at a character where values are longer (ORC-203).

use crate::predicate::Literal;
use crate::statistics::ValueStatistics;

/// Longest bound in bytes.
const BOUND_BYTES_MAX: usize = 1024;

/// Bounds of the strings seen so far, and their total length.
#[derive(Clone, Debug, Default)]
pub(crate) struct StringBounds {
    lower: Option<Bound>,
    upper: Upper,
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Bound {
    text: Vec<u8>,
    is_exact: bool,
}

#[derive(Clone, Debug, Default)]
enum Upper {
    #[default]
    NoValue,
    Bound(Bound),
    /// A long value of nothing but the largest character has no upper bound of 1024 bytes.
    Unbounded,
}

impl StringBounds {
    /// Adds to the total length only.
    #[inline]
    pub(crate) fn add_length(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Adds a value to the bounds only.
    #[inline]
    pub(crate) fn add_bounds(&mut self, value: &[u8]) {
        match &self.lower {
            Some(bound) if bound.text.as_slice() <= value => {}
            _ => self.lower = Some(lower_bound(value)),
        }
        match &self.upper {
            Upper::Bound(bound) if bound.text.as_slice() >= value => {}
            Upper::Unbounded => {}
            _ => self.upper = upper_bound(value),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        if let Some(more) = &other.lower
            && self.lower.as_ref().is_none_or(|bound| more.text < bound.text)
        {
            self.lower = Some(more.clone());
        }
        match (&mut self.upper, &other.upper) {
            (_, Upper::NoValue) | (Upper::Unbounded, _) => {}
            (upper, Upper::Unbounded) => *upper = Upper::Unbounded,
            (Upper::Bound(bound), Upper::Bound(more)) if bound.text >= more.text => {}
            (upper, Upper::Bound(more)) => *upper = Upper::Bound(more.clone()),
        }
    }

    /// The statistics; `some` = there are values.
    pub(crate) fn statistics(&self, some: bool) -> ValueStatistics {
        let upper = match &self.upper {
            Upper::Bound(bound) => Some(bound),
            _ => None,
        };
        let lower = self.lower.as_ref();
        ValueStatistics::String {
            lower: lower.map(|bound| bound.text.clone()),
            upper: upper.map(|bound| bound.text.clone()),
            lower_is_exact: lower.is_some_and(|bound| bound.is_exact),
            upper_is_exact: upper.is_some_and(|bound| bound.is_exact),
            total_bytes: some.then_some(i64::try_from(self.bytes).unwrap_or(i64::MAX)),
        }
    }

    /// The bounds as texts.
    pub(crate) fn literals(&self) -> (Option<Literal>, Option<Literal>) {
        let text = |bound: &Bound| String::from_utf8(bound.text.clone()).ok().map(Literal::String);
        let upper = match &self.upper {
            Upper::Bound(bound) => text(bound),
            _ => None,
        };
        (self.lower.as_ref().and_then(text), upper)
    }
}

fn lower_bound(value: &[u8]) -> Bound {
    let text = cut(value);
    Bound { text: text.to_vec(), is_exact: text.len() == value.len() }
}

fn upper_bound(value: &[u8]) -> Upper {
    let text = cut(value);
    if text.len() == value.len() {
        return Upper::Bound(Bound { text: text.to_vec(), is_exact: true });
    }
    match next_after(text) {
        Some(text) => Upper::Bound(Bound { text, is_exact: false }),
        None => Upper::Unbounded,
    }
}

/// The first characters of `value`, at most [`BOUND_BYTES_MAX`] bytes.
fn cut(value: &[u8]) -> &[u8] {
    if value.len() <= BOUND_BYTES_MAX {
        return value;
    }
    let is_start = |at: &usize| value[*at] & 0xc0 != 0x80;
    let end = (0..=BOUND_BYTES_MAX).rev().find(is_start).unwrap_or(0);
    &value[..end]
}

/// A text above everything that starts with `text`: its last character (that is not the largest)
/// replaced by the next one.
fn next_after(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    for (at, last) in text.char_indices().rev() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            _ => char::from_u32(last as u32 + 1),
        };
        if let Some(next) = next {
            let mut bound = text[..at].to_owned();
            bound.push(next);
            return Some(bound.into_bytes());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds(values: &[String]) -> (Option<String>, Option<String>, bool, bool) {
        let mut whole = StringBounds::default();
        for part in values.chunks(2) {
            let mut bounds = StringBounds::default();
            for value in part {
                bounds.add_length(value.len());
                bounds.add_bounds(value.as_bytes());
            }
            whole.merge(&bounds);
        }
        let ValueStatistics::String { lower, upper, lower_is_exact, upper_is_exact, total_bytes } =
            whole.statistics(!values.is_empty())
        else {
            panic!("strings have string statistics")
        };
        let total: usize = values.iter().map(String::len).sum();
        assert_eq!(total_bytes.unwrap_or(0), total as i64);
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).unwrap());
        (text(lower), text(upper), lower_is_exact, upper_is_exact)
    }

    #[test]
    fn long_values_are_cut_at_characters() {
        let (lower, upper, low_exact, high_exact) = bounds(&["ä".repeat(600)]);
        assert_eq!(lower.unwrap(), "ä".repeat(512));
        assert_eq!(upper.unwrap(), "ä".repeat(511) + "å");
        assert!(!low_exact && !high_exact);

        let (lower, upper, ..) = bounds(&["a".to_owned() + &"\u{10ffff}".repeat(300)]);
        assert_eq!(lower.unwrap().len(), 1021);
        assert_eq!(upper.unwrap(), "b");

        let (_, upper, ..) = bounds(&["\u{10ffff}".repeat(300), "a".to_owned()]);
        assert_eq!(upper, None);

        let (_, upper, ..) = bounds(&["\u{d7ff}".repeat(400)]);
        assert!(upper.unwrap().ends_with('\u{e000}'));
    }

    #[test]
    fn short_values_are_exact() {
        let (lower, upper, low_exact, high_exact) = bounds(&["b".repeat(1024), String::new()]);
        assert_eq!((lower.unwrap(), upper.unwrap()), (String::new(), "b".repeat(1024)));
        assert!(low_exact && high_exact);
        assert_eq!(bounds(&[]), (None, None, false, false));
    }

    proptest! {
        #[test]
        fn bounds_hold(
            values in prop::collection::vec(
                ("[a\u{7f}ä\u{d7ff}\u{ffff}\u{10ffff}]{0,3}", 0usize..700), 1..6)
        ) {
            let values: Vec<String> = values.iter().map(|(part, n)| part.repeat(*n)).collect();
            let (lower, upper, low_exact, high_exact) = bounds(&values);
            let (lower, min) = (lower.unwrap(), values.iter().min().unwrap());
            prop_assert!(lower <= *min && lower.len() <= 1024);
            prop_assert!(!low_exact || lower == *min);
            let max = values.iter().max().unwrap();
            match upper {
                Some(upper) => {
                    prop_assert!(upper >= *max && upper.len() <= 1027);
                    prop_assert!(!high_exact || upper == *max);
                }
                None => prop_assert!(max.len() > 1024),
            }
        }
    }
}
