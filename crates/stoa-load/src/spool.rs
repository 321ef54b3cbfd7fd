//! Streams of formats that are read from their end: brought into a file first.
//!
//! In: a stream, and where files may be made. Out: a file that goes when it is dropped; whoever has opened it reads on.
//! **Invariant:** memory is one buffer, however long the stream is; the file is for this account only.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use stoa_error::{Error, ErrorKind, Result};

use crate::input::cannot_read;

const BUFFER_BYTES: usize = 256 << 10;

/// Where streams become files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spool {
    /// The directory.
    pub directory: PathBuf,
    /// Bytes of one file; a stream that is longer is refused.
    pub bytes_max: u64,
}

/// A file with all that a stream had.
#[derive(Debug)]
pub(crate) struct Spooled {
    path: PathBuf,
}

impl Spool {
    /// Reads `stream`, which errors call `name`, to its end.
    ///
    /// # Errors
    /// Those of the stream; `Exhausted` where it is too long (54000) or the disk is full (53100).
    pub(crate) fn take(&self, name: &str, mut stream: impl Read) -> Result<Spooled> {
        let (mut file, spooled) = self.create().map_err(|e| cannot_write(name, e))?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut total = 0;
        loop {
            let bytes = match stream.read(&mut buffer) {
                Ok(0) => return Ok(spooled),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(cannot_read(name, error)),
            };
            total += bytes as u64;
            if total > self.bytes_max {
                return Err(self.too_long(name));
            }
            let read = buffer.get(..bytes).unwrap_or_default();
            file.write_all(read).map_err(|e| cannot_write(name, e))?;
        }
    }

    /// A new file under a name that nobody has.
    fn create(&self) -> io::Result<(File, Spooled)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = self.directory.join(format!("stoa-rows-{}-{number}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((file, Spooled { path })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn too_long(&self, name: &str) -> Error {
        let what = format!("{name} has more than {} bytes", self.bytes_max);
        Error::new(ErrorKind::Exhausted, what)
            .with_sqlstate("54000")
            .with_detail("this format is read from its end, so all of it is kept on disk first")
            .with_hint("load it on the server's machine with stoa load, or in parts")
    }
}

impl Spooled {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        // What cannot be deleted is in the folder for such files.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn cannot_write(name: &str, error: io::Error) -> Error {
    let (kind, sqlstate) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (ErrorKind::Exhausted, "53100")
        }
        _ => (ErrorKind::Unavailable, "58030"),
    };
    Error::new(kind, format!("cannot keep {name} on disk"))
        .with_sqlstate(sqlstate)
        .with_hint("the setting spill_dir says where such files are")
        .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_becomes_a_file_that_goes_away() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool { directory: folder.path().to_owned(), bytes_max: 1_000_000 };
        let bytes: Vec<u8> = (0..1_000_000).map(|n| (n % 251) as u8).collect();
        let spooled = spool.take("a", bytes.as_slice()).unwrap();
        assert_eq!(std::fs::read(spooled.path()).unwrap(), bytes);
        drop(spooled);
        let longer = spool.take("a", io::repeat(7).take(1_000_001)).unwrap_err();
        assert_eq!(longer.sqlstate(), "54000");
        let missing = Spool { directory: folder.path().join("none"), ..spool };
        assert_eq!(missing.take("a", io::empty()).unwrap_err().sqlstate(), "58030");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
