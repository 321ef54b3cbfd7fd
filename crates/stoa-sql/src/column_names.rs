//! Names of the columns of a result that has none given: those that PostgreSQL gives.
//!
//! In: a statement as it was parsed. Out: the same, each computed column of a query with an alias: that of
//! a function is its name (`sum`), of a cast that of the column or the type (`int4`), of an operator `?column?`. Several
//! columns may have one name, which the engine refuses: all but one get a *mark* behind the name, which names of its
//! own do not have, and which [`shown`] takes away before anybody sees it.
//!
//! Not here: columns that have a name (`t.a`, `a AS b`), unless the engine refuses the query for them
//! ([`mark_repeated`]); subqueries within expressions, whose names nobody sees.
//!
//! Source: PostgreSQL, `FigureColname` in `parse_target.c`.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    self, AccessExpr, DataType, Distinct, Expr, Function, FunctionArguments, Ident, ObjectName,
    OrderByKind, Query, Select, SelectItem, SetExpr, Subscript, TrimWhereField, Value, VisitorMut,
};

use crate::adapt::parsed;
use crate::chains::SUM;
use crate::walk::{WalkMut, walk_expressions};
use crate::worded_calls::SIMILAR_SUBSTRING;
use crate::{normalise, returning};

/// Stands between a name and the number by which it is told from others of that name: U+2063, the invisible separator.
const MARK: char = '\u{2063}';

/// PostgreSQL's name for what has none.
const UNKNOWN: &str = "?column?";

/// The name of a column without its mark.
pub fn shown(name: &str) -> &str {
    match name.rsplit_once(MARK) {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

/// Whether a name has a mark.
pub fn is_marked(name: &str) -> bool {
    shown(name).len() < name.len()
}

/// A name with a mark, which is not shown.
pub(super) fn marked(name: &str, number: usize) -> String {
    format!("{name}{MARK}{number}")
}

/// Names the columns of all queries of a statement that somebody may see or name.
pub fn name_columns(statement: &mut ast::Statement) {
    if let Some(columns) = returning::columns_of(statement) {
        name_items(columns, &HashSet::new(), true);
    }
    let _ =
        statement.walk_mut(&mut Naming { within_expressions: HashSet::new(), is_outermost: true });
}

/// Gives each column of a result a name of its own, where the engine refused the query because it has none.
pub fn mark_repeated(statement: &mut EngineStatement) {
    if let Some(statement) = parsed(statement) {
        let _ = statement.walk_mut(&mut Marking);
    }
}

struct Naming {
    /// Where the queries are that stand within expressions and were not visited yet.
    within_expressions: HashSet<usize>,
    /// Whether the next query is the statement's own.
    is_outermost: bool,
}

impl VisitorMut for Naming {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Subquery(query)
        | Expr::InSubquery { subquery: query, .. }
        | Expr::Exists { subquery: query, .. } = expr
        {
            self.within_expressions.insert(place(query));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let is_outermost = std::mem::take(&mut self.is_outermost);
        if !self.within_expressions.remove(&place(query)) {
            order_distinct_by_numbers(query);
            let ordered_within = ordered_within(query);
            name_body(&mut query.body, &ordered_within, is_outermost);
            if is_outermost && !ordered_within.is_empty() {
                order_by_marked(query, &ordered_within);
            }
            order_distinct_by_names(query);
        }
        ControlFlow::Continue(())
    }
}

/// Where a query is. It stays there until it is visited.
fn place(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

/// The names within the expressions of an ORDER BY: they mean columns of tables, and a name that stands alone one of the
/// result. The engine takes that of the result for both.
fn ordered_within(query: &Query) -> HashSet<String> {
    let mut names = HashSet::new();
    let (Some(order), SetExpr::Select(_)) = (&query.order_by, query.body.as_ref()) else {
        return names;
    };
    let OrderByKind::Expressions(keys) = &order.kind else { return names };
    for key in keys.iter().filter(|key| !matches!(key.expr, Expr::Identifier(_))) {
        let _ = walk_expressions(&key.expr, |part| {
            if let Expr::Identifier(name) = part {
                names.insert(normalise(name));
            }
            ControlFlow::<()>::Continue(())
        });
    }
    names
}

fn name_body(body: &mut SetExpr, ordered_within: &HashSet<String>, is_outermost: bool) {
    match body {
        SetExpr::Select(select) => {
            name_items(&mut select.projection, ordered_within, is_outermost);
        }
        // The names are those of the left side.
        SetExpr::SetOperation { left, .. } => name_body(left, ordered_within, is_outermost),
        _ => {}
    }
}

fn name_items(items: &mut [SelectItem], ordered_within: &HashSet<String>, is_outermost: bool) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for item in items.iter() {
        if let Some(name) = name_of_item(item) {
            *times.entry(name).or_default() += 1;
        }
    }
    for (index, item) in items.iter_mut().enumerate() {
        let Some(name) = name_of_item(item) else { continue };
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {}
            SelectItem::UnnamedExpr(expr) => {
                let name = match ordered_within.contains(&name) {
                    true if !is_outermost => continue,
                    true => marked(&name, index + 1),
                    false if times[&name] > 1 => marked(&name, index + 1),
                    false => name,
                };
                let alias = Ident::with_quote('"', name);
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
            SelectItem::ExprWithAlias { alias, expr } => {
                let is_own = matches!(expr, Expr::Identifier(column) if normalise(column) == name);
                let is_ambiguous = !is_outermost && times[&name] > 1;
                let means_both = is_outermost && !is_own && ordered_within.contains(&name);
                if is_ambiguous || means_both {
                    *alias = Ident::with_quote('"', marked(&name, index + 1));
                }
            }
            _ => {}
        }
    }
}

/// Names that stand alone in an ORDER BY mean the columns that were marked because they stand in its expressions too.
fn order_by_marked(query: &mut Query, ordered_within: &HashSet<String>) {
    let (SetExpr::Select(select), Some(order)) = (query.body.as_ref(), &mut query.order_by) else {
        return;
    };
    let OrderByKind::Expressions(keys) = &mut order.kind else { return };
    for key in keys {
        let Expr::Identifier(alone) = &mut key.expr else { continue };
        let name = normalise(alone);
        if !ordered_within.contains(&name) {
            continue;
        }
        let of_result = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } if shown(&alias.value) == name => Some(alias),
            _ => None,
        });
        if let Some(alias) = of_result {
            *alone = alias.clone();
        }
    }
}

