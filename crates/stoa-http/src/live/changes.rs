//! What turns one JSON document into another, in short.
//!
//! | change | the new value is |
//! |---|---|
//! | `{"v": value}` | `value` |
//! | `{"m": {name: change, …}, "d": [name, …]}` | the old object with members changed or added, and others dropped; `d` may be missing |
//! | `{"l": [item, …]}` | a list of: `[from, count]`, that many old items from that place; `{"i": place, "c": change}`, an old item changed; `{"v": value}` |
//!
//! Items of lists are the same ones if the members that name them ([`NAMES`]) are equal; lists of which some are named
//! alike, or have no name, are sent whole.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// Members by which the items of the API's lists are told from each other.
const NAMES: [&str; 16] = [
    "id",
    "sql",
    "daemon",
    "group",
    "name",
    "table",
    "route",
    "status",
    "figure",
    "alert",
    "about",
    "listener",
    "path",
    "pool",
    "sessionId",
    "operationId",
];

/// The change from `old` to `new`; `None` if they are equal.
pub(super) fn change(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    Some(match (old, new) {
        (Value::Object(old), Value::Object(new)) => members(old, new),
        (Value::Array(old), Value::Array(new)) => {
            items(old, new).unwrap_or_else(|| whole(new.clone()))
        }
        (_, new) => whole(new.clone()),
    })
}

/// The change that does not look at what was.
pub(super) fn whole(new: impl Into<Value>) -> Value {
    json!({ "v": new.into() })
}

fn members(old: &Map<String, Value>, new: &Map<String, Value>) -> Value {
    let changed = new.iter().filter_map(|(name, new)| {
        let change = match old.get(name) {
            Some(old) => change(old, new)?,
            None => whole(new.clone()),
        };
        Some((name.clone(), change))
    });
    let changed: Map<String, Value> = changed.collect();
    let dropped: Vec<&String> = old.keys().filter(|name| !new.contains_key(*name)).collect();
    match dropped.is_empty() {
        true => json!({ "m": changed }),
        false => json!({ "m": changed, "d": dropped }),
    }
}

fn items(old: &[Value], new: &[Value]) -> Option<Value> {
    let places = places(old)?;
    places_are_unique(new)?;
    let mut parts: Vec<Value> = Vec::new();
    let mut run: Option<(usize, usize)> = None;
    for item in new {
        let place = places.get(&named(item)?).copied();
        let is_same = place.is_some_and(|place| old.get(place) == Some(item));
        match (place, run) {
            (Some(place), Some((from, count))) if is_same && from + count == place => {
                run = Some((from, count + 1));
                continue;
            }
            (_, Some((from, count))) => parts.push(json!([from, count])),
            (_, None) => {}
        }
        run = place.filter(|_| is_same).map(|place| (place, 1));
        match place.and_then(|place| Some((place, change(old.get(place)?, item)?))) {
            Some((place, change)) => parts.push(json!({ "i": place, "c": change })),
            None if is_same => {}
            None => parts.push(whole(item.clone())),
        }
    }
    parts.extend(run.map(|(from, count)| json!([from, count])));
    Some(json!({ "l": parts }))
}

/// Where each item is, by what names it; `None` if that does not tell all apart.
fn places(items: &[Value]) -> Option<HashMap<String, usize>> {
    let mut places = HashMap::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        if places.insert(named(item)?, place).is_some() {
            return None;
        }
    }
    Some(places)
}

fn places_are_unique(items: &[Value]) -> Option<()> {
    places(items).map(|_| ())
}

fn named(item: &Value) -> Option<String> {
    let item = item.as_object()?;
    let mut name = String::new();
    for member in NAMES.iter().filter_map(|name| item.get(*name)) {
        name.push_str(&member.to_string());
        name.push('\n');
    }
    (!name.is_empty()).then_some(name)
}

/// `old` after a change, as clients have it.
#[cfg(test)]
fn applied(old: &Value, change: &Value) -> Value {
    if let Some(value) = change.get("v") {
        return value.clone();
    }
    if let Some(parts) = change["l"].as_array() {
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let old = old.as_array().unwrap();
        let items = parts.iter().flat_map(|part| match part {
            Value::Array(run) => old[number(&run[0])..][..number(&run[1])].to_vec(),
            part if part.get("i").is_some() => vec![applied(&old[number(&part["i"])], &part["c"])],
            part => vec![part["v"].clone()],
        });
        return items.collect();
    }
    let mut new = old.as_object().unwrap().clone();
    for name in change["d"].as_array().into_iter().flatten() {
        new.remove(name.as_str().unwrap());
    }
    for (name, change) in change["m"].as_object().unwrap() {
        let value = applied(&new.get(name).cloned().unwrap_or_default(), change);
        new.insert(name.clone(), value);
    }
    new.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: Value, new: Value, expected: Value) {
        let change = change(&old, &new).unwrap();
        assert_eq!(change, expected);
        assert_eq!(applied(&old, &change), new);
    }

    #[test]
    fn only_what_changed_is_said() {
        assert_eq!(change(&json!({ "a": [1, 2] }), &json!({ "a": [1, 2] })), None);
        check(json!(1), json!(null), json!({ "v": null }));
        check(
            json!({ "a": 1, "b": { "c": 2, "d": 3 }, "e": 4 }),
            json!({ "a": 1, "b": { "c": 9, "d": 3 }, "f": null }),
            json!({ "m": { "b": { "m": { "c": { "v": 9 } } }, "f": { "v": null } }, "d": ["e"] }),
        );
    }

    #[test]
    fn lists_are_runs_of_old_items_changed_ones_and_new_ones() {
        let item = |id: u64, n: u64| json!({ "id": id, "n": n });
        let old: Value = (0..6).map(|id| item(id, 1)).collect();
        let new = json!([item(9, 1), item(0, 1), item(1, 1), item(3, 7), item(4, 1), item(5, 1)]);
        check(
            old.clone(),
            new,
            json!({ "l": [{ "v": item(9, 1) }, [0, 2], { "i": 3, "c": { "m": { "n": { "v": 7 } } } }, [4, 2]] }),
        );
        check(old.clone(), json!([item(5, 1), item(0, 1)]), json!({ "l": [[5, 1], [0, 1]] }));
        check(old.clone(), json!([]), json!({ "l": [] }));
        check(old, json!([1, 2]), json!({ "v": [1, 2] }));
        check(json!([item(1, 1), item(1, 2)]), json!([item(1, 1)]), json!({ "v": [item(1, 1)] }));
    }

    #[test]
    fn any_change_leads_to_the_new_document() {
        let mut seed = 7_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        let mut document = || {
            let ids: Vec<u64> = (0..next(9)).map(|_| next(12)).collect();
            let items =
                ids.iter().map(|id| json!({ "id": id, "n": next(3), "of": { "m": next(2) } }));
            let items: Value = items.collect();
            match next(3) {
                0 => json!({ "items": items, "a": next(4) }),
                1 => json!({ "items": items, "b": [next(2), { "name": "x", "v": next(2) }] }),
                _ => items,
            }
        };
        let mut old = document();
        for _ in 0..5000 {
            let new = document();
            match change(&old, &new) {
                Some(change) => assert_eq!(applied(&old, &change), new, "{old} {change}"),
                None => assert_eq!(old, new),
            }
            old = new;
        }
    }
}
