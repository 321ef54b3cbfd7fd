//! ORC files to batches.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use stoa_error::{Error, Place, Result};
use stoa_orc::{
    ArrowOptions, Decoder, FileMetadata, Projection, ReadOptions, Step, TailDecoder, TailStep,
    TimestampOutput, TypeKind,
};

use crate::LoadOptions;
use crate::adapt::Adapter;
use crate::batches::{FileBatches, FileShare};
use crate::input::{cannot_read, display};
use crate::rejects::Rejects;

/// Tables keep microseconds, and years beyond those of 64-bit nanoseconds.
const TIMESTAMPS: TimestampOutput = TimestampOutput::Micros;

/// One ORC file being read.
pub(crate) struct OrcFile {
    name: String,
    file: File,
    decoder: Decoder,
    adapter: Adapter,
    rows_done: u64,
    rows_total: u64,
    share: FileShare,
}

impl OrcFile {
    pub fn open(
        name: String,
        path: &Path,
        target: SchemaRef,
        options: &LoadOptions,
        share: FileShare,
    ) -> Result<Self> {
        let (file, metadata) = open(&name, path)?;
        let schema = arrow_schema(&name, &metadata)?;
        let adapter = Adapter::new(&name, &schema, target, options)?;
        let rows_total = metadata.rows;
        let read = ReadOptions::default()
            .with_projection(projection(&metadata, adapter.projection()))
            .with_timestamps(TIMESTAMPS)
            .with_batch_rows(options.batch_rows);
        let decoder =
            Decoder::new(Arc::new(metadata), read).map_err(|e| e.at(Place::file(&name)))?;
        Ok(Self { name, file, decoder, adapter, rows_done: 0, rows_total, share })
    }
}

impl FileBatches for OrcFile {
    fn next_batch(&mut self, _: &mut Rejects) -> Result<Option<RecordBatch>> {
        loop {
            match self.decoder.next().map_err(|e| e.at(Place::file(&self.name)))? {
                Step::NeedsData(ranges) => {
                    for range in ranges {
                        let bytes = read(&self.file, &self.name, range.start, range.end)?;
                        self.decoder.push(range.start, bytes);
                    }
                }
                Step::Batch(batch) => {
                    self.rows_done += batch.num_rows() as u64;
                    self.share.advance(self.rows_done, self.rows_total);
                    return self.adapter.adapt(&batch).map(Some);
                }
                Step::Finished => return Ok(None),
            }
        }
    }
}

/// The schema in the file's footer.
pub(crate) fn schema(path: &Path) -> Result<SchemaRef> {
    let name = display(path);
    let (_, metadata) = open(&name, path)?;
    arrow_schema(&name, &metadata)
}

fn arrow_schema(name: &str, metadata: &FileMetadata) -> Result<SchemaRef> {
    let options = ArrowOptions { timestamps: TIMESTAMPS, ..ArrowOptions::default() };
    metadata.types.to_arrow(&options).map_err(|e| e.at(Place::file(name)))
}

/// The columns at `positions` of the root struct.
fn projection(metadata: &FileMetadata, positions: &[usize]) -> Projection {
    match metadata.types.get(0) {
        Some(root) if root.kind == TypeKind::Struct => {
            let ids = positions.iter().filter_map(|&at| root.children.get(at)).copied();
            Projection::Columns(ids.collect())
        }
        _ => Projection::All,
    }
}

fn open(name: &str, path: &Path) -> Result<(File, FileMetadata)> {
    let file = File::open(path).map_err(|e| cannot_read(name, e))?;
    let bytes = file.metadata().map_err(|e| cannot_read(name, e))?.len();
    let mut tail = TailDecoder::new(bytes);
    let mut wanted = tail.first_read();
    loop {
        let from = bytes.saturating_sub(wanted);
        match tail.decode(read(&file, name, from, bytes)?).map_err(|e| e.at(Place::file(name)))? {
            TailStep::Done(metadata) => return Ok((file, metadata)),
            TailStep::NeedsTail(more) if more > wanted => wanted = more,
            TailStep::NeedsTail(_) => {
                return Err(Error::internal(format!("{name}: the file tail asks for no more")));
            }
        }
    }
}

fn read(file: &File, name: &str, start: u64, end: u64) -> Result<Bytes> {
    let mut bytes = vec![0; end.saturating_sub(start) as usize];
    file.read_exact_at(&mut bytes, start).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::corrupt(format!("{name}: bytes {start}..{end} are beyond its end"))
                .with_hint("the file is cut off")
        }
        _ => cannot_read(name, e),
    })?;
    Ok(bytes.into())
}