/// `SELECT DISTINCT f(a) … ORDER BY f(a)` orders by a column of the result, which the engine knows by its number or name
/// only.
fn order_distinct_by_numbers(query: &mut Query) {
    replace_distinct_keys(query, |items, key| {
        let is_known = |item: &SelectItem| {
            matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
        };
        let place = items.iter().all(is_known).then(|| {
            items.iter().position(|item| match item {
                SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) => {
                    expr == key
                }
                _ => false,
            })
        });
        place.flatten().map(|place| number(place + 1))
    });
}

/// Where there are columns without a number, behind `*`.
fn order_distinct_by_names(query: &mut Query) {
    replace_distinct_keys(query, |items, key| {
        items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if expr == key => {
                Some(Expr::Identifier(alias.clone()))
            }
            _ => None,
        })
    });
}

fn replace_distinct_keys(
    query: &mut Query,
    of_result: impl Fn(&[SelectItem], &Expr) -> Option<Expr>,
) {
    let (SetExpr::Select(select), Some(order)) = (query.body.as_ref(), &mut query.order_by) else {
        return;
    };
    let (Some(Distinct::Distinct), OrderByKind::Expressions(keys)) =
        (&select.distinct, &mut order.kind)
    else {
        return;
    };
    // Those are names and numbers of columns already.
    let is_computed = |key: &Expr| !matches!(key, Expr::Identifier(_) | Expr::Value(_));
    for key in keys.iter_mut().filter(|key| is_computed(&key.expr)) {
        if let Some(of_result) = of_result(&select.projection, &key.expr) {
            key.expr = of_result;
        }
    }
}

fn number(number: usize) -> Expr {
    Expr::Value(Value::Number(number.to_string(), false).with_empty_span())
}

