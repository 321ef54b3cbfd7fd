//! What JSON aggregates are made of: `stoa-sql` writes `json_agg(x)` as a list of elements that are joined, and
//! `json_object_agg(k, v)` as one of members.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::JsonKind::{Json, Jsonb};
use super::get::{in_quotes, of};
use crate::call::failure;
use crate::declared::{Declared, Row, Type};
use crate::json_text::value::Item;
use crate::json_text::write::normal;
use crate::made_texts::{VALUE_BYTES_MAX, too_large};
use Type::{Groups, Text, Texts};

pub(crate) const FUNCTIONS: &[Declared] = &[
    of("json_of_elements", &[Texts], Text, Some(Json), elements),
    of("jsonb_of_elements", &[Texts], Text, Some(Jsonb), |row| in_normal_form(row, "[", "]")),
    of("json_of_members", &[Texts], Text, Some(Json), members),
    of("jsonb_of_members", &[Texts], Text, Some(Jsonb), |row| in_normal_form(row, "{", "}")),
    of("json_member", &[Text, Text], Text, None, member),
    of("json_object", &[Texts], Text, Some(Json), |row| of_texts(row, false)),
    of("json_object", &[Texts, Texts], Text, Some(Json), |row| of_texts(row, false)),
    of("json_object_of_pairs", &[Groups], Text, Some(Json), |row| of_pairs(row, false)),
    of("jsonb_object", &[Texts], Text, Some(Jsonb), |row| of_texts(row, true)),
    of("jsonb_object", &[Texts, Texts], Text, Some(Jsonb), |row| of_texts(row, true)),
    of("jsonb_object_of_pairs", &[Groups], Text, Some(Jsonb), |row| of_pairs(row, true)),
];

/// Stands before an element that begins a line.
pub(super) const LINE: &str = "\n ";

type Pair = (Option<String>, Option<String>);

/// An object of keys and values, which are texts or null.
fn object(pairs: impl Iterator<Item = Pair>, is_binary: bool) -> Result<String> {
    let mut out = String::from("{");
    for (key, value) in pairs {
        let null = || failure("22004", "null value not allowed for object key");
        let key = key.ok_or_else(null)?;
        if out.len() > 1 {
            out.push_str(", ");
        }
        out.push_str(&in_quotes(&key));
        out.push_str(" : ");
        match value {
            Some(value) => out.push_str(&in_quotes(&value)),
            None => out.push_str("null"),
        }
        if out.len() > VALUE_BYTES_MAX {
            return Err(too_large("json_object"));
        }
    }
    out.push('}');
    match is_binary {
        true => normal(&Item::parse(&out)?),
        false => Ok(out),
    }
}

/// Keys and values one after the other, or in two lists.
fn of_texts(row: &Row<'_>, is_binary: bool) -> Result<ArrayRef> {
    row.each_text(|at| {
        let Some(keys) = row.texts(0, at) else { return Ok(None) };
        if let Some(values) = row.texts(1, at) {
            if keys.len() != values.len() {
                return Err(failure("2202E", "mismatched array dimensions"));
            }
            return object(keys.into_iter().zip(values), is_binary).map(Some);
        }
        if keys.len() % 2 == 1 {
            return Err(failure("2202E", "array must have even number of elements"));
        }
        let mut texts = keys.into_iter();
        let pairs = std::iter::from_fn(|| texts.next().zip(texts.next()));
        object(pairs, is_binary).map(Some)
    })
}

fn of_pairs(row: &Row<'_>, is_binary: bool) -> Result<ArrayRef> {
    row.each_text(|at| {
        let Some(groups) = row.groups(0, at) else { return Ok(None) };
        let pairs = groups.into_iter().map(|group| <[_; 2]>::try_from(group).map(Pair::from));
        let pairs = pairs.collect::<std::result::Result<Vec<Pair>, _>>();
        let pairs = pairs.map_err(|_| failure("2202E", "array must have two columns"))?;
        object(pairs.into_iter(), is_binary).map(Some)
    })
}

/// `"key" : value`; a value that is NULL is null.
fn member(row: &Row<'_>) -> Result<ArrayRef> {
    let mut texts = arrow::array::StringBuilder::with_capacity(row.rows, 0);
    let mut total = 0;
    for at in 0..row.rows {
        let Some(key) = row.text(0, at) else {
            return Err(failure("22023", "field name must not be null"));
        };
        let value = row.text(1, at).unwrap_or("null");
        let text = format!("{} : {}", in_quotes(key), value.trim_start_matches(LINE));
        row.count(&mut total, text.len())?;
        texts.append_value(text);
    }
    Ok(std::sync::Arc::new(texts.finish()))
}

fn joined(row: &Row<'_>, at: usize, open: &str, close: &str) -> Option<String> {
    let items = row.texts(0, at)?;
    let mut out = open.to_owned();
    for (index, item) in items.iter().enumerate() {
        let item = item.as_deref().unwrap_or("null");
        match index {
            0 => out.push_str(item.trim_start_matches(LINE)),
            _ => {
                out.push_str(", ");
                out.push_str(item);
            }
        }
    }
    out.push_str(close);
    Some(out)
}

fn elements(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| Ok(joined(row, at, "[", "]")))
}

fn members(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| Ok(joined(row, at, "{ ", " }")))
}

fn in_normal_form(row: &Row<'_>, open: &str, close: &str) -> Result<ArrayRef> {
    row.each_text(|at| match joined(row, at, open, close) {
        Some(text) => normal(&Item::parse(&text)?).map(Some),
        None => Ok(None),
    })
}
