//! Functions of arrays and maps.

use std::cmp::Ordering;

use stoa_error::{Error, Result};

use super::operators::ordering;
use super::value::{Type, Value};
use super::{
    Function, common, lenient, makes_boolean, makes_int, no_function, strict, text, whole,
};

pub(super) static FUNCTIONS: &[Function] = &[
    lenient(
        "hive_array",
        (0, 255),
        |t| Ok(Type::List(Box::new(common("array", t)?))),
        |v| Ok(Value::List(v.to_vec())),
    ),
    lenient("hive_map", (0, 254), map_type, map),
    strict(
        "hive_map_from_arrays",
        (2, 2),
        |t| match t {
            [Type::List(keys), Type::List(values)] => Ok(Type::Map(keys.clone(), values.clone())),
            _ => Err(no_function("map_from_arrays", t)),
        },
        |v| {
            Ok(match (&v[0], &v[1]) {
                (Value::List(keys), Value::List(values)) => {
                    Value::Map(keys.iter().cloned().zip(values.iter().cloned()).collect())
                }
                _ => Value::Null,
            })
        },
    ),
    lenient(
        "hive_str_to_map",
        (1, 3),
        |_| Ok(Type::Map(Box::new(Type::Text), Box::new(Type::Text))),
        str_to_map,
    ),
    // -1 of NULL.
    lenient("hive_size", (1, 1), size_type, |v| {
        Ok(Value::Int(match &v[0] {
            Value::List(items) => i32::try_from(items.len()).unwrap_or(i32::MAX),
            Value::Map(pairs) => i32::try_from(pairs.len()).unwrap_or(i32::MAX),
            _ => -1,
        }))
    }),
    strict("hive_array_contains", (2, 2), array_contains_type, |v| {
        let Value::List(items) = &v[0] else { return Ok(Value::Null) };
        for item in items {
            if ordering(item, &v[1])? == Some(Ordering::Equal) {
                return Ok(Value::Boolean(true));
            }
        }
        Ok(Value::Boolean(false))
    }),
    strict("hive_sort_array", (1, 1), list_itself, |v| {
        let Value::List(items) = &v[0] else { return Ok(Value::Null) };
        let mut items = items.clone();
        sort(&mut items);
        Ok(Value::List(items))
    }),
    strict("hive_array_distinct", (1, 1), list_itself, |v| {
        let Value::List(items) = &v[0] else { return Ok(Value::Null) };
        let mut kept: Vec<Value> = Vec::new();
        for item in items {
            if !kept.contains(item) {
                kept.push(item.clone());
            }
        }
        Ok(Value::List(kept))
    }),
    // NULL of no rows becomes an empty array: collect_list.
    lenient("hive_collected", (1, 1), list_itself, |v| {
        Ok(match &v[0] {
            Value::Null => Value::List(Vec::new()),
            other => other.clone(),
        })
    }),
    strict(
        "hive_map_keys",
        (1, 1),
        |t| match &t[0] {
            Type::Map(key, _) => Ok(Type::List(key.clone())),
            _ => Err(no_function("map_keys", t)),
        },
        |v| Ok(pairs(&v[0], |(key, _)| key.clone())),
    ),
    strict(
        "hive_map_values",
        (1, 1),
        |t| match &t[0] {
            Type::Map(_, value) => Ok(Type::List(value.clone())),
            _ => Err(no_function("map_values", t)),
        },
        |v| Ok(pairs(&v[0], |(_, value)| value.clone())),
    ),
    strict("hive_index", (2, 2), index_type, index),
    lenient("hive_if", (3, 3), if_type, |v| {
        let of = if v[0].boolean() == Some(true) { &v[1] } else { &v[2] };
        Ok(of.clone())
    }),
    // Numbers from 0 to the length before the last of an array, for posexplode.
    strict(
        "hive_positions",
        (1, 1),
        |_| Ok(Type::List(Box::new(Type::Int))),
        |v| {
            let count = match &v[0] {
                Value::List(items) => items.len(),
                Value::Map(pairs) => pairs.len(),
                _ => 0,
            };
            Ok(Value::List(
                (0..count).map(|at| Value::Int(i32::try_from(at).unwrap_or(i32::MAX))).collect(),
            ))
        },
    ),
    strict(
        "hive_texts_of",
        (1, 1),
        |_| Ok(Type::List(Box::new(Type::Text))),
        |v| {
            let Value::List(items) = &v[0] else { return Ok(Value::Null) };
            let texts = items.iter().map(|item| Ok(super::maybe(item.text()?)));
            texts.collect::<Result<_>>().map(Value::List)
        },
    ),
];

