//! A connection that adds parcels to a table, over one of the protocols.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    CommandStatementIngest, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;
use futures::SinkExt;
use serde::Serialize;
use stoa_error::{Error, Result};
use tokio_postgres::{Client, NoTls};
use tonic::transport::{Channel, Endpoint};

use super::parcel::{Parcel, table_schema};

/// The ways in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WritePath {
    /// `INSERT … VALUES` over the PostgreSQL protocol.
    Insert,
    /// `COPY … FROM STDIN` (CSV) over the PostgreSQL protocol.
    Copy,
    /// `POST …/rows` with lines of JSON.
    Ndjson,
    /// `POST …/rows` with CSV.
    Csv,
    /// `POST …/rows` with an Arrow stream.
    Arrow,
    /// `DoPut` of Flight SQL: `CommandStatementIngest`.
    Flight,
    /// `POST /v1/hql` with `INSERT`: a cell per row, into a table of cells.
    Hql,
}

/// Where a server listens.
#[derive(Clone, Debug)]
pub struct ServerAddress {
    /// Host.
    pub host: String,
    /// Port of the PostgreSQL protocol.
    pub pg_port: u16,
    /// `http://host:port`.
    pub http_url: String,
    /// Port of Flight SQL.
    pub flight_port: u16,
}

/// One connection.
pub struct Writer {
    path: WritePath,
    table: String,
    link: Link,
}

enum Link {
    Postgres(Client),
    Http { client: reqwest::Client, url: String },
    Flight(FlightSqlServiceClient<Channel>),
}

/// A parcel as the protocol carries it.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Bytes to be sent.
    Bytes(Bytes),
    /// A batch, which the protocol encodes.
    Batch(RecordBatch),
}

impl WritePath {
    /// Those that take rows.
    pub const ROWS: [Self; 6] =
        [Self::Insert, Self::Copy, Self::Ndjson, Self::Csv, Self::Arrow, Self::Flight];

    fn content_type(self) -> &'static str {
        match self {
            Self::Insert | Self::Copy | Self::Flight => "",
            Self::Hql => "text/plain; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }
}

impl fmt::Display for WritePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Insert => "INSERT",
            Self::Copy => "COPY",
            Self::Ndjson => "HTTP NDJSON",
            Self::Csv => "HTTP CSV",
            Self::Arrow => "HTTP Arrow",
            Self::Flight => "Flight SQL",
            Self::Hql => "HQL",
        })
    }
}

impl ServerAddress {
    /// A connection of the PostgreSQL protocol.
    ///
    /// # Errors
    /// Unavailable if the server does not take it.
    pub async fn postgres(&self) -> Result<Client> {
        let address = format!("host={} port={} user=stoa dbname=stoa", self.host, self.pg_port);
        let (client, connection) = tokio_postgres::connect(&address, NoTls)
            .await
            .map_err(|e| failed("cannot connect", e))?;
        // Its error is seen by the client as well.
        stoa_env::task::spawn(async move {
            let _ = connection.await;
        });
        Ok(client)
    }

    pub(crate) async fn flight(&self) -> Result<FlightSqlServiceClient<Channel>> {
        let endpoint = Endpoint::from_shared(format!("http://{}:{}", self.host, self.flight_port))
            .map_err(|e| failed("cannot connect", e))?;
        let channel = endpoint.connect().await.map_err(|e| failed("cannot connect", e))?;
        Ok(FlightSqlServiceClient::new(channel))
    }

    /// Runs statements of HQL.
    ///
    /// # Errors
    /// Unavailable with what the server said; what they do may be done nonetheless.
    pub async fn hql(&self, statements: &str) -> Result<()> {
        let request = reqwest::Client::new().post(format!("{}/v1/hql", self.http_url));
        acknowledged(request.body(statements.to_owned())).await
    }
}

/// Sends a request and waits for the whole answer: it is the acknowledgement.
pub(crate) async fn acknowledged(request: reqwest::RequestBuilder) -> Result<()> {
    let response = request.send().await.map_err(|e| failed("cannot send", e))?;
    if response.status().is_success() {
        let body = response.bytes().await;
        return body.map(drop).map_err(|e| failed("the answer broke off", e));
    }
    let text = response.text().await.unwrap_or_default();
    Err(Error::unavailable("the server refused it").with_detail(text))
}

