//! Literals that name rows of the catalog: `'ad_report'::regclass`, `'int4'::regtype`, `'now'::regproc`.
//!
//! ```text
//! WHERE oid = 't'::regclass     ─►  WHERE oid = regclassin('t')
//! SELECT 't'::regclass          ─►  SELECT regclassout(regclassin('t'))      -- shown by its name
//! 'public'::regnamespace        ─►  name_must_exist((SELECT max(oid) …), 'regnamespace', 'public')
//! ```
//! A name that does not exist is an error, as in PostgreSQL, never NULL. Not here: casts of columns ([`super::names`]).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, Ident, Query, SelectItem, SetExpr, Statement, TypedString,
    Value, VisitorMut,
};
use stoa_error::{Error, Result, Subject};

use super::empty::column_name;
use super::expression;
use super::names::{is_text, type_name, well_known};
use crate::functions::must_exist;
use crate::relations::name_parts;
use crate::type_info::{type_named, type_shown};
use stoa_sql::walk::WalkMut;

/// Writes them as look-ups.
///
/// # Errors
/// A type that does not exist (42704), a text that is no name (42602).
pub(super) fn look_up(statement: &mut Statement) -> Result<()> {
    if let Statement::Query(query) = statement {
        show_items(&mut query.body)?;
    }
    match statement.walk_mut(&mut Literals) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Columns of the result show names.
fn show_items(body: &mut SetExpr) -> Result<()> {
    match body {
        SetExpr::Select(select) => select.projection.iter_mut().try_for_each(show_item),
        SetExpr::Query(query) => show_query(query),
        SetExpr::SetOperation { left, right, .. } => {
            show_items(left)?;
            show_items(right)
        }
        _ => Ok(()),
    }
}

fn show_query(query: &mut Query) -> Result<()> {
    show_items(&mut query.body)
}

fn show_item(item: &mut SelectItem) -> Result<()> {
    match item {
        SelectItem::UnnamedExpr(expr) => {
            if let Some((kind, name)) = reg_literal(expr) {
                let alias = Ident::with_quote('"', column_name(expr));
                let expr = shown(&kind, &name)?;
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        SelectItem::ExprWithAlias { expr, .. } => {
            if let Some((kind, name)) = reg_literal(expr) {
                *expr = shown(&kind, &name)?;
            }
        }
        _ => {}
    }
    Ok(())
}

struct Literals;

impl VisitorMut for Literals {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        match rewritten(expr) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(new)) => {
                *expr = new;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn rewritten(expr: &Expr) -> Result<Option<Expr>> {
    if let Expr::Cast { expr: inner, data_type, .. } = expr
        && is_text(data_type)
        && let Some((kind, name)) = reg_literal(inner)
    {
        return shown(&kind, &name).map(Some);
    }
    // `pg_typeof` gives a text here.
    if let Expr::BinaryOp { left, op: op @ (BinaryOperator::Eq | BinaryOperator::NotEq), right } =
        expr
    {
        for (call, literal) in [(left, right), (right, left)] {
            if is_type_of(call)
                && let Some((kind, name)) = reg_literal(literal)
                && kind == "regtype"
            {
                let text = shown(&kind, &name)?;
                let (left, right) = (call.clone(), Box::new(text));
                return Ok(Some(Expr::BinaryOp { left, op: op.clone(), right }));
            }
        }
    }
    match reg_literal(expr) {
        // Columns of functions hold names, with which they are compared ([`super::names`]).
        Some((kind, _)) if kind == "regproc" => Ok(None),
        Some((kind, name)) => oid(&kind, &name).map(Some),
        None => Ok(None),
    }
}

fn is_type_of(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_type_of(inner),
        Expr::Function(Function { name, .. }) => {
            let name = name.0.last().and_then(|part| part.as_ident());
            name.is_some_and(|name| name.value.eq_ignore_ascii_case("pg_typeof"))
        }
        _ => false,
    }
}

/// Kind and name of a literal of one of these types; numbers are OIDs already.
fn reg_literal(expr: &Expr) -> Option<(String, String)> {
    let (data_type, value) = match expr {
        Expr::Nested(inner) => return reg_literal(inner),
        Expr::Cast { expr, data_type, .. } => match expr.as_ref() {
            Expr::Value(value) => (data_type, &value.value),
            _ => return None,
        },
        Expr::TypedString(TypedString { data_type, value, .. }) => (data_type, &value.value),
        _ => return None,
    };
    let kind = type_name(data_type);
    let is_known =
        ["regclass", "regtype", "regnamespace", "regrole", "regproc"].contains(&kind.as_str());
    match value {
        Value::SingleQuotedString(name) if is_known => Some((kind, name.clone())),
        _ => None,
    }
}

/// The look-up of the OID.
fn oid(kind: &str, name: &str) -> Result<Expr> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return made(name);
    }
    match kind {
        "regclass" => match well_known(name) {
            Some(oid) => made(&oid.to_string()),
            // Clients compare with catalogs of PostgreSQL's that are not here.
            None if is_catalogs(name) => made(&format!("to_regclass({})", quoted(name))),
            None => made(&format!("regclassin({})", quoted(&checked(name)?))),
        },
        "regtype" => match type_named(name) {
            Some(oid) => made(&oid.to_string()),
            None => Err(no_type(name)),
        },
        _ => row_of(kind, name, false),
    }
}

/// The look-up of the name as PostgreSQL shows it.
fn shown(kind: &str, name: &str) -> Result<Expr> {
    match kind {
        "regclass" => {
            let bare = name.strip_prefix("pg_catalog.").unwrap_or(name);
            match well_known(name) {
                Some(_) => made(&quoted(bare)),
                None if is_catalogs(name) => made(&quoted(bare)),
                None => made(&format!("regclassout({})", oid(kind, name)?)),
            }
        }
        "regtype" => match type_named(name) {
            Some(oid) => made(&quoted(&type_shown(oid))),
            None => Err(no_type(name)),
        },
        _ => row_of(kind, name, true),
    }
}

fn row_of(kind: &str, name: &str, is_shown: bool) -> Result<Expr> {
    let (table, key) = match kind {
        "regnamespace" => ("pg_namespace", "nspname"),
        "regrole" => ("pg_roles", "rolname"),
        _ => ("pg_proc", "proname"),
    };
    let wanted = name_parts(&checked(name)?).pop().unwrap_or_default();
    let column = if is_shown { key } else { "oid" };
    // Of functions of one name, PostgreSQL takes none.
    made(&format!(
        "name_must_exist((SELECT max(rl_.{column}) FROM pg_catalog.{table} AS rl_ WHERE rl_.{key} = {}), '{kind}', {})",
        quoted(&wanted),
        quoted(name),
    ))
}

/// Whether a name is that of a table of PostgreSQL's catalog.
fn is_catalogs(name: &str) -> bool {
    name.strip_prefix("pg_catalog.").unwrap_or(name).starts_with("pg_")
}

fn checked(name: &str) -> Result<String> {
    match name.trim().is_empty() {
        true => Err(Error::invalid("invalid name syntax")
            .with_sqlstate("42602")
            .about(Subject::Literal(name.to_owned()))),
        false => Ok(name.to_owned()),
    }
}

fn no_type(name: &str) -> Error {
    must_exist("regtype", name)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn made(text: &str) -> Result<Expr> {
    expression(text).ok_or_else(|| Error::internal(format!("cannot write {text}")))
}
