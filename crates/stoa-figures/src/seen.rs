//! Who may see figures, and how many rows there are of them.

/// Who may see the rows of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// Superusers; what holds where nothing is said.
    #[default]
    Superusers,
    /// Whoever is logged in.
    Everyone,
    /// Rows about somebody's own doings: that one, and superusers.
    Owner,
    /// Rows about tables: who may read something of the table, and superusers; whoever fills the group
    /// leaves the others out.
    Granted,
}

impl Seen {
    /// The sentence of documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Superusers => "superusers",
            Self::Everyone => "everyone",
            Self::Owner => "superusers; everyone their own rows",
            Self::Granted => "superusers; everyone the tables they may read",
        }
    }
}

/// Who looks.
#[derive(Clone, Copy, Debug)]
pub struct Viewer<'a> {
    /// The role.
    pub role: &'a str,
    /// Whether it may see everything.
    pub is_superuser: bool,
}

/// How many rows a group has, and what they are in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One: an object.
    One,
    /// One or none: an object or null.
    Maybe,
    /// Any number: a list of objects.
    Many,
    /// One, whose members are those of the whole document.
    Top,
}
