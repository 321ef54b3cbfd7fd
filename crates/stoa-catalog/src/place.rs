//! Where a catalog is: a file, or a database of PostgreSQL.

use std::fmt;
use std::path::{Path, PathBuf};

use stoa_error::Result;

use crate::Catalog;

/// The place of a catalog.
#[derive(Clone, PartialEq, Eq)]
pub enum CatalogPlace {
    /// A file of SQLite on a local disk.
    File(PathBuf),
    /// The URL of a database of PostgreSQL. It may hold a password, which is never shown.
    Postgres(String),
}

impl CatalogPlace {
    /// The database that a URL such as `postgres://host/database` means; `None` for other texts.
    pub fn postgres(text: &str) -> Option<Self> {
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        is_url.then(|| Self::Postgres(text.to_owned()))
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Postgres(_) => None,
        }
    }

    /// Opens the catalog; `name` is the key of its rows there.
    ///
    /// # Errors
    /// `Unavailable` where the file or the database cannot be used.
    pub async fn open(&self, name: &str) -> Result<Catalog> {
        match self {
            Self::File(file) => Catalog::open(file, name).await,
            Self::Postgres(url) => Catalog::connect(url, name).await,
        }
    }
}

impl From<PathBuf> for CatalogPlace {
    fn from(file: PathBuf) -> Self {
        Self::File(file)
    }
}

/// The file, or the URL without its password.
impl fmt::Display for CatalogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for CatalogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CatalogPlace({self})")
    }
}

/// A URL with `…` for its password, wherever that stands.
fn without_password(url: &str) -> String {
    let (head, query) = match url.split_once('?') {
        Some((head, query)) => (head, Some(query)),
        None => (url, None),
    };
    let (scheme, rest) = head.split_once("://").unwrap_or(("", head));
    // The last `@`: a password may have others.
    let authority_end = rest.rfind('/').filter(|at| rest.rfind('@').is_none_or(|user| user < *at));
    let (authority, path) = rest.split_at(authority_end.unwrap_or(rest.len()));
    let shown = match authority.rsplit_once('@') {
        Some((login, host)) => match login.split_once(':') {
            Some((user, _)) => format!("{user}:…@{host}"),
            None => format!("{login}@{host}"),
        },
        None => authority.to_owned(),
    };
    let mut text = format!("{scheme}://{shown}{path}");
    if let Some(query) = query {
        let hidden = |pair: &str| match pair.split_once('=') {
            Some((key, _)) if key.eq_ignore_ascii_case("password") => format!("{key}=…"),
            _ => pair.to_owned(),
        };
        let pairs: Vec<String> = query.split('&').map(hidden).collect();
        text.push('?');
        text.push_str(&pairs.join("&"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (url, shown) in [
            ("postgres://stoa:hunter2@db:5432/stoa", "postgres://stoa:…@db:5432/stoa"),
            ("postgresql://stoa:hun@ter2@db/stoa", "postgresql://stoa:…@db/stoa"),
            ("postgres://stoa:hun/ter2@db/stoa", "postgres://stoa:…@db/stoa"),
            ("postgres://stoa@db/stoa", "postgres://stoa@db/stoa"),
            ("postgres://db/stoa?user=a&password=hunter2", "postgres://db/stoa?user=a&password=…"),
            ("postgres:///stoa?host=/var/run", "postgres:///stoa?host=/var/run"),
        ] {
            let place = CatalogPlace::postgres(url).unwrap();
            assert_eq!(place.to_string(), shown);
            assert!(!format!("{place:?}").contains("ter2"));
        }
        assert_eq!(CatalogPlace::postgres("/srv/catalog.db"), None);
    }
}
