//! Finds one record and its fields in a buffer; a pure function of the bytes.

use super::dialect::{Dialect, LineEnd};

/// Where a field's bytes are in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
    pub form: Form,
}

/// How a field's bytes become its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they stand.
    Plain,
    /// As they stand; there were quotes around them.
    Quoted,
    /// Inside quotes, with escapes to take out.
    QuotedEscaped,
    /// PostgreSQL's text with backslashes to take out.
    Backslashed,
}

/// One record at the start of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its bytes without the line end.
    pub content: usize,
    /// Its bytes with the line end.
    pub len: usize,
    /// Physical lines it takes.
    pub lines: u64,
    pub defect: Option<Defect>,
}

/// What is wrong with the form of a record; it then is one physical line, with the fields before
/// the defect that end on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// A quoted field is never closed; where its quote is.
    UnclosedQuote(usize),
    /// Something other than a delimiter follows a closing quote; where.
    TextAfterQuote(usize),
}

/// One step inside a record.
enum Step {
    /// The field ends before `end`, the next starts at `next`.
    Field {
        span: Span,
        next: usize,
        lines: u64,
    },
    /// The field is the record's last; the line end has `ending` bytes.
    Last {
        span: Span,
        content: usize,
        ending: usize,
        lines: u64,
    },
    Bad(Defect),
    NeedsMore,
}

/// Finds the record at the start of `data` and fills `spans` with its fields.
///
/// `None`: it does not end in `data`, read more. With `at_end` there always is one.
pub(crate) fn scan(
    dialect: &Dialect,
    data: &[u8],
    at_end: bool,
    spans: &mut Vec<Span>,
) -> Option<Record> {
    spans.clear();
    let mut at = 0;
    let mut lines = 1;
    loop {
        match field(dialect, data, at, at_end) {
            Step::Field { span, next, lines: more } => {
                spans.push(span);
                lines += more;
                at = next;
            }
            Step::Last { span, content, ending, lines: more } => {
                spans.push(span);
                let len = content + ending;
                return Some(Record { content, len, lines: lines + more, defect: None });
            }
            Step::Bad(defect) => {
                let (content, len) = dialect.physical_line(data, at_end)?;
                // Fields before the defect may reach beyond this line.
                spans.retain(|span| span.end as usize <= content);
                return Some(Record { content, len, lines: 1, defect: Some(defect) });
            }
            Step::NeedsMore => return None,
        }
    }
}

#[inline]
fn field(dialect: &Dialect, data: &[u8], start: usize, at_end: bool) -> Step {
    if let Some(quote) = dialect.quote {
        let mut open = start;
        if dialect.trim {
            open += blanks(dialect, &data[start..]);
        }
        if data.get(open) == Some(&quote) {
            return quoted(dialect, quote, data, open, at_end);
        }
    }
    plain(dialect, data, start, at_end)
}

#[inline]
fn plain(dialect: &Dialect, data: &[u8], start: usize, at_end: bool) -> Step {
    let mut at = start;
    let mut form = Form::Plain;
    let mut lines = 0;
    let span = |end: usize, form| Span { start: start as u32, end: end as u32, form };
    while let Some(&byte) = data.get(at) {
        if byte == dialect.delimiter {
            return Step::Field { span: span(at, form), next: at + 1, lines };
        }
        if byte == b'\n' || byte == b'\r' {
            match dialect.line_end(data, at, at_end) {
                LineEnd::Ends(ending) => {
                    return Step::Last { span: span(at, form), content: at, ending, lines };
                }
                LineEnd::Unknown => return Step::NeedsMore,
                LineEnd::Data => {}
            }
        } else if byte == b'\\' && dialect.backslash {
            form = Form::Backslashed;
            at += 1;
            // A line end after a backslash is data.
            if matches!(data.get(at), Some(b'\n' | b'\r')) {
                match dialect.line_end(data, at, at_end) {
                    LineEnd::Ends(ending) => {
                        lines += 1;
                        at += ending - 1;
                    }
                    LineEnd::Unknown => return Step::NeedsMore,
                    LineEnd::Data => {}
                }
            }
        }
        at += 1;
    }
    if !at_end {
        return Step::NeedsMore;
    }
    // A backslash may be the last byte.
    let end = at.min(data.len());
    Step::Last { span: span(end, form), content: end, ending: 0, lines }
}

