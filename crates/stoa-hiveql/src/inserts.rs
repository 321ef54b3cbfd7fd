//! `INSERT INTO|OVERWRITE`, also behind `WITH` and `FROM`.
//!
//! ```text
//! INSERT OVERWRITE [LOCAL] DIRECTORY 'path' [ROW FORMAT …] [STORED AS …] query
//! INSERT INTO|OVERWRITE [TABLE] name [PARTITION (column [= value], …)] [IF NOT EXISTS] [(column, …)] query | VALUES …
//! WITH name AS (…) INSERT …
//! FROM tables INSERT … SELECT … [WHERE …] [INSERT … SELECT …]…
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};
use stoa_error::{Error, Result};

use crate::cursor::{Cursor, expr_of, is_word, literal, quoted};
use crate::options::Options;
use crate::{expressions, external, partitions, queries};

/// INSERTs of one statement.
const INSERTS_MAX: usize = 100;

/// The statement, if it is an INSERT.
///
/// # Errors
/// As [`crate::translate`]; 54001 for too many INSERTs at once.
pub(crate) fn translate(tokens: &[TokenWithSpan], options: Options) -> Result<Option<String>> {
    let begins = outer_inserts(tokens);
    let Some(&first) = begins.first() else { return Ok(None) };
    let (before, _) = tokens.split_at(first);
    let ends = begins.iter().skip(1).copied().chain([tokens.len()]);
    let all = begins.iter().zip(ends).map(|(begin, end)| &tokens[*begin..end]);
    if let [_] = begins.as_slice() {
        return one(before, &tokens[first..], options).map(Some);
    }
    if begins.len() > INSERTS_MAX {
        return Err(Error::invalid(format!("the statement has more than {INSERTS_MAX} INSERTs"))
            .with_sqlstate("54001")
            .with_hint("write several statements"));
    }
    if outer_word(before, "from").is_none() {
        return Err(Cursor { tokens, at: begins[1] }.wrong("the end of the statement"));
    }
    let all = all.map(|insert| {
        if has_condition(insert) {
            return Err(Error::unsupported("IF NOT EXISTS in several INSERTs is not supported")
                .with_hint("write the INSERT by itself"));
        }
        Ok(format!("({})", one(before, insert, options)?))
    });
    Ok(Some(format!("INSERT ALL {}", all.collect::<Result<Vec<_>>>()?.join(" "))))
}

/// Whether an INSERT has `IF NOT EXISTS` before its rows.
fn has_condition(insert: &[TokenWithSpan]) -> bool {
    let mut head = Cursor::new(insert);
    let before_rows = head.until(|cursor| {
        let next = ["select", "values", "map", "reduce", "if"];
        next.iter().any(|word| cursor.looking_at(&[word]))
    });
    before_rows.len() < insert.len() && head.looking_at(&["if", "not", "exists"])
}

/// One INSERT with what stands before it.
fn one(before: &[TokenWithSpan], insert: &[TokenWithSpan], options: Options) -> Result<String> {
    let mut cursor = Cursor::new(insert);
    let head = head(&mut cursor, options)?;
    let body = cursor.rest();
    let body = match before.first().map(|token| &token.token) {
        None => body.to_vec(),
        Some(first) if is_word(first, "with") => match outer_word(before, "from") {
            Some(from) => {
                let mut all = before[..from].to_vec();
                all.extend(from_inside(&before[from..], body));
                all
            }
            None => [before, body].concat(),
        },
        Some(_) => from_inside(before, body),
    };
    Ok(format!("{head} {}", queries::translated(&body, options)?))
}

/// The places of INSERT outside of parentheses.
fn outer_inserts(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            token if depth == 0 && is_word(token, "insert") => found.push(at),
            _ => {}
        }
    }
    found
}

fn outer_word(tokens: &[TokenWithSpan], word: &str) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            token => return depth == 0 && is_word(token, word),
        }
        false
    })
}

