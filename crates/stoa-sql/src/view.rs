//! Statements about views.
//!
//! ```text
//! CREATE [OR REPLACE] [TEMP[ORARY]] VIEW [IF NOT EXISTS] name [(column, …)]
//!   [WITH (option [= value], …)] [COMMENT 'text'] AS query
//! ALTER VIEW [IF EXISTS] name RENAME TO name | OWNER TO role | SET SCHEMA name | SET (…) | RESET (…)
//! DROP VIEW [IF EXISTS] name, … [CASCADE | RESTRICT]
//! ```

use datafusion_sql::sqlparser::ast::ObjectName;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;

use crate::defining::DefiningQuery;
use crate::statement::StatementKind;
use crate::{Parsed, literal, normalise, parse_word};

/// What stands before the query of a `CREATE VIEW`.
#[derive(Clone, Debug)]
pub struct ViewHead {
    /// The view's name.
    pub name: ObjectName,
    /// Whether it is the session's only.
    pub is_temporary: bool,
    /// Whether one that is there gets this definition.
    pub or_replace: bool,
    /// Whether one that is there is left as it is.
    pub if_not_exists: bool,
    /// The names of the columns, if they are not the query's.
    pub columns: Vec<String>,
    /// `WITH (option = value, …)`
    pub options: Vec<(String, String)>,
    /// `COMMENT`
    pub comment: Option<String>,
}

/// A parsed `CREATE VIEW`.
#[derive(Clone, Debug)]
pub struct CreateViewStatement {
    /// What stands before the query.
    pub head: ViewHead,
    /// The query.
    pub query: DefiningQuery,
}

/// A parsed `ALTER VIEW`.
#[derive(Clone, Debug)]
pub struct AlterViewStatement {
    /// The view.
    pub name: ObjectName,
    /// Whether a missing view is no error.
    pub if_exists: bool,
    /// What is changed.
    pub action: AlterViewAction,
}

/// A change of a view.
#[derive(Clone, Debug)]
pub enum AlterViewAction {
    /// `RENAME TO name`
    Rename(ObjectName),
    /// `SET SCHEMA name`
    SetSchema(String),
    /// `OWNER TO role`
    SetOwner(String),
    /// `SET (option = value, …)`
    Set(Vec<(String, String)>),
    /// `RESET (option, …)`
    Reset(Vec<String>),
}

/// Words between CREATE and VIEW that ask for other things than views.
const OTHER_VIEWS: [(&str, &str); 2] = [
    ("MATERIALIZED", "materialized views are not supported; use CREATE TABLE … AS"),
    ("RECURSIVE", "recursive views are not supported"),
];

/// Parses `CREATE … VIEW` up to its query, if it is one: `None` leaves the parser where it was.
pub(super) fn parse_create(parser: &mut Parser<'_>) -> Parsed<Option<ViewHead>> {
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    if let Some((_, why)) = OTHER_VIEWS.iter().find(|(word, _)| parse_word(parser, word)) {
        if parser.parse_keyword(Keyword::VIEW) {
            return Err(ParserError::ParserError((*why).to_owned()));
        }
        let found = parser.peek_token();
        return parser.expected("TABLE, VIEW, SCHEMA or ROLE after CREATE", found);
    }
    let is_temporary = or_replace && parse_temporary(parser);
    if !parser.parse_keyword(Keyword::VIEW) {
        if !or_replace {
            return Ok(None);
        }
        let found = parser.peek_token();
        return parser.expected("VIEW after CREATE OR REPLACE", found);
    }
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let mut columns = Vec::new();
    if parser.consume_token(&Token::LParen) {
        columns = parser.parse_comma_separated(|p| p.parse_identifier().map(|i| normalise(&i)))?;
        parser.expect_token(&Token::RParen)?;
    }
    let (mut options, mut comment) = (Vec::new(), None);
    loop {
        if parser.parse_keyword(Keyword::WITH) || parser.parse_keyword(Keyword::TBLPROPERTIES) {
            options.extend(literal::parse_options(parser)?);
        } else if parser.parse_keyword(Keyword::COMMENT) {
            let _ = parser.consume_token(&Token::Eq);
            comment = Some(parser.parse_literal_string()?);
        } else {
            break;
        }
    }
    parser.expect_keyword(Keyword::AS)?;
    Ok(Some(ViewHead { name, is_temporary, or_replace, if_not_exists, columns, options, comment }))
}

/// `[GLOBAL | LOCAL] TEMPORARY | TEMP`
pub(super) fn parse_temporary(parser: &mut Parser<'_>) -> bool {
    let _ = parser.parse_one_of_keywords(&[Keyword::GLOBAL, Keyword::LOCAL]);
    parser.parse_one_of_keywords(&[Keyword::TEMPORARY, Keyword::TEMP]).is_some()
}

/// Parses what follows `DROP VIEW`.
pub(super) fn parse_drop(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = parser.parse_comma_separated(|p| p.parse_object_name(false))?;
    let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
    Ok(StatementKind::DropView { names, if_exists })
}

/// Parses what follows `ALTER VIEW`.
pub(super) fn parse_alter(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let action = if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        AlterViewAction::Rename(parser.parse_object_name(false)?)
    } else if parse_word(parser, "OWNER") {
        parser.expect_keyword(Keyword::TO)?;
        AlterViewAction::SetOwner(normalise(&parser.parse_identifier()?))
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        AlterViewAction::SetSchema(normalise(&parser.parse_identifier()?))
    } else if parser.parse_keyword(Keyword::SET) {
        AlterViewAction::Set(literal::parse_options(parser)?)
    } else if parser.parse_keyword(Keyword::RESET) {
        parser.expect_token(&Token::LParen)?;
        let names = parser.parse_comma_separated(literal::parse_option_name)?;
        parser.expect_token(&Token::RParen)?;
        AlterViewAction::Reset(names)
    } else {
        let found = parser.peek_token();
        return parser.expected("RENAME TO, OWNER TO, SET SCHEMA, SET (…) or RESET (…)", found);
    };
    Ok(StatementKind::AlterView(Box::new(AlterViewStatement { name, if_exists, action })))
}
