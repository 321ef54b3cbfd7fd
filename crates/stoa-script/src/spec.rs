//! How rows are written for a program, and read from it: `columns=2 input=9:5C4E output=9:5C4E sort=af`.
//!
//! The text stands in statements, where `hive_transform` has it as an operand.

use std::fmt;
use std::str::FromStr;

use stoa_error::{Error, Result};

/// Columns of one row.
const COLUMNS_MAX: usize = 4096;

/// How the fields of a line stand, as in Hive's `LazySimpleSerDe`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// What stands between two fields.
    pub field: u8,
    /// What stands before a field separator, a line break and itself where they are part of a value; nothing does if
    /// `None`.
    pub escape: Option<u8>,
    /// What stands for NULL.
    pub null: String,
}

impl Default for Format {
    /// Tabs, `\N`, no escapes: what Hive uses for programs.
    fn default() -> Self {
        Self { field: b'\t', escape: None, null: "\\N".to_owned() }
    }
}

/// How rows are sorted by one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// Largest first.
    pub descending: bool,
    /// NULLs before all others.
    pub nulls_first: bool,
}

/// How rows go through a program. A row has the columns that the program gets, then the keys by which rows are distributed,
/// then those by which they are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Columns that come back.
    pub columns: usize,
    /// Whether the last column is the rest of the line, separators and all.
    pub takes_rest: bool,
    /// Whether a program may end before it has read all rows.
    pub partial: bool,
    /// How many columns say which rows go to one process.
    pub distribute: usize,
    /// The columns behind those, by which the rows of a process are sorted.
    pub sort: Vec<SortKey>,
    /// What the program reads.
    pub input: Format,
    /// What it writes.
    pub output: Format,
}

impl Spec {
    /// Columns of the rows that go in which the program does not get: the last ones.
    pub fn keys(&self) -> usize {
        self.distribute + self.sort.len()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.field)?;
        self.null.bytes().try_for_each(|byte| write!(f, "{byte:02X}"))?;
        self.escape.map_or(Ok(()), |escape| write!(f, ":{escape}"))
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "columns={}", self.columns)?;
        write!(f, " input={} output={}", self.input, self.output)?;
        if self.takes_rest {
            f.write_str(" rest")?;
        }
        if self.partial {
            f.write_str(" partial")?;
        }
        if self.distribute > 0 {
            write!(f, " distribute={}", self.distribute)?;
        }
        for (at, key) in self.sort.iter().enumerate() {
            f.write_str(if at == 0 { " sort=" } else { "," })?;
            f.write_str(if key.descending { "d" } else { "a" })?;
            f.write_str(if key.nulls_first { "f" } else { "l" })?;
        }
        Ok(())
    }
}

fn wrong(word: &str) -> Error {
    Error::invalid(format!("\"{word}\" is no part of a description of rows"))
        .with_sqlstate("22023")
        .with_hint("write SELECT TRANSFORM (…) USING '…' in HiveQL, which becomes hive_transform")
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let mut parts = text.split(':');
        let field = parts.next().and_then(|part| part.parse().ok()).ok_or(())?;
        let null = parts.next().and_then(unhex).ok_or(())?;
        let escape = parts.next().map(|part| part.parse().map_err(|_| ())).transpose()?;
        let is_line = |byte: u8| matches!(byte, b'\n' | b'\r');
        match parts.next().is_some() || is_line(field) || escape.is_some_and(is_line) {
            true => Err(()),
            false => Ok(Self { field, escape, null }),
        }
    }
}

fn unhex(text: &str) -> Option<String> {
    let digits = text.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    String::from_utf8(pairs.collect::<Option<Vec<u8>>>()?).ok()
}

fn sort_key(text: &str) -> Option<SortKey> {
    let [order, nulls] = text.as_bytes() else { return None };
    let is = |byte: u8, yes: u8, no: u8| match byte {
        byte if byte == yes => Some(true),
        byte if byte == no => Some(false),
        _ => None,
    };
    Some(SortKey { descending: is(*order, b'd', b'a')?, nulls_first: is(*nulls, b'f', b'l')? })
}

impl FromStr for Spec {
    type Err = Error;

    /// Reads what [`fmt::Display`] writes.
    ///
    /// # Errors
    /// 22023, with the word that cannot be read.
    fn from_str(text: &str) -> Result<Self> {
        let mut spec = Self::default();
        for word in text.split_ascii_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let count = || {
                let count = value.parse::<usize>().ok().filter(|count| *count <= COLUMNS_MAX);
                count.ok_or_else(|| wrong(word))
            };
            let format = || value.parse::<Format>().map_err(|()| wrong(word));
            match name {
                "columns" => spec.columns = count()?,
                "distribute" => spec.distribute = count()?,
                "rest" if value.is_empty() => spec.takes_rest = true,
                "partial" if value.is_empty() => spec.partial = true,
                "input" => spec.input = format()?,
                "output" => spec.output = format()?,
                "sort" => {
                    let keys = value.split(',').map(sort_key).collect::<Option<Vec<_>>>();
                    spec.sort = keys.ok_or_else(|| wrong(word))?;
                }
                _ => return Err(wrong(word)),
            }
        }
        match spec.columns {
            0 => Err(wrong("columns=0")),
            _ => Ok(spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let sort = vec![
            SortKey { descending: false, nulls_first: true },
            SortKey { descending: true, nulls_first: false },
        ];
        let format = Format { field: 1, escape: Some(b'\\'), null: "ä".to_owned() };
        let base = Spec {
            columns: 2,
            takes_rest: true,
            partial: true,
            distribute: 1,
            sort,
            input: format,
            output: Format::default(),
        };
        let plain = Spec {
            takes_rest: false,
            partial: false,
            distribute: 0,
            sort: Vec::new(),
            input: Format { null: String::new(), ..Format::default() },
            ..base.clone()
        };
        for spec in [base, plain] {
            assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec, "{spec}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "columns=0",
            "columns=x",
            "columns=1 what=2",
            "columns=1 sort=x",
            "columns=1 sort=",
            "columns=1 input=10:",
            "columns=1 input=9:5",
            "columns=1 input=9:FF",
            "columns=1 input=9",
            "columns=1 input=9:5C:13",
            "columns=99999999",
            "columns=1 rest=1",
        ] {
            assert_eq!(text.parse::<Spec>().unwrap_err().sqlstate(), "22023", "{text}");
        }
    }
}
