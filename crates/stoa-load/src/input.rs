//! Where bytes come from: files and streams, opened, counted and decompressed.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stoa_error::{Error, Result};

use crate::{FileCompression, Progress};

/// One thing to load.
pub enum Input {
    /// A file.
    Path(PathBuf),
    /// Bytes that come from somewhere else, such as COPY FROM STDIN. The format must be set in
    /// the options or be told by the name; Parquet and ORC files need [`LoadOptions::spool`](crate::LoadOptions::spool),
    /// and Arrow's file format cannot be read this way.
    Stream {
        /// What errors call it; its ending may tell the format.
        name: String,
        /// The bytes.
        reader: Box<dyn Read + Send>,
        /// How many there are, if known.
        total_bytes: Option<u64>,
    },
}

impl Input {
    /// What errors call it.
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => display(path),
            Self::Stream { name, .. } => name.clone(),
        }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Stream { .. } => None,
        }
    }

    /// Bytes to come, if known.
    pub(crate) fn total_bytes(&self) -> Result<Option<u64>> {
        match self {
            Self::Stream { total_bytes, .. } => Ok(*total_bytes),
            Self::Path(path) => {
                let found = std::fs::metadata(path).map_err(|e| cannot_read(&display(path), e))?;
                if found.is_dir() {
                    return Err(Error::invalid(format!("{} is a directory", path.display()))
                        .with_hint("name its files, for instance with a shell pattern"));
                }
                Ok(Some(found.len()))
            }
        }
    }

    /// The decompressed bytes; what is read from disk is counted in `progress`.
    pub(crate) fn into_reader(
        self,
        compression: FileCompression,
        progress: Arc<Progress>,
    ) -> Result<Box<dyn Read + Send>> {
        let name = self.name();
        let inner: Box<dyn Read + Send> = match self {
            Self::Path(path) => Box::new(File::open(&path).map_err(|e| cannot_read(&name, e))?),
            Self::Stream { reader, .. } => reader,
        };
        let counted = Counted { inner, progress };
        Ok(match compression {
            FileCompression::None => Box::new(counted),
            FileCompression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(
                BufReader::with_capacity(128 << 10, counted),
            )),
            FileCompression::Zstd => Box::new(
                zstd::stream::read::Decoder::new(counted).map_err(|e| cannot_read(&name, e))?,
            ),
        })
    }
}

/// Counts what passes through it.
struct Counted {
    inner: Box<dyn Read + Send>,
    progress: Arc<Progress>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.progress.add_read(bytes as u64);
        Ok(bytes)
    }
}

/// The error of a file that cannot be opened or read.
pub(crate) fn cannot_read(name: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(format!("file {name} does not exist"))
            .with_sqlstate("58P01")
            .with_hint("the path is relative to where the loading process runs"),
        io::ErrorKind::PermissionDenied => {
            Error::new(stoa_error::ErrorKind::Forbidden, format!("file {name} may not be read"))
                .with_source(error)
        }
        // What the decompressors say about bytes that are not theirs, or that end too early.
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::invalid(format!("{name} is damaged, cut off or compressed in another way"))
                .with_hint("check the file and the option compression")
                .with_source(error)
        }
        _ => Error::unavailable(format!("cannot read {name}"))
            .with_sqlstate("58030")
            .with_source(error),
    }
}

/// The file's name without its folders where that is clear enough to read.
pub(crate) fn display(path: &Path) -> String {
    path.display().to_string()
}
