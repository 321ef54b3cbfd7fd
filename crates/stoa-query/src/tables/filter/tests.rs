use std::collections::HashMap;

use arrow::datatypes::Field;
use datafusion::logical_expr::{col, lit};

use super::*;

fn schema() -> Schema {
    let field = |name: &str, data_type, id: i32| {
        let metadata = HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]);
        Field::new(name, data_type, true).with_metadata(metadata)
    };
    Schema::new(vec![
        field("account", DataType::Int64, 1),
        field("name", DataType::Utf8, 2),
        field("score", DataType::Float64, 3),
    ])
}

fn check(expr: &Expr, expected: Option<Predicate>) {
    assert_eq!(predicate_of(expr, &schema()), expected, "{expr}");
}

fn compare_field(id: i32, op: CompareOp, value: Literal) -> Predicate {
    Predicate::Compare { column: ColumnRef::Field(id), op, value }
}

#[test]
fn comparisons_are_taken_from_either_side() {
    check(&col("account").gt(lit(5i64)), Some(compare_field(1, CompareOp::Gt, Literal::Int(5))));
    check(&lit(5i64).gt(col("account")), Some(compare_field(1, CompareOp::Lt, Literal::Int(5))));
}

#[test]
fn a_literal_of_another_type_says_nothing() {
    check(&col("account").eq(lit(5.5f64)), None);
    check(&col("score").eq(lit(f64::NAN)), None);
}

#[test]
fn half_an_and_is_enough_but_half_an_or_is_not() {
    let known = col("account").eq(lit(1i64));
    let unknown = col("account").eq(lit(1.0f64));
    let expected = compare_field(1, CompareOp::Eq, Literal::Int(1));
    check(&known.clone().and(unknown.clone()), Some(expected));
    check(&known.or(unknown), None);
}

#[test]
fn a_like_prefix_is_a_range() {
    let expected = compare_field(2, CompareOp::GtEq, Literal::String("ab".into()))
        .and(compare_field(2, CompareOp::Lt, Literal::String("ac".into())));
    check(&col("name").like(lit("ab%c")), Some(expected));
    check(&col("name").like(lit("%ab")), None);
}

#[test]
fn comparing_with_null_keeps_nothing() {
    check(
        &col("account").eq(Expr::Literal(ScalarValue::Int64(None), None)),
        Some(Predicate::Or(Vec::new())),
    );
}

#[test]
fn the_successor_skips_surrogates_and_gives_up_at_the_last_character() {
    assert_eq!(successor("a\u{D7FF}").as_deref(), Some("a\u{E000}"));
    assert_eq!(successor("\u{10FFFF}"), None);
    assert_eq!(successor("a\u{10FFFF}").as_deref(), Some("b"));
}
