//! How a table or view is named.

use std::fmt;

/// The name of a table or view inside a catalog. Namespace levels are joined by dots, as the JDBC catalog
/// stores them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableIdent {
    /// The namespace (SQL: schema).
    pub namespace: String,
    /// Its own name.
    pub name: String,
}

impl TableIdent {
    /// Names the table or view `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for TableIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace, self.name)
    }
}
