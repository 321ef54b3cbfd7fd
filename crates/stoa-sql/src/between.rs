//! `x BETWEEN SYMMETRIC a AND b`, which the parser does not know: between `a` and `b`, or between `b` and `a`.

use datafusion_sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use datafusion_sql::sqlparser::tokenizer::Token;

/// Bytes of the operands, which are written twice: nested ones would grow without end.
const OPERANDS_BYTES_MAX: usize = 16 << 10;

/// Reads `[NOT] BETWEEN SYMMETRIC a AND b` behind `expr`, or the same with `ASYMMETRIC`; `None` for what is neither.
/// `precedence` is that of the bounds.
pub(super) fn parse(
    parser: &mut Parser<'_>,
    expr: &Expr,
    precedence: u8,
) -> Option<Result<Expr, ParserError>> {
    let keyword = |at: usize| match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let negated = keyword(0) == Keyword::NOT;
    let at = usize::from(negated);
    if keyword(at) != Keyword::BETWEEN {
        return None;
    }
    let is_symmetric = match &parser.peek_nth_token_ref(at + 1).token {
        Token::Word(word) if word.quote_style.is_some() => return None,
        Token::Word(word) if word.value.eq_ignore_ascii_case("symmetric") => true,
        Token::Word(word) if word.value.eq_ignore_ascii_case("asymmetric") => false,
        _ => return None,
    };
    for _ in 0..at + 2 {
        parser.next_token();
    }
    Some(behind(parser, expr, precedence, negated, is_symmetric))
}

fn behind(
    parser: &mut Parser<'_>,
    expr: &Expr,
    precedence: u8,
    negated: bool,
    is_symmetric: bool,
) -> Result<Expr, ParserError> {
    let low = parser.parse_subexpr(precedence)?;
    parser.expect_keyword(Keyword::AND)?;
    let high = parser.parse_subexpr(precedence)?;
    let between = |negated: bool, low: &Expr, high: &Expr| Expr::Between {
        expr: Box::new(expr.clone()),
        negated,
        low: Box::new(low.clone()),
        high: Box::new(high.clone()),
    };
    if !is_symmetric {
        return Ok(between(negated, &low, &high));
    }
    let bytes = [expr, &low, &high].iter().map(|operand| operand.to_string().len()).sum::<usize>();
    if bytes > OPERANDS_BYTES_MAX {
        let message = "the operands of BETWEEN SYMMETRIC are too long";
        return Err(ParserError::ParserError(message.to_owned()));
    }
    let either = Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(between(false, &low, &high)),
        op: BinaryOperator::Or,
        right: Box::new(between(false, &high, &low)),
    }));
    Ok(match negated {
        true => {
            Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(either) }))
        }
        false => either,
    })
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;

    use super::*;
    use crate::Bounded;

    #[test]
    fn bounds_are_taken_in_either_order() {
        let check = |text: &str, expected: &str| {
            let dialect = Bounded::new(PostgreSqlDialect {}, text.len());
            let expr = Parser::new(&dialect).try_with_sql(text).unwrap().parse_expr().unwrap();
            assert_eq!(expr.to_string(), expected);
        };
        check(
            "x BETWEEN SYMMETRIC 3 AND 1 AND y",
            "(x BETWEEN 3 AND 1 OR x BETWEEN 1 AND 3) AND y",
        );
        check("x NOT BETWEEN SYMMETRIC 3 AND 1", "(NOT (x BETWEEN 3 AND 1 OR x BETWEEN 1 AND 3))");
        check("x NOT BETWEEN ASYMMETRIC 3 AND 1", "x NOT BETWEEN 3 AND 1");
        check("x BETWEEN symmetric_low AND 1", "x BETWEEN symmetric_low AND 1");
    }
}
