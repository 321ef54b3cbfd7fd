//! Casts and functions that turn names into OIDs and back.
//!
//! `'pg_class'::regclass` becomes the OID; `oid::regtype::text` and `oid::regclass::text` become
//! look-ups of the name.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, ObjectNamePart, Query, SelectItem, SetExpr, TableFactor, Value, VisitorMut,
};

use super::empty::column_name;
use super::expression;
use crate::PG_CATALOG;
use crate::relations::well_known_oid;
use crate::system_tables::TABLES;

pub(super) struct Names;

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = query.body.as_mut() {
            for item in &mut select.projection {
                rewrite_item(item);
            }
        }
        ControlFlow::Continue(())
    }

    /// Tables of the catalog are found without its schema, too.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor
            && let [ObjectNamePart::Identifier(table)] = name.0.as_slice()
            && TABLES.iter().any(|own| own.name.eq_ignore_ascii_case(&table.value))
        {
            name.0.insert(0, ObjectNamePart::Identifier(Ident::new(PG_CATALOG)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(new) = rewritten(expr) {
            *expr = new;
        }
        ControlFlow::Continue(())
    }
}

/// A column that shows an OID as `regclass` shows the name.
fn rewrite_item(item: &mut SelectItem) {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return;
    };
    let Some(name) = reg_name(expr).or_else(|| well_known_name(expr)) else { return };
    let alias = Ident::with_quote('"', column_name(expr));
    match item {
        SelectItem::UnnamedExpr(_) => *item = SelectItem::ExprWithAlias { expr: name, alias },
        SelectItem::ExprWithAlias { expr, .. } => *expr = name,
        _ => {}
    }
}

fn well_known_name(expr: &Expr) -> Option<Expr> {
    let (operand, kind) = reg_cast(expr)?;
    let name = literal(operand).filter(|_| kind == "regclass")?;
    well_known(name)?;
    let bare = name.strip_prefix("pg_catalog.").unwrap_or(name);
    expression(&format!("'{bare}'"))
}

/// Columns with the names of functions, of types and of operator classes.
const NAMED_FUNCTIONS: [&str; 8] = [
    "typinput",
    "typoutput",
    "typreceive",
    "typsend",
    "typmodin",
    "typmodout",
    "typanalyze",
    "amproc",
];

fn rewritten(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Cast { expr: inner, data_type, .. } if is_text(data_type) => reg_name(inner),
        // Lists of types of functions are texts here.
        Expr::Cast { data_type, .. } if type_name(data_type) == "regtype[]" => {
            expression("CAST(NULL AS TEXT[])")
        }
        // No row tells in which table it is.
        Expr::CompoundIdentifier(parts) if parts.last()?.value.eq_ignore_ascii_case("tableoid") => {
            expression("CAST(NULL AS INT)")
        }
        // It has the name of PostgreSQL 17 here.
        Expr::CompoundIdentifier(parts)
            if parts.last()?.value.eq_ignore_ascii_case("colliculocale") =>
        {
            expression(&format!("{}.colllocale", parts.first()?))
        }
        Expr::Cast { .. } => {
            let (operand, kind) = reg_cast(expr)?;
            // Functions of operator classes are kept by name, too.
            if kind == "regprocedure" && is_simple(operand) && literal(operand).is_none() {
                return expression(&format!("CAST({operand} AS TEXT)"));
            }
            // Functions that read and write types are kept by name.
            if kind == "regproc" {
                let name = literal(operand)?;
                let bare = name.strip_prefix("pg_catalog.").unwrap_or(name);
                return expression(&format!("'{}'", bare.replace('\'', "''")));
            }
            if kind != "regclass" {
                return None;
            }
            match literal(operand) {
                Some(name) => expression(&well_known(name)?.to_string()),
                None if makes_name(operand) => expression(&format!("to_regclass({operand})")),
                None => None,
            }
        }
        Expr::Function(function) => rewritten_function(function),
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => by_function_name(left, right)
            .or_else(|| by_function_name(right, left))
            .or_else(|| no_function(left, right, "=")),
        Expr::BinaryOp { left, op: BinaryOperator::NotEq, right } => no_function(left, right, "<>"),
        _ => None,
    }
}

/// Whether an expression is a text that is made: a name, not an OID.
fn makes_name(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => {
            function.name.0.last().and_then(|part| part.as_ident()).is_some_and(|name| {
                ["format", "quote_ident", "concat"]
                    .contains(&name.value.to_ascii_lowercase().as_str())
            })
        }
        Expr::BinaryOp { op: BinaryOperator::StringConcat, .. } => true,
        Expr::Cast { data_type, .. } => is_text(data_type),
        Expr::Nested(inner) => makes_name(inner),
        _ => false,
    }
}