/// The name of a column; `None` for `*` and the like.
fn name_of_item(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(name_of(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(normalise(alias)),
        _ => None,
    }
}

fn name_of(expr: &Expr) -> String {
    figure(expr).map_or_else(|| UNKNOWN.to_owned(), |name| name.text)
}

/// What a part of an expression would call it.
struct Name {
    text: String,
    /// Whether another name that is found around it is better.
    is_weak: bool,
}

fn strong(text: impl Into<String>) -> Option<Name> {
    Some(Name { text: text.into(), is_weak: false })
}

/// Whether the parser took VALUES for a call.
fn is_values(expr: &Expr) -> bool {
    let Expr::Function(call) = expr else { return false };
    let [ast::ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else { return false };
    name.quote_style.is_none() && name.value.eq_ignore_ascii_case("values")
}

fn figure(expr: &Expr) -> Option<Name> {
    match expr {
        Expr::Identifier(name) => strong(normalise(name)),
        Expr::CompoundIdentifier(names) => strong(normalise(names.last()?)),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(field) => figure(field),
                AccessExpr::Subscript(Subscript::Index { .. } | Subscript::Slice { .. }) => None,
            });
            field.or_else(|| figure(root))
        }
        // `(VALUES (1))`
        Expr::Nested(inner) if is_values(inner) => strong("column1".to_owned()),
        Expr::Nested(inner) => figure(inner),
        Expr::Collate { expr, .. } => figure(expr),
        Expr::Cast { expr, data_type, .. } => of_cast(figure(expr), data_type),
        Expr::TypedString(typed) => of_cast(None, &typed.data_type),
        Expr::Interval(_) => Some(Name { text: "interval".to_owned(), is_weak: true }),
        Expr::Case { else_result, .. } => {
            match else_result.as_deref().and_then(figure).filter(|name| !name.is_weak) {
                Some(name) => Some(name),
                None => Some(Name { text: "case".to_owned(), is_weak: true }),
            }
        }
        Expr::Function(function) => of_function(function),
        Expr::Exists { negated: false, .. } => strong("exists"),
        Expr::Subquery(query) => strong(name_of_query(&query.body)?),
        Expr::Array(_) => strong("array"),
        Expr::Tuple(_) => strong("row"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Position { .. } => strong("position"),
        Expr::Substring { shorthand, .. } => {
            strong(if *shorthand { "substr" } else { "substring" })
        }
        Expr::Overlay { .. } => strong("overlay"),
        Expr::IsNormalized { negated: false, .. } => strong("is_normalized"),
        Expr::BinaryOp { op: ast::BinaryOperator::Overlaps, .. } => strong("overlaps"),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::GroupingSets(_) => strong("grouping"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        _ => None,
    }
}

fn of_cast(operand: Option<Name>, data_type: &DataType) -> Option<Name> {
    match operand {
        Some(name) if !name.is_weak => Some(name),
        _ => Some(Name { text: name_of_type(data_type), is_weak: true }),
    }
}

fn of_function(function: &Function) -> Option<Name> {
    let name = last_part(&function.name)?;
    match name.as_str() {
        SUM => None,
        SIMILAR_SUBSTRING => strong("substring"),
        "array" if matches!(function.args, FunctionArguments::Subquery(_)) => strong("array"),
        _ => strong(name),
    }
}

fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(normalise)
}

/// The name of the first column of a query.
fn name_of_query(body: &SetExpr) -> Option<String> {
    match body {
        SetExpr::Select(select) => name_of_item(select.projection.first()?),
        SetExpr::Query(query) => name_of_query(&query.body),
        SetExpr::SetOperation { left, .. } => name_of_query(left),
        SetExpr::Values(_) => Some("column1".to_owned()),
        _ => None,
    }
}

