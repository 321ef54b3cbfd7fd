//! Column metrics of a written file, as a manifest holds them.

use std::collections::HashMap;

use iceberg::spec::{Datum, PrimitiveType, Schema, StructType, Type};
use stoa_orc::{FileSummary, Literal};

use crate::value;

/// Bounds of text and binary columns are cut to this many characters or bytes, as other engines
/// do (`write.metadata.metrics.default` = `truncate(16)`).
const BOUND_LENGTH: usize = 16;

/// Counts and bounds per field id.
#[derive(Debug, Default)]
pub(crate) struct FileMetrics {
    pub(crate) column_sizes: HashMap<i32, u64>,
    pub(crate) value_counts: HashMap<i32, u64>,
    pub(crate) null_counts: HashMap<i32, u64>,
    pub(crate) nan_counts: HashMap<i32, u64>,
    pub(crate) lower_bounds: HashMap<i32, Datum>,
    pub(crate) upper_bounds: HashMap<i32, Datum>,
}

/// The metrics of a file with columns of `schema`. Fields inside lists and maps have none.
pub(crate) fn file_metrics(schema: &Schema, summary: &FileSummary) -> FileMetrics {
    let mut primitives = HashMap::new();
    collect_primitives(schema.as_struct(), &mut primitives);
    let mut metrics = FileMetrics::default();
    for column in &summary.columns {
        let Some(id) = column.field_id else { continue };
        metrics.column_sizes.insert(id, column.bytes);
        let Some(primitive) = primitives.get(&id) else { continue };
        metrics.value_counts.insert(id, column.values);
        metrics.null_counts.insert(id, column.nulls);
        if let Some(nans) = column.nan_count {
            metrics.nan_counts.insert(id, nans);
        }
        let lower = column.min.as_ref().and_then(lower_bound);
        if let Some(bound) = lower.and_then(|bound| value::to_datum(&bound, primitive)) {
            metrics.lower_bounds.insert(id, bound);
        }
        let upper = column.max.as_ref().and_then(upper_bound);
        if let Some(bound) = upper.and_then(|bound| value::to_datum(&bound, primitive)) {
            metrics.upper_bounds.insert(id, bound);
        }
    }
    metrics
}

fn collect_primitives<'a>(
    fields: &'a StructType,
    primitives: &mut HashMap<i32, &'a PrimitiveType>,
) {
    for field in fields.fields() {
        match field.field_type.as_ref() {
            Type::Primitive(primitive) => {
                primitives.insert(field.id, primitive);
            }
            Type::Struct(fields) => collect_primitives(fields, primitives),
            Type::List(_) | Type::Map(_) => {}
        }
    }
}

/// A bound that is at most `min`, short enough for a manifest.
fn lower_bound(min: &Literal) -> Option<Literal> {
    Some(match min {
        Literal::String(text) => Literal::String(text.chars().take(BOUND_LENGTH).collect()),
        Literal::Binary(bytes) => {
            Literal::Binary(bytes.iter().copied().take(BOUND_LENGTH).collect())
        }
        Literal::Float(value) if value.is_nan() => return None,
        // Zeros compare equal, but Iceberg orders -0 before +0.
        Literal::Float(value) if *value == 0.0 => Literal::Float(-0.0),
        other => other.clone(),
    })
}

/// A bound that is at least `max`, short enough for a manifest; `None` where there is none.
fn upper_bound(max: &Literal) -> Option<Literal> {
    Some(match max {
        Literal::String(text) => Literal::String(cut_text_up(text)?),
        Literal::Binary(bytes) => Literal::Binary(cut_bytes_up(bytes)?),
        Literal::Float(value) if value.is_nan() => return None,
        Literal::Float(value) if *value == 0.0 => Literal::Float(0.0),
        other => other.clone(),
    })
}

/// The first characters of `text` with the last one that can be raised raised by one, if `text`
/// is longer than a bound may be.
fn cut_text_up(text: &str) -> Option<String> {
    if text.chars().nth(BOUND_LENGTH).is_none() {
        return Some(text.to_owned());
    }
    let mut chars: Vec<char> = text.chars().take(BOUND_LENGTH).collect();
    while let Some(last) = chars.pop() {
        if let Some(next) = next_char(last) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// The next Unicode scalar value; surrogates are none.
fn next_char(character: char) -> Option<char> {
    match character {
        '\u{d7ff}' => Some('\u{e000}'),
        other => char::from_u32(u32::from(other) + 1),
    }
}

fn cut_bytes_up(bytes: &[u8]) -> Option<Vec<u8>> {
    let Some(head) = bytes.get(..BOUND_LENGTH).filter(|_| bytes.len() > BOUND_LENGTH) else {
        return Some(bytes.to_vec());
    };
    let mut head = head.to_vec();
    while let Some(last) = head.pop() {
        if last < u8::MAX {
            head.push(last + 1);
            return Some(head);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lower: &str, upper: Option<&str>) {
        let literal = Literal::String(text.to_owned());
        assert_eq!(lower_bound(&literal), Some(Literal::String(lower.to_owned())));
        assert_eq!(upper_bound(&literal), upper.map(|upper| Literal::String(upper.to_owned())));
        assert!(lower <= text && upper.is_none_or(|upper| upper >= text));
    }

    #[test]
    fn text_bounds_are_cut_at_characters_and_stay_bounds() {
        check("short", "short", Some("short"));
        check("exactly 16 chars", "exactly 16 chars", Some("exactly 16 chars"));
        check("exactly 16 chars.", "exactly 16 chars", Some("exactly 16 chart"));
        let umlauts = "ü".repeat(20);
        check(&umlauts, &"ü".repeat(16), Some(&format!("{}ý", "ü".repeat(15))));
        let before_surrogates = "\u{d7ff}".repeat(17);
        check(
            &before_surrogates,
            &"\u{d7ff}".repeat(16),
            Some(&format!("{}\u{e000}", "\u{d7ff}".repeat(15))),
        );
        let last = format!("{}{}", "a".repeat(15), "\u{10ffff}\u{10ffff}");
        check(
            &last,
            &format!("{}\u{10ffff}", "a".repeat(15)),
            Some(&format!("{}b", "a".repeat(14))),
        );
        check(&"\u{10ffff}".repeat(17), &"\u{10ffff}".repeat(16), None);
    }

    #[test]
    fn binary_bounds_carry() {
        let check = |bytes: Vec<u8>, upper: Option<Vec<u8>>| {
            assert_eq!(upper_bound(&Literal::Binary(bytes)), upper.map(Literal::Binary));
        };
        check(vec![255; 16], Some(vec![255; 16]));
        check(vec![255; 17], None);
        let mut bytes = vec![1; 15];
        bytes.extend([255, 0]);
        let mut raised = vec![1; 14];
        raised.push(2);
        check(bytes, Some(raised));
    }

    #[test]
    fn zeros_widen_and_nans_bound_nothing() {
        let Some(Literal::Float(lower)) = lower_bound(&Literal::Float(0.0)) else { panic!("none") };
        let Some(Literal::Float(upper)) = upper_bound(&Literal::Float(-0.0)) else {
            panic!("none")
        };
        assert!(lower.is_sign_negative() && upper.is_sign_positive());
        assert_eq!(lower_bound(&Literal::Float(f64::NAN)), None);
    }
}
