//! Expressions that the translation puts in.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Value,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// A call of one of Stoa's functions.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A string literal.
pub(crate) fn string(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

/// A whole number.
pub(crate) fn number(value: i64) -> Expr {
    Expr::value(Value::Number(value.to_string(), false))
}

/// An expression of Stoa's SQL, as it is written. Only texts of ours: what does not parse becomes NULL.
pub(crate) fn raw(text: &str) -> Expr {
    let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(text);
    parsed.and_then(|mut parser| parser.parse_expr()).unwrap_or_else(|_| Expr::value(Value::Null))
}

/// `CAST(expr AS type)`.
pub(crate) fn cast(expr: Expr, of: &str) -> Expr {
    match raw(&format!("CAST(NULL AS {of})")) {
        Expr::Cast { kind, data_type, array, format, .. } => {
            Expr::Cast { kind, expr: Box::new(expr), data_type, array, format }
        }
        other => other,
    }
}

/// `CASE WHEN condition THEN yes ELSE no END`.
pub(crate) fn case(condition: Expr, yes: Expr, no: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: yes }],
        else_result: Some(Box::new(no)),
    }
}
