//! All inputs, one after the other, as batches of one schema.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use stoa_error::{Error, ErrorKind, Result};

use crate::arrow_ipc::IpcFile;
use crate::batches::{FileBatches, FileShare};
use crate::delimited::{DelimitedReader, Records};
use crate::ndjson::NdjsonReader;
use crate::orc_file::OrcFile;
use crate::parquet_file::ParquetFile;
use crate::pg_binary::PgBinaryReader;
use crate::rejects::Rejects;
use crate::{Format, Input, LoadOptions, Progress, format};

/// Longest line of a stream, bytes, whatever the options say: who sends it need not have it, as a few
/// bytes that are compressed can become any number.
pub(crate) const STREAM_LINE_BYTES_MAX: usize = 64 << 20;

/// Batches of all inputs in order; ends after the first error.
pub struct BatchReader {
    waiting: VecDeque<Input>,
    current: Option<Box<dyn FileBatches>>,
    target: SchemaRef,
    options: Arc<LoadOptions>,
    rejects: Rejects,
    progress: Arc<Progress>,
    /// Bytes of the files before the current one and of it, where all are known.
    bytes_done: u64,
    finished: bool,
}

/// Opens `inputs` to be read as batches of `target`.
///
/// Files are opened when their turn comes; that they exist is seen now.
///
/// # Errors
/// `NotFound` for a missing file, `Invalid` for options that contradict each other or a format
/// that cannot be told.
pub fn open(inputs: Vec<Input>, target: SchemaRef, options: LoadOptions) -> Result<BatchReader> {
    options.check()?;
    let progress = Arc::new(Progress::default());
    for input in &inputs {
        progress.add_total(input.total_bytes()?.unwrap_or(0));
        format::detect(&input.name(), input.path(), options.format, options.compression)?;
    }
    Ok(BatchReader {
        waiting: inputs.into(),
        current: None,
        target,
        rejects: Rejects::new(&options, progress.clone())?,
        options: Arc::new(options),
        progress,
        bytes_done: 0,
        finished: false,
    })
}

impl BatchReader {
    /// The schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        self.target.clone()
    }

    /// The counters, which live on while batches are read elsewhere.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.current.is_none() {
                let Some(input) = self.waiting.pop_front() else {
                    self.rejects.finish()?;
                    return Ok(None);
                };
                self.current = Some(self.open_file(input)?);
            }
            let Some(file) = &mut self.current else {
                continue;
            };
            if let Some(batch) = file.next_batch(&mut self.rejects)? {
                self.progress.add_rows(batch.num_rows() as u64);
                return Ok(Some(batch));
            }
            self.current = None;
            self.progress.set_read(self.progress.bytes_read().max(self.bytes_done));
        }
    }

    fn open_file(&mut self, input: Input) -> Result<Box<dyn FileBatches>> {
        let name = input.name();
        let options = match input.path() {
            Some(_) => self.options.clone(),
            None => for_stream(&self.options),
        };
        let options = &options;
        let (format, compression) =
            format::detect(&name, input.path(), options.format, options.compression)?;
        let before = self.bytes_done;
        let bytes = input.total_bytes()?.unwrap_or(0);
        self.bytes_done += bytes;
        let target = self.target.clone();
        if format.is_text() {
            let reader = input.into_reader(compression, self.progress.clone())?;
            if format == Format::Ndjson {
                let file = NdjsonReader::new(name, reader, target, options.clone())?;
                return Ok(Box::new(file));
            }
            let records = Records::new(name, reader, options, format)?;
            let file = DelimitedReader::new(records, format, target, options.clone())?;
            return Ok(Box::new(file));
        }
        if format == Format::Binary {
            let reader = input.into_reader(compression, self.progress.clone())?;
            let file = PgBinaryReader::new(name, reader, target, options.clone())?;
            return Ok(Box::new(file));
        }
        let share = FileShare::new(self.progress.clone(), before, bytes);
        match (input.path(), format) {
            (Some(path), Format::Arrow) => {
                Ok(Box::new(IpcFile::open(path, target, options, share)?))
            }
            (Some(path), _) => read_from_end(name, path, format, target, options, share),
            (None, Format::Arrow) => {
                let reader = input.into_reader(compression, self.progress.clone())?;
                Ok(Box::new(IpcFile::from_stream(name, reader, target, options)?))
            }
            (None, _) => {
                let Some(spool) = &options.spool else {
                    let what = format!("{name}: {} from a stream", format.name());
                    return Err(Error::unsupported(what)
                        .with_hint("these files are read from their end; load it as a file"));
                };
                let reader = input.into_reader(compression, self.progress.clone())?;
                let spooled = spool.take(&name, reader)?;
                // Opened, it can go.
                let file = read_from_end(name, spooled.path(), format, target, options, share);
                Ok(Box::new(Sent(file.map_err(as_sent)?)))
            }
        }
    }
}

/// A file that a client has sent: damage is the client's to mend, not the server's.
struct Sent(Box<dyn FileBatches>);

impl FileBatches for Sent {
    fn next_batch(&mut self, rejects: &mut Rejects) -> Result<Option<RecordBatch>> {
        self.0.next_batch(rejects).map_err(as_sent)
    }
}

/// Damage as an error of whoever has sent it.
pub(crate) fn as_sent(error: Error) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    Error::invalid(error.message().to_owned())
        .with_sqlstate("22P04")
        .with_hint("the file is damaged or was cut off on its way; nothing was loaded")
        .with_source(error)
}

/// A file of a format whose columns are told at its end.
fn read_from_end(
    name: String,
    path: &Path,
    format: Format,
    target: SchemaRef,
    options: &LoadOptions,
    share: FileShare,
) -> Result<Box<dyn FileBatches>> {
    Ok(match format {
        Format::Parquet => Box::new(ParquetFile::open(name, path, target, options, share)?),
        _ => Box::new(OrcFile::open(name, path, target, options, share)?),
    })
}

/// The options under which a stream is read.
fn for_stream(options: &Arc<LoadOptions>) -> Arc<LoadOptions> {
    if options.max_line_bytes <= STREAM_LINE_BYTES_MAX {
        return options.clone();
    }
    let options = options.as_ref().clone();
    Arc::new(LoadOptions { max_line_bytes: STREAM_LINE_BYTES_MAX, ..options })
}

impl Iterator for BatchReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let next = self.next_batch();
        if !matches!(next, Ok(Some(_))) {
            self.finished = true;
        }
        if next.is_err() {
            // What was rejected so far helps to see what is wrong; the first error counts.
            let _ = self.rejects.finish();
        }
        next.transpose()
    }
}
