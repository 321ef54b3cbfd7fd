//! Arrow IPC files, of the file or the stream format, to batches.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use stoa_error::{Error, Place, Result};

use crate::LoadOptions;
use crate::adapt::Adapter;
use crate::batches::{FileBatches, FileShare};
use crate::checked_ipc::{CheckedIpc, check_file, error_of};
use crate::input::{cannot_read, display};
use crate::rejects::Rejects;

/// What the file format starts with; the stream format does not.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// One Arrow file being read.
pub(crate) struct IpcFile {
    name: String,
    batches: Batches,
    adapter: Adapter,
    rows_max: usize,
    /// What is left of a batch that was larger than `rows_max`.
    rest: Option<RecordBatch>,
    done: u64,
    /// `None` for what is counted while it is read.
    share: Option<FileShare>,
}

enum Batches {
    File(Box<FileReader<BufReader<File>>>),
    Stream(Box<StreamReader<CheckedIpc<BufReader<File>>>>),
    /// The stream format from something that is no file.
    Pipe(Box<StreamReader<CheckedIpc<Box<dyn Read + Send>>>>),
}

impl Batches {
    fn open(path: &Path) -> Result<Self> {
        let name = display(path);
        let mut file = File::open(path).map_err(|e| cannot_read(&name, e))?;
        let mut head = Vec::new();
        (&mut file)
            .take(FILE_MAGIC.len() as u64)
            .read_to_end(&mut head)
            .and_then(|_| file.seek(SeekFrom::Start(0)))
            .map_err(|e| cannot_read(&name, e))?;
        let bytes = file.metadata().map_err(|e| cannot_read(&name, e))?.len();
        let mut file = BufReader::with_capacity(256 << 10, file);
        let opened = if head == FILE_MAGIC {
            check_file(&mut file).map_err(|e| e.at(Place::file(&name)))?;
            FileReader::try_new(file, None).map(|reader| Self::File(Box::new(reader)))
        } else {
            let file = CheckedIpc::new(file, Some(bytes));
            StreamReader::try_new(file, None).map(|reader| Self::Stream(Box::new(reader)))
        };
        opened.map_err(|e| not_readable(&name, e))
    }

    fn pipe(name: &str, reader: Box<dyn Read + Send>) -> Result<Self> {
        let reader = CheckedIpc::new(reader, None);
        let opened = StreamReader::try_new(reader, None).map_err(|e| not_readable(name, e))?;
        Ok(Self::Pipe(Box::new(opened)))
    }

    fn schema(&self) -> SchemaRef {
        match self {
            Self::File(reader) => reader.schema(),
            Self::Stream(reader) => reader.schema(),
            Self::Pipe(reader) => reader.schema(),
        }
    }

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        match self {
            Self::File(reader) => reader.next(),
            Self::Stream(reader) => reader.next(),
            Self::Pipe(reader) => reader.next(),
        }
    }

    /// How many there are, where the file says so.
    fn count(&self) -> Option<u64> {
        match self {
            Self::File(reader) => Some(reader.num_batches() as u64),
            Self::Stream(_) | Self::Pipe(_) => None,
        }
    }

    /// Bytes read from the file, roughly, where its batches are not counted.
    fn position(&mut self) -> u64 {
        match self {
            Self::File(_) | Self::Pipe(_) => 0,
            Self::Stream(reader) => reader.get_ref().position(),
        }
    }
}

impl IpcFile {
    pub fn open(
        path: &Path,
        target: SchemaRef,
        options: &LoadOptions,
        share: FileShare,
    ) -> Result<Self> {
        Self::new(display(path), Batches::open(path)?, target, options, Some(share))
    }

    /// Batches of the stream format from `reader`, which `name` stands for in errors.
    pub fn from_stream(
        name: String,
        reader: Box<dyn Read + Send>,
        target: SchemaRef,
        options: &LoadOptions,
    ) -> Result<Self> {
        let batches = Batches::pipe(&name, reader)?;
        Self::new(name, batches, target, options, None)
    }

    fn new(
        name: String,
        batches: Batches,
        target: SchemaRef,
        options: &LoadOptions,
        share: Option<FileShare>,
    ) -> Result<Self> {
        let adapter = Adapter::new(&name, &batches.schema(), target, options)?;
        Ok(Self {
            name,
            batches,
            adapter,
            rows_max: options.batch_rows,
            rest: None,
            done: 0,
            share,
        })
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        let Some(batch) = self.batches.next() else {
            return Ok(None);
        };
        self.done += 1;
        if let Some(share) = &self.share {
            match self.batches.count() {
                Some(count) => share.advance(self.done, count),
                None => share.advance_to(self.batches.position()),
            }
        }
        let projected = batch.and_then(|batch| batch.project(self.adapter.projection()));
        projected.map(Some).map_err(|e| match error_of(e) {
            Ok(ours) => ours.at(format!("{}: batch {}", self.name, self.done)),
            Err(e) => Error::corrupt(format!("{}: batch {} is damaged", self.name, self.done))
                .with_source(e),
        })
    }
}

impl FileBatches for IpcFile {
    fn next_batch(&mut self, _: &mut Rejects) -> Result<Option<RecordBatch>> {
        loop {
            let Some(batch) = self.read()? else {
                return Ok(None);
            };
            if batch.num_rows() == 0 {
                continue;
            }
            let rows = batch.num_rows().min(self.rows_max);
            if rows < batch.num_rows() {
                self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
            }
            return self.adapter.adapt(&batch.slice(0, rows)).map(Some);
        }
    }
}

fn not_readable(name: &str, source: ArrowError) -> Error {
    let source = match error_of(source) {
        Ok(ours) => return ours.at(name),
        Err(source) => source,
    };
    Error::corrupt(format!("{name} is not a readable Arrow file"))
        .with_hint("if it is in another format, set the option format")
        .with_source(source)
}

/// The schema at the file's start or end.
pub(crate) fn schema(path: &Path) -> Result<SchemaRef> {
    Ok(Batches::open(path)?.schema())
}
