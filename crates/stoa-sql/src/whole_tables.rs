//! `t.*` where `t` stands in FROM with its schema.
//!
//! In: a parsed statement. Out: the same with `s.t.*` and `count(s.t.*)`, which the engine knows, for `FROM s.t`. Tables
//! with an alias stay: their names are what is written.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Statement, TableFactor, TableWithJoins, VisitorMut,
};

use crate::normalise;
use crate::walk::WalkMut;

/// Writes the schemas before the names of tables whose columns are all meant.
pub(super) fn write_schemas(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut InSelects);
}

struct InSelects;

impl VisitorMut for InSelects {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut names = Vec::new();
        select.from.iter().for_each(|table| names_of(table, &mut names));
        if names.is_empty() {
            return ControlFlow::Continue(());
        }
        for item in &mut select.projection {
            let of = match item {
                SelectItem::QualifiedWildcard(of, _) => of,
                _ => continue,
            };
            if let SelectItemQualifiedWildcardKind::ObjectName(name) = of {
                write_schema(name, &names);
            }
        }
        let _ = select.walk_mut(&mut InCalls { names: &names, depth: 0 });
        ControlFlow::Continue(())
    }
}

/// The arguments of functions, without those of queries within.
struct InCalls<'a> {
    names: &'a [ObjectName],
    depth: usize,
}

impl VisitorMut for InCalls<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr
            && let FunctionArguments::List(list) = &mut call.args
            && self.depth == 0
        {
            for argument in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) = argument {
                    write_schema(name, self.names);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn write_schema(name: &mut ObjectName, names: &[ObjectName]) {
    let [table] = name.0.as_slice() else { return };
    let Some(table) = table.as_ident().map(normalise) else { return };
    let is_it = |of: &&ObjectName| {
        let last = of.0.last().and_then(|part| part.as_ident());
        last.is_some_and(|last| normalise(last) == table)
    };
    if let Some(of) = names.iter().find(is_it) {
        name.clone_from(of);
    }
}

/// The tables of a FROM that stand there with a schema, and without an alias.
fn names_of(table: &TableWithJoins, names: &mut Vec<ObjectName>) {
    let joined = table.joins.iter().map(|join| &join.relation);
    for factor in std::iter::once(&table.relation).chain(joined) {
        match factor {
            TableFactor::Table { name, alias: None, args: None, .. } if name.0.len() > 1 => {
                names.push(name.clone());
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                names_of(table_with_joins, names);
            }
            _ => {}
        }
    }
}
