//! `COPY`: rows from the client into a table, or rows to the client.
//!
//! In: bytes in chunks of any size. Out: one commit at the end. **Invariants:** a copy that is
//! dropped, aborted or fails leaves nothing visible; rows go to the table that its name meant when it
//! began, or the copy fails.

use std::io::Read;
use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::{Schema, SchemaRef};
use bytes::{Buf, Bytes};
use futures::StreamExt;
use futures::stream::BoxStream;
use stoa_access::Privilege;
use stoa_error::{Error, ErrorKind, Result};
use stoa_load::{Input, LoadOptions};
use stoa_table::Table;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::dialect::{CopySource, CopyStatement};
use crate::load::{options_of_stream, reader_stream};
use crate::outcome::Completion;
use crate::registry::QueryGuard;
use crate::session::{Ran, Session};
use crate::transaction::Block;

/// Chunks of client data that wait to be parsed.
const CHUNKS_QUEUED_MAX: usize = 16;

/// A `COPY … FROM STDIN` that waits for its rows.
pub struct CopyIn {
    columns: SchemaRef,
    chunks: Option<mpsc::Sender<Chunk>>,
    load: JoinHandle<Result<u64>>,
    /// What the load came to, if that is known before the end of the data.
    ended: Option<Result<u64>>,
    guard: Option<QueryGuard>,
    /// The session's transaction block, which an error fails.
    block: Arc<Block>,
}

impl CopyIn {
    /// The columns expected, in order.
    pub fn columns(&self) -> SchemaRef {
        Arc::clone(&self.columns)
    }

    /// Takes the next bytes, as they came. Waits while too much is queued.
    ///
    /// # Errors
    /// The error that parsing or writing has met.
    pub async fn send(&mut self, chunk: Bytes) -> Result<()> {
        let cancelled = self.guard.as_ref().filter(|guard| guard.cancel_token().is_cancelled());
        if let Some(error) = cancelled.map(QueryGuard::cancelled_error) {
            return Err(self.fail(error).await);
        }
        let sent = match &self.chunks {
            Some(chunks) => chunks.send(Chunk::Bytes(chunk)).await.is_ok(),
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
    }

    /// Waits for an error that ends the copy before all data is there: one of parsing or writing, or
    /// that somebody cancels it. Waits for ever if there is none. May be dropped and called again.
    pub async fn failed(&mut self) -> Error {
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
    }

    /// Commits what was sent.
    ///
    /// # Errors
    /// The error that parsing or writing has met; nothing is loaded then.
    pub async fn finish(mut self) -> Result<Completion> {
        self.end().await.map(|rows| Completion::rows("COPY", rows))
    }

    /// Gives up; `reason` is what the client said.
    pub async fn abort(mut self, reason: &str) -> Error {
        let error = Error::new(ErrorKind::Cancelled, format!("COPY from stdin failed: {reason}"))
            .with_sqlstate("57014");
        self.fail(error).await
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
    guard: &mut QueryGuard,
) -> Result<Ran> {
    match &copy.source {
        CopySource::FromFiles(name, files) => {
            session.caller.must_be_superuser("read files of the server")?;
            crate::load::copy_from_files(session, copy, name, files, guard).await.map(Ran::Done)
        }
        CopySource::FromStdin(name) => {
            let ident = session.table_ident(name)?;
            let table = session.engine.warehouse.table(&ident).await?;
            crate::cells::refuse_rows(&table)?;
            session.caller.may_write(&table, Privilege::Insert)?;
            start(session, copy, table).await.map(Ran::CopyIn)
        }
        CopySource::TableToStdout(_) | CopySource::QueryToStdout(_) => {
            Err(Error::internal("COPY TO is planned as a query"))
        }
    }
}

async fn start(session: &Session, copy: &CopyStatement, table: Table) -> Result<CopyIn> {
    let options = options_of_stream(LoadOptions::pg_copy(), &copy.options)?;
    let columns = target_schema(&table, &copy.columns)?;
    let (sender, receiver) = mpsc::channel(CHUNKS_QUEUED_MAX);
    let reader = ChunkReader { receiver, current: Bytes::new(), ended: false };
    let input =
        Input::Stream { name: "stdin".to_owned(), reader: Box::new(reader), total_bytes: None };
    let (engine, block) = (Arc::clone(&session.engine), Arc::clone(&session.block));
    let (options_of_session, block_of_session) = (session.options.clone(), Arc::clone(&block));
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
        let batches = fill_columns(reader_stream(reader)?, schema, table.schema());
        let inner = Session::within(Arc::clone(&engine), options_of_session, block);
        let mut guard = engine.start_query("COPY FROM STDIN", &inner.options.user, "load");
        let (charge, schema) = (guard.charge(), table.schema());
        // The table that the statement named when it began, whatever has its name by now.
        let work = crate::load::append(&inner, table, schema, batches, &mut guard);
        let rows = stoa_store::charged(charge, work).await;
        match &rows {
            Ok(_) => guard.end(Ok(())),
            Err(error) => guard.end(Err(error)),
        }
        rows
    });
    let (chunks, block) = (Some(sender), block_of_session);
    Ok(CopyIn { columns, chunks, load, ended: None, guard: None, block })
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

/// Batches of some columns as batches of all, the others NULL.
pub(crate) fn fill_columns(
    batches: BoxStream<'static, Result<RecordBatch>>,
    have: SchemaRef,
    want: SchemaRef,
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
            Ok(index) => Arc::clone(batch.column(index)),
            Err(_) => new_null_array(field.data_type(), batch.num_rows()),
        };
        let columns = want.fields().iter().map(column).collect();
        RecordBatch::try_new(Arc::clone(&relaxed), columns)
            .map_err(|e| Error::internal("cannot add missing columns").with_source(e))
    }))
}

/// What the client sends.
enum Chunk {
    Bytes(Bytes),
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
    ended: bool,
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(Chunk::Bytes(bytes)) => self.current = bytes,
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
    use super::*;

    fn read(chunks: Vec<Chunk>) -> std::io::Result<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(chunks.len().max(1));
        for chunk in chunks {
            assert!(sender.try_send(chunk).is_ok());
        }
        drop(sender);
        let mut bytes = Vec::new();
        let mut reader = ChunkReader { receiver, current: Bytes::new(), ended: false };
        reader.read_to_end(&mut bytes).map(|_| bytes)
    }

    #[test]
    fn data_ends_where_the_client_says_so() {
        let bytes = |text: &'static str| Chunk::Bytes(Bytes::from_static(text.as_bytes()));
        assert_eq!(read(vec![bytes("a"), bytes(""), bytes("b"), Chunk::End]).unwrap(), b"ab");
        assert_eq!(read(vec![Chunk::End]).unwrap(), b"");
        assert!(read(vec![bytes("a"), Chunk::Broken("cancelled".to_owned())]).is_err());
        assert!(read(vec![bytes("a")]).is_err(), "the client is gone");
    }
}
