//! What looks into a JSON value: `->`, `->>`, `#>`, `#>>`, `?` and functions of the same kind.

use arrow::array::{ArrayRef, BooleanArray, Int32Array};
use datafusion::error::Result;

use super::JsonKind;
use crate::call::failure;
use crate::declared::{Declared, Row, Type};
use crate::json_text::contains;
use crate::json_text::value::{Item, Json};
use crate::json_text::write::{compact, normal, pretty, quoted, shown, sorted, text_of};
use JsonKind::{Json as Plain, Jsonb as Binary};
use Type::{Boolean, Integer, Text, Texts};

/// A path in a call: a value and up to sixteen keys.
const PATH: &[Type] = &[Text; 17];

const fn declared(
    name: &'static str,
    takes: &'static [Type],
    makes: Type,
    json: Option<JsonKind>,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    Declared { name, called: name, takes, needed: takes.len(), makes, json, compute }
}

const fn path(
    name: &'static str,
    json: Option<JsonKind>,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    Declared { name, called: name, takes: PATH, needed: 1, makes: Text, json, compute }
}

pub(in crate::json) const fn of(
    name: &'static str,
    takes: &'static [Type],
    makes: Type,
    json: Option<JsonKind>,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    declared(name, takes, makes, json, compute)
}

/// The functions, those of the operators under names of their own.
pub(crate) const FUNCTIONS: &[Declared] = &[
    declared("json_field", &[Text, Text], Text, Some(Plain), |row| field(row, false, false)),
    declared("jsonb_field", &[Text, Text], Text, Some(Binary), |row| field(row, true, false)),
    declared("json_field_text", &[Text, Text], Text, None, |row| field(row, false, true)),
    declared("jsonb_field_text", &[Text, Text], Text, None, |row| field(row, true, true)),
    declared("json_element", &[Text, Integer], Text, Some(Plain), |row| element(row, false, false)),
    declared("jsonb_element", &[Text, Integer], Text, Some(Binary), |row| {
        element(row, true, false)
    }),
    declared("json_element_text", &[Text, Integer], Text, None, |row| element(row, false, true)),
    declared("jsonb_element_text", &[Text, Integer], Text, None, |row| element(row, true, true)),
    declared("json_at", &[Text, Texts], Text, Some(Plain), |row| at(row, false, false)),
    declared("jsonb_at", &[Text, Texts], Text, Some(Binary), |row| at(row, true, false)),
    declared("json_at_text", &[Text, Texts], Text, None, |row| at(row, false, true)),
    declared("jsonb_at_text", &[Text, Texts], Text, None, |row| at(row, true, true)),
    path("json_extract_path", Some(Plain), |row| at_keys(row, false, false)),
    path("jsonb_extract_path", Some(Binary), |row| at_keys(row, true, false)),
    path("json_extract_path_text", None, |row| at_keys(row, false, true)),
    path("jsonb_extract_path_text", None, |row| at_keys(row, true, true)),
    declared("json_typeof", &[Text], Text, None, type_name),
    declared("jsonb_typeof", &[Text], Text, None, type_name),
    declared("json_array_length", &[Text], Integer, None, length),
    declared("jsonb_array_length", &[Text], Integer, None, length),
    declared("jsonb_exists", &[Text, Text], Boolean, None, exists),
    declared("jsonb_exists_any", &[Text, Texts], Boolean, None, |row| exists_of(row, false)),
    declared("jsonb_exists_all", &[Text, Texts], Boolean, None, |row| exists_of(row, true)),
    declared("jsonb_contains", &[Text, Text], Boolean, None, contains),
    declared("jsonb_contained", &[Text, Text], Boolean, None, contained),
    declared("jsonb_pretty", &[Text], Text, None, pretty_text),
    declared("json_strip_nulls", &[Text], Text, Some(Plain), |row| stripped(row, false)),
    declared("jsonb_strip_nulls", &[Text], Text, Some(Binary), |row| stripped(row, true)),
    // What rows are made of.
    declared("json_elements", &[Text], Texts, None, |row| elements(row, "json", false)),
    declared("jsonb_elements", &[Text], Texts, None, |row| elements(row, "jsonb", false)),
    declared("json_elements_text", &[Text], Texts, None, |row| elements(row, "json", true)),
    declared("jsonb_elements_text", &[Text], Texts, None, |row| elements(row, "jsonb", true)),
    declared("json_keys", &[Text], Texts, None, |row| keys(row, "json")),
    declared("jsonb_keys", &[Text], Texts, None, |row| keys(row, "jsonb")),
    declared("json_values", &[Text], Texts, None, |row| values(row, "json", false)),
    declared("jsonb_values", &[Text], Texts, None, |row| values(row, "jsonb", false)),
    declared("json_values_text", &[Text], Texts, None, |row| values(row, "json", true)),
    declared("jsonb_values_text", &[Text], Texts, None, |row| values(row, "jsonb", true)),
];

