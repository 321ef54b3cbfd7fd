//! Long chains of operators, made shallow.
//!
//! `a OR b OR c OR …` is parsed as deep as it is long, and planning would look at each part as often
//! as there are parts behind it. Chains of `AND` and of `OR` become balanced trees, which mean the same;
//! chains of `+` and `-`, which must be added up in their order, become one call of [`SUM`]. What is
//! still deep then is refused.
//!
//! In: a statement as it was parsed, on a stack for [`extent`](super::extent)'s bounds. Out: the same, at
//! most [`DEPTH_MAX`] expressions deep, up to the sum of a few chains' depths. **Invariant:** operands
//! stay in their order, each exactly once.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Value, VisitMut, VisitorMut,
};
use stoa_error::Result;

use super::extent::too_complex;

/// The function that adds up what a chain of `+` and `-` has; its first operand is a text of these signs.
pub(crate) const SUM: &str = "stoa_sum_of_terms";

/// Expressions within expressions. Planning takes time with a high power of this.
const DEPTH_MAX: usize = 400;

/// Shorter chains of AND and OR stay as they are.
const LINKS_MIN: usize = 50;

/// Shorter sums stay as they are. To find the type of each part of a sum takes a look at all that is
/// before it.
const SUM_LINKS_MIN: usize = 16;

/// Makes the chains of a statement shallow.
///
/// # Errors
/// 54001 where it is too deep all the same.
pub(super) fn flatten(statement: &mut EngineStatement) -> Result<()> {
    let mut flattening = Flattening { depth: 0 };
    let walked = match statement {
        EngineStatement::Statement(inner) => inner.visit(&mut flattening),
        EngineStatement::Explain(explain) => {
            return flatten(&mut explain.statement);
        }
        _ => ControlFlow::Continue(()),
    };
    match walked {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(too_complex(format!(
            "more than {DEPTH_MAX} expressions within each other, after chains of AND, OR, + and -"
        ))),
    }
}

struct Flattening {
    depth: usize,
}

impl VisitorMut for Flattening {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return ControlFlow::Break(());
        }
        match expr {
            Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => balance(expr),
            Expr::BinaryOp { op: BinaryOperator::Plus | BinaryOperator::Minus, .. } => add_up(expr),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// How many operators that `belongs` accepts follow each other on the left side.
fn links(expr: &Expr, belongs: impl Fn(&BinaryOperator) -> bool) -> usize {
    let (mut at, mut links) = (expr, 0);
    while let Expr::BinaryOp { left, op, .. } = at
        && belongs(op)
    {
        links += 1;
        at = left.as_ref();
    }
    links
}

/// Takes a chain apart: its first operand, and what is done with each further one.
fn parts(
    expr: &mut Expr,
    belongs: impl Fn(&BinaryOperator) -> bool,
) -> (Expr, Vec<(BinaryOperator, Expr)>) {
    let mut at = take(expr);
    let mut rest = Vec::new();
    loop {
        match at {
            Expr::BinaryOp { left, op, right } if belongs(&op) => {
                rest.push((op, *right));
                at = *left;
            }
            first => {
                rest.reverse();
                return (first, rest);
            }
        }
    }
}

fn has_parameter(chain: &Expr) -> bool {
    let mut at = chain;
    while let Expr::BinaryOp { left, right, .. } = at {
        if is_parameter(right.as_ref()) {
            return true;
        }
        at = left.as_ref();
    }
    is_parameter(at)
}

fn is_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Placeholder(_)),
        _ => false,
    }
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

/// `a OR b OR c OR d` as `(a OR b) OR (c OR d)`.
fn balance(expr: &mut Expr) {
    let Expr::BinaryOp { op, .. } = expr else { return };
    let op = op.clone();
    if links(expr, |other| *other == op) < LINKS_MIN {
        return;
    }
    let (first, rest) = parts(expr, |other| *other == op);
    let mut level = vec![first];
    level.extend(rest.into_iter().map(|(_, operand)| operand));
    while level.len() > 1 {
        let mut above = Vec::with_capacity(level.len().div_ceil(2));
        let mut operands = level.into_iter();
        while let Some(left) = operands.next() {
            above.push(match operands.next() {
                Some(right) => {
                    let (left, right) = (Box::new(left), Box::new(right));
                    Expr::BinaryOp { left, op: op.clone(), right }
                }
                None => left,
            });
        }
        level = above;
    }
    if let Some(balanced) = level.pop() {
        *expr = balanced;
    }
}

