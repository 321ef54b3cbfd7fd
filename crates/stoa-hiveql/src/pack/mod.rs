//! Hive's functions as functions of values.
//!
//! In: a name and values. Out: a value. A [`Function`] says what it takes, which type its result has, and computes
//! it for one row. **Invariants:** no I/O, no clock; no input panics; a result has at most [`TEXT_BYTES_MAX`] bytes.
//!
//! Not here: operators on whole columns, aggregates (`stoa-semantics`), which text becomes which call (`crate::calls`).

mod casts;
mod checksums;
mod collections;
mod dates;
mod fields;
mod java_pattern;
mod json_path;
mod masks;
mod numbers;
mod operators;
mod regexes;
mod texts;
mod urls;
pub mod value;

use stoa_error::{Error, Result};

use self::value::{Type, Value};

/// The longest text that a function makes.
pub const TEXT_BYTES_MAX: usize = 1 << 26;

/// One of Hive's functions, or one that an operator or a cast of Hive's becomes.
#[derive(Debug)]
pub struct Function {
    /// Its name in plans: Hive's, behind `hive_`.
    pub name: &'static str,
    /// The fewest and the most operands.
    pub takes: (usize, usize),
    /// The type of the result.
    pub makes: fn(&[Type]) -> Result<Type>,
    /// Whether it is NULL where an operand is.
    pub is_strict: bool,
    /// The result for one row.
    pub compute: fn(&[Value]) -> Result<Value>,
}

impl Function {
    /// The type of the result.
    ///
    /// # Errors
    /// 42883: operands of these types, or so many, are not taken.
    pub fn result(&self, types: &[Type]) -> Result<Type> {
        let (fewest, most) = self.takes;
        if !(fewest..=most).contains(&types.len()) {
            return Err(no_function(self.name, types));
        }
        (self.makes)(types)
    }

    /// The result for the operands of one row.
    ///
    /// # Errors
    /// What the function refuses, with an SQLSTATE.
    pub fn call(&self, operands: &[Value]) -> Result<Value> {
        if self.is_strict && operands.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let value = (self.compute)(operands)?;
        match &value {
            Value::Text(text) if text.len() > TEXT_BYTES_MAX => Err(too_long()),
            _ => Ok(value),
        }
    }
}

/// All of them.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    [
        operators::FUNCTIONS,
        casts::FUNCTIONS,
        texts::FUNCTIONS,
        regexes::FUNCTIONS,
        urls::FUNCTIONS,
        numbers::FUNCTIONS,
        checksums::FUNCTIONS,
        dates::FUNCTIONS,
        collections::FUNCTIONS,
        fields::FUNCTIONS,
        json_path::FUNCTIONS,
        masks::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// A value as one of a type; NULL where it is none.
///
/// # Errors
/// Dates out of range (22008); arrays and maps as texts (42846).
pub fn fitted(value: &Value, to: &Type) -> Result<Value> {
    converted(value, to)
}

/// The function of this name in plans.
pub fn function(name: &str) -> Option<&'static Function> {
    functions().find(|function| function.name == name)
}

/// A function of so many operands that is NULL where one of them is.
const fn strict(
    name: &'static str,
    takes: (usize, usize),
    makes: fn(&[Type]) -> Result<Type>,
    compute: fn(&[Value]) -> Result<Value>,
) -> Function {
    Function { name, takes, makes, is_strict: true, compute }
}

/// As [`strict`], of a function that looks at NULLs itself.
const fn lenient(
    name: &'static str,
    takes: (usize, usize),
    makes: fn(&[Type]) -> Result<Type>,
    compute: fn(&[Value]) -> Result<Value>,
) -> Function {
    Function { name, takes, makes, is_strict: false, compute }
}

fn too_long() -> Error {
    Error::invalid(format!("the text is longer than {TEXT_BYTES_MAX} bytes")).with_sqlstate("54000")
}

/// No function takes these.
fn no_function(name: &str, types: &[Type]) -> Error {
    let name = name.strip_prefix("hive_").unwrap_or(name);
    let types: Vec<String> = types.iter().map(Type::name).collect();
    Error::invalid(format!("function {name}({}) does not exist", types.join(", ")))
        .with_sqlstate("42883")
        .with_hint("docs/hiveql.md lists the functions; cast the operands")
}

