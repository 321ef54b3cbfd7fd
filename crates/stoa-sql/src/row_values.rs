//! `(a, b) < (c, d)`: rows are compared value by value, the first pair that is not equal decides. The engine
//! compares them as structs, to which NULL is a value like others.
//!
//! In: a parsed statement. Out: the same with comparisons of single values.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, SelectItem, SetExpr, Statement, UnaryOperator, VisitorMut,
};
use stoa_error::{Error, Result};

use crate::calls::{named, positional};
use crate::reread;
use crate::walk::WalkMut;

/// The row of a query that a row is compared with; no table is called so.
const ROW: &str = "\u{2063}row";

/// Writes out the comparisons of rows.
///
/// # Errors
/// Rows of different lengths (42601).
pub(super) fn compare_row_values(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut RowValues) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct RowValues;

impl VisitorMut for RowValues {
    type Break = Box<Error>;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let written = match expr {
            Expr::BinaryOp { left, op, right } => match (&**left, &**right) {
                (Expr::Tuple(left), Expr::Tuple(right)) => compared(left, op, right),
                (left, Expr::Subquery(query)) if row_of(left).is_some() => {
                    row_of(left).map_or(Ok(None), |row| compared_with_row(&row, op, query))
                }
                _ => return ControlFlow::Continue(()),
            },
            Expr::InList { expr, list, negated } => match in_list(expr, list) {
                None => return ControlFlow::Continue(()),
                Some(found) => found.map(|found| match *negated {
                    true => Some(not(found)),
                    false => Some(found),
                }),
            },
            _ => return ControlFlow::Continue(()),
        };
        match written {
            Ok(Some(written)) => *expr = Expr::Nested(Box::new(written)),
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(Box::new(error)),
        }
        ControlFlow::Continue(())
    }
}

/// `(a, b) IN ((c, d), …)`; `None` if it is not about rows.
fn in_list(expr: &Expr, list: &[Expr]) -> Option<Result<Expr>> {
    let Expr::Tuple(row) = expr else { return None };
    let mut found: Option<Expr> = None;
    for item in list {
        let Expr::Tuple(other) = item else { return None };
        let equal = match compared(row, &BinaryOperator::Eq, other) {
            Ok(Some(equal)) => equal,
            Ok(None) => return None,
            Err(error) => return Some(Err(error)),
        };
        found = Some(match found {
            Some(found) => both(found, BinaryOperator::Or, equal),
            None => equal,
        });
    }
    found.map(Ok)
}

/// The values of `(a, b)` or `row(a, b)`.
fn row_of(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(row) => Some(row.clone()),
        Expr::Function(call) if named(&call.name).is_some_and(|name| name == "row") => {
            positional(&call.args)
        }
        _ => None,
    }
}

/// `(a, b) = (SELECT x, y …)` as `(SELECT a = c0 AND b = c1 FROM (SELECT x, y …) (c0, c1))`: as in PostgreSQL, NULL where the
/// query has no row, and an error where it has several.
fn compared_with_row(row: &[Expr], op: &BinaryOperator, query: &Query) -> Result<Option<Expr>> {
    if let SetExpr::Select(select) = query.body.as_ref() {
        let of_one = |item: &SelectItem| {
            matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
        };
        let width = select.projection.len();
        if select.projection.iter().all(of_one) && width != row.len() {
            let many = if width > row.len() { "many" } else { "few" };
            return Err(Error::invalid(format!("subquery has too {many} columns"))
                .with_detail(format!("it has {width}, the row beside it {}", row.len()))
                .with_sqlstate("42601"));
        }
    }
    let name = |place: usize| Ident::with_quote('"', format!("{ROW} {place}"));
    let columns: Vec<Expr> = (0..row.len()).map(|place| Expr::Identifier(name(place))).collect();
    let Some(written) = compared(row, op, &columns)? else { return Ok(None) };
    let names: Vec<String> = (0..row.len()).map(|place| name(place).to_string()).collect();
    let text = format!("SELECT {written} FROM ({query}) AS \"{ROW}\" ({})", names.join(", "));
    let query = reread::query(&text)
        .map_err(|_| Error::unsupported("a comparison of this row and query is not supported"))?;
    Ok(Some(Expr::Subquery(Box::new(query))))
}

/// The comparison value by value; `None` where the operator does not compare.
fn compared(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Result<Option<Expr>> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    // What decides where values differ: the last pair may also be equal.
    let strict = match op {
        Eq | NotEq => op.clone(),
        Lt | LtEq => Lt,
        Gt | GtEq => Gt,
        _ => return Ok(None),
    };
    if left.len() != right.len() {
        let message = format!("rows of {} and of {} values are compared", left.len(), right.len());
        return Err(Error::invalid(message).with_sqlstate("42601"));
    }
    let mut pairs = left.iter().zip(right).rev();
    let Some((one, other)) = pairs.next() else { return Ok(None) };
    let mut whole = pair(one, op.clone(), other);
    for (one, other) in pairs {
        let decided = pair(one, strict.clone(), other);
        whole = match op {
            Eq => both(decided, And, whole),
            NotEq => both(decided, Or, whole),
            _ => both(decided, Or, both(pair(one, Eq, other), And, whole)),
        };
    }
    Ok(Some(whole))
}

fn pair(one: &Expr, op: BinaryOperator, other: &Expr) -> Expr {
    both(one.clone(), op, other.clone())
}

fn both(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    Expr::BinaryOp { left: nested(left), op, right: nested(right) }
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) }
}
