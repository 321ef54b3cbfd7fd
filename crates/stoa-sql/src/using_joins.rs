//! `JOIN … USING (x)`: which value the one column `x` has that the tables share, and where it stands in `*`.
//!
//! | join | value |
//! |---|---|
//! | `JOIN`, `LEFT JOIN` | that of the left side |
//! | `RIGHT JOIN` | that of the right side |
//! | `FULL JOIN` | `coalesce(left.x, right.x)` |
//!
//! The engine takes that of the left side always, so that it is NULL in rows of the right side only, and leaves shared
//! columns in `*` where the left side has them; in PostgreSQL they come first.
//!
//! In: a parsed statement. Out: the same with qualified names for shared columns, and `*` written out as far as
//! that needs no knowledge of the tables. **Invariant:** what cannot be written out keeps the value of the left side only where
//! that is right; else it is refused.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, GroupByExpr, Ident, JoinConstraint, JoinOperator,
    ObjectName, OrderBy, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, Statement, TableFactor, TableWithJoins, VisitorMut, WildcardAdditionalOptions,
};
use stoa_error::{Error, Result};

use crate::normalise;
use crate::walk::WalkMut;

/// Writes out the columns that joins share.
///
/// # Errors
/// 0A000 for joins whose shared columns cannot be told without the tables: `NATURAL FULL JOIN`, and some within others.
pub(super) fn write_out_shared(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut Joins) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Joins;

impl VisitorMut for Joins {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        let SetExpr::Select(select) = query.body.as_mut() else { return ControlFlow::Continue(()) };
        match rewritten(select, query.order_by.as_mut()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        // Parts of UNION and the like.
        match rewritten(select, None) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

/// A column that the tables of a join share.
struct Shared {
    name: String,
    ident: Ident,
    value: Expr,
}

/// The tables of one join, and what they share.
#[derive(Default)]
struct Chain {
    /// Each with the columns that `*` does not show of it.
    tables: Vec<(Ident, Vec<Ident>)>,
    /// In the order in which `*` shows them.
    shared: Vec<Shared>,
}

fn rewritten(select: &mut Select, order: Option<&mut OrderBy>) -> Result<()> {
    let is_star = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    let has_star = select.projection.iter().any(is_star);
    let needs_values = select.from.iter().any(mends_values);
    let moves_columns = has_star && select.from.iter().any(shares);
    if !needs_values && !moves_columns {
        return Ok(());
    }
    let mut chains = Vec::with_capacity(select.from.len());
    for from in &mut select.from {
        match chain_of(from)? {
            Some(chain) => chains.push(chain),
            // All that is wrong without it is the place of columns in `*`.
            None if !needs_values => return Ok(()),
            None => return Err(unknown()),
        }
    }
    let shared = chains.iter().flat_map(|chain| &chain.shared);
    let mut values =
        Values { shared: shared.map(|s| (s.name.clone(), s.value.clone())).collect(), depth: 0 };
    let mut projection = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::Wildcard(options) if is_plain(&options) => {
                chains.iter().for_each(|chain| star_of(chain, &options, &mut projection));
            }
            SelectItem::UnnamedExpr(Expr::Identifier(name)) if values.of(&name).is_some() => {
                let expr = values.of(&name).cloned().unwrap_or(Expr::Identifier(name.clone()));
                projection.push(SelectItem::ExprWithAlias { expr, alias: name });
            }
            mut item => {
                let _ = item.walk_mut(&mut values);
                projection.push(item);
            }
        }
    }
    select.projection = projection;
    let _ = select.distinct.walk_mut(&mut values);
    let _ = select.selection.walk_mut(&mut values);
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        let _ = keys.walk_mut(&mut values);
    }
    let _ = select.having.walk_mut(&mut values);
    let _ = select.qualify.walk_mut(&mut values);
    let _ = select.named_window.walk_mut(&mut values);
    if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order {
        // A name that the result has means its column.
        let named = |item: &SelectItem| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(normalise(alias)),
            _ => None,
        };
        let names: Vec<String> = select.projection.iter().filter_map(named).collect();
        for key in keys {
            let is_named =
                matches!(&key.expr, Expr::Identifier(name) if names.contains(&normalise(name)));
            if !is_named {
                let _ = key.walk_mut(&mut values);
            }
        }
    }
    Ok(())
}

/// Whether the engine has other values for what a join shares.
fn mends_values(from: &TableWithJoins) -> bool {
    let within = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => mends_values(table_with_joins),
        _ => false,
    };
    within(&from.relation)
        || from.joins.iter().any(|join| {
            let is_outer = matches!(
                join.join_operator,
                JoinOperator::FullOuter(_) | JoinOperator::Right(_) | JoinOperator::RightOuter(_)
            );
            let shares = constraint_of(&join.join_operator)
                .is_some_and(|on| matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural));
            is_outer && shares || within(&join.relation)
        })
}

/// Whether columns are shared by name.
fn shares(from: &TableWithJoins) -> bool {
    let using = |on: &JoinConstraint| matches!(on, JoinConstraint::Using(_));
    from.joins.iter().any(|join| constraint_of(&join.join_operator).is_some_and(using))
}

