//! The conditions that code tells apart, by name.

/// A condition of PostgreSQL's list (appendix A) on which code decides. Other errors carry their
/// SQLSTATE for clients only; see [`Error::with_sqlstate`](crate::Error::with_sqlstate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// There is no such table.
    UndefinedTable,
    /// There is no such schema or namespace.
    UndefinedSchema,
    /// There is no such setting, type or other thing without a condition of its own.
    UndefinedObject,
    /// There is a table of this name.
    DuplicateTable,
    /// The name is another kind of thing, such as a view where a table is needed.
    WrongObjectType,
    /// Something else still needs the thing, such as the tables of a schema.
    DependentObjects,
    /// Another process or session has it.
    ObjectInUse,
    /// All places for sessions or statements are taken.
    TooManyConnections,
    /// Stoa does not do this.
    FeatureNotSupported,
    /// The client is not let in.
    InvalidAuthorization,
    /// The password is wrong, or there is no such role.
    InvalidPassword,
    /// Nobody knows whether the change was made.
    UnknownOutcome,
}

impl Condition {
    /// Its SQLSTATE.
    pub const fn sqlstate(self) -> &'static str {
        match self {
            Self::UndefinedTable => "42P01",
            Self::UndefinedSchema => "3F000",
            Self::UndefinedObject => "42704",
            Self::DuplicateTable => "42P07",
            Self::WrongObjectType => "42809",
            Self::DependentObjects => "2BP01",
            Self::ObjectInUse => "55006",
            Self::TooManyConnections => "53300",
            Self::FeatureNotSupported => "0A000",
            Self::InvalidAuthorization => "28000",
            Self::InvalidPassword => "28P01",
            Self::UnknownOutcome => "08007",
        }
    }
}
