//! A server on a free port, and clients of it.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_cast::pretty::pretty_format_batches;
use arrow_flight::FlightInfo;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    CommandStatementIngest, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use futures::{TryStreamExt, stream};
use stoa_flight::{FlightOptions, serve_with};
use stoa_query::{Engine, EngineOptions};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use url::Url;

pub type Client = FlightSqlServiceClient<Channel>;

pub struct Server {
    pub engine: Arc<Engine>,
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<stoa_error::Result<()>>,
    warehouse: TempDir,
}

impl Server {
    pub async fn start() -> Self {
        Self::start_with(FlightOptions::default()).await
    }

    pub async fn start_with(options: FlightOptions) -> Self {
        Self::start_on(tempfile::tempdir().unwrap(), options).await
    }

    /// One whose clients must log in.
    pub async fn start_guarded(options: FlightOptions) -> Self {
        Self::start_as(tempfile::tempdir().unwrap(), options, true).await
    }

    async fn start_on(warehouse: TempDir, options: FlightOptions) -> Self {
        Self::start_as(warehouse, options, false).await
    }

    async fn start_as(warehouse: TempDir, options: FlightOptions, access_control: bool) -> Self {
        let url = Url::from_directory_path(warehouse.path()).unwrap();
        let logs = Some(url.join("_log/").unwrap());
        let engine = EngineOptions { threads: 2, logs, access_control, ..EngineOptions::new(url) };
        let engine = Engine::open(engine).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let serving = serve_with(listener, Arc::clone(&engine), options, shutdown);
        let running = stoa_env::task::spawn(serving);
        Self { engine, url, stop: Some(stop), running, warehouse }
    }

    /// A client on a connection of its own.
    pub async fn client(&self) -> Client {
        let channel = Endpoint::from_shared(self.url.clone()).unwrap().connect().await.unwrap();
        Client::new(channel)
    }

    /// Tells the server to stop.
    pub fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Waits until the server has ended.
    pub async fn ended(self) {
        let ended = stoa_env::timer::timeout(Duration::from_secs(20), self.running).await;
        ended.expect("the server ends").unwrap().unwrap();
    }

    /// Stops without a word, as if it were killed, and starts again on the same files.
    pub async fn restart(self) -> Self {
        let Self { engine, running, warehouse, stop, .. } = self;
        drop(stop);
        running.abort();
        let _ = running.await;
        // Fresh rows stay in the log.
        engine.ingest().unwrap().close(false).await.unwrap();
        drop(engine);
        Self::start_on(warehouse, FlightOptions::default()).await
    }
}

/// Runs a statement for its rows.
pub async fn query(client: &mut Client, sql: &str) -> Result<Vec<RecordBatch>, Status> {
    let info = client.execute(sql.to_owned(), None).await.map_err(from_flight)?;
    fetch(client, info).await
}

/// All rows that an info leads to.
pub async fn fetch(client: &mut Client, info: FlightInfo) -> Result<Vec<RecordBatch>, Status> {
    let mut batches = Vec::new();
    for endpoint in info.endpoint {
        let rows = client.do_get(endpoint.ticket.unwrap()).await.map_err(from_flight)?;
        batches.extend(rows.try_collect::<Vec<_>>().await.map_err(from_flight)?);
    }
    Ok(batches)
}

/// Runs a statement that must go well; its rows as a table, without the frame.
pub async fn shown(client: &mut Client, sql: &str) -> Vec<String> {
    let batches = query(client, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    lines(&batches)
}

pub fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(1);
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(",");
    rows.map(cells).collect()
}

pub async fn run(client: &mut Client, sql: &str) -> i64 {
    let done = client.execute_update(sql.to_owned(), None).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

pub fn from_flight(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => Status::unknown(other.to_string()),
    }
}

/// Asserts an error's code and parts of its text.
pub fn is_error(status: &Status, code: Code, parts: &[&str]) {
    assert_eq!(status.code(), code, "{status}");
    for part in parts {
        assert!(status.message().contains(part), "{part}: {}", status.message());
    }
}

/// Rows `(id, name)` with these ids.
pub fn people(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let names: StringArray = ids.iter().map(|id| Some(format!("n{id}"))).collect();
    batch(vec![("id", Arc::new(Int64Array::from(ids))), ("name", Arc::new(names))])
}

/// One column of 32-bit integers.
pub fn integers(name: &str, values: &[i32]) -> RecordBatch {
    batch(vec![(name, Arc::new(Int32Array::from(values.to_vec())))])
}

pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

pub const CREATE: (TableNotExistOption, TableExistsOption) =
    (TableNotExistOption::Create, TableExistsOption::Fail);
pub const APPEND: (TableNotExistOption, TableExistsOption) =
    (TableNotExistOption::Fail, TableExistsOption::Append);
pub const REPLACE: (TableNotExistOption, TableExistsOption) =
    (TableNotExistOption::Create, TableExistsOption::Replace);
pub const CREATE_APPEND: (TableNotExistOption, TableExistsOption) =
    (TableNotExistOption::Create, TableExistsOption::Append);

pub fn into_table(
    table: &str,
    (missing, exists): (TableNotExistOption, TableExistsOption),
) -> CommandStatementIngest {
    CommandStatementIngest {
        table: table.to_owned(),
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: missing as i32,
            if_exists: exists as i32,
        }),
        ..Default::default()
    }
}

/// Brings batches into a table; the number of rows that the server says it took.
pub async fn ingest(
    client: &mut Client,
    command: CommandStatementIngest,
    batches: Vec<RecordBatch>,
) -> Result<i64, Status> {
    let batches = stream::iter(batches.into_iter().map(Ok));
    client.execute_ingest(command, batches).await.map_err(from_flight)
}
