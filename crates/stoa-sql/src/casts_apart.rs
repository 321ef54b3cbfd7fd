//! `x` and `x::int` in one GROUP BY, or `sum(x)` and `sum(x::int)`: the engine calls a cast as what is cast, and
//! refuses two things of one name.
//!
//! In: a statement that the engine refused for that. Out: the same, where each cast is the only branch of a CASE, of
//! which the engine tells one from another; it takes the CASE away when it has planned them:
//!
//! ```text
//! x::int  ─►  CASE WHEN 1 = 1 THEN x::int END        equal casts have equal numbers
//! ```

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Value, VisitorMut, helpers::attached_token::AttachedToken,
};

use crate::adapt::parsed;
use crate::walk::WalkMut;

/// Tells the casts of a statement apart.
pub fn tell_casts_apart(statement: &mut EngineStatement) {
    if let Some(statement) = parsed(statement) {
        let _ = statement.walk_mut(&mut CastsApart::default());
    }
}

/// The casts so far, by what is cast and to what.
#[derive(Default)]
struct CastsApart(HashMap<(String, String), usize>);

impl VisitorMut for CastsApart {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Cast { expr: inner, data_type, .. } = &*expr else {
            return ControlFlow::Continue(());
        };
        // What has no name of its own is no column.
        if matches!(**inner, Expr::Value(_)) {
            return ControlFlow::Continue(());
        }
        let next = self.0.len() + 1;
        let number = *self.0.entry((inner.to_string(), data_type.to_string())).or_insert(next);
        let number = || Box::new(Expr::value(Value::Number(number.to_string(), false)));
        let condition = Expr::BinaryOp { left: number(), op: BinaryOperator::Eq, right: number() };
        let cast = std::mem::replace(expr, Expr::value(Value::Null));
        *expr = Expr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand: None,
            conditions: vec![CaseWhen { condition, result: cast }],
            else_result: None,
        };
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::parser::DFParserBuilder;

    use super::*;

    #[test]
    fn equal_casts_stay_equal() {
        let sql = "SELECT a, a::int, CAST(a AS int) + b::int, 1::int FROM t GROUP BY a::INT";
        let mut parser = DFParserBuilder::new(sql).build().unwrap();
        let mut statement = parser.parse_statement().unwrap();
        tell_casts_apart(&mut statement);
        assert_eq!(
            statement.to_string(),
            "SELECT a, CASE WHEN 1 = 1 THEN a::INT END, \
             CASE WHEN 1 = 1 THEN CAST(a AS INT) END + CASE WHEN 2 = 2 THEN b::INT END, 1::INT FROM t \
             GROUP BY CASE WHEN 1 = 1 THEN a::INT END"
        );
    }
}
