//! `get_json_object`: `$`, `.name`, `[index]` and `[*]` of a path.

use serde_json::Value as Json;

use super::value::{Type, Value};
use super::{Function, makes_text, maybe, strict, text};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_get_json_object", (2, 2), makes_text, |v| {
        Ok(maybe(get(&text(v, 0)?, &text(v, 1)?)))
    }),
    // The members of a JSON object that are named, as texts: json_tuple.
    strict("hive_json_member", (2, 2), makes_text, |v| {
        Ok(maybe(member(&text(v, 0)?, &text(v, 1)?)))
    }),
    strict(
        "hive_json_keys",
        (1, 1),
        |_| Ok(Type::List(Box::new(Type::Text))),
        |v| {
            Ok(match serde_json::from_str(&text(v, 0)?) {
                Ok(Json::Object(members)) => {
                    Value::List(members.keys().map(|key| Value::Text(key.clone())).collect())
                }
                _ => Value::Null,
            })
        },
    ),
];

enum Step {
    Member(String),
    Index(usize),
    All,
}

fn get(json: &str, path: &str) -> Option<String> {
    let steps = steps(path)?;
    let json: Json = serde_json::from_str(json).ok()?;
    let (mut found, mut is_many) = (vec![&json], false);
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            match (&step, value) {
                (Step::Member(name), Json::Object(members)) => next.extend(members.get(name)),
                // A member of each of the items.
                (Step::Member(name), Json::Array(items)) => {
                    is_many = true;
                    next.extend(items.iter().filter_map(|item| item.get(name)));
                }
                (Step::Index(at), Json::Array(items)) => next.extend(items.get(*at)),
                (Step::All, Json::Array(items)) => {
                    is_many = true;
                    next.extend(items);
                }
                _ => {}
            }
        }
        found = next;
    }
    match found.as_slice() {
        [] => None,
        [one] if !is_many => shown(one),
        [one] => shown(one),
        many => serde_json::to_string(many).ok(),
    }
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.trim().strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('.') {
            let end = behind.find(['.', '[']).unwrap_or(behind.len());
            let (name, behind) = behind.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Member(name.to_owned()));
            rest = behind;
        } else {
            let (index, behind) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(match index.trim() {
                "*" => Step::All,
                index => Step::Index(index.parse().ok()?),
            });
            rest = behind;
        }
    }
    Some(steps)
}

fn member(json: &str, name: &str) -> Option<String> {
    let json: Json = serde_json::from_str(json).ok()?;
    json.get(name).and_then(shown)
}

/// A value as a text: texts without their quotes.
fn shown(value: &Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
