//! A role: a user, a group, or both.

use stoa_error::{Error, Result};

use crate::ScramSecret;

/// Names that mean something else where a role is expected (PostgreSQL: `check_rolespec_name`).
const RESERVED: [&str; 2] = ["public", "none"];

/// A role, as PostgreSQL has them. What it says holds for the role itself; members of it get its
/// grants and tables, never its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The name, normalised by whoever parsed it: compared byte by byte.
    pub name: String,
    /// Whether a client may log in under this name.
    pub can_login: bool,
    /// Whether it may do everything.
    pub is_superuser: bool,
    /// What its password is checked with; without one no password is right.
    pub secret: Option<ScramSecret>,
}

impl Role {
    /// A role that may not log in, is no superuser and has no password.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), can_login: false, is_superuser: false, secret: None }
    }

    /// Checks that a role may have `name`: not empty, not reserved.
    ///
    /// # Errors
    /// `Invalid`: 42602 for no name, 42939 for `public`, `none` and what begins with `pg_`.
    pub fn check_name(name: &str) -> Result<()> {
        if name.is_empty() {
            return Err(Error::invalid("a role needs a name").with_sqlstate("42602"));
        }
        if RESERVED.contains(&name) || name.starts_with("pg_") {
            return Err(Error::invalid(format!("role name \"{name}\" is reserved"))
                .with_sqlstate("42939")
                .with_hint("choose another name that does not begin with pg_"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_refused() {
        let code = |name| Role::check_name(name).err().map(|error| error.sqlstate());
        assert_eq!(code(""), Some("42602"));
        for name in ["public", "none", "pg_read_all_data"] {
            assert_eq!(code(name), Some("42939"), "{name}");
        }
        for name in ["ann", "Public", "pgbouncer", "ä"] {
            assert_eq!(code(name), None, "{name}");
        }
    }
}
