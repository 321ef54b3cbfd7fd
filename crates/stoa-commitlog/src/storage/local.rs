//! The local disk: a directory of the operating system.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stoa_env::{clock, private_files, processes};
use stoa_error::{Condition, Error, Result};

use super::disk::{Disk, DiskFile, DiskStorage};
use super::error::disk_error;
use super::{LogStorage, StorageLock};

const LOCK: &str = "LOCK";

/// How long a log that belongs to a process that is ending is waited for. A killed process is gone
/// within milliseconds, or within seconds on a machine that is short of processors.
const ENDING_WAIT_MAX: Duration = Duration::from_secs(10);

/// How often a lock that is waited for is tried.
const ENDING_WAIT_STEP: Duration = Duration::from_millis(5);

/// A log in `directory`, which is made, durably, where it does not exist.
///
/// # Errors
/// The operating system's.
pub fn local_storage(directory: &Path) -> Result<Arc<dyn LogStorage>> {
    make_directory(directory).map_err(|source| {
        disk_error(&directory.display().to_string(), "make the directory", "", source)
    })?;
    let disk = LocalDisk { directory: directory.to_owned() };
    Ok(Arc::new(DiskStorage::new(Arc::new(disk))))
}

#[derive(Debug)]
struct LocalDisk {
    directory: PathBuf,
}

impl LocalDisk {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Disk for LocalDisk {
    fn place(&self) -> String {
        self.directory.display().to_string()
    }

    fn lock(&self) -> Result<StorageLock> {
        let path = self.path(LOCK);
        let failed = |source| disk_error(&self.place(), "lock", LOCK, source);
        let mut file = private_files::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        let begin = clock::monotonic();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                // The rows of a killed process must be there for the one that is started next.
                Err(TryLockError::WouldBlock)
                    if begin.elapsed() < ENDING_WAIT_MAX
                        && holder(&path).is_some_and(processes::is_ending) =>
                {
                    std::thread::park_timeout(ENDING_WAIT_STEP);
                }
                Err(TryLockError::WouldBlock) => return Err(in_use(&self.place(), &path)),
            }
        }
        // Only for whoever is refused; the lock is the operating system's, not these bytes.
        file.set_len(0)
            .and_then(|()| file.write_all(std::process::id().to_string().as_bytes()))
            .map_err(failed)?;
        Ok(StorageLock::held_by(file))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        std::fs::read_dir(&self.directory)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = private_files::options();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Box::new(LocalFile(options.open(self.path(name))?)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.path(name);
        // Tools read logs that they may not write.
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(&path)?,
            other => other?,
        };
        Ok(Box::new(LocalFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        sync_directory(&self.directory)
    }
}

struct LocalFile(File);

impl DiskFile for LocalFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// The process that has the lock, as it wrote itself down; the last one that did, where the process
/// that has it has only just taken it.
fn holder(lock: &Path) -> Option<u32> {
    std::fs::read_to_string(lock).ok()?.trim().parse().ok()
}

fn in_use(place: &str, lock: &Path) -> Error {
    let error = Error::unavailable(format!("another process has the log {place} open"))
        .with_condition(Condition::ObjectInUse)
        .with_hint("stop it first, or give this one a log directory of its own");
    match holder(lock) {
        None => error,
        Some(process) => error.with_detail(format!("process {process} holds {}", lock.display())),
    }
}

/// Makes `directory` and its missing ancestors, each durable in its parent.
fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    let parent = directory.parent().unwrap_or(Path::new("/"));
    make_directory(parent)?;
    match private_files::create_directory(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    sync_directory(parent)
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}
