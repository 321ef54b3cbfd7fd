//! LOAD DATA INFILE.
//!
//! A thread of its own reads and parses the file; batches go through a short queue to the store,
//! so that both work at the same time and neither runs ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use stoa_error::{Error, Result};
use tokio::sync::mpsc;

use super::Session;
use crate::batch::CellBatch;
use crate::lang::ast::{LoadData, LoadOptions, LoadTarget};
use crate::load::{Families, LoadReader};
use crate::output::{CellFormat, Output, OutputFile, ProgressDisplay, Statistics};
use crate::store::{BulkLoad, errors};
use crate::time_text::{TimestampFormat, Zone};

/// Batches between the thread that parses and the store.
const QUEUE_BATCHES: usize = 4;

impl Session {
    pub(super) async fn load_data(&self, load: LoadData, out: &mut dyn Output) -> Result<()> {
        match &load.target {
            LoadTarget::Table(name) => {
                self.load_table(&load.options, &load.source, name, out).await
            }
            LoadTarget::File(file) => {
                self.load_file(load.options, load.source.clone(), file, out).await
            }
        }
    }

    async fn load_table(
        &self,
        options: &LoadOptions,
        source: &str,
        name: &str,
        out: &mut dyn Output,
    ) -> Result<()> {
        let mut statistics = Statistics::start();
        let (table, schema) = self.open(name).await?;
        let families = Families::of(&schema);
        let reader = self.open_file(options.clone(), source.to_owned(), families).await?;
        let mut progress = self.progress(reader.length(), out)?;
        let _under_way = self.store.timestamps().begin();
        let mut bulk = self.store.bulk_load(&table, !options.no_log).await?;
        let reader = match feed(bulk.as_mut(), reader, &mut progress, out).await {
            Ok(reader) => reader,
            Err(error) => {
                let stay = bulk.abandon().await;
                return Err(errors::load_broke_off(error, stay));
            }
        };
        bulk.finish().await?;
        progress.finish(out)?;
        self.report(reader, &mut statistics, out)
    }

    /// INTO FILE: the same cells, one per line; with timestamps if the file tells them.
    async fn load_file(
        &self,
        options: LoadOptions,
        source: String,
        file: &str,
        out: &mut dyn Output,
    ) -> Result<()> {
        let mut statistics = Statistics::start();
        let reader = self.open_file(options, source, Families::any()).await?;
        let mut progress = self.progress(reader.length(), out)?;
        let target = OutputFile::create(self.files.as_ref(), file)?;
        let convert = move || convert(reader, target);
        let reader = stoa_env::task::spawn_blocking(convert).await.map_err(broke)??;
        progress.finish(out)?;
        self.report(reader, &mut statistics, out)
    }

    fn progress(&self, length: Option<u64>, out: &mut dyn Output) -> Result<ProgressDisplay> {
        ProgressDisplay::start(length.filter(|_| !self.options.silent), out)
    }

    /// Warnings and statistics.
    fn report(
        &self,
        mut reader: LoadReader,
        statistics: &mut Statistics,
        out: &mut dyn Output,
    ) -> Result<()> {
        let (warnings, more) = reader.take_warnings();
        for warning in warnings {
            out.notice(&format!("{warning}\n"))?;
        }
        if more > 0 {
            out.notice(&format!("warn: {more} more lines or cells were skipped\n"))?;
        }
        let counts = reader.counts();
        statistics.cells = counts.cells;
        statistics.key_bytes = counts.key_bytes;
        statistics.value_bytes = counts.value_bytes;
        statistics.file_bytes = Some(reader.bytes_read().load(Relaxed));
        if !self.options.silent {
            out.notice("\nLoad complete.\n")?;
        }
        self.print_statistics(statistics, true, out)
    }

    async fn open_file(
        &self,
        options: LoadOptions,
        source: String,
        families: Families,
    ) -> Result<LoadReader> {
        let (files, zone, store) =
            (Arc::clone(&self.files), self.options.zone, Arc::clone(&self.store));
        let budget = Arc::clone(&self.budget);
        let open = move || {
            LoadReader::open(files.as_ref(), &source, &options, zone, families, store, budget)
        };
        stoa_env::task::spawn_blocking(open).await.map_err(broke)?
    }
}

/// Hands the cells of a file to the store.
async fn feed(
    bulk: &mut dyn BulkLoad,
    reader: LoadReader,
    progress: &mut ProgressDisplay,
    out: &mut dyn Output,
) -> Result<LoadReader> {
    let mut parser = Parser::start(reader);
    while let Some(batch) = parser.batches.recv().await {
        bulk.write(batch).await?;
        progress.advance(parser.bytes_read.load(Relaxed), out)?;
    }
    parser.finish().await
}

/// A file that is being parsed.
struct Parser {
    batches: mpsc::Receiver<CellBatch>,
    bytes_read: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<Result<LoadReader>>,
}

impl Parser {
    fn start(reader: LoadReader) -> Self {
        let (sender, batches) = mpsc::channel(QUEUE_BATCHES);
        let bytes_read = reader.bytes_read();
        let task = stoa_env::task::spawn_blocking(move || parse_all(reader, &sender));
        Self { batches, bytes_read, task }
    }

    /// What the reader says at the end; its error if it could not go on.
    async fn finish(self) -> Result<LoadReader> {
        self.task.await.map_err(broke)?
    }
}

/// Parses until the end, or until nobody takes the batches.
fn parse_all(mut reader: LoadReader, batches: &mpsc::Sender<CellBatch>) -> Result<LoadReader> {
    while let Some(batch) = reader.next_batch()? {
        if batches.blocking_send(batch).is_err() {
            break;
        }
    }
    Ok(reader)
}

/// Writes the cells of a file as lines of another.
fn convert(mut reader: LoadReader, mut target: OutputFile) -> Result<LoadReader> {
    let mut format = CellFormat::of_names(reader.families().names());
    if reader.has_timestamps() {
        format = format.with_timestamps(TimestampFormat::Nanoseconds, Zone::Utc);
    }
    target.write(&format.header())?;
    let mut text = Vec::new();
    while let Some(batch) = reader.next_batch()? {
        // Lines may have brought up new families.
        format.set_names(reader.families().names());
        text.clear();
        format.write(&batch, &mut text);
        target.write(&text)?;
    }
    target.finish()?;
    Ok(reader)
}

fn broke(error: tokio::task::JoinError) -> Error {
    Error::internal("the load broke off").with_source(error)
}
