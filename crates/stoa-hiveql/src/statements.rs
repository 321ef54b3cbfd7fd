//! Statements by their first words.

use sqlparser::ast::Statement;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use stoa_error::{Error, Result};

use crate::cursor::{Cursor, literal, quoted, statement_of};
use crate::lexer::DEFAULT_DATABASE;
use crate::options::Options;
use crate::{
    definitions, external, inserts, lexer, partitions, queries, refused, resource_plans, rights,
    script_files, scripts, shows,
};

/// Operators of a statement.
const CHAIN_MAX: usize = 2000;

/// The statement of Stoa's SQL that means what one of HiveQL does. Variables are replaced already.
///
/// # Errors
/// 42601: it is no statement; 0A000: Stoa has not what it asks for, and the hint says what to use; 42883: Hive has no
/// such function.
pub fn translate(text: &str, options: Options) -> Result<String> {
    if let Some(statement) = script_files::statement(text) {
        return statement;
    }
    let mut tokens = scripts::marked(lexer::tokens(text)?, options)?;
    resource_plans::with_system_tables(&mut tokens);
    let end =
        tokens.iter().rposition(|token| token.token != Token::SemiColon).map_or(0, |at| at + 1);
    let tokens = &tokens[..end];
    if tokens.is_empty() {
        return Ok(String::new());
    }
    if tokens.iter().any(|token| token.token == Token::SemiColon) {
        return Err(Error::invalid("one statement is needed: there are several")
            .with_sqlstate("42601")
            .with_hint("send statements one by one"));
    }
    check_operators(tokens)?;
    if resource_plans::is_in(tokens) {
        return resource_plans::translate(tokens, |token| {
            let written = text[offset_of(text, token)..].trim_start_matches('`');
            written
                .get(..DEFAULT_DATABASE.len())
                .is_some_and(|name| name.eq_ignore_ascii_case(DEFAULT_DATABASE))
        });
    }
    statement(tokens, options)
}

/// Refuses chains of operators, which are trees as deep as they are long.
fn check_operators(tokens: &[TokenWithSpan]) -> Result<()> {
    let is_operator = |token: &&TokenWithSpan| match &token.token {
        Token::Word(word) => matches!(
            word.value.as_str(),
            "and" | "or" | "union" | "intersect" | "except" | "minus" | "div"
        ),
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => {
            true
        }
        Token::Ampersand | Token::Pipe | Token::Caret => true,
        _ => false,
    };
    if tokens.iter().filter(is_operator).count() <= CHAIN_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!("the statement has more than {CHAIN_MAX} operators"))
        .with_sqlstate("54001")
        .with_hint("use IN, or a table of the values"))
}

/// The statements of a text, which semicolons separate.
///
/// # Errors
/// 42601: a quote or a comment has no end.
pub fn split(text: &str) -> Result<Vec<&str>> {
    let mut all = Vec::new();
    let mut begin = 0;
    let offset = |token: &TokenWithSpan| offset_of(text, token);
    for token in lexer::tokens(text)? {
        if token.token == Token::SemiColon {
            let end = offset(&token);
            all.push(text[begin..end].trim());
            begin = end + 1;
        }
    }
    all.push(text[begin..].trim());
    all.retain(|text| !text.is_empty());
    Ok(all)
}

/// Where a token begins, in bytes.
fn offset_of(text: &str, token: &TokenWithSpan) -> usize {
    let (line, column) = (token.span.start.line, token.span.start.column);
    let line_begin = text
        .split_inclusive('\n')
        .take(usize::try_from(line - 1).unwrap_or_default())
        .map(str::len)
        .sum::<usize>();
    let skipped = usize::try_from(column - 1).unwrap_or_default();
    let rest = &text[line_begin..];
    line_begin + rest.char_indices().nth(skipped).map_or(rest.len(), |(at, _)| at)
}

fn statement(tokens: &[TokenWithSpan], options: Options) -> Result<String> {
    refused::check(tokens)?;
    let mut cursor = Cursor::new(tokens);
    if cursor.take(&["explain"]) {
        return explain(&mut cursor, options);
    }
    match tokens.first().map(|token| &token.token) {
        Some(Token::LParen) => queries::translated(tokens, options),
        Some(Token::Word(word)) if word.quote_style.is_none() => match word.value.as_str() {
            "select" | "values" => queries::translated(tokens, options),
            "from" | "with" | "insert" => match inserts::translate(tokens, options)? {
                Some(insert) => Ok(insert),
                None => queries::translated(tokens, options),
            },
            "update" | "delete" | "merge" => change(tokens, options),
            "create" if cursor.take(&["create", "external", "table"]) => {
                external::create(&mut cursor, options)
            }
            "create" | "alter" | "drop" | "truncate" | "use" | "analyze" | "msck" => {
                definitions::translate(tokens, options)
            }
            "show" | "describe" | "desc" => shows::translate(tokens),
            "load" => load_data(&mut cursor),
            "grant" | "revoke" => rights::grant(tokens),
            "set" | "reset" => session(tokens),
            "begin" | "start" | "commit" | "rollback" => Ok(plain(tokens)),
            _ => Err(cursor.wrong("a statement of HiveQL")),
        },
        _ => Err(cursor.wrong("a statement of HiveQL")),
    }
}

