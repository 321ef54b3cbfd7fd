//! `COMMENT ON TABLE | VIEW name IS 'text'`, `COMMENT ON COLUMN table.column IS 'text'`; NULL removes one.

use datafusion_sql::sqlparser::ast::ObjectName;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;

use crate::statement::StatementKind;
use crate::{Parsed, normalise};

/// A parsed `COMMENT ON`.
#[derive(Clone, Debug)]
pub struct CommentStatement {
    /// The table or view.
    pub name: ObjectName,
    /// Its column, if the comment is that one's.
    pub column: Option<String>,
    /// The comment; `None` removes it.
    pub text: Option<String>,
}

/// Parses what follows `COMMENT`.
pub(super) fn parse(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    parser.expect_keyword(Keyword::ON)?;
    let (name, column) = if parser.parse_keyword(Keyword::COLUMN) {
        let mut name = parser.parse_object_name(false)?;
        let column = match name.0.pop() {
            Some(part) if !name.0.is_empty() => part.as_ident().map(normalise),
            _ => None,
        };
        if column.is_none() {
            let found = parser.peek_token();
            return parser.expected("table.column after COMMENT ON COLUMN", found);
        }
        (name, column)
    } else if parser.parse_one_of_keywords(&[Keyword::TABLE, Keyword::VIEW]).is_some() {
        (parser.parse_object_name(false)?, None)
    } else {
        let found = parser.peek_token();
        return parser.expected("TABLE, VIEW or COLUMN after COMMENT ON", found);
    };
    parser.expect_keyword(Keyword::IS)?;
    let text = match parser.parse_keyword(Keyword::NULL) {
        true => None,
        false => Some(parser.parse_literal_string()?),
    };
    Ok(StatementKind::Comment(CommentStatement { name, column, text }))
}
