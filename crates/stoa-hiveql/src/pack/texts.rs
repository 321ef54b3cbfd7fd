//! Functions of texts.

use stoa_error::{Error, Result};

use super::value::{Type, Value};
use super::{
    Function, TEXT_BYTES_MAX, lenient, makes_binary, makes_int, makes_text, maybe, no_function,
    strict, text, too_long, whole,
};

pub(super) static FUNCTIONS: &[Function] = &[
    strict("hive_upper", (1, 1), makes_text, |v| Ok(Value::Text(text(v, 0)?.to_uppercase()))),
    strict("hive_lower", (1, 1), makes_text, |v| Ok(Value::Text(text(v, 0)?.to_lowercase()))),
    strict("hive_initcap", (1, 1), makes_text, |v| Ok(Value::Text(initcap(&text(v, 0)?)))),
    strict("hive_length", (1, 1), makes_int, length),
    strict("hive_octet_length", (1, 1), makes_int, |v| {
        int(match &v[0] {
            Value::Binary(bytes) => bytes.len(),
            _ => text(v, 0)?.len(),
        })
    }),
    strict("hive_reverse", (1, 1), makes_text, |v| {
        Ok(Value::Text(text(v, 0)?.chars().rev().collect()))
    }),
    strict("hive_repeat", (2, 2), makes_text, |v| {
        repeat(&text(v, 0)?, whole(v, 1)?.unwrap_or_default())
    }),
    strict("hive_space", (1, 1), makes_text, |v| repeat(" ", whole(v, 0)?.unwrap_or_default())),
    strict("hive_trim", (1, 1), makes_text, |v| {
        Ok(Value::Text(text(v, 0)?.trim_matches(' ').into()))
    }),
    strict("hive_ltrim", (1, 1), makes_text, |v| {
        Ok(Value::Text(text(v, 0)?.trim_start_matches(' ').into()))
    }),
    strict("hive_rtrim", (1, 1), makes_text, |v| {
        Ok(Value::Text(text(v, 0)?.trim_end_matches(' ').into()))
    }),
    strict("hive_lpad", (3, 3), makes_text, |v| pad(v, true)),
    strict("hive_rpad", (3, 3), makes_text, |v| pad(v, false)),
    strict("hive_substr", (2, 3), substr_type, substr),
    strict("hive_substring_index", (3, 3), makes_text, substring_index),
    strict("hive_instr", (2, 2), makes_int, |v| position(&text(v, 0)?, &text(v, 1)?, 1)),
    strict("hive_locate", (2, 3), makes_int, |v| {
        let from = if v.len() > 2 { whole(v, 2)?.unwrap_or_default() } else { 1 };
        position(&text(v, 1)?, &text(v, 0)?, from)
    }),
    strict("hive_translate", (3, 3), makes_text, translate),
    strict("hive_replace", (3, 3), makes_text, |v| {
        let (of, what, by) = (text(v, 0)?, text(v, 1)?, text(v, 2)?);
        if what.is_empty() {
            return Ok(Value::Text(of));
        }
        let grown = of.matches(&what).count().saturating_mul(by.len());
        if grown > TEXT_BYTES_MAX {
            Err(too_long())
        } else {
            Ok(Value::Text(of.replace(&what, &by)))
        }
    }),
    strict("hive_ascii", (1, 1), makes_int, |v| {
        Ok(Value::Int(text(v, 0)?.bytes().next().map_or(0, |byte| i32::from(byte as i8))))
    }),
    strict("hive_chr", (1, 1), makes_text, chr),
    lenient("hive_concat_ws", (1, 255), concat_ws_type, concat_ws),
    lenient("hive_elt", (1, 255), makes_text, elt),
    lenient("hive_field", (1, 255), makes_int, field),
    strict("hive_find_in_set", (2, 2), makes_int, find_in_set),
    strict("hive_levenshtein", (2, 2), makes_int, |v| {
        int(strsim::levenshtein(&text(v, 0)?, &text(v, 1)?))
    }),
    strict("hive_soundex", (1, 1), makes_text, |v| Ok(soundex(&text(v, 0)?))),
    strict("hive_base64", (1, 1), makes_text, |v| {
        use base64::Engine as _;
        Ok(Value::Text(base64::engine::general_purpose::STANDARD.encode(bytes(v, 0)?)))
    }),
    strict("hive_unbase64", (1, 1), makes_binary, |v| {
        use base64::Engine as _;
        let found = base64::engine::general_purpose::STANDARD.decode(text(v, 0)?.trim());
        Ok(found.map_or(Value::Null, Value::Binary))
    }),
    strict("hive_encode", (2, 2), makes_binary, |v| {
        utf8_only(&text(v, 1)?)?;
        Ok(Value::Binary(text(v, 0)?.into_bytes()))
    }),
    strict("hive_decode", (2, 2), makes_text, |v| {
        utf8_only(&text(v, 1)?)?;
        Ok(Value::Text(String::from_utf8_lossy(&bytes(v, 0)?).into_owned()))
    }),
    strict("hive_to_binary", (1, 1), makes_binary, |v| bytes(v, 0).map(Value::Binary)),
];

