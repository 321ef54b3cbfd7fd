//! `COPY`: rows from the client into a table, or rows to the client.
//!
//! In: bytes in chunks of any size. Out: one commit at the end. **Invariants:** a copy that is
//! dropped, aborted or fails leaves nothing visible; rows go to the table that its name meant when it
//! began, or the copy fails.

use std::io::Read;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use bytes::{Buf, Bytes};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use stoa_access::Privilege;
use stoa_error::{Error, ErrorKind, Result};
use stoa_load::{Format, Input, LoadOptions, Spool};
use stoa_table::Table;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::engine::EngineOptions;
use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::defaults::{self, ColumnDefaults};
use crate::statements::load::{append_few, append_many, options_of_stream, reader_stream};
use crate::statements::outcome::Ran;
use crate::tables::fresh::Taken;
use crate::tables::transaction::Block;
use stoa_semantics::errors::from_datafusion;
use stoa_sql::{CopySource, CopyStatement};

/// Chunks of client data that wait to be parsed.
const CHUNKS_QUEUED_MAX: usize = 16;

/// Bytes of client data that wait to be parsed, or one chunk that is larger.
const QUEUED_BYTES_MAX: usize = 4 << 20;

/// Bytes of Parquet or ORC that one client sends: they are on disk before their rows are read.
const SPOOLED_BYTES_MAX: u64 = 64 << 30;

/// A `COPY … FROM STDIN` that waits for its rows.
pub struct CopyIn {
    columns: SchemaRef,
    is_binary: bool,
    chunks: Option<mpsc::Sender<Chunk>>,
    load: JoinHandle<Result<u64>>,
    /// What the load came to, if that is known before the end of the data.
    ended: Option<Result<u64>>,
    guard: Option<QueryGuard>,
    /// The session's transaction block, which an error fails.
    block: Arc<Block>,
    /// How many bytes may still be queued.
    room: Arc<Semaphore>,
    /// What queued bytes are charged to.
    memory: Arc<dyn MemoryPool>,
}

impl CopyIn {
    /// The columns expected, in order.
    pub fn columns(&self) -> SchemaRef {
        Arc::clone(&self.columns)
    }

