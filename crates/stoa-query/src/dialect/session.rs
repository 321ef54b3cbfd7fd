//! Statements about the session: settings, transactions, prepared statements.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Parsed, literal, normalise, parse_word};
use crate::session::path_of;
use crate::statement::StatementKind;

/// Transaction control. Every statement commits by itself; protocols keep the state that drivers
/// expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionControl {
    /// `BEGIN`, `START TRANSACTION`
    Begin,
    /// `COMMIT`, `END`
    Commit,
    /// `ROLLBACK`, `ABORT`
    Rollback,
    /// `SAVEPOINT name`
    Savepoint,
    /// `RELEASE name`
    Release,
    /// `ROLLBACK TO name`
    RollbackToSavepoint,
}

impl TransactionControl {
    /// PostgreSQL's command tag.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Begin => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Rollback | Self::RollbackToSavepoint => "ROLLBACK",
            Self::Savepoint => "SAVEPOINT",
            Self::Release => "RELEASE",
        }
    }
}

/// Parses what follows the first word `word`.
pub(super) fn parse(parser: &mut Parser<'_>, word: &str) -> Parsed<StatementKind> {
    match word {
        "SET" => parse_set(parser),
        "RESET" => parse_reset(parser),
        "USE" => {
            let path = path_of(&normalise(&parser.parse_identifier()?));
            Ok(StatementKind::Set { name: Some("search_path".into()), value: Some(path) })
        }
        "DISCARD" | "DEALLOCATE" | "UNLISTEN" => {
            let is_all = parser.parse_keyword(Keyword::ALL);
            skip_rest(parser);
            let tag = match word {
                "DISCARD" if is_all => "DISCARD ALL",
                "DISCARD" => "DISCARD",
                "DEALLOCATE" => "DEALLOCATE",
                _ => "UNLISTEN",
            };
            Ok(StatementKind::Accepted { tag })
        }
        _ => Ok(StatementKind::Transaction(parse_transaction(parser, word))),
    }
}

fn parse_transaction(parser: &mut Parser<'_>, word: &str) -> TransactionControl {
    let control = match word {
        "BEGIN" | "START" => TransactionControl::Begin,
        "COMMIT" | "END" => TransactionControl::Commit,
        "SAVEPOINT" => TransactionControl::Savepoint,
        "RELEASE" => TransactionControl::Release,
        _ => {
            let _ = parser.parse_one_of_keywords(&[Keyword::WORK, Keyword::TRANSACTION]);
            match parser.parse_keyword(Keyword::TO) {
                true => TransactionControl::RollbackToSavepoint,
                false => TransactionControl::Rollback,
            }
        }
    };
    skip_rest(parser);
    control
}

/// `SET [SESSION | LOCAL] name {= | TO} value [, …]`, `SET TIME ZONE value`,
/// `SET [SESSION CHARACTERISTICS AS] TRANSACTION …`, `SET NAMES value`.
fn parse_set(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    let _ = parser.parse_keyword(Keyword::LOCAL);
    if parser.parse_keyword(Keyword::SESSION) && parse_word(parser, "CHARACTERISTICS") {
        skip_rest(parser);
        return Ok(StatementKind::Accepted { tag: "SET" });
    }
    if parser.parse_keyword(Keyword::TRANSACTION) {
        skip_rest(parser);
        return Ok(StatementKind::Accepted { tag: "SET" });
    }
    let name = if parser.parse_keywords(&[Keyword::TIME, Keyword::ZONE]) {
        "timezone".to_owned()
    } else if parser.parse_keyword(Keyword::NAMES) {
        "client_encoding".to_owned()
    } else {
        let name = literal::parse_option_name(parser)?;
        if !parser.consume_token(&Token::Eq) && !parser.parse_keyword(Keyword::TO) {
            let found = parser.peek_token();
            return parser.expected("= or TO", found);
        }
        name
    };
    if parser.parse_keyword(Keyword::DEFAULT) {
        return Ok(StatementKind::Set { name: Some(name), value: None });
    }
    let is_path = name == "search_path";
    let mut values = vec![parse_set_value(parser, is_path)?];
    while parser.consume_token(&Token::Comma) {
        values.push(parse_set_value(parser, is_path)?);
    }
    Ok(StatementKind::Set { name: Some(name), value: Some(values.join(", ")) })
}

/// A value; quoted names of a search path stay as they are written.
fn parse_set_value(parser: &mut Parser<'_>, is_path: bool) -> Parsed<String> {
    let quoted = match &parser.peek_token_ref().token {
        Token::Word(word) => word.quote_style == Some('"'),
        Token::DoubleQuotedString(_) => true,
        _ => false,
    };
    let value = literal::parse_value(parser)?;
    Ok(if is_path && quoted { path_of(&value) } else { value })
}

fn parse_reset(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    if parser.parse_keyword(Keyword::ALL) {
        return Ok(StatementKind::Set { name: None, value: None });
    }
    let name = literal::parse_option_name(parser)?;
    Ok(StatementKind::Set { name: Some(name), value: None })
}

fn skip_rest(parser: &mut Parser<'_>) {
    while parser.peek_token_ref().token != Token::EOF {
        parser.next_token();
    }
}
