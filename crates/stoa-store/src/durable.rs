//! Files on a local disk that survive a power cut: temporary name, fsync, link, fsync of the
//! directory.
//!
//! ```text
//! .name.1a2b.tmp ──write──fsync──► link or rename to `name` ──fsync directory──► durable
//! ```
//! A process killed on the way leaves a file `.….tmp` that nothing refers to; listing shows it, so
//! that orphan clean-up finds it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use stoa_env::private_files;

/// Whether a file of the final name may exist already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replace {
    /// It must not; the new file is linked.
    Never,
    /// It is replaced as a whole, by rename.
    Whole,
}

/// A file being written under a temporary name. Dropping it unpublished removes it.
#[derive(Debug)]
pub(crate) struct Staged {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    published: bool,
}

impl Staged {
    /// Opens a temporary file beside `target`, making directories as needed.
    pub(crate) fn create(target: PathBuf) -> io::Result<Self> {
        let temporary = temporary_name(&target)?;
        let mut options = private_files::options();
        options.write(true).create_new(true);
        let file = match options.open(&temporary) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                create_directories(parent_of(&target)?)?;
                options.open(&temporary)?
            }
            other => other?,
        };
        Ok(Self { file, temporary, target, published: false })
    }

    /// The open file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Makes the bytes and the name durable.
    pub(crate) fn publish(mut self, replace: Replace) -> io::Result<()> {
        self.file.sync_all()?;
        match replace {
            Replace::Whole => std::fs::rename(&self.temporary, &self.target)?,
            Replace::Never => {
                std::fs::hard_link(&self.temporary, &self.target)?;
                std::fs::remove_file(&self.temporary)?;
            }
        }
        self.published = true;
        let directory = parent_of(&self.target)?;
        sync_directory(directory)?;
        // The directory may have been made a moment ago by another writer that has not yet got
        // round to syncing its parent.
        directory.parent().map_or(Ok(()), sync_directory)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published {
            // Best effort: what stays behind is an orphan that clean-up finds.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Makes `directory` and its missing ancestors, each durable in its parent; also where another
/// process made it a moment ago.
///
/// # Errors
/// The operating system's.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    create_directories(directory)?;
    match directory.parent().map_or(Ok(()), sync_directory) {
        // Of a directory that was there before, in one that may be passed through but not read.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Makes `directory` and its missing ancestors, each durable in its parent.
fn create_directories(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = parent_of(directory)?;
    create_directories(parent)?;
    match private_files::create_directory(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    sync_directory(parent)
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    if directory.as_os_str().is_empty() {
        return Ok(());
    }
    File::open(directory)?.sync_all()
}

fn parent_of(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "path has no directory"))
}

fn temporary_name(target: &Path) -> io::Result<PathBuf> {
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "path has no file name"))?;
    // Hidden, so that Hadoop's listings skip it. The name is cut to stay within 255 bytes.
    let name = name.to_string_lossy();
    let head: String = name.chars().take(48).collect();
    Ok(parent_of(target)?.join(format!(".{head}.{:016x}.tmp", stoa_env::random::u64())))
}
/// As [`create_directory`], waiting on a thread for that.
///
/// # Errors
/// `Unavailable`: the operating system's.
pub async fn make_directory(path: &str) -> stoa_error::Result<()> {
    let directory = PathBuf::from(path);
    let made = stoa_env::task::spawn_blocking(move || create_directory(&directory)).await;
    let made = made.map_err(|e| stoa_error::Error::internal("a thread was lost").with_source(e))?;
    made.map_err(|e| {
        stoa_error::Error::unavailable(format!("cannot make the directory {path}")).with_source(e)
    })
}

/// Takes a directory of hidden files away, at once, for what is dropped; what stays is hidden.
pub fn remove_hidden_directory(path: &str) {
    let is_hidden =
        Path::new(path).file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    if is_hidden {
        drop(std::fs::remove_dir_all(path));
    }
}

/// Takes a directory away if nothing is in it, waiting on a thread for that; whether it was there does not matter.
pub async fn remove_empty_directory(path: &str) {
    let path = path.to_owned();
    let removed = stoa_env::task::spawn_blocking(move || std::fs::remove_dir(path)).await;
    // One that is not empty, or not there, stays as it is.
    drop(removed);
}