    /// Whether the rows are in PostgreSQL's binary format.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Takes the next bytes, as they came. Waits while too much is queued.
    ///
    /// # Errors
    /// The error that parsing or writing has met; 53200 where there is no memory for these bytes.
    pub fn send(&mut self, chunk: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let cancelled = self.guard.as_ref().filter(|guard| guard.cancel_token().is_cancelled());
            if let Some(error) = cancelled.map(QueryGuard::cancelled_error) {
                return Err(self.fail(error).await);
            }
            let held = match hold(&self.room, &self.memory, chunk.len()).await {
                Ok(held) => held,
                Err(error) => return Err(self.fail(error).await),
            };
            let sent = match &self.chunks {
                Some(chunks) => chunks.send(Chunk::Bytes(chunk, Some(held))).await.is_ok(),
                None => false,
            };
            match sent {
                true => Ok(()),
                // The reader is gone: it has met an error, or the mark of the data's end.
                false => match self.loaded().await {
                    Ok(rows) => {
                        self.ended = Some(Ok(rows));
                        Ok(())
                    }
                    Err(error) => {
                        self.ended = Some(Err(error));
                        self.end().await.map(drop)
                    }
                },
            }
        })
    }

    /// Waits for an error that ends the copy before all data is there: one of parsing or writing, or
    /// that somebody cancels it. Waits for ever if there is none. May be dropped and called again.
    pub fn failed(&mut self) -> BoxFuture<'_, Error> {
        Box::pin(async move {
            let cancelled = self.guard.as_ref().map(|guard| guard.cancel_token().clone());
            let cancelled = async {
                match cancelled {
                    Some(token) => token.cancelled_owned().await,
                    None => std::future::pending().await,
                }
            };
            if self.ended.is_none() {
                tokio::select! {
                    ended = &mut self.load => self.ended = Some(ended.unwrap_or_else(broke_off)),
                    () = cancelled => {
                        let error = self.guard.as_ref().map(QueryGuard::cancelled_error);
                        let error = error.unwrap_or_else(|| Error::internal("nobody cancelled this"));
                        return self.fail(error).await;
                    }
                }
            }
            match self.ended {
                Some(Err(_)) => self
                    .end()
                    .await
                    .err()
                    .unwrap_or_else(|| Error::internal("a copy failed without an error")),
                _ => std::future::pending().await,
            }
        })
    }

    /// Commits what was sent.
    ///
    /// # Errors
    /// The error that parsing or writing has met; nothing is loaded then.
    pub fn finish(mut self) -> BoxFuture<'static, Result<Completion>> {
        Box::pin(async move { self.end().await.map(|rows| Completion::rows("COPY", rows)) })
    }

    /// Gives up; `reason` is what the client said.
    pub fn abort(mut self, reason: &str) -> BoxFuture<'_, Error> {
        Box::pin(async move {
            let error =
                Error::new(ErrorKind::Cancelled, format!("COPY from stdin failed: {reason}"))
                    .with_sqlstate("57014");
            self.fail(error).await
        })
    }

    pub(crate) fn with_guard(mut self, guard: QueryGuard) -> Self {
        self.guard = Some(guard);
        self
    }

    async fn fail(&mut self, error: Error) -> Error {
        if let Some(chunks) = self.chunks.take() {
            let _ = chunks.send(Chunk::Broken(error.to_string())).await;
        }
        let _ = self.loaded().await;
        self.block.fail();
        if let Some(mut guard) = self.guard.take() {
            guard.end(Err(&error));
        }
        error
    }

    /// What the load came to; once.
    async fn loaded(&mut self) -> Result<u64> {
        match self.ended.take() {
            Some(ended) => ended,
            None => (&mut self.load).await.unwrap_or_else(broke_off),
        }
    }

    async fn end(&mut self) -> Result<u64> {
        // A load that has ended already takes nothing more.
        if let Some(chunks) = self.chunks.take()
            && self.ended.is_none()
        {
            let _ = chunks.send(Chunk::End).await;
        }
        let result = self.loaded().await;
        if result.is_err() {
            self.block.fail();
        }
        if let Some(mut guard) = self.guard.take() {
            match &result {
                Ok(rows) => {
                    guard.progress().rows.store(*rows, std::sync::atomic::Ordering::Relaxed);
                    guard.end(Ok(()));
                }
                Err(error) => guard.end(Err(error)),
            }
        }
        result
    }
}

fn broke_off(source: tokio::task::JoinError) -> Result<u64> {
    Err(Error::internal("the load broke off").with_source(source))
}

impl Drop for CopyIn {
    fn drop(&mut self) {
        // The reader sees that nobody sends any more, without having been told of the end.
        if self.chunks.take().is_some() {
            self.load.abort();
        }
    }
}

/// Starts a `COPY`.
pub(crate) async fn run(
    session: &Session,
    copy: &CopyStatement,
    guard: &QueryGuard,
) -> Result<Ran> {
    match &copy.source {
        CopySource::FromFiles(name, files) => {
            session.caller.must_be_superuser("read files of the server")?;
            crate::statements::load::copy_from_files(session, copy, name, files, guard)
                .await
                .map(Ran::Done)
        }
        CopySource::FromStdin(name) => {
            let ident = session.table_ident(name)?;
            let table = session.data.warehouse().table(&ident).await?;
            crate::tables::external::refuse_rows(&table)?;
            session.caller.may_write(&table, Privilege::Insert)?;
            start(session, copy, table).await.map(Ran::CopyIn)
        }
        CopySource::Program => {
            Err(Error::unsupported("COPY with PROGRAM: the server runs no programs").with_hint(
                "run it where the client is: psql's \\copy … FROM PROGRAM, or a pipe to COPY \
                 FROM STDIN",
            ))
        }
        CopySource::TableToStdout(_) | CopySource::QueryToStdout(_) => {
            // What is a query is planned as one before it comes here.
            Err(Error::unsupported("COPY (SELECT INTO) is not supported")
                .with_hint("make the table first, then copy it"))
        }
    }
}

