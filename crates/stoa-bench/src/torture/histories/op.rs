//! What a session noted of one statement: when it was sent, when it was answered, how it ended.

use stoa_error::Error;

/// Nanoseconds since the history began, of one monotonic clock.
pub(crate) type Moment = u64;

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was acknowledged.
    Done,
    /// It was refused, and has done nothing.
    Refused,
    /// Nobody knows: the connection broke, or the server said that it does not know.
    Unknown,
}

/// One statement, without what it did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The server that it was sent to.
    pub server: usize,
    /// When it was sent; of a statement that takes rows, when the last of them was.
    pub sent: Moment,
    /// When its answer was there, or it was given up.
    pub ended: Moment,
    pub end: End,
}

impl Span {
    /// Whether it was over before `other` was sent, whatever clocks the servers have.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        self.ended < other.sent
    }

    /// Whether its effect may be there at some moment up to the end of `other`.
    pub(crate) fn may_be_seen_by(&self, other: &Self) -> bool {
        self.end != End::Refused && self.sent < other.ended
    }
}

/// A history that cannot be.
pub(crate) fn wrong(what: impl Into<String>) -> Error {
    Error::corrupt(what)
}

/// A statement of a hand-made history.
#[cfg(test)]
pub(crate) fn span(sent: Moment, ended: Moment, end: End) -> Span {
    Span { server: 0, sent, ended, end }
}
