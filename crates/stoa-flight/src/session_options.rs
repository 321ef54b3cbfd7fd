//! The actions of Flight's sessions: `SetSessionOptions`, `GetSessionOptions`, `CloseSession`.
//!
//! `catalog` and `schema` are what ADBC and JDBC call the database and the namespace; other names
//! are settings, as `SET` knows them. (Arrow's crate has no types for these messages yet.)

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;
use stoa_error::{Condition, Error, Result};
use stoa_query::{DATABASE, Session};

use crate::ingest::check_catalog;

/// Sets options; the answer names those that were refused.
///
/// # Errors
/// A body that cannot be read.
pub(crate) fn set(session: &Session, body: &[u8]) -> Result<Bytes> {
    let request = SetRequest::decode(body).map_err(unreadable)?;
    let mut errors = HashMap::new();
    for (name, value) in request.session_options {
        let outcome = match value.value.map(Value::into_text) {
            Some(text) => set_one(session, &name, text.as_deref()),
            None => set_one(session, &name, None),
        };
        if let Err(error) = outcome {
            let value = match error.is(Condition::UndefinedObject) {
                true => INVALID_NAME,
                false => INVALID_VALUE,
            };
            errors.insert(name, OptionError { value });
        }
    }
    Ok(SetResult { errors }.encode_to_vec().into())
}

fn set_one(session: &Session, name: &str, value: Option<&str>) -> Result<()> {
    match name {
        "catalog" => check_catalog(value),
        "schema" => session.set("search_path", value),
        setting => session.set(setting, value),
    }
}

/// All options with their values.
pub(crate) fn get(session: &Session) -> Bytes {
    let text = |text: String| OptionValue { value: Some(Value::Text(text)) };
    let session_options = HashMap::from([
        ("catalog".to_owned(), text(DATABASE.to_owned())),
        ("schema".to_owned(), text(session.namespace())),
    ]);
    GetResult { session_options }.encode_to_vec().into()
}

/// What is answered to `CloseSession`.
pub(crate) fn closed(there_was_one: bool) -> Bytes {
    let status = if there_was_one { CLOSED } else { NOT_CLOSEABLE };
    CloseResult { status }.encode_to_vec().into()
}

fn unreadable(source: prost::DecodeError) -> Error {
    Error::invalid("the session options cannot be read").with_sqlstate("08P01").with_source(source)
}

const INVALID_NAME: i32 = 1;
const INVALID_VALUE: i32 = 2;
const CLOSED: i32 = 1;
const NOT_CLOSEABLE: i32 = 3;

#[derive(Clone, PartialEq, Message)]
struct SetRequest {
    #[prost(map = "string, message", tag = "1")]
    session_options: HashMap<String, OptionValue>,
}

#[derive(Clone, PartialEq, Message)]
struct OptionValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Truth(bool),
    #[prost(sfixed64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    Texts(Texts),
}

impl Value {
    /// As `SET` takes it; an empty text resets.
    fn into_text(self) -> Option<String> {
        let text = match self {
            Self::Text(text) => text,
            Self::Truth(truth) => truth.to_string(),
            Self::Integer(integer) => integer.to_string(),
            Self::Double(double) => double.to_string(),
            Self::Texts(texts) => texts.values.join(", "),
        };
        (!text.is_empty()).then_some(text)
    }
}

#[derive(Clone, PartialEq, Message)]
struct Texts {
    #[prost(string, repeated, tag = "1")]
    values: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct SetResult {
    #[prost(map = "string, message", tag = "1")]
    errors: HashMap<String, OptionError>,
}

#[derive(Clone, PartialEq, Message)]
struct OptionError {
    #[prost(int32, tag = "1")]
    value: i32,
}

#[derive(Clone, PartialEq, Message)]
struct GetResult {
    #[prost(map = "string, message", tag = "1")]
    session_options: HashMap<String, OptionValue>,
}

#[derive(Clone, PartialEq, Message)]
struct CloseResult {
    #[prost(int32, tag = "1")]
    status: i32,
}
