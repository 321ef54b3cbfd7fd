//! A grant: who may do what with what.

use std::collections::BTreeSet;
use std::fmt;

use stoa_error::{Error, Result};
use uuid::Uuid;

/// What can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Privilege {
    /// Read rows, or some columns of them.
    Select,
    /// Add rows.
    Insert,
    /// Change rows.
    Update,
    /// Remove rows.
    Delete,
}

impl Privilege {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Select, Self::Insert, Self::Update, Self::Delete];

    /// The name in SQL, in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    /// The privilege of this name, in letters of either case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|privilege| privilege.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a privilege is granted on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// One table, by the UUID in its metadata: names may change.
    Table(Uuid),
    /// All tables of a namespace (SQL: schema), those to come too.
    Namespace(String),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(uuid) => write!(f, "table {uuid}"),
            Self::Namespace(name) => write!(f, "schema {name}"),
        }
    }
}

/// Whom a privilege is granted to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Grantee {
    /// A role, and so the members of it.
    Role(String),
    /// Every role there is, and will be.
    Public,
}

impl fmt::Display for Grantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(name) => write!(f, "\"{name}\""),
            Self::Public => f.write_str("PUBLIC"),
        }
    }
}

/// One privilege on one object for one grantee.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grant {
    /// On what.
    pub object: Object,
    /// To whom.
    pub grantee: Grantee,
    /// What.
    pub privilege: Privilege,
    /// The columns, by Iceberg field id (at least 1 of them, none negative); only for
    /// [`Privilege::Select`] on a table. `None`: all of them, those to come too.
    pub columns: Option<BTreeSet<i32>>,
}

impl Grant {
    /// A grant on the whole of `object`.
    pub fn new(grantee: Grantee, privilege: Privilege, object: Object) -> Self {
        Self { object, grantee, privilege, columns: None }
    }

    /// The same for some columns only.
    #[must_use]
    pub fn on_columns(mut self, columns: impl IntoIterator<Item = i32>) -> Self {
        self.columns = Some(columns.into_iter().collect());
        self
    }

    /// Checks that columns are named only where they may be.
    ///
    /// # Errors
    /// `Unsupported` (0A000) for columns of another privilege, `Invalid` (0LP01) for columns of a
    /// namespace, for none at all, and for field ids below zero.
    pub fn check(&self) -> Result<()> {
        let Some(columns) = &self.columns else { return Ok(()) };
        if self.privilege != Privilege::Select {
            return Err(Error::unsupported(format!(
                "{} cannot be granted on single columns",
                self.privilege
            ))
            .with_hint("leave out the columns; only SELECT takes them"));
        }
        let wrong = match (&self.object, columns.first()) {
            (Object::Namespace(_), _) => format!("{} has no columns", self.object),
            (Object::Table(_), None) => format!("no columns of {} are named", self.object),
            (Object::Table(_), Some(id)) if *id < 0 => {
                format!("{} has no field {id}", self.object)
            }
            (Object::Table(_), Some(_)) => return Ok(()),
        };
        Err(Error::invalid(wrong).with_sqlstate("0LP01"))
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.privilege)?;
        if let Some(columns) = &self.columns {
            let ids: Vec<_> = columns.iter().map(i32::to_string).collect();
            write!(f, " (fields {})", ids.join(", "))?;
        }
        write!(f, " on {} to {}", self.object, self.grantee)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_table(privilege: Privilege) -> Grant {
        Grant::new(Grantee::Public, privilege, Object::Table(Uuid::nil()))
    }

    fn code(grant: &Grant) -> Option<&'static str> {
        grant.check().err().map(|error| error.sqlstate())
    }

    #[test]
    fn columns_are_for_select_on_tables() {
        assert_eq!(code(&on_table(Privilege::Select).on_columns([1, 7])), None);
        assert_eq!(code(&on_table(Privilege::Select).on_columns([])), Some("0LP01"));
        assert_eq!(code(&on_table(Privilege::Select).on_columns([3, -1])), Some("0LP01"));
        for privilege in [Privilege::Insert, Privilege::Update, Privilege::Delete] {
            assert_eq!(code(&on_table(privilege)), None);
            assert_eq!(code(&on_table(privilege).on_columns([1])), Some("0A000"));
        }
        let namespace = Object::Namespace("public".to_owned());
        let grant = Grant::new(Grantee::Public, Privilege::Select, namespace);
        assert_eq!(code(&grant), None);
        assert_eq!(code(&grant.on_columns([1])), Some("0LP01"));
    }

    #[test]
    fn names_of_privileges_come_back() {
        for privilege in Privilege::ALL {
            assert_eq!(Privilege::parse(privilege.name()), Some(privilege));
        }
        assert_eq!(Privilege::parse("select"), Some(Privilege::Select));
        assert_eq!(Privilege::parse("TRUNCATE"), None);
    }

    #[test]
    fn a_grant_reads_like_the_statement() {
        let grant = on_table(Privilege::Select).on_columns([2, 1]);
        let table = Uuid::nil();
        assert_eq!(grant.to_string(), format!("SELECT (fields 1, 2) on table {table} to PUBLIC"));
    }
}
