//! `TABLE name`, a query of all rows, which the parser reads wrongly: written out before it is parsed.
//!
//! ```text
//! TABLE t ORDER BY a  ─►  SELECT * FROM t ORDER BY a
//! ```
//! In: the tokens of a statement. Out: the same with others in the place of `TABLE`, all at its location.

use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Whether a text may have such a query.
pub(super) fn may_be_in(text: &str) -> bool {
    text.as_bytes().windows(5).any(|window| window.eq_ignore_ascii_case(b"table"))
}

/// The tokens with `SELECT * FROM` for `TABLE` where a query begins.
pub(super) fn written_out(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut written = Vec::with_capacity(tokens.len() + 8);
    let mut before = None;
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            written.push(token);
            continue;
        }
        let is_table = keyword(&token.token) == Some(Keyword::TABLE);
        if is_table && begins_query(before.as_ref()) {
            let span = token.span;
            for word in [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")] {
                written.push(TokenWithSpan { token: word, span });
            }
        } else {
            written.push(token.clone());
        }
        before = Some(token.token);
    }
    written
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Whether a query can begin after a token; before the first there is none.
fn begins_query(before: Option<&Token>) -> bool {
    match before {
        None | Some(Token::LParen | Token::RParen) => true,
        Some(before) => matches!(
            keyword(before),
            Some(
                Keyword::ALL
                    | Keyword::ANALYZE
                    | Keyword::AS
                    | Keyword::DISTINCT
                    | Keyword::EXCEPT
                    | Keyword::EXPLAIN
                    | Keyword::INTERSECT
                    | Keyword::UNION
                    | Keyword::VERBOSE
            )
        ),
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn check(sql: &str, expected: &str) {
        let dialect = PostgreSqlDialect {};
        let tokens = Tokenizer::new(&dialect, sql).tokenize_with_location().unwrap();
        let texts = written_out(tokens).into_iter().map(|token| token.token.to_string());
        let written: String = texts.collect::<Vec<_>>().join("");
        assert_eq!(written, expected);
    }

    #[test]
    fn a_query_of_a_table_is_a_select() {
        check("TABLE t ORDER BY a", "SELECT*FROM t ORDER BY a");
        check("SELECT 1 UNION ALL TABLE t", "SELECT 1 UNION ALL SELECT*FROM t");
        check("EXPLAIN (VERBOSE) TABLE t", "EXPLAIN (VERBOSE) SELECT*FROM t");
        check("SELECT a AS \"table\" FROM t", "SELECT a AS \"table\" FROM t");
        check("TRUNCATE TABLE t", "TRUNCATE TABLE t");
    }
}
