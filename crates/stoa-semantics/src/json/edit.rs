//! What makes another `jsonb` of one: `jsonb_set`, `jsonb_insert`, `||`, `-` and `#-`.

use std::borrow::Cow;

use arrow::array::ArrayRef;
use datafusion::error::{DataFusionError, Result};

use super::JsonKind::Jsonb;
use super::get::{first, of};
use crate::call::failure;
use crate::declared::{Declared, Row, Type};
use crate::json_text::value::{Item, Json, place_in};
use crate::json_text::write::normal;
use Type::{Boolean, Integer, Text, Texts};

pub(crate) const FUNCTIONS: &[Declared] = &[
    of("jsonb_joined", &[Text, Text], Text, Some(Jsonb), joined),
    of("jsonb_without", &[Text, Text], Text, Some(Jsonb), without_key),
    of("jsonb_without_keys", &[Text, Texts], Text, Some(Jsonb), without_keys),
    of("jsonb_without_place", &[Text, Integer], Text, Some(Jsonb), without_place),
    of("jsonb_without_path", &[Text, Texts], Text, Some(Jsonb), without_path),
    Declared {
        needed: 3,
        ..of("jsonb_set", &[Text, Texts, Text, Boolean], Text, Some(Jsonb), set)
    },
    Declared {
        needed: 3,
        ..of("jsonb_set_lax", &[Text, Texts, Text, Boolean, Text], Text, Some(Jsonb), set_lax)
    },
    Declared {
        needed: 3,
        ..of("jsonb_insert", &[Text, Texts, Text, Boolean], Text, Some(Jsonb), insert)
    },
];

/// What is done where a path ends.
#[derive(Clone, Copy)]
enum Edit<'a> {
    Set { to: &'a Item<'a>, create: bool },
    Insert { item: &'a Item<'a>, after: bool },
    Remove,
}

fn joined(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(left), Some(right)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        let (left, right) = (Item::parse(left)?, Item::parse(right)?);
        let json = match (left.json, right.json) {
            (Json::Object(mut members), Json::Object(more)) => {
                members.extend(more);
                Json::Object(members)
            }
            (left, right) => {
                let mut items = as_items(left);
                items.extend(as_items(right));
                Json::Array(items)
            }
        };
        normal(&Item::made(json)).map(Some)
    })
}

fn as_items(json: Json<'_>) -> Vec<Item<'_>> {
    match json {
        Json::Array(items) => items,
        other => vec![Item::made(other)],
    }
}

fn cannot_delete() -> DataFusionError {
    failure("22023", "cannot delete from scalar")
}

fn without_key(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(item), Some(key)) = (first(row, at)?, row.text(1, at)) else { return Ok(None) };
        without(item, &|name| name == key).map(Some)
    })
}

fn without_keys(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(item), Some(keys)) = (first(row, at)?, row.texts(1, at)) else {
            return Ok(None);
        };
        without(item, &|name| keys.iter().flatten().any(|key| key == name)).map(Some)
    })
}

fn without(item: Item<'_>, is_key: &dyn Fn(&str) -> bool) -> Result<String> {
    let json = match item.json {
        Json::Object(mut members) => {
            members.retain(|(name, _)| !is_key(name));
            Json::Object(members)
        }
        Json::Array(mut items) => {
            items.retain(|item| !matches!(&item.json, Json::Text(text) if is_key(text)));
            Json::Array(items)
        }
        _ => return Err(cannot_delete()),
    };
    normal(&Item::made(json))
}

fn without_place(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(item), Some(place)) = (first(row, at)?, row.integer(1, at)) else {
            return Ok(None);
        };
        let json = match item.json {
            Json::Array(mut items) => {
                if let Some(place) = place_in(items.len(), place) {
                    items.remove(place);
                }
                Json::Array(items)
            }
            Json::Object(_) => {
                return Err(failure("22023", "cannot delete from object using integer index"));
            }
            _ => return Err(cannot_delete()),
        };
        normal(&Item::made(json)).map(Some)
    })
}

fn path_of(row: &Row<'_>, at: usize) -> Result<Vec<String>> {
    let path = row.texts(1, at).unwrap_or_default().into_iter().enumerate();
    let step = |(place, step): (usize, Option<String>)| {
        let message = format!("path element at position {} is null", place + 1);
        step.ok_or_else(|| failure("22004", message))
    };
    path.map(step).collect()
}

fn without_path(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let Some(item) = first(row, at)? else { return Ok(None) };
        if !matches!(item.json, Json::Array(_) | Json::Object(_)) {
            return Err(failure("22023", "cannot delete path in scalar"));
        }
        let path = path_of(row, at)?;
        normal(&edited(item, &path, 1, Edit::Remove)?).map(Some)
    })
}

fn set(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(item), Some(to)) = (first(row, at)?, row.text(2, at)) else { return Ok(None) };
        if !matches!(item.json, Json::Array(_) | Json::Object(_)) {
            return Err(failure("22023", "cannot set path in scalar"));
        }
        let to = Item::parse(to)?;
        let edit = Edit::Set { to: &to, create: row.boolean(3, at).unwrap_or(true) };
        normal(&edited(item, &path_of(row, at)?, 1, edit)?).map(Some)
    })
}

