//! `CREATE TABLE`, in PostgreSQL's, Hive's and Spark's spellings.
//!
//! ```text
//! CREATE [TEMP[ORARY]] TABLE [IF NOT EXISTS] name [(column type [NOT NULL] [PRIMARY KEY] [COMMENT 'text'], …
//!   [, LIKE table [INCLUDING what | EXCLUDING what …]] [, PRIMARY KEY (column, …)]) | (column, …) | LIKE table]
//!   [USING iceberg] [STORED AS ORC]
//!   [PARTITIONED BY (term, …)] [ORDER BY (term, …)] [ON COMMIT PRESERVE ROWS | DROP]
//!   [COMMENT 'text'] [TBLPROPERTIES ('key' = 'value', …)] [AS query]
//! ```
//! The clauses after the columns come in any order. `CREATE EXTERNAL TABLE` has those of [`crate::external`] in
//! place of `USING`, `STORED AS` and `ORDER BY`, and columns, but no query.

use arrow::datatypes::{DataType, Field};
use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{ObjectName, SetExpr, Statement};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;
use stoa_table::{DEFAULT_KEY, DeclaredType, PartitionTerm, SortTerm, Transform};

use crate::defining::DefiningQuery;
use crate::external::{self, ExternalFiles};
use crate::identity::{self, IDENTITY_KEY, Identity};
use crate::types::declared_type;
use crate::{Parsed, arrow_type, defaults, literal, normalise, parse_word};

/// A parsed `CREATE TABLE`.
#[derive(Clone, Debug)]
pub struct CreateTableStatement {
    /// Its name.
    pub name: ObjectName,
    /// Whether it is the session's only.
    pub is_temporary: bool,
    /// Whether it is dropped when the transaction ends.
    pub drops_at_end: bool,
    /// Whether one that is there is left as it is.
    pub if_not_exists: bool,
    /// Its columns; none where the query gives them.
    pub columns: Vec<Field>,
    /// The tables whose columns it has, too.
    pub likes: Vec<Like>,
    /// The names of the query's columns, if they are given.
    pub column_names: Vec<String>,
    /// The columns of the `PRIMARY KEY`; none where there is none.
    pub primary_key: Vec<String>,
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
    /// Of an external table: its files.
    pub external: Option<ExternalFiles>,
}

impl CreateTableStatement {
    /// A table of which nothing but the name is said.
    pub(super) fn named(name: ObjectName) -> Self {
        Self {
            name,
            is_temporary: false,
            drops_at_end: false,
            if_not_exists: false,
            columns: Vec::new(),
            likes: Vec::new(),
            column_names: Vec::new(),
            primary_key: Vec::new(),
            partition_by: Vec::new(),
            sort_by: Vec::new(),
            comment: None,
            properties: Vec::new(),
            query: None,
            external: None,
        }
    }
}

/// `LIKE table`, in PostgreSQL's spelling (among the columns) or in Hive's (instead of them).
#[derive(Clone, Debug)]
pub struct Like {
    /// The table whose columns are copied, with their types and NOT NULL.
    pub table: ObjectName,
    /// How many of the statement's own columns stand before it.
    pub at: usize,
    /// What of the table is copied besides.
    pub including: Including,
}

/// What a table takes over from the one that it is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Including {
    /// Defaults of columns.
    pub defaults: bool,
    /// Identity columns; the numbers begin anew.
    pub identity: bool,
    /// The `PRIMARY KEY`.
    pub key: bool,
    /// Comments of columns.
    pub comments: bool,
    /// Partitions, order and properties, as Hive's spelling does.
    pub layout: bool,
}

impl Including {
    /// All that PostgreSQL's `INCLUDING ALL` names.
    const ALL: Self =
        Self { defaults: true, identity: true, key: true, comments: true, layout: false };

    fn set(&mut self, what: &str, is_included: bool) -> bool {
        match what {
            "ALL" => *self = if is_included { Self::ALL } else { Self::default() },
            "DEFAULTS" => self.defaults = is_included,
            "IDENTITY" => self.identity = is_included,
            "INDEXES" => self.key = is_included,
            "COMMENTS" => self.comments = is_included,
            // Tables have none of these.
            "COMPRESSION" | "CONSTRAINTS" | "GENERATED" | "STATISTICS" | "STORAGE" => {}
            _ => return false,
        }
        true
    }
}

/// Takes `INTO [TEMPORARY] name` out of a query; whether the table is temporary comes with its name.
pub(super) fn taken_into(statement: &mut EngineStatement) -> Option<(ObjectName, bool)> {
    let EngineStatement::Statement(statement) = statement else { return None };
    let Statement::Query(query) = statement.as_mut() else { return None };
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    select.into.take().map(|into| (into.name, into.temporary))
}

/// Key of a column's comment in Arrow's field metadata.
pub const COMMENT_KEY: &str = "comment";

