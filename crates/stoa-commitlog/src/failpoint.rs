//! The fail points of this crate, as errors.
//!
//! | point | what has just happened |
//! |---|---|
//! | `log.written` | a group of frames is written, not synced |
//! | `log.synced` | it is synced; nobody was told |
//! | `log.segment_created` | the next segment is there, empty |
//! | `log.segment_removed` | a segment that nobody needs is gone |

use stoa_error::{Error, Result};

/// Passes `point`; see [`stoa_env::failpoint`].
pub(crate) fn at(point: &str) -> Result<()> {
    stoa_env::failpoint::at_blocking(point).map_err(|injected| {
        // As an error of the disk.
        Error::unavailable(format!("stopped at {point}"))
            .with_sqlstate("58030")
            .with_hint("a test armed this fail point")
            .with_source(injected)
    })
}