fn makes_text(_: &[Type]) -> Result<Type> {
    Ok(Type::Text)
}

fn makes_boolean(_: &[Type]) -> Result<Type> {
    Ok(Type::Boolean)
}

fn makes_int(_: &[Type]) -> Result<Type> {
    Ok(Type::Int)
}

fn makes_bigint(_: &[Type]) -> Result<Type> {
    Ok(Type::Bigint)
}

fn makes_double(_: &[Type]) -> Result<Type> {
    Ok(Type::Double)
}

fn makes_binary(_: &[Type]) -> Result<Type> {
    Ok(Type::Binary)
}

fn makes_date(_: &[Type]) -> Result<Type> {
    Ok(Type::Date)
}

fn makes_timestamp(_: &[Type]) -> Result<Type> {
    Ok(Type::Timestamp)
}

/// An operand as a text; `''` where there is none.
fn text(operands: &[Value], at: usize) -> Result<String> {
    Ok(operands.get(at).map(Value::text).transpose()?.flatten().unwrap_or_default())
}

/// An operand as a whole number, if it is given and is one.
fn whole(operands: &[Value], at: usize) -> Result<Option<i64>> {
    Ok(operands.get(at).map(Value::bigint).transpose()?.flatten())
}

/// A text, or NULL.
fn maybe(text: Option<impl Into<String>>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.into()))
}

/// The type that values of several types have together, as Hive's `IF`, `COALESCE` and `GREATEST` find it.
fn common(name: &str, types: &[Type]) -> Result<Type> {
    let mut found = Type::Null;
    for of in types {
        found = match (&found, of) {
            (Type::Null, other) => other.clone(),
            (own, Type::Null) => own.clone(),
            (own, other) if own == other => own.clone(),
            (own, other) if own.is_number() && other.is_number() => wider(own, other),
            (Type::Date, Type::Timestamp) | (Type::Timestamp, Type::Date) => Type::Timestamp,
            _ => return Err(no_function(name, types)),
        };
    }
    Ok(found)
}

/// The type of numbers of both types.
fn wider(a: &Type, b: &Type) -> Type {
    match (a, b) {
        (Type::Double, _) | (_, Type::Double) => Type::Double,
        (Type::Decimal(..), _) | (_, Type::Decimal(..)) => {
            let ((p, s), (q, t)) = (digits(a), digits(b));
            let scale = s.max(t);
            let whole = (i16::from(p) - i16::from(s)).max(i16::from(q) - i16::from(t));
            let precision = (whole + i16::from(scale)).clamp(1, 38);
            Type::Decimal(u8::try_from(precision).unwrap_or(38), scale)
        }
        (Type::Bigint, _) | (_, Type::Bigint) => Type::Bigint,
        _ => Type::Int,
    }
}

/// Digits altogether, and behind the point, that numbers of a type have.
fn digits(of: &Type) -> (u8, i8) {
    match of {
        Type::Decimal(precision, scale) => (*precision, *scale),
        Type::Bigint => (19, 0),
        _ => (10, 0),
    }
}

/// A value as one of a type; NULL where it is none.
fn converted(value: &Value, to: &Type) -> Result<Value> {
    let or_null = |found: Option<Value>| found.unwrap_or(Value::Null);
    Ok(match to {
        _ if value.is_null() => Value::Null,
        Type::Boolean => or_null(value.boolean().map(Value::Boolean)),
        Type::Int => or_null(value.int()?.map(Value::Int)),
        Type::Bigint => or_null(value.bigint()?.map(Value::Bigint)),
        Type::Double => or_null(value.double().map(Value::Double)),
        Type::Decimal(precision, scale) => casts::decimal(value, *precision, *scale),
        Type::Text => maybe(value.text()?),
        Type::Date => or_null(value.date().map(Value::Date)),
        Type::Timestamp => or_null(value.timestamp().map(Value::Timestamp)),
        Type::Null | Type::Binary | Type::List(_) | Type::Map(..) => value.clone(),
    })
}

#[cfg(test)]
mod tests;