fn if_type(types: &[Type]) -> Result<Type> {
    match types[0] {
        Type::Boolean | Type::Null => common("if", &types[1..]),
        _ => Err(no_function("if", types).with_hint("the first operand is a condition")),
    }
}

fn map_type(types: &[Type]) -> Result<Type> {
    if types.len() % 2 == 1 {
        return Err(no_function("map", types).with_hint("give keys and values in turn"));
    }
    let every =
        |from: usize| -> Vec<Type> { types.iter().skip(from).step_by(2).cloned().collect() };
    Ok(Type::Map(Box::new(common("map", &every(0))?), Box::new(common("map", &every(1))?)))
}

fn map(v: &[Value]) -> Result<Value> {
    let mut all: Vec<(Value, Value)> = Vec::new();
    for pair in v.chunks_exact(2) {
        if !pair[0].is_null() {
            put(&mut all, pair[0].clone(), pair[1].clone());
        }
    }
    Ok(Value::Map(all))
}

/// A later value of a key takes the place of an earlier one.
fn put(all: &mut Vec<(Value, Value)>, key: Value, value: Value) {
    match all.iter_mut().find(|(known, _)| *known == key) {
        Some(pair) => pair.1 = value,
        None => all.push((key, value)),
    }
}

fn str_to_map(v: &[Value]) -> Result<Value> {
    if v[0].is_null() {
        return Ok(Value::Null);
    }
    let by = |at: usize, default: &str| match v.get(at) {
        Some(value) => value.text().map(|text| text.unwrap_or_else(|| default.to_owned())),
        None => Ok(default.to_owned()),
    };
    let (pairs, parts) = (by(1, ",")?, by(2, ":")?);
    let special = |text: &str| text.chars().any(|c| "\\^$.|?*+()[]{}".contains(c));
    if special(&pairs) || special(&parts) || pairs.is_empty() || parts.is_empty() {
        return Err(Error::unsupported(
            "str_to_map with a regular expression as delimiter is not supported",
        )
        .with_hint("use delimiters without \\ ^ $ . | ? * + ( ) [ ] { }"));
    }
    let mut all = Vec::new();
    for pair in text(v, 0)?.split(&pairs) {
        match pair.split_once(&parts) {
            Some((key, value)) => put(&mut all, Value::Text(key.into()), Value::Text(value.into())),
            None => put(&mut all, Value::Text(pair.into()), Value::Null),
        }
    }
    Ok(Value::Map(all))
}

fn size_type(types: &[Type]) -> Result<Type> {
    match types[0] {
        Type::List(_) | Type::Map(..) | Type::Null => makes_int(types),
        _ => Err(no_function("size", types)),
    }
}

fn array_contains_type(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::List(item)
            if **item == types[1]
                || matches!(types[1], Type::Null)
                || (item.is_number() && types[1].is_number()) =>
        {
            makes_boolean(types)
        }
        _ => Err(no_function("array_contains", types)
            .with_hint("the value must be of the type of the items")),
    }
}

fn list_itself(types: &[Type]) -> Result<Type> {
    match &types[0] {
        Type::List(_) => Ok(types[0].clone()),
        _ => Err(no_function("of arrays", types)),
    }
}

/// Ascending, NULLs first.
fn sort(items: &mut [Value]) {
    items.sort_by(|a, b| match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => ordering(a, b).ok().flatten().unwrap_or(Ordering::Equal),
    });
}

fn pairs(of: &Value, part: fn(&(Value, Value)) -> Value) -> Value {
    match of {
        Value::Map(pairs) => Value::List(pairs.iter().map(part).collect()),
        _ => Value::Null,
    }
}

fn index_type(types: &[Type]) -> Result<Type> {
    match (&types[0], &types[1]) {
        (Type::List(item), Type::Int | Type::Bigint | Type::Null) => Ok((**item).clone()),
        (Type::Map(_, value), _) => Ok((**value).clone()),
        (Type::Null, _) => Ok(Type::Null),
        _ => Err(no_function("[] of", types)),
    }
}

/// Arrays count from 0; what is outside is NULL.
fn index(v: &[Value]) -> Result<Value> {
    Ok(match &v[0] {
        Value::List(items) => {
            let at = whole(v, 1)?.and_then(|at| usize::try_from(at).ok());
            at.and_then(|at| items.get(at)).cloned().unwrap_or(Value::Null)
        }
        Value::Map(pairs) => {
            for (key, value) in pairs {
                if ordering(key, &v[1])? == Some(Ordering::Equal) {
                    return Ok(value.clone());
                }
            }
            Value::Null
        }
        _ => Value::Null,
    })
}