/// A field whose quote opens at `open`.
fn quoted(dialect: &Dialect, quote: u8, data: &[u8], open: usize, at_end: bool) -> Step {
    let escape = dialect.escape.unwrap_or(quote);
    let start = open + 1;
    let mut form = Form::Quoted;
    let mut at = start;
    let close = loop {
        let Some(found) = memchr::memchr2(quote, escape, &data[at..]) else {
            return if at_end { Step::Bad(Defect::UnclosedQuote(open)) } else { Step::NeedsMore };
        };
        at += found;
        let next = data.get(at + 1);
        if next.is_none() && !at_end {
            return Step::NeedsMore;
        }
        let escapes = data[at] == escape && next.is_some_and(|b| *b == quote || *b == escape);
        if escapes {
            form = Form::QuotedEscaped;
            at += 2;
        } else if data[at] == quote {
            break at;
        } else {
            at += 1;
        }
    };
    let span = Span { start: start as u32, end: close as u32, form };
    let lines = dialect.line_ends(&data[start..close]);
    let after = close + 1 + blanks(dialect, &data[close + 1..]);
    match data.get(after) {
        Some(&byte) if byte == dialect.delimiter => Step::Field { span, next: after + 1, lines },
        Some(b'\n' | b'\r') => match dialect.line_end(data, after, at_end) {
            LineEnd::Ends(ending) => Step::Last { span, content: after, ending, lines },
            LineEnd::Unknown => Step::NeedsMore,
            LineEnd::Data => Step::Bad(Defect::TextAfterQuote(after)),
        },
        Some(_) => Step::Bad(Defect::TextAfterQuote(after)),
        None if at_end => Step::Last { span, content: after, ending: 0, lines },
        None => Step::NeedsMore,
    }
}

/// How many blanks `data` starts with.
fn blanks(dialect: &Dialect, data: &[u8]) -> usize {
    data.iter().take_while(|&&b| (b == b' ' || b == b'\t') && b != dialect.delimiter).count()
}

/// The text of a field; `record` is what its span counts from.
pub(crate) fn text<'a>(
    dialect: &Dialect,
    span: Span,
    record: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> &'a [u8] {
    let raw = &record[span.start as usize..span.end as usize];
    match span.form {
        Form::Plain | Form::Quoted => raw,
        Form::QuotedEscaped => {
            let quote = dialect.quote.unwrap_or(b'"');
            unquote(raw, quote, dialect.escape.unwrap_or(quote), scratch);
            scratch
        }
        Form::Backslashed => {
            unbackslash(raw, scratch);
            scratch
        }
    }
}

fn unquote(raw: &[u8], quote: u8, escape: u8, out: &mut Vec<u8>) {
    out.clear();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(escape, rest) {
        out.extend_from_slice(&rest[..at]);
        match rest.get(at + 1) {
            Some(&next) if next == quote || next == escape => {
                out.push(next);
                rest = &rest[at + 2..];
            }
            _ => {
                out.push(escape);
                rest = &rest[at + 1..];
            }
        }
    }
    out.extend_from_slice(rest);
}

/// PostgreSQL's escapes: `\b \f \n \r \t \v`, `\` and one to three octal digits, `\x` and one or
/// two hex digits; any other byte after a backslash stands for itself.
fn unbackslash(raw: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (byte, used) = match &rest[at + 1..] {
            [b'b', ..] => (0x08, 1),
            [b'f', ..] => (0x0c, 1),
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b't', ..] => (b'\t', 1),
            [b'v', ..] => (0x0b, 1),
            [b'x', digits @ ..] if digits.first().is_some_and(u8::is_ascii_hexdigit) => {
                let (value, used) = number(digits, 16, 2);
                (value, used + 1)
            }
            digits @ [b'0'..=b'7', ..] => number(digits, 8, 3),
            [other, ..] => (*other, 1),
            // A lone one at the end stands for itself.
            [] => (b'\\', 0),
        };
        out.push(byte);
        rest = &rest[at + 1 + used..];
    }
    out.extend_from_slice(rest);
}

