//! Who this daemon is: an id in a file, which one process at a time may use.
//!
//! The id outlives the process, so that a daemon that starts again is the same one, with the same homes
//! and its earlier life's log. Several daemons may share a folder: each locks a file of its own.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use stoa_cluster::DaemonId;
use stoa_env::{private_files, random};
use stoa_error::{Error, Result};

/// Daemons that may share a folder.
const DAEMONS_MAX: usize = 64;

/// The id, and the lock on its file.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) daemon: DaemonId,
    _lock: File,
}

impl Identity {
    /// The first id in `folder` that no other process has; a new one where there is none.
    ///
    /// # Errors
    /// `Unavailable` where the folder or its files cannot be used; `Corrupt` for a file with something else.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        let failed = |path: &Path, source: std::io::Error| {
            Error::unavailable(format!("the daemon's id cannot be kept in {}", path.display()))
                .with_hint("make the folder writable, or name another one")
                .with_source(source)
        };
        private_files::create_directories(folder).map_err(|source| failed(folder, source))?;
        for number in 0..DAEMONS_MAX {
            let path = folder.join(format!("daemon-{number}.id"));
            let mut file = private_files::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(|source| failed(&path, source))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(source)) => return Err(failed(&path, source)),
            }
            let daemon = read_or_write(&mut file, &path)?;
            return Ok(Self { daemon, _lock: file });
        }
        Err(Error::unavailable(format!(
            "{DAEMONS_MAX} daemons run in {} already",
            folder.display()
        )))
    }
}

fn read_or_write(file: &mut File, path: &Path) -> Result<DaemonId> {
    let failed = |source: std::io::Error| {
        Error::unavailable(format!("{} cannot be used", path.display())).with_source(source)
    };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    if !text.is_empty() {
        let bits = u64::from_str_radix(text.trim(), 16);
        let broken = || {
            Error::corrupt(format!("{} does not have a daemon's id", path.display()))
                .with_hint("delete the file; the daemon will join under a new id")
        };
        return bits.map(DaemonId::from_bits).map_err(|_| broken());
    }
    let daemon = DaemonId::from_bits(random::u64());
    file.rewind().map_err(failed)?;
    file.write_all(format!("{daemon}\n").as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(daemon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_kept_and_is_one_process_s() {
        let folder = tempfile::tempdir().unwrap();
        let first = Identity::take(folder.path()).unwrap();
        let second = Identity::take(folder.path()).unwrap();
        assert_ne!(first.daemon, second.daemon);
        let known = first.daemon;
        drop(first);
        assert_eq!(Identity::take(folder.path()).unwrap().daemon, known);
        std::fs::write(folder.path().join("daemon-2.id"), "nonsense").unwrap();
        let _held = Identity::take(folder.path()).unwrap();
        let error = Identity::take(folder.path()).unwrap_err();
        assert!(error.message().contains("daemon-2.id"), "{error}");
    }
}
