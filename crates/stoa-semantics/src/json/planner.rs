//! Operators of JSON as calls: the engine's own plans have none for texts.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::functions_nested::array_has::array_has_all;
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr,
};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::JsonKind;
use crate::call::{call, failure};
use crate::declared::{self, Call};
use crate::json_casts::is_unknown;

/// Plans `->`, `->>`, `#>`, `#>>`, `@>`, `<@`, `?`, `?|`, `?&`, `||`, `-` and `#-` of JSON values.
#[derive(Debug)]
pub(crate) struct JsonOperators;

impl ExprPlanner for JsonOperators {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let (left, right) = (&raw.left, &raw.right);
        let is_text = |side: &Expr| {
            side.get_type(schema).is_ok_and(|of| of.is_string() || of.is_null())
                || matches!(side, Expr::Placeholder(_))
        };
        let kind = |side: &Expr| JsonKind::of(side, schema);
        let is_whole = right.get_type(schema).is_ok_and(|of| of.is_integer());
        let is_list = right.get_type(schema).is_ok_and(|of| of.is_nested());
        let is_binary = kind(left) == Some(JsonKind::Jsonb);
        let either_is_binary = is_binary || kind(right) == Some(JsonKind::Jsonb);
        let by_kind =
            |json: &'static str, jsonb: &'static str| if is_binary { jsonb } else { json };
        if matches!(raw.op, BinaryOperator::AtArrow | BinaryOperator::ArrowAt) {
            let is_list = |of: &DataType| matches!(of, DataType::List(_));
            let of = |side: &Expr| side.get_type(schema).ok().filter(is_list);
            let typed = |side: &Expr, other: &Expr| match of(other) {
                Some(list) if is_unknown(side) => Some(cast(side.clone(), list)),
                _ => None,
            };
            let sides = match (typed(left, right), typed(right, left)) {
                (Some(left), _) => Some((left, right.clone())),
                (None, Some(right)) => Some((left.clone(), right)),
                (None, None) => None,
            };
            if let Some((left, right)) = sides {
                return Ok(PlannerResult::Planned(match raw.op {
                    BinaryOperator::AtArrow => array_has_all(left, right),
                    _ => array_has_all(right, left),
                }));
            }
        }
        let name = match raw.op {
            BinaryOperator::Arrow if is_text(left) => match is_whole {
                true => by_kind("json_element", "jsonb_element"),
                false => by_kind("json_field", "jsonb_field"),
            },
            BinaryOperator::LongArrow if is_text(left) => match is_whole {
                true => by_kind("json_element_text", "jsonb_element_text"),
                false => by_kind("json_field_text", "jsonb_field_text"),
            },
            BinaryOperator::HashArrow if is_text(left) => by_kind("json_at", "jsonb_at"),
            BinaryOperator::HashLongArrow if is_text(left) => {
                by_kind("json_at_text", "jsonb_at_text")
            }
            BinaryOperator::AtArrow if is_text(left) && is_text(right) => "jsonb_contains",
            BinaryOperator::ArrowAt if is_text(left) && is_text(right) => "jsonb_contained",
            BinaryOperator::Question if is_text(left) => "jsonb_exists",
            BinaryOperator::QuestionPipe if is_text(left) => "jsonb_exists_any",
            BinaryOperator::QuestionAnd if is_text(left) => "jsonb_exists_all",
            BinaryOperator::HashMinus if is_text(left) => "jsonb_without_path",
            BinaryOperator::AtQuestion if is_text(left) => "jsonb_path_exists_opr",
            BinaryOperator::AtAt if is_text(left) => "jsonb_path_match_opr",
            BinaryOperator::StringConcat
                if either_is_binary
                    && (kind(left) == kind(right) || is_unknown(left) || is_unknown(right)) =>
            {
                "jsonb_joined"
            }
            BinaryOperator::Minus if is_binary => match (is_whole, is_list) {
                (true, _) => "jsonb_without_place",
                (_, true) => "jsonb_without_keys",
                _ => "jsonb_without",
            },
            _ => return Ok(PlannerResult::Original(raw)),
        };
        let Some(declared) = declared::named(name) else {
            return Ok(PlannerResult::Original(raw));
        };
        let RawBinaryExpr { left, right, .. } = raw;
        Ok(PlannerResult::Planned(call(Call(declared), vec![left, right])))
    }
}

/// `(value)['key'][1]` of `jsonb`: before the engine's planner, which knows subscripts of lists and structs.
#[derive(Debug)]
pub(crate) struct JsonSubscripts;

impl ExprPlanner for JsonSubscripts {
    fn plan_field_access(
        &self,
        raw: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        match JsonKind::of(&raw.expr, schema) {
            None => return Ok(PlannerResult::Original(raw)),
            Some(JsonKind::Json) => {
                let message = "cannot subscript type json because it does not support subscripting";
                return Err(failure("42804", message));
            }
            Some(JsonKind::Jsonb) => {}
        }
        let key = match &raw.field_access {
            GetFieldAccess::NamedStructField { name } => Expr::Literal(name.clone(), None),
            GetFieldAccess::ListIndex { key } => key.as_ref().clone(),
            GetFieldAccess::ListRange { .. } => {
                return Err(failure("0A000", "jsonb subscript does not support slices"));
            }
        };
        let is_known = |of: &DataType| of.is_integer() || of.is_string() || of.is_null();
        if !is_known(&key.get_type(schema)?) {
            let message = "subscript type is not supported for jsonb: it must be coercible to \
                either integer or text";
            return Err(failure("42804", message));
        }
        // A path of one step, which of a scalar is nothing, and a place in an array also as a text.
        let path = make_array(vec![cast(key, DataType::Utf8)]);
        Ok(match declared::named("jsonb_at") {
            Some(declared) => PlannerResult::Planned(call(Call(declared), vec![raw.expr, path])),
            None => PlannerResult::Original(raw),
        })
    }
}
