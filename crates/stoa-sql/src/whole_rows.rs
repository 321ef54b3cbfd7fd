//! `row_to_json(t)`: a whole row of a table as what a function is given.
//!
//! In: a statement that names a column that is not there. Out: the same with `row_to_json(t.*)`, where the name is
//! that of a table in FROM; the engine takes `t.*` for all columns of the table, and `stoa-semantics` (`json::rows`)
//! makes a record of them.

use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart,
    TableFactor, Visitor,
};

use crate::adapt::parsed;
use crate::walk::{Walk, walk_expressions_mut};
use crate::whole_tables;

/// Functions that are given records.
const OF_RECORDS: &[&str] = &["json_element_of", "row_to_json", "to_json", "to_jsonb"];

/// Whether `name` is that of a table in some FROM of the statement.
pub fn is_table(statement: &mut EngineStatement, name: &str) -> bool {
    let Some(statement) = parsed(statement) else { return false };
    statement.walk(&mut Tables { name }).is_break()
}

/// Writes `name.*` where `name` is given to a function of records; says whether there is such a place.
pub fn give_rows(statement: &mut EngineStatement, name: &str) -> bool {
    let Some(statement) = parsed(statement) else { return false };
    let mut any = false;
    let _ = walk_expressions_mut(statement, |expr| {
        if let Expr::Function(call) = expr {
            any |= give_row(call, name);
        }
        ControlFlow::<()>::Continue(())
    });
    if any {
        whole_tables::write_schemas(statement);
    }
    any
}

fn give_row(call: &mut ast::Function, name: &str) -> bool {
    let [ObjectNamePart::Identifier(function)] = call.name.0.as_slice() else { return false };
    if !OF_RECORDS.iter().any(|known| function.value.eq_ignore_ascii_case(known)) {
        return false;
    }
    let FunctionArguments::List(list) = &mut call.args else { return false };
    let [FunctionArg::Unnamed(argument)] = list.args.as_mut_slice() else { return false };
    let FunctionArgExpr::Expr(Expr::Identifier(given)) = argument else { return false };
    if !is_called(given, name) {
        return false;
    }
    let table = ObjectName(vec![ObjectNamePart::Identifier(given.clone())]);
    *argument = FunctionArgExpr::QualifiedWildcard(table);
    true
}

/// Names are lower case unless they are in quotes.
fn is_called(ident: &Ident, name: &str) -> bool {
    match ident.quote_style {
        Some(_) => ident.value == name,
        None => ident.value.eq_ignore_ascii_case(name),
    }
}

struct Tables<'a> {
    name: &'a str,
}

impl Visitor for Tables<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        let ident = match table {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => Some(&alias.name),
            TableFactor::Table { name, alias: None, .. } => match name.0.last() {
                Some(ObjectNamePart::Identifier(name)) => Some(name),
                _ => None,
            },
            _ => None,
        };
        match ident.is_some_and(|ident| is_called(ident, self.name)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
