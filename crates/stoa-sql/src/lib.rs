//! Stoa's SQL as text: what is parsed here, and what is left to DataFusion's parser.
//!
//! In: text. Out: [`Statement`]s. Table definitions, COPY, SHOW, SET and transaction control are
//! parsed here (grammar: `docs/sql.md`), with the spellings of PostgreSQL, Hive and Spark where
//! they are unambiguous; queries, INSERT and EXPLAIN go to the engine in PostgreSQL's dialect.
//!
//! Not here: names are not resolved, types not checked against tables (`stoa-query`).

mod absent;
pub mod adapt;
mod aliases_apart;
mod alter;
pub mod array_queries;
mod assigned_rows;
mod between;
mod bounded;
mod calls;
mod casts_apart;
pub mod chains;
pub mod changes_from;
mod changing_with;
pub mod column_names;
mod comment;
mod copy;
mod create_table;
pub mod dates;
pub mod defaults;
mod defining;
mod distinct_from;
pub mod explain;
mod extent;
mod external;
pub mod fingerprint;
mod frames;
mod from_names;
mod grouping_sets;
mod having;
mod hypothetical_sets;
pub mod identity;
mod idle_merges;
mod in_lists;
mod insert;
mod insert_all;
mod insert_if_absent;
pub mod intervals;
mod join_conditions;
pub mod lexer;
mod literal;
mod literals;
mod load_data;
mod maintain;
mod nested_with;
mod not_exists;
mod operators;
pub mod ordered_rows;
mod ordinality;
mod partitions;
pub mod pointing;
pub mod populated;
mod reads;
mod records;
pub mod recursive_terms;
mod references;
mod reread;
mod resource_plans;
pub mod returning;
mod roles;
mod row_functions;
mod row_values;
mod rows_from;
mod rows_in_queries;
mod samples;
mod script_files;
pub mod secrets;
mod series;
mod session;
mod sets;
mod show;
pub mod slices;
mod special_times;
mod split;
mod statement;
pub mod syntax_error;
mod table_queries;
pub mod temporary;
pub mod time_travel;
mod types;
pub mod upsert;
mod using_joins;
pub mod uuid_texts;
mod value_rows;
mod view;
mod volatile_with;
pub mod walk;
pub mod whole_rows;
mod whole_tables;
mod windows;
mod worded_calls;

use std::borrow::Cow;

use datafusion_sql::parser::{DFParserBuilder, Statement as EngineStatement};
use datafusion_sql::sqlparser::ast::{self, ObjectName};
use datafusion_sql::sqlparser::dialect::{GenericDialect, PostgreSqlDialect};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::{Token, Tokenizer};
use stoa_error::{Error, Result};

pub use aliases_apart::{column_of_no_table, tell_aliases_apart};
pub use alter::{AlterAction, AlterTableStatement, RollBackTarget};
pub use bounded::Bounded;
pub use casts_apart::tell_casts_apart;
pub use comment::CommentStatement;
pub use copy::{CopySource, CopyStatement};
pub use create_table::{COMMENT_KEY, parse_partition_terms, parse_sort_terms};
pub use create_table::{CreateTableStatement, Including, Like};
pub use defining::DefiningQuery;
pub use extent::measure;
pub use external::ExternalFiles;
pub use insert_if_absent::InsertIfAbsentStatement;
pub use load_data::LoadDataStatement;
pub use maintain::{Maintenance, MaintenanceWork};
pub use partitions::{
    Comparison, NULL_PARTITION, PartitionSpec, PartitionStatement, PartitionTerm, PartitionWork,
};
pub use roles::{
    ColumnPrivilege, GrantObjects, GrantStatement, Password, RoleOptions, RoleStatement,
};
pub use script_files::ScriptFilesStatement;
pub use session::{Isolation, TransactionControl, TransactionModes, path_of};
pub use show::ShowStatement;
pub use split::{first_word, last_parameter, number_parameters, split_statements};
pub use statement::{Statement, StatementKind, WriteDirectoryStatement};
pub use stoa_table::DeclaredType;
pub use types::arrow_type;
pub use value_rows::{ValueLiteral, ValueRows};
pub use view::{AlterViewAction, AlterViewStatement, CreateViewStatement, ViewHead};

use crate::syntax_error::{from_parser, from_sql_parser};

/// Parses the statements that somebody else knows how to read; `None` for all others. What it makes of a
/// statement means the same.
pub type Rewrite = fn(&str) -> Result<Option<ast::Statement>>;

