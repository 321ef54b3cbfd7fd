//! Values as text of PostgreSQL's SQL, for messages of several statements, which take no values beside
//! the text.

use std::fmt::Write;

/// A text, whatever is in it and however the server reads backslashes.
pub(crate) fn literal(text: &str) -> String {
    format!("convert_from({}, 'UTF8')", bytes(text.as_bytes()))
}

/// Bytes.
pub(crate) fn bytes(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    format!("decode('{hex}', 'hex')")
}
