//! Whether a statement reads the system catalog.
//!
//! In: the syntax tree. Out: yes where it names a table, a function, a type or a variable of the
//! catalog. What literals, comments and names of the user's own say does not count: `jpg_size` and
//! `'pg_class'` are not of the catalog.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, TableFactor, TypedString, Visitor,
};
use datafusion_pg_catalog::pg_catalog::PG_CATALOG_TABLES;

use super::empty::EMPTY;
use crate::system_tables::TABLES;
use crate::{INFORMATION_SCHEMA, PG_CATALOG};
use stoa_sql::walk::Walk;

/// Variables that are written like columns, and like functions.
const VARIABLES: [&str; 4] = ["current_user", "current_schema", "current_catalog", "session_user"];

/// Functions of the catalog that do not begin with `pg_` and are written anew.
const FUNCTIONS: [&str; 4] = ["version", "current_schemas", "to_regclass", "to_regtype"];

/// Types whose values are names of the catalog's rows.
const TYPES: [&str; 5] = ["regclass", "regtype", "regproc", "regnamespace", "regrole"];

/// Texts of which one is in each statement that reads the catalog; most others have none, and need
/// not be parsed to find out.
const MARKS: [&str; 10] = [
    "pg_",
    "information_schema",
    "regclass",
    "regtype",
    "regproc",
    "regnamespace",
    "regrole",
    "current_",
    "session_user",
    "version",
];

/// Whether it is worth to look at the statement.
pub(super) fn may_be_in(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    MARKS.iter().any(|mark| lower.contains(mark))
}

/// Whether a statement, or a part of it, reads the catalog.
pub(super) fn are_in(statement: &impl Walk) -> bool {
    statement.walk(&mut Signs).is_break()
}

/// Whether a statement takes the search path apart, which is how Grafana lists tables; the shared crate
/// knows its text as a whole.
pub(super) fn splits_search_path(statement: &impl Walk) -> bool {
    statement.walk(&mut SplitSearchPath).is_break()
}

struct Signs;

impl Visitor for Signs {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: None, .. } => found(is_catalogs_table(name)),
            TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => {
                found(is_catalogs_function(name))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        found(match expr {
            Expr::Identifier(name) => {
                name.quote_style.is_none() && VARIABLES.contains(&lower(name).as_str())
            }
            Expr::Function(function) => is_catalogs_function(&function.name),
            Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => {
                is_catalogs_type(data_type)
            }
            Expr::BinaryOp { op: BinaryOperator::PGCustomBinaryOperator(parts), .. } => {
                parts.first().is_some_and(|schema| schema.eq_ignore_ascii_case(PG_CATALOG))
            }
            Expr::Collate { collation, .. } => schema_of(collation).as_deref() == Some(PG_CATALOG),
            _ => false,
        })
    }
}

struct SplitSearchPath;

impl Visitor for SplitSearchPath {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let reads_path = |argument: &Expr| match argument {
            Expr::Function(inner) => {
                last(&inner.name) == "current_setting"
                    && first_argument(inner).is_some_and(|name| name.to_string() == "'search_path'")
            }
            _ => false,
        };
        let splits =
            last(&call.name) == "string_to_array" && first_argument(call).is_some_and(reads_path);
        found(splits)
    }
}

fn found(is_found: bool) -> ControlFlow<()> {
    match is_found {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// A table of the catalog: by its schema, or because names without one are looked up there first.
fn is_catalogs_table(name: &ObjectName) -> bool {
    match schema_of(name) {
        Some(schema) => schema == PG_CATALOG || schema == INFORMATION_SCHEMA,
        None => {
            let name = last(name);
            let name = name.as_str();
            PG_CATALOG_TABLES.contains(&name)
                || EMPTY.contains(&name)
                || TABLES.iter().any(|table| table.name == name)
        }
    }
}

fn is_catalogs_function(name: &ObjectName) -> bool {
    match schema_of(name) {
        Some(schema) => schema == PG_CATALOG || schema == INFORMATION_SCHEMA,
        None => {
            let name = last(name);
            let name = name.as_str();
            name.starts_with("pg_") || FUNCTIONS.contains(&name) || VARIABLES.contains(&name)
        }
    }
}

fn is_catalogs_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::Regclass => true,
        DataType::Custom(name, _) => {
            schema_of(name).as_deref() == Some(PG_CATALOG) || TYPES.contains(&last(name).as_str())
        }
        DataType::Array(inner) => match inner {
            ArrayElemTypeDef::SquareBracket(inner, _)
            | ArrayElemTypeDef::AngleBracket(inner)
            | ArrayElemTypeDef::Parenthesis(inner) => is_catalogs_type(inner),
            ArrayElemTypeDef::None => false,
        },
        _ => false,
    }
}

fn first_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// The part before the last, lower case; `None` for a name of one part.
fn schema_of(name: &ObjectName) -> Option<String> {
    name.0.iter().rev().nth(1)?.as_ident().map(lower)
}

fn last(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(lower).unwrap_or_default()
}

fn lower(name: &Ident) -> String {
    name.value.to_ascii_lowercase()
}
