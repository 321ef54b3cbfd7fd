//! What holds for all functions; their values are tested against Hive's (`crates/stoa-query/tests/hiveql`).

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::value::{Type, Value};
use super::{functions, operators};

#[test]
fn names_are_unique_and_those_of_calls() {
    let names: Vec<&str> = functions().map(|function| function.name).collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len());
    for (hive, call) in crate::calls::CALLS {
        if let crate::calls::Call::Pack(name) = call {
            assert!(unique.contains(name), "{hive} is {name}");
        }
    }
}

#[test]
fn names_of_calls_are_unique() {
    let names: BTreeSet<&str> = crate::calls::CALLS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), crate::calls::CALLS.len());
}

fn typed() -> impl Strategy<Value = (Type, Value)> {
    let text = prop_oneof![
        "[a-z0-9 ,:.=%-]{0,12}",
        Just("2020-02-29".to_owned()),
        Just("2020-02-29 23:59:59.5".to_owned()),
        Just("{\"a\":[1,{\"b\":null}]}".to_owned()),
        Just("$.a[1].b".to_owned()),
        Just("http://u@h:1/p?k=v#r".to_owned()),
        Just("yyyy-MM-dd HH:mm:ss".to_owned()),
        Just("-99999999999999999999.5e300".to_owned()),
        "\\PC{0,8}",
    ];
    prop_oneof![
        Just((Type::Text, Value::Null)),
        any::<bool>().prop_map(|value| (Type::Boolean, Value::Boolean(value))),
        prop_oneof![any::<i32>(), -40..40_i32].prop_map(|value| (Type::Int, Value::Int(value))),
        any::<i64>().prop_map(|value| (Type::Bigint, Value::Bigint(value))),
        any::<f64>().prop_map(|value| (Type::Double, Value::Double(value))),
        (any::<i128>(), 0..38_i8).prop_map(|(value, scale)| {
            let value = value % 10_i128.pow(38);
            (Type::Decimal(38, scale), Value::Decimal(value, scale))
        }),
        text.prop_map(|text| (Type::Text, Value::Text(text))),
        any::<i32>().prop_map(|days| (Type::Date, Value::Date(days))),
        any::<i64>().prop_map(|micros| (Type::Timestamp, Value::Timestamp(micros))),
        proptest::collection::vec("[ab]{0,2}", 0..3).prop_map(|items| {
            let items = items.into_iter().map(Value::Text).collect();
            (Type::List(Box::new(Type::Text)), Value::List(items))
        }),
        proptest::collection::vec(any::<u8>(), 0..4)
            .prop_map(|bytes| (Type::Binary, Value::Binary(bytes))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the operands, there is a value or an error, and the value is of the type that was told.
    #[test]
    fn no_operands_make_a_function_panic(operands in proptest::collection::vec(typed(), 0..5)) {
        let (types, values): (Vec<Type>, Vec<Value>) = operands.into_iter().unzip();
        for function in functions() {
            let Ok(made) = function.result(&types) else { continue };
            if let Ok(value) = function.call(&values) {
                let fitted = super::fitted(&value, &made);
                prop_assert!(fitted.is_ok(), "{} {values:?}", function.name);
            }
        }
    }

    #[test]
    fn comparisons_are_orders((a, b) in (typed(), typed())) {
        let there = operators::ordering(&a.1, &b.1);
        let back = operators::ordering(&b.1, &a.1);
        if let (Ok(there), Ok(back)) = (there, back) {
            prop_assert_eq!(there, back.map(std::cmp::Ordering::reverse));
        }
    }
}
