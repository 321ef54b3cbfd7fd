//! Errors of this daemon's own about its peers, as opposed to errors that peers answer with.

use std::fmt;
use std::time::Duration;

use stoa_cluster::DaemonId;
use stoa_error::{Error, ErrorKind};

/// No connection could be made, so the request was not sent.
const NOT_CONNECTED: &str = "08001";
/// The connection was lost, or no answer came in time: the peer may have handled the request.
const CONNECTION_LOST: &str = "08006";
/// Too large for a frame.
const TOO_LARGE: &str = "54000";

/// Whether the error says that a peer did not answer: it could not be reached (08001), or the connection
/// to it was lost or its answer was late (08006), and then it may have handled the request. Errors that the
/// peer answered with, such as 57P03 while it shuts down, are not meant.
pub fn is_unreachable(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable
        && matches!(error.sqlstate(), NOT_CONNECTED | CONNECTION_LOST)
}

pub(crate) fn not_a_member(daemon: DaemonId) -> Error {
    Error::unavailable(format!("daemon {daemon} is not a living member of the cluster"))
        .with_sqlstate(NOT_CONNECTED)
}

pub(crate) fn cannot_connect(daemon: DaemonId, address: &str, why: impl fmt::Display) -> Error {
    Error::unavailable(format!("cannot connect to daemon {daemon} at {address}: {why}"))
        .with_sqlstate(NOT_CONNECTED)
}

pub(crate) fn lost(daemon: DaemonId, why: impl fmt::Display) -> Error {
    Error::unavailable(format!("lost the connection to daemon {daemon}: {why}"))
        .with_sqlstate(CONNECTION_LOST)
}

pub(crate) fn late(daemon: DaemonId, limit: Duration) -> Error {
    let limit = limit.as_millis();
    Error::unavailable(format!("daemon {daemon} did not answer within {limit} ms"))
        .with_sqlstate(CONNECTION_LOST)
}

pub(crate) fn late_to_connect(daemon: DaemonId, limit: Duration) -> Error {
    let limit = limit.as_millis();
    Error::unavailable(format!("no connection to daemon {daemon} within {limit} ms"))
        .with_sqlstate(NOT_CONNECTED)
}

/// `what` is a request or an answer.
pub(crate) fn too_large(what: &str, bytes: usize, bytes_max: usize) -> Error {
    Error::invalid(format!("{what} of {bytes} bytes is too large to be sent to another daemon"))
        .with_sqlstate(TOO_LARGE)
        .with_detail(format!("the limit is {bytes_max} bytes"))
}

pub(crate) fn no_answer() -> Error {
    Error::internal("a request from another daemon ended without an answer")
}

pub(crate) fn shutting_down() -> Error {
    Error::unavailable("the daemon is shutting down").with_hint("ask another daemon")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_peer_are_not_errors_about_it() {
        let daemon = DaemonId::from_bits(1);
        assert!(is_unreachable(&not_a_member(daemon)));
        assert!(is_unreachable(&cannot_connect(daemon, "a:1", "refused")));
        assert!(is_unreachable(&lost(daemon, "end of stream")));
        assert!(is_unreachable(&late(daemon, Duration::from_secs(1))));
        assert!(!is_unreachable(&too_large("a request", 2, 1)));
        assert!(!is_unreachable(&shutting_down()));
    }
}
