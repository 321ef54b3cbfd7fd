//! `x IN (…)` beside another list of the same `x`, while a plan is simplified.
//!
//! The engine takes the items for constants that are all different: of `x IN (a, b) AND x IN (c, d)` it keeps the
//! items that both lists have, which for columns and parameters is none. It also takes NULL for a value like others,
//! so that `x IN (1, 2) AND x NOT IN (3, NULL)` would be true, and where no item is left it says false, although the
//! lists are NULL where `x` is. Between the conditions of a WHERE that is as good; everywhere else it is seen.
//!
//! ```text
//! short list     ─► x = a OR x = b                                  (as the engine does itself, later)
//! long list      ─► apart(x) IN (…) ─► the engine's rule ─► x IN (…)   each `apart` is another one
//! x = 1 OR x = 2 ─► apart(x) = 1 OR apart(x) = 2                    beside another list: the rule makes lists of these
//! x = 0.0 OR x = 1.0 OR … ─► the engine's rule ─► x IN (0.0, 1.0, …, -0.0)   lists are looked up by bits
//! ```
//! In: the engine's rule. Out: the same rule, to which lists are not alike, but for lists of plain constants that are
//! conditions of a WHERE.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{
    split_binary, split_binary_owned, split_conjunction, split_conjunction_owned,
};
use datafusion::logical_expr::{ColumnarValue, Expr, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::call::{Operation, call, column};
use super::relational::add_other_zeros;

/// The rule of the engine that brings lists together.
pub(super) const SIMPLIFYING_RULE: &str = "simplify_expressions";

/// Items of a list that becomes comparisons.
const SHORT_ITEMS: usize = 3;

/// The rule, with lists kept apart.
pub(super) struct ListsApart(pub(super) Arc<dyn OptimizerRule + Send + Sync>);

impl fmt::Debug for ListsApart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl OptimizerRule for ListsApart {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut lists = Lists::of(&plan)?;
        if lists.repeated.is_empty() && !lists.any_risky {
            let rewritten = self.0.rewrite(plan, config)?;
            return if rewritten.transformed { with_both_zeros(rewritten) } else { Ok(rewritten) };
        }
        let is_where = matches!(plan, LogicalPlan::Filter(_));
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(lists.set_apart(expr, is_where)?.update_data(|expr| name.restore(expr)))
        })?;
        let plan = plan.data;
        let rewritten = self.0.rewrite(plan, config)?;
        let is_changed = rewritten.transformed || lists.are_compared;
        let plan = match lists.apart {
            0 => rewritten.data,
            _ => rewritten.data.map_expressions(put_back)?.data,
        };
        with_both_zeros(Transformed::new_transformed(plan, is_changed))
    }
}

/// `x = 0.0 OR x = 1.5 OR …` became a list, which is looked up by bits: it gets -0.0, too.
fn with_both_zeros(rewritten: Transformed<LogicalPlan>) -> Result<Transformed<LogicalPlan>> {
    let is_changed = rewritten.transformed;
    let names = NamePreserver::new(&rewritten.data);
    let plan = rewritten.data.map_expressions(|expr| {
        let name = names.save(&expr);
        let added = expr.transform_up(|mut part| {
            let is_added = match &mut part {
                Expr::InList(of) => add_other_zeros(&mut of.list, false),
                _ => false,
            };
            Ok(Transformed::new_transformed(part, is_added))
        })?;
        Ok(added.update_data(|expr| name.restore(expr)))
    })?;
    Ok(Transformed::new_transformed(plan.data, is_changed || plan.transformed))
}

/// The lists of one node of a plan.
#[derive(Default)]
struct Lists {
    /// What several lists are about that are not conditions of a WHERE.
    repeated: HashSet<Expr>,
    /// Whether there is a list that the rule must not bring together with any other.
    any_risky: bool,
    /// How many are kept apart.
    apart: usize,
    /// Whether some became comparisons.
    are_compared: bool,
}