async fn start(session: &Session, copy: &CopyStatement, table: Table) -> Result<CopyIn> {
    let mut options = options_of_stream(LoadOptions::pg_copy(), &copy.options)?;
    options.spool = Some(spool(session.engine_options()));
    let columns = target_schema(&table, &copy.columns)?;
    let defaults = defaults::of_missing(session, &table, &columns).await?;
    let is_binary = options.format == Some(Format::Binary);
    let (sender, receiver) = mpsc::channel(CHUNKS_QUEUED_MAX);
    let reader = ChunkReader { receiver, current: Bytes::new(), held: None, ended: false };
    let input =
        Input::Stream { name: "stdin".to_owned(), reader: Box::new(reader), total_bytes: None };
    let within = session.within_its_transaction();
    let (data, runner) = (Arc::clone(&session.data), Arc::clone(&session.runner));
    let (user, block) = (session.options.user.clone(), Arc::clone(&session.block));
    let memory = Arc::clone(session.runner.memory());
    let block_of_rows = Arc::clone(&block);
    let schema = Arc::clone(&columns);
    let load = stoa_env::task::spawn(async move {
        // Opening may read the header, which waits for the client.
        let opened = stoa_env::task::spawn_blocking({
            let schema = Arc::clone(&schema);
            move || stoa_load::open(vec![input], schema, options)
        });
        let reader = opened
            .await
            .unwrap_or_else(|e| Err(Error::internal("the reader broke off").with_source(e)))?;
        let batches = fill_columns(reader_stream(reader)?, schema, table.schema(), defaults);
        let guard = runner.start_query("COPY FROM STDIN", &user, "load");
        // The table that the statement named when it began, whatever has its name by now.
        let work = async {
            let schema = table.schema();
            match append_few(&data, &block_of_rows, &table, &schema, batches).await? {
                Taken::Written(rows) => Ok(rows),
                Taken::TooMany(batches) => {
                    append_many(&within.session(), table, schema, batches, &guard).await
                }
            }
        };
        let rows = guard.run(work).await;
        guard.ended(rows)
    });
    let chunks = Some(sender);
    let room = Arc::new(Semaphore::new(QUEUED_BYTES_MAX));
    Ok(CopyIn { columns, is_binary, chunks, load, ended: None, guard: None, block, room, memory })
}

/// Where rows of formats that are read from their end wait: where queries spill.
fn spool(options: &EngineOptions) -> Spool {
    let directory = options.spill_dir.clone().unwrap_or_else(std::env::temp_dir);
    Spool { directory, bytes_max: SPOOLED_BYTES_MAX }
}

