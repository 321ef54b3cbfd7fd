//! Statements about the session: settings, transactions, prepared statements.

use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;
use stoa_error::{Error, Result};

use crate::statement::StatementKind;
use crate::{Parsed, literal, normalise, parse_word, roles};

/// Transaction control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionControl {
    /// `BEGIN`, `START TRANSACTION`
    Begin(TransactionModes),
    /// `COMMIT`, `END`
    Commit,
    /// `ROLLBACK`, `ABORT`
    Rollback,
    /// `SAVEPOINT name`
    Savepoint(String),
    /// `RELEASE name`
    Release(String),
    /// `ROLLBACK TO name`
    RollbackToSavepoint(String),
    /// `SET TRANSACTION …`
    Modes(TransactionModes),
}

/// What a transaction is to be like; `None` is the session's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// What its statements see of others.
    pub isolation: Option<Isolation>,
    /// Whether writes are refused.
    pub read_only: Option<bool>,
}

/// What the statements of a transaction see of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement reads what was committed when it began. `READ UNCOMMITTED` is this, too.
    #[default]
    ReadCommitted,
    /// All statements read what was committed when the first one began.
    RepeatableRead,
    /// As if transactions ran one after the other.
    Serializable,
}

impl Isolation {
    /// The level of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "read committed" | "read uncommitted" => Some(Self::ReadCommitted),
            "repeatable read" => Some(Self::RepeatableRead),
            "serializable" => Some(Self::Serializable),
            _ => None,
        }
    }

    /// Its name in PostgreSQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }

    /// Refuses what there is not.
    ///
    /// # Errors
    /// `Unsupported` (0A000) for SERIALIZABLE.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Serializable => {
                let hint = "use REPEATABLE READ, or one statement outside of a block";
                Err(Error::unsupported("isolation level SERIALIZABLE is not supported")
                    .with_hint(hint))
            }
            _ => Ok(()),
        }
    }
}

impl TransactionControl {
    /// PostgreSQL's command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::Begin(_) => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Rollback | Self::RollbackToSavepoint(_) => "ROLLBACK",
            Self::Savepoint(_) => "SAVEPOINT",
            Self::Release(_) => "RELEASE",
            Self::Modes(_) => "SET",
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
            let name = Some("search_path".into());
            Ok(StatementKind::Set { name, value: Some(path), is_local: false })
        }
        "DISCARD" | "DEALLOCATE" | "UNLISTEN" => {
            let is_all = parser.parse_keyword(Keyword::ALL);
            let temporary = [Keyword::TEMP, Keyword::TEMPORARY];
            let is_temporary = parser.parse_one_of_keywords(&temporary).is_some();
            let kind = parser.peek_token().token.to_string().to_ascii_uppercase();
            skip_rest(parser);
            let tag = match word {
                "DISCARD" if is_all => "DISCARD ALL",
                "DISCARD" if is_temporary => "DISCARD TEMP",
                "DISCARD" if kind == "PLANS" => "DISCARD PLANS",
                "DISCARD" if kind == "SEQUENCES" => "DISCARD SEQUENCES",
                "DISCARD" => "DISCARD",
                "DEALLOCATE" => "DEALLOCATE",
                _ => "UNLISTEN",
            };
            Ok(StatementKind::Accepted { tag })
        }
        // Tables are looked after without being asked, and statistics are part of their files.
        "VACUUM" => accepted(parser, "VACUUM"),
        "ANALYZE" | "ANALYSE" => accepted(parser, "ANALYZE"),
        _ => Ok(StatementKind::Transaction(parse_transaction(parser, word)?)),
    }
}

fn accepted(parser: &mut Parser<'_>, tag: &'static str) -> Parsed<StatementKind> {
    skip_rest(parser);
    Ok(StatementKind::Accepted { tag })
}

fn parse_transaction(parser: &mut Parser<'_>, word: &str) -> Parsed<TransactionControl> {
    let control = match word {
        "BEGIN" | "START" => {
            let _ = parser.parse_one_of_keywords(&[Keyword::WORK, Keyword::TRANSACTION]);
            TransactionControl::Begin(parse_modes(parser)?)
        }
        "SAVEPOINT" => TransactionControl::Savepoint(normalise(&parser.parse_identifier()?)),
        "RELEASE" => {
            let _ = parser.parse_keyword(Keyword::SAVEPOINT);
            TransactionControl::Release(normalise(&parser.parse_identifier()?))
        }
        _ => {
            let _ = parser.parse_one_of_keywords(&[Keyword::WORK, Keyword::TRANSACTION]);
            let ends_well = matches!(word, "COMMIT" | "END");
            if !ends_well && parser.parse_keyword(Keyword::TO) {
                let _ = parser.parse_keyword(Keyword::SAVEPOINT);
                TransactionControl::RollbackToSavepoint(normalise(&parser.parse_identifier()?))
            } else {
                if parser.parse_keyword(Keyword::AND) {
                    parser.expect_keyword(Keyword::NO)?;
                    parser.expect_keyword(Keyword::CHAIN)?;
                }
                match ends_well {
                    true => TransactionControl::Commit,
                    false => TransactionControl::Rollback,
                }
            }
        }
    };
    expect_end(parser)?;
    Ok(control)
}

