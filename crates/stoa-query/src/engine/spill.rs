//! The folder for rows that queries spill: one of this engine, in the one that is set.
//!
//! Whoever is killed leaves theirs behind, with all that it had spilled. The next engine that spills into the same place
//! removes it: its lock is free.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stoa_env::private_files;

const PREFIX: &str = "stoa-spill-";

/// Held as long as the folder is used.
const LOCK: &str = "lock";

/// Folders of one name that may be there already, such as those of other engines of the process.
const TRIES_MAX: u32 = 10_000;

/// A folder for this engine only; removed with all that is in it.
#[derive(Debug)]
pub(crate) struct SpillFolder {
    path: PathBuf,
    _lock: File,
}

impl SpillFolder {
    /// Makes a folder in `parent`, which must be there, and removes those of engines that are no more.
    ///
    /// # Errors
    /// The operating system's, where the folder cannot be made.
    pub(crate) fn create(parent: &Path) -> io::Result<Self> {
        let process = std::process::id();
        for number in 0..TRIES_MAX {
            let path = parent.join(format!("{PREFIX}{process}-{number}"));
            match private_files::create_directory(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            if let Some(lock) = locked(&path)? {
                let folder = Self { path, _lock: lock };
                folder.remove_others(parent);
                return Ok(folder);
            }
        }
        Err(io::Error::new(
            ErrorKind::AlreadyExists,
            format!("{} is full of folders", parent.display()),
        ))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Of the folders of this account only: in a place that all share, others could have made theirs to mislead.
    fn remove_others(&self, parent: &Path) {
        let account = fs::symlink_metadata(&self.path).map(|of| of.uid());
        let (Ok(account), Ok(entries)) = (account, fs::read_dir(parent)) else { return };
        for entry in entries.flatten() {
            let is_folder = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
                && fs::symlink_metadata(entry.path())
                    .is_ok_and(|of| of.is_dir() && of.uid() == account);
            if !is_folder || entry.path() == self.path {
                continue;
            }
            let lock = File::options().write(true).open(entry.path().join(LOCK));
            if let Ok(lock) = lock
                && lock.try_lock().is_ok()
            {
                match fs::remove_dir_all(entry.path()) {
                    Ok(()) => {
                        tracing::info!(folder = %entry.path().display(), "removed what a killed process had spilled")
                    }
                    Err(error) => {
                        tracing::warn!(folder = %entry.path().display(), %error, "cannot remove what a killed process had spilled")
                    }
                }
            }
        }
    }
}

/// The lock of a new folder; `None` where somebody is about to remove it, having taken it for one that was left behind.
fn locked(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join(LOCK);
    let lock = match private_files::options().write(true).create_new(true).open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    if lock.try_lock().is_err() {
        return Ok(None);
    }
    let is_there =
        fs::metadata(&path).is_ok_and(|of| lock.metadata().is_ok_and(|own| own.ino() == of.ino()));
    Ok(is_there.then_some(lock))
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        // The next one to start removes what stays.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_killed_have_spilled_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let first = SpillFolder::create(parent.path()).unwrap();
        let killed = parent.path().join("stoa-spill-1-0");
        let foreign = parent.path().join("somebody-elses");
        let half_made = parent.path().join("stoa-spill-1-1");
        for folder in [&killed, &foreign, &half_made] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(killed.join(LOCK), "").unwrap();
        fs::create_dir(killed.join("datafusion-a")).unwrap();
        fs::write(killed.join("datafusion-a/rows"), "rows").unwrap();
        fs::write(foreign.join(LOCK), "").unwrap();
        let linked = parent.path().join("stoa-spill-2-0");
        std::os::unix::fs::symlink(&foreign, &linked).unwrap();

        let second = SpillFolder::create(parent.path()).unwrap();
        assert!(!killed.exists());
        assert_ne!(first.path(), second.path());
        for kept in [first.path(), second.path(), &foreign.join(LOCK), &half_made, &linked] {
            assert!(kept.exists(), "{}", kept.display());
        }
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
        assert!(second.path().exists());
    }
}