/// `typreceive != 0`: where a type has no such function, its name is `-`.
fn no_function(function: &Expr, number: &Expr, op: &str) -> Option<Expr> {
    let name = match function {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(parts) => parts.last()?,
        _ => return None,
    };
    let is_zero = matches!(number, Expr::Value(value) if matches!(&value.value, Value::Number(digits, _) if digits == "0"));
    let is_function = NAMED_FUNCTIONS.contains(&name.value.to_ascii_lowercase().as_str());
    (is_function && is_zero).then(|| expression(&format!("{function} {op} '-'")))?
}

/// `pg_proc.oid = pg_type.typreceive`: functions of types are kept by name, so are they joined.
fn by_function_name(oid: &Expr, function: &Expr) -> Option<Expr> {
    let (Expr::CompoundIdentifier(oid), Expr::CompoundIdentifier(function)) = (oid, function)
    else {
        return None;
    };
    let is_function = NAMED_FUNCTIONS.contains(&function.last()?.value.as_str());
    let (table, column) = (oid.first()?, oid.last()?);
    if !is_function || column.value != "oid" || oid.len() != 2 {
        return None;
    }
    expression(&format!("{table}.proname = {}", Expr::CompoundIdentifier(function.clone())))
}

fn rewritten_function(function: &Function) -> Option<Expr> {
    let name = function.name.0.last()?.as_ident()?.value.to_ascii_lowercase();
    let args = arguments(function)?;
    match (name.as_str(), args.as_slice()) {
        // Columns of tables that are always empty here have no better type than text.
        ("bool_and" | "bool_or", [column]) if is_simple(column) => {
            expression(&format!("{name}(CAST({column} AS boolean))"))
        }
        // Of all but tables and columns, rights are NULL, and texts in the tables of the shared crate.
        ("array_to_string", [rights, ..])
            if column_name(rights).ends_with("acl")
                && !["relacl", "attacl"].contains(&column_name(rights).as_str()) =>
        {
            expression("CAST(NULL AS TEXT)")
        }
        _ => None,
    }
}

/// Only columns and literals can be looked up by equality.
fn is_simple(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_))
}

fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    list.args.iter().map(argument).collect()
}

fn argument(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// The look-up of the name that `oid::regtype` and its like show; `None` for other expressions
/// and for operands that are names themselves.
fn reg_name(expr: &Expr) -> Option<Expr> {
    let (operand, kind) = reg_cast(expr)?;
    if literal(operand).is_some() || is_parameter(operand) {
        return None;
    }
    // It gives a name here.
    if kind == "regtype" && is_call_of(operand, "pg_typeof") {
        return Some(operand.clone());
    }
    match kind.as_str() {
        "regtype" => expression(&format!("format_type({operand}, NULL)")),
        "regclass" if is_simple(operand) => lookup("pg_class", "relname", operand),
        "regnamespace" if is_simple(operand) => lookup("pg_namespace", "nspname", operand),
        "regproc" if is_simple(operand) => lookup("pg_proc", "proname", operand),
        "regrole" => expression(&format!("pg_get_userbyid({operand})")),
        _ => None,
    }
}

fn is_call_of(expr: &Expr, name: &str) -> bool {
    let Expr::Function(function) = expr else { return false };
    let called = function.name.0.last().and_then(|part| part.as_ident());
    called.is_some_and(|called| called.value.eq_ignore_ascii_case(name))
}

fn lookup(table: &str, name: &str, oid: &Expr) -> Option<Expr> {
    expression(&format!(
        "((SELECT max(rn_.{name}) FROM pg_catalog.{table} AS rn_ WHERE rn_.oid = {oid}))"
    ))
}

/// Operand and lower-case name of a cast to one of the `reg…` types.
fn reg_cast(expr: &Expr) -> Option<(&Expr, String)> {
    let Expr::Cast { expr: operand, data_type, .. } = expr else { return None };
    let name = type_name(data_type);
    if !name.starts_with("reg") {
        return None;
    }
    Some((&**operand, name))
}

pub(super) fn type_name(data_type: &DataType) -> String {
    let name = data_type.to_string().to_ascii_lowercase();
    name.strip_prefix("pg_catalog.").unwrap_or(&name).to_owned()
}

pub(super) fn is_text(data_type: &DataType) -> bool {
    ["text", "varchar", "character varying", "name"].contains(&type_name(data_type).as_str())
}

fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    }
}

fn is_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Placeholder(_)))
}

/// The OID of a system table by its name, which may be qualified.
pub(super) fn well_known(name: &str) -> Option<i32> {
    well_known_oid(name.strip_prefix("pg_catalog.").unwrap_or(name))
}
