//! Where something is wrong, as data.

use std::fmt;

/// A place that an error is about. Places lie in each other: a file, a stripe in it, a column.
///
/// Written in the words that users read; code looks at the variants, never at the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, by its path or location.
    File(String),
    /// What a command writes its results to.
    Output,
    /// A line of a text, counted from 1.
    Line(u64),
    /// A record of a file that is loaded.
    Record {
        /// The file, by its path or location.
        file: String,
        /// Which record.
        number: RecordNumber,
        /// The column of the table that its value is for.
        column: Option<String>,
    },
    /// A byte, counted from the start of what lies around this place.
    Offset(u64),
    /// A field of a schema, by name.
    Field(String),
    /// A parameter of a statement, counted from 1.
    Parameter(usize),
    /// A stripe of an ORC file, counted from 0.
    Stripe(usize),
    /// A row group of a stripe, counted from 0.
    RowGroup(usize),
    /// A column of an ORC file.
    Column {
        /// Its number in the tree of types; 0 is the root.
        id: u32,
        /// The names from the root to it, with dots between them.
        path: String,
    },
    /// A stream of a column in a stripe of an ORC file.
    Stream {
        /// Its kind, as the specification names it.
        kind: &'static str,
        /// Where in it.
        part: StreamPart,
    },
    /// Anything else, such as a section of a file, in words.
    Part(String),
}

/// How the records of a file are counted, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordNumber {
    /// Texts: by the line that they start on.
    Line(u64),
    /// Columnar files.
    Row(u64),
}

/// A part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPart {
    /// All of it.
    Whole,
    /// All of it, which starts at a byte of the file.
    From {
        /// Counted from the start of the file.
        file_offset: u64,
    },
    /// It has no bytes, or is not there.
    Empty,
    /// What lies before a byte.
    Before {
        /// Counted from the start of the stream.
        offset: u64,
        /// Counted from the start of the file.
        file_offset: u64,
    },
}

impl Place {
    /// A file, by its path or location.
    pub fn file(name: impl fmt::Display) -> Self {
        Self::File(name.to_string())
    }

    /// A field of a schema, by name.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) | Self::Field(name) | Self::Part(name) => f.write_str(name),
            Self::Output => f.write_str("output"),
            Self::Line(number) => write!(f, "line {number}"),
            Self::Record { file, number, column } => {
                match number {
                    RecordNumber::Line(line) => write!(f, "{file} line {line}")?,
                    RecordNumber::Row(row) => write!(f, "{file} row {row}")?,
                }
                column.iter().try_for_each(|column| write!(f, ", column \"{column}\""))
            }
            Self::Offset(offset) => write!(f, "offset {offset}"),
            Self::Parameter(number) => write!(f, "parameter ${number}"),
            Self::Stripe(index) => write!(f, "stripe {index}"),
            Self::RowGroup(index) => write!(f, "row group {index}"),
            Self::Column { id, path } => write!(f, "column {id} ({path})"),
            Self::Stream { kind, part } => write!(f, "{kind} stream{part}"),
        }
    }
}

impl fmt::Display for StreamPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::From { file_offset } => write!(f, " at offset {file_offset}"),
            Self::Empty => f.write_str(", which is empty or missing"),
            Self::Before { offset, file_offset } => {
                write!(f, ", before offset {offset} (file offset {file_offset})")
            }
        }
    }
}

impl From<&str> for Place {
    fn from(text: &str) -> Self {
        Self::Part(text.to_owned())
    }
}

impl From<String> for Place {
    fn from(text: String) -> Self {
        Self::Part(text)
    }
}

impl From<&String> for Place {
    fn from(text: &String) -> Self {
        Self::Part(text.clone())
    }
}

impl From<fmt::Arguments<'_>> for Place {
    fn from(text: fmt::Arguments<'_>) -> Self {
        Self::Part(text.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: RecordNumber, column: Option<&str>) -> Place {
        Place::Record { file: "a.csv".into(), number, column: column.map(str::to_owned) }
    }

    #[test]
    fn places_read_as_users_know_them() {
        let before = StreamPart::Before { offset: 5, file_offset: 105 };
        for (place, text) in [
            (Place::file("s3://b/t/a.orc"), "s3://b/t/a.orc"),
            (Place::Line(3), "line 3"),
            (record(RecordNumber::Line(17), None), "a.csv line 17"),
            (record(RecordNumber::Row(2), Some("n")), "a.csv row 2, column \"n\""),
            (Place::Offset(7), "offset 7"),
            (Place::Parameter(1), "parameter $1"),
            (Place::Stripe(0), "stripe 0"),
            (Place::RowGroup(2), "row group 2"),
            (Place::Column { id: 4, path: "a.b".into() }, "column 4 (a.b)"),
            (Place::Stream { kind: "DATA", part: StreamPart::Whole }, "DATA stream"),
            (
                Place::Stream { kind: "DATA", part: StreamPart::Empty },
                "DATA stream, which is empty or missing",
            ),
            (
                Place::Stream { kind: "LENGTH", part: before },
                "LENGTH stream, before offset 5 (file offset 105)",
            ),
            ("stripe footer".into(), "stripe footer"),
        ] {
            assert_eq!(place.to_string(), text);
        }
    }
}