/// `FROM tables` `SELECT items WHERE …` as `SELECT items FROM tables WHERE …`.
fn from_inside(from: &[TokenWithSpan], select: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    const BEHIND: [&str; 10] = [
        "where",
        "group",
        "having",
        "order",
        "sort",
        "distribute",
        "cluster",
        "limit",
        "union",
        "window",
    ];
    let mut depth = 0_usize;
    let is_end = |token: &TokenWithSpan| {
        match &token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            token => return depth == 0 && BEHIND.iter().any(|word| is_word(token, word)),
        }
        false
    };
    let end = select.iter().position(is_end).unwrap_or(select.len());
    [&select[..end], from, &select[end..]].concat()
}

/// `INSERT … (column, …)`, up to the rows.
fn head(cursor: &mut Cursor<'_>, options: Options) -> Result<String> {
    cursor.expect(&["insert"])?;
    let overwrites = match () {
        () if cursor.take(&["into"]) => false,
        () if cursor.take(&["overwrite"]) => true,
        () => return Err(cursor.wrong("INTO or OVERWRITE")),
    };
    if overwrites && (cursor.take(&["local", "directory"]) || cursor.take(&["directory"])) {
        return directory(cursor);
    }
    let has_word = cursor.take(&["table"]);
    let mut all = match overwrites {
        true => "INSERT OVERWRITE TABLE ".to_owned(),
        false => "INSERT INTO ".to_owned(),
    };
    if !has_word && overwrites && cursor.looking_at(&["into"]) {
        return Err(cursor.wrong("TABLE"));
    }
    all.push_str(&cursor.table()?);
    if cursor.looking_at(&["partition"]) {
        all.push(' ');
        all.push_str(&partitions_of(cursor, overwrites, options)?);
    } else if overwrites {
        // Of a whole table it says nothing, as in Hive.
        let _ = cursor.take(&["if", "not", "exists"]);
    }
    let is_columns = *cursor.peek() == Token::LParen
        && !["select", "with", "values", "from"].iter().any(|word| is_word(cursor.nth(1), word))
        && *cursor.nth(1) != Token::LParen;
    if is_columns {
        let mut names = Cursor::new(cursor.parenthesised()?);
        let mut columns = Vec::new();
        for name in names.items() {
            let mut name = Cursor::new(name);
            columns.push(quoted(&name.name()?));
            name.expect_end()?;
        }
        all.push_str(&format!(" ({})", columns.join(", ")));
    }
    Ok(all)
}

/// `PARTITION (…) [IF NOT EXISTS]`
fn partitions_of(cursor: &mut Cursor<'_>, overwrites: bool, options: Options) -> Result<String> {
    let mut behind = cursor.clone();
    behind.at += 1;
    let terms = behind.parenthesised()?;
    if overwrites && behind.looking_at(&["if", "not", "exists"]) {
        let is_dynamic = |term: &&[TokenWithSpan]| term.len() == 1;
        if Cursor::new(terms).items().iter().any(is_dynamic) {
            return Err(Error::invalid("dynamic partitions do not support IF NOT EXISTS")
                .with_sqlstate("42601")
                .with_hint("give each partition column a value"));
        }
        let spec = partitions::spec(cursor)?;
        cursor.expect(&["if", "not", "exists"])?;
        return Ok(format!("{spec} IF NOT EXISTS"));
    }
    cursor.at = behind.at;
    let written = Cursor::new(terms).items().into_iter().map(|term| partition(term, options));
    Ok(format!("PARTITION ({})", written.collect::<Result<Vec<_>>>()?.join(", ")))
}

/// What follows `INSERT OVERWRITE [LOCAL] DIRECTORY`, up to the rows.
fn directory(cursor: &mut Cursor<'_>) -> Result<String> {
    let mut all = format!("INSERT OVERWRITE DIRECTORY {}", literal(&cursor.string()?));
    while let Some(clause) = external::file_clause(cursor)? {
        all.push_str(&clause);
    }
    Ok(all)
}

/// `column` or `column = value`.
fn partition(term: &[TokenWithSpan], options: Options) -> Result<String> {
    let mut cursor = Cursor::new(term);
    let column = quoted(&cursor.name()?);
    if cursor.is_end() {
        return Ok(column);
    }
    cursor.expect_token(&Token::Eq)?;
    let mut value = expr_of(cursor.rest())?;
    queries::rewrite(&mut value, options.nulls_last)?;
    expressions::rewrite(&mut value)?;
    Ok(format!("{column} = {value}"))
}
