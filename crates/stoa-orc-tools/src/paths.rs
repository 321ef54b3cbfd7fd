//! The files that a user means: files as they are named, directories as the files below them.

use std::path::{Path, PathBuf};

use stoa_error::{Error, Result};

/// Replaces directories in `paths` by the files below them, sorted by name. Names that begin with
/// `_` or `.` are left out below a directory, as Hadoop's tools do.
///
/// # Errors
/// `Unavailable` if a directory cannot be listed. A path that does not exist stays as it is: the
/// one who opens it says so.
pub fn files_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            add_below(path, &mut files)?;
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn add_below(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let fail = |error: std::io::Error| {
        let message = format!("cannot list directory {}", directory.display());
        Error::unavailable(message).with_sqlstate("58030").with_source(error)
    };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let is_hidden = name.to_string_lossy().starts_with(['_', '.']);
        if !is_hidden {
            // A link to a directory is not followed: it could lead back here.
            entries.push((entry.path(), entry.file_type().map_err(fail)?.is_dir()));
        }
    }
    entries.sort();
    for (path, is_directory) in entries {
        if is_directory {
            add_below(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