/// Parses a text of any number of statements. Empty ones are left out, unless the text holds
/// nothing else: then one empty statement is returned. Queries are shown to `others` first.
///
/// # Errors
/// Syntax errors (42601) with the place in the statement; 54000 and 54001 for what is too large.
pub fn parse(sql: &str, others: Rewrite) -> Result<Vec<Statement>> {
    measure(sql)?;
    let mut statements = Vec::with_capacity(1);
    for text in split_statements(sql) {
        let kind = parse_kind(text, others).map_err(|error| pointing::point(error, text))?;
        let text = match &kind {
            // Statements are shown to others: passwords are not.
            StatementKind::Role(role) => role.text_without_password(text),
            _ => text.to_owned(),
        };
        statements.push(Statement { text, kind });
    }
    if statements.is_empty() {
        let (text, kind) = (String::new(), StatementKind::Empty);
        statements.push(Statement { text, kind });
    }
    Ok(statements)
}

fn parse_kind(text: &str, others: Rewrite) -> Result<StatementKind> {
    let text = &*literals::written_out(text)?;
    let word = first_word(text).to_ascii_uppercase();
    if resource_plans::is_in(text) {
        return parse_resource_plan(text);
    }
    absent::refuse(text)?;
    match word.as_str() {
        "CREATE" | "DROP" | "ALTER" | "COPY" | "SHOW" | "DESCRIBE" | "DESC" | "SET" | "RESET"
        | "USE" | "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT" | "SAVEPOINT"
        | "RELEASE" | "DISCARD" | "DEALLOCATE" | "UNLISTEN" | "FLUSH" | "COMPACT" | "EXPIRE"
        | "APPLY" | "KILL" | "CACHE" | "PURGE" | "GRANT" | "REVOKE" | "COMMENT" | "VACUUM"
        | "ANALYZE" | "ANALYSE" => parse_own(text, &word, others),
        "LOAD" => parse_own(text, &word, others),
        word if script_files::is_in(text, word) => parse_own(text, word, others),
        "INSERT" if insert_all::is_in(text) => insert_all::parse(text, others),
        "INSERT" if insert_if_absent::is_in(text) => insert_if_absent::parse(text, others),
        "INSERT" if external::is_directory_in(text) => external::parse_directory(text, others),
        "INSERT" => match insert::parse_partitioned(text) {
            Ok(Some(statement)) => {
                let mut statement = EngineStatement::Statement(Box::new(statement));
                chains::flatten(&mut statement)?;
                Ok(StatementKind::Plan(Box::new(statement)))
            }
            Ok(None) => parse_plan(text, others),
            Err(error) => Err(from_parser_raw(error, text)),
        },
        _ => parse_plan(text, others),
    }
}

fn parse_plan(text: &str, others: Rewrite) -> Result<StatementKind> {
    let text = &*match explain::read(text)? {
        Some(explain) => Cow::Owned(explain.for_engine(text)),
        None => Cow::Borrowed(text),
    };
    let text = &*time_travel::written_as_names(text);
    let mut statement = match others(text)? {
        Some(statement) => {
            let mut statement = EngineStatement::Statement(Box::new(statement));
            chains::flatten(&mut statement)?;
            statement
        }
        None => match parse_query(text)? {
            EngineStatement::Explain(mut explain) => {
                // What is explained may be of others, too.
                if let Some(statement) = others(&explain.statement.to_string())? {
                    let mut statement = EngineStatement::Statement(Box::new(statement));
                    chains::flatten(&mut statement)?;
                    *explain.statement = statement;
                }
                EngineStatement::Explain(explain)
            }
            statement => statement,
        },
    };
    if let Some(ast::Statement::Insert(insert)) = adapt::parsed(&mut statement) {
        returning::drop_alias(insert);
    }
    let is_plain = adapt::inserts_literals(&statement);
    let mut restarts = false;
    references::check(&statement, text)?;
    if !is_plain && let Some(statement) = adapt::parsed(&mut statement) {
        literals::refuse_as_names(statement, text)?;
        samples::write_as_queries(statement, text)?;
        calls::write_null_tests(statement);
        column_names::name_columns(statement);
    }
    adapt::exponents_are_doubles(&mut statement, text);
    if !is_plain {
        if let Some(statement) = adapt::parsed(&mut statement) {
            assigned_rows::write_out(statement)?;
            idle_merges::take_out(statement)?;
        }
        // With RETURNING, it is when that is taken out.
        if !returning::is_in(&statement)
            && let Some(statement) = adapt::parsed(&mut statement)
        {
            changes_from::write_as_merge(statement)?;
        }
        adapt::values_as_relations(&mut statement, text);
        restarts = adapt::truncate_one_table(&mut statement);
        sets::write_as_lists(&mut statement, text)?;
        series::write_as_queries(&mut statement, text);
        adapt::as_postgresql(&mut statement)?;
        if time_travel::may_be_in(text) {
            time_travel::name_tables(&mut statement);
        }
    }
    if let Some(names) = adapt::truncated_together(&mut statement, restarts) {
        return Ok(StatementKind::Truncate { names, restarts });
    }
    match create_table::taken_into(&mut statement) {
        Some((into, is_temporary)) => Ok(into_table(into, is_temporary, text, statement)),
        None => Ok(StatementKind::Plan(Box::new(statement))),
    }
}