/// The value of the first operand.
pub(super) fn first<'a>(row: &'a Row<'_>, at: usize) -> Result<Option<Item<'a>>> {
    row.text(0, at).map(Item::parse).transpose()
}

pub(super) fn given(
    item: Option<&Item<'_>>,
    normalised: bool,
    as_text: bool,
) -> Result<Option<String>> {
    match item {
        None => Ok(None),
        Some(item) if as_text => text_of(item, normalised),
        Some(item) => shown(item, normalised).map(Some),
    }
}

fn field(row: &Row<'_>, normalised: bool, as_text: bool) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(item), Some(key)) = (first(row, at)?, row.text(1, at)) else { return Ok(None) };
        given(item.member(key), normalised, as_text)
    })
}

fn element(row: &Row<'_>, normalised: bool, as_text: bool) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(item), Some(place)) = (first(row, at)?, row.integer(1, at)) else {
            return Ok(None);
        };
        let is_scalar = !matches!(item.json, Json::Array(_) | Json::Object(_));
        // A scalar of `jsonb` is held in an array of one.
        let found = match is_scalar && normalised && matches!(place, 0 | -1) {
            true => Some(&item),
            false => item.element(place),
        };
        given(found, normalised, as_text)
    })
}

/// The item that keys and places lead to.
pub(super) fn follow<'a, 'b>(item: &'b Item<'a>, path: &[&str]) -> Option<&'b Item<'a>> {
    path.iter().try_fold(item, |item, step| match &item.json {
        Json::Object(_) => item.member(step),
        Json::Array(_) => item.element(step.trim().parse().ok()?),
        _ => None,
    })
}

fn at(row: &Row<'_>, normalised: bool, as_text: bool) -> Result<ArrayRef> {
    row.each_text(|at| {
        let (Some(item), Some(path)) = (first(row, at)?, row.texts(1, at)) else {
            return Ok(None);
        };
        let Some(path) = path.iter().map(Option::as_deref).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        given(follow(&item, &path), normalised, as_text)
    })
}

fn at_keys(row: &Row<'_>, normalised: bool, as_text: bool) -> Result<ArrayRef> {
    row.each_text(|at| {
        let Some(item) = first(row, at)? else { return Ok(None) };
        let path: Vec<&str> = (1..row.columns.len()).filter_map(|key| row.text(key, at)).collect();
        given(follow(&item, &path), normalised, as_text)
    })
}

fn type_name(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| Ok(first(row, at)?.map(|item| item.type_name().to_owned())))
}

fn length(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<i32, Int32Array>(|at| match first(row, at)? {
        Some(Item { json: Json::Array(items), .. }) => Ok(i32::try_from(items.len()).ok()),
        Some(Item { json: Json::Object(_), .. }) => {
            Err(failure("22023", "cannot get array length of a non-array"))
        }
        Some(_) => Err(failure("22023", "cannot get array length of a scalar")),
        None => Ok(None),
    })
}

/// Whether a text is a key of an object, an element of an array, or the value itself.
fn has(item: &Item<'_>, key: &str) -> bool {
    match &item.json {
        Json::Object(_) => item.member(key).is_some(),
        Json::Array(items) => {
            items.iter().any(|item| matches!(&item.json, Json::Text(text) if text == key))
        }
        Json::Text(text) => text == key,
        _ => false,
    }
}

fn exists(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<bool, BooleanArray>(|at| {
        let (Some(item), Some(key)) = (first(row, at)?, row.text(1, at)) else { return Ok(None) };
        Ok(Some(has(&item, key)))
    })
}

fn exists_of(row: &Row<'_>, all: bool) -> Result<ArrayRef> {
    row.each::<bool, BooleanArray>(|at| {
        let (Some(item), Some(keys)) = (first(row, at)?, row.texts(1, at)) else {
            return Ok(None);
        };
        let mut keys = keys.iter().flatten();
        Ok(Some(match all {
            true => keys.all(|key| has(&item, key)),
            false => keys.any(|key| has(&item, key)),
        }))
    })
}

