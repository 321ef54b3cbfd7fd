//! Long chains of operators, made shallow.
//!
//! `a OR b OR c OR …` is parsed as deep as it is long, and planning would look at each part as often
//! as there are parts behind it. Chains of `AND` and of `OR` become balanced trees, which mean the same;
//! chains of `+` and `-`, and of `*`, `/` and `%`, which must be computed in their order, become one call of
//! [`SUM`]. What is still deep then is refused.
//!
//! So is what the optimiser would write out too often: it has `a BETWEEN b AND c` as two comparisons, and
//! `COALESCE` as a CASE that tests and gives each value. One within the other thirty times would be 2³⁰.
//!
//! In: a statement as it was parsed, on a stack for [`extent`](crate::extent)'s bounds. Out: the same, at
//! most [`DEPTH_MAX`] expressions deep, up to the sum of a few chains' depths. **Invariant:** operands
//! stay in their order, each exactly once.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Value, VisitorMut,
};
use stoa_error::Result;

use crate::extent::too_complex;
use crate::nested_with;
use crate::walk::WalkMut;

/// The function that computes a chain of `+` and `-`, or of `*`, `/` and `%`; its first operand is a text of
/// these signs.
pub const SUM: &str = "stoa_sum_of_terms";

/// Expressions within expressions. Planning takes time with a high power of this.
const DEPTH_MAX: usize = 400;

/// Shorter chains of AND and OR stay as they are.
const LINKS_MIN: usize = 50;

/// Further expressions that the optimiser may make of those of a statement by writing them out again.
const COPIES_MAX: u64 = 250_000;

/// Shorter sums and products stay as they are. To find the type of each part of a sum takes a look at all that is
/// before it.
const SUM_LINKS_MIN: usize = 16;

/// Makes the chains of a statement shallow.
///
/// # Errors
/// 54001 where it is too deep all the same.
pub(super) fn flatten(statement: &mut EngineStatement) -> Result<()> {
    let mut flattening =
        Flattening { depth: 0, times: Vec::new(), copies: 0, repeated: HashMap::new() };
    let walked = match statement {
        EngineStatement::Statement(inner) => {
            nested_with::check(inner)?;
            inner.walk_mut(&mut flattening)
        }
        EngineStatement::Explain(explain) => {
            return flatten(&mut explain.statement);
        }
        _ => ControlFlow::Continue(()),
    };
    match walked {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(TooMuch::Depth) => Err(too_complex(format!(
            "more than {DEPTH_MAX} expressions within each other, after chains of AND, OR, + and *"
        ))),
        ControlFlow::Break(TooMuch::Copies) => Err(too_complex(
            "COALESCE, BETWEEN, IN or CASE within each other: their operands are computed several times"
                .to_owned(),
        )),
    }
}

/// Why a statement is refused.
enum TooMuch {
    Depth,
    Copies,
}

struct Flattening {
    depth: usize,
    /// How often each of the expressions around the next one is written out.
    times: Vec<u64>,
    /// Expressions that are written out again, so far.
    copies: u64,
    /// How often operands that were not visited yet are written out, by where they are.
    repeated: HashMap<usize, u64>,
}

