//! The calls of Flight, each told apart by its Flight SQL command and handed to who answers it.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{
    Command, CommandPreparedStatementQuery, DoPutPreparedStatementResult, DoPutUpdateResult,
    ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use stoa_error::{Error, Result};
use tonic::{Request, Response, Status, Streaming};

use crate::actions::{self, ACTIONS, command};
use crate::client::Client;
use crate::clients::Sender;
use crate::columns::encode;
use crate::connection::ConnectionState;
use crate::ingest::{self, check_no_transaction, table_at};
use crate::query::{self, Planned, Query};
use crate::state::FlightSql;
use crate::status::status;
use crate::{metadata, rows_in};

/// Where a client finds the rows: on the connection that it has.
const SAME_CONNECTION: &str = "arrow-flight-reuse-connection://?";

type Answer<T> = Result<Response<T>, Status>;
type Stream<T> = BoxStream<'static, Result<T, Status>>;

impl FlightSql {
    async fn info(&self, client: Arc<Client>, descriptor: FlightDescriptor) -> Result<FlightInfo> {
        if self.engine().is_closing() {
            return Err(Error::unavailable("the server is shutting down").with_sqlstate("57P01"));
        }
        if descriptor.cmd.is_empty() {
            let sql = select_all(&descriptor)?;
            return self.query_info(client, &sql, descriptor).await;
        }
        let command = command(&descriptor.cmd)?;
        if let Some(schema) = metadata::schema_of(&command)? {
            // The command itself is the ticket: its answer is made when it is fetched.
            let ticket = command.into_any().encode_to_vec().into();
            return flight_info(&schema, descriptor, vec![ticket]);
        }
        match command {
            Command::CommandStatementQuery(query) => {
                check_no_transaction(query.transaction_id.as_deref())?;
                self.query_info(client, &query.query, descriptor).await
            }
            Command::CommandPreparedStatementQuery(query) => {
                let handle = query.prepared_statement_handle;
                let statement = self.statement(&handle, &client).await?;
                match statement.query() {
                    Some(query) => self.rows_info(query, descriptor),
                    None => {
                        let none = SchemaRef::new(arrow_schema::Schema::empty());
                        statement.run(&none, stream::empty().boxed()).await?;
                        flight_info(&none, descriptor, Vec::new())
                    }
                }
            }
            other => Err(unknown_command(&other)),
        }
    }

    async fn query_info(
        &self,
        client: Arc<Client>,
        sql: &str,
        descriptor: FlightDescriptor,
    ) -> Result<FlightInfo> {
        match query::plan(&client.session, sql).await? {
            Planned::Rows(prepared, schema) => {
                self.rows_info(Query::new(client, *prepared, Arc::default(), schema), descriptor)
            }
            Planned::Done(_) => {
                flight_info(&SchemaRef::new(arrow_schema::Schema::empty()), descriptor, Vec::new())
            }
        }
    }

    fn rows_info(&self, query: Query, descriptor: FlightDescriptor) -> Result<FlightInfo> {
        let schema = query.schema();
        let statement_handle = self.keep_query(query)?.bytes();
        let ticket = TicketStatementQuery { statement_handle }.as_any().encode_to_vec();
        flight_info(&schema, descriptor, vec![ticket.into()])
    }

    async fn schema(&self, client: &Client, descriptor: &FlightDescriptor) -> Result<SchemaRef> {
        let none = || SchemaRef::new(arrow_schema::Schema::empty());
        if descriptor.cmd.is_empty() {
            let sql = select_all(descriptor)?;
            return Ok(query::describe(&client.session, &sql).await?.unwrap_or_else(none));
        }
        let command = command(&descriptor.cmd)?;
        if let Some(schema) = metadata::schema_of(&command)? {
            return Ok(schema);
        }
        match command {
            Command::CommandStatementQuery(query) => {
                let schema = query::describe(&client.session, &query.query).await?;
                Ok(schema.unwrap_or_else(none))
            }
            Command::CommandPreparedStatementQuery(query) => {
                let handle = query.prepared_statement_handle;
                Ok(self.statement(&handle, client).await?.schema())
            }
            other => Err(unknown_command(&other)),
        }
    }

