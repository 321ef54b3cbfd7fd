//! Storage by URL.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::path::Path;
use stoa_error::{Error, Result};
use tokio::runtime::Handle;
use url::Url;

use super::LogStorage;
use super::local::local_storage;
use super::object::object_storage;

/// The storage that `url` names: a directory for `file:`, else an object store, which `open_store`
/// opens (this crate knows no store's configuration) and `runtime` drives. For `patience` see [`object_storage`].
///
/// Blocks while it makes a directory.
///
/// # Errors
/// `Invalid` for a `file:` URL that is no local path; `open_store`'s; the operating system's.
pub fn storage_for_url(
    url: &Url,
    runtime: &Handle,
    patience: Duration,
    open_store: impl FnOnce(&Url) -> Result<(Arc<dyn ObjectStore>, Path)>,
) -> Result<Arc<dyn LogStorage>> {
    if url.scheme() != "file" {
        let (store, prefix) = open_store(url)?;
        return Ok(object_storage(store, prefix, runtime.clone(), patience));
    }
    let directory = url.to_file_path().map_err(|()| {
        Error::invalid(format!("{url} is no directory for a commit log"))
            .with_hint("a local path in a URL starts with three slashes, as in file:///var/log")
    })?;
    local_storage(&directory)
}
