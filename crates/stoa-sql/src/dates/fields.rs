//! A text of a date or time as fields.

/// What a field looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Digits, perhaps with one dot.
    Number,
    /// Numbers and words with `-`, `/` or `.` between them; also a zone such as `Asia/Tokyo`.
    Parts,
    /// Digits with colons.
    Clock,
    /// A sign and digits.
    Offset,
    /// Letters.
    Word,
}

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

/// The fields of a text; `None` where something is of none.
pub(super) fn of(text: &str) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let Some(first) = rest.chars().next() else { return Some(fields) };
        let (kind, length) = match first {
            '0'..='9' => number(rest),
            'a'..='z' | 'A'..='Z' => word(rest),
            '+' | '-' => (Kind::Offset, signed(rest)?),
            _ => return None,
        };
        let (text, behind) = rest.split_at(length);
        fields.push(Field { kind, text });
        rest = behind;
    }
}

/// How many bytes at the start are of a kind.
fn span(text: &str, is_one: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|byte| !is_one(byte)).unwrap_or(text.len())
}

fn number(text: &str) -> (Kind, usize) {
    let digits = span(text, |byte| byte.is_ascii_digit());
    let rest = &text[digits..];
    let Some(between) = rest.bytes().next() else { return (Kind::Number, digits) };
    match between {
        b':' => {
            let length = span(text, |byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
            (Kind::Clock, length)
        }
        b'-' | b'/' | b'.' => {
            let begin = digits + 1;
            let is_number = text[begin..].starts_with(|c: char| c.is_ascii_digit());
            if !is_number && between != b'.' || text[begin..].starts_with(char::is_alphabetic) {
                let more =
                    span(&text[begin..], |byte| byte.is_ascii_alphanumeric() || byte == between);
                return (Kind::Parts, begin + more);
            }
            let second = span(&text[begin..], |byte| byte.is_ascii_digit());
            let at = begin + second;
            match text[at..].bytes().next() == Some(between) {
                true => {
                    let more = span(&text[at..], |byte| byte.is_ascii_digit() || byte == between);
                    // `1999-01-Jan` goes on with letters only behind the separator.
                    (Kind::Parts, at + more)
                }
                false if between == b'.' => (Kind::Number, at),
                false => (Kind::Parts, at),
            }
        }
        _ => (Kind::Number, digits),
    }
}

fn word(text: &str) -> (Kind, usize) {
    let letters = span(text, |byte| byte.is_ascii_alphabetic());
    let goes_on = match text[letters..].bytes().next() {
        Some(b'-' | b'/' | b'.' | b'_') => true,
        // `GMT+3`, `EST5EDT`; not `J2451187` or `T10`.
        Some(b'+' | b'0'..=b'9') => {
            let word = text[..letters].to_ascii_lowercase();
            !matches!(
                word.as_str(),
                "j" | "jd" | "julian" | "t" | "z" | "utc" | "gmt" | "am" | "pm"
            ) && super::month_of(&word).is_none()
                && !super::is_weekday(&word)
        }
        _ => false,
    };
    if !goes_on {
        return (Kind::Word, letters);
    }
    let is_zone = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
    };
    (Kind::Parts, span(text, is_zone))
}

fn signed(text: &str) -> Option<usize> {
    let blanks = span(&text[1..], |byte| byte.is_ascii_whitespace());
    let digits = span(&text[1 + blanks..], |byte| byte.is_ascii_digit() || byte == b':');
    (digits > 0).then_some(1 + blanks + digits)
}

/// Runs of digits and of letters.
pub(super) fn runs(text: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '0'..='9' => span(rest, |byte| byte.is_ascii_digit()),
            'a'..='z' | 'A'..='Z' => span(rest, |byte| byte.is_ascii_alphabetic()),
            other => {
                rest = &rest[other.len_utf8()..];
                continue;
            }
        };
        let (run, behind) = rest.split_at(length);
        runs.push(run);
        rest = behind;
    }
    runs
}