impl Flattening {
    /// Counts how often an expression is written out.
    fn count(&mut self, expr: &Expr) -> ControlFlow<TooMuch> {
        let own = self.repeated.remove(&place(expr)).unwrap_or(1);
        let times = self.times.last().copied().unwrap_or(1).saturating_mul(own);
        self.times.push(times);
        self.copies = self.copies.saturating_add(times - 1);
        if self.copies > COPIES_MAX {
            return ControlFlow::Break(TooMuch::Copies);
        }
        match expr {
            Expr::Between { expr, .. } => self.repeat(expr, 2),
            // Of three values or fewer comparisons are made, and of those that are no constants.
            Expr::InList { expr, list, .. } => {
                let others = list.iter().filter(|item| !is_constant(item)).count() + 1;
                let times = if list.len() <= 3 { others.max(3) } else { others };
                self.repeat(expr, times as u64);
            }
            Expr::Case { operand, conditions, .. } => {
                // Floating point is compared with each value.
                if let Some(operand) = operand {
                    self.repeat(operand, conditions.len() as u64);
                }
                if conditions.len() < 3 {
                    conditions.iter().for_each(|when| self.repeat(&when.condition, 4));
                }
            }
            Expr::Function(function) if is_coalesce(&function.name) => {
                let FunctionArguments::List(list) = &function.args else {
                    return ControlFlow::Continue(());
                };
                // The last one is only given.
                for arg in list.args.iter().rev().skip(1) {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg {
                        self.repeat(arg, 2);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn repeat(&mut self, operand: &Expr, times: u64) {
        self.repeated.insert(place(operand), times);
    }
}

/// Where an expression is. It stays there until it is visited.
fn place(expr: &Expr) -> usize {
    std::ptr::from_ref(expr).addr()
}

/// Whether an item of a list is a literal, with a sign or a cast.
fn is_constant(item: &Expr) -> bool {
    match item {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::UnaryOp { expr, .. } | Expr::Cast { expr, .. } | Expr::Nested(expr) => {
            is_constant(expr)
        }
        _ => false,
    }
}

/// Whether a function becomes a CASE that has its operands twice.
fn is_coalesce(name: &ObjectName) -> bool {
    const NAMES: [&str; 4] = ["coalesce", "ifnull", "nvl", "nvl2"];
    let last = name.0.last().and_then(|part| part.as_ident());
    last.is_some_and(|last| NAMES.iter().any(|known| last.value.eq_ignore_ascii_case(known)))
}

impl VisitorMut for Flattening {
    type Break = TooMuch;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<TooMuch> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return ControlFlow::Break(TooMuch::Depth);
        }
        let op = match &*expr {
            Expr::BinaryOp { op, .. } => Some(op.clone()),
            _ => None,
        };
        match op {
            Some(BinaryOperator::And | BinaryOperator::Or) => balance(expr),
            Some(op) if adds(&op) => in_one_call(expr, adds),
            Some(op) if multiplies(&op) => in_one_call(expr, multiplies),
            _ => {}
        }
        self.count(expr)
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<TooMuch> {
        self.depth -= 1;
        self.times.pop();
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

fn adds(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Plus | BinaryOperator::Minus)
}

fn multiplies(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo)
}

/// `a + b - c` as one call. Parameters take their types from what stands beside them, so chains that
/// have any stay.
fn in_one_call(expr: &mut Expr, belongs: fn(&BinaryOperator) -> bool) {
    if links(expr, belongs) < SUM_LINKS_MIN || has_parameter(expr) {
        return;
    }
    let (first, rest) = parts(expr, belongs);
    let signs: String = rest.iter().map(|(op, _)| op.to_string()).collect();
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
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    /// Runs on a stack as the threads that plan have it.
    fn flattened(condition: String, check: impl FnOnce(Result<String>, usize) + Send + 'static) {
        let work = move || {
            let sql = format!("SELECT {condition}");
            let parser = Parser::new(&PostgreSqlDialect {}).with_recursion_limit(4_000);
            let mut parsed = parser.try_with_sql(&sql).unwrap().parse_statements().unwrap();
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
        let _ = statement.walk_mut(&mut depth);
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
    fn products_become_one_call() {
        let text = format!("{}{}", vec!["a"; 1_000].join(" * "), " / b".repeat(1_000) + " % c");
        let signs = format!("{}{}%", "*".repeat(999), "/".repeat(1_000));
        flattened(format!("{text} + 1"), move |result, depth| {
            let result = result.unwrap();
            assert!(result.starts_with(&format!("SELECT {SUM}('{signs}', a, a, ")), "{result}");
            assert!(result.ends_with(", b, c) + 1"));
            assert!(depth < 10, "{depth}");
        });
    }

    /// Why a statement with this expression is not taken; by the parser that bounds what it tries.
    fn refusal(expression: String) -> Option<&'static str> {
        let work = move || {
            let parsed = crate::parse(&format!("SELECT {expression}"), |_| Ok(None));
            parsed.err().map(|error| error.sqlstate())
        };
        stoa_env::task::spawn_deep_thread("refusal", work).unwrap().join().unwrap()
    }

    #[test]
    fn what_would_be_written_out_too_often_is_refused() {
        let within = |before: &str, after: &str, times: usize| {
            format!("{}a{}", before.repeat(times), after.repeat(times))
        };
        let coalesced = [("coalesce(", ", 1)"), ("NVL(", ", 1)"), ("abs(IFNULL(", ", 1))")];
        let compared = [("(", ") BETWEEN b AND c"), ("(", ") IN (b, c)")];
        let cases = [("CASE WHEN ", " THEN b ELSE c END")];
        let operands = [("CASE (", ") WHEN 1 THEN b WHEN 2 THEN c ELSE d END")];
        let listed = [("(", ") IN (1, 2, 3, -4, b, 5::int, f(c), d)")];
        let all = coalesced.into_iter().chain(compared).chain(cases).chain(operands).chain(listed);
        for (before, after) in all {
            assert_eq!(refusal(within(before, after, 4)), None, "{before}");
            assert_eq!(refusal(within(before, after, 30)), Some("54001"), "{before}");
        }
        // The last operand of COALESCE and the results of CASE are there once.
        for (before, after) in [("coalesce(b, ", ")"), ("CASE WHEN b THEN c ELSE ", " END")] {
            assert_eq!(refusal(within(before, after, 10)), None, "{before}");
        }
        assert_eq!(refusal(vec!["coalesce(a, b) BETWEEN 1 AND 2"; 5_000].join(" OR ")), None);
    }

    #[test]
    fn short_chains_stay_and_deep_ones_are_refused() {
        flattened("a OR b AND c + 1 - 2 = 3".to_owned(), |result, _| {
            assert_eq!(result.unwrap(), "SELECT a OR b AND c + 1 - 2 = 3");
        });
        let sum = format!("$1 + {}", vec!["a"; 30].join(" + "));
        let wanted = format!("SELECT {sum}");
        flattened(sum, move |result, _| assert_eq!(result.unwrap(), wanted));
        for operator in [" | a", "::int", " IS NULL", " & 2", " || 'x'"] {
            flattened(format!("a{}", operator.repeat(DEPTH_MAX + 10)), |result, _| {
                assert_eq!(result.unwrap_err().sqlstate(), "54001");
            });
        }
        let inner = vec!["1"; 2_000].join(" | ");
        flattened(vec![format!("({inner})"); 60].join(" + "), |result, _| {
            assert_eq!(result.unwrap_err().sqlstate(), "54001");
        });
    }
}
