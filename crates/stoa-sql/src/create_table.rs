//! `CREATE TABLE`, in PostgreSQL's, Hive's and Spark's spellings.
//!
//! ```text
//! CREATE TABLE [IF NOT EXISTS] name [(column type [NOT NULL] [COMMENT 'text'], …) | (column, …)]
//!   [USING iceberg] [STORED AS ORC]
//!   [PARTITIONED BY (term, …)] [ORDER BY (term, …)]
//!   [COMMENT 'text'] [TBLPROPERTIES ('key' = 'value', …)] [AS query]
//! ```
//! The clauses after the columns come in any order.

use arrow::datatypes::{DataType, Field};
use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{ObjectName, SetExpr, Statement};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;
use stoa_error::{Error, Result};
use stoa_table::{PartitionTerm, SortTerm, Transform};

use crate::defining::DefiningQuery;
use crate::{Parsed, arrow_type, literal, normalise, parse_word};

/// A parsed `CREATE TABLE`.
#[derive(Clone, Debug)]
pub struct CreateTableStatement {
    /// Its name.
    pub name: ObjectName,
    /// Whether one that is there is left as it is.
    pub if_not_exists: bool,
    /// Its columns; none where the query gives them.
    pub columns: Vec<Field>,
    /// The names of the query's columns, if they are given.
    pub column_names: Vec<String>,
    /// `PARTITIONED BY`
    pub partition_by: Vec<PartitionTerm>,
    /// `SORTED BY`
    pub sort_by: Vec<SortTerm>,
    /// `COMMENT`
    pub comment: Option<String>,
    /// `TBLPROPERTIES`
    pub properties: Vec<(String, String)>,
    /// The query whose rows it gets: `CREATE TABLE … AS`.
    pub query: Option<DefiningQuery>,
}

impl CreateTableStatement {
    /// A table of which nothing but the name is said.
    pub(super) fn named(name: ObjectName) -> Self {
        Self {
            name,
            if_not_exists: false,
            columns: Vec::new(),
            column_names: Vec::new(),
            partition_by: Vec::new(),
            sort_by: Vec::new(),
            comment: None,
            properties: Vec::new(),
            query: None,
        }
    }
}

/// Takes `INTO name` out of a query.
///
/// # Errors
/// 0A000 for temporary tables.
pub(super) fn taken_into(statement: &mut EngineStatement) -> Result<Option<ObjectName>> {
    let EngineStatement::Statement(statement) = statement else { return Ok(None) };
    let Statement::Query(query) = statement.as_mut() else { return Ok(None) };
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(None) };
    match select.into.take() {
        Some(into) if into.temporary => {
            Err(Error::unsupported("temporary tables are not supported")
                .with_hint("use a table, and drop it"))
        }
        into => Ok(into.map(|into| into.name)),
    }
}

/// Key of a column's comment in Arrow's field metadata.
pub const COMMENT_KEY: &str = "comment";

/// Parses what follows `CREATE TABLE`; whether the query follows, which is left to the caller.
pub(super) fn parse(parser: &mut Parser<'_>) -> Parsed<(CreateTableStatement, bool)> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let mut table = CreateTableStatement { if_not_exists, ..CreateTableStatement::named(name) };
    if parser.peek_token_ref().token == Token::LParen {
        match parser.maybe_parse(parse_names)? {
            Some(names) => table.column_names = names,
            None => table.columns = parse_columns(parser)?,
        }
    }
    while parse_clause(parser, &mut table)? {}
    let has_query = parser.parse_keyword(Keyword::AS);
    if table.columns.is_empty() && !has_query {
        let found = parser.peek_token();
        return parser.expected("columns in parentheses, or AS and a query", found);
    }
    if !table.columns.is_empty() && has_query {
        return Err(ParserError::ParserError(
            "CREATE TABLE AS takes the types of its columns from the query; give names only".into(),
        ));
    }
    Ok((table, has_query))
}

