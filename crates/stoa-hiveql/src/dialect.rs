//! What the parser is told of HiveQL.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::dialect::{Dialect, HiveDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// HiveQL, its tokens already read (`crate::lexer`).
#[derive(Debug)]
pub(crate) struct HiveQl;

impl Dialect for HiveQl {
    fn dialect(&self) -> TypeId {
        TypeId::of::<HiveDialect>()
    }

    fn is_delimited_identifier_start(&self, char: char) -> bool {
        char == '`'
    }

    fn is_identifier_start(&self, char: char) -> bool {
        char.is_alphanumeric() || char == '_'
    }

    fn is_identifier_part(&self, char: char) -> bool {
        char.is_alphanumeric() || char == '_'
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        false
    }

    fn supports_numeric_prefix(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn supports_from_first_select(&self) -> bool {
        true
    }

    fn supports_struct_literal(&self) -> bool {
        true
    }

    fn supports_map_literal_with_angle_brackets(&self) -> bool {
        true
    }

    fn supports_bang_not_operator(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn supports_select_item_multi_column_alias(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Word(word) if word.keyword == Keyword::DIV && word.quote_style.is_none() => {
                Some(Ok(self.prec_value(Precedence::MulDivModOp)))
            }
            // Hive binds it as +.
            Token::StringConcat => Some(Ok(self.prec_value(Precedence::PlusMinus))),
            _ => None,
        }
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Word(word) if word.keyword == Keyword::DIV && word.quote_style.is_none() => {}
            _ => return None,
        }
        parser.advance_token();
        let right = match parser.parse_subexpr(precedence) {
            Ok(right) => Box::new(right),
            Err(error) => return Some(Err(error)),
        };
        let left = Box::new(expr.clone());
        Some(Ok(Expr::BinaryOp { left, op: BinaryOperator::MyIntegerDivide, right }))
    }
}
