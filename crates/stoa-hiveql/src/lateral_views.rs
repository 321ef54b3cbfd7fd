//! `LATERAL VIEW`, and functions that give rows in SELECT.
//!
//! | Hive | Stoa |
//! |---|---|
//! | `LATERAL VIEW explode(a) v AS c` | `CROSS JOIN LATERAL unnest(a) AS v(c)` |
//! | `LATERAL VIEW OUTER …` | `LEFT JOIN LATERAL … ON true` |
//! | `explode(m) v AS k, v` | `unnest(hive_map_keys(m), hive_map_values(m))` |
//! | `posexplode(a) v AS p, c` | `unnest(hive_positions(a), a)` |
//! | `stack`, `inline(array(…))`, `json_tuple`, `parse_url_tuple` | `LATERAL (VALUES (…), …)` |

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator,
    LateralView, Parens, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, Value, Values,
};
use stoa_error::{Error, Result};

use crate::calls::{self, Call, name_of, operands};
use crate::made::{call, string};

/// Whether a function gives rows.
pub(crate) fn is_rows(function: &Function) -> bool {
    name_of(function).and_then(calls::named) == Some(Call::Rows)
}

/// Writes the lateral views of a SELECT as joins.
///
/// # Errors
/// 0A000: a function that gives no rows, or operands that are not supported.
pub(crate) fn write(select: &mut Select) -> Result<()> {
    out_of_select(select)?;
    for view in std::mem::take(&mut select.lateral_views) {
        let is_outer = view.outer;
        let (table, is_alone) = rows(view)?;
        let Some(last) = select.from.last_mut() else {
            select.from.push(TableWithJoins { relation: table, joins: Vec::new() });
            continue;
        };
        let join_operator = match is_outer && !is_alone {
            true => JoinOperator::Left(JoinConstraint::On(Expr::value(Value::Boolean(true)))),
            false => JoinOperator::CrossJoin(JoinConstraint::None),
        };
        last.joins.push(Join { relation: table, global: false, join_operator });
    }
    Ok(())
}

/// `SELECT explode(a) AS c FROM t` is `SELECT v.c FROM t LATERAL VIEW explode(a) v AS c`.
fn out_of_select(select: &mut Select) -> Result<()> {
    let is_call = |expr: &Expr| matches!(expr, Expr::Function(function) if is_rows(function));
    let has_rows = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr)
        | SelectItem::ExprWithAlias { expr, .. }
        | SelectItem::ExprWithAliases { expr, .. } => is_call(expr),
        _ => false,
    });
    if !has_rows {
        return Ok(());
    }
    let [item] = select.projection.as_slice() else {
        return Err(Error::unsupported(
            "only a single expression in the SELECT clause is supported with UDTFs",
        )
        .with_hint("use LATERAL VIEW"));
    };
    let (expr, names) = match item {
        SelectItem::UnnamedExpr(expr) => (expr.clone(), Vec::new()),
        SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), vec![alias.clone()]),
        SelectItem::ExprWithAliases { expr, aliases } => (expr.clone(), aliases.clone()),
        _ => return Ok(()),
    };
    let Expr::Function(function) = &expr else { return Ok(()) };
    let names = if names.is_empty() { default_names(function)? } else { names };
    let view = Ident::new("_rows");
    select.projection = names
        .iter()
        .map(|name| {
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![view.clone(), name.clone()]))
        })
        .collect();
    select.lateral_views.push(LateralView {
        lateral_view: expr,
        lateral_view_name: vec![view].into(),
        lateral_col_alias: names,
        outer: false,
    });
    Ok(())
}

/// The names that Hive gives the columns.
fn default_names(function: &Function) -> Result<Vec<Ident>> {
    let args = operands(function);
    let numbered = |prefix: &str, from: usize, count: usize| -> Vec<Ident> {
        (0..count).map(|at| Ident::new(format!("{prefix}{}", at + from))).collect()
    };
    let named = |names: &[&str]| names.iter().map(|name| Ident::new(*name)).collect();
    Ok(match name_of(function).unwrap_or_default() {
        "explode" if is_map(&args) => named(&["key", "value"]),
        "explode" => named(&["col"]),
        "posexplode" if is_map(&args) => named(&["pos", "key", "value"]),
        "posexplode" => named(&["pos", "val"]),
        "json_tuple" | "parse_url_tuple" => numbered("c", 0, args.len().saturating_sub(1)),
        "stack" => {
            let rows = stacked(&args)?;
            numbered("col", 0, rows.first().map_or(0, Vec::len))
        }
        "inline" => numbered("col", 1, inlined(&args)?.first().map_or(0, Vec::len)),
        other => return Err(no_rows(other)),
    })
}

/// Whether the operand is surely a map.
fn is_map(args: &[Expr]) -> bool {
    let Some(Expr::Function(function)) = args.first() else { return false };
    matches!(name_of(function), Some("hive_map" | "hive_str_to_map" | "hive_map_from_arrays"))
}

fn no_rows(name: &str) -> Error {
    Error::unsupported(format!("{name} in LATERAL VIEW is not supported")).with_hint(
        "explode, posexplode, inline(array(struct(…))), stack, json_tuple and parse_url_tuple are",
    )
}