    async fn get(&self, client: &Client, ticket: &Ticket) -> Result<Stream<FlightData>> {
        match command(&ticket.ticket)? {
            Command::TicketStatementQuery(ticket) => {
                let handle = self.ticket_here(&ticket.statement_handle, client).await?;
                let (schema, rows) = query::redeem(self.queries(), handle, client).await?;
                Ok(encoded(schema, rows))
            }
            command => {
                match metadata::answer(self.engine(), &client.session, command.clone()).await? {
                    Some(batch) => Ok(encoded(batch.schema(), stream::iter([Ok(batch)]).boxed())),
                    None => Err(unknown_command(&command)),
                }
            }
        }
    }

    async fn put(
        &self,
        client: Arc<Client>,
        mut messages: Streaming<FlightData>,
    ) -> Result<Stream<PutResult>> {
        let first = match messages.message().await {
            Ok(Some(first)) => first,
            Ok(None) => return Err(nothing_sent()),
            Err(status) => return Err(rows_in::broken_off(&status)),
        };
        let descriptor = first.flight_descriptor.clone().ok_or_else(|| {
            Error::invalid("the first message has no descriptor").with_sqlstate("08P01")
        })?;
        let messages = stream::once(async { Ok(first) }).chain(messages);
        if descriptor.cmd.is_empty() {
            let target = table_at(&descriptor)?;
            let (schema, batches) = rows_in::read(messages).await?;
            return Ok(ingest::put_batches(client, target, schema, batches));
        }
        match command(&descriptor.cmd)? {
            Command::CommandStatementIngest(command) => {
                let (schema, batches) = rows_in::read(messages).await?;
                ingest::ingest(&client, command, schema, batches).await.map(changed)
            }
            Command::CommandStatementUpdate(update) => {
                check_no_transaction(update.transaction_id.as_deref())?;
                match query::plan(&client.session, &update.query).await? {
                    Planned::Done(rows) => Ok(changed(rows)),
                    Planned::Rows(prepared, _) => {
                        query::changed_rows(&client.session, &prepared, Vec::new())
                            .await
                            .map(changed)
                    }
                }
            }
            Command::CommandPreparedStatementUpdate(update) => {
                let handle = update.prepared_statement_handle;
                let statement = self.statement(&handle, &client).await?;
                let (schema, batches) = rows_in::read(messages).await?;
                statement.run(&schema, batches).await.map(changed)
            }
            Command::CommandPreparedStatementQuery(CommandPreparedStatementQuery {
                prepared_statement_handle: handle,
            }) => {
                let (schema, batches) = rows_in::read(messages).await?;
                self.bind(&handle, &client, &schema, batches).await?;
                let result =
                    DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) };
                Ok(put_result(&result))
            }
            other => Err(unknown_command(&other)),
        }
    }
}

