//! `GENERATED ALWAYS | BY DEFAULT AS IDENTITY`, and `serial`: columns whose default is the next number of a sequence.
//!
//! ```text
//! stoa_next_value('11111111-2222-…', 'always', 1, 1)      default of the column: sequence, whether only it may give
//!                                                         values, first number, distance
//! ```
//! In: the clause of a column. Out: what it says ([`Identity`]), as text of a default once there is a sequence.
//! **Invariant:** such a text is written here only, and read here only.

use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;

use crate::{Parsed, parse_word};

/// The function that gives the next number.
pub const NEXT_VALUE: &str = "stoa_next_value";

/// Metadata of a column's field, as it is parsed: [`Identity::written`].
pub const IDENTITY_KEY: &str = "stoa.identity";

/// Where the values of a column come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Whether statements may give no other value.
    pub is_always: bool,
    /// The first number.
    pub start: i64,
    /// By how much each is larger than the one before.
    pub step: i64,
}

impl Identity {
    /// What `serial` is.
    pub(super) const SERIAL: Self = Self { is_always: false, start: 1, step: 1 };

    /// `ALWAYS`, or `BY DEFAULT`.
    pub fn generation(&self) -> &'static str {
        if self.is_always { "ALWAYS" } else { "BY DEFAULT" }
    }

    /// The clause of a column.
    pub fn clause(&self) -> String {
        let options = match (self.start, self.step) {
            (1, 1) => String::new(),
            (start, step) => format!(" (START WITH {start} INCREMENT BY {step})"),
        };
        format!("GENERATED {} AS IDENTITY{options}", self.generation())
    }

    /// As metadata of a field.
    pub fn written(&self) -> String {
        let Self { is_always, start, step } = self;
        format!("{}, {start}, {step}", if *is_always { "'always'" } else { "'by default'" })
    }

    /// The text of the default, whose numbers are those of a sequence.
    pub fn default_of(written: &str, sequence: &str) -> String {
        format!("{NEXT_VALUE}('{sequence}', {written})")
    }

    /// What metadata of a field say.
    pub fn read(written: &str) -> Option<Self> {
        let mut parts = written.split(", ");
        let is_always = parts.next()? == "'always'";
        let (start, step) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { is_always, start, step })
    }

    /// What the text of a default says, and its sequence; `None` for other defaults.
    pub fn of_default(text: &str) -> Option<(Self, &str)> {
        let operands = text.strip_prefix(NEXT_VALUE)?.strip_prefix("('")?.strip_suffix(')')?;
        let (sequence, written) = operands.split_once("', ")?;
        Some((Self::read(written)?, sequence))
    }
}

/// What stands behind `GENERATED`.
pub(super) fn parse(parser: &mut Parser<'_>) -> Parsed<Identity> {
    let is_always = parse_word(parser, "ALWAYS");
    if !is_always {
        parser.expect_keywords(&[Keyword::BY, Keyword::DEFAULT])?;
    }
    parser.expect_keyword(Keyword::AS)?;
    if !parse_word(parser, "IDENTITY") {
        return Err(ParserError::ParserError(
            "columns that are GENERATED from an expression are not supported: compute them where they are read"
                .into(),
        ));
    }
    let mut identity = Identity { is_always, start: 1, step: 1 };
    let mut starts = false;
    if parser.consume_token(&Token::LParen) {
        while !parser.consume_token(&Token::RParen) {
            if parse_word(parser, "START") {
                let _ = parser.parse_keyword(Keyword::WITH);
                identity.start = number(parser)?;
                starts = true;
            } else if parse_word(parser, "INCREMENT") {
                let _ = parser.parse_keyword(Keyword::BY);
                identity.step = number(parser)?;
            } else {
                let found = parser.peek_token();
                return parser.expected(
                    "START WITH or INCREMENT BY (other options of sequences are not supported)",
                    found,
                );
            }
        }
    }
    if identity.step == 0 {
        return Err(ParserError::ParserError("INCREMENT must not be zero".into()));
    }
    if identity.step < 0 && !starts {
        identity.start = -1;
    }
    Ok(identity)
}

fn number(parser: &mut Parser<'_>) -> Parsed<i64> {
    let sign = if parser.consume_token(&Token::Minus) { "-" } else { "" };
    let found = parser.next_token();
    let digits = match &found.token {
        Token::Number(digits, _) => format!("{sign}{digits}").parse().ok(),
        _ => None,
    };
    match digits {
        Some(number) => Ok(number),
        None => parser.expected("a number of bigint", found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_defaults_are_read_as_they_were_written() {
        for identity in [
            Identity::SERIAL,
            Identity { is_always: true, start: -5, step: 10 },
            Identity { is_always: false, start: i64::MIN, step: -1 },
        ] {
            let text = Identity::default_of(&identity.written(), "some-uuid");
            assert_eq!(Identity::of_default(&text), Some((identity, "some-uuid")));
        }
        for other in ["1", "now()", "stoa_next_value('x')", "stoa_next_value('x', 'always', 1)"] {
            assert_eq!(Identity::of_default(other), None, "{other}");
        }
    }
}
