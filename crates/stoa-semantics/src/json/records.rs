//! Parts of `json_to_record` and `json_to_recordset`: `stoa-sql` writes each column as a cast of the text of a member.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::JsonKind::Json as Plain;
use super::get::{first, given, of};
use crate::call::failure;
use crate::declared::{Declared, Row, Type};
use crate::json_text::value::{Item, Json};
use crate::json_text::write::text_of;
use Type::{Text, Texts};

pub(crate) const FUNCTIONS: &[Declared] = &[
    of("json_record_of", &[Text], Text, Some(Plain), |row| record(row, "json")),
    of("jsonb_record_of", &[Text], Text, Some(Plain), |row| record(row, "jsonb")),
    of("json_records_of", &[Text], Texts, None, |row| records(row, "json")),
    of("jsonb_records_of", &[Text], Texts, None, |row| records(row, "jsonb")),
    of("json_record_text", &[Text, Text], Text, None, |row| {
        member(row, |item| text_of(item, false))
    }),
    of("json_record_json", &[Text, Text], Text, Some(Plain), |row| {
        member(row, |item| match item.json {
            Json::Null => Ok(None),
            _ => given(Some(item), false, false),
        })
    }),
    of("json_record_array", &[Text, Text], Text, None, |row| {
        member(row, |item| match &item.json {
            Json::Null => Ok(None),
            Json::Array(items) => {
                let mut out = String::new();
                array(items, &mut out)?;
                Ok(Some(out))
            }
            _ => Err(failure("22P02", "expected JSON array")),
        })
    }),
];

fn record(row: &Row<'_>, kind: &str) -> Result<ArrayRef> {
    row.each_text(|at| match first(row, at)? {
        Some(item) => match item.json {
            Json::Object(_) => given(Some(&item), kind == "jsonb", false),
            Json::Null if kind == "jsonb" => Ok(None),
            Json::Array(_) => Err(failure("22023", "cannot call populate_composite on an array")),
            _ => Err(failure("22023", "cannot call populate_composite on a scalar")),
        },
        None => Ok(None),
    })
}

fn records(row: &Row<'_>, kind: &str) -> Result<ArrayRef> {
    let called = format!("{kind}_to_recordset");
    row.each_list(true, |at| match first(row, at)? {
        Some(Item { json: Json::Array(items), .. }) => {
            let texts = items.iter().map(|item| match item.json {
                Json::Object(_) => given(Some(item), kind == "jsonb", false),
                _ => {
                    let message = format!("argument of {called} must be an array of objects");
                    Err(failure("22023", message))
                }
            });
            texts.collect::<Result<Vec<_>>>().map(Some)
        }
        Some(_) if kind == "jsonb" => {
            Err(failure("22023", format!("cannot call {called} on a non-array")))
        }
        Some(Item { json: Json::Object(_), .. }) => {
            Err(failure("22023", format!("cannot call {called} on an object")))
        }
        Some(_) => Err(failure("22023", format!("cannot call {called} on a scalar"))),
        None => Ok(None),
    })
}

fn member(row: &Row<'_>, text: impl Fn(&Item<'_>) -> Result<Option<String>>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(item), Some(key)) = (first(row, at)?, row.text(1, at)) else { return Ok(None) };
        match item.member(key) {
            Some(value) => text(value),
            None => Ok(None),
        }
    })
}

/// An array as PostgreSQL reads it.
fn array(items: &[Item<'_>], out: &mut String) -> Result<()> {
    out.push('{');
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        if let Json::Array(items) = &item.json {
            array(items, out)?;
            continue;
        }
        let Some(text) = text_of(item, false)? else {
            out.push_str("NULL");
            continue;
        };
        out.push('"');
        for letter in text.chars() {
            if matches!(letter, '"' | '\\') {
                out.push('\\');
            }
            out.push(letter);
        }
        out.push('"');
    }
    out.push('}');
    Ok(())
}
