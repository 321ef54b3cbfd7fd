//! The batches of a kept result, as bytes.
//!
//! In: batches, in their order. Out: where each row is, and batches again. The first [`MEMORY_BYTES_MAX`] stay in
//! memory; what follows goes to a file that has no name, so that it is gone with the process.
//!
//! Each chunk is an Arrow IPC stream of one batch, schema included.

use std::fs::File;
use std::io::Cursor;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;
use stoa_env::{private_files, random, task};
use stoa_error::{Error, Result};

/// Bytes of one result that stay in memory.
const MEMORY_BYTES_MAX: u64 = 1 << 20;

/// Where the rows of a result are.
#[derive(Default)]
pub(super) struct Chunks {
    all: Vec<Chunk>,
    rows: u64,
    bytes: u64,
    file: Option<Arc<File>>,
    file_bytes: u64,
}

struct Chunk {
    /// Number of its first row, from 0.
    first_row: u64,
    place: Place,
}

/// Where the bytes of a chunk are.
#[derive(Clone)]
pub(super) enum Place {
    Memory(Bytes),
    Disk { file: Arc<File>, offset: u64, bytes: usize },
}

impl Chunks {
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether so many bytes more go to the file.
    pub(super) fn is_for_disk(&self, bytes: usize) -> bool {
        self.bytes + bytes as u64 > MEMORY_BYTES_MAX
    }

    /// The file, and where its next byte goes, if there is a file.
    pub(super) fn file(&self) -> Option<(Arc<File>, u64)> {
        self.file.as_ref().map(|file| (Arc::clone(file), self.file_bytes))
    }

    /// Adds a batch of `rows` rows.
    pub(super) fn add(&mut self, rows: u64, place: Place) {
        let bytes = match &place {
            Place::Memory(bytes) => bytes.len() as u64,
            Place::Disk { file, offset, bytes } => {
                self.file = Some(Arc::clone(file));
                self.file_bytes = offset + *bytes as u64;
                *bytes as u64
            }
        };
        self.all.push(Chunk { first_row: self.rows, place });
        self.rows += rows;
        self.bytes += bytes;
    }

    /// Where row `row` is, and how many rows of its chunk are before it.
    pub(super) fn find(&self, row: u64) -> Option<(Place, u64)> {
        if row >= self.rows {
            return None;
        }
        let after = self.all.partition_point(|chunk| chunk.first_row <= row);
        let chunk = self.all.get(after.checked_sub(1)?)?;
        Some((chunk.place.clone(), row - chunk.first_row))
    }
}

impl Place {
    /// Writes bytes to `file` at `offset`, or to a new file in `directory`.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) async fn write(
        directory: &Path,
        file: Option<(Arc<File>, u64)>,
        bytes: Vec<u8>,
    ) -> std::io::Result<Self> {
        let directory = directory.to_owned();
        let write = move || {
            let (file, offset) = match file {
                Some(known) => known,
                None => (Arc::new(nameless(&directory)?), 0),
            };
            file.write_all_at(&bytes, offset)?;
            Ok(Self::Disk { file, offset, bytes: bytes.len() })
        };
        task::spawn_blocking(write).await.map_err(std::io::Error::other)?
    }

    /// The batch.
    ///
    /// # Errors
    /// Unavailable: the file cannot be read. Internal: it is not what was written.
    pub(super) async fn read(self) -> Result<RecordBatch> {
        let bytes = match self {
            Self::Memory(bytes) => bytes,
            Self::Disk { file, offset, bytes } => {
                let read = move || {
                    let mut buffer = vec![0; bytes];
                    file.read_exact_at(&mut buffer, offset)?;
                    Ok::<_, std::io::Error>(Bytes::from(buffer))
                };
                let read = task::spawn_blocking(read).await.map_err(std::io::Error::other);
                read.flatten().map_err(|error| {
                    Error::unavailable("cannot read the result that was kept").with_source(error)
                })?
            }
        };
        decode(bytes)
    }
}

/// A batch as bytes.
///
/// # Errors
/// Internal: Arrow cannot write it.
pub(super) fn encode(batch: &RecordBatch) -> Result<Vec<u8>> {
    let write = || {
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(batch)?;
        writer.into_inner()
    };
    write().map_err(|error| Error::internal("cannot keep the result").with_source(error))
}

fn decode(bytes: Bytes) -> Result<RecordBatch> {
    let wrong = || Error::internal("the result that was kept cannot be read");
    let mut reader =
        StreamReader::try_new(Cursor::new(bytes), None).map_err(|e| wrong().with_source(e))?;
    let batch = reader.next().ok_or_else(wrong)?;
    batch.map_err(|error| wrong().with_source(error))
}

/// A new file for this process alone, which is gone when nobody has it open.
fn nameless(directory: &Path) -> std::io::Result<File> {
    let path = directory.join(format!("stoa-result-{}", random::uuid()));
    let file = private_files::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
