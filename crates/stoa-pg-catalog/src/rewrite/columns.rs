//! Columns of a result that would have the same name, which the engine refuses.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr, VisitorMut};

use super::empty::column_name;

pub(super) struct Columns;

impl VisitorMut for Columns {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        name_body(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn name_body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => name_columns(&mut select.projection),
        SetExpr::SetOperation { left, right, .. } => {
            name_body(left);
            name_body(right);
        }
        _ => {}
    }
}

/// Gives an alias to each expression that occurs again as it is (`NULL, NULL`).
fn name_columns(projection: &mut [SelectItem]) {
    let mut seen = HashSet::new();
    for (index, item) in projection.iter_mut().enumerate() {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        // A plain column is told apart by its table.
        if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            continue;
        }
        if !seen.insert(expr.to_string()) {
            let alias = Ident::with_quote('"', format!("{}_{}", column_name(expr), index + 1));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}
