//! `INSERT … table PARTITION (…) …`, which PostgreSQL's dialect does not know.
//!
//! The clause is cut out of the statement's tokens, the rest is parsed as PostgreSQL's.

use datafusion_sql::sqlparser::ast::{Expr, Statement};
use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::{Bounded, Parsed};

/// The statement, if it is an INSERT with that clause.
pub(super) fn parse_partitioned(text: &str) -> Parsed<Option<Statement>> {
    let dialect = Bounded::new(PostgreSqlDialect {}, text.len());
    let mut tokens = Tokenizer::new(&dialect, text).tokenize_with_location()?;
    let Some(clause) = cut_clause(&mut tokens) else { return Ok(None) };
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(clause);
    parser.expect_token(&Token::LParen)?;
    let terms: Vec<Expr> = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    let mut statement = parser.parse_statement()?;
    parser.expect_token(&Token::EOF)?;
    if let Statement::Insert(insert) = &mut statement {
        insert.partitioned = Some(terms);
    }
    Ok(Some(statement))
}

/// Takes `PARTITION ( … )` out from between the table's name and the rows; gives the part in
/// parentheses.
fn cut_clause(tokens: &mut Vec<TokenWithSpan>) -> Option<Vec<TokenWithSpan>> {
    let is_begin = |token: &TokenWithSpan| word(token) == Some(Keyword::PARTITION);
    let is_rows = |token: &TokenWithSpan| {
        matches!(word(token), Some(Keyword::SELECT | Keyword::VALUES | Keyword::WITH))
    };
    let begin = tokens.iter().position(is_begin)?;
    if tokens.iter().take(begin).any(is_rows) {
        return None;
    }
    let mut depth = 0;
    let end = tokens.iter().enumerate().skip(begin + 1).find_map(|(index, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => return None,
        }
        (depth == 0).then_some(index)
    })?;
    let cut: Vec<TokenWithSpan> = tokens.drain(begin..=end).collect();
    Some(cut.into_iter().skip(1).collect())
}

fn word(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}
