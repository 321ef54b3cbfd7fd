//! Bulk loads: files or batches into a table, sorted, in one commit.
//!
//! In: a [`LoadRequest`]. Out: rows loaded. **Invariants:** nothing is visible before all rows
//! were read, and a table that the load makes appears together with its rows. Memory is bounded by the
//! engine's limit (the sort spills) plus one stripe per open file.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::datasource::provider_as_source;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use stoa_load::{BatchReader, Input, LoadOptions};
use stoa_table::Table;

use crate::access::FileAccess;
use crate::engine::Engine;
use crate::run::registry::QueryGuard;
use crate::session::outcome::Completion;
use crate::session::{Session, SessionOptions};
use crate::statements::{columns, ddl, defaults, parse_threads};
use crate::tables::data::Data;
use crate::tables::fresh::{Place, SmallWrite, Taken};
use crate::tables::nested::engine_schema;
use crate::tables::properties;
use crate::tables::transaction::Block;
use stoa_semantics::errors::{from_datafusion, to_datafusion};
use stoa_sql::syntax_error::from_sql_parser;
use stoa_sql::{parse_partition_terms, parse_sort_terms};

/// Batches on their way between the thread that parses and the plan that sorts.
const BATCHES_QUEUED_MAX: usize = 4;

/// Where rows go.
#[derive(Clone, Debug, Default)]
pub struct LoadTarget {
    /// `table`, `namespace.table`; quoted parts keep their case.
    pub table: String,
    /// Make the table if it is not there, with the source's columns.
    pub create: bool,
    /// For a table to be made: partition terms, as in `PARTITIONED BY (…)`; may be empty.
    pub partition_by: String,
    /// For a table to be made: sort terms, as in `ORDER BY (…)`; may be empty.
    pub order_by: String,
    /// For a table to be made: its properties.
    pub properties: BTreeMap<String, String>,
}

/// A load of files.
pub struct LoadRequest {
    /// Where rows go.
    pub target: LoadTarget,
    /// Where they come from.
    pub inputs: Vec<Input>,
    /// How the inputs are read.
    pub options: LoadOptions,
    /// Called once reading begins, with the counters to show.
    pub on_start: Option<Box<dyn FnOnce(Arc<stoa_load::Progress>) + Send>>,
}

impl Engine {
    /// Loads files into a table in one commit.
    ///
    /// # Errors
    /// Unknown table (42P01), unreadable files, bad lines (22P02 with file, line, column and
    /// value), and what writing finds. Nothing is loaded then.
    pub fn load(self: &Arc<Self>, request: LoadRequest) -> BoxFuture<'_, Result<Completion>> {
        Box::pin(async move {
            let session = self.session(SessionOptions {
                protocol: "load",
                is_trusted: true,
                ..Default::default()
            });
            let LoadRequest { target, inputs, options, on_start } = request;
            let ident = session.target_ident(&target.table)?;
            let text = format!("LOAD INTO {ident}");
            let guard = self.start_query(&text, &session.options.user, "load");
            let work = async {
                let schema = match self.warehouse().table(&ident).await {
                    Ok(table) => table.schema(),
                    Err(error) if target.create && is_missing(&error) => {
                        inferred_schema(&inputs, &options)?
                    }
                    Err(error) => return Err(with_create_hint(error)),
                };
                let reader = stoa_load::open(inputs, Arc::clone(&schema), options)?;
                let progress = reader.progress();
                if let Some(on_start) = on_start {
                    on_start(progress);
                }
                let batches = reader_stream(reader)?;
                write(&session, &ident, &target, schema, batches, &guard).await
            };
            let written = guard.run(work).await;
            guard.ended_with_rows(written).map(|rows| Completion::rows("COPY", rows))
        })
    }

    /// Writes a stream of batches into a table in one commit; the table is made if `target` says
    /// so. The batches have the columns of `schema`, which are the table's, in order.
    ///
    /// # Errors
    /// As [`Engine::load`].
    pub fn write_batches(
        self: &Arc<Self>,
        target: LoadTarget,
        schema: SchemaRef,
        batches: BoxStream<'static, Result<RecordBatch>>,
    ) -> BoxFuture<'_, Result<Completion>> {
        Box::pin(async move {
            let session = self.session(SessionOptions {
                protocol: "load",
                is_trusted: true,
                ..Default::default()
            });
            let ident = session.target_ident(&target.table)?;
            let text = format!("WRITE INTO {ident}");
            let guard = self.start_query(&text, &session.options.user, "load");
            let work = write(&session, &ident, &target, schema, batches, &guard);
            let written = guard.run(work).await;
            guard.ended_with_rows(written).map(|rows| Completion::rows("COPY", rows))
        })
    }
}

