//! Tables that have the name of a column of a query within: `FROM tt x WHERE EXISTS (SELECT 1 FROM uu WHERE uu.a = x.a)`,
//! where `uu` has a column `x`.
//!
//! In: a statement that the engine cannot plan, since it takes `x.a` for a field of that column. Out: the same, in which
//! each table that a query within reads has a name that nothing else has. **Invariant:** a name means the same table
//! before and after.

use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, Visitor,
    VisitorMut,
};

use crate::adapt::parsed;
use crate::from_names::own_name;
use crate::normalise;
use crate::walk::{Walk, WalkMut};

/// Gives such tables names of their own; says whether there are any.
pub fn tell_aliases_apart(statement: &mut EngineStatement) -> bool {
    let taken = statement.to_string();
    let Some(statement) = parsed(statement) else { return false };
    let mut renaming = Renaming { taken, given: Vec::new() };
    let _ = statement.walk_mut(&mut renaming);
    !renaming.given.is_empty()
}

/// A `x.a` of a SELECT that has no table `x`: table and column; the last one where there are several.
pub fn column_of_no_table(statement: &EngineStatement) -> Option<(String, String)> {
    let mut statement = statement.clone();
    let statement = parsed(&mut statement)?;
    let mut free = Free { selects: Vec::new(), found: None };
    let _ = Walk::walk(&*statement, &mut free);
    free.found
}

struct Free {
    /// The names of the tables of each SELECT around.
    selects: Vec<Vec<String>>,
    found: Option<(String, String)>,
}

impl Visitor for Free {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let mut names = Vec::new();
        select.from.iter().for_each(|table| names_of(table, &mut names));
        self.selects.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.selects.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Some(names) = self.selects.last() else { return ControlFlow::Continue(()) };
        if let (Some(table), Expr::CompoundIdentifier(parts)) = (table_of(expr), expr)
            && let [_, column] = parts.as_slice()
            && !names.contains(&table)
        {
            self.found = Some((table, normalise(column)));
        }
        ControlFlow::Continue(())
    }
}

struct Renaming {
    /// A text with all names in it.
    taken: String,
    given: Vec<String>,
}

impl Renaming {
    /// The names of a FROM that queries within read, each with a new one.
    fn renamed(&mut self, from: &[TableWithJoins], part: &impl Walk) -> Vec<(String, Ident)> {
        let mut names = Vec::new();
        from.iter().for_each(|table| names_of(table, &mut names));
        names.retain(|name| !self.given.contains(name) && is_read_within(part, name));
        names.into_iter().map(|name| (name.clone(), self.new_name(&name))).collect()
    }

    fn new_name(&mut self, name: &str) -> Ident {
        let mut new = format!("{name}_1");
        while self.taken.contains(&new) {
            new.push('1');
        }
        self.taken.push_str(&new);
        self.given.push(new.clone());
        Ident::with_quote('"', new)
    }
}

impl VisitorMut for Renaming {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let SetExpr::Select(select) = query.body.as_ref() else { return ControlFlow::Continue(()) };
        let renamed = self.renamed(&select.from, query);
        for (name, new) in renamed {
            // ORDER BY, too, names the tables.
            let _ = query.walk_mut(&mut Written { name: &name, new: &new, within: vec![false] });
            if let SetExpr::Select(select) = query.body.as_mut() {
                select.from.iter_mut().for_each(|table| rename(table, &name, &new));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let renamed = self.renamed(&select.from, select);
        for (name, new) in renamed {
            let _ = select.walk_mut(&mut Written { name: &name, new: &new, within: Vec::new() });
            select.from.iter_mut().for_each(|table| rename(table, &name, &new));
        }
        ControlFlow::Continue(())
    }
}

/// Whether a query within `part` names a column of the table `name` around it.
fn is_read_within(part: &impl Walk, name: &str) -> bool {
    part.walk(&mut Reads { name, own: Vec::new() }).is_break()
}

/// Looks for `name.column` in the queries within.
struct Reads<'a> {
    name: &'a str,
    /// Of each SELECT around, the outermost first: whether a table of its own has the name.
    own: Vec<bool>,
}

impl Visitor for Reads<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.own.push(defines(select, self.name));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.own.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_free = self.own.iter().skip(1).all(|own| !own);
        if self.own.len() > 1 && is_free && table_of(expr) == Some(self.name.to_owned()) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Writes the new name where the table is meant.
