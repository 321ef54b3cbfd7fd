//! The query of a statement that stores it, or its rows: `CREATE VIEW … AS`, `CREATE TABLE … AS`.

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;
use stoa_error::{Error, Result};

use crate::lexer::{Lexer, TokenKind};
use crate::split::offset_of;
use crate::statement::StatementKind;
use crate::{Rewrite, parse_plan};

/// A query that defines a table or view.
#[derive(Clone, Debug)]
pub struct DefiningQuery {
    /// Its text, as it was written.
    pub text: String,
    /// What it means, as a statement of its own.
    pub statement: Box<EngineStatement>,
}

impl DefiningQuery {
    /// Reads the query that begins at the parser's next token and ends with `text`.
    ///
    /// # Errors
    /// Those of a query, with their places in `text`; 42601 for anything else.
    pub(super) fn parse(parser: &mut Parser<'_>, text: &str, others: Rewrite) -> Result<Self> {
        let start = parser.peek_token_ref().span.start;
        let before = offset_of(text, start.line, start.column) - 1;
        let at = text.char_indices().nth(before).map_or(text.len(), |(at, _)| at);
        let query = text[at..].trim_end_matches(|c: char| c.is_whitespace() || c == ';');
        if !begins_query(query) {
            return Err(Error::invalid("a query must follow AS")
                .with_sqlstate("42601")
                .with_position(before + 1)
                .with_hint("write SELECT, WITH, VALUES or TABLE"));
        }
        let kind = parse_plan(query, others).map_err(|error| match error.position() {
            Some(position) => error.with_position(before + position),
            None => error,
        })?;
        let StatementKind::Plan(statement) = kind else {
            return Err(
                Error::invalid("a query with INTO cannot stand here").with_sqlstate("42601")
            );
        };
        while parser.next_token().token != Token::EOF {}
        Ok(Self { text: query.to_owned(), statement })
    }

    /// The query's syntax tree.
    pub fn query(&self) -> Option<&ast::Query> {
        let EngineStatement::Statement(statement) = &*self.statement else { return None };
        match &**statement {
            ast::Statement::Query(query) => Some(query),
            _ => None,
        }
    }
}

fn begins_query(text: &str) -> bool {
    match Lexer::new(text).next_significant() {
        Some(token) if token.kind == TokenKind::Word => ["SELECT", "WITH", "VALUES", "TABLE"]
            .iter()
            .any(|word| token.text.eq_ignore_ascii_case(word)),
        Some(token) => token.is_sign('('),
        None => false,
    }
}
