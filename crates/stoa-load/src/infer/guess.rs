//! The narrowest type that holds the values seen so far.

use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};

use super::FALLBACK;
use crate::column::members;
use crate::convert::Conversions;
use crate::datetime::Moments;
use crate::number;

/// Levels of lists and objects that become types; what is deeper stays JSON text.
const NESTING_MAX: usize = 16;

/// What a column may be, from what was seen of it. `merge` only ever widens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Guess {
    /// Nothing but NULL.
    #[default]
    Unknown,
    Boolean,
    Bigint,
    Double,
    Date,
    Timestamp,
    Timestamptz,
    Text,
    List(Box<Guess>),
    Struct(Vec<(String, Guess)>),
}

impl Guess {
    /// Of a field of a delimited file.
    pub fn of_field(text: &[u8], quoted: bool, with: &Conversions) -> Self {
        let trimmed = text.trim_ascii();
        if with.is_null_text(trimmed) && !(quoted && trimmed.is_empty()) {
            return Self::Unknown;
        }
        if trimmed.is_empty() {
            // An empty text tells nothing of numbers, which take it for NULL.
            return if with.empty_is_null { Self::Unknown } else { Self::Text };
        }
        Self::of_text(trimmed, with)
    }

    fn of_text(text: &[u8], with: &Conversions) -> Self {
        if text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"false") {
            return Self::Boolean;
        }
        let first = text.first().copied().unwrap_or(0);
        if first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.' | b',') {
            match with.plain_number(text) {
                Some(plain) if has_leading_zero(&plain) => {}
                Some(plain) => match number::integer(&plain) {
                    Ok(_) => return Self::Bigint,
                    // An identifier of twenty digits is not well kept in a double.
                    Err(number::NumberError::OutOfRange) => return Self::Text,
                    Err(number::NumberError::NotANumber) => {
                        let is_number = plain.iter().any(u8::is_ascii_digit);
                        if is_number && number::double(&plain).is_some_and(f64::is_finite) {
                            return Self::Double;
                        }
                    }
                },
                None => {}
            }
        }
        Self::of_moment(text, with)
    }

    fn of_moment(text: &[u8], with: &Conversions) -> Self {
        let Ok(text) = std::str::from_utf8(text) else {
            return Self::Text;
        };
        if text.len() > 64 || !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return Self::Text;
        }
        let is_date = with.dates.date(text).is_some();
        // A date as ISO has it may carry midnight; with it, it is a timestamp.
        if is_date && (!with.dates.is_iso() || !text.contains(':')) {
            return Self::Date;
        }
        match &with.timestamps {
            Moments::Epoch(_) => Self::Text,
            moments => match moments.parse(text) {
                Some(moment) if moment.offset_s.is_some() => Self::Timestamptz,
                Some(_) => Self::Timestamp,
                None => Self::Text,
            },
        }
    }

    /// Of a JSON value; text where it is nested deeper than any table.
    pub fn of_json(json: &str, with: &Conversions) -> Self {
        Self::of_json_at(json, with, NESTING_MAX)
    }

    fn of_json_at(json: &str, with: &Conversions, levels_left: usize) -> Self {
        if levels_left == 0 {
            return Self::Text;
        }
        match json.as_bytes().first() {
            Some(b'n') => Self::Unknown,
            Some(b't' | b'f') => Self::Boolean,
            // Numbers in quotes are text on purpose; dates have no other way.
            Some(b'"') => match serde_json::from_str::<String>(json) {
                Ok(text) => Self::of_moment(text.as_bytes(), with),
                Err(_) => Self::Text,
            },
            Some(b'[') => match serde_json::from_str::<Vec<&serde_json::value::RawValue>>(json) {
                Ok(items) => Self::List(Box::new(
                    items
                        .iter()
                        .map(|item| Self::of_json_at(item.get(), with, levels_left - 1))
                        .fold(Self::Unknown, Self::merge),
                )),
                Err(_) => Self::Text,
            },
            Some(b'{') => match members(json) {
                Ok(members) if !members.is_empty() => Self::Struct(
                    members
                        .into_iter()
                        .map(|(name, raw)| {
                            (name.into_owned(), Self::of_json_at(raw.get(), with, levels_left - 1))
                        })
                        .collect(),
                ),
                _ => Self::Unknown,
            },
            _ => match number::integer(json.as_bytes()) {
                Ok(_) => Self::Bigint,
                Err(_) => Self::Double,
            },
        }
    }

    /// The narrowest that holds both.
    pub fn merge(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Unknown, other) | (other, Self::Unknown) => other,
            (Self::Bigint, Self::Double) | (Self::Double, Self::Bigint) => Self::Double,
            (Self::Date, Self::Timestamp) | (Self::Timestamp, Self::Date) => Self::Timestamp,
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.merge(*b))),
            (Self::Struct(mut a), Self::Struct(b)) => {
                super::merge(&mut a, b);
                Self::Struct(a)
            }
            _ => Self::Text,
        }
    }

    pub fn data_type(&self) -> DataType {
        match self {
            Self::Unknown | Self::Text => FALLBACK,
            Self::Boolean => DataType::Boolean,
            Self::Bigint => DataType::Int64,
            Self::Double => DataType::Float64,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Self::List(item) => {
                DataType::List(Arc::new(Field::new("item", item.data_type(), true)))
            }
            Self::Struct(members) => DataType::Struct(
                members
                    .iter()
                    .map(|(name, guess)| Field::new(name, guess.data_type(), true))
                    .collect(),
            ),
        }
    }
}

/// Whether leading zeros would be lost: postal codes and the like are not numbers.
fn has_leading_zero(number: &[u8]) -> bool {
    let (_, digits) = number::sign(number);
    matches!(digits, [b'0', b'0'..=b'9', ..])
}