/// Parses what follows `CREATE EXTERNAL TABLE`.
pub(super) fn parse_external(parser: &mut Parser<'_>) -> Parsed<CreateTableStatement> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let named = CreateTableStatement::named(parser.parse_object_name(false)?);
    let mut table = CreateTableStatement { if_not_exists, ..named };
    parse_columns(parser, &mut table)?;
    let mut files = ExternalFiles::default();
    while external::parse_clause(parser, &mut files)? || parse_clause(parser, &mut table)? {}
    if files.location.is_none() {
        let found = parser.peek_token();
        return parser.expected("LOCATION 'directory' of an external table", found);
    }
    let is_plain =
        table.likes.is_empty() && table.sort_by.is_empty() && table.primary_key.is_empty();
    if !is_plain {
        return Err(ParserError::ParserError(
            "an external table has neither LIKE, ORDER BY nor a PRIMARY KEY".into(),
        ));
    }
    table.external = Some(files);
    Ok(table)
}

/// Parses what follows `CREATE TABLE`; whether the query follows, which is left to the caller.
pub(super) fn parse(
    parser: &mut Parser<'_>,
    is_temporary: bool,
) -> Parsed<(CreateTableStatement, bool)> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let named = CreateTableStatement::named(name);
    let mut table = CreateTableStatement { is_temporary, if_not_exists, ..named };
    if parser.peek_token_ref().token == Token::LParen {
        match parser.maybe_parse(parse_names)? {
            Some(names) => table.column_names = names,
            None => parse_columns(parser, &mut table)?,
        }
    }
    if parser.parse_keyword(Keyword::LIKE) {
        let including = Including { layout: true, ..Including::ALL };
        table.likes.push(Like { table: parser.parse_object_name(false)?, at: 0, including });
    }
    while parse_clause(parser, &mut table)? {}
    let has_query = parser.parse_keyword(Keyword::AS);
    if table.columns.is_empty() && table.likes.is_empty() && !has_query {
        let found = parser.peek_token();
        return parser.expected("columns in parentheses, or AS and a query", found);
    }
    if (!table.columns.is_empty() || !table.likes.is_empty()) && has_query {
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
    } else if table.is_temporary && parser.parse_keywords(&[Keyword::ON, Keyword::COMMIT]) {
        if parser.parse_keyword(Keyword::DROP) {
            table.drops_at_end = true;
        } else if !(parse_word(parser, "PRESERVE") && parser.parse_keyword(Keyword::ROWS)) {
            return Err(ParserError::ParserError(
                "of ON COMMIT, PRESERVE ROWS and DROP are supported: truncate the table instead"
                    .into(),
            ));
        }
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

fn parse_columns(parser: &mut Parser<'_>, table: &mut CreateTableStatement) -> Parsed<()> {
    parser.expect_token(&Token::LParen)?;
    parser.parse_comma_separated(|parser| {
        if parser.parse_keyword(Keyword::LIKE) {
            let like = parse_like(parser, table.columns.len())?;
            table.likes.push(like);
            return Ok(());
        }
        let key = match parse_key(parser)? {
            Some(key) => key,
            None => {
                let (column, is_key) = parse_column_or_key(parser)?;
                let name = column.name().clone();
                table.columns.push(column);
                if is_key { vec![name] } else { return Ok(()) }
            }
        };
        if !table.primary_key.is_empty() {
            return Err(ParserError::ParserError("a table has one PRIMARY KEY".into()));
        }
        table.primary_key = key;
        Ok(())
    })?;
    parser.expect_token(&Token::RParen)?;
    // As in PostgreSQL, columns of the key are not null.
    for column in &mut table.columns {
        if table.primary_key.contains(column.name()) {
            column.set_nullable(false);
        }
    }
    Ok(())
}

/// What follows `LIKE` among the columns: `table [INCLUDING what | EXCLUDING what …]`.
fn parse_like(parser: &mut Parser<'_>, at: usize) -> Parsed<Like> {
    let table = parser.parse_object_name(false)?;
    let mut including = Including::default();
    loop {
        let is_included = match () {
            () if parse_word(parser, "INCLUDING") => true,
            () if parse_word(parser, "EXCLUDING") => false,
            () => return Ok(Like { table, at, including }),
        };
        let what = parser.parse_identifier()?.value.to_ascii_uppercase();
        if !including.set(&what, is_included) {
            return Err(ParserError::ParserError(format!(
                "LIKE … INCLUDING {what}: expected ALL, COMMENTS, COMPRESSION, CONSTRAINTS, DEFAULTS, GENERATED, IDENTITY, \
                 INDEXES, STATISTICS or STORAGE"
            )));
        }
    }
}

/// `[CONSTRAINT name] PRIMARY KEY (column, …)`; `None` where a column stands.
fn parse_key(parser: &mut Parser<'_>) -> Parsed<Option<Vec<String>>> {
    if parser.parse_keyword(Keyword::CONSTRAINT) {
        parser.parse_identifier()?;
    } else if !matches!(parser.peek_nth_token(1).token, Token::Word(ref word) if word.keyword == Keyword::KEY)
    {
        return Ok(None);
    }
    if !parser.parse_keywords(&[Keyword::PRIMARY, Keyword::KEY]) {
        return Err(unsupported_constraint(&parser.peek_token().to_string()));
    }
    parse_names(parser).map(Some)
}

/// `name type [NOT NULL | NULL] [DEFAULT expression | GENERATED … AS IDENTITY] [COMMENT 'text']`
pub(super) fn parse_column(parser: &mut Parser<'_>) -> Parsed<Field> {
    match parse_column_or_key(parser)? {
        (field, false) => Ok(field),
        (_, true) => Err(unsupported_constraint("PRIMARY KEY of a column that is added")),
    }
}

/// A column, and whether it is the `PRIMARY KEY`.
fn parse_column_or_key(parser: &mut Parser<'_>) -> Parsed<(Field, bool)> {
    let ident = parser.parse_identifier()?;
    let name = normalise(&ident);
    if ident.quote_style.is_none() && ["unique", "check", "foreign"].contains(&name.as_str()) {
        return Err(unsupported_constraint(&name));
    }
    let mut is_key = false;
    let serial = parse_serial(parser);
    let (data_type, declared) = match serial.clone() {
        Some(typed) => typed,
        None => parse_declared_type(parser)?,
    };
    let mut field = declared_field(name, data_type, declared);
    if serial.is_some() {
        make_identity(&mut field, Identity::SERIAL)?;
    }
    loop {
        if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
            field.set_nullable(false);
        } else if parser.parse_keyword(Keyword::NULL) {
            if field.metadata().contains_key(IDENTITY_KEY) {
                let name = field.name();
                return Err(ParserError::ParserError(format!(
                    "conflicting NULL and NOT NULL of the identity column \"{name}\""
                )));
            }
            field.set_nullable(true);
        } else if parser.parse_keyword(Keyword::COMMENT) {
            let text = parser.parse_literal_string()?;
            field.metadata_mut().insert(COMMENT_KEY.to_owned(), text);
        } else if parser.parse_keyword(Keyword::DEFAULT) {
            let text = defaults::parse(parser)?;
            field.metadata_mut().insert(DEFAULT_KEY.to_owned(), text);
            refuse_two_defaults(&field)?;
        } else if parser.parse_keyword(Keyword::GENERATED) {
            let identity = identity::parse(parser)?;
            make_identity(&mut field, identity)?;
        } else if parser.parse_keywords(&[Keyword::PRIMARY, Keyword::KEY]) {
            is_key = true;
        } else if let Some(word) =
            parser.parse_one_of_keywords(&[Keyword::UNIQUE, Keyword::REFERENCES, Keyword::CHECK])
        {
            return Err(unsupported_constraint(&format!("{word:?}")));
        } else {
            return Ok((field, is_key));
        }
    }
}