/// The number at the start of `text`, of at most `digits` digits, and how many it has.
fn number(text: &[u8], base: u32, digits: usize) -> (u8, usize) {
    let mut value = 0;
    let mut used = 0;
    for digit in text.iter().take(digits).map_while(|&b| (b as char).to_digit(base)) {
        value = value * base + digit;
        used += 1;
    }
    (value as u8, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, LineEnding, LoadOptions};

    /// Reads all records, with the buffer growing byte by byte, and compares fields and lines.
    fn check(options: &LoadOptions, format: Format, input: &str, expected: &[(&[&str], u64)]) {
        let dialect = Dialect::new(options, format);
        let mut got: Vec<(Vec<String>, u64)> = Vec::new();
        let (mut start, mut end, mut spans) = (0, 0, Vec::new());
        while start < input.len() {
            let at_end = end == input.len();
            let data = &input.as_bytes()[start..end];
            let Some(record) = scan(&dialect, data, at_end, &mut spans) else {
                end += 1;
                continue;
            };
            if record.len == 0 {
                end += 1;
                continue;
            }
            assert_eq!(record.defect, None, "{input:?}");
            let fields = spans
                .iter()
                .map(|span| {
                    let mut scratch = Vec::new();
                    let text = text(&dialect, *span, data, &mut scratch);
                    String::from_utf8(text.to_vec()).unwrap()
                })
                .collect();
            got.push((fields, record.lines));
            start += record.len;
        }
        let got: Vec<(Vec<&str>, u64)> =
            got.iter().map(|(f, n)| (f.iter().map(String::as_str).collect(), *n)).collect();
        let expected: Vec<(Vec<&str>, u64)> =
            expected.iter().map(|(f, n)| (f.to_vec(), *n)).collect();
        assert_eq!(got, expected, "{input:?}");
    }

    #[test]
    fn line_ends_of_all_kinds() {
        let mut options = LoadOptions::default();
        for input in ["a,b\nc,d\n", "a,b\r\nc,d", "a,b\rc,d\r", "a,b\rc,d\r\n"] {
            check(&options, Format::Csv, input, &[(&["a", "b"], 1), (&["c", "d"], 1)]);
        }
        check(&options, Format::Csv, "a\n\nb", &[(&["a"], 1), (&[""], 1), (&["b"], 1)]);
        options.line_ending = LineEnding::Lf;
        check(&options, Format::Csv, "a\r\nb", &[(&["a\r"], 1), (&["b"], 1)]);
        options.line_ending = LineEnding::Cr;
        check(&options, Format::Csv, "a\nb\rc", &[(&["a\nb"], 1), (&["c"], 1)]);
        options.line_ending = LineEnding::CrLf;
        check(&options, Format::Csv, "a\nb\rc\r\nd\r", &[(&["a\nb\rc"], 1), (&["d\r"], 1)]);
    }

    #[test]
    fn quotes() {
        let mut options = LoadOptions::default();
        check(
            &options,
            Format::Csv,
            "\"a,\"\"b\"\"\r\n\",\"\"\nc,d",
            &[(&["a,\"b\"\r\n", ""], 2), (&["c", "d"], 1)],
        );
        check(&options, Format::Csv, "a\"b,\"c\" \n", &[(&["a\"b", "c"], 1)]);
        check(&options, Format::Csv, " \"c\",d", &[(&[" \"c\"", "d"], 1)]);
        options.trim = true;
        check(&options, Format::Csv, " \"c\",d", &[(&["c", "d"], 1)]);
        options.escape = Some(b'\\');
        check(&options, Format::Csv, "\"a\\\"b\\\\\\n\",c", &[(&["a\"b\\\\n", "c"], 1)]);
        options.quote = None;
        options.trim = false;
        check(&options, Format::Csv, "\"a,b\"", &[(&["\"a", "b\""], 1)]);
    }

    #[test]
    fn postgresql_text() {
        let options = LoadOptions::default();
        check(
            &options,
            Format::PgText,
            "a\\tb\t\\\\N\\x41\\101\\q\nc\\\nd\t\"",
            &[(&["a\tb", "\\NAAq"], 1), (&["c\nd", "\""], 2)],
        );
    }

    #[test]
    fn defects_take_one_physical_line() {
        let dialect = Dialect::new(&LoadOptions::default(), Format::Csv);
        let defect = |input: &str| {
            let record = scan(&dialect, input.as_bytes(), true, &mut Vec::new()).unwrap();
            (record.content, record.len, record.defect)
        };
        assert_eq!(defect("a,\"b\nc\n"), (4, 5, Some(Defect::UnclosedQuote(2))));
        assert_eq!(defect("\"a\"b,c\r\nd"), (6, 8, Some(Defect::TextAfterQuote(3))));
        assert_eq!(scan(&dialect, b"a,\"b\nc\n", false, &mut Vec::new()), None);
    }

    /// A field before the defect may reach over more lines than the one that the record takes.
    #[test]
    fn a_record_with_a_defect_has_fields_of_its_line_only() {
        let dialect = Dialect::new(&LoadOptions::default(), Format::Csv);
        let mut spans = Vec::new();
        let record = scan(&dialect, b"x,\"a\nb\",\"c\"d\ne", true, &mut spans).unwrap();
        assert_eq!((record.content, record.len), (4, 5));
        assert_eq!(record.defect, Some(Defect::TextAfterQuote(11)));
        assert_eq!(spans, [Span { start: 0, end: 1, form: Form::Plain }]);
    }
}