impl Writer {
    /// Connects. `table` is a plain name in the default namespace.
    ///
    /// # Errors
    /// Unavailable if the server does not take the connection.
    pub async fn connect(path: WritePath, address: &ServerAddress, table: &str) -> Result<Self> {
        let link = match path {
            WritePath::Insert | WritePath::Copy => Link::Postgres(address.postgres().await?),
            WritePath::Ndjson | WritePath::Csv | WritePath::Arrow => Link::Http {
                client: reqwest::Client::new(),
                url: format!("{}/v1/tables/public/{table}/rows", address.http_url),
            },
            WritePath::Flight => Link::Flight(address.flight().await?),
            WritePath::Hql => Link::Http {
                client: reqwest::Client::new(),
                url: format!("{}/v1/hql", address.http_url),
            },
        };
        Ok(Self { path, table: table.to_owned(), link })
    }

    /// What [`Self::send`] sends.
    ///
    /// # Errors
    /// Internal, which would be a bug here.
    pub fn payload(&self, parcel: Parcel) -> Result<Payload> {
        Ok(Payload::Bytes(match self.path {
            WritePath::Flight => return parcel.batch().map(Payload::Batch),
            WritePath::Insert => parcel.insert(&self.table).into(),
            WritePath::Hql => parcel.insert_cells(&self.table).into(),
            WritePath::Copy => parcel.lines(',').into(),
            WritePath::Ndjson => parcel.json_lines().into(),
            WritePath::Csv => {
                let names: Vec<String> =
                    table_schema().fields().iter().map(|field| field.name().clone()).collect();
                format!("{}\n{}", names.join(","), parcel.lines(',')).into()
            }
            WritePath::Arrow => arrow_stream(parcel)?.into(),
        }))
    }

    /// Adds the parcel and waits for the acknowledgement.
    ///
    /// # Errors
    /// Unavailable with what the server said. The parcel may be in the table nonetheless.
    pub async fn send(&mut self, payload: &Payload) -> Result<()> {
        let payload = match payload {
            Payload::Bytes(bytes) => bytes,
            Payload::Batch(batch) => return self.send_batch(batch.clone()).await,
        };
        match &self.link {
            Link::Flight(_) => Err(Error::internal("Flight takes batches")),
            Link::Http { client, url } => {
                let request = client.post(url).header("Content-Type", self.path.content_type());
                acknowledged(request.body(payload.clone())).await
            }
            Link::Postgres(client) if self.path == WritePath::Insert => {
                let text = std::str::from_utf8(payload)
                    .map_err(|e| Error::internal("a statement is no text").with_source(e))?;
                client.batch_execute(text).await.map_err(|e| failed("INSERT failed", e))
            }
            Link::Postgres(client) => {
                let statement = format!("COPY {} FROM STDIN WITH (FORMAT csv)", self.table);
                let sink =
                    client.copy_in(&statement).await.map_err(|e| failed("COPY failed", e))?;
                futures::pin_mut!(sink);
                sink.send(payload.clone()).await.map_err(|e| failed("COPY failed", e))?;
                sink.finish().await.map(drop).map_err(|e| failed("COPY failed", e))
            }
        }
    }
}

impl Writer {
    async fn send_batch(&mut self, batch: RecordBatch) -> Result<()> {
        let Link::Flight(client) = &mut self.link else {
            return Err(Error::internal("only Flight takes batches"));
        };
        let command = CommandStatementIngest {
            table: self.table.clone(),
            table_definition_options: Some(TableDefinitionOptions {
                if_not_exist: TableNotExistOption::Fail as i32,
                if_exists: TableExistsOption::Append as i32,
            }),
            ..Default::default()
        };
        let batches = futures::stream::iter([Ok(batch)]);
        let rows = client.execute_ingest(command, batches).await;
        rows.map(drop).map_err(|e| failed("the ingest failed", e))
    }
}

fn arrow_stream(parcel: Parcel) -> Result<Vec<u8>> {
    let failed = |e| Error::internal("a parcel is no Arrow stream").with_source(e);
    let mut writer = StreamWriter::try_new(Vec::new(), &table_schema()).map_err(failed)?;
    writer.write(&parcel.batch()?).map_err(failed)?;
    writer.finish().map_err(failed)?;
    writer.into_inner().map_err(failed)
}

fn failed(what: &str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let error = error.into();
    // The driver's own text hides what the server said.
    let detail = error
        .downcast_ref::<tokio_postgres::Error>()
        .and_then(|error| error.as_db_error())
        .map(|error| format!("{}: {}", error.code().code(), error.message()));
    let failed = Error::unavailable(what.to_owned()).with_source(error);
    match detail {
        Some(detail) => failed.with_detail(detail),
        None => failed,
    }
}
