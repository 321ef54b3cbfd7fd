//! Aggregates that tell where a row would stand if it were one of the group (`rank(x) WITHIN GROUP (ORDER BY y)`),
//! written as counts of the rows before it.
//!
//! ```text
//! rank(x) WITHIN GROUP (ORDER BY y)          ─►  1 + count(*) FILTER (WHERE y < x)
//! dense_rank(x) WITHIN GROUP (ORDER BY y)    ─►  1 + count(DISTINCT y) FILTER (WHERE y < x)
//! percent_rank(x) WITHIN GROUP (ORDER BY y)  ─►  count(*) FILTER (WHERE y < x) / count(*)
//! cume_dist(x) WITHIN GROUP (ORDER BY y)     ─►  (1 + count(*) FILTER (WHERE y <= x)) / (1 + count(*))
//! ```
//! In: a call whose column has its name already. Out: an expression of aggregates that the engine has.

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, OrderByExpr, Value,
};
use stoa_error::{Error, Result, Subject};

use crate::calls::{call, cast, named, positional};
use crate::reads::reads_columns;

/// The functions.
const NAMES: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];

/// Replaces a call.
///
/// # Errors
/// As many values as keys must be given (42883). Values of the row's own columns, and `dense_rank` by several keys,
/// are not supported (0A000).
pub(super) fn write_as_counts(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = &*expr else { return Ok(()) };
    let Some(name) = named(&function.name).filter(|name| NAMES.contains(&name.as_str())) else {
        return Ok(());
    };
    if function.within_group.is_empty() {
        return Ok(());
    }
    if function.over.is_some() {
        let said = format!("OVER is not supported for hypothetical-set aggregate {name}");
        return Err(Error::unsupported(said).about(Subject::OnlyCall(name)));
    }
    let values = positional(&function.args).unwrap_or_default();
    let keys = &function.within_group;
    if values.len() != keys.len() {
        let said = format!(
            "function {name} needs one value for each key of ORDER BY: {} values, {} keys",
            values.len(),
            keys.len()
        );
        return Err(Error::invalid(said).with_sqlstate("42883").about(Subject::OnlyCall(name)));
    }
    if values.iter().any(reads_columns) {
        let said = format!("{name} of a column WITHIN GROUP is not supported");
        let error = Error::unsupported(said).with_hint("the hypothetical row is of constants only");
        return Err(error.about(Subject::OnlyCall(name)));
    }
    *expr = Expr::Nested(Box::new(match name.as_str() {
        "rank" => plus_one(count(function, Some(before(keys, &values, false)))),
        "dense_rank" => {
            let [key] = keys.as_slice() else {
                let said = "dense_rank WITHIN GROUP by several keys is not supported";
                let error = Error::unsupported(said).with_hint("count distinct rows in a subquery");
                return Err(error.about(Subject::OnlyCall(name)));
            };
            let before = before(keys, &values, false);
            let nulls = both(before.clone(), Expr::IsNull(nested(&key.expr)));
            // NULLs are one more value.
            let nulls = call("least", vec![number("1"), count(function, Some(nulls))]);
            let distinct = filtered(distinct_count(&key.expr), function, Some(before));
            plus_one(binary(distinct, BinaryOperator::Plus, nulls))
        }
        "percent_rank" => {
            let all = call("nullif", vec![count(function, None), number("0")]);
            let share = quotient(count(function, Some(before(keys, &values, false))), double(all));
            call("coalesce", vec![share, double(number("0"))])
        }
        _ => quotient(
            Expr::Nested(Box::new(plus_one(count(function, Some(before(keys, &values, true)))))),
            double(plus_one(count(function, None))),
        ),
    }));
    Ok(())
}