struct Written<'a> {
    name: &'a str,
    new: &'a Ident,
    /// Of each SELECT within: whether a table of its own has the name. The first stands for the one whose table it is.
    within: Vec<bool>,
}

impl VisitorMut for Written<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let is_outermost = self.within.len() <= 1;
        self.within.push(!is_outermost && defines(select, self.name));
        if self.within.iter().any(|own| *own) {
            return ControlFlow::Continue(());
        }
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(ObjectName(parts)),
                _,
            ) = item
                && let [ObjectNamePart::Identifier(table)] = parts.as_mut_slice()
                && normalise(table) == self.name
            {
                table.clone_from(self.new);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.within.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if !self.within.iter().any(|own| *own)
            && table_of(expr).is_some_and(|table| table == self.name)
            && let Expr::CompoundIdentifier(parts) = expr
            && let Some(table) = parts.first_mut()
        {
            table.clone_from(self.new);
        }
        ControlFlow::Continue(())
    }
}

/// The table of `table.column`.
fn table_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, _] => Some(normalise(table)),
            _ => None,
        },
        _ => None,
    }
}

fn defines(select: &Select, name: &str) -> bool {
    let mut names = Vec::new();
    select.from.iter().for_each(|table| names_of(table, &mut names));
    names.iter().any(|own| own == name)
}

/// The names under which a FROM has its tables.
fn names_of(table: &TableWithJoins, names: &mut Vec<String>) {
    let joined = table.joins.iter().map(|join| &join.relation);
    for factor in std::iter::once(&table.relation).chain(joined) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                names_of(table_with_joins, names);
            }
            factor => names.extend(own_name(factor).map(normalise)),
        }
    }
}

fn rename(table: &mut TableWithJoins, name: &str, new: &Ident) {
    let joined = table.joins.iter_mut().map(|join| &mut join.relation);
    for factor in std::iter::once(&mut table.relation).chain(joined) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                rename(table_with_joins, name, new);
            }
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. }
                if normalise(&alias.name) == name =>
            {
                alias.name.clone_from(new);
            }
            TableFactor::Table { name: table, alias: alias @ None, .. } => {
                let last = table.0.last().and_then(ObjectNamePart::as_ident);
                if last.is_some_and(|last| normalise(last) == name) {
                    let name = new.clone();
                    *alias =
                        Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::parser::DFParser;
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;

    use super::*;

    fn apart(sql: &str) -> Option<String> {
        let mut statement = DFParser::parse_sql_with_dialect(sql, &PostgreSqlDialect {}).unwrap();
        let mut statement = statement.pop_front().unwrap();
        tell_aliases_apart(&mut statement).then(|| statement.to_string())
    }

    #[test]
    fn tables_that_queries_within_read_get_names_of_their_own() {
        for (sql, expected) in [
            (
                "SELECT x.*, (SELECT max(b) FROM u WHERE b > x.a) FROM t x ORDER BY x.a",
                "SELECT \"x_1\".*, (SELECT max(b) FROM u WHERE b > \"x_1\".a) FROM t \"x_1\" ORDER BY \"x_1\".a",
            ),
            (
                "SELECT 1 FROM s.t WHERE EXISTS (SELECT 1 FROM u WHERE t = t.a)",
                "SELECT 1 FROM s.t AS \"t_1\" WHERE EXISTS (SELECT 1 FROM u WHERE t = \"t_1\".a)",
            ),
            (
                "SELECT x.a FROM t x JOIN v ON x.a = v.a WHERE x.a IN (SELECT x.b FROM u x WHERE v.a = 1)",
                "SELECT x.a FROM t x JOIN v AS \"v_1\" ON x.a = \"v_1\".a WHERE x.a IN (SELECT x.b FROM u x WHERE \"v_1\".a = 1)",
            ),
        ] {
            let written = apart(sql).unwrap();
            assert_eq!(written, expected);
        }
        assert_eq!(apart("SELECT x.a FROM t x WHERE a IN (SELECT x.b FROM u x)"), None);
    }

    #[test]
    fn a_column_of_no_table_is_found() {
        let found = |sql: &str| {
            let mut all = DFParser::parse_sql_with_dialect(sql, &PostgreSqlDialect {}).unwrap();
            column_of_no_table(&all.pop_front().unwrap())
        };
        assert_eq!(found("SELECT x.a, u.b FROM u"), Some(("x".into(), "a".into())));
        assert_eq!(found("SELECT x.a, u.b FROM u JOIN x ON true"), None);
    }
}
