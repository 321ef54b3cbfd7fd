//! Opens a load file and hands out its cells.

use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flate2::bufread::MultiGzDecoder;
use stoa_error::{Error, Place, Result};

use super::families::Families;
use super::header::{Header, Layout};
use super::lines::Lines;
use super::multi_cell::MultiCell;
use super::single_cell::SingleCell;
use super::sink::{LoadCounts, Sink};
use crate::batch::CellBatch;
use crate::budget::MemoryBudget;
use crate::files::{Files, ReadFile};
use crate::lang::ast::LoadOptions;
use crate::store::CellStore;
use crate::time_text::Zone;

/// Reads a load file, batch by batch.
pub(crate) struct LoadReader {
    name: String,
    lines: Lines,
    plan: Option<Plan>,
    families: Families,
    sink: Sink,
    crlf: bool,
    read: Arc<AtomicU64>,
    length: Option<u64>,
}

enum Plan {
    MultiCell(MultiCell),
    SingleCell(SingleCell),
}

impl LoadReader {
    /// Opens a file and looks at its first line; lines take memory of `budget`.
    ///
    /// # Errors
    /// Those of [`Files::open`], and [`Invalid`](stoa_error::ErrorKind::Invalid) if the first line
    /// does not say what the file holds.
    pub(crate) fn open(
        files: &dyn Files,
        name: &str,
        options: &LoadOptions,
        zone: Zone,
        families: Families,
        store: Arc<dyn CellStore>,
        budget: Arc<dyn MemoryBudget>,
    ) -> Result<Self> {
        let at_file = |error: Error| error.at(Place::file(name));
        let header = match &options.header_file {
            Some(file) => Some(header_of(files, file, options, Arc::clone(&budget))?),
            None => None,
        };
        let read = Arc::new(AtomicU64::new(0));
        let (input, length) = open(files, name, &read)?;
        let mut reader = Self {
            name: name.to_owned(),
            lines: Lines::new(input, budget),
            plan: None,
            families,
            sink: Sink::new(store),
            crlf: false,
            read,
            length,
        };
        reader.start(header, options, zone).map_err(at_file)?;
        Ok(reader)
    }

    /// Bytes of the file, as it lies there; none for a stream.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// A counter of the bytes of the file that were read, as they lie there.
    pub(crate) fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }

    /// What was read so far.
    pub(crate) fn counts(&self) -> LoadCounts {
        self.sink.counts
    }

    /// The families of the cells so far.
    pub(crate) fn families(&self) -> &Families {
        &self.families
    }

    /// Whether the file tells timestamps.
    pub(crate) fn has_timestamps(&self) -> bool {
        match &self.plan {
            Some(Plan::MultiCell(plan)) => plan.has_timestamps(),
            Some(Plan::SingleCell(plan)) => plan.has_timestamps(),
            None => false,
        }
    }

    /// Warnings since the last call, and how many there were beyond those that are kept.
    pub(crate) fn take_warnings(&mut self) -> (Vec<String>, u64) {
        (self.sink.take_warnings(), self.sink.warnings_more())
    }

    /// The next cells; none at the end.
    ///
    /// # Errors
    /// The file cannot be read, or a line names a family that does not exist.
    pub(crate) fn next_batch(&mut self) -> Result<Option<CellBatch>> {
        while !self.sink.builder.is_full() {
            let number = self.lines.number() + 1;
            let line = self.lines.next().map_err(|e| e.at(Place::file(&self.name)))?;
            let Some(line) = line else { break };
            let line = if self.crlf { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
            if line.is_empty() {
                continue;
            }
            match &mut self.plan {
                Some(Plan::MultiCell(plan)) => plan.line(line, number, &mut self.sink),
                Some(Plan::SingleCell(plan)) => {
                    plan.line(line, number, &mut self.families, &mut self.sink)
                }
                None => Ok(()),
            }
            .map_err(|e| e.at(Place::file(&self.name)))?;
        }
        if self.sink.builder.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.sink.finish()))
    }

    /// Makes the plan, from the header or from the first line; loads that one if it is data.
    fn start(&mut self, header: Option<Header>, options: &LoadOptions, zone: Zone) -> Result<()> {
        let separator = separator(options);
        let mut first = None;
        let header = match header {
            Some(header) => header,
            None => {
                let Some(line) = self.lines.next()? else { return Ok(()) };
                let header = Header::of_line(line, options, separator, &self.families)?;
                first = header.is_data.then(|| line.to_vec());
                header
            }
        };
        self.crlf = header.crlf;
        let mut plan = match header.layout {
            Layout::SingleCell { has_timestamp } => {
                Plan::SingleCell(SingleCell::new(has_timestamp, options, separator, zone))
            }
            Layout::MultiCell(names) => {
                let families = &mut self.families;
                Plan::MultiCell(MultiCell::new(&names, options, separator, zone, families)?)
            }
        };
        if let (Some(line), Plan::SingleCell(plan)) = (first, &mut plan) {
            let line = line.strip_suffix(b"\r").filter(|_| self.crlf).unwrap_or(&line);
            plan.line(line, 1, &mut self.families, &mut self.sink)?;
        }
        self.plan = Some(plan);
        Ok(())
    }
}

fn separator(options: &LoadOptions) -> u8 {
    options.field_separator.unwrap_or(b'\t')
}

fn header_of(
    files: &dyn Files,
    name: &str,
    options: &LoadOptions,
    budget: Arc<dyn MemoryBudget>,
) -> Result<Header> {
    let (input, _) = open(files, name, &Arc::default())?;
    let mut lines = Lines::new(input, budget);
    match lines.next().map_err(|e| e.at(Place::file(name)))? {
        Some(line) => Ok(Header::of_file(line, separator(options))),
        None => Err(Error::invalid(format!("header file {name} is empty")).with_sqlstate("22P04")),
    }
}

type Input = (Box<dyn Read + Send>, Option<u64>);

/// The decompressed bytes of a file, those read from disk counted; and how long it is.
fn open(files: &dyn Files, name: &str, read: &Arc<AtomicU64>) -> Result<Input> {
    let ReadFile { bytes, length } = files.open(name)?;
    let counted = Counted { inner: bytes, read: Arc::clone(read) };
    if !name.ends_with(".gz") {
        return Ok((Box::new(counted), length));
    }
    let buffered = BufReader::with_capacity(128 << 10, counted);
    Ok((Box::new(MultiGzDecoder::new(buffered)), length))
}

struct Counted {
    inner: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.read.fetch_add(bytes as u64, Relaxed);
        Ok(bytes)
    }
}