impl Session {
    /// The table that a name given outside of SQL means.
    fn target_ident(&self, name: &str) -> Result<TableIdent> {
        let dialect = GenericDialect {};
        let mut parser =
            Parser::new(&dialect).try_with_sql(name).map_err(|e| from_sql_parser(&e, name))?;
        let parsed = parser.parse_object_name(false).map_err(|e| from_sql_parser(&e, name))?;
        // What follows a name would be dropped, and the rows would go to another table.
        match parser.peek_token().token {
            Token::EOF => self.table_ident(&parsed),
            _ => Err(Error::invalid(format!("{name:?} is not the name of a table"))
                .with_sqlstate("42602")
                .with_hint(format!(
                    "write name or namespace.name; put other names in double quotes: '\"{}\"'",
                    name.trim().replace('"', "")
                ))),
        }
    }
}

/// Appends batches to the table; one that is to be made appears together with its rows.
pub(crate) async fn write(
    session: &Session,
    ident: &TableIdent,
    target: &LoadTarget,
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch>>,
    guard: &QueryGuard,
) -> Result<u64> {
    let warehouse = session.data.warehouse();
    let table = match warehouse.table(ident).await {
        Err(error) if target.create && is_missing(&error) => {
            let spec = spec_of(target, columns::storable_schema(&schema)?)?;
            warehouse.stage_table(ident, spec).await?
        }
        found => {
            let table = found.map_err(with_create_hint)?;
            require_as_described(target, &table)?;
            table
        }
    };
    crate::tables::external::refuse_rows(&table)?;
    let appears = table.is_staged();
    let rows = append(session, table, schema, batches, guard).await?;
    if appears {
        session.data.refresh().await?;
    }
    Ok(rows)
}

/// Appends batches of `schema` to a table, which may be staged. Few rows that have the table's own
/// types become one record of the commit log, without being planned.
pub(crate) async fn append(
    session: &Session,
    table: Table,
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch>>,
    guard: &QueryGuard,
) -> Result<u64> {
    match append_few(&session.data, &session.block, &table, &schema, batches).await? {
        Taken::Written(rows) => Ok(rows),
        Taken::TooMany(batches) => append_many(session, table, schema, batches, guard).await,
    }
}

/// Appends rows that the log or a transaction takes as they are; gives them back if they are too many, or need a plan.
pub(crate) async fn append_few(
    data: &Data,
    block: &Arc<Block>,
    table: &Table,
    schema: &SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch>>,
) -> Result<Taken> {
    let log = || data.ingest().cloned().map(Place::Log);
    let place = block.staging().map(Place::Block).or_else(log);
    match place.filter(|_| !table.is_staged()) {
        Some(place) if *schema == table.schema() => {
            SmallWrite::new(place, table.clone()).take(batches).await
        }
        _ => Ok(Taken::TooMany(batches)),
    }
}

/// Appends rows by a plan, which sorts them.
pub(crate) async fn append_many(
    session: &Session,
    table: Table,
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch>>,
    guard: &QueryGuard,
) -> Result<u64> {
    let stored = engine_schema(&table.schema());
    let plan = columns::cast_to(input_plan(schema, batches)?, &stored)?;
    ddl::append_plan(session, table, plan, guard).await
}

/// Batches as a plan, which can run once.
pub(crate) fn input_plan(
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch>>,
) -> Result<LogicalPlan> {
    let source = OneStream { schema: Arc::clone(&schema), batches: Mutex::new(Some(batches)) };
    let input = StreamingTable::try_new(schema, vec![Arc::new(source)]).map_err(from_datafusion)?;
    LogicalPlanBuilder::scan("input", provider_as_source(Arc::new(input)), None)
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)
}