/// `jsonb_set`, to which NULL is a value that something is done about.
fn set_lax(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text_or_null(|at| {
        let is_given = row.has(0, at) && row.has(1, at);
        let create = match row.columns.len() {
            3 => Some(true),
            _ => row.boolean(3, at),
        };
        let (Some(item), Some(create), true) = (first(row, at)?, create, is_given) else {
            return Ok(None);
        };
        let treatment = match row.columns.len() {
            5 => row.text(4, at),
            _ => Some("use_json_null"),
        };
        let to = match (row.text(2, at), treatment) {
            (Some(to), Some(_)) => Item::parse(to)?,
            (None, Some("use_json_null")) => Item::parse("null")?,
            (None, Some("raise_exception")) => {
                return Err(failure("22004", "JSON value must not be null"));
            }
            (None, Some("return_target")) => return normal(&item).map(Some),
            (None, Some("delete_key")) => {
                if !matches!(item.json, Json::Array(_) | Json::Object(_)) {
                    return Err(failure("22023", "cannot delete path in scalar"));
                }
                return normal(&edited(item, &path_of(row, at)?, 1, Edit::Remove)?).map(Some);
            }
            _ => {
                let message = "null_value_treatment must be \"delete_key\", \"return_target\", \
                    \"use_json_null\", or \"raise_exception\"";
                return Err(failure("22023", message));
            }
        };
        if !matches!(item.json, Json::Array(_) | Json::Object(_)) {
            return Err(failure("22023", "cannot set path in scalar"));
        }
        let edit = Edit::Set { to: &to, create };
        normal(&edited(item, &path_of(row, at)?, 1, edit)?).map(Some)
    })
}

fn insert(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(item), Some(new)) = (first(row, at)?, row.text(2, at)) else { return Ok(None) };
        if !matches!(item.json, Json::Array(_) | Json::Object(_)) {
            return Err(failure("22023", "cannot set path in scalar"));
        }
        let new = Item::parse(new)?;
        let edit = Edit::Insert { item: &new, after: row.boolean(3, at).unwrap_or(false) };
        normal(&edited(item, &path_of(row, at)?, 1, edit)?).map(Some)
    })
}

/// The value with what a path leads to edited; `position` is that of the path's first step, from 1. Recursion ends
/// with the value's own nesting.
fn edited<'a>(
    item: Item<'a>,
    path: &'a [String],
    position: usize,
    edit: Edit<'a>,
) -> Result<Item<'a>> {
    let Some((step, rest)) = path.split_first() else { return Ok(item) };
    let json = match item.json {
        Json::Object(members) => Json::Object(in_object(members, step, rest, position, edit)?),
        Json::Array(items) => Json::Array(in_array(items, step, rest, position, edit)?),
        // The path leads nowhere.
        other => other,
    };
    Ok(Item::made(json))
}

type Members<'a> = Vec<(Cow<'a, str>, Item<'a>)>;

fn in_object<'a>(
    mut members: Members<'a>,
    key: &'a str,
    rest: &'a [String],
    position: usize,
    edit: Edit<'a>,
) -> Result<Members<'a>> {
    let place = members.iter().rposition(|(name, _)| name == key);
    if !rest.is_empty() {
        if let Some(place) = place {
            let (name, item) = members.swap_remove(place);
            members.push((name, edited(item, rest, position + 1, edit)?));
        }
        return Ok(members);
    }
    match (edit, place) {
        (Edit::Remove, _) => members.retain(|(name, _)| name != key),
        (Edit::Set { to, .. }, Some(place)) => members[place].1 = to.clone(),
        (Edit::Set { to: new, create: true } | Edit::Insert { item: new, .. }, None) => {
            members.push((Cow::Borrowed(key), new.clone()));
        }
        (Edit::Set { create: false, .. }, None) => {}
        (Edit::Insert { .. }, Some(_)) => {
            return Err(failure("22023", "cannot replace existing key"));
        }
    }
    Ok(members)
}

fn in_array<'a>(
    mut items: Vec<Item<'a>>,
    step: &str,
    rest: &'a [String],
    position: usize,
    edit: Edit<'a>,
) -> Result<Vec<Item<'a>>> {
    let place: i32 = step.trim().parse().map_err(|_| {
        let message = format!("path element at position {position} is not an integer: \"{step}\"");
        failure("22P02", message)
    })?;
    let found = place_in(items.len(), i64::from(place));
    if !rest.is_empty() {
        if let Some(found) = found {
            let item = items[found].clone();
            items[found] = edited(item, rest, position + 1, edit)?;
        }
        return Ok(items);
    }
    // What is outside of the array is in front of it or behind it.
    let outside = if place < 0 { 0 } else { items.len() };
    match (edit, found) {
        (Edit::Remove, Some(found)) => {
            items.remove(found);
        }
        (Edit::Set { to, .. }, Some(found)) => items[found] = to.clone(),
        (Edit::Set { to, create: true }, None) => items.insert(outside, to.clone()),
        (Edit::Insert { item, after }, Some(found)) => {
            items.insert(found + usize::from(after), item.clone());
        }
        (Edit::Insert { item, .. }, None) => items.insert(outside, item.clone()),
        (Edit::Remove | Edit::Set { create: false, .. }, None) => {}
    }
    Ok(items)
}
