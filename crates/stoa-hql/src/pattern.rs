//! Regular expressions over bytes.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use stoa_error::{Error, Result};

/// A regular expression that may match anywhere in its text, as RE2's partial match, which
/// Hypertable uses (reference §1.2). Matching takes time linear in the text.
#[derive(Clone)]
pub struct Pattern(Regex);

/// Memory a compiled expression may take; expressions that need more are refused.
const PATTERN_BYTES_MAX: usize = 4 << 20;

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) with what is wrong and where.
    pub fn new(text: &str) -> Result<Self> {
        let built = RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
        built.map(Self).map_err(|e| {
            Error::invalid(format!("\"{text}\" is no regular expression"))
                .with_sqlstate("2201B")
                .with_detail(e.to_string())
        })
    }

    /// Whether some part of `bytes` matches.
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_text_is_enough_and_bytes_need_not_be_utf8() {
        assert!(Pattern::new("l.*e").unwrap().is_match(b"a clone\xff"));
        assert!(!Pattern::new("^l").unwrap().is_match(b"a clone"));
        let error = Pattern::new("a(").unwrap_err();
        assert_eq!(error.message(), "\"a(\" is no regular expression");
    }
}
