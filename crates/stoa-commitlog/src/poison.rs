//! Why a log has stopped. Kept as data, since everybody who waits is told.

use stoa_error::{Condition, Error, ErrorKind};

/// The error after which a log takes no more writes until it is opened again.
#[derive(Clone, Debug)]
pub(crate) struct Poison {
    place: String,
    sqlstate: &'static str,
    cause: String,
    hint: String,
}

impl Poison {
    pub(crate) fn new(place: &str, cause: &Error) -> Self {
        let fenced = cause.kind() == ErrorKind::Conflict;
        // Not retryable here: the same daemon will refuse again until it has recovered.
        let sqlstate = if fenced { "57P03" } else { cause.sqlstate() };
        let hint = match (fenced, cause.hint()) {
            (true, _) => "another daemon has taken this log over; connect to that one",
            (false, Some(hint)) => hint,
            (false, None) => "find the cause, then start again",
        };
        Self {
            place: place.to_owned(),
            sqlstate,
            cause: cause.message_with_sources(),
            hint: hint.to_owned(),
        }
    }

    /// For a log whose writer is gone without an error, which is a bug or a simulated crash.
    pub(crate) fn abandoned(place: &str) -> Self {
        Self::new(place, &Error::internal("the log's writer is gone"))
    }

    /// What happened, in one line.
    pub(crate) fn cause(&self) -> &str {
        &self.cause
    }

    /// The error for an append that was not written.
    pub(crate) fn refusal(&self) -> Error {
        let message = format!("the commit log {} has stopped: {}", self.place, self.cause);
        Error::unavailable(message).with_sqlstate(self.sqlstate).with_hint(self.hint.clone())
    }

    /// The error for an append that was being written.
    pub(crate) fn unknown_outcome(&self) -> Error {
        self.refusal().with_condition(Condition::UnknownOutcome).with_detail(
            "whether the rows being written are kept is known when the log is opened again",
        )
    }
}
