//! Lines into fields, as `LazySimpleSerDe` splits them.

use super::Delimited;

/// The texts of some fields of all lines; those that a line lacks, and those that stand for NULL, are `None`.
pub(super) fn columns<'a>(
    lines: &[&'a [u8]],
    format: &Delimited,
    places: &[usize],
) -> Vec<Vec<Option<&'a [u8]>>> {
    let mut columns: Vec<Vec<Option<&[u8]>>> =
        places.iter().map(|_| Vec::with_capacity(lines.len())).collect();
    let wanted = places.iter().max().map_or(0, |last| last + 1);
    let mut fields = Vec::new();
    for line in lines {
        split(line, format.separators[0], format.escape, wanted, &mut fields);
        for (column, place) in columns.iter_mut().zip(places) {
            let text = fields.get(*place).copied();
            column.push(text.filter(|text| *text != format.null));
        }
    }
    columns
}

/// The first `wanted` parts of a text.
pub(super) fn split<'a>(
    text: &'a [u8],
    separator: u8,
    escape: Option<u8>,
    wanted: usize,
    parts: &mut Vec<&'a [u8]>,
) {
    parts.clear();
    let mut begin = 0;
    let Some(escape) = escape else {
        for end in memchr::memchr_iter(separator, text) {
            if parts.len() == wanted {
                return;
            }
            parts.push(&text[begin..end]);
            begin = end + 1;
        }
        if parts.len() < wanted {
            parts.push(&text[begin..]);
        }
        return;
    };
    let mut at = 0;
    while at < text.len() && parts.len() < wanted {
        if text[at] == separator {
            parts.push(&text[begin..at]);
            begin = at + 1;
        } else if text[at] == escape && at + 1 < text.len() {
            at += 1;
        }
        at += 1;
    }
    if parts.len() < wanted {
        parts.push(&text[begin..]);
    }
}
