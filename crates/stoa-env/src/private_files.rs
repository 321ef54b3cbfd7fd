//! Files and directories that are for the account of this process only.
//!
//! In: paths. Out: files of mode 0600 and directories of mode 0700, whatever the umask allows. What is
//! there already keeps its mode ([`is_open_to_others`] tells).
//!
//! Tables, logs, caches and the catalog hold what was entrusted to the server, among it secrets of
//! passwords; all of them are made through this door.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// What the group and all others may do, of a mode.
const OTHERS: u32 = 0o077;

/// Options with which a new file is for this account only.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Makes a directory; its parent must be there.
///
/// # Errors
/// The operating system's, also where it is there already.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY_MODE).create(directory)
}

/// Makes a directory and its missing ancestors, if it is not there.
///
/// # Errors
/// The operating system's.
pub fn create_directories(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)
}

/// Writes a file, in the place of one that is there.
///
/// # Errors
/// The operating system's.
pub fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    options().write(true).create(true).truncate(true).open(file)?.write_all(bytes)
}

/// Takes a directory that somebody else's code has made from other accounts.
///
/// # Errors
/// The operating system's.
pub fn close_directory(directory: &Path) -> io::Result<()> {
    std::fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE))
}

/// The mode of a file or directory that other accounts may read, change or enter; `None` where they may
/// not, or there is none.
pub fn is_open_to_others(path: &Path) -> Option<u32> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & OTHERS != 0).then_some(mode)
}