fn int(value: usize) -> Result<Value> {
    Ok(Value::Int(i32::try_from(value).unwrap_or(i32::MAX)))
}

/// The bytes of a binary value, or of a text.
pub(super) fn bytes(v: &[Value], at: usize) -> Result<Vec<u8>> {
    match v.get(at) {
        Some(Value::Binary(bytes)) => Ok(bytes.clone()),
        _ => text(v, at).map(String::into_bytes),
    }
}

fn utf8_only(name: &str) -> Result<()> {
    match name.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" | "US-ASCII" => Ok(()),
        other => Err(Error::unsupported(format!("the character set {other} is not supported"))
            .with_hint("texts are UTF-8")),
    }
}

fn length(v: &[Value]) -> Result<Value> {
    int(match &v[0] {
        Value::Binary(bytes) => bytes.len(),
        _ => text(v, 0)?.chars().count(),
    })
}

fn initcap(of: &str) -> String {
    let mut is_begin = true;
    let mut all = String::with_capacity(of.len());
    for char in of.chars() {
        match is_begin {
            true => all.extend(char.to_uppercase()),
            false => all.extend(char.to_lowercase()),
        }
        is_begin = char.is_whitespace();
    }
    all
}

fn repeat(of: &str, times: i64) -> Result<Value> {
    let times = usize::try_from(times).unwrap_or_default();
    if of.len().saturating_mul(times) > TEXT_BYTES_MAX {
        return Err(too_long());
    }
    Ok(Value::Text(of.repeat(times)))
}

/// NULL for a negative length and for nothing to fill with.
fn pad(v: &[Value], is_left: bool) -> Result<Value> {
    let (of, length) = (text(v, 0)?, whole(v, 1)?.unwrap_or_default());
    let fill = text(v, 2)?;
    let Ok(length) = usize::try_from(length) else { return Ok(Value::Null) };
    if fill.is_empty() {
        return Ok(Value::Null);
    }
    if length > TEXT_BYTES_MAX / 4 {
        return Err(too_long());
    }
    let count = of.chars().count();
    if count >= length {
        return Ok(Value::Text(of.chars().take(length).collect()));
    }
    let filling: String = fill.chars().cycle().take(length - count).collect();
    Ok(Value::Text(if is_left { filling + &of } else { of + &filling }))
}

fn substr_type(types: &[Type]) -> Result<Type> {
    Ok(if types[0] == Type::Binary { Type::Binary } else { Type::Text })
}

/// Places count from 1, or from the end where they are negative; 0 is 1.
fn substr(v: &[Value]) -> Result<Value> {
    let (Some(from), length) = (whole(v, 1)?, whole(v, 2)?) else { return Ok(Value::Null) };
    let length = if v.len() > 2 { length.unwrap_or_default() } else { i64::from(i32::MAX) };
    let range = |count: usize| -> (usize, usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if from.unsigned_abs() > count.unsigned_abs() || length <= 0 {
            return (0, 0);
        }
        let begin = if from > 0 {
            from - 1
        } else if from < 0 {
            count + from
        } else {
            0
        };
        let end = begin.saturating_add(length).min(count);
        (usize::try_from(begin).unwrap_or_default(), usize::try_from(end).unwrap_or_default())
    };
    if let Value::Binary(bytes) = &v[0] {
        let (begin, end) = range(bytes.len());
        return Ok(Value::Binary(bytes.get(begin..end).unwrap_or_default().to_vec()));
    }
    let of = text(v, 0)?;
    let (begin, end) = range(of.chars().count());
    Ok(Value::Text(of.chars().skip(begin).take(end - begin).collect()))
}

