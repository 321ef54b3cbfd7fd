//! `TRANSFORM`, `MAP` and `REDUCE`: rows through a script.
//!
//! ```text
//! FROM (FROM t MAP a, b USING 'map.py' AS (k, n INT) CLUSTER BY k) m REDUCE k, n USING 'reduce.py' AS (k, sum INT)
//!   1. tokens:  SELECT hive_transform('map.py', 'columns=2 …', 'k n', a, b) …     which the parser can read
//!   2. order:   what the inner query is clustered by becomes operands of the outer call
//!   3. written: SELECT "c0" AS k, hive_field_int("c1") AS n FROM hive_transform('map.py', 'columns=2 …', (SELECT a, b FROM t))
//! ```
//! Rows of equal keys of `DISTRIBUTE BY` and `CLUSTER BY` go to one process, in the order of `SORT BY` and `CLUSTER BY`.

use sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    ObjectName, Query, Select, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableAlias, TableFactor, TableFunctionArgs, TableWithJoins, Value, WildcardAdditionalOptions,
};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use stoa_error::{Error, Result};
use stoa_script::{Format, SortKey, Spec};

use crate::cursor::{Cursor, is_word};
use crate::expressions::cast_as;
use crate::made::{call, cast, string};
use crate::options::Options;

/// What runs rows through a script, in Stoa's SQL and between the steps here.
const TRANSFORM: &str = "hive_transform";
/// What separates columns, and their names from their types, between the steps.
const COLUMN_END: char = '\u{1}';
const NAME_END: char = '\u{2}';

/// Operands of the call before those of the script: command, description, columns.
const OWN_OPERANDS: usize = 3;

/// Whether a function is the call that stands for a script.
pub(crate) fn is_script(function: &Function) -> bool {
    crate::calls::name_of(function) == Some(TRANSFORM)
}