fn explain(cursor: &mut Cursor<'_>, options: Options) -> Result<String> {
    let prefix = if cursor.take(&["analyze"]) { "EXPLAIN ANALYZE" } else { "EXPLAIN" };
    let _ = cursor.take(&["extended"]) || cursor.take(&["formatted"]);
    for kind in [
        "cbo",
        "ast",
        "dependency",
        "authorization",
        "locks",
        "vectorization",
        "debug",
        "ddl",
        "reoptimization",
    ] {
        if cursor.looking_at(&[kind]) {
            return Err(Error::unsupported(format!(
                "EXPLAIN {} is not supported",
                kind.to_uppercase()
            ))
            .with_hint("use EXPLAIN, or EXPLAIN ANALYZE"));
        }
    }
    if resource_plans::is_in(cursor.rest()) {
        return Err(Error::unsupported("EXPLAIN of resource plans is not supported")
            .with_hint("SHOW RESOURCE PLAN name shows a plan"));
    }
    let explained = statement(cursor.rest(), options)?;
    if explained.starts_with("INSERT OVERWRITE TABLE") && explained.contains(") IF NOT EXISTS ") {
        return Err(Error::unsupported("EXPLAIN of IF NOT EXISTS is not supported")
            .with_hint("explain the INSERT without it"));
    }
    for (begin, what, hint) in [
        ("INSERT ALL", "several INSERTs", "explain them one by one"),
        ("LOAD DATA", "LOAD DATA", "it reads the files and writes them, and has no plan"),
    ] {
        if explained.starts_with(begin) {
            return Err(
                Error::unsupported(format!("EXPLAIN of {what} is not supported")).with_hint(hint)
            );
        }
    }
    Ok(format!("{prefix} {explained}"))
}

/// UPDATE, DELETE and MERGE.
fn change(tokens: &[TokenWithSpan], options: Options) -> Result<String> {
    let mut statement = statement_of(tokens)?;
    match &statement {
        Statement::Update { .. } | Statement::Delete(_) | Statement::Merge { .. } => {}
        _ => return Err(Cursor::new(tokens).wrong("UPDATE, DELETE or MERGE")),
    }
    queries::rewrite(&mut statement, options.nulls_last)?;
    Ok(statement.to_string())
}

/// `LOAD DATA [LOCAL] INPATH 'path' [OVERWRITE] INTO TABLE name [PARTITION (…)]`.
fn load_data(cursor: &mut Cursor<'_>) -> Result<String> {
    cursor.expect(&["load", "data"])?;
    let _ = cursor.take(&["local"]);
    cursor.expect(&["inpath"])?;
    let path = literal(&cursor.string()?);
    let overwrite = if cursor.take(&["overwrite"]) { "OVERWRITE " } else { "" };
    cursor.expect(&["into", "table"])?;
    let table = cursor.table()?;
    let partition = match cursor.looking_at(&["partition"]) {
        true => format!(" {}", partitions::spec(cursor)?),
        false => String::new(),
    };
    if cursor.looking_at(&["inputformat"]) {
        return Err(Error::unsupported("INPUTFORMAT of LOAD DATA is not supported")
            .with_hint("formats are told by the names or first bytes of files; leave it out"));
    }
    cursor.expect_end()?;
    Ok(format!("LOAD DATA INPATH {path} {overwrite}INTO TABLE {table}{partition}"))
}

/// Settings of Stoa's: `SET [stoa.]name = value`.
fn session(tokens: &[TokenWithSpan]) -> Result<String> {
    let mut cursor = Cursor::new(tokens);
    if cursor.looking_at(&["set", "stoa"]) && *cursor.nth(2) == Token::Period {
        cursor.at = 3;
        return Ok(format!("SET {}", plain(cursor.rest())));
    }
    if cursor.looking_at(&["set", "role"]) {
        return rights::set_role(&mut cursor);
    }
    Ok(plain(tokens))
}

/// Tokens as a text, names in backquotes with double quotes.
pub(crate) fn plain(tokens: &[TokenWithSpan]) -> String {
    let mut all = String::new();
    for token in tokens {
        let is_tight = matches!(token.token, Token::Period | Token::Comma | Token::RParen)
            || all.ends_with(['.', '(']);
        if !all.is_empty() && !is_tight {
            all.push(' ');
        }
        match &token.token {
            Token::Word(word) if word.quote_style.is_some() => all.push_str(&quoted(&word.value)),
            Token::SingleQuotedString(text) => all.push_str(&crate::cursor::literal(text)),
            other => all.push_str(&other.to_string()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hive: &str, stoa: &str) {
        assert_eq!(translate(hive, Options::default()).unwrap(), stoa, "{hive}");
    }

    #[test]
    fn chains_are_one_call() {
        check(
            "SELECT a + b - c + d AS x FROM t",
            "SELECT hive_add(a, b, hive_negative(c), d) AS x FROM t",
        );
        check(
            "SELECT a - b - c AS x, a - (b - c) AS y FROM t",
            "SELECT hive_add(a, hive_negative(b), hive_negative(c)) AS x, hive_subtract(a, (hive_subtract(b, c))) AS y FROM t",
        );
        check("SELECT a || b || c AS x FROM t", "SELECT hive_concat(a, b, c) AS x FROM t");
        check("SELECT a * b * 2 AS x FROM t", "SELECT hive_multiply(a, b, 2) AS x FROM t");
    }
}
