//! Texts as bytes of an encoding: `convert`, `convert_from`, `convert_to`, `length(bytea, encoding)`.
//!
//! There are UTF-8 and LATIN1; others are refused by name (0A000).

use arrow::array::{ArrayRef, Int32Array};
use datafusion::error::{DataFusionError, Result};

use super::call::{failure, unsupported};
use super::declared::{Declared, Row, Type, declared};
use Type::{Bytes, Integer, Text};

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("convert", &[Bytes, Text, Text], Bytes, convert),
    declared("convert_from", &[Bytes, Text], Text, convert_from),
    declared("convert_to", &[Text, Text], Bytes, convert_to),
    Declared {
        called: "length",
        ..declared("length_in_encoding", &[Bytes, Text], Integer, length)
    },
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Latin1,
}

impl Encoding {
    fn named(name: &str) -> Result<Self> {
        let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        match letters.to_ascii_lowercase().as_str() {
            "utf8" | "unicode" => Ok(Self::Utf8),
            "latin1" | "iso88591" => Ok(Self::Latin1),
            _ => {
                let message = format!("the encoding {name} is not supported");
                Err(unsupported(message, "UTF8 and LATIN1 are"))
            }
        }
    }

    fn read(self, bytes: &[u8]) -> Result<String> {
        let text = match self {
            Self::Utf8 => std::str::from_utf8(bytes).ok().map(str::to_owned),
            Self::Latin1 => Some(bytes.iter().copied().map(char::from).collect()),
        };
        let name = if self == Self::Utf8 { "UTF8" } else { "LATIN1" };
        let invalid = || failure("22021", format!("invalid byte sequence for encoding \"{name}\""));
        text.filter(|text| !text.contains('\0')).ok_or_else(invalid)
    }

    fn write(self, text: &str) -> Result<Vec<u8>> {
        match self {
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Latin1 => text.chars().map(latin1).collect(),
        }
    }
}

fn latin1(letter: char) -> Result<u8> {
    u8::try_from(u32::from(letter)).map_err(|_| no_such_letter(letter))
}

fn no_such_letter(letter: char) -> DataFusionError {
    let bytes = letter.to_string().into_bytes();
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    let bytes = bytes.join(" ");
    let message = format!(
        "character with byte sequence {bytes} in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
    );
    failure("22P05", message)
}

fn convert(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_bytes(|at| {
        let (Some(bytes), Some(from), Some(to)) =
            (row.bytes(0, at), row.text(1, at), row.text(2, at))
        else {
            return Ok(None);
        };
        let (from, to) = (Encoding::named(from)?, Encoding::named(to)?);
        to.write(&from.read(bytes)?).map(Some)
    })
}

fn convert_from(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text(|at| match (row.bytes(0, at), row.text(1, at)) {
        (Some(bytes), Some(encoding)) => Encoding::named(encoding)?.read(bytes).map(Some),
        _ => Ok(None),
    })
}

fn convert_to(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_bytes(|at| match (row.text(0, at), row.text(1, at)) {
        (Some(text), Some(encoding)) => Encoding::named(encoding)?.write(text).map(Some),
        _ => Ok(None),
    })
}

fn length(row: &Row<'_>) -> Result<ArrayRef> {
    row.each::<i32, Int32Array>(|at| match (row.bytes(0, at), row.text(1, at)) {
        (Some(bytes), Some(encoding)) => {
            let letters = Encoding::named(encoding)?.read(bytes)?.chars().count();
            Ok(i32::try_from(letters).ok())
        }
        _ => Ok(None),
    })
}
