//! Who else on this machine may read what the server keeps.
//!
//! What the server makes is for its own account. What was there before keeps its mode: older versions
//! made files that everybody may read, and people make directories as their umask says.

use std::path::{Path, PathBuf};

use stoa_env::private_files::is_open_to_others;
use stoa_query::EngineOptions;

/// Logs a warning for each place that others on this machine may read, change or enter.
pub fn warn_of_open_places(options: &EngineOptions) {
    for place in places(options) {
        if let Some(mode) = is_open_to_others(&place) {
            tracing::warn!(
                path = %place.display(),
                mode = %format_args!("{mode:04o}"),
                "other accounts of this machine can access the server's files; restrict them with \
                 chmod -R go="
            );
        }
    }
}

/// Catalog, warehouse, log and caches, as far as they are on a local disk. The folder for spilled rows may be
/// everybody's: they are in one of the engine's own there.
fn places(options: &EngineOptions) -> Vec<PathBuf> {
    let local = |url: &url::Url| url.to_file_path().ok();
    let warehouse = local(&options.warehouse);
    let catalog = match &options.catalog {
        None => warehouse.as_ref().map(|warehouse| warehouse.join("catalog.db")),
        Some(place) => place.file().map(Path::to_owned),
    };
    let mut places: Vec<PathBuf> = warehouse.into_iter().collect();
    if let Some(catalog) = catalog {
        places.extend(beside(&catalog));
        places.push(catalog);
    }
    places.extend(options.logs.as_ref().and_then(local));
    places.extend(options.hot_list.clone());
    places.extend(options.history.clone());
    places.extend(options.disk_cache.as_ref().map(|cache| cache.folder.clone()));
    places
}

/// What SQLite keeps beside its file.
fn beside(catalog: &Path) -> impl Iterator<Item = PathBuf> {
    let catalog = catalog.as_os_str().to_owned();
    ["-wal", "-shm"].into_iter().map(move |ending| {
        let mut name = catalog.clone();
        name.push(ending);
        PathBuf::from(name)
    })
}
