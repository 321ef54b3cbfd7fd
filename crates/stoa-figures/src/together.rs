//! Figures of all daemons of a cluster together.
//!
//! In: documents of `/v1/status`, one of each daemon, which may run other builds. Out: of each figure that is declared
//! here, the least, the greatest, and the sum where that says something. What a document does not have, or has as
//! something else, is missing; what is not declared here is left out.

use serde_json::{Map, Value as Json, json};

use crate::declaration::{Column, Declaration};
use crate::inventory::declarations;
use crate::kind::{Kind, Type};
use crate::seen::{Seen, Shape};

/// One figure of all daemons.
#[derive(Clone, Debug)]
pub struct Together {
    /// The group.
    pub group: &'static str,
    /// What the row is about, where the group has many: keys with `, ` between them.
    pub key: Option<String>,
    /// The figure.
    pub column: Column,
    /// The sum; `None` where it says nothing.
    pub sum: Option<Json>,
    /// The least.
    pub min: Json,
    /// The greatest.
    pub max: Json,
    /// The value of each document, null where it has none.
    pub of: Vec<Json>,
}

/// All numbers, and yes or no, that everyone may see.
pub fn together(documents: &[&Json]) -> Vec<Together> {
    let groups = declarations();
    let seen = groups.iter().filter(|group| group.is_in_status && group.seen == Seen::Everyone);
    seen.flat_map(|group| of_group(group, documents)).collect()
}

fn of_group(group: &Declaration, documents: &[&Json]) -> Vec<Together> {
    let keys: Vec<Option<String>> = match group.shape {
        Shape::Many => keys_of(group, documents).into_iter().map(Some).collect(),
        Shape::One | Shape::Maybe | Shape::Top => vec![None],
    };
    let numbers = || {
        let is_number = |column: &&Column| {
            matches!(column.kind, Kind::Counter | Kind::Gauge) && column.seen == Seen::Everyone
        };
        group.columns.iter().filter(is_number)
    };
    let of_key = |key: Option<String>| {
        let rows: Vec<Option<&Json>> =
            documents.iter().map(|document| row(group, document, key.as_deref())).collect();
        let column = move |column: &Column| of_column(group, key.clone(), column, &rows);
        numbers().filter_map(column).collect::<Vec<_>>()
    };
    keys.into_iter().flat_map(of_key).collect()
}

/// The rows' keys in all documents, in the order in which they come.
fn keys_of(group: &Declaration, documents: &[&Json]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for row in documents.iter().flat_map(|document| rows(group, document)) {
        match key_of(group, row) {
            Some(key) if !keys.contains(&key) => keys.push(key),
            _ => {}
        }
    }
    keys
}

fn rows<'a>(group: &Declaration, document: &'a Json) -> impl Iterator<Item = &'a Json> {
    document.get(group.name).and_then(Json::as_array).into_iter().flatten()
}

/// `None` for rows that are about nothing, such as samples.
fn key_of(group: &Declaration, row: &Json) -> Option<String> {
    let keys = group.columns.iter().filter(|column| column.kind == Kind::Key);
    let texts = keys.filter_map(|column| match row.get(column.name)? {
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    });
    let all: Vec<String> = texts.collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn row<'a>(group: &Declaration, document: &'a Json, key: Option<&str>) -> Option<&'a Json> {
    match key {
        Some(key) => rows(group, document).find(|row| key_of(group, row).as_deref() == Some(key)),
        None if group.shape == Shape::Top => Some(document),
        None => document.get(group.name),
    }
}

fn of_column(
    group: &Declaration,
    key: Option<String>,
    column: &Column,
    rows: &[Option<&Json>],
) -> Option<Together> {
    let fits = |value: &Json| match column.r#type {
        Type::Boolean => value.is_boolean(),
        Type::Integer | Type::Float => value.is_number(),
        _ => false,
    };
    let value = |row: &Option<&Json>| {
        row.and_then(|row| row.get(column.name)).filter(|value| fits(value)).cloned()
    };
    let of: Vec<Option<Json>> = rows.iter().map(value).collect();
    let there = || of.iter().flatten();
    let ascending = |a: &&Json, b: &&Json| number(a).total_cmp(&number(b));
    let (min, max) = (there().min_by(ascending)?.clone(), there().max_by(ascending)?.clone());
    let sum = column.is_summed.then(|| sum(there()));
    let of = of.iter().map(|value| value.clone().unwrap_or_default()).collect();
    Some(Together { group: group.name, key, column: column.clone(), sum, min, max, of })
}

fn number(value: &Json) -> f64 {
    match value {
        Json::Bool(is_so) => f64::from(u8::from(*is_so)),
        other => other.as_f64().unwrap_or_default(),
    }
}

/// Exact as long as all are whole numbers.
fn sum<'a>(values: impl Iterator<Item = &'a Json> + Clone) -> Json {
    let whole = values.clone().map(Json::as_i64).collect::<Option<Vec<i64>>>();
    match whole {
        Some(whole) => json!(whole.into_iter().fold(0_i64, i64::saturating_add)),
        None => json!(values.map(number).sum::<f64>()),
    }
}

/// Of a document of `/v1/status`, what everyone may see, by what is declared here.
pub fn for_everyone(document: &Json) -> Json {
    let groups = declarations();
    let mut seen = Map::new();
    for group in groups.iter().filter(|group| group.is_in_status && group.seen == Seen::Everyone) {
        if group.shape == Shape::Top {
            seen.extend(columns_for_everyone(group, document));
            continue;
        }
        let Some(value) = document.get(group.name) else { continue };
        let object = |row: &Json| Json::Object(columns_for_everyone(group, row));
        let value = match value {
            Json::Array(rows) => rows.iter().map(object).collect::<Vec<_>>().into(),
            Json::Object(_) => object(value),
            _ => Json::Null,
        };
        seen.insert(group.name.to_owned(), value);
    }
    Json::Object(seen)
}

fn columns_for_everyone(group: &Declaration, row: &Json) -> Map<String, Json> {
    let value = |column: &Column| {
        let value = row.get(column.name)?.clone();
        let is_seen = column.seen == Seen::Everyone;
        Some((column.name.to_owned(), if is_seen { value } else { Json::Null }))
    };
    group.columns.iter().filter_map(value).collect()
}
