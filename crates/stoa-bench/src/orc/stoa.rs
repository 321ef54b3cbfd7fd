//! `stoa-orc` as a contender.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use bytes::Bytes;
use stoa_error::{Error, Result};
use stoa_orc::{
    Decoder, FileMetadata, Projection, ReadOptions, Step, TailDecoder, TailStep, Writer,
    WriterOptions,
};

use super::contender::Format;
use super::in_process::{Library, Sink};
use super::input::{create, io_error};
use crate::ad_report::AdReport;
use crate::report::Report;
use crate::report_scan::{columns, read_options};

/// Reads by ranges of a local file, writes with default options.
#[derive(Clone, Debug, Default)]
pub(super) struct Stoa {
    buffers: Buffers,
}

impl Library for Stoa {
    fn name(&self) -> String {
        format!("stoa-orc {}", env!("CARGO_PKG_VERSION"))
    }

    fn format(&self) -> Format {
        Format::Orc
    }

    fn read(&self, file: &Path, names: Option<&[&str]>, sink: &mut Sink<'_>) -> Result<()> {
        let file = LocalFile::open(file, &self.buffers)?;
        let metadata = file.metadata()?;
        let mut options = ReadOptions::default();
        if let Some(names) = names {
            options = options.with_projection(Projection::Columns(columns(&metadata, names)?));
        }
        file.decode(metadata, options, sink)
    }

    fn prunes(&self) -> bool {
        true
    }

    fn read_report(&self, file: &Path, report: &Report, sink: &mut Sink<'_>) -> Result<()> {
        let file = LocalFile::open(file, &self.buffers)?;
        let metadata = file.metadata()?;
        let options = read_options(&metadata, report)?;
        file.decode(metadata, options, sink)
    }

    fn write(&self, path: &Path, batches: &[RecordBatch]) -> Result<()> {
        let mut file = create(path)?;
        let mut writer = Writer::new(&AdReport::schema(), WriterOptions::default())?;
        for batch in batches {
            writer.write(batch)?;
            file.write_all(&writer.take_output()).map_err(|e| io_error(path, e))?;
        }
        writer.finish()?;
        file.write_all(&writer.take_output()).map_err(|e| io_error(path, e))
    }
}

/// Buffers that go from read to read, as those of pyarrow's allocator do: else each read of a large
/// range would measure how the system hands out fresh pages.
#[derive(Clone, Debug, Default)]
struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// A buffer on loan; dropping gives it back.
struct Lent {
    bytes: Vec<u8>,
    of: Buffers,
}

impl Buffers {
    /// A buffer of `length` bytes, with anything in it.
    fn take(&self, length: usize) -> Lent {
        let mut free = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let fits = free.iter().position(|bytes| bytes.capacity() >= length);
        let mut bytes = fits.map(|at| free.swap_remove(at)).unwrap_or_default();
        bytes.resize(length, 0);
        Lent { bytes, of: self.clone() }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.of.0.lock().unwrap_or_else(|e| e.into_inner()).push(bytes);
    }
}

struct LocalFile<'a> {
    path: &'a Path,
    file: File,
    bytes: u64,
    buffers: &'a Buffers,
}

impl<'a> LocalFile<'a> {
    fn open(path: &'a Path, buffers: &'a Buffers) -> Result<Self> {
        let file = File::open(path).map_err(|e| io_error(path, e))?;
        let bytes = file.metadata().map_err(|e| io_error(path, e))?.len();
        Ok(Self { path, file, bytes, buffers })
    }

    fn range(&self, range: Range<u64>) -> Result<Bytes> {
        let mut lent = self.buffers.take((range.end - range.start) as usize);
        let read = self.file.read_exact_at(&mut lent.bytes, range.start);
        read.map(|()| Bytes::from_owner(lent)).map_err(|e| io_error(self.path, e))
    }

    fn metadata(&self) -> Result<Arc<FileMetadata>> {
        let mut tail = TailDecoder::new(self.bytes);
        let mut wanted = tail.first_read();
        loop {
            match tail.decode(self.range(self.bytes - wanted..self.bytes)?)? {
                TailStep::NeedsTail(more) => wanted = more,
                TailStep::Done(metadata) => return Ok(Arc::new(metadata)),
            }
        }
    }

    fn decode(
        &self,
        metadata: Arc<FileMetadata>,
        options: ReadOptions,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let place = |e: Error| e.at(stoa_error::Place::file(self.path.display()));
        let mut decoder = Decoder::new(metadata, options).map_err(place)?;
        loop {
            match decoder.next().map_err(place)? {
                Step::NeedsData(ranges) => {
                    for range in ranges {
                        decoder.push(range.start, self.range(range)?);
                    }
                }
                Step::Batch(batch) => sink(batch)?,
                Step::Finished => return Ok(()),
            }
        }
    }
}