/// `SELECT … INTO name`: `CREATE TABLE name AS SELECT …`.
fn into_table(
    name: ObjectName,
    is_temporary: bool,
    text: &str,
    statement: EngineStatement,
) -> StatementKind {
    let query = Some(DefiningQuery { text: text.to_owned(), statement: Box::new(statement) });
    let named = CreateTableStatement::named(name);
    let table = CreateTableStatement { is_temporary, query, ..named };
    StatementKind::CreateTable(Box::new(table))
}

fn parse_query(text: &str) -> Result<EngineStatement> {
    let dialect = Bounded::new(PostgreSqlDialect {}, text.len());
    let mut parser = DFParserBuilder::new(text)
        .with_dialect(&dialect)
        .build()
        .map_err(|e| from_parser(&e, text))?;
    let has_rows_from = rows_from::may_be_in(text);
    let has_idle_merge = idle_merges::may_be_in(text);
    if (has_rows_from
        || has_idle_merge
        || table_queries::may_be_in(text)
        || frames::may_be_in(text))
        && let Ok(tokens) = Tokenizer::new(&dialect, text).tokenize_with_location()
    {
        let tokens = frames::with_intervals(table_queries::written_out(tokens));
        let tokens = if has_rows_from { rows_from::written_out(tokens) } else { tokens };
        let tokens = if has_idle_merge { idle_merges::marked(tokens) } else { tokens };
        parser.parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    }
    let mut statement = parser.parse_statement().map_err(|e| from_parser(&e, text))?;
    expect_end(&mut parser.parser, text)?;
    chains::flatten(&mut statement)?;
    if has_rows_from {
        rows_from::write_as_unnest(&mut statement)?;
    }
    ordinality::write_as_list(&mut statement, text)?;
    join_conditions::refuse_without_condition(&statement, text)?;
    Ok(statement)
}

fn parse_own(text: &str, word: &str, others: Rewrite) -> Result<StatementKind> {
    let dialect = Bounded::new(GenericDialect {}, text.len());
    let mut parser =
        Parser::new(&dialect).try_with_sql(text).map_err(|e| from_parser_raw(e, text))?;
    parser.next_token();
    if word == "CREATE" {
        let kind = parse_create(&mut parser, text, others)?;
        expect_end(&mut parser, text)?;
        return Ok(kind);
    }
    let kind = match word {
        "DROP" => parse_drop(&mut parser),
        "ALTER" => match roles::parse_role_word(&mut parser) {
            Some(_) => roles::parse_alter(&mut parser),
            None if parser.parse_keyword(Keyword::VIEW) => view::parse_alter(&mut parser),
            None => alter::parse(&mut parser),
        },
        "GRANT" | "REVOKE" => roles::parse_grant(&mut parser, word == "REVOKE"),
        "COMMENT" => comment::parse(&mut parser),
        "COPY" => copy::parse(&mut parser),
        "SHOW" => show::parse_show(&mut parser),
        "DESCRIBE" | "DESC" => show::parse_describe(&mut parser),
        "KILL" => parse_kill(&mut parser),
        "LOAD" => load_data::parse(&mut parser),
        "ADD" | "DELETE" | "LIST" => script_files::parse(&mut parser, word),
        "CACHE" => parse_cache(&mut parser),
        "PURGE" => parse_purge(&mut parser),
        "FLUSH" | "COMPACT" | "EXPIRE" | "APPLY" => maintain::parse(&mut parser, word),
        _ => session::parse(&mut parser, word),
    }
    .map_err(|e| from_parser_raw(e, text))?;
    expect_end(&mut parser, text)?;
    Ok(kind)
}

fn parse_resource_plan(text: &str) -> Result<StatementKind> {
    let dialect = Bounded::new(GenericDialect {}, text.len());
    let mut parser =
        Parser::new(&dialect).try_with_sql(text).map_err(|e| from_parser_raw(e, text))?;
    let kind = resource_plans::parse(&mut parser).map_err(|e| from_parser_raw(e, text))?;
    expect_end(&mut parser, text)?;
    kind
}

type Parsed<T> = std::result::Result<T, datafusion_sql::sqlparser::parser::ParserError>;

