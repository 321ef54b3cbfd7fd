//! Calls with words between their arguments that the parser does not know: `trim(LEADING FROM s)`,
//! `trim(BOTH s, 'x')`, `substring(s SIMILAR p ESCAPE c)`.

use datafusion_sql::sqlparser::ast::{Expr, TrimWhereField};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;

use crate::calls::{call, cast};

/// The function of `substring(s SIMILAR p ESCAPE c)`.
pub(super) const SIMILAR_SUBSTRING: &str = "similar_substring";

/// Reads such a call; `None` for what is none. `precedence` is that of SIMILAR.
pub(super) fn parse(parser: &mut Parser<'_>, precedence: u8) -> Option<Result<Expr, ParserError>> {
    let keyword = |at: usize| match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let name = keyword(0);
    if name == Keyword::INTERVAL && is_precise_interval(parser) {
        return Some(precise_interval(parser));
    }
    if !matches!(name, Keyword::TRIM | Keyword::SUBSTRING)
        || parser.peek_nth_token_ref(1).token != Token::LParen
    {
        return None;
    }
    match name {
        Keyword::TRIM => {
            let place = place_of(keyword(2));
            let at = 2 + usize::from(place.is_some());
            let has_from = keyword(at) == Keyword::FROM;
            let mut is_list =
                || place.is_some() && finds(parser, at, |token| *token == Token::Comma);
            (has_from || is_list()).then(|| {
                for _ in 0..at + usize::from(has_from) {
                    parser.next_token();
                }
                trim(parser, place)
            })
        }
        _ => {
            // As SIMILAR TO has an ESCAPE of its own, both words are wanted.
            let is_similar = finds(parser, 2, |token| is_word(token, Keyword::SIMILAR))
                && finds(parser, 2, |token| is_word(token, Keyword::ESCAPE))
                && !finds(parser, 2, |token| {
                    *token == Token::Comma || is_word(token, Keyword::FROM)
                });
            is_similar.then(|| similar(parser, precedence))
        }
    }
}

/// Whether `interval(0) '…'` comes next, of which the parser would forget the precision.
fn is_precise_interval(parser: &Parser<'_>) -> bool {
    let token = |at: usize| &parser.peek_nth_token_ref(at).token;
    *token(1) == Token::LParen
        && matches!(token(2), Token::Number(..))
        && *token(3) == Token::RParen
        && matches!(token(4), Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_))
}

fn precise_interval(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let of = parser.parse_data_type()?;
    let text = parser.parse_value()?;
    Ok(cast(Expr::Value(text), of))
}

fn place_of(keyword: Keyword) -> Option<TrimWhereField> {
    match keyword {
        Keyword::BOTH => Some(TrimWhereField::Both),
        Keyword::LEADING => Some(TrimWhereField::Leading),
        Keyword::TRAILING => Some(TrimWhereField::Trailing),
        _ => None,
    }
}

/// Whether one of these tokens stands behind the next `from`, before the call ends and not in brackets within it.
fn finds(parser: &mut Parser<'_>, from: usize, is_it: impl Fn(&Token) -> bool) -> bool {
    let (mut depth, mut taken, mut is_found) = (0_usize, 0, false);
    while !is_found {
        let token = parser.next_token().token;
        taken += 1;
        if taken <= from {
            continue;
        }
        match token {
            Token::EOF | Token::SemiColon => break,
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if depth == 0 => break,
            Token::RParen | Token::RBracket => depth -= 1,
            token => is_found = depth == 0 && is_it(&token),
        }
    }
    for _ in 0..taken {
        parser.prev_token();
    }
    is_found
}

fn is_word(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword)
}

/// `s)` or `s, letters)`.
fn trim(parser: &mut Parser<'_>, trim_where: Option<TrimWhereField>) -> Result<Expr, ParserError> {
    let expr = Box::new(parser.parse_expr()?);
    let trim_what = match parser.consume_token(&Token::Comma) {
        true => Some(Box::new(parser.parse_expr()?)),
        false => None,
    };
    parser.expect_token(&Token::RParen)?;
    let trim_where = Some(trim_where.unwrap_or(TrimWhereField::Both));
    Ok(Expr::Trim { expr, trim_where, trim_what, trim_characters: None })
}

fn similar(parser: &mut Parser<'_>, precedence: u8) -> Result<Expr, ParserError> {
    parser.next_token();
    parser.next_token();
    // `SIMILAR` binds as LIKE does: it ends the text.
    let text = parser.parse_subexpr(precedence)?;
    parser.expect_keyword(Keyword::SIMILAR)?;
    let pattern = parser.parse_expr()?;
    parser.expect_keyword(Keyword::ESCAPE)?;
    let escape = parser.parse_expr()?;
    parser.expect_token(&Token::RParen)?;
    Ok(call(SIMILAR_SUBSTRING, vec![text, pattern, escape]))
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;

    use super::*;
    use crate::Bounded;

    #[test]
    fn calls_with_words_are_read() {
        let check = |text: &str, expected: &str| {
            let dialect = Bounded::new(PostgreSqlDialect {}, text.len());
            let expr = Parser::new(&dialect).try_with_sql(text).unwrap().parse_expr().unwrap();
            assert_eq!(expr.to_string(), expected);
        };
        check("trim(LEADING FROM ' a ')", "TRIM(LEADING ' a ')");
        check("trim(FROM ' a ')", "TRIM(BOTH ' a ')");
        check("trim(TRAILING 'abc', 'c')", "TRIM(TRAILING 'c' FROM 'abc')");
        check("trim(BOTH 'x' FROM s)", "TRIM(BOTH 'x' FROM s)");
        check("trim(s)", "TRIM(s)");
        check("substring(a || b SIMILAR '%' ESCAPE '#')", "similar_substring(a || b, '%', '#')");
        check("substring(s FROM 2)", "SUBSTRING(s FROM 2)");
    }
}
