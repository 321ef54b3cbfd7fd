//! Long chains of `||` between texts, as balanced trees.
//!
//! `a || b || c || …` is as deep as it is long, and each look at the type of a call costs a look at all that
//! is within it, so that planning takes time with a high power of the length. Of texts it makes no
//! difference which two are joined first. In: an expression as it was planned. Out: the same with shallow
//! chains. **Invariant:** operands stay in their order; chains with an operand that is no text, which may be
//! an array that grows, stay.

use std::mem;

use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};

/// Shorter chains stay as they are.
const LINKS_MIN: usize = 16;

/// An expression whose operands are of `schema`, with its long chains balanced.
pub(super) fn balanced(expr: Expr, schema: &DFSchemaRef) -> Result<Expr> {
    let walked = expr.transform_down(|expr| {
        let is_text = |operand: &Expr| operand.get_type(schema).is_ok_and(|of| of.is_string());
        let operands = operands(&expr);
        if operands.len() <= LINKS_MIN || !operands.into_iter().all(is_text) {
            return Ok(Transformed::no(expr));
        }
        Ok(Transformed::yes(tree(taken_apart(expr))))
    })?;
    Ok(walked.data)
}

/// The operands of a chain, the last one first; those of anything else are itself.
fn operands(expr: &Expr) -> Vec<&Expr> {
    let (mut at, mut found) = (expr, Vec::new());
    while let Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) = at {
        found.push(right.as_ref());
        at = left.as_ref();
    }
    found.push(at);
    found
}

/// The operands of a chain, in their order.
fn taken_apart(expr: Expr) -> Vec<Expr> {
    let (mut at, mut found) = (expr, Vec::new());
    loop {
        match at {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
                found.push(*right);
                at = *left;
            }
            first => {
                found.push(first);
                found.reverse();
                return found;
            }
        }
    }
}

fn tree(mut level: Vec<Expr>) -> Expr {
    while level.len() > 1 {
        let mut operands = mem::take(&mut level).into_iter();
        while let Some(left) = operands.next() {
            level.push(match operands.next() {
                Some(right) => {
                    let (left, right) = (Box::new(left), Box::new(right));
                    Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right })
                }
                None => left,
            });
        }
    }
    level.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::common::DFSchema;
    use datafusion::logical_expr::{binary_expr, lit};

    use super::*;

    fn chain(count: usize, operand: impl Fn(usize) -> Expr) -> Expr {
        let rest = (1..count).map(&operand);
        rest.fold(operand(0), |chain, next| binary_expr(chain, Operator::StringConcat, next))
    }

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryExpr(binary) => 1 + depth(&binary.left).max(depth(&binary.right)),
            _ => 0,
        }
    }

    /// What is joined, from left to right.
    fn leaves(expr: &Expr) -> Vec<String> {
        match expr {
            Expr::BinaryExpr(binary) => [leaves(&binary.left), leaves(&binary.right)].concat(),
            leaf => vec![leaf.to_string()],
        }
    }

    #[test]
    fn texts_are_joined_in_their_order_and_numbers_as_they_stand() {
        let schema = Arc::new(DFSchema::empty());
        let texts = chain(300, |n| lit(format!("text {n}")));
        let shallow = balanced(texts.clone(), &schema).unwrap();
        assert_eq!(leaves(&shallow), leaves(&texts));
        assert_eq!((depth(&texts), depth(&shallow)), (299, 9));
        let mixed = chain(300, |n| if n == 7 { lit(7_i64) } else { lit("text") });
        assert_eq!(balanced(mixed.clone(), &schema).unwrap(), mixed);
        let short = chain(LINKS_MIN, |n| lit(format!("text {n}")));
        assert_eq!(balanced(short.clone(), &schema).unwrap(), short);
    }
}