fn substring_index(v: &[Value]) -> Result<Value> {
    let (of, by, count) = (text(v, 0)?, text(v, 1)?, whole(v, 2)?.unwrap_or_default());
    if by.is_empty() || count == 0 {
        return Ok(Value::Text(String::new()));
    }
    let nth = usize::try_from(count.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let found = match count > 0 {
        true => of.match_indices(&by).nth(nth).map(|(at, _)| of[..at].to_owned()),
        false => of.rmatch_indices(&by).nth(nth).map(|(at, _)| of[at + by.len()..].to_owned()),
    };
    Ok(Value::Text(found.unwrap_or(of)))
}

/// The place of a text in another, from 1; 0 where it is not.
fn position(of: &str, what: &str, from: i64) -> Result<Value> {
    let Some(skipped) = usize::try_from(from).ok().and_then(|from| from.checked_sub(1)) else {
        return Ok(Value::Int(0));
    };
    let Some(begin) = of.char_indices().map(|(at, _)| at).chain([of.len()]).nth(skipped) else {
        return Ok(Value::Int(0));
    };
    match of[begin..].find(what) {
        Some(at) => int(of[..begin + at].chars().count() + 1),
        None => Ok(Value::Int(0)),
    }
}

fn translate(v: &[Value]) -> Result<Value> {
    let (of, from, to) = (text(v, 0)?, text(v, 1)?, text(v, 2)?);
    let to: Vec<char> = to.chars().collect();
    let changed = of.chars().filter_map(|char| match from.chars().position(|one| one == char) {
        Some(at) => to.get(at).copied(),
        None => Some(char),
    });
    Ok(Value::Text(changed.collect()))
}

/// The character of a number's lowest byte; `''` of a negative one.
fn chr(v: &[Value]) -> Result<Value> {
    let Some(code) = whole(v, 0)? else { return Ok(Value::Null) };
    let code = u8::try_from(code.rem_euclid(256)).unwrap_or_default();
    Ok(Value::Text(match whole(v, 0)? {
        Some(..0) => String::new(),
        _ => char::from(code).to_string(),
    }))
}

fn concat_ws_type(types: &[Type]) -> Result<Type> {
    let is_text = |of: &Type| match of {
        Type::Text | Type::Null => true,
        Type::List(of) => matches!(**of, Type::Text | Type::Null),
        _ => false,
    };
    if types.iter().all(is_text) {
        Ok(Type::Text)
    } else {
        Err(no_function("concat_ws", types)
            .with_hint("it joins strings and arrays of strings; cast the others"))
    }
}

/// NULLs are left out, but those of arrays; a separator that is NULL gives NULL.
fn concat_ws(v: &[Value]) -> Result<Value> {
    if v[0].is_null() {
        return Ok(Value::Null);
    }
    let by = text(v, 0)?;
    let mut parts = Vec::new();
    for value in &v[1..] {
        match value {
            Value::List(items) => {
                // As Hive 4.0.1: NULLs of arrays are texts.
                for item in items {
                    parts.push(item.text()?.unwrap_or_else(|| "null".to_owned()));
                }
            }
            other => parts.extend(other.text()?),
        }
    }
    let length = parts.iter().map(|part| part.len() + by.len()).sum::<usize>();
    if length > TEXT_BYTES_MAX { Err(too_long()) } else { Ok(Value::Text(parts.join(&by))) }
}

fn elt(v: &[Value]) -> Result<Value> {
    let at = whole(v, 0)?.and_then(|at| usize::try_from(at).ok()).filter(|at| *at > 0);
    Ok(match at.and_then(|at| v.get(at)) {
        Some(value) => maybe(value.text()?),
        None => Value::Null,
    })
}

fn field(v: &[Value]) -> Result<Value> {
    if v[0].is_null() {
        return Ok(Value::Int(0));
    }
    for (at, value) in v.iter().enumerate().skip(1) {
        if super::operators::ordering(&v[0], value)? == Some(std::cmp::Ordering::Equal) {
            return int(at);
        }
    }
    Ok(Value::Int(0))
}

fn find_in_set(v: &[Value]) -> Result<Value> {
    let (what, of) = (text(v, 0)?, text(v, 1)?);
    if what.contains(',') {
        return Ok(Value::Int(0));
    }
    int(of.split(',').position(|part| part == what).map_or(0, |at| at + 1))
}

/// Four characters; `''` stays `''`, and what begins with no letter is NULL (Hive's `GenericUDFSoundex`: the codec
/// refuses it).
fn soundex(of: &str) -> Value {
    let letters: Vec<char> =
        of.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_uppercase()).collect();
    let Some(first) = letters.first() else { return Value::Text(String::new()) };
    let code = |letter: char| match letter {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        'H' | 'W' => '-',
        _ => '0',
    };
    let mut all = String::from(*first);
    let mut last = code(*first);
    for letter in &letters[1..] {
        let digit = code(*letter);
        if digit == '-' {
            continue;
        }
        if digit != '0' && digit != last {
            all.push(digit);
        }
        last = digit;
        if all.len() == 4 {
            break;
        }
    }
    while all.len() < 4 {
        all.push('0');
    }
    Value::Text(all)
}