/// Whether a row stands before that of the values; or beside it, if both are alike and `or_beside`.
fn before(keys: &[OrderByExpr], values: &[Expr], or_beside: bool) -> Expr {
    let Some(((key, value), (keys, values))) = keys
        .split_first()
        .zip(values.split_first())
        .map(|((key, keys), (value, values))| ((key, value), (keys, values)))
    else {
        return Expr::value(Value::Boolean(or_beside));
    };
    let ascending = key.options.asc.unwrap_or(true);
    let nulls_first = key.options.nulls_first.unwrap_or(!ascending);
    let op = if ascending { BinaryOperator::Lt } else { BinaryOperator::Gt };
    let less = call(
        "coalesce",
        vec![
            binary(Expr::Nested(nested(&key.expr)), op, Expr::Nested(nested(value))),
            Expr::value(Value::Boolean(false)),
        ],
    );
    let (early, late) = match nulls_first {
        true => (&key.expr, value),
        false => (value, &key.expr),
    };
    let by_null = both(Expr::IsNull(nested(early)), Expr::IsNotNull(nested(late)));
    let is_before = either(less, by_null);
    let same = Expr::IsNotDistinctFrom(nested(&key.expr), nested(value));
    let rest = before(keys, values, or_beside);
    match &rest {
        Expr::Value(of) if of.value == Value::Boolean(false) => is_before,
        _ => either(is_before, both(same, rest)),
    }
}

fn nested(expr: &Expr) -> Box<Expr> {
    Box::new(Expr::Nested(Box::new(expr.clone())))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn both(left: Expr, right: Expr) -> Expr {
    Expr::Nested(Box::new(binary(left, BinaryOperator::And, right)))
}

fn either(left: Expr, right: Expr) -> Expr {
    Expr::Nested(Box::new(binary(left, BinaryOperator::Or, right)))
}

fn number(digits: &str) -> Expr {
    Expr::value(Value::Number(digits.into(), false))
}

fn double(expr: Expr) -> Expr {
    cast(Expr::Nested(Box::new(expr)), DataType::DoublePrecision)
}

fn quotient(part: Expr, whole: Expr) -> Expr {
    binary(part, BinaryOperator::Divide, whole)
}

fn plus_one(count: Expr) -> Expr {
    binary(number("1"), BinaryOperator::Plus, count)
}

/// `count(*)` of the rows that the call takes and for which `condition` holds.
fn count(function: &Function, condition: Option<Expr>) -> Expr {
    let mut count = call("count", Vec::new());
    if let Expr::Function(count) = &mut count
        && let FunctionArguments::List(list) = &mut count.args
    {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)];
    }
    filtered(count, function, condition)
}

fn distinct_count(of: &Expr) -> Expr {
    let mut count = call("count", vec![of.clone()]);
    if let Expr::Function(Function {
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment, .. }),
        ..
    }) = &mut count
    {
        *duplicate_treatment = Some(datafusion_sql::sqlparser::ast::DuplicateTreatment::Distinct);
    }
    count
}

fn filtered(mut count: Expr, function: &Function, condition: Option<Expr>) -> Expr {
    let own = function.filter.as_deref().map(|filter| Expr::Nested(Box::new(filter.clone())));
    if let Expr::Function(count) = &mut count {
        count.filter = match (own, condition) {
            (Some(own), Some(condition)) => Some(Box::new(both(own, condition))),
            (one, other) => one.or(other).map(Box::new),
        };
    }
    count
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;

    use super::*;

    fn written(text: &str) -> Result<String> {
        let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text);
        let mut expr = parser.unwrap().parse_expr().unwrap();
        write_as_counts(&mut expr)?;
        Ok(expr.to_string())
    }

    #[test]
    fn rows_before_it_are_counted() {
        assert_eq!(
            written("rank(3) WITHIN GROUP (ORDER BY y)").unwrap(),
            "(1 + count(*) FILTER (WHERE (coalesce(((y)) < ((3)), false) OR ((3) IS NULL AND (y) IS NOT NULL))))"
        );
        assert_eq!(written("rank() OVER (ORDER BY y)").unwrap(), "rank() OVER (ORDER BY y)");
    }

    #[test]
    fn other_rows_are_refused() {
        for (text, sqlstate) in [
            ("rank(1, 2) WITHIN GROUP (ORDER BY y)", "42883"),
            ("rank(x) WITHIN GROUP (ORDER BY y)", "0A000"),
            ("dense_rank(1, 2) WITHIN GROUP (ORDER BY y, z)", "0A000"),
        ] {
            assert_eq!(written(text).unwrap_err().sqlstate(), sqlstate, "{text}");
        }
    }
}
