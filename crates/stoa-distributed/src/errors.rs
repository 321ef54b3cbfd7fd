//! Errors on their way from one daemon to another.
//!
//! The library sends errors of the engine by their kind, and all else as its text. So an error goes as a text that
//! contains all of it in hexadecimal digits behind a mark; whatever is put around it on the way does no harm.

use datafusion::error::DataFusionError;
use stoa_error::Error;
use stoa_peers::{decode_error, encode_error};
use stoa_semantics::errors::{from_datafusion, to_datafusion};

/// Where the digits begin.
const MARK: &str = "[stoa error ";
/// Where they end.
const END: char = ']';

/// An error of a task, so that it reaches another daemon with its SQLSTATE and hint.
pub fn sent(error: DataFusionError) -> DataFusionError {
    let error = from_datafusion(received(error));
    let digits: String = encode_error(&error).iter().map(|byte| format!("{byte:02x}")).collect();
    DataFusionError::Execution(format!("{MARK}{digits}{END}"))
}

/// An error of a plan that other daemons compute as well, as it was before [`sent`].
pub fn received(error: DataFusionError) -> DataFusionError {
    if is_ours(&error) {
        return error;
    }
    match found(&error.to_string()) {
        Some(ours) => to_datafusion(ours),
        None if is_of_the_way(&error) => to_datafusion(lost(error)),
        None => error,
    }
}

fn is_ours(error: &DataFusionError) -> bool {
    matches!(error, DataFusionError::External(source) if source.is::<Error>())
}

fn found(text: &str) -> Option<Error> {
    let (_, rest) = text.split_once(MARK)?;
    let (digits, _) = rest.split_once(END)?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    decode_error(&bytes?)
}

/// Whether the error is one of sending and receiving.
fn is_of_the_way(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(source) => {
            source.is::<tonic::Status>() || source.is::<tonic::transport::Error>()
        }
        _ => false,
    }
}

fn lost(source: DataFusionError) -> Error {
    Error::unavailable("a daemon that computed a part of the statement does not answer any more")
        .with_sqlstate("57P03")
        .with_hint("run the statement again; the other daemons go on without that one")
        .with_source(source)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn an_error_stays_itself_over_two_daemons() {
        let error = || {
            Error::invalid("division by zero").with_sqlstate("22012").with_hint("use nullif(b, 0)")
        };
        let once = sent(to_datafusion(error()));
        let as_text = DataFusionError::Execution(format!("External error: {once}\ncaused by a]"));
        let shared = DataFusionError::Shared(Arc::new(sent(as_text)));
        let back =
            from_datafusion(received(DataFusionError::Context("here".into(), Box::new(shared))));
        assert_eq!(back.sqlstate(), "22012");
        assert_eq!(back.message(), error().message());
        assert_eq!(back.hint(), error().hint());
    }

    #[test]
    fn a_lost_connection_says_so() {
        let status = tonic::Status::unavailable("broken pipe");
        let error = from_datafusion(received(DataFusionError::External(Box::new(status))));
        assert_eq!(error.sqlstate(), "57P03");
        assert!(error.is_retryable());
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        for text in ["[stoa error zz]", "[stoa error 00", "too large"] {
            let error = received(DataFusionError::ResourcesExhausted(text.to_owned()));
            assert!(matches!(error, DataFusionError::ResourcesExhausted(_)), "{error}");
        }
    }
}
