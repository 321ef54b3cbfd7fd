//! `ROWS FROM (f(…), g(…))`: the rows of functions side by side, which the parser does not know.
//!
//! ```text
//! ROWS FROM (f(1)) AS t                        ─►  f(1) AS t
//! ROWS FROM (generate_series(1, 3), unnest(a)) ─►  unnest(generate_series(1, 3), a) AS generate_series (generate_series, unnest)
//! ```
//! In: the tokens of a statement, then its tree. Out: [`written_out`] makes `ROWS FROM` a name of a function that does
//! not exist, and [`write_as_unnest`] takes it out again.

use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, TableAlias, TableAliasColumnDef, TableFactor,
    VisitorMut,
};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use stoa_error::{Error, Result};

use crate::adapt::parsed;
use crate::calls::{named, positional};
use crate::walk::WalkMut;
use crate::{column_names, sets};

/// What stands for `ROWS FROM` in between.
const NAME: &str = "rows from";

/// Whether a text may have it.
pub(super) fn may_be_in(text: &str) -> bool {
    let has = |word: &[u8]| {
        text.as_bytes().windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
    };
    has(b"rows") && has(b"from")
}

/// The tokens with one name for `ROWS FROM` before a parenthesis.
pub(super) fn written_out(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut written: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Places of the last two tokens that are no blanks.
    let mut last: [Option<usize>; 2] = [None, None];
    for token in tokens {
        if !matches!(token.token, Token::Whitespace(_)) {
            let is = |place: Option<usize>, keyword: Keyword| {
                place.and_then(|place| written.get(place)).is_some_and(|before| {
                    matches!(&before.token, Token::Word(word)
                        if word.quote_style.is_none() && word.keyword == keyword)
                })
            };
            if token.token == Token::LParen
                && is(last[1], Keyword::FROM)
                && is(last[0], Keyword::ROWS)
                && let Some(place) = last[0]
            {
                written[place].token = Token::make_word(NAME, Some('"'));
                written.truncate(place + 1);
                last = [None, Some(place)];
            }
            last = [last[1], Some(written.len())];
        }
        written.push(token);
    }
    written
}

/// Writes the functions as one, or as the only one.
///
/// # Errors
/// 0A000 for functions that return no rows, or rows of several columns.
pub(super) fn write_as_unnest(statement: &mut EngineStatement) -> Result<()> {
    let Some(statement) = parsed(statement) else { return Ok(()) };
    match statement.walk_mut(&mut RowsFrom) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct RowsFrom;

impl VisitorMut for RowsFrom {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Error> {
        let (name, args, alias, with_ordinality, lateral) = match table {
            TableFactor::Table { name, args: Some(call), alias, with_ordinality, .. } => {
                (name, &call.args, alias, *with_ordinality, false)
            }
            TableFactor::Function { name, args, alias, with_ordinality, lateral, .. } => {
                (name, &*args, alias, *with_ordinality, *lateral)
            }
            _ => return ControlFlow::Continue(()),
        };
        if named(name).as_deref() != Some(NAME) {
            return ControlFlow::Continue(());
        }
        match side_by_side(args, alias.take(), with_ordinality, lateral) {
            Ok(functions) => {
                *table = functions;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn side_by_side(
    args: &[FunctionArg],
    alias: Option<TableAlias>,
    with_ordinality: bool,
    lateral: bool,
) -> Result<TableFactor> {
    if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(only)))] = args
        && let Some(args) = positional(&only.args)
    {
        let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
        let mut function = TableFactor::Function {
            lateral,
            name: only.name.clone(),
            args: args.collect(),
            with_ordinality,
            alias,
        };
        sets::write_as_unnest(&mut function);
        return Ok(function);
    }
    let mut arrays = Vec::new();
    let mut names = Vec::new();
    for arg in args {
        let list = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(function))) => {
                sets::list_of(function)
            }
            _ => None,
        };
        let Some((name, lists)) = list else {
            return Err(Error::unsupported(format!("{arg} in ROWS FROM is not supported"))
                .with_hint(
                    "unnest, generate_series and other functions of one column can stand there; \
                     otherwise number the rows of each and join them",
                ));
        };
        names.extend(lists.iter().map(|_| name.clone()));
        arrays.extend(lists);
    }
    let first = names.first().cloned().unwrap_or_default();
    let mut alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::new(first),
        columns: Vec::new(),
        at: None,
    });
    let given = alias.columns.len();
    for (place, name) in names.iter().enumerate().skip(given) {
        let name = match names[..place].contains(name) {
            true => Ident::with_quote('"', column_names::marked(name, place)),
            false => Ident::new(name),
        };
        alias.columns.push(TableAliasColumnDef { name, data_type: None });
    }
    Ok(TableFactor::UNNEST {
        alias: Some(alias),
        array_exprs: arrays,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality,
    })
}