fn both(row: &Row<'_>, of: impl Fn(&Item<'_>, &Item<'_>) -> bool) -> Result<ArrayRef> {
    row.each::<bool, BooleanArray>(|at| {
        let (Some(left), Some(right)) = (row.text(0, at), row.text(1, at)) else {
            return Ok(None);
        };
        Ok(Some(of(&Item::parse(left)?, &Item::parse(right)?)))
    })
}

fn contains(row: &Row<'_>) -> Result<ArrayRef> {
    both(row, contains::contains)
}

fn contained(row: &Row<'_>) -> Result<ArrayRef> {
    both(row, |left, right| contains::contains(right, left))
}

fn pretty_text(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| {
        let Some(item) = first(row, at)? else { return Ok(None) };
        let mut out = String::new();
        pretty(&item, 0, &mut out)?;
        Ok(Some(out))
    })
}

fn without_nulls<'a>(item: Item<'a>) -> Item<'a> {
    let json = match item.json {
        Json::Array(items) => Json::Array(items.into_iter().map(without_nulls).collect()),
        Json::Object(members) => {
            let kept = members.into_iter().filter(|(_, item)| item.json != Json::Null);
            Json::Object(kept.map(|(key, item)| (key, without_nulls(item))).collect())
        }
        other => other,
    };
    Item { raw: item.raw, json }
}

fn stripped(row: &Row<'_>, normalised: bool) -> Result<ArrayRef> {
    row.each_text(|at| {
        let Some(item) = first(row, at)? else { return Ok(None) };
        let item = without_nulls(item);
        let mut out = String::new();
        match normalised {
            true => out = normal(&item)?,
            false => compact(&item, &mut out)?,
        }
        Ok(Some(out))
    })
}

fn elements(row: &Row<'_>, kind: &str, as_text: bool) -> Result<ArrayRef> {
    let called = match as_text {
        true => format!("{kind}_array_elements_text"),
        false => format!("{kind}_array_elements"),
    };
    row.each_list(true, |at| match first(row, at)? {
        Some(Item { json: Json::Array(items), .. }) => {
            let texts = items.iter().map(|item| given(Some(item), kind == "jsonb", as_text));
            texts.collect::<Result<Vec<_>>>().map(Some)
        }
        Some(Item { json: Json::Object(_), .. }) => {
            let what = if kind == "json" {
                format!("cannot call {called} on a non-array")
            } else {
                "cannot extract elements from an object".to_owned()
            };
            Err(failure("22023", what))
        }
        Some(_) => Err(failure(
            "22023",
            match kind {
                "json" => format!("cannot call {called} on a scalar"),
                _ => "cannot extract elements from a scalar".to_owned(),
            },
        )),
        None => Ok(None),
    })
}

/// The members of an object, in the order in which rows are made of them.
fn members<'b>(
    item: &'b Item<'_>,
    kind: &str,
    called: &str,
) -> Result<Vec<(&'b str, &'b Item<'b>)>> {
    match &item.json {
        Json::Object(members) if kind == "jsonb" => Ok(sorted(members)),
        Json::Object(members) => {
            Ok(members.iter().map(|(key, item)| (key.as_ref(), item)).collect())
        }
        Json::Array(_) => Err(failure("22023", format!("cannot call {called} on an array"))),
        _ => Err(failure("22023", format!("cannot call {called} on a scalar"))),
    }
}

fn keys(row: &Row<'_>, kind: &str) -> Result<ArrayRef> {
    row.each_list(true, |at| {
        let Some(item) = first(row, at)? else { return Ok(None) };
        let members = members(&item, kind, &format!("{kind}_object_keys"))?;
        Ok(Some(members.into_iter().map(|(key, _)| Some(key.to_owned())).collect()))
    })
}

fn values(row: &Row<'_>, kind: &str, as_text: bool) -> Result<ArrayRef> {
    row.each_list(true, |at| {
        let Some(item) = first(row, at)? else { return Ok(None) };
        let members = members(&item, kind, &format!("{kind}_each"))?.into_iter();
        let values = members.map(|(_, item)| given(Some(item), kind == "jsonb", as_text));
        values.collect::<Result<Vec<_>>>().map(Some)
    })
}

/// A text in quotes, as a value of its own.
pub(super) fn in_quotes(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quoted(text, &mut out);
    out
}
