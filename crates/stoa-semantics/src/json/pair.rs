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
use Type::{Text, Texts};

pub(crate) const FUNCTIONS: &[Declared] = &[
    of("json_of_elements", &[Texts], Text, Some(Json), elements),
    of("jsonb_of_elements", &[Texts], Text, Some(Jsonb), |row| in_normal_form(row, "[", "]")),
    of("json_of_members", &[Texts], Text, Some(Json), members),
    of("jsonb_of_members", &[Texts], Text, Some(Jsonb), |row| in_normal_form(row, "{", "}")),
    of("json_member", &[Text, Text], Text, None, member),
];

/// Stands before an element that begins a line.
pub(super) const LINE: &str = "\n ";

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
