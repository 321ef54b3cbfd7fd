//! Lines into fields, as `OpenCSVSerde` splits them: by the rules of opencsv 2.3's `CSVParser`.

use super::Csv;

/// The texts of some fields of all lines; those that a line lacks are `None`.
pub(super) fn columns(lines: &[&[u8]], format: Csv, places: &[usize]) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut columns: Vec<Vec<Option<Vec<u8>>>> =
        places.iter().map(|_| Vec::with_capacity(lines.len())).collect();
    for line in lines {
        let fields = split(line, format);
        for (column, place) in columns.iter_mut().zip(places) {
            column.push(fields.get(*place).cloned());
        }
    }
    columns
}

/// The fields of a line. One whose quotes do not end is none.
fn split(line: &[u8], format: Csv) -> Vec<Vec<u8>> {
    let mut fields = Vec::new();
    let mut field = Vec::new();
    let mut in_quotes = false;
    let mut at = 0;
    while let Some(byte) = line.get(at).copied() {
        let next = line.get(at + 1).copied();
        if byte == format.read_escape {
            if let Some(next) = next
                && in_quotes
                && (next == format.quote || next == format.read_escape)
            {
                field.push(next);
                at += 1;
            }
        } else if byte == format.quote {
            if in_quotes && next == Some(format.quote) {
                field.push(format.quote);
                at += 1;
            } else {
                let is_within = at > 2
                    && line.get(at - 1) != Some(&format.separator)
                    && next.is_some_and(|next| next != format.separator);
                if is_within {
                    match !field.is_empty() && field.iter().all(u8::is_ascii_whitespace) {
                        true => field.clear(),
                        false => field.push(byte),
                    }
                }
                in_quotes = !in_quotes;
            }
        } else if byte == format.separator && !in_quotes {
            fields.push(std::mem::take(&mut field));
        } else {
            field.push(byte);
        }
        at += 1;
    }
    if !in_quotes {
        fields.push(field);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_those_of_opencsv() {
        let format = Csv { separator: b',', quote: b'"', read_escape: b'\\', write_escape: b'"' };
        let check = |line: &str, expected: &[&str]| {
            let fields = split(line.as_bytes(), format);
            let fields: Vec<&str> =
                fields.iter().map(|field| std::str::from_utf8(field).unwrap()).collect();
            assert_eq!(fields, expected, "{line}");
        };
        check("a,b,c", &["a", "b", "c"]);
        check("\"a,b\",\"say \"\"x\"\"\",", &["a,b", "say \"x\"", ""]);
        check("\"a\\\"b\",c\\d", &["a\"b", "cd"]);
        check("a,bc\"d\"ef,g", &["a", "bc\"d\"ef", "g"]);
        check("a,\"open", &["a"]);
        check("", &[""]);
    }
}
