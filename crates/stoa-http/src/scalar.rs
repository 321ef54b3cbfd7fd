//! JSON parameters as values of the types that a statement expects.

use arrow_schema::DataType;
use serde_json::Value;
use stoa_error::{Error, Result};
use stoa_query::ScalarValue;

/// The type a parameter has where the statement does not say: what its JSON looks like.
pub(crate) fn type_hint(value: &Value) -> Option<DataType> {
    match value {
        Value::Bool(_) => Some(DataType::Boolean),
        Value::Number(number) if number.is_f64() => Some(DataType::Float64),
        Value::Number(_) => Some(DataType::Int64),
        _ => None,
    }
}

/// The parameters as values of `types`.
///
/// # Errors
/// Invalid: too few or too many (08P01), or a value that its type does not take (22P02).
pub(crate) fn bind(values: &[Value], types: &[DataType]) -> Result<Vec<ScalarValue>> {
    if values.len() != types.len() {
        return Err(Error::invalid(format!(
            "the statement has {} parameters, but {} were given",
            types.len(),
            values.len()
        ))
        .with_sqlstate("08P01")
        .with_hint("give one element of \"parameters\" for each of $1, $2, …"));
    }
    let numbered = values.iter().zip(types).enumerate();
    numbered.map(|(index, (value, data_type))| one(index + 1, value, data_type)).collect()
}

fn one(number: usize, value: &Value, data_type: &DataType) -> Result<ScalarValue> {
    let scalar = match value {
        Value::Null => ScalarValue::try_from(data_type),
        Value::Bool(flag) => ScalarValue::Boolean(Some(*flag)).cast_to(data_type),
        Value::Number(number) => ScalarValue::try_from_string(number.to_string(), data_type),
        Value::String(text) => ScalarValue::try_from_string(text.clone(), data_type),
        Value::Array(_) | Value::Object(_) => {
            return Err(Error::unsupported(format!(
                "parameter ${number} is a JSON array or object"
            ))
            .with_hint("parameters are null, true, false, numbers or strings"));
        }
    };
    let refuse = || {
        Error::invalid(format!("parameter ${number}: {value} is no {data_type}"))
            .with_sqlstate("22P02")
    };
    let scalar = scalar.map_err(|_| refuse())?;
    // A cast that cannot be done gives NULL; nobody asked for that.
    if scalar.is_null() && !value.is_null() { Err(refuse()) } else { Ok(scalar) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_take_the_type_that_is_expected() {
        let check = |value: Value, data_type: DataType, expected: &str| {
            let scalars = bind(&[value], std::slice::from_ref(&data_type)).unwrap();
            assert_eq!(scalars[0].to_string(), expected);
            assert_eq!(scalars[0].data_type(), data_type);
        };
        check(json!(17), DataType::Int64, "17");
        check(json!("9007199254740993"), DataType::Int64, "9007199254740993");
        check(json!(17), DataType::Utf8, "17");
        check(json!(1.5), DataType::Decimal128(10, 2), "1.50");
        check(json!("2026-01-02"), DataType::Date32, "2026-01-02");
        check(json!(true), DataType::Boolean, "true");
        check(json!(null), DataType::Int64, "NULL");
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let check = |values: &[Value], data_type: DataType| {
            let error = bind(values, &[data_type]).unwrap_err();
            assert!(["22P02", "0A000", "08P01"].contains(&error.sqlstate()), "{error:?}");
        };
        check(&[json!("x")], DataType::Int64);
        check(&[json!(1.5)], DataType::Int64);
        check(&[json!("2026-13-01")], DataType::Date32);
        check(&[json!([1])], DataType::Int64);
        check(&[json!(1), json!(2)], DataType::Int64);
        check(&[], DataType::Int64);
    }
}
