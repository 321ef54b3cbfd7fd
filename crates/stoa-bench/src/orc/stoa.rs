//! `stoa-orc` as a contender.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

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
#[derive(Clone, Copy, Debug)]
pub(super) struct Stoa;

impl Library for Stoa {
    fn name(&self) -> String {
        format!("stoa-orc {}", env!("CARGO_PKG_VERSION"))
    }

    fn format(&self) -> Format {
        Format::Orc
    }

    fn read(&self, file: &Path, names: Option<&[&str]>, sink: &mut Sink<'_>) -> Result<()> {
        let file = LocalFile::open(file)?;
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
        let file = LocalFile::open(file)?;
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

struct LocalFile<'a> {
    path: &'a Path,
    file: File,
    bytes: u64,
}

impl<'a> LocalFile<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| io_error(path, e))?;
        let bytes = file.metadata().map_err(|e| io_error(path, e))?.len();
        Ok(Self { path, file, bytes })
    }

    fn range(&self, range: Range<u64>) -> Result<Bytes> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = self.file.read_exact_at(&mut bytes, range.start);
        read.map(|()| Bytes::from(bytes)).map_err(|e| io_error(self.path, e))
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
        let place = |e: Error| e.at(self.path.display());
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