fn parse_create(parser: &mut Parser<'_>, text: &str, others: Rewrite) -> Result<StatementKind> {
    let explain = |error| from_parser_raw(error, text);
    let is_temporary = view::parse_temporary(parser);
    if !is_temporary && parser.parse_keywords(&[Keyword::EXTERNAL, Keyword::TABLE]) {
        let table = create_table::parse_external(parser).map_err(explain)?;
        return Ok(StatementKind::CreateTable(Box::new(table)));
    }
    if parser.parse_keyword(Keyword::TABLE) {
        let (mut table, has_query) = create_table::parse(parser, is_temporary).map_err(explain)?;
        if has_query {
            table.query = Some(DefiningQuery::parse(parser, text, others)?);
        }
        return Ok(StatementKind::CreateTable(Box::new(table)));
    }
    if let Some(mut head) = view::parse_create(parser).map_err(explain)? {
        head.is_temporary |= is_temporary;
        let query = DefiningQuery::parse(parser, text, others)?;
        return Ok(StatementKind::CreateView(Box::new(CreateViewStatement { head, query })));
    }
    if is_temporary {
        let found = parser.peek_token();
        return parser.expected("TABLE or VIEW after TEMPORARY", found).map_err(explain);
    }
    parse_create_other(parser).map_err(explain)
}

fn parse_create_other(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    if let Some(is_user) = roles::parse_role_word(parser) {
        return roles::parse_create(parser, is_user);
    }
    let schema_words = [Keyword::SCHEMA, Keyword::DATABASE];
    if parser.parse_one_of_keywords(&schema_words).is_some() || parse_word(parser, "NAMESPACE") {
        let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
        let name = parser.parse_object_name(false)?;
        return Ok(StatementKind::CreateSchema { name, if_not_exists });
    }
    let found = parser.peek_token();
    parser.expected("TABLE, VIEW, SCHEMA or ROLE after CREATE", found)
}

fn parse_drop(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    if parser.parse_keyword(Keyword::TABLE) {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let names = parser.parse_comma_separated(|p| p.parse_object_name(false))?;
        let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
        let purge = parser.parse_keyword(Keyword::PURGE);
        return Ok(StatementKind::DropTable { names, if_exists, purge });
    }
    if parser.parse_keyword(Keyword::VIEW) {
        return view::parse_drop(parser);
    }
    if roles::parse_role_word(parser).is_some() {
        return roles::parse_drop(parser);
    }
    let schema_words = [Keyword::SCHEMA, Keyword::DATABASE];
    if parser.parse_one_of_keywords(&schema_words).is_some() || parse_word(parser, "NAMESPACE") {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name = parser.parse_object_name(false)?;
        let cascade = parser.parse_keyword(Keyword::CASCADE);
        if !cascade {
            let _ = parser.parse_keyword(Keyword::RESTRICT);
        }
        return Ok(StatementKind::DropSchema { name, if_exists, cascade });
    }
    let found = parser.peek_token();
    parser.expected("TABLE, VIEW, SCHEMA or ROLE after DROP", found)
}

/// `CACHE TABLE name`.
fn parse_cache(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    parser.expect_keyword(Keyword::TABLE)?;
    parser.parse_object_name(false).map(StatementKind::CacheTable)
}

/// `PURGE CACHE`.
fn parse_purge(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    if parse_word(parser, "CACHE") {
        return Ok(StatementKind::PurgeCache);
    }
    let found = parser.peek_token();
    parser.expected("CACHE after PURGE", found)
}

/// `KILL [QUERY] id`.
fn parse_kill(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    parse_word(parser, "QUERY");
    parser.parse_literal_uint().map(StatementKind::Kill)
}

/// Takes the next token if it is the word `word` (upper case), be it a keyword or not.
fn parse_word(parser: &mut Parser<'_>, word: &str) -> bool {
    let matches = match &parser.peek_token_ref().token {
        Token::Word(found) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
        _ => false,
    };
    if matches {
        parser.next_token();
    }
    matches
}

fn expect_end(parser: &mut Parser<'_>, text: &str) -> Result<()> {
    while parser.consume_token(&Token::SemiColon) {}
    let next = parser.peek_token();
    match next.token {
        Token::EOF => Ok(()),
        ref found => Err(Error::invalid(format!("syntax error at or near \"{found}\""))
            .with_sqlstate("42601")
            .with_position(split::offset_of(text, next.span.start.line, next.span.start.column))
            .with_hint("separate statements with semicolons")),
    }
}

fn from_parser_raw(error: datafusion_sql::sqlparser::parser::ParserError, text: &str) -> Error {
    from_sql_parser(&error, text)
}

/// The parts of a name as the catalog knows them: lower case unless quoted.
pub fn name_parts(name: &ObjectName) -> Result<Vec<String>> {
    name.0
        .iter()
        .map(|part| match part.as_ident() {
            Some(ident) => Ok(normalise(ident)),
            None => {
                Err(Error::invalid(format!("{name} is not a plain name")).with_sqlstate("42601"))
            }
        })
        .collect()
}

/// An identifier as the catalog knows it: lower case unless quoted.
pub fn normalise(ident: &ast::Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

#[cfg(test)]
mod tests;