/// PostgreSQL's own name of a type, as `pg_type` has it; of an array, that of its elements.
fn name_of_type(data_type: &DataType) -> String {
    use datafusion_sql::sqlparser::ast::{ArrayElemTypeDef, TimezoneInfo};
    let name = match data_type {
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(of, _)
            | ArrayElemTypeDef::AngleBracket(of)
            | ArrayElemTypeDef::Parenthesis(of),
        ) => return name_of_type(of),
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Float(ast::ExactNumberInfo::Precision(1..=24)) => "float4",
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 | DataType::Float(_) => {
            "float8"
        }
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric",
        DataType::Boolean | DataType::Bool => "bool",
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => {
            "varchar"
        }
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timestamptz",
        DataType::Timestamp(..) => "timestamp",
        DataType::Time(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timetz",
        DataType::Time(..) => "time",
        DataType::Interval { .. } => "interval",
        DataType::Custom(name, _) => {
            return last_part(name).unwrap_or_else(|| name.to_string());
        }
        other => {
            let text = other.to_string().to_lowercase();
            return text.split(['(', ' ', '<']).next().unwrap_or_default().to_owned();
        }
    };
    name.to_owned()
}

struct Marking;

impl VisitorMut for Marking {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        mark_body(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn mark_body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => mark_select(select),
        SetExpr::SetOperation { left, right, .. } => {
            mark_body(left);
            mark_body(right);
            name_by_place(right);
        }
        _ => {}
    }
}

/// Marks all columns of a name but the first.
fn mark_select(select: &mut Select) {
    let mut seen: HashSet<String> = HashSet::new();
    for (index, item) in select.projection.iter_mut().enumerate() {
        let Some(name) = name_of_item(item) else { continue };
        let is_first = seen.insert(name.clone());
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_))
                if is_first => {}
            SelectItem::UnnamedExpr(expr) => {
                let alias = Ident::with_quote('"', marked(&name, index + 1));
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
            SelectItem::ExprWithAlias { alias, .. } if !is_first => {
                *alias = Ident::with_quote('"', marked(shown(&name), index + 1));
            }
            _ => {}
        }
    }
}

/// Columns of the right side of a set operation, whose names nobody sees: the engine would name some of them as
/// those of the left.
fn name_by_place(body: &mut SetExpr) {
    let SetExpr::Select(select) = body else { return };
    for (place, item) in select.projection.iter_mut().enumerate() {
        if let SelectItem::UnnamedExpr(expr) = item
            && matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        {
            let alias = Ident::with_quote('"', format!("right_{}", place + 1));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    fn named(sql: &str) -> String {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        name_columns(&mut statements[0]);
        statements[0].to_string().replace(MARK, "!")
    }

    #[test]
    fn names_in_expressions_of_order_by_are_the_tables() {
        assert_eq!(
            named("SELECT -a AS a FROM t ORDER BY a + 1, a"),
            "SELECT -a AS \"a!1\" FROM t ORDER BY a + 1, \"a!1\""
        );
        assert_eq!(
            named("SELECT a::int FROM t ORDER BY a"),
            "SELECT a::INT AS \"a\" FROM t ORDER BY a"
        );
        assert_eq!(
            named("SELECT DISTINCT upper(s), a FROM t ORDER BY upper(s), a"),
            "SELECT DISTINCT upper(s) AS \"upper\", a FROM t ORDER BY 1, a"
        );
        assert_eq!(
            named("SELECT a AS a FROM t ORDER BY a + 1, a"),
            "SELECT a AS a FROM t ORDER BY a + 1, a"
        );
    }

    #[test]
    fn columns_of_one_name_are_marked() {
        assert_eq!(
            named("SELECT sum(a), sum(b), b FROM t"),
            "SELECT sum(a) AS \"sum!1\", sum(b) AS \"sum!2\", b FROM t"
        );
        assert_eq!(shown(&marked("sum", 12)), "sum");
        assert_eq!(shown("sum"), "sum");
        assert!(is_marked(&marked("?column?", 1)) && !is_marked("a2"));
    }

    #[test]
    fn subqueries_in_expressions_keep_their_names() {
        assert_eq!(
            named("SELECT (SELECT max(a) FROM t) FROM (SELECT max(b) FROM u) AS v"),
            "SELECT (SELECT max(a) FROM t) AS \"max\" FROM (SELECT max(b) AS \"max\" FROM u) AS v"
        );
    }
}