fn spec_of(target: &LoadTarget, schema: SchemaRef) -> Result<stoa_table::TableSpec> {
    let set = target.properties.iter();
    properties::check(set.map(|(key, value)| (key.as_str(), value.as_str())))?;
    let dialect = GenericDialect {};
    let parser =
        |text| Parser::new(&dialect).try_with_sql(text).map_err(|e| from_sql_parser(&e, text));
    let partition_by = match target.partition_by.trim() {
        "" => Vec::new(),
        text => parse_partition_terms(&mut parser(text)?).map_err(|e| from_sql_parser(&e, text))?,
    };
    let sort_by = match target.order_by.trim() {
        "" => Vec::new(),
        text => parse_sort_terms(&mut parser(text)?).map_err(|e| from_sql_parser(&e, text))?,
    };
    Ok(ddl::spec_from_parts(schema, partition_by, sort_by, target.properties.clone()))
}

/// Refuses to load into a table that is there and is not as the target describes a new one.
///
/// # Errors
/// Already exists, with what the table has: its terms or a property differ.
fn require_as_described(target: &LoadTarget, table: &Table) -> Result<()> {
    let spec = spec_of(target, table.schema())?;
    let list = |terms: Vec<String>| match terms.is_empty() {
        true => "nothing".to_owned(),
        false => terms.join(", "),
    };
    let wanted = list(spec.partition_by.iter().map(ToString::to_string).collect());
    let found = list(table.partition_terms().iter().map(ToString::to_string).collect());
    if !spec.partition_by.is_empty() && wanted != found {
        return Err(differs(table, &format!("is partitioned by {found}, not by {wanted}")));
    }
    let wanted = list(spec.sort_by.iter().map(ToString::to_string).collect());
    let found = list(table.sort_terms().iter().map(ToString::to_string).collect());
    if !spec.sort_by.is_empty() && wanted != found {
        return Err(differs(table, &format!("is ordered by {found}, not by {wanted}")));
    }
    for (name, value) in &target.properties {
        match table.properties().get(name) {
            Some(found) if found == value => {}
            Some(found) => {
                return Err(differs(table, &format!("has {name} = {found}, not {value}")));
            }
            None => return Err(differs(table, &format!("has no property {name}"))),
        }
    }
    Ok(())
}

fn differs(table: &Table, how: &str) -> Error {
    Error::already_exists(format!("table {} already exists and {how}", table.ident()))
        .with_sqlstate("42P07")
        .with_hint("load without these options to add rows to it as it is, or choose another name")
}

fn inferred_schema(inputs: &[Input], options: &LoadOptions) -> Result<SchemaRef> {
    let mut paths = Vec::with_capacity(inputs.len());
    for input in inputs {
        match input {
            Input::Path(path) => paths.push(path.clone()),
            Input::Stream { name, .. } => {
                return Err(Error::invalid(format!("{name}: cannot infer columns from a stream"))
                    .with_hint("create the table first, or load from a file"));
            }
        }
    }
    let inferred = stoa_load::infer_schema(&paths, options)?;
    columns::storable_schema(&inferred)
}

fn is_missing(error: &Error) -> bool {
    error.kind() == stoa_error::ErrorKind::NotFound
}

fn with_create_hint(error: Error) -> Error {
    match is_missing(&error) {
        true => error.with_hint("make it with CREATE TABLE, or load with --create"),
        false => error,
    }
}

/// Parses on a thread of its own; the plan takes batches as it can use them. The end of the data is said
/// by the thread: one that is gone without a word is an error, and what it has read is not all.
pub(crate) fn reader_stream(
    mut reader: BatchReader,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(BATCHES_QUEUED_MAX);
    let parse = move || {
        loop {
            let read = read_batch(&mut reader);
            let ends = !matches!(read, Ok(Some(_)));
            if sender.blocking_send(read).is_err() || ends {
                return;
            }
        }
    };
    parse_threads::run(parse)
        .map_err(|e| Error::unavailable("cannot start a thread to read").with_source(e))?;
    let next = |receiver: Option<tokio::sync::mpsc::Receiver<Result<Option<RecordBatch>>>>| async move {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Ok(Some(batch))) => Some((Ok(batch), Some(receiver))),
            Some(Ok(None)) => None,
            Some(Err(error)) => Some((Err(error), None)),
            None => Some((Err(Error::internal("the reader of the rows broke off")), None)),
        }
    };
    Ok(Box::pin(futures::stream::unfold(Some(receiver), next)))
}

/// The next batch; `None` at the end. Libraries that read formats may panic over bytes that mean harm.
fn read_batch(reader: &mut BatchReader) -> Result<Option<RecordBatch>> {
    let read = std::panic::catch_unwind(AssertUnwindSafe(|| reader.next()));
    let damaged = || {
        Error::invalid("the rows cannot be read: a part of them is damaged")
            .with_sqlstate("22P04")
            .with_hint("write them anew, or in another format; nothing was loaded")
    };
    read.unwrap_or_else(|_| Some(Err(damaged()))).transpose()
}