#[tonic::async_trait]
impl FlightService for FlightSql {
    type HandshakeStream = Stream<HandshakeResponse>;
    type ListFlightsStream = Stream<FlightInfo>;
    type DoGetStream = Stream<FlightData>;
    type DoPutStream = Stream<PutResult>;
    type DoActionStream = Stream<arrow_flight::Result>;
    type ListActionsStream = Stream<ActionType>;
    type DoExchangeStream = Stream<FlightData>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Answer<Self::HandshakeStream> {
        let sender = Sender::of(&request)?;
        let token = self.clients().login(sender).await?;
        if let Some(connection) = request.extensions().get::<ConnectionState>() {
            connection.guest.known();
        }
        let response = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let mut response = Response::new(stream::iter([Ok(response)]).boxed());
        let value = format!("Bearer {token}").parse();
        let value = value.map_err(|_| Status::internal("a token is no header"))?;
        response.metadata_mut().insert("authorization", value);
        Ok(response)
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        let error = Error::unsupported("flights are not listed")
            .with_hint("tables are listed by the Flight SQL command GetTables");
        Err(status(&error))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        let sender = Sender::of(&request)?;
        let client = self.clients().of(sender).await?;
        let info = self.info(client, request.into_inner()).await;
        info.map(Response::new).map_err(|error| status(&error))
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<PollInfo> {
        // Plans are quick, and rows come as they are found: there is nothing to poll for.
        let info = self.get_flight_info(request).await?.into_inner();
        Ok(Response::new(PollInfo { info: Some(info), ..PollInfo::default() }))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        let sender = Sender::of(&request)?;
        let client = self.clients().of(sender).await?;
        let schema = self.schema(&client, request.get_ref()).await;
        let schema = schema.and_then(|schema| encode(&schema)).map_err(|error| status(&error))?;
        Ok(Response::new(SchemaResult { schema }))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        let sender = Sender::of(&request)?;
        let client = self.clients().of(sender).await?;
        let rows = self.get(&client, request.get_ref()).await;
        rows.map(Response::new).map_err(|error| status(&error))
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        let sender = Sender::of(&request)?;
        let client = self.clients().of(sender).await?;
        let results = self.put(client, request.into_inner()).await;
        results.map(Response::new).map_err(|error| status(&error))
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Answer<Self::DoExchangeStream> {
        Err(status(&Error::unsupported("DoExchange is not part of Flight SQL")))
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let sender = Sender::of(&request)?;
        let client = self.clients().of(sender).await?;
        let answer = actions::run(self, client, &request).await.map_err(|error| status(&error))?;
        let answer = answer.map(|body| Ok(arrow_flight::Result { body }));
        Ok(Response::new(stream::iter(answer).boxed()))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Answer<Self::ListActionsStream> {
        let actions = ACTIONS.map(|(name, what)| {
            Ok(ActionType { r#type: name.to_owned(), description: what.to_owned() })
        });
        Ok(Response::new(stream::iter(actions).boxed()))
    }
}

/// Where the parts of a result are: an endpoint for each ticket.
fn flight_info(
    schema: &SchemaRef,
    descriptor: FlightDescriptor,
    tickets: Vec<Bytes>,
) -> Result<FlightInfo> {
    let endpoints = tickets.into_iter().map(|ticket| {
        FlightEndpoint::new().with_ticket(Ticket::new(ticket)).with_location(SAME_CONNECTION)
    });
    let mut info = FlightInfo::new()
        .with_descriptor(descriptor)
        .with_endpoints(endpoints.collect())
        .with_total_records(-1)
        .with_total_bytes(-1)
        .with_ordered(true);
    info.schema = encode(schema)?;
    Ok(info)
}

/// Batches as messages, cut to sizes that clients take; no more than one is made ahead.
fn encoded(schema: SchemaRef, rows: BoxStream<'static, Result<RecordBatch>>) -> Stream<FlightData> {
    let rows = rows.map_err(|error| FlightError::from(status(&error)));
    FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .with_dictionary_handling(DictionaryHandling::Hydrate)
        .build(rows)
        .map_err(Status::from)
        .boxed()
}

fn changed(rows: u64) -> Stream<PutResult> {
    let record_count = i64::try_from(rows).unwrap_or(i64::MAX);
    put_result(&DoPutUpdateResult { record_count })
}

fn put_result(message: &impl Message) -> Stream<PutResult> {
    let app_metadata = message.encode_to_vec().into();
    stream::iter([Ok(PutResult { app_metadata })]).boxed()
}

/// All rows of the table at a descriptor's path.
fn select_all(descriptor: &FlightDescriptor) -> Result<String> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let table = table_at(descriptor)?;
    let name = match &table.namespace {
        Some(namespace) => format!("{}.{}", quoted(namespace), quoted(&table.table)),
        None => quoted(&table.table),
    };
    Ok(format!("SELECT * FROM {name}"))
}

/// Clients that send their command together with the first batch send neither without one.
fn nothing_sent() -> Error {
    Error::invalid("the call carries neither a command nor rows")
        .with_sqlstate("08P01")
        .with_hint("send at least one batch; it may be empty")
}

fn unknown_command(command: &Command) -> Error {
    let name = command.type_url().rsplit('.').next().unwrap_or_default().to_owned();
    Error::unsupported(format!("there is no command {name} in this place"))
}