/// `serial` and its like: the type of the column.
fn parse_serial(parser: &mut Parser<'_>) -> Option<(DataType, Option<DeclaredType>)> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return None };
    let data_type = match word.value.to_ascii_lowercase().as_str() {
        "smallserial" | "serial2" => (DataType::Int32, Some(DeclaredType::SmallInt)),
        "serial" | "serial4" => (DataType::Int32, None),
        "bigserial" | "serial8" => (DataType::Int64, None),
        _ => return None,
    };
    parser.next_token();
    Some(data_type)
}

/// As in PostgreSQL, identity columns are integers and not null.
fn make_identity(field: &mut Field, identity: Identity) -> Parsed<()> {
    if !field.data_type().is_integer() {
        return Err(ParserError::ParserError(
            "identity column type must be smallint, integer, or bigint".into(),
        ));
    }
    field.set_nullable(false);
    field.metadata_mut().insert(IDENTITY_KEY.to_owned(), identity.written());
    refuse_two_defaults(field)
}

fn refuse_two_defaults(field: &Field) -> Parsed<()> {
    let has = |key: &str| field.metadata().contains_key(key);
    match has(DEFAULT_KEY) && has(IDENTITY_KEY) {
        true => Err(ParserError::ParserError(format!(
            "both default and identity specified for column \"{}\"",
            field.name()
        ))),
        false => Ok(()),
    }
}

fn unsupported_constraint(word: &str) -> ParserError {
    ParserError::ParserError(format!(
        "{} is not supported: of constraints, tables have PRIMARY KEY and NOT NULL",
        word.to_uppercase()
    ))
}

/// A column type as Arrow's, and what is declared beyond it.
pub(super) fn parse_declared_type(
    parser: &mut Parser<'_>,
) -> Parsed<(DataType, Option<DeclaredType>)> {
    let sql_type = parser.parse_data_type()?;
    let explain = |error: stoa_error::Error| ParserError::ParserError(error.to_string());
    Ok((arrow_type(&sql_type).map_err(explain)?, declared_type(&sql_type).map_err(explain)?))
}

fn declared_field(name: String, data_type: DataType, declared: Option<DeclaredType>) -> Field {
    let field = Field::new(name, data_type, true);
    match declared {
        Some(declared) => declared.declare(field),
        None => field,
    }
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
            let (data_type, declared) = parse_declared_type(parser)?;
            columns.push(declared_field(term.column.clone(), data_type, declared));
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
