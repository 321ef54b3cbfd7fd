//! `COPY table [(columns)] FROM STDIN | 'file' [WITH (option value, …)]` and
//! `COPY table | (query) TO STDOUT [WITH (…)]`.

use datafusion::sql::sqlparser::ast::{ObjectName, Query};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Parsed, literal, normalise, parse_word};
use crate::statement::StatementKind;

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
}

pub(super) fn parse(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        parser.expect_keyword(Keyword::TO)?;
        expect_stdout(parser)?;
        let options = parse_with(parser)?;
        let source = CopySource::QueryToStdout(query);
        return Ok(StatementKind::Copy(CopyStatement { source, columns: Vec::new(), options }));
    }
    let name = parser.parse_object_name(false)?;
    let columns = if parser.consume_token(&Token::LParen) {
        let columns = parser.parse_comma_separated(|p| Ok(normalise(&p.parse_identifier()?)))?;
        parser.expect_token(&Token::RParen)?;
        columns
    } else {
        Vec::new()
    };
    let source = if parser.parse_keyword(Keyword::TO) {
        expect_stdout(parser)?;
        CopySource::TableToStdout(name)
    } else {
        parser.expect_keyword(Keyword::FROM)?;
        if parser.parse_keyword(Keyword::STDIN) {
            CopySource::FromStdin(name)
        } else {
            let files = parser.parse_comma_separated(Parser::parse_literal_string)?;
            CopySource::FromFiles(name, files)
        }
    };
    let options = parse_with(parser)?;
    Ok(StatementKind::Copy(CopyStatement { source, columns, options }))
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