/// `a + b - c` as one call. Parameters take their types from what stands beside them, so chains that
/// have any stay.
fn add_up(expr: &mut Expr) {
    let belongs = |op: &BinaryOperator| matches!(op, BinaryOperator::Plus | BinaryOperator::Minus);
    if links(expr, belongs) < SUM_LINKS_MIN || has_parameter(expr) {
        return;
    }
    let (first, rest) = parts(expr, belongs);
    let signs: String =
        rest.iter().map(|(op, _)| if *op == BinaryOperator::Plus { '+' } else { '-' }).collect();
    let signs = Expr::Value(Value::SingleQuotedString(signs).into());
    let operands = std::iter::once(first).chain(rest.into_iter().map(|(_, operand)| operand));
    let arguments = std::iter::once(signs)
        .chain(operands)
        .map(|operand| FunctionArg::Unnamed(FunctionArgExpr::Expr(operand)))
        .collect();
    *expr = Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(SUM)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    });
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    /// Runs on a stack as the threads that plan have it.
    fn flattened(condition: String, check: impl FnOnce(Result<String>, usize) + Send + 'static) {
        let work = move || {
            let sql = format!("SELECT {condition}");
            let mut parsed = Parser::parse_sql(&PostgreSqlDialect {}, &sql).unwrap();
            let statement = Box::new(parsed.swap_remove(0));
            let mut statement = EngineStatement::Statement(statement);
            let result = flatten(&mut statement);
            let depth = depth_of(&mut statement);
            check(result.map(|()| statement.to_string()), depth);
        };
        let thread = stoa_env::task::spawn_deep_thread("flatten", work).unwrap();
        thread.join().unwrap();
    }

    fn depth_of(statement: &mut EngineStatement) -> usize {
        struct Depth(usize, usize);
        impl VisitorMut for Depth {
            type Break = ();
            fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
                self.0 += 1;
                self.1 = self.1.max(self.0);
                ControlFlow::Continue(())
            }
            fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
                self.0 -= 1;
                ControlFlow::Continue(())
            }
        }
        let EngineStatement::Statement(statement) = statement else { return 0 };
        let mut depth = Depth(0, 0);
        let _ = statement.visit(&mut depth);
        depth.1
    }

    fn terms(count: usize, between: &str) -> String {
        (0..count).map(|n| format!("c{n} = {n}")).collect::<Vec<_>>().join(between)
    }

    #[test]
    fn and_and_or_keep_their_order_and_lose_their_depth() {
        for between in [" OR ", " AND "] {
            let text = terms(5_000, between);
            let wanted = format!("SELECT {text}");
            flattened(text, move |result, depth| {
                assert_eq!(result.unwrap(), wanted);
                assert!(depth < 20, "{depth}");
            });
        }
        let mixed = (0..500).map(|_| terms(3, " AND ")).collect::<Vec<_>>().join(" OR ");
        let wanted = format!("SELECT {mixed}");
        flattened(mixed, move |result, depth| {
            assert_eq!(result.unwrap(), wanted);
            assert!(depth < 20, "{depth}");
        });
    }

    #[test]
    fn sums_become_one_call() {
        let text = format!("{}{}", vec!["a"; 3_000].join(" + "), " - b".repeat(2_000));
        let signs = format!("{}{}", "+".repeat(2_999), "-".repeat(2_000));
        flattened(text, move |result, depth| {
            let result = result.unwrap();
            assert!(result.starts_with(&format!("SELECT {SUM}('{signs}', a, a, ")));
            assert!(result.ends_with(", b, b)"));
            assert!(depth < 10, "{depth}");
        });
    }

    #[test]
    fn short_chains_stay_and_deep_ones_are_refused() {
        flattened("a OR b AND c + 1 - 2 = 3".to_owned(), |result, _| {
            assert_eq!(result.unwrap(), "SELECT a OR b AND c + 1 - 2 = 3");
        });
        let sum = format!("$1 + {}", vec!["a"; 30].join(" + "));
        let wanted = format!("SELECT {sum}");
        flattened(sum, move |result, _| assert_eq!(result.unwrap(), wanted));
        for operator in [" | a", "::int", " IS NULL", " * 2", " || 'x'"] {
            flattened(format!("a{}", operator.repeat(DEPTH_MAX + 10)), |result, _| {
                assert_eq!(result.unwrap_err().sqlstate(), "54001");
            });
        }
        let inner = vec!["1"; 2_000].join(" * ");
        flattened(vec![inner; 60].join(" + "), |result, _| {
            assert_eq!(result.unwrap_err().sqlstate(), "54001");
        });
    }
}
