//! Files that statements name: LOAD DATA INFILE, INTO FILE, schema files.
//!
//! A session does not open files by itself: who runs it decides which files it may see. A shell
//! gives it [`LocalFiles`]; a server that runs statements for others gives it [`NoFiles`].

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use stoa_error::{Error, ErrorKind, Result};

/// A file to be read.
pub struct ReadFile {
    /// Its bytes, as they lie there.
    pub bytes: Box<dyn Read + Send>,
    /// How many, if that is known.
    pub length: Option<u64>,
}

/// Opens files for a session.
pub trait Files: Send + Sync {
    /// Opens a file for reading; `-` is standard input.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound), [`Forbidden`](ErrorKind::Forbidden),
    /// [`Unavailable`](ErrorKind::Unavailable).
    fn open(&self, name: &str) -> Result<ReadFile>;

    /// Makes a file, or empties it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn create(&self, name: &str) -> Result<Box<dyn Write + Send>>;
}

/// The files of the machine; names without a folder are below a base directory.
pub struct LocalFiles {
    base: PathBuf,
}

impl LocalFiles {
    /// Files below `base`, usually the working directory.
    pub fn new(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        let path = match name.split_once("://") {
            None => name,
            Some(("file", path)) => path,
            Some((scheme, _)) => {
                let text = format!("files at {scheme}:// cannot be opened by HQL");
                return Err(Error::unsupported(text)
                    .with_hint("copy the file to this machine and name its path"));
            }
        };
        Ok(self.base.join(path))
    }
}

impl Files for LocalFiles {
    fn open(&self, name: &str) -> Result<ReadFile> {
        if name == "-" {
            return Ok(ReadFile { bytes: Box::new(io::stdin()), length: None });
        }
        let path = self.path(name)?;
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|e| cannot("read", &path, e))?;
        if metadata.is_dir() {
            return Err(Error::invalid(format!("{} is a directory", path.display())));
        }
        let length = metadata.is_file().then_some(metadata.len());
        Ok(ReadFile { bytes: Box::new(file), length })
    }

    fn create(&self, name: &str) -> Result<Box<dyn Write + Send>> {
        let path = self.path(name)?;
        let file = File::create(&path).map_err(|e| cannot("write", &path, e))?;
        Ok(Box::new(file))
    }
}

/// No files at all.
pub struct NoFiles;

impl Files for NoFiles {
    fn open(&self, name: &str) -> Result<ReadFile> {
        Err(refused(name))
    }

    fn create(&self, name: &str) -> Result<Box<dyn Write + Send>> {
        Err(refused(name))
    }
}

fn refused(name: &str) -> Error {
    Error::new(ErrorKind::Forbidden, format!("file \"{name}\" cannot be opened here"))
        .with_hint("run the statement in a shell, whose files are those of its machine")
}

/// The error of a file that cannot be opened or written.
pub(crate) fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    let name = path.display();
    let error = match error.kind() {
        io::ErrorKind::NotFound if what == "write" => {
            return Error::not_found(format!("the folder of file {name} does not exist"))
                .with_sqlstate("58P01");
        }
        io::ErrorKind::NotFound => {
            return Error::not_found(format!("file {name} does not exist")).with_sqlstate("58P01");
        }
        io::ErrorKind::PermissionDenied => {
            Error::new(ErrorKind::Forbidden, format!("may not {what} file {name}"))
                .with_source(error)
        }
        _ => Error::unavailable(format!("cannot {what} file {name}")).with_source(error),
    };
    error.with_sqlstate("58030")
}
