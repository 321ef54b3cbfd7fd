//! The error itself: primary message, place, detail, hint, code and source.

use std::fmt;
use std::sync::OnceLock;

use crate::{Condition, ErrorKind, Place, Subject};

/// Short for a result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// An error as users read it: what was wrong, where, and what to do.
///
/// The primary message is one lower-case sentence without a full stop: the places, from the widest
/// to the narrowest, and what is wrong there, with the value. `detail` adds facts, `hint` says what
/// to do. The source is chained, not repeated.
///
/// Code decides on the kind, the [`Condition`] and the [`Place`]s, never on a text.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    sqlstate: Option<&'static str>,
    /// What is wrong, without the places.
    problem: String,
    /// The widest first.
    places: Vec<Place>,
    /// Places and problem, once somebody wants to read them.
    message: OnceLock<String>,
    detail: Option<String>,
    hint: Option<String>,
    position: Option<usize>,
    subject: Option<Subject>,
    source: Option<Source>,
}

impl Error {
    /// Makes an error of `kind`; `message` is lower case, without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            sqlstate: None,
            problem: message.into(),
            places: Vec::new(),
            message: OnceLock::new(),
            detail: None,
            hint: None,
            position: None,
            subject: None,
            source: None,
        }))
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Stoa does not do this.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// The thing named does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The thing to be made exists.
    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::AlreadyExists, message)
    }

    /// Somebody else changed it.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// Stored bytes are damaged.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// A needed part does not answer.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// A bug.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Sets a condition that code tells apart.
    #[must_use]
    pub fn with_condition(self, condition: Condition) -> Self {
        self.with_sqlstate(condition.sqlstate())
    }

    /// Sets an SQLSTATE more exact than the kind's own (five characters), for clients. Where code
    /// decides on it, use [`Self::with_condition`].
    #[must_use]
    pub fn with_sqlstate(mut self, sqlstate: &'static str) -> Self {
        self.0.sqlstate = Some(sqlstate);
        self
    }

    /// Adds facts that do not fit the message.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Points at a character of the statement, counted from 1.
    #[must_use]
    pub fn with_position(mut self, position: usize) -> Self {
        self.0.position = Some(position);
        self
    }

    /// Says which part of the statement is meant, for who has the statement's text.
    #[must_use]
    pub fn about(mut self, subject: Subject) -> Self {
        self.0.subject = Some(subject);
        self
    }

    /// Chains what caused this.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Says where: in front of the places known so far, and of the message.
    #[must_use]
    pub fn at(mut self, place: impl Into<Place>) -> Self {
        self.0.places.insert(0, place.into());
        self.0.message = OnceLock::new();
        self
    }

    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The SQLSTATE: the exact one if known, else the kind's.
    pub fn sqlstate(&self) -> &'static str {
        self.0.sqlstate.unwrap_or_else(|| self.0.kind.sqlstate())
    }

    /// Whether the same request may be sent again without harm. Not where it is unknown whether it
    /// was carried out (08007): then a repetition may do it twice.
    pub fn is_retryable(&self) -> bool {
        self.kind().is_retryable() && !self.is(Condition::UnknownOutcome)
    }

    /// Whether this is the condition.
    pub fn is(&self, condition: Condition) -> bool {
        self.sqlstate() == condition.sqlstate()
    }

    /// Where it is, the widest place first.
    pub fn places(&self) -> &[Place] {
        &self.0.places
    }

    /// What is wrong there: the primary message without the places.
    pub fn problem(&self) -> &str {
        &self.0.problem
    }

    /// The primary message: `"{place}: {place}: {problem}"`.
    pub fn message(&self) -> &str {
        if self.0.places.is_empty() {
            return &self.0.problem;
        }
        self.0.message.get_or_init(|| {
            let mut message = String::new();
            for place in &self.0.places {
                message.push_str(&format!("{place}: "));
            }
            message + &self.0.problem
        })
    }

    /// More facts.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// What to do.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Character of the statement the error points at, counted from 1.
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// The part of the statement that is meant, as far as it is known.
    pub fn subject(&self) -> Option<&Subject> {
        self.0.subject.as_ref()
    }

    /// The message followed by those of its sources, each once.
    pub fn message_with_sources(&self) -> String {
        self.with_sources(self.message())
    }

    /// A copy, for one more who waits for the same. Of the sources it has the texts.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self(Box::new(Inner {
            kind: self.0.kind,
            sqlstate: self.0.sqlstate,
            problem: self.with_sources(&self.0.problem),
            places: self.0.places.clone(),
            message: OnceLock::new(),
            detail: self.0.detail.clone(),
            hint: self.0.hint.clone(),
            position: self.0.position,
            subject: self.0.subject.clone(),
            source: None,
        }))
    }

    fn with_sources(&self, message: &str) -> String {
        let mut text = message.to_owned();
        let mut next = std::error::Error::source(self);
        while let Some(source) = next {
            let part = source.to_string();
            if !text.ends_with(&part) {
                text.push_str(": ");
                text.push_str(&part);
            }
            next = source.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.kind().name(), self.sqlstate(), self.message_with_sources())?;
        if let Some(detail) = self.detail() {
            write!(f, "; detail: {detail}")?;
        }
        if let Some(hint) = self.hint() {
            write!(f, "; hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|s| s.as_ref() as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_with_sources_names_each_cause_once() {
        let io = std::io::Error::other("disk full");
        let error = Error::unavailable("cannot write data.orc").with_source(io).at("load");
        assert_eq!(error.message_with_sources(), "load: cannot write data.orc: disk full");
        assert_eq!(error.sqlstate(), "57P03");
    }

    #[test]
    fn places_are_kept_as_data_and_read_from_the_widest() {
        let column = Place::Column { id: 2, path: "a.b".to_owned() };
        let error = Error::corrupt("ends early").at(column.clone());
        assert_eq!(error.message(), "column 2 (a.b): ends early");
        let error = error.at(Place::Stripe(1)).at(Place::file("t.orc"));
        assert_eq!(error.to_string(), "t.orc: stripe 1: column 2 (a.b): ends early");
        assert_eq!(error.places(), [Place::file("t.orc"), Place::Stripe(1), column]);
        assert_eq!(error.problem(), "ends early");
    }

    #[test]
    fn a_copy_reads_like_the_error() {
        let io = std::io::Error::other("disk full");
        let error = Error::unavailable("cannot write").at(Place::file("a.orc")).with_source(io);
        let error = error.with_condition(Condition::ObjectInUse).with_hint("wait").with_position(7);
        let copy = error.copied();
        assert_eq!(copy.message(), "a.orc: cannot write: disk full");
        assert_eq!(copy.message_with_sources(), error.message_with_sources());
        assert_eq!(copy.places(), error.places());
        assert!(copy.is(Condition::ObjectInUse));
        assert_eq!((copy.hint(), copy.position()), (Some("wait"), Some(7)));
    }

    #[test]
    fn what_may_have_been_done_is_not_to_be_repeated() {
        let refused = Error::unavailable("the log has stopped");
        assert!(refused.is_retryable());
        assert!(!refused.with_condition(Condition::UnknownOutcome).is_retryable());
        assert!(!Error::invalid("nonsense").is_retryable());
    }

    #[test]
    fn an_exact_sqlstate_wins_over_the_kind() {
        let error = Error::not_found("no table t").with_condition(Condition::UndefinedTable);
        assert_eq!(error.sqlstate(), "42P01");
        assert!(error.is(Condition::UndefinedTable) && !error.is(Condition::UndefinedSchema));
        assert_eq!(error.kind().http_status(), 404);
    }
}