fn constraint_of(join: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    match join {
        Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on)
        | FullOuter(on) => Some(on),
        _ => None,
    }
}

/// Replaces USING where the engine has it wrong; `None` where it is not known what a table has.
fn chain_of(from: &mut TableWithJoins) -> Result<Option<Chain>> {
    let Some(first) = name_of(&from.relation) else { return Ok(None) };
    let mut chain = Chain { tables: vec![(first.clone(), Vec::new())], shared: Vec::new() };
    for (place, join) in from.joins.iter_mut().enumerate() {
        let Some(table) = name_of(&join.relation) else { return Ok(None) };
        let is_right =
            matches!(join.join_operator, JoinOperator::Right(_) | JoinOperator::RightOuter(_));
        let is_full = matches!(join.join_operator, JoinOperator::FullOuter(_));
        let mut left_out = Vec::new();
        match constraint_of(&join.join_operator) {
            Some(JoinConstraint::Using(columns)) => {
                let columns: Vec<Ident> = columns.iter().filter_map(last_part).collect();
                let mut conditions = Vec::with_capacity(columns.len());
                let mut shared = Vec::with_capacity(columns.len());
                for ident in columns {
                    let name = normalise(&ident);
                    let before = chain.shared.iter().position(|known| known.name == name);
                    let left = match before {
                        Some(at) => chain.shared.remove(at).value,
                        None if place == 0 => {
                            chain.tables[0].1.push(ident.clone());
                            qualified(&first, &ident)
                        }
                        None => return Ok(None),
                    };
                    let right = qualified(&table, &ident);
                    left_out.push(ident.clone());
                    conditions.push(equal(left.clone(), right.clone()));
                    let value = match (is_full, is_right) {
                        (true, _) => coalesce(left, right),
                        (_, true) => right,
                        _ => left,
                    };
                    shared.push(Shared { name, ident, value });
                }
                shared.append(&mut chain.shared);
                chain.shared = shared;
                let on = conditions.into_iter().reduce(|all, one| Expr::BinaryOp {
                    left: Box::new(all),
                    op: BinaryOperator::And,
                    right: Box::new(one),
                });
                let values_differ = is_full || is_right || chain.shared.iter().any(is_call);
                if let (Some(on), true) = (on, values_differ) {
                    replace(&mut join.join_operator, JoinConstraint::On(on));
                }
            }
            Some(JoinConstraint::Natural) => return Ok(None),
            _ => {}
        }
        chain.tables.push((table, left_out));
    }
    Ok(Some(chain))
}

fn is_call(shared: &Shared) -> bool {
    matches!(shared.value, Expr::Function(_))
}

fn replace(join: &mut JoinOperator, with: JoinConstraint) {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    if let Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on)
    | FullOuter(on) = join
    {
        *on = with;
    }
}

/// The name by which a table's columns can be qualified.
fn name_of(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { name, alias: None, args: None, .. } => last_part(name),
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(alias.name.clone()),
        _ => None,
    }
}

fn last_part(name: &ObjectName) -> Option<Ident> {
    name.0.last().and_then(|part| part.as_ident()).cloned()
}

fn qualified(table: &Ident, column: &Ident) -> Expr {
    Expr::CompoundIdentifier(vec![table.clone(), column.clone()])
}

fn equal(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Eq, right: Box::new(right) }
}

fn coalesce(left: Expr, right: Expr) -> Expr {
    let args = [left, right].map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    let args = FunctionArgumentList {
        duplicate_treatment: None,
        args: args.to_vec(),
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("coalesce")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(args),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
}

/// What `*` shows of a join.
fn star_of(chain: &Chain, options: &WildcardAdditionalOptions, out: &mut Vec<SelectItem>) {
    for shared in &chain.shared {
        out.push(SelectItem::ExprWithAlias {
            expr: shared.value.clone(),
            alias: shared.ident.clone(),
        });
    }
    for (table, left_out) in &chain.tables {
        // Not EXCEPT, which is a set operation where it is read again.
        let names = left_out.iter().map(|column| ObjectName::from(vec![column.clone()]));
        let opt_exclude =
            (!left_out.is_empty()).then(|| ExcludeSelectItem::Multiple(names.collect()));
        let options = WildcardAdditionalOptions { opt_exclude, ..options.clone() };
        let of = SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![table.clone()]));
        out.push(SelectItem::QualifiedWildcard(of, options));
    }
}

/// Puts in the values of shared columns, but in no query within.
struct Values {
    shared: Vec<(String, Expr)>,
    depth: usize,
}

impl Values {
    fn of(&self, ident: &Ident) -> Option<&Expr> {
        let name = normalise(ident);
        let mut found = self.shared.iter().filter(|(shared, _)| *shared == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }
}

impl VisitorMut for Values {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(name) = expr
            && let Some(value) = self.of(name)
        {
            *expr = value.clone();
        }
        ControlFlow::Continue(())
    }
}

fn unknown() -> Error {
    Error::unsupported(
        "which columns this RIGHT or FULL JOIN shares is not known without its tables",
    )
    .with_hint("write ON, and coalesce(a.x, b.x) for the columns that are shared")
}