/// The rows of a lateral view; whether there is always one.
fn rows(view: LateralView) -> Result<(TableFactor, bool)> {
    let Expr::Function(function) = &view.lateral_view else {
        return Err(no_rows(&view.lateral_view.to_string()));
    };
    let name = name_of(function).unwrap_or_default().to_owned();
    let args = operands(function);
    let names = match view.lateral_col_alias.is_empty() {
        true => default_names(function)?,
        false => view.lateral_col_alias,
    };
    let alias = TableAlias {
        explicit: true,
        name: view
            .lateral_view_name
            .0
            .last()
            .and_then(|part| part.as_ident())
            .cloned()
            .unwrap_or_else(|| Ident::new("_rows")),
        columns: names
            .iter()
            .map(|name| TableAliasColumnDef { name: name.clone(), data_type: None })
            .collect(),
        at: None,
    };
    let wrong = |wanted: usize| {
        Error::invalid(format!("{name} gives {wanted} columns, and {} are named", names.len()))
            .with_sqlstate("42601")
    };
    let one = || match args.as_slice() {
        [of] => Ok(of.clone()),
        _ => Err(Error::invalid(format!("{name} takes one operand")).with_sqlstate("42883")),
    };
    let keys_and_values =
        |of: Expr| vec![call("hive_map_keys", vec![of.clone()]), call("hive_map_values", vec![of])];
    let lists = match (name.as_str(), names.len()) {
        ("explode", 1) => vec![one()?],
        ("explode", 2) => keys_and_values(one()?),
        ("explode", _) => return Err(wrong(1)),
        ("posexplode", 2) => vec![call("hive_positions", vec![one()?]), one()?],
        ("posexplode", 3) => {
            let mut lists = vec![call("hive_positions", vec![one()?])];
            lists.extend(keys_and_values(one()?));
            lists
        }
        ("posexplode", _) => return Err(wrong(2)),
        _ => {
            let rows = match name.as_str() {
                "stack" => stacked(&args)?,
                "inline" => inlined(&args)?,
                "json_tuple" => members(&args, "hive_json_member"),
                "parse_url_tuple" => vec![url_parts(&args)?],
                other => return Err(no_rows(other)),
            };
            let width = rows.first().map_or(0, Vec::len);
            if width != names.len() {
                return Err(wrong(width));
            }
            return Ok((values(rows, alias), true));
        }
    };
    let args = lists.into_iter().map(|list| FunctionArg::Unnamed(FunctionArgExpr::Expr(list)));
    let table = TableFactor::Function {
        lateral: true,
        name: vec![Ident::new("unnest")].into(),
        args: args.collect(),
        with_ordinality: false,
        alias: Some(alias),
    };
    Ok((table, false))
}

fn values(rows: Vec<Vec<Expr>>, alias: TableAlias) -> TableFactor {
    let rows = rows.into_iter().map(Parens::with_empty_span).collect();
    let values = Values { explicit_row: false, value_keyword: false, rows };
    let query = Query {
        with: None,
        body: Box::new(SetExpr::Values(values)),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    };
    TableFactor::Derived {
        lateral: true,
        subquery: Box::new(query),
        alias: Some(alias),
        sample: None,
    }
}

fn members(args: &[Expr], function: &str) -> Vec<Vec<Expr>> {
    let Some((of, names)) = args.split_first() else { return Vec::new() };
    vec![names.iter().map(|name| call(function, vec![of.clone(), name.clone()])).collect()]
}

fn url_parts(args: &[Expr]) -> Result<Vec<Expr>> {
    let Some((of, parts)) = args.split_first() else { return Ok(Vec::new()) };
    let part = |part: &Expr| {
        let Expr::Value(value) = part else {
            return Err(no_rows("parse_url_tuple of a computed part"));
        };
        let Value::SingleQuotedString(text) = &value.value else {
            return Err(no_rows("parse_url_tuple"));
        };
        let mut operands = vec![of.clone()];
        match text.split_once(':') {
            Some((part, key)) => operands.extend([string(part), string(key)]),
            None => operands.push(string(text)),
        }
        Ok(call("hive_parse_url", operands))
    };
    parts.iter().map(part).collect()
}

/// `stack(n, …)`: the values in n rows; what is missing in the last is NULL.
fn stacked(args: &[Expr]) -> Result<Vec<Vec<Expr>>> {
    let Some((count, values)) = args.split_first() else { return Err(no_rows("stack()")) };
    let Expr::Value(count) = count else {
        return Err(no_rows("stack of a computed number of rows"));
    };
    let Value::Number(digits, _) = &count.value else { return Err(no_rows("stack")) };
    let count: usize = digits
        .parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| no_rows("stack of this number of rows"))?;
    let width = values.len().div_ceil(count);
    let null = || Expr::value(Value::Null);
    let value = |at: usize| values.get(at).cloned().unwrap_or_else(null);
    Ok((0..count)
        .map(|row| (0..width).map(|column| value(row * width + column)).collect())
        .collect())
}

/// `inline(array(struct(…), …))`, where the structs are written out.
fn inlined(args: &[Expr]) -> Result<Vec<Vec<Expr>>> {
    let hint = || no_rows("inline of a column");
    let [Expr::Function(array)] = args else { return Err(hint()) };
    if name_of(array) != Some("hive_array") {
        return Err(hint());
    }
    let fields = |item: &Expr| match item {
        Expr::Function(of) if name_of(of) == Some("named_struct") => {
            Ok(operands(of).into_iter().skip(1).step_by(2).collect::<Vec<_>>())
        }
        _ => Err(hint()),
    };
    operands(array).iter().map(fields).collect()
}