/// The table's columns that a copy names, in its order; all if it names none.
pub(crate) fn target_schema(table: &Table, columns: &[String]) -> Result<SchemaRef> {
    let schema = table.schema();
    if columns.is_empty() {
        return Ok(schema);
    }
    let mut fields = Vec::with_capacity(columns.len());
    for name in columns {
        let field = schema.fields().iter().find(|field| field.name() == name).ok_or_else(|| {
            let ident = table.ident();
            Error::not_found(format!("column \"{name}\" of table {ident} does not exist"))
                .with_sqlstate("42703")
        })?;
        fields.push(Arc::clone(field));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// Batches of some columns as batches of all; the others have their defaults, or are NULL.
pub(crate) fn fill_columns(
    batches: BoxStream<'static, Result<RecordBatch>>,
    have: SchemaRef,
    want: SchemaRef,
    defaults: ColumnDefaults,
) -> BoxStream<'static, Result<RecordBatch>> {
    if have == want {
        return batches;
    }
    // A column that must not be NULL fails in the sink, with its name.
    let relaxed: Vec<_> =
        want.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
    let relaxed = Arc::new(Schema::new(relaxed));
    Box::pin(batches.map(move |batch| {
        let batch = batch?;
        let column = |field: &Arc<arrow::datatypes::Field>| match have.index_of(field.name()) {
            Ok(index) => Ok(Arc::clone(batch.column(index))),
            Err(_) => defaults.array(field, batch.num_rows()),
        };
        let columns = want.fields().iter().map(column).collect::<Result<_>>()?;
        RecordBatch::try_new(Arc::clone(&relaxed), columns)
            .map_err(|e| Error::internal("cannot add missing columns").with_source(e))
    }))
}

/// Room in the queue and memory, as long as a chunk is there.
struct Held {
    _room: OwnedSemaphorePermit,
    _memory: MemoryReservation,
}

/// Waits for room for so many bytes, and takes memory for them.
///
/// # Errors
/// There is too little memory (53200).
async fn hold(room: &Arc<Semaphore>, pool: &Arc<dyn MemoryPool>, bytes: usize) -> Result<Held> {
    let permits = u32::try_from(bytes.min(QUEUED_BYTES_MAX)).unwrap_or(u32::MAX);
    let room = Arc::clone(room).acquire_many_owned(permits).await;
    let room = room.map_err(|e| Error::internal("a copy takes no more data").with_source(e))?;
    let memory = MemoryConsumer::new("COPY FROM STDIN").register(pool);
    memory.try_grow(bytes).map_err(from_datafusion)?;
    Ok(Held { _room: room, _memory: memory })
}

/// What the client sends.
enum Chunk {
    Bytes(Bytes, Option<Held>),
    /// All was sent.
    End,
    /// The rest does not come; why.
    Broken(String),
}

/// The client's chunks as a blocking reader. They end where the client says so: one that is gone has not
/// sent all.
struct ChunkReader {
    receiver: mpsc::Receiver<Chunk>,
    current: Bytes,
    /// What the current chunk takes.
    held: Option<Held>,
    ended: bool,
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            self.held = None;
            match self.receiver.blocking_recv() {
                Some(Chunk::Bytes(bytes, held)) => (self.current, self.held) = (bytes, held),
                Some(Chunk::End) => self.ended = true,
                Some(Chunk::Broken(why)) => return Err(std::io::Error::other(why)),
                None => return Err(std::io::Error::other("the client went away")),
            }
        }
        let bytes = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..bytes]);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use futures::FutureExt;

    use super::*;

    fn read(chunks: Vec<Chunk>) -> std::io::Result<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(chunks.len().max(1));
        for chunk in chunks {
            assert!(sender.try_send(chunk).is_ok());
        }
        drop(sender);
        let mut bytes = Vec::new();
        let mut reader = ChunkReader { receiver, current: Bytes::new(), held: None, ended: false };
        reader.read_to_end(&mut bytes).map(|_| bytes)
    }

    #[tokio::test]
    async fn queued_bytes_are_bounded_and_charged() {
        let bytes = 2 * QUEUED_BYTES_MAX;
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        let room = Arc::new(Semaphore::new(QUEUED_BYTES_MAX));
        let large = hold(&room, &pool, bytes).await.unwrap();
        assert_eq!(pool.reserved(), bytes);
        let mut next = Box::pin(hold(&room, &pool, 1));
        assert!((&mut next).now_or_never().is_none(), "the queue is full");
        drop(large);
        let small = next.await.unwrap();
        assert_eq!(pool.reserved(), 1);
        drop(small);
        let refused = hold(&room, &pool, bytes + 1).await.err().unwrap();
        assert_eq!(refused.sqlstate(), "53200");
        assert_eq!((pool.reserved(), room.available_permits()), (0, QUEUED_BYTES_MAX));
    }

    #[test]
    fn data_ends_where_the_client_says_so() {
        let bytes = |text: &'static str| Chunk::Bytes(Bytes::from_static(text.as_bytes()), None);
        assert_eq!(read(vec![bytes("a"), bytes(""), bytes("b"), Chunk::End]).unwrap(), b"ab");
        assert_eq!(read(vec![Chunk::End]).unwrap(), b"");
        assert!(read(vec![bytes("a"), Chunk::Broken("cancelled".to_owned())]).is_err());
        assert!(read(vec![bytes("a")]).is_err(), "the client is gone");
    }
}
