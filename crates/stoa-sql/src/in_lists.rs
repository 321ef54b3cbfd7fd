//! `x IN ((SELECT …), 2)`: lists whose first item is a subquery. The parser takes what begins with `((SELECT` for the rows
//! of a query.

use datafusion_sql::sqlparser::ast::Expr;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;

/// Reads `[NOT] IN (…, …)` behind `expr`; `None` for what does not begin like a query, or is no list of several items.
pub(super) fn parse(parser: &mut Parser<'_>, expr: &Expr) -> Option<Result<Expr, ParserError>> {
    let is_word = |token: &Token, keyword: Keyword| matches!(token, Token::Word(word) if word.keyword == keyword);
    let negated = is_word(&parser.peek_nth_token_ref(0).token, Keyword::NOT);
    let at = usize::from(negated);
    let begins = is_word(&parser.peek_nth_token_ref(at).token, Keyword::IN)
        && [at + 1, at + 2].iter().all(|&at| parser.peek_nth_token_ref(at).token == Token::LParen);
    if !begins {
        return None;
    }
    let list = parser.maybe_parse(|parser| {
        let _ = parser.parse_keyword(Keyword::NOT);
        parser.expect_keyword(Keyword::IN)?;
        parser.expect_token(&Token::LParen)?;
        let list = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
        match list.len() {
            1 => Err(ParserError::ParserError("one item".to_owned())),
            _ => Ok(list),
        }
    });
    match list {
        Ok(Some(list)) => Some(Ok(Expr::InList { expr: Box::new(expr.clone()), list, negated })),
        Ok(None) => None,
        Err(error) => Some(Err(error)),
    }
}
