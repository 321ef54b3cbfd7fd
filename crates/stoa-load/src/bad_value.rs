//! Why a value or line does not fit, before its place is known.

use stoa_error::{Error, Place};

/// Longest piece of a value that a message repeats, in characters.
const SHOWN_CHARS: usize = 80;

/// What is wrong with one value or line. Boxed where returned: it is the rare case.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadValue {
    /// What is wrong, as it stands after the place: `"1,137" is not a bigint`.
    pub what: String,
    pub hint: Option<String>,
    pub sqlstate: &'static str,
}

impl BadValue {
    /// `"value" is not a bigint`.
    pub fn not_a(value: &[u8], type_name: &str) -> Box<Self> {
        let article = if type_name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        Self::boxed(
            format!("{} is not {article} {type_name}", quoted(value)),
            sqlstate_of(type_name),
        )
    }

    /// `"300" is out of range for smallint`.
    pub fn out_of_range(value: &[u8], type_name: &str) -> Box<Self> {
        let state = if sqlstate_of(type_name) == "22007" { "22008" } else { "22003" };
        Self::boxed(format!("{} is out of range for {type_name}", quoted(value)), state)
    }

    pub fn not_utf8(value: &[u8]) -> Box<Self> {
        let mut bad = Self::boxed(format!("{} is not valid UTF-8", quoted(value)), "22021");
        bad.hint = Some(
            "set the option encoding to latin1, or convert the file, for instance with iconv"
                .to_owned(),
        );
        bad
    }

    /// `incorrect binary data for type integer: 8 bytes instead of 4`.
    pub fn binary(type_name: &str, what: &str) -> Box<Self> {
        Self::boxed(format!("incorrect binary data for type {type_name}: {what}"), "22P03")
    }

    pub fn null() -> Box<Self> {
        Self::boxed("no value, but the column must not be NULL".to_owned(), "23502")
    }

    /// Something wrong with the line as such (PostgreSQL's bad_copy_file_format).
    pub fn line(what: impl Into<String>) -> Box<Self> {
        Self::boxed(what.into(), "22P04")
    }

    fn boxed(what: String, sqlstate: &'static str) -> Box<Self> {
        Box::new(Self { what, hint: None, sqlstate })
    }

    pub fn hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint.get_or_insert(hint.into());
        self
    }

    /// The error, once the place is known.
    pub fn into_error(self, place: Place) -> Error {
        let error = Error::invalid(self.what).with_sqlstate(self.sqlstate).at(place);
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

fn sqlstate_of(type_name: &str) -> &'static str {
    match type_name {
        "date" | "timestamp" | "timestamptz" | "time" => "22007",
        _ => "22P02",
    }
}

/// The value in quotes, escaped, and cut where it is long.
pub(crate) fn quoted(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let mut shown = String::with_capacity(text.len().min(SHOWN_CHARS) + 2);
    shown.push('"');
    for (at, c) in text.chars().enumerate() {
        if at == SHOWN_CHARS {
            shown.push('…');
            break;
        }
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown.push('"');
    shown
}