/// A stream as a table that can be scanned once.
struct OneStream {
    schema: SchemaRef,
    batches: Mutex<Option<BoxStream<'static, Result<RecordBatch>>>>,
}

impl std::fmt::Debug for OneStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OneStream")
    }
}

impl PartitionStream for OneStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        use futures::TryStreamExt;
        let batches = self.batches.lock().take().unwrap_or_else(|| {
            let error = Error::internal("a stream was scanned twice");
            Box::pin(futures::stream::iter([Err(error)]))
        });
        let schema = Arc::clone(&self.schema);
        Box::pin(RecordBatchStreamAdapter::new(schema, batches.map_err(to_datafusion)))
    }
}

/// Reads `COPY … FROM 'file'`.
pub(crate) async fn copy_from_files(
    session: &Session,
    copy: &stoa_sql::CopyStatement,
    name: &datafusion::sql::sqlparser::ast::ObjectName,
    files: &[String],
    guard: &QueryGuard,
) -> Result<Completion> {
    let ident = session.table_ident(name)?;
    let table = session.data.warehouse().table(&ident).await?;
    crate::tables::external::refuse_rows(&table)?;
    let access = &session.engine_options().file_access;
    let inputs: Vec<Input> =
        files.iter().map(|file| access.to_read(file).map(Input::Path)).collect::<Result<_>>()?;
    let options = options_of_files(&copy.options, access)?;
    let schema = crate::statements::copy::target_schema(&table, &copy.columns)?;
    let defaults = defaults::of_missing(session, &table, &schema).await?;
    let reader = stoa_load::open(inputs, Arc::clone(&schema), options)?;
    let batches = crate::statements::copy::fill_columns(
        reader_stream(reader)?,
        schema,
        table.schema(),
        defaults,
    );
    let schema = table.schema();
    let rows = append(session, table, schema, batches, guard).await?;
    Ok(Completion::rows("COPY", rows))
}

/// The options of files of the server. A file for rejected lines is made where statements may name files,
/// in the place of no other.
fn options_of_files(given: &[(String, String)], access: &FileAccess) -> Result<LoadOptions> {
    let mut options = LoadOptions::default();
    for (name, value) in given {
        options.set(name, value)?;
    }
    if let Some(file) = options.reject_file.take() {
        options.reject_file = Some(access.to_make(&file)?);
        options.reject_file_is_new = access.keeps_files();
    }
    Ok(options)
}

/// The options of rows that a client sends, over those that they have anyway.
///
/// # Errors
/// Those of each option; 0A000 for those that leave lines out: there is no file of the client's for them.
pub(crate) fn options_of_stream(
    mut options: LoadOptions,
    given: &[(String, String)],
) -> Result<LoadOptions> {
    for (name, value) in given {
        options.set(name, value)?;
    }
    let refused = if options.reject_file.is_some() {
        "reject_file"
    } else if options.max_errors > 0 {
        "max_errors"
    } else {
        return Ok(options);
    };
    let message = format!("load option {refused} is not for rows that a client sends");
    Err(Error::unsupported(message).with_hint(
        "leave it out, or load a file: `stoa load --max-errors … --reject-file …` keeps bad lines",
    ))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use futures::StreamExt;

    use super::*;

    /// Some rows, and then a panic.
    struct Breaks(bool);

    impl std::io::Read for Breaks {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            assert!(!std::mem::replace(&mut self.0, true), "what a library does with bad bytes");
            buffer[..4].copy_from_slice(b"1\n2\n");
            Ok(4)
        }
    }

    #[tokio::test]
    async fn a_reader_that_panics_is_not_the_end_of_the_data() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let (name, reader) = ("stdin".to_owned(), Box::new(Breaks(false)));
        let input = Input::Stream { name, reader, total_bytes: None };
        let options = LoadOptions { batch_rows: 1, ..LoadOptions::pg_copy() };
        let reader = stoa_load::open(vec![input], schema, options).unwrap();
        let read: Vec<_> = reader_stream(reader).unwrap().collect().await;
        let error = read.last().unwrap().as_ref().unwrap_err();
        assert_eq!(error.sqlstate(), "22P04");
        assert!(read.iter().rev().skip(1).all(Result::is_ok));
    }
}
