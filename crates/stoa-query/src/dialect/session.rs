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
    /// `BEGIN READ ONLY`
    BeginReadOnly,
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
            Self::Begin | Self::BeginReadOnly => "BEGIN",
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
        "BEGIN" | "START" => {
            let _ = parser.parse_one_of_keywords(&[Keyword::WORK, Keyword::TRANSACTION]);
            let (isolation, read_only) = parse_modes(parser)?;
            let control = match read_only {
                Some(true) => TransactionControl::BeginReadOnly,
                _ => TransactionControl::Begin,
            };
            // A level that there is not is refused as the setting's value.
            Ok(isolation
                .map_or(StatementKind::Transaction(control), |level| set_to(ISOLATION, level)))
        }
        _ => Ok(StatementKind::Transaction(parse_transaction(parser, word))),
    }
}

fn parse_transaction(parser: &mut Parser<'_>, word: &str) -> TransactionControl {
    let control = match word {
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

/// The setting that is a transaction's isolation level.
const ISOLATION: &str = "transaction_isolation";

fn set_to(name: &str, value: &str) -> StatementKind {
    StatementKind::Set { name: Some(name.to_owned()), value: Some(value.to_owned()) }
}

/// Transaction modes as values of settings.
fn set_modes(parser: &mut Parser<'_>, isolation: &str, read_only: &str) -> Parsed<StatementKind> {
    let (level, mode) = parse_modes(parser)?;
    Ok(match (level, mode) {
        (Some(level), _) => set_to(isolation, level),
        (None, Some(true)) => set_to(read_only, "on"),
        (None, Some(false)) => set_to(read_only, "off"),
        (None, None) => StatementKind::Accepted { tag: "SET" },
    })
}

/// `ISOLATION LEVEL …`, `READ ONLY`, `READ WRITE`, `[NOT] DEFERRABLE`, with commas or without: the
/// level, if it is one that is not given, and whether writes are refused.
fn parse_modes(parser: &mut Parser<'_>) -> Parsed<(Option<&'static str>, Option<bool>)> {
    let (mut isolation, mut read_only) = (None, None);
    loop {
        if parser.parse_keywords(&[Keyword::ISOLATION, Keyword::LEVEL]) {
            if parser.parse_keyword(Keyword::SERIALIZABLE) {
                isolation = Some("serializable");
            } else if parser.parse_keywords(&[Keyword::REPEATABLE, Keyword::READ]) {
                isolation = Some("repeatable read");
            } else {
                parser.expect_keyword(Keyword::READ)?;
                parser.expect_one_of_keywords(&[Keyword::COMMITTED, Keyword::UNCOMMITTED])?;
            }
        } else if parser.parse_keywords(&[Keyword::READ, Keyword::ONLY]) {
            read_only = Some(true);
        } else if parser.parse_keywords(&[Keyword::READ, Keyword::WRITE]) {
            read_only = Some(false);
        } else if !parser.consume_token(&Token::Comma) {
            // DEFERRABLE says nothing about a transaction that waits for nobody.
            skip_rest(parser);
            return Ok((isolation, read_only));
        }
    }
}

/// `SET [SESSION | LOCAL] name {= | TO} value [, …]`, `SET TIME ZONE value`,
/// `SET [SESSION CHARACTERISTICS AS] TRANSACTION …`, `SET NAMES value`.
fn parse_set(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    let _ = parser.parse_keyword(Keyword::LOCAL);
    if parser.parse_keyword(Keyword::SESSION) && parse_word(parser, "CHARACTERISTICS") {
        parser.expect_keyword(Keyword::AS)?;
        parser.expect_keyword(Keyword::TRANSACTION)?;
        return set_modes(parser, "default_transaction_isolation", "default_transaction_read_only");
    }
    if parser.parse_keyword(Keyword::TRANSACTION) {
        return set_modes(parser, ISOLATION, "transaction_read_only");
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
