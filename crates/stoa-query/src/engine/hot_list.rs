//! Warm restarts: what reports ask for most is noted in a file, and read into memory after a start.
//!
//! **Invariant:** the file is replaced as a whole, and whatever is wrong with it costs nothing but the
//! warmth: it is a note, not data.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stoa_env::{private_files, task};
use stoa_error::{Error, Result};
use stoa_report::{HotList, Reports, RewarmOptions};

use crate::engine::Engine;

/// How often it is noted.
const EVERY: Duration = Duration::from_secs(60);

/// Chunks that are noted.
const CHUNKS_MAX: usize = 200_000;

/// Reads what `file` names in the background, then notes what is hot until the engine is gone.
pub(crate) fn start(engine: &Arc<Engine>, file: PathBuf) {
    let engine = Arc::downgrade(engine);
    let work = async move {
        if let Some(engine) = engine.upgrade() {
            bring_back(&engine, &file).await;
        }
        loop {
            stoa_env::timer::sleep(EVERY).await;
            let Some(reports) =
                engine.upgrade().map(|engine| Arc::clone(engine.handles.data.reports()))
            else {
                return;
            };
            save(&reports, &file).await;
        }
    };
    drop(task::spawn(work));
}

/// Notes what is hot; an error is logged.
pub(crate) async fn save(reports: &Arc<Reports>, file: &Path) {
    let (reports, path) = (Arc::clone(reports), file.to_owned());
    let written = task::spawn_blocking(move || write(&reports, &path)).await;
    let written = written.unwrap_or_else(|e| Err(Error::internal("a task failed").with_source(e)));
    if let Err(error) = written {
        tracing::warn!(%error, file = %file.display(), "cannot note what reports ask for most");
    }
}

fn write(reports: &Reports, file: &Path) -> Result<()> {
    let text = reports.hot_list(CHUNKS_MAX).to_json()?;
    let cannot = |e| Error::unavailable("cannot write the list").with_source(e);
    let new = file.with_extension("new");
    private_files::write(&new, &text).map_err(cannot)?;
    std::fs::rename(&new, file).map_err(cannot)
}

async fn bring_back(engine: &Arc<Engine>, file: &Path) {
    let path = file.to_owned();
    let read = task::spawn_blocking(move || std::fs::read(path)).await;
    let bytes = match read.unwrap_or_else(|e| Err(std::io::Error::other(e))) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => {
            tracing::warn!(%error, file = %file.display(), "cannot read what was hot");
            return;
        }
    };
    let list = match HotList::from_json(&bytes) {
        Ok(list) => list,
        Err(error) => {
            tracing::warn!(%error, file = %file.display(), "what was hot is not known");
            return;
        }
    };
    let data = &engine.handles.data;
    let table =
        |ident| async move { data.snapshot(&ident).await.ok().map(|snapshot| snapshot.table) };
    let warm = data.reports().rewarm(&list, RewarmOptions::default(), table).await;
    tracing::info!(files = warm.files, chunks = warm.chunks, "what was hot is in memory again");
}
