//! Errors as gRPC statuses.
//!
//! The message has what a user reads: message, detail, hint, SQLSTATE. Programs find code and kind
//! in the details, as `google.rpc.ErrorInfo` with the SQLSTATE as its reason, and `RetryInfo` where
//! the same call may succeed later.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;
use stoa_error::{Condition, Error, ErrorKind};
use tonic::{Code, Status};

/// Characters of a part of the message: all must fit into 8 KiB of headers, encoded.
const PART_CHARS_MAX: usize = 500;

/// What a call is answered with.
pub(crate) fn status(error: &Error) -> Status {
    log(error);
    let code = match error.kind() {
        ErrorKind::Forbidden if is_of_login(error) => Code::Unauthenticated,
        kind => Code::from_i32(kind.grpc_code()),
    };
    let text = text(error);
    let details = details(error, code, &text);
    Status::with_details(code, text, details)
}

/// Whether the client is not let in, whoever it is.
fn is_of_login(error: &Error) -> bool {
    error.is(Condition::InvalidAuthorization) || error.is(Condition::InvalidPassword)
}

/// Damage and bugs are for somebody here to look at; the rest is the client's.
fn log(error: &Error) {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Internal => {
            tracing::error!(sqlstate = error.sqlstate(), ?error, "call failed");
        }
        _ => tracing::debug!(sqlstate = error.sqlstate(), ?error, "call failed"),
    }
}

fn text(error: &Error) -> String {
    let mut text = cut(&error.message_with_sources());
    for (name, part) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
        if let Some(part) = part {
            text.push_str(&format!("\n{name}: {}", cut(part)));
        }
    }
    text.push_str(&format!("\nSQLSTATE: {}", error.sqlstate()));
    text
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(PART_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Clients that read details show the message that is in them, and refuse another code than the status's.
fn details(error: &Error, code: Code, text: &str) -> Bytes {
    let mut metadata = HashMap::from([("kind".to_owned(), error.kind().name().to_owned())]);
    if let Some(position) = error.position() {
        metadata.insert("position".to_owned(), position.to_string());
    }
    let info =
        ErrorInfo { reason: error.sqlstate().to_owned(), domain: "stoa".to_owned(), metadata };
    let mut details = vec![packed("google.rpc.ErrorInfo", &info)];
    if error.kind().is_retryable() {
        let retry = RetryInfo { retry_delay: Some(Delay { seconds: 1, nanos: 0 }) };
        details.push(packed("google.rpc.RetryInfo", &retry));
    }
    let code = i32::from(code);
    RpcStatus { code, message: text.to_owned(), details }.encode_to_vec().into()
}

fn packed(name: &str, message: &impl Message) -> Packed {
    let type_url = format!("type.googleapis.com/{name}");
    Packed { type_url, value: message.encode_to_vec() }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Packed>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Packed {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_read_all_parts_and_programs_find_the_code() {
        let error = Error::not_found("no table t")
            .with_condition(Condition::UndefinedTable)
            .with_hint("look");
        let status = status(&error);
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message(), "no table t\nHINT: look\nSQLSTATE: 42P01");
        let details = RpcStatus::decode(status.details()).unwrap().details;
        let info = ErrorInfo::decode(details[0].value.as_slice()).unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("42P01", "stoa"));
        assert_eq!(details.len(), 1);
    }

    #[test]
    fn the_details_have_the_code_of_the_status() {
        let wrong = Error::new(ErrorKind::Forbidden, "wrong password")
            .with_condition(Condition::InvalidPassword);
        let denied = Error::new(ErrorKind::Forbidden, "denied").with_sqlstate("42501");
        for (error, code) in [(wrong, Code::Unauthenticated), (denied, Code::PermissionDenied)] {
            let status = status(&error);
            assert_eq!(status.code(), code);
            let details = RpcStatus::decode(status.details()).unwrap();
            assert_eq!(Code::from_i32(details.code), code);
        }
    }

    #[test]
    fn what_may_succeed_later_says_so_and_long_texts_are_cut() {
        let error = Error::new(ErrorKind::Exhausted, "ä".repeat(10_000));
        let status = status(&error);
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().chars().count() < 1000);
        assert_eq!(RpcStatus::decode(status.details()).unwrap().details.len(), 2);
    }
}
