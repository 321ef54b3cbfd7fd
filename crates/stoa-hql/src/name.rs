//! Names of namespaces and tables: what HQL writes, and the full path it stands for.

use std::fmt;

use stoa_error::{Error, Result};

/// A namespace by its full path; the root has no parts and always exists.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacePath(Vec<String>);

impl NamespacePath {
    /// The namespace that holds all others.
    pub fn root() -> Self {
        Self::default()
    }

    /// What `text` stands for in this namespace: with a leading `/` a full path, else one relative
    /// to this. Repeated and trailing `/` do not count.
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) for `.` and `..` and for characters that names
    /// may not have.
    pub fn resolve(&self, text: &str) -> Result<Self> {
        let mut parts = if text.starts_with('/') { Vec::new() } else { self.0.clone() };
        for part in text.split('/').filter(|part| !part.is_empty()) {
            check_part(part)?;
            parts.push(part.to_owned());
        }
        Ok(Self(parts))
    }

    /// The names from the root down.
    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The namespace that holds this one; none for the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// The last part of the path; none for the root.
    pub fn name(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }
}

impl fmt::Display for NamespacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0.join("/"))
    }
}

/// A table by its namespace and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The namespace that holds it.
    pub namespace: NamespacePath,
    /// Its name there.
    pub name: String,
}

impl TableName {
    /// What `text` stands for in `namespace`: a name, or a path as in
    /// [`NamespacePath::resolve`] that ends with a name.
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) if there is no name or it has characters that
    /// names may not have.
    pub fn resolve(namespace: &NamespacePath, text: &str) -> Result<Self> {
        let mut path = namespace.resolve(text)?;
        match path.0.pop() {
            Some(name) if !text.ends_with('/') => Ok(Self { namespace: path, name }),
            _ => Err(Error::invalid(format!("\"{text}\" names no table"))
                .with_sqlstate("42602")
                .with_hint("write a table's name, or namespace/name")),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_root() {
            return write!(f, "/{}", self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Refuses what would not print back as HQL, or means something else: quotes, control characters,
/// `^` (Hypertable's mark of index tables), `.` and `..`.
fn check_part(part: &str) -> Result<()> {
    let bad = |what: String| {
        Err(Error::invalid(format!("{what} in the name \"{}\"", part.escape_debug()))
            .with_sqlstate("42602"))
    };
    if part == "." || part == ".." {
        return bad("\".\" and \"..\" stand for no namespace".to_owned());
    }
    match part.chars().find(|c| c.is_control() || matches!(c, '\'' | '"' | '^' | '\\')) {
        Some(c) => bad(format!("the character '{}' may not be", c.escape_debug())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_unless_they_start_at_the_root() {
        let test = NamespacePath::root().resolve("/test").unwrap();
        assert_eq!(test.resolve("sub//x/").unwrap().to_string(), "/test/sub/x");
        assert_eq!(test.resolve("/other").unwrap().to_string(), "/other");
        assert_eq!(TableName::resolve(&test, "t").unwrap().to_string(), "/test/t");
        assert_eq!(TableName::resolve(&test, "/a/t").unwrap().to_string(), "/a/t");
        assert_eq!(TableName::resolve(&NamespacePath::root(), "t").unwrap().to_string(), "/t");
        assert_eq!(test.parent(), Some(NamespacePath::root()));
        assert_eq!(NamespacePath::root().parent(), None);
    }

    #[test]
    fn names_that_cannot_be_written_are_refused() {
        for text in ["^t", "a'b", "a/../b", ".", "new\nline", "", "/", "ns/"] {
            assert!(TableName::resolve(&NamespacePath::root(), text).is_err(), "{text:?}");
        }
        assert!(TableName::resolve(&NamespacePath::root(), "query-log").is_ok());
    }
}
