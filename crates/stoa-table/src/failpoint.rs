//! The fail points of this crate, as errors.
//!
//! | point | what has just happened |
//! |---|---|
//! | `write.files_written` | data files are durable, nothing names them |
//! | `commit.manifests_written` | manifests and manifest list are durable |
//! | `commit.metadata_written` | the metadata file, of a table or view, is durable; next is the swap |
//! | `commit.swapped` | the pointer has moved; nobody was told |
//! | `compaction.merged` | the merged files are written and counted; next is their commit |
//! | `expire.committed` | snapshots are forgotten, their files are still there |
//! | `expire.data_deleted` | their data files are deleted, their manifests are still there |

use stoa_error::{Error, Result};

/// Passes `point`; see [`stoa_env::failpoint`].
pub(crate) async fn at(point: &str) -> Result<()> {
    stoa_env::failpoint::at(point).await.map_err(|injected| {
        Error::internal(format!("stopped at {point}"))
            .with_hint("a test armed this fail point")
            .with_source(injected)
    })
}