/// `(name, …)`, without types.
fn parse_names(parser: &mut Parser<'_>) -> Parsed<Vec<String>> {
    parser.expect_token(&Token::LParen)?;
    let names = parser.parse_comma_separated(|p| p.parse_identifier().map(|i| normalise(&i)))?;
    parser.expect_token(&Token::RParen)?;
    Ok(names)
}

fn parse_clause(parser: &mut Parser<'_>, table: &mut CreateTableStatement) -> Parsed<bool> {
    if parser.parse_keyword(Keyword::USING) {
        expect_one_of(parser, &["ICEBERG", "ORC"])?;
    } else if parser.parse_keywords(&[Keyword::STORED, Keyword::AS]) {
        expect_one_of(parser, &["ORC"])?;
    } else if parser.parse_keywords(&[Keyword::PARTITIONED, Keyword::BY])
        || parser.parse_keywords(&[Keyword::PARTITION, Keyword::BY])
    {
        let (terms, columns) = parse_partition_clause(parser)?;
        table.partition_by.extend(terms);
        table.columns.extend(columns);
    } else if parser.parse_keywords(&[Keyword::ORDER, Keyword::BY])
        || parser.parse_keywords(&[Keyword::SORTED, Keyword::BY])
        || parser.parse_keywords(&[Keyword::SORT, Keyword::BY])
    {
        table.sort_by = parse_sort_terms(parser)?;
    } else if parser.parse_keyword(Keyword::COMMENT) {
        let _ = parser.consume_token(&Token::Eq);
        table.comment = Some(parser.parse_literal_string()?);
    } else if parser.parse_keyword(Keyword::TBLPROPERTIES) || parser.parse_keyword(Keyword::WITH) {
        table.properties.extend(literal::parse_options(parser)?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn expect_one_of(parser: &mut Parser<'_>, words: &[&str]) -> Parsed<()> {
    if words.iter().any(|word| parse_word(parser, word)) {
        return Ok(());
    }
    let found = parser.peek_token();
    let wanted = words.join(" or ").to_lowercase();
    parser.expected(&format!("{wanted} (tables are Iceberg tables of ORC files)"), found)
}

fn parse_columns(parser: &mut Parser<'_>) -> Parsed<Vec<Field>> {
    parser.expect_token(&Token::LParen)?;
    let columns = parser.parse_comma_separated(parse_column)?;
    parser.expect_token(&Token::RParen)?;
    Ok(columns)
}

/// `name type [NOT NULL | NULL] [COMMENT 'text']`
pub(super) fn parse_column(parser: &mut Parser<'_>) -> Parsed<Field> {
    let ident = parser.parse_identifier()?;
    let name = normalise(&ident);
    if name.eq_ignore_ascii_case("primary") || name.eq_ignore_ascii_case("constraint") {
        return Err(unsupported_constraint(&name));
    }
    let data_type = parse_type(parser)?;
    let mut field = Field::new(name, data_type, true);
    loop {
        if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
            field.set_nullable(false);
        } else if parser.parse_keyword(Keyword::NULL) {
            field.set_nullable(true);
        } else if parser.parse_keyword(Keyword::COMMENT) {
            let text = parser.parse_literal_string()?;
            field = field.with_metadata([(COMMENT_KEY.to_owned(), text)].into());
        } else if let Some(word) = parser.parse_one_of_keywords(&[
            Keyword::PRIMARY,
            Keyword::UNIQUE,
            Keyword::REFERENCES,
            Keyword::CHECK,
            Keyword::DEFAULT,
            Keyword::GENERATED,
        ]) {
            return Err(unsupported_constraint(&format!("{word:?}")));
        } else {
            return Ok(field);
        }
    }
}

fn unsupported_constraint(word: &str) -> ParserError {
    ParserError::ParserError(format!(
        "{} is not supported: event tables have no keys, checks or defaults",
        word.to_uppercase()
    ))
}

/// A column type as Arrow's.
pub(super) fn parse_type(parser: &mut Parser<'_>) -> Parsed<DataType> {
    let sql_type = parser.parse_data_type()?;
    arrow_type(&sql_type).map_err(|error| ParserError::ParserError(error.to_string()))
}

/// Partition terms in a text of their own, as `stoa load --partition-by` takes them.
pub fn parse_partition_terms(parser: &mut Parser<'_>) -> Parsed<Vec<PartitionTerm>> {
    parser.parse_comma_separated(parse_partition_term)
}

/// Hive's `PARTITIONED BY (dt DATE)` adds a column; terms name columns that exist.
fn parse_partition_clause(parser: &mut Parser<'_>) -> Parsed<(Vec<PartitionTerm>, Vec<Field>)> {
    parser.expect_token(&Token::LParen)?;
    let (mut terms, mut columns) = (Vec::new(), Vec::new());
    loop {
        let term = parse_partition_term(parser)?;
        let ends = matches!(parser.peek_token_ref().token, Token::Comma | Token::RParen);
        if !ends && term.transform == Transform::Identity {
            let data_type = parse_type(parser)?;
            columns.push(Field::new(term.column.clone(), data_type, true));
        }
        terms.push(term);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok((terms, columns))
}

/// `column`, `day(column)`, `bucket(16, column)`, `truncate(4, column)`; plurals as in Spark.
fn parse_partition_term(parser: &mut Parser<'_>) -> Parsed<PartitionTerm> {
    let ident = parser.parse_identifier()?;
    if !parser.consume_token(&Token::LParen) {
        return Ok(PartitionTerm { column: normalise(&ident), transform: Transform::Identity });
    }
    let function = ident.value.to_lowercase();
    let argument = |parser: &mut Parser<'_>| -> Parsed<u32> {
        let number = parser.parse_literal_uint()?;
        parser.expect_token(&Token::Comma)?;
        u32::try_from(number)
            .map_err(|_| ParserError::ParserError(format!("{function}: {number} is too large")))
    };
    let transform = match function.as_str() {
        "year" | "years" => Transform::Year,
        "month" | "months" => Transform::Month,
        "day" | "days" | "date" => Transform::Day,
        "hour" | "hours" | "date_hour" => Transform::Hour,
        "bucket" => Transform::Bucket(argument(parser)?),
        "truncate" => Transform::Truncate(argument(parser)?),
        "identity" => Transform::Identity,
        other => {
            return Err(ParserError::ParserError(format!(
                "unknown partition transform {other}; \
                 known are year, month, day, hour, bucket(n, column), truncate(n, column)"
            )));
        }
    };
    let column = normalise(&parser.parse_identifier()?);
    parser.expect_token(&Token::RParen)?;
    Ok(PartitionTerm { column, transform })
}

/// `(a, b DESC NULLS LAST)`, with or without the parentheses.
pub fn parse_sort_terms(parser: &mut Parser<'_>) -> Parsed<Vec<SortTerm>> {
    let in_parentheses = parser.consume_token(&Token::LParen);
    let terms = parser.parse_comma_separated(parse_sort_term)?;
    if in_parentheses {
        parser.expect_token(&Token::RParen)?;
    }
    Ok(terms)
}

fn parse_sort_term(parser: &mut Parser<'_>) -> Parsed<SortTerm> {
    let term = parse_partition_term(parser)?;
    let descending = parser.parse_keyword(Keyword::DESC);
    if !descending {
        let _ = parser.parse_keyword(Keyword::ASC);
    }
    let nulls_first = if parser.parse_keywords(&[Keyword::NULLS, Keyword::FIRST]) {
        true
    } else if parser.parse_keywords(&[Keyword::NULLS, Keyword::LAST]) {
        false
    } else {
        !descending
    };
    Ok(SortTerm { column: term.column, transform: term.transform, descending, nulls_first })
}
