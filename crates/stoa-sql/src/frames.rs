//! `RANGE BETWEEN '1 year'::interval PRECEDING …`: after a text the parser of frames reads PRECEDING or FOLLOWING only.
//!
//! ```text
//! BETWEEN '1 year'::interval PRECEDING  ─►  BETWEEN INTERVAL '1 year' PRECEDING
//! ```
//! In: the tokens of a statement. Out: the same, in another order.

use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Whether a text may have such a frame.
pub(super) fn may_be_in(text: &str) -> bool {
    let has = |word: &[u8]| {
        text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
    };
    has(b"::") && (has(b"preceding") || has(b"following"))
}

/// The tokens with `INTERVAL '…'` for `'…'::interval` at the ends of frames.
pub(super) fn with_intervals(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let places: Vec<usize> = (0..tokens.len()).filter(|place| is_end(&tokens, *place)).collect();
    for text in places.into_iter().rev() {
        let Some(word) = nth(&tokens, text, 2) else { continue };
        // Everything between the text and the word goes; these two change places.
        let moved: Vec<TokenWithSpan> = tokens.drain(text..=word).collect();
        if let (Some(text_token), Some(word_token)) = (moved.first(), moved.last()) {
            tokens.splice(text..text, [word_token.clone(), text_token.clone()]);
        }
    }
    tokens
}

/// Whether a text stands at `place`, and `::interval PRECEDING` or `… FOLLOWING` behind it.
fn is_end(tokens: &[TokenWithSpan], place: usize) -> bool {
    let token = |count: usize| nth(tokens, place, count).and_then(|at| tokens.get(at));
    let keyword = |count: usize| match token(count).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    tokens.get(place).is_some_and(|text| matches!(text.token, Token::SingleQuotedString(_)))
        && token(1).is_some_and(|colons| colons.token == Token::DoubleColon)
        && keyword(2) == Keyword::INTERVAL
        && matches!(keyword(3), Keyword::PRECEDING | Keyword::FOLLOWING)
}

/// Where the token stands that comes so many behind `place`, blanks not counted.
fn nth(tokens: &[TokenWithSpan], place: usize, count: usize) -> Option<usize> {
    let is_word =
        |at: &usize| tokens.get(*at).is_some_and(|t| !matches!(t.token, Token::Whitespace(_)));
    (place + 1..tokens.len()).filter(is_word).nth(count.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    #[test]
    fn intervals_of_frames_are_literals() {
        let written = |sql: &str| {
            assert!(may_be_in(sql));
            let tokens =
                Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
            let tokens = with_intervals(tokens);
            tokens.iter().map(|token| token.token.to_string()).collect::<String>()
        };
        assert_eq!(
            written("range between '1 day'::interval preceding and '2 days' :: interval FOLLOWING"),
            "range between interval'1 day' preceding and interval'2 days' FOLLOWING"
        );
        let other = "SELECT '1 day'::interval preceding";
        assert_eq!(written(other), "SELECT interval'1 day' preceding");
        let other = "SELECT '1 day'::interval, preceding";
        assert_eq!(written(other), other);
    }
}
