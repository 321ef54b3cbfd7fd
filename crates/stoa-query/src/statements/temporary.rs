//! Temporary tables are dropped: when their session has ended, and when a server that was killed starts again.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use stoa_error::Result;

use crate::engine::Engine;
use crate::session::SessionOptions;
use crate::statements::ddl;

/// Drops the schema of a session's temporary tables with all that is in it.
pub(crate) fn drop_schema(engine: Arc<Engine>, schema: String) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        let options = SessionOptions { is_trusted: true, ..SessionOptions::default() };
        let session = engine.session(options);
        ddl::drop_schema(&session, &schema, true, true).await?;
        if let Ok(warehouse) = engine.options().warehouse.to_file_path() {
            let folder = warehouse.join(&schema);
            // What cannot be removed is an empty folder.
            let _ = stoa_env::task::spawn_blocking(move || remove_empty(&folder)).await;
        }
        session.data.refresh().await
    })
}

/// Removes a folder of empty folders; leaves those that hold files.
fn remove_empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        remove_empty(&entry.path());
    }
    let _ = std::fs::remove_dir(folder);
}

/// Drops those that were left when the server ended.
///
/// # Errors
/// The catalog's, where it does not list schemas. One that cannot be dropped is left, and said.
pub(crate) async fn drop_left_behind(engine: &Arc<Engine>) -> Result<()> {
    for schema in engine.warehouse().namespaces().await? {
        if schema.starts_with(engine.temporary_prefix()) {
            let dropped = drop_schema(Arc::clone(engine), schema.clone()).await;
            if let Err(error) = dropped {
                tracing::warn!(schema, %error, "cannot drop temporary tables that were left behind");
            }
        }
    }
    Ok(())
}