fn expect_end(parser: &mut Parser<'_>) -> Parsed<()> {
    match parser.peek_token_ref().token {
        Token::EOF => Ok(()),
        _ => {
            let found = parser.peek_token();
            parser.expected("the end of the statement", found)
        }
    }
}

/// `ISOLATION LEVEL …`, `READ ONLY`, `READ WRITE`, `[NOT] DEFERRABLE`, with commas or without.
fn parse_modes(parser: &mut Parser<'_>) -> Parsed<TransactionModes> {
    let mut modes = TransactionModes::default();
    loop {
        if parser.parse_keyword(Keyword::ISOLATION) {
            parser.expect_keyword(Keyword::LEVEL)?;
            modes.isolation = Some(if parser.parse_keyword(Keyword::SERIALIZABLE) {
                Isolation::Serializable
            } else if parser.parse_keyword(Keyword::REPEATABLE) {
                parser.expect_keyword(Keyword::READ)?;
                Isolation::RepeatableRead
            } else {
                parser.expect_keyword(Keyword::READ)?;
                parser.expect_one_of_keywords(&[Keyword::COMMITTED, Keyword::UNCOMMITTED])?;
                Isolation::ReadCommitted
            });
        } else if parser.parse_keyword(Keyword::READ) {
            let mode = parser.expect_one_of_keywords(&[Keyword::ONLY, Keyword::WRITE])?;
            modes.read_only = Some(mode == Keyword::ONLY);
        } else if parser.parse_keyword(Keyword::NOT) {
            if !parse_word(parser, "DEFERRABLE") {
                let found = parser.peek_token();
                return parser.expected("DEFERRABLE", found);
            }
        } else if !parse_word(parser, "DEFERRABLE") {
            return Ok(modes);
        }
        let _ = parser.consume_token(&Token::Comma);
    }
}

/// `SET [SESSION | LOCAL] name {= | TO} value [, …]`, `SET TIME ZONE value`,
/// `SET [SESSION CHARACTERISTICS AS] TRANSACTION …`, `SET NAMES value`.
fn parse_set(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    if let Some(activate) = roles::parse_activate(parser)? {
        return Ok(activate);
    }
    let is_local = parser.parse_keyword(Keyword::LOCAL);
    if !is_local && parser.parse_keyword(Keyword::SESSION) && parse_word(parser, "CHARACTERISTICS")
    {
        parser.expect_keyword(Keyword::AS)?;
        parser.expect_keyword(Keyword::TRANSACTION)?;
        let modes = parse_modes(parser)?;
        expect_end(parser)?;
        return Ok(StatementKind::Characteristics(modes));
    }
    if parser.parse_keyword(Keyword::TRANSACTION) {
        let modes = parse_modes(parser)?;
        expect_end(parser)?;
        return Ok(StatementKind::Transaction(TransactionControl::Modes(modes)));
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
        return Ok(StatementKind::Set { name: Some(name), value: None, is_local });
    }
    let is_path = name == "search_path";
    let mut values = vec![parse_set_value(parser, is_path)?];
    while parser.consume_token(&Token::Comma) {
        values.push(parse_set_value(parser, is_path)?);
    }
    Ok(StatementKind::Set { name: Some(name), value: Some(values.join(", ")), is_local })
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
        return Ok(StatementKind::Set { name: None, value: None, is_local: false });
    }
    let name = match parser.parse_keywords(&[Keyword::TIME, Keyword::ZONE]) {
        true => "timezone".to_owned(),
        false => literal::parse_option_name(parser)?,
    };
    Ok(StatementKind::Set { name: Some(name), value: None, is_local: false })
}

pub(super) fn skip_rest(parser: &mut Parser<'_>) {
    while parser.peek_token_ref().token != Token::EOF {
        parser.next_token();
    }
}

/// A namespace as it is written in a search path.
pub fn path_of(namespace: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match !namespace.is_empty() && namespace.chars().all(is_plain) {
        true => namespace.to_owned(),
        false => format!("\"{}\"", namespace.replace('"', "\"\"")),
    }
}