impl Lists {
    /// Looks at the lists of a node; most nodes have none.
    fn of(plan: &LogicalPlan) -> Result<Self> {
        let is_where = matches!(plan, LogicalPlan::Filter(_));
        let mut lists = Self::default();
        let mut seen: HashSet<Expr> = HashSet::new();
        plan.apply_expressions(|expr| {
            let conditions = if is_where { split_conjunction(expr) } else { vec![expr] };
            for condition in conditions {
                // The alternatives of one OR are seen once, from its top.
                let mut below: HashSet<*const Expr> = HashSet::new();
                condition.apply(|part| {
                    let is_condition = is_where && std::ptr::eq(part, condition);
                    let listed = match part {
                        Expr::InList(of) => {
                            lists.any_risky |= is_risky(&of.list);
                            vec![bare(&of.expr)]
                        }
                        Expr::BinaryExpr(of) if of.op == Operator::Or => {
                            below.extend([&*of.left, &*of.right].map(std::ptr::from_ref));
                            match below.contains(&std::ptr::from_ref(part)) {
                                true => Vec::new(),
                                false => alternatives(part).into_iter().collect(),
                            }
                        }
                        _ => Vec::new(),
                    };
                    for of in listed {
                        if !is_condition && !seen.insert(of.clone()) {
                            lists.repeated.insert(of.clone());
                        }
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(lists)
    }

    /// Lists that the engine's rule must not bring together become comparisons, or lists of different things.
    fn set_apart(&mut self, expr: Expr, is_where: bool) -> Result<Transformed<Expr>> {
        if !is_where {
            return self.set_all_apart(expr);
        }
        let mut is_changed = false;
        let conditions = split_conjunction_owned(expr).into_iter().map(|condition| {
            let apart = match condition {
                Expr::InList(_) => self.set_list_apart(condition, false),
                other => self.set_all_apart(other)?,
            };
            is_changed |= apart.transformed;
            Ok(apart.data)
        });
        let conditions = conditions.collect::<Result<Vec<_>>>()?;
        let all = conditions.into_iter().reduce(Expr::and);
        let all = all.unwrap_or_else(|| Expr::Literal(ScalarValue::Boolean(Some(true)), None));
        Ok(Transformed::new_transformed(all, is_changed))
    }

    fn set_all_apart(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        let down = expr.transform_down(|part| self.set_alternatives_apart(part))?;
        let up = down.data.transform_up(|part| Ok(self.set_list_apart(part, true)))?;
        Ok(Transformed::new_transformed(up.data, down.transformed || up.transformed))
    }

    /// Alternatives that would become a list, from the top of their OR.
    fn set_alternatives_apart(&mut self, part: Expr) -> Result<Transformed<Expr>> {
        if !is_or(&part) {
            return Ok(Transformed::no(part));
        }
        let mut apart: HashMap<Expr, usize> = HashMap::new();
        for of in alternatives(&part) {
            if self.repeated.contains(of) {
                self.apart += 1;
                apart.insert(of.clone(), self.apart);
            }
        }
        let mut is_changed = !apart.is_empty();
        let each = split_binary_owned(part, Operator::Or).into_iter().map(|mut one| {
            let of = column_compared(&one).and_then(|of| apart.get(of)).copied();
            if let (Some(of), Expr::BinaryExpr(comparison)) = (of, &mut one) {
                let sides = [&mut comparison.left, &mut comparison.right];
                for side in sides.into_iter().filter(|side| is_column(bare(side))) {
                    **side = call(Apart(of), vec![std::mem::take(side.as_mut())]);
                }
                return Ok(one);
            }
            let below = one.transform_down(|part| self.set_alternatives_apart(part))?;
            is_changed |= below.transformed;
            Ok(below.data)
        });
        let all = each.collect::<Result<Vec<_>>>()?.into_iter().reduce(Expr::or);
        // There are several.
        let all = all.unwrap_or_else(|| Expr::Literal(ScalarValue::Boolean(Some(false)), None));
        Ok(Transformed::new(all, is_changed, TreeNodeRecursion::Jump))
    }

    fn set_list_apart(&mut self, part: Expr, is_seen: bool) -> Transformed<Expr> {
        let Expr::InList(InList { expr, list, negated }) = part else {
            return Transformed::no(part);
        };
        if !(is_risky(&list) || is_seen && self.repeated.contains(bare(&expr))) {
            return Transformed::no(Expr::InList(InList { expr, list, negated }));
        }
        // Comparisons with OR between them would become a list again.
        let is_short = list.len() <= SHORT_ITEMS && expr.try_as_col().is_some();
        if list.len() == 1 || is_short && !self.repeated.contains(bare(&expr)) {
            self.are_compared = true;
            return Transformed::yes(compared(&expr, list, negated));
        }
        self.apart += 1;
        let expr = Box::new(call(Apart(self.apart), vec![*expr]));
        Transformed::yes(Expr::InList(InList { expr, list, negated }))
    }
}

fn is_or(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(of) if of.op == Operator::Or)
}

/// The columns that several alternatives of an OR compare with constants: the rule makes lists of these.
fn alternatives(or: &Expr) -> HashSet<&Expr> {
    let mut once: HashSet<&Expr> = HashSet::new();
    let each = split_binary(or, Operator::Or).into_iter().filter_map(column_compared);
    each.filter(|of| !once.insert(of)).collect()
}

/// The column of `column = constant`, either way round; it may be cast. The constant may still have to be computed.
fn column_compared(expr: &Expr) -> Option<&Expr> {
    let Expr::BinaryExpr(of) = expr else { return None };
    let (left, right) = (bare(&of.left), bare(&of.right));
    match of.op {
        Operator::Eq if is_column(left) && !right.any_column_refs() => Some(left),
        Operator::Eq if is_column(right) && !left.any_column_refs() => Some(right),
        _ => None,
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(_))
}

/// What is cast: the rule takes casts away before it compares lists.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => bare(&cast.expr),
        other => other,
    }
}

fn compared(expr: &Expr, list: Vec<Expr>, negated: bool) -> Expr {
    let each = list.into_iter().map(|item| match negated {
        true => expr.clone().not_eq(item),
        false => expr.clone().eq(item),
    });
    let all = each.reduce(|all, one| if negated { all.and(one) } else { all.or(one) });
    // It is not empty.
    all.unwrap_or_else(|| Expr::Literal(ScalarValue::Boolean(Some(negated)), None))
}

fn is_risky(list: &[Expr]) -> bool {
    !list.iter().all(is_plain)
}

/// Whether an item is a constant that is equal to no other one but itself.
fn is_plain(item: &Expr) -> bool {
    match item {
        Expr::Literal(value, _) => {
            !value.is_null()
                && !matches!(value, ScalarValue::Float64(Some(of)) if *of == 0.0)
                && !matches!(value, ScalarValue::Float32(Some(of)) if *of == 0.0)
        }
        _ => false,
    }
}

fn put_back(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| match part {
        Expr::ScalarFunction(ScalarFunction { func, mut args })
            if func.name() == Apart::NAME && args.len() == 1 =>
        {
            Ok(Transformed::yes(args.swap_remove(0)))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// A value as it is. Two of these are not the same function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Apart(usize);

impl Apart {
    const NAME: &str = "stoa_apart";
}

impl Operation for Apart {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        column(operands, rows)
    }

    fn shown(&self, operands: &[String]) -> String {
        operands.concat()
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::logical_plan::table_scan;
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};
    use datafusion::optimizer::{Optimizer, OptimizerContext};

    use super::*;

    fn simplified(condition: Expr) -> String {
        let fields = ["a", "b", "c"].map(|name| Field::new(name, DataType::Int64, true));
        let table = table_scan(Some("t"), &Schema::new(fields.to_vec()), None).unwrap();
        let named = LogicalPlanBuilder::from(table.clone().build().unwrap());
        let named = named.project([condition.clone()]).unwrap().build().unwrap();
        let plan = table.filter(condition).unwrap().build().unwrap();
        let rule = Optimizer::new().rules.into_iter().find(|rule| rule.name() == SIMPLIFYING_RULE);
        let rule = ListsApart(rule.unwrap());
        let names = named.schema().field_names();
        let once = rule.rewrite(named, &OptimizerContext::new()).unwrap().data;
        assert_eq!(once.recompute_schema().unwrap().schema().field_names(), names);
        rule.rewrite(plan, &OptimizerContext::new()).unwrap().data.to_string()
    }

    #[test]
    fn lists_of_constants_are_brought_together_and_others_are_not() {
        let list = |items: &[i64]| items.iter().map(|item| lit(*item)).collect::<Vec<_>>();
        let both = col("a").in_list(list(&[1, 2, 3, 4, 5]), false);
        let both = both.and(col("a").in_list(list(&[4, 5, 6, 7, 8]), false));
        assert_eq!(
            simplified(both).lines().next(),
            Some("Filter: t.a = Int64(4) OR t.a = Int64(5)")
        );

        let columns = col("a").in_list(vec![col("b"), lit(1_i64)], false);
        let columns = columns.and(col("a").in_list(vec![col("c"), lit(2_i64)], false));
        let shown = simplified(columns);
        assert!(
            shown.contains("(t.b = t.a OR t.a = Int64(1)) AND (t.c = t.a OR t.a = Int64(2))"),
            "{shown}"
        );

        let long = |other: &str| {
            let mut items = list(&[1, 2, 3, 4]);
            items.push(col(other));
            items
        };
        let shown =
            simplified(col("a").in_list(long("b"), true).or(col("a").in_list(long("c"), true)));
        assert!(
            shown.contains("t.a NOT IN ([Int64(1), Int64(2), Int64(3), Int64(4), t.b]) OR"),
            "{shown}"
        );
        assert!(!shown.contains(Apart::NAME), "{shown}");

        // Two lists without a common item are NULL where `a` is.
        let none = col("a").in_list(vec![lit(1_i64)], false);
        let none = none.and(col("a").in_list(vec![lit(2_i64)], false));
        let shown = simplified(Expr::IsNull(Box::new(none.clone())));
        assert!(shown.contains("t.a = Int64(1) AND t.a = Int64(2)"), "{shown}");
        assert!(simplified(none).contains("Boolean(false)"));

        let either = |one: i64, other: i64| col("a").eq(lit(one)).or(lit(other).eq(col("a")));
        let none = either(1, 2).and(either(3, 4));
        let shown = simplified(Expr::IsNull(Box::new(none.clone())));
        assert!(shown.contains("= Int64(1) OR") && shown.contains("= Int64(3) OR"), "{shown}");
        assert!(simplified(none).contains("Boolean(false)"));

        let null = Expr::Literal(ScalarValue::Int64(None), None);
        let shown = simplified(
            col("a")
                .in_list(list(&[1, 2]), false)
                .and(col("a").in_list(vec![lit(3_i64), null], true)),
        );
        assert!(shown.contains("t.a != Int64(3)") || shown.contains("Boolean(NULL)"), "{shown}");
    }
}
