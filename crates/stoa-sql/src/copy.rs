//! `COPY [BINARY] table [(columns)] FROM STDIN | 'file' [WITH (option value, …)]` and
//! `COPY [BINARY] table | (query) TO STDOUT [WITH (…)]`.

use datafusion_sql::sqlparser::ast::{ObjectName, Query};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;

use crate::statement::StatementKind;
use crate::{Parsed, literal, normalise, parse_word};

/// A parsed `COPY`.
#[derive(Clone, Debug)]
pub struct CopyStatement {
    /// Where rows come from or go to.
    pub source: CopySource,
    /// Columns named, in order; empty = all.
    pub columns: Vec<String>,
    /// Options as written, names lower case.
    pub options: Vec<(String, String)>,
}

/// The two sides of a `COPY`.
#[derive(Clone, Debug)]
pub enum CopySource {
    /// Into a table, from rows the client sends.
    FromStdin(ObjectName),
    /// Into a table, from files where the server runs.
    FromFiles(ObjectName, Vec<String>),
    /// Rows of a table, to the client.
    TableToStdout(ObjectName),
    /// Rows of a query, to the client.
    QueryToStdout(Box<Query>),
    /// From or to a program where the server runs, which is refused when it is run.
    Program,
}

pub(super) fn parse(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        parser.expect_keyword(Keyword::TO)?;
        let source = match parse_program(parser)? {
            true => CopySource::Program,
            false => expect_stdout(parser).map(|()| CopySource::QueryToStdout(query))?,
        };
        let options = parse_with(parser)?;
        return Ok(StatementKind::Copy(CopyStatement { source, columns: Vec::new(), options }));
    }
    let is_binary = parse_binary(parser);
    let name = parser.parse_object_name(false)?;
    let columns = if parser.consume_token(&Token::LParen) {
        let columns = parser.parse_comma_separated(|p| Ok(normalise(&p.parse_identifier()?)))?;
        parser.expect_token(&Token::RParen)?;
        columns
    } else {
        Vec::new()
    };
    let source = if parser.parse_keyword(Keyword::TO) {
        match parse_program(parser)? {
            true => CopySource::Program,
            false => expect_stdout(parser).map(|()| CopySource::TableToStdout(name))?,
        }
    } else {
        parser.expect_keyword(Keyword::FROM)?;
        if parse_program(parser)? {
            CopySource::Program
        } else if parser.parse_keyword(Keyword::STDIN) {
            CopySource::FromStdin(name)
        } else {
            let files = parser.parse_comma_separated(Parser::parse_literal_string)?;
            CopySource::FromFiles(name, files)
        }
    };
    let mut options = parse_with(parser)?;
    if is_binary {
        options.insert(0, binary_format());
    }
    let formats = options.iter().filter(|(name, _)| name == "format").count();
    if is_binary && formats > 1 {
        let message = "another format than BINARY, which stands before the table".to_owned();
        return Err(ParserError::ParserError(message));
    }
    Ok(StatementKind::Copy(CopyStatement { source, columns, options }))
}

/// PostgreSQL's oldest form has `BINARY` before the table's name, which it may be as well.
fn parse_binary(parser: &mut Parser<'_>) -> bool {
    let is_name = match &parser.peek_nth_token_ref(1).token {
        Token::Word(word) => !matches!(word.keyword, Keyword::FROM | Keyword::TO),
        _ => false,
    };
    is_name && parse_word(parser, "BINARY")
}

fn binary_format() -> (String, String) {
    ("format".to_owned(), "binary".to_owned())
}

/// `PROGRAM 'command'`.
fn parse_program(parser: &mut Parser<'_>) -> Parsed<bool> {
    if !parse_word(parser, "PROGRAM") {
        return Ok(false);
    }
    parser.parse_literal_string().map(|_| true)
}

fn expect_stdout(parser: &mut Parser<'_>) -> Parsed<()> {
    if parse_word(parser, "STDOUT") {
        return Ok(());
    }
    let found = parser.peek_token();
    parser.expected("STDOUT (the server writes no files for COPY)", found)
}

/// `WITH (…)`, `(…)`, or PostgreSQL's old form `CSV HEADER DELIMITER ','`.
fn parse_with(parser: &mut Parser<'_>) -> Parsed<Vec<(String, String)>> {
    let _ = parser.parse_keyword(Keyword::WITH);
    if parser.peek_token_ref().token == Token::LParen {
        return literal::parse_options(parser);
    }
    let mut options = Vec::new();
    loop {
        if parser.parse_keyword(Keyword::CSV) {
            options.push(("format".to_owned(), "csv".to_owned()));
        } else if parse_word(parser, "BINARY") {
            options.push(binary_format());
        } else if parser.parse_keyword(Keyword::HEADER) {
            options.push(("header".to_owned(), "true".to_owned()));
        } else if let Some(word) =
            parser.parse_one_of_keywords(&[Keyword::DELIMITER, Keyword::NULL, Keyword::QUOTE])
        {
            let _ = parser.parse_keyword(Keyword::AS);
            options.push((format!("{word:?}").to_lowercase(), parser.parse_literal_string()?));
        } else {
            return Ok(options);
        }
    }
}
