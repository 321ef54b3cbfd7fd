//! The engine's names of types and values in SQL's words: `Utf8` is `text`, `Int64(1)` is `1`.

/// `text` with types and literals as SQL has them, up to where it shows the engine's insides; all else stays.
pub fn in_sql_words(text: &str) -> String {
    let text = without_insides(text);
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_inside = false;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        if length == 0 {
            is_inside = first == '.';
            said.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, behind) = rest.split_at(length);
        let (known, behind) = match is_inside {
            // A column of this name.
            true => (None, behind),
            false => type_or_value(word, behind),
        };
        said.push_str(known.as_deref().unwrap_or(word));
        rest = behind;
        is_inside = false;
    }
    said
}

/// A text up to the first value that is shown as the engine holds it: `Ident { value: … }`.
fn without_insides(text: &str) -> &str {
    const INSIDES: [&str; 6] =
        [" { expr:", " { value:", " { name:", " { relation:", "Ident {", "ObjectName("];
    let Some(at) = INSIDES.iter().filter_map(|inside| text.find(inside)).min() else { return text };
    // The name in front of it goes, too.
    let before = &text[..at];
    before.rsplit_once(' ').map_or("", |(before, _)| before).trim_end_matches([':', ' ', '('])
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What a word of the engine means, with what stands behind it.
fn type_or_value<'a>(word: &str, behind: &'a str) -> (Option<String>, &'a str) {
    let Some(name) = type_named(word) else { return (None, behind) };
    let Some((inner, rest)) = in_parentheses(behind) else {
        return (Some(name.to_owned()), behind);
    };
    let said = match word {
        "Timestamp" if inner.contains("UTC") || inner.contains("Some") || inner.contains('+') => {
            "timestamp with time zone".to_owned()
        }
        "Timestamp" => "timestamp without time zone".to_owned(),
        "List" | "LargeList" | "FixedSizeList" => {
            let item = inner.rsplit("x ").next().unwrap_or(inner);
            let item = item.trim_start_matches("non-null ").split(", field").next();
            format!("{}[]", in_sql_words(item.unwrap_or(inner)))
        }
        "Struct" => name.to_owned(),
        "Interval" | "Duration" | "Time32" | "Time64" | "FixedSizeBinary" => name.to_owned(),
        _ if word.starts_with("Decimal") => match inner.starts_with("Some") {
            true => name.to_owned(),
            false => format!("{name}({})", inner.replace(' ', "")),
        },
        // A value.
        _ => match inner.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
            Some(text) => format!("'{text}'"),
            None => inner.to_owned(),
        },
    };
    (Some(said), rest)
}

/// What stands in parentheses at the start of a text, and what comes after them.
fn in_parentheses(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('(')?;
    let mut depth = 1;
    for (at, c) in inner.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inner[..at], &inner[at + 1..]));
        }
    }
    None
}

/// The name in SQL of a type as Arrow writes it; `None` for other words.
fn type_named(word: &str) -> Option<&'static str> {
    Some(match word {
        "Boolean" => "boolean",
        "Int8" | "Int16" | "UInt8" => "smallint",
        "Int32" | "UInt16" => "integer",
        "Int64" | "UInt32" => "bigint",
        "UInt64" => "numeric",
        "Float16" | "Float32" => "real",
        "Float64" => "double precision",
        "Utf8" | "LargeUtf8" | "Utf8View" => "text",
        "Binary" | "LargeBinary" | "BinaryView" => "bytea",
        "FixedSizeBinary" => "uuid",
        "Date32" | "Date64" => "date",
        "Time32" | "Time64" => "time without time zone",
        "Timestamp" | "TimestampMicrosecond" | "TimestampNanosecond" | "TimestampMillisecond" => {
            "timestamp without time zone"
        }
        "Interval" | "Duration" | "IntervalMonthDayNano" => "interval",
        "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256" => "numeric",
        "List" | "LargeList" | "FixedSizeList" => "array",
        "Struct" => "record",
        _ => return None,
    })
}

/// An operation in the engine's words, `Int64 + Utf8` behind others, as the operator and SQL's names of both types.
pub(super) fn operation(text: &str) -> Option<(String, String, String)> {
    let behind = ["operation ", "expression "].iter().find_map(|word| text.split_once(word))?.1;
    let behind = behind.strip_suffix(" to valid types").unwrap_or(behind);
    let parts = apart(behind);
    let [left, sign @ .., right] = parts.as_slice() else { return None };
    let named = |part: &str| {
        let name = part.split('(').next().unwrap_or(part);
        type_named(name).is_some().then(|| in_sql_words(part))
    };
    (!sign.is_empty()).then_some(())?;
    Some((named(left)?, sign.join(" "), named(right)?))
}

/// The words of a text; what is in parentheses stays together.
fn apart(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_values_are_said_in_sql() {
        for (engine, sql) in [
            ("sum(Utf8)", "sum(text)"),
            ("f(Int64, Float64)", "f(bigint, double precision)"),
            ("Int64(1) + Utf8(\"a b\")", "1 + 'a b'"),
            ("Decimal128(5, 2)", "numeric(5,2)"),
            ("Timestamp(µs, \"UTC\")", "timestamp with time zone"),
            ("Timestamp(µs)", "timestamp without time zone"),
            ("Interval(MonthDayNano)", "interval"),
            ("List(Int64)", "bigint[]"),
            ("t.Utf8 and Boolean(NULL)", "t.Utf8 and NULL"),
            ("nothing (of this)", "nothing (of this)"),
            ("Struct(\"c0\": Int64) = Int64", "record = bigint"),
            ("is not valid Substring { expr: Identifier(Ident { value: x }) }", "is not valid"),
        ] {
            assert_eq!(in_sql_words(engine), sql, "{engine}");
        }
    }

    #[test]
    fn an_operation_is_taken_apart() {
        let told = |text| operation(text).map(|(a, op, b)| format!("{a} {op} {b}"));
        let text = "cannot coerce arithmetic expression Utf8 + Decimal128(5, 2) to valid types";
        assert_eq!(told(text).as_deref(), Some("text + numeric(5,2)"));
        let text = "argument type for comparison operation Utf8 IS DISTINCT FROM Boolean";
        assert_eq!(told(text).as_deref(), Some("text IS DISTINCT FROM boolean"));
        assert_eq!(told("operation nothing of these"), None);
    }
}
