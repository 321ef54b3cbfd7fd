//! INTO FILE: plain, or gzipped if the name ends with `.gz`.

use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use stoa_error::Result;

use crate::files::{Files, cannot};

/// A file that is written.
pub(crate) struct OutputFile {
    name: String,
    writer: Writer,
}

type Plain = BufWriter<Box<dyn Write + Send>>;

enum Writer {
    Plain(Plain),
    Gzip(GzEncoder<Plain>),
}

impl OutputFile {
    pub(crate) fn create(files: &dyn Files, name: &str) -> Result<Self> {
        let plain = BufWriter::with_capacity(256 << 10, files.create(name)?);
        let writer = match name.ends_with(".gz") {
            true => Writer::Gzip(GzEncoder::new(plain, Compression::default())),
            false => Writer::Plain(plain),
        };
        Ok(Self { name: name.to_owned(), writer })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.writer {
            Writer::Plain(writer) => writer.write_all(bytes),
            Writer::Gzip(writer) => writer.write_all(bytes),
        };
        written.map_err(|e| cannot("write", Path::new(&self.name), e))
    }

    /// Writes what is still held back; a file without this call is not complete.
    pub(crate) fn finish(self) -> Result<()> {
        let finished = match self.writer {
            Writer::Plain(mut writer) => writer.flush(),
            Writer::Gzip(writer) => writer.finish().and_then(|mut writer| writer.flush()),
        };
        finished.map_err(|e| cannot("write", Path::new(&self.name), e))
    }
}
