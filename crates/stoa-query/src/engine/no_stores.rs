//! The stores that plans may open by a URL: none.
//!
//! Stoa's own operators read and write through the warehouse (`stoa-table`), never through the engine's
//! registry. The engine's default registry has the whole local file system, for whatever a plan names.
//!
//! **Invariant:** no plan, whatever is in it, opens a file or an object by its name.

use std::sync::Arc;

use datafusion::error::Result as EngineResult;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::object_store::ObjectStore;
use stoa_error::{Error, ErrorKind};
use url::Url;

use stoa_semantics::errors::to_datafusion;

/// A registry in which there is nothing, and nothing can be put.
#[derive(Debug)]
pub(crate) struct NoStores;

impl ObjectStoreRegistry for NoStores {
    fn register_store(
        &self,
        _url: &Url,
        _store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> EngineResult<Arc<dyn ObjectStore>> {
        let scheme = url.scheme();
        let error = format!("statements cannot open {scheme} locations");
        Err(to_datafusion(
            Error::new(ErrorKind::Forbidden, error)
                .with_hint("load files with COPY … FROM or stoa load, and read them as tables"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_store_is_given_even_if_one_was_put() {
        let url = Url::parse("file:///etc/passwd").unwrap();
        let local = datafusion::object_store::local::LocalFileSystem::new();
        assert!(NoStores.register_store(&url, Arc::new(local)).is_none());
        let error = stoa_semantics::errors::from_datafusion(NoStores.get_store(&url).unwrap_err());
        assert_eq!(error.sqlstate(), "42501");
    }
}