/// The tokens with calls in place of `TRANSFORM (…) USING …`, `MAP … USING …` and `REDUCE … USING …`.
///
/// # Errors
/// 42601 for a clause that is not well formed, 0A000 for classes of Hive's that write and read rows.
pub(crate) fn marked(tokens: Vec<TokenWithSpan>, options: Options) -> Result<Vec<TokenWithSpan>> {
    let is_any = |token: &TokenWithSpan| {
        is_word(&token.token, "using") || is_word(&token.token, "transform")
    };
    if !tokens.iter().any(is_any) {
        return Ok(tokens);
    }
    let mut all = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let here = Cursor { tokens: &tokens, at };
        match Clause::begins(here.clone()) {
            Some(begun) => {
                let (clause, end) = Clause::read(begun, options)?;
                // Operands may have scripts in them.
                let operands = marked(clause.operands.to_vec(), options)?;
                clause.written(operands, &tokens[at], &mut all);
                at = end;
            }
            None => {
                all.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    Ok(all)
}

/// `TRANSFORM (…) … USING 'command' …`, as it was read.
struct Clause<'a> {
    operands: &'a [TokenWithSpan],
    command: String,
    spec: Spec,
    /// Names and types, as texts.
    columns: Vec<String>,
}

impl<'a> Clause<'a> {
    /// Behind `SELECT TRANSFORM`, `MAP` or `REDUCE`, where a script follows.
    fn begins(mut cursor: Cursor<'a>) -> Option<Cursor<'a>> {
        let needs_parentheses = cursor.looking_at(&["select", "transform"]);
        match () {
            () if needs_parentheses => cursor.at += 2,
            () if cursor.looking_at(&["map"]) || cursor.looking_at(&["reduce"]) => cursor.at += 1,
            () => return None,
        }
        if needs_parentheses && *cursor.peek() != Token::LParen {
            return None;
        }
        let mut look = cursor.clone();
        look.until(|cursor| {
            ["using", "from", "where", "select"].iter().any(|word| cursor.looking_at(&[word]))
                || *cursor.peek() == Token::RParen
        });
        let is_script =
            look.take(&["using"]) && matches!(look.peek(), Token::SingleQuotedString(_));
        // `SELECT TRANSFORM (a) AS x` is a script that lacks its command.
        (is_script || needs_parentheses).then_some(cursor)
    }

    fn read(mut cursor: Cursor<'a>, options: Options) -> Result<(Self, usize)> {
        let ends = |cursor: &Cursor<'_>| {
            cursor.looking_at(&["using"])
                || cursor.looking_at(&["row", "format"])
                || cursor.looking_at(&["recordwriter"])
        };
        let is_select = cursor.at >= 1 && is_word(&cursor.tokens[cursor.at - 1].token, "transform");
        let operands = match is_select {
            true => cursor.parenthesised()?,
            false => cursor.until(ends),
        };
        let input = row_format(&mut cursor)?;
        class(&mut cursor, "recordwriter", "TextRecordWriter")?;
        cursor.expect(&["using"])?;
        let command = cursor.string()?;
        let columns = match cursor.take(&["as"]) {
            true => Some(columns(&mut cursor)?),
            false => None,
        };
        let output = row_format(&mut cursor)?;
        class(&mut cursor, "recordreader", "TextRecordReader")?;
        let takes_rest = columns.is_none();
        let columns = columns.unwrap_or_else(|| vec!["key".to_owned(), "value".to_owned()]);
        let spec = Spec {
            columns: columns.len(),
            takes_rest,
            partial: options.partial_scripts,
            input,
            output,
            ..Spec::default()
        };
        Ok((Self { operands, command, spec, columns }, cursor.at))
    }

    /// `SELECT hive_transform('command', 'description', 'columns', operands)`.
    fn written(
        self,
        operands: Vec<TokenWithSpan>,
        at: &TokenWithSpan,
        all: &mut Vec<TokenWithSpan>,
    ) {
        let mut push = |token| all.push(TokenWithSpan { token, span: at.span });
        push(Token::make_word("select", None));
        push(Token::make_word(TRANSFORM, None));
        push(Token::LParen);
        push(Token::SingleQuotedString(self.command));
        push(Token::Comma);
        push(Token::SingleQuotedString(self.spec.to_string()));
        push(Token::Comma);
        push(Token::SingleQuotedString(self.columns.join(&COLUMN_END.to_string())));
        if !operands.is_empty() {
            push(Token::Comma);
        }
        all.extend(operands);
        all.push(TokenWithSpan { token: Token::RParen, span: at.span });
    }
}

/// `(name [type], …)`, or names without parentheses.
fn columns(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if *cursor.peek() == Token::LParen {
        let mut inner = Cursor::new(cursor.parenthesised()?);
        for item in inner.items() {
            let mut item = Cursor::new(item);
            let name = item.name()?;
            let of = match item.is_end() {
                true => String::new(),
                false => item.data_type()?.to_string(),
            };
            item.expect_end()?;
            found.push(format!("{name}{NAME_END}{of}"));
        }
    } else {
        loop {
            found.push(cursor.name()?);
            if !cursor.take_token(&Token::Comma) {
                break;
            }
        }
    }
    let is_plain = |name: &String| !name.contains(COLUMN_END);
    match found.is_empty() || !found.iter().all(is_plain) {
        true => Err(cursor.wrong("names of columns")),
        false => Ok(found),
    }
}

/// `ROW FORMAT DELIMITED …`, or that of scripts.
fn row_format(cursor: &mut Cursor<'_>) -> Result<Format> {
    if !cursor.take(&["row", "format"]) {
        return Ok(Format::default());
    }
    if cursor.take(&["serde"]) {
        let name = cursor.string()?;
        if cursor.looking_at(&["with"]) || !name.ends_with(".LazySimpleSerDe") {
            return Err(no_class("ROW FORMAT SERDE"));
        }
        return Ok(Format::default());
    }
    cursor.expect(&["delimited"])?;
    let mut format = Format { field: 1, ..Format::default() };
    loop {
        match () {
            () if cursor.take(&["fields", "terminated", "by"]) => {
                format.field = delimiter(cursor)?;
                if cursor.take(&["escaped", "by"]) {
                    format.escape = Some(delimiter(cursor)?);
                }
            }
            () if cursor.take(&["collection", "items", "terminated", "by"])
                || cursor.take(&["map", "keys", "terminated", "by"]) =>
            {
                return Err(Error::unsupported(
                    "delimiters of arrays and maps are not supported for scripts",
                )
                .with_hint("use concat_ws for arrays, and leave these delimiters out"));
            }
            () if cursor.take(&["lines", "terminated", "by"]) => {
                if cursor.string()? != "\n" {
                    return Err(Error::unsupported("LINES TERMINATED BY only supports newline")
                        .with_hint("write LINES TERMINATED BY '\\n'"));
                }
            }
            () if cursor.take(&["null", "defined", "as"]) => format.null = cursor.string()?,
            () => return Ok(format),
        }
    }
}

/// A delimiter, as Hive reads it (`LazyUtils.getByte`): the number of a byte, or the first byte of the text.
fn delimiter(cursor: &mut Cursor<'_>) -> Result<u8> {
    let wrong = cursor.wrong("a delimiter of one byte, other than a line break");
    let text = cursor.string()?;
    let byte = match text.parse::<i8>() {
        Ok(number) => number.cast_unsigned(),
        Err(_) if text.len() == 1 => text.as_bytes()[0],
        Err(_) => return Err(wrong),
    };
    match byte {
        b'\n' | b'\r' => Err(wrong),
        byte => Ok(byte),
    }
}

fn class(cursor: &mut Cursor<'_>, word: &str, known: &str) -> Result<()> {
    if cursor.take(&[word]) && !cursor.string()?.ends_with(&format!(".{known}")) {
        return Err(no_class(&word.to_uppercase()));
    }
    Ok(())
}

fn no_class(what: &str) -> Error {
    Error::unsupported(format!("{what} with such a class is not supported"))
        .with_hint("scripts read and write lines: use ROW FORMAT DELIMITED, or nothing")
}

/// The call of a SELECT that is a script and nothing else.
fn call_of(select: &mut Select) -> Option<&mut Function> {
    match select.projection.as_mut_slice() {
        [SelectItem::UnnamedExpr(Expr::Function(function))] if is_script(function) => {
            Some(function)
        }
        _ => None,
    }
}

fn operands_of(function: &mut Function) -> Option<&mut Vec<FunctionArg>> {
    match &mut function.args {
        FunctionArguments::List(list) if list.args.len() >= OWN_OPERANDS => Some(&mut list.args),
        _ => None,
    }
}

fn text_of(operand: &FunctionArg) -> Option<&str> {
    match operand {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn operand(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

fn no_script() -> Error {
    Error::invalid("hive_transform is not a function of HiveQL")
        .with_sqlstate("42883")
        .with_hint("write SELECT TRANSFORM (…) USING 'command'")
}

/// Gives scripts the order of the queries that they read.
///
/// # Errors
/// 0A000 for a key that is no column of the query.
pub(crate) fn take_order(body: &mut SetExpr, nulls_last: bool) -> Result<()> {
    match body {
        SetExpr::Select(select) => take_order_of(select, nulls_last),
        SetExpr::SetOperation { left, right, .. } => {
            take_order(left, nulls_last)?;
            take_order(right, nulls_last)
        }
        _ => Ok(()),
    }
}

fn take_order_of(select: &mut Select, nulls_last: bool) -> Result<()> {
    if call_of(select).is_none() {
        return Ok(());
    }
    let [TableWithJoins { relation: TableFactor::Derived { subquery, alias, .. }, joins }] =
        select.from.as_mut_slice()
    else {
        return Ok(());
    };
    let SetExpr::Select(inner) = subquery.body.as_mut() else { return Ok(()) };
    if !joins.is_empty() || subquery.order_by.is_some() || subquery.limit_clause.is_some() {
        return Ok(());
    }
    let clustered = std::mem::take(&mut inner.cluster_by);
    let distributed = std::mem::take(&mut inner.distribute_by);
    let sorted = std::mem::take(&mut inner.sort_by);
    let mut sort = Vec::new();
    let mut keys: Vec<Expr> = distributed.into_iter().chain(clustered.clone()).collect();
    let distribute = keys.len();
    for key in clustered {
        sort.push(SortKey { descending: false, nulls_first: !nulls_last });
        keys.push(key);
    }
    for key in sorted {
        let descending = key.options.asc == Some(false);
        let nulls_first = key.options.nulls_first.unwrap_or(descending == nulls_last);
        sort.push(SortKey { descending, nulls_first });
        keys.push(key.expr);
    }
    let qualifier = alias.as_ref().map(|alias| alias.name.clone());
    let keys = keys.into_iter().map(|key| key_outside(key, inner, qualifier.as_ref()));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let operands = call_of(select).and_then(operands_of).ok_or_else(no_script)?;
    let text = text_of(&operands[1]).ok_or_else(no_script)?;
    let spec = Spec { distribute, sort, ..text.parse()? };
    operands[1] = operand(string(&spec.to_string()));
    operands.extend(keys.into_iter().map(operand));
    Ok(())
}

/// A key of the inner query, as the outer query names it.
fn key_outside(mut key: Expr, inner: &mut Select, alias: Option<&Ident>) -> Result<Expr> {
    let outside = |name: &Ident| match alias {
        Some(alias) => Expr::CompoundIdentifier(vec![alias.clone(), name.clone()]),
        None => Expr::Identifier(name.clone()),
    };
    let whole = inner.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if *expr == key => Some(outside(alias)),
        _ => None,
    });
    if let Some(whole) = whole {
        return Ok(whole);
    }
    let (mut names, mut has_all) = (Vec::new(), false);
    let script = call_of(inner).and_then(operands_of);
    match script.and_then(|operands| text_of(&operands[2])) {
        Some(columns) => names.extend(columns.split(COLUMN_END).map(|one| name_of(one).to_owned())),
        None => inner.projection.iter().for_each(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => names.push(alias.value.clone()),
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => names.push(name.value.clone()),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                names.extend(parts.last().map(|name| name.value.clone()));
            }
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => has_all = true,
            _ => {}
        }),
    }
    let mut missing = None;
    let _ = sqlparser::ast::visit_expressions_mut(&mut key, |part| {
        let name = match part {
            Expr::Identifier(name) => name.clone(),
            Expr::CompoundIdentifier(parts) => match parts.last() {
                Some(name) => name.clone(),
                None => return std::ops::ControlFlow::<()>::Continue(()),
            },
            _ => return std::ops::ControlFlow::Continue(()),
        };
        if !has_all && !names.contains(&name.value) {
            missing = Some(name.value);
            return std::ops::ControlFlow::Break(());
        }
        *part = outside(&name);
        std::ops::ControlFlow::Continue(())
    });
    match missing {
        None => Ok(key),
        Some(name) => Err(Error::unsupported(format!(
            "rows for a script cannot be distributed or sorted by \"{name}\", which the query does not give"
        ))
        .with_hint("add it to the SELECT list of the query that the script reads")),
    }
}

