//! Bad lines: an error at once, or a copy in the reject file.
//!
//! The reject file holds, for every bad line, the reason on a line of its own that starts with
//! [`REASON_PREFIX`], then the bad line as it stood in the input, bytes unchanged:
//!
//! ```text
//! # reject: data.csv line 17, column "trips": "1,137" is not a bigint
//! B00248,YELLOWSTONE TRANSPORTATION INC.,01/01/2015,"1,137",106
//! ```
//!
//! Corrected, it loads with the option `comment` set to `# reject: `. There is no header in it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stoa_error::{Error, Place, Result};

use crate::bad_value::BadValue;
use crate::{LoadOptions, Progress};

/// What the line with the reason starts with.
pub(crate) const REASON_PREFIX: &str = "# reject: ";

/// Counts bad lines of all inputs together and writes them down.
pub(crate) struct Rejects {
    max_errors: u64,
    seen: u64,
    file: Option<(PathBuf, BufWriter<File>)>,
    progress: Arc<Progress>,
}

impl Rejects {
    pub fn new(options: &LoadOptions, progress: Arc<Progress>) -> Result<Self> {
        let file = match &options.reject_file {
            Some(_) if options.max_errors == 0 => {
                return Err(Error::invalid("a reject file is named, but no errors are allowed")
                    .with_hint("set max_errors to the number of bad lines to bear"));
            }
            Some(path) => {
                let file = create(path, options.reject_file_is_new);
                let file = file.map_err(|e| cannot_write(path, e))?;
                Some((path.clone(), BufWriter::new(file)))
            }
            None => None,
        };
        Ok(Self { max_errors: options.max_errors, seen: 0, file, progress })
    }

    /// Takes one bad line.
    ///
    /// # Errors
    /// The bad line itself, where no more of them are allowed; the reject file cannot be written.
    pub fn reject(&mut self, place: Place, bad: BadValue, line: &[u8]) -> Result<()> {
        if self.seen >= self.max_errors {
            let error = bad.into_error(place);
            return Err(match self.max_errors {
                0 => error,
                max => error.with_detail(format!("more than max_errors = {max} bad lines")),
            });
        }
        self.seen += 1;
        self.progress.add_rejected();
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        let end: &[u8] = match line {
            [.., b'\r', b'\n'] => b"\r\n",
            [.., b'\r'] => b"\r",
            _ => b"\n",
        };
        let write = |file: &mut BufWriter<File>| {
            write!(file, "{REASON_PREFIX}{place}: {}", bad.what)?;
            file.write_all(end)?;
            file.write_all(line)?;
            if !line.ends_with(end) {
                file.write_all(end)?;
            }
            Ok(())
        };
        write(file).map_err(|e| cannot_write(path, e))
    }

    /// Puts everything on disk.
    pub fn finish(&mut self) -> Result<()> {
        match &mut self.file {
            Some((path, file)) => file.flush().map_err(|e| cannot_write(path, e)),
            None => Ok(()),
        }
    }
}

/// Opens the file; one that must be new is only for whoever runs this process.
fn create(path: &Path, is_new: bool) -> io::Result<File> {
    match is_new {
        true => OpenOptions::new().write(true).create_new(true).mode(0o600).open(path),
        false => File::create(path),
    }
}

fn cannot_write(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return Error::already_exists(format!("the reject file {} exists already", path.display()))
            .with_sqlstate("58P02")
            .with_hint("name another one, or remove it");
    }
    Error::unavailable(format!("cannot write the reject file {}", path.display()))
        .with_sqlstate("58030")
        .with_source(error)
}
