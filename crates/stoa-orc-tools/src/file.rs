//! A local ORC file: its tail, and reads at offsets.
//!
//! In: a path. Out: metadata, byte ranges, batches of a stripe. **Invariant:** every error names
//! the file. Not here: what the bytes mean (`stoa-orc`).

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use stoa_error::{Error, ErrorKind, Place, Result};
use stoa_orc::{Decoder, FileMetadata, ReadOptions, Step, StripeMetadata, TailDecoder, TailStep};
use stoa_rangeio::{PlanOptions, plan};

/// An open file.
pub(crate) struct OrcFile {
    name: String,
    file: File,
    /// The last bytes of the file: footer and postscript at least.
    pub(crate) tail: Bytes,
    pub(crate) metadata: Arc<FileMetadata>,
}

impl OrcFile {
    /// Opens a file and reads its tail.
    ///
    /// # Errors
    /// `NotFound`, `Forbidden` or `Unavailable` if it cannot be read; `Corrupt` if it is no ORC
    /// file; `Unsupported` for types or codecs that are not known.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| cannot_open(&name, e))?;
        let about = file.metadata().map_err(|e| cannot_open(&name, e))?;
        if about.is_dir() {
            return Err(Error::invalid(format!("{name} is a directory")));
        }
        let bytes = about.len();
        let mut decoder = TailDecoder::new(bytes);
        let mut wanted = decoder.first_read();
        loop {
            let from = bytes.saturating_sub(wanted);
            let tail = read_at(&file, &name, from..bytes)?;
            match decoder.decode(tail.clone()).map_err(|e| e.at(Place::file(&name)))? {
                TailStep::NeedsTail(more) => wanted = more,
                TailStep::Done(metadata) => {
                    return Ok(Self { name, file, tail, metadata: Arc::new(metadata) });
                }
            }
        }
    }

    /// The file as it was named.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Puts the file's name in front of an error.
    #[cold]
    pub(crate) fn place(&self, error: Error) -> Error {
        error.at(Place::file(&self.name))
    }

    /// Reads a range of the file.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Bytes> {
        read_at(&self.file, &self.name, range)
    }

    /// The batches of one stripe.
    pub(crate) fn stripe(&self, index: usize, options: ReadOptions) -> Result<Batches<'_>> {
        let options = options.with_stripes(index..index + 1);
        let decoder = Decoder::new(self.metadata.clone(), options).map_err(|e| self.place(e))?;
        Ok(Batches { file: self, decoder })
    }
}

/// Batches of one stripe, read as they are asked for.
pub(crate) struct Batches<'a> {
    file: &'a OrcFile,
    decoder: Decoder,
}

impl Batches<'_> {
    /// The next batch, `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match self.decoder.next().map_err(|e| self.file.place(e))? {
                Step::NeedsData(ranges) => self.supply(&ranges)?,
                Step::Batch(batch) => return Ok(Some(batch)),
                Step::Finished => return Ok(None),
            }
        }
    }

    /// What is known by now about a stripe.
    pub(crate) fn stripe_metadata(&self, stripe: usize) -> Option<Arc<StripeMetadata>> {
        self.decoder.stripe_metadata(stripe)
    }

    fn supply(&mut self, ranges: &[Range<u64>]) -> Result<()> {
        for planned in plan(ranges, &PlanOptions::local_file()) {
            let bytes = self.file.read(planned.range.clone())?;
            self.decoder.push(planned.range.start, bytes);
        }
        Ok(())
    }
}

fn read_at(file: &File, name: &str, range: Range<u64>) -> Result<Bytes> {
    let length = range.end.saturating_sub(range.start);
    let length = usize::try_from(length).map_err(|_| {
        Error::new(ErrorKind::Exhausted, format!("{name}: a read of {length} bytes"))
    })?;
    let mut buffer = vec![0; length];
    match file.read_exact_at(&mut buffer, range.start) {
        Ok(()) => Ok(Bytes::from(buffer)),
        Err(error) => {
            let message = format!("{name}: cannot read {length} bytes at offset {}", range.start);
            Err(Error::unavailable(message).with_sqlstate("58030").with_source(error))
        }
    }
}

fn cannot_open(name: &str, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::not_found(format!("file {name} does not exist")).with_sqlstate("58P01")
        }
        std::io::ErrorKind::PermissionDenied => {
            Error::new(ErrorKind::Forbidden, format!("file {name} may not be read"))
                .with_source(error)
        }
        _ => Error::unavailable(format!("cannot read {name}"))
            .with_sqlstate("58030")
            .with_source(error),
    }
}
