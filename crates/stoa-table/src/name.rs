//! Which names tables, views and namespaces may have.

use stoa_error::{Error, Result};

/// A name must be usable as one directory.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let bad = name.is_empty()
        || name.len() > 200
        || name.starts_with('.')
        || name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\'));
    if !bad {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} name {name:?} is not usable"))
        .with_sqlstate("42602")
        .with_hint("use 1 to 200 bytes without slashes or control characters, no leading dot"))
}