fn name_of(column: &str) -> &str {
    column.split(NAME_END).next().unwrap_or(column)
}

/// Writes a SELECT that is a script as one from the rows that the script gives.
///
/// # Errors
/// 0A000 for types that Stoa has not, 42601 for a script beside other columns.
pub(crate) fn write(select: &mut Select) -> Result<()> {
    let Some(function) = call_of(select) else { return Ok(()) };
    let operands = operands_of(function).ok_or_else(no_script)?;
    let (command, spec) = (operands[0].clone(), operands[1].clone());
    let columns = text_of(&operands[2]).ok_or_else(no_script)?.to_owned();
    let operands = operands.split_off(OWN_OPERANDS);
    let wanted = operands.into_iter().enumerate().map(|(at, operand)| match operand {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
            Ok(SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', format!("a{at}")) })
        }
        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {
            Ok(SelectItem::Wildcard(WildcardAdditionalOptions::default()))
        }
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
            let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
            Ok(SelectItem::QualifiedWildcard(kind, WildcardAdditionalOptions::default()))
        }
        _ => Err(no_script()),
    });
    let wanted = wanted.collect::<Result<Vec<_>>>()?;
    if wanted.is_empty() {
        return Err(Error::invalid("a script needs columns to read").with_sqlstate("42601"));
    }
    let given = columns.split(COLUMN_END).enumerate().map(|(at, column)| given(at, column));
    let given = given.collect::<Result<Vec<_>>>()?;
    let mut inner = select.clone();
    inner.projection = wanted;
    inner.cluster_by.clear();
    inner.distribute_by.clear();
    inner.sort_by.clear();
    let query = Query {
        with: None,
        body: Box::new(SetExpr::Select(Box::new(inner))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    };
    let rows = operand(Expr::Subquery(Box::new(query)));
    let args = TableFunctionArgs { args: vec![command, spec, rows], settings: None };
    select.projection = given;
    select.from = vec![TableWithJoins { relation: table(args), joins: Vec::new() }];
    select.selection = None;
    select.distinct = None;
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    select.having = None;
    select.named_window.clear();
    select.flavor = SelectFlavor::Standard;
    Ok(())
}

