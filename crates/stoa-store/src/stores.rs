//! One store per scheme and authority, opened once.

use std::collections::HashMap;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::Mutex;
use stoa_error::{Error, Result};
use url::Url;

use crate::location::{Location, literal_of, split_literal};
use crate::{LocalStore, Metered, StoreMetrics};

/// Opens locations; keeps one metered store per scheme and authority. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
    metrics: Arc<StoreMetrics>,
}

impl Stores {
    /// Nothing is open yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a URL (percent-encoded, as [`crate::parse_location`] makes it).
    ///
    /// # Errors
    /// `Unsupported` for a scheme other than `file`; `Invalid` for a path that cannot be.
    pub fn open(&self, url: &Url) -> Result<Location> {
        self.resolve(&literal_of(url)?)
    }

    /// Opens a literal Iceberg location, such as a manifest holds (see [`crate::literal_of`]).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn resolve(&self, location: &str) -> Result<Location> {
        let (scheme, authority, path) = split_literal(location)?;
        let store = self.store(scheme, authority, location)?;
        let path = Path::parse(path).map_err(|source| {
            Error::invalid(format!("location {location:?} is not a usable path"))
                .with_source(source)
        })?;
        let url = Url::from_file_path(format!("/{path}"))
            .map_err(|()| Error::invalid(format!("location {location:?} is not a usable path")))?;
        Ok(Location { store, path, url })
    }

    /// What all stores opened here have done so far.
    pub fn metrics(&self) -> &StoreMetrics {
        &self.inner.metrics
    }

    fn store(&self, scheme: &str, authority: &str, place: &str) -> Result<Arc<dyn ObjectStore>> {
        let key = format!("{scheme}://{authority}");
        let mut open = self.inner.open.lock();
        if let Some(store) = open.get(&key) {
            return Ok(store.clone());
        }
        let store: Arc<dyn ObjectStore> = match scheme {
            "file" => Arc::new(Metered::new(LocalStore::new(), self.inner.metrics.clone())),
            other => return Err(unsupported(other, place)),
        };
        open.insert(key, store.clone());
        Ok(store)
    }
}

fn unsupported(scheme: &str, place: &str) -> Error {
    let hint = match scheme {
        "s3" | "s3a" | "hdfs" | "cfs" => {
            "this version keeps warehouses on local disks: use file:///… or a directory"
        }
        _ => "use file:///… or a directory",
    };
    Error::unsupported(format!("location {place:?}: scheme {scheme:?} is not supported"))
        .with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_and_encoded_locations_meet_at_one_path() {
        let stores = Stores::new();
        let literal = stores.resolve("file:/a b/c%2Fd").unwrap();
        let encoded = stores.open(&Url::parse("file:///a%20b/c%252Fd").unwrap()).unwrap();
        assert_eq!(literal.path, encoded.path);
        assert_eq!(literal.url, encoded.url);
        assert!(Arc::ptr_eq(&literal.store, &encoded.store));
    }

    #[test]
    fn other_schemes_say_what_works() {
        let error = Stores::new().resolve("s3://bucket/x").unwrap_err();
        assert_eq!(error.kind(), stoa_error::ErrorKind::Unsupported);
        assert!(error.hint().is_some());
    }
}
