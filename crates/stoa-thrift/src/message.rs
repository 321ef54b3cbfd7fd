//! Names and numbers of calls, and the answer to those that nobody knows.

use stoa_error::Result;

use crate::reader::Reader;
use crate::writer::Writer;

/// An answer.
pub(crate) const REPLY: u8 = 2;
/// A `TApplicationException` in the place of an answer.
const EXCEPTION: u8 = 3;
/// Its type for calls that the server does not have.
const UNKNOWN_METHOD: i32 = 1;
/// Its type for calls that failed without a status to say it in.
const INTERNAL_ERROR: i32 = 6;

/// What a call begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name, such as `OpenSession`.
    pub name: String,
    /// Its number, which the answer repeats.
    pub sequence: i32,
}

/// Reads the begin of a call; the reader is at its arguments then.
///
/// # Errors
/// 08P01.
pub fn read_header(reader: &mut Reader<'_>) -> Result<Header> {
    let (name, sequence) = reader.message_begin()?;
    Ok(Header { name: name.to_owned(), sequence })
}

/// A call that the server does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMethod;

impl UnknownMethod {
    /// The answer, by which clients notice that they must ask in another way.
    pub fn answer(&self, header: &Header) -> Vec<u8> {
        let text = format!("Invalid method name: '{}'", header.name);
        write_exception(header, UNKNOWN_METHOD, &text)
    }
}

/// The answer to a call that failed and whose own answer has no place for a status.
pub fn exception(header: &Header, text: &str) -> Vec<u8> {
    write_exception(header, INTERNAL_ERROR, text)
}

fn write_exception(header: &Header, kind: i32, text: &str) -> Vec<u8> {
    let mut out = Writer::new();
    out.message_begin(EXCEPTION, &header.name, header.sequence);
    out.text_field(1, text);
    out.i32_field(2, kind);
    out.stop();
    out.into_bytes()
}