fn table(args: TableFunctionArgs) -> TableFactor {
    let alias =
        TableAlias { explicit: true, name: Ident::new("script"), columns: Vec::new(), at: None };
    TableFactor::Table {
        name: ObjectName::from(vec![Ident::new(TRANSFORM)]),
        alias: Some(alias),
        args: Some(args),
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// A column that a script gives: its text as a value of the type.
fn given(at: usize, column: &str) -> Result<SelectItem> {
    let (name, of) = column.split_once(NAME_END).unwrap_or((column, ""));
    let text = Expr::Identifier(Ident::with_quote('"', format!("c{at}")));
    let expr = match of {
        "" => text,
        of => {
            let tokens = crate::lexer::tokens(of)?;
            field_as(text, &Cursor::new(&tokens).data_type()?)?
        }
    };
    Ok(SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) })
}

/// A field of a line as Hive reads it, which is stricter than a cast.
fn field_as(text: Expr, to: &DataType) -> Result<Expr> {
    let read = |name: &str, text: Expr, of: &str| Ok(cast(call(name, vec![text]), of));
    match to {
        DataType::String(_) => Ok(text),
        DataType::Boolean => Ok(call("hive_field_boolean", vec![text])),
        DataType::TinyInt(_) => read("hive_field_tinyint", text, "smallint"),
        DataType::SmallInt(_) => read("hive_field_smallint", text, "smallint"),
        DataType::Int(_) | DataType::Integer(_) => Ok(call("hive_field_int", vec![text])),
        DataType::BigInt(_) => Ok(call("hive_field_bigint", vec![text])),
        DataType::Timestamp(..) => Ok(call("hive_field_timestamp", vec![text])),
        other => cast_as(text, other),
    }
}

#[cfg(test)]
mod tests;
