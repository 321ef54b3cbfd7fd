//! Actions: prepared statements, cancelling, settings of the session.

use std::sync::Arc;

use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, Command,
    ProstMessageExt,
};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo,
};
use bytes::Bytes;
use prost::Message;
use stoa_error::{Error, Result};
use tonic::Request;

use crate::client::Client;
use crate::columns::encode;
use crate::handles::Handle;
use crate::ingest::check_no_transaction;
use crate::prepared::PreparedStatement;
use crate::query::Cancelled;
use crate::session_options;
use crate::state::FlightSql;

/// The actions there are, with what they do.
pub(crate) const ACTIONS: [(&str, &str); 7] = [
    ("CreatePreparedStatement", "Plans a statement to be executed any number of times."),
    ("ClosePreparedStatement", "Forgets a prepared statement."),
    ("CancelFlightInfo", "Cancels the query of a FlightInfo."),
    ("CancelQuery", "The older form of CancelFlightInfo."),
    ("SetSessionOptions", "Sets catalog, schema or a setting of the session."),
    ("GetSessionOptions", "Tells catalog and schema of the session."),
    ("CloseSession", "Ends the session of a token."),
];

/// Carries out an action; the answer, if it has one.
///
/// # Errors
/// Unsupported: no such action; those of the action.
pub(crate) async fn run(
    service: &FlightSql,
    client: Arc<Client>,
    request: &Request<Action>,
) -> Result<Option<Bytes>> {
    let body = request.get_ref().body.as_ref();
    match request.get_ref().r#type.as_str() {
        "CreatePreparedStatement" => prepare(service, client, unpack(body)?).await.map(Some),
        "ClosePreparedStatement" => {
            let request: ActionClosePreparedStatementRequest = unpack(body)?;
            let handle = request.prepared_statement_handle;
            service.close_statement(&handle, &client).await;
            Ok(None)
        }
        "CancelFlightInfo" => {
            let request = CancelFlightInfoRequest::decode(body).map_err(unreadable)?;
            let status = match cancel(service, &client, request.info).await? {
                Cancelled::Done => CancelStatus::Cancelled,
                Cancelled::Begun => CancelStatus::Cancelling,
            };
            Ok(Some(CancelFlightInfoResult { status: status as i32 }.encode_to_vec().into()))
        }
        "CancelQuery" => {
            let request: ActionCancelQueryRequest = unpack(body)?;
            let info = FlightInfo::decode(request.info).map_err(unreadable)?;
            // The numbers are those of `CancelStatus`.
            let result = match cancel(service, &client, Some(info)).await? {
                Cancelled::Done => CancelStatus::Cancelled as i32,
                Cancelled::Begun => CancelStatus::Cancelling as i32,
            };
            Ok(Some(packed(&ActionCancelQueryResult { result })))
        }
        "SetSessionOptions" => session_options::set(&client.session, body).map(Some),
        "GetSessionOptions" => Ok(Some(session_options::get(&client.session))),
        "CloseSession" => Ok(Some(session_options::closed(service.clients().close(request).await))),
        "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
            check_no_transaction(Some(b"?")).map(|()| None)
        }
        other => Err(Error::unsupported(format!("there is no action {other}"))
            .with_hint("ListActions lists them")),
    }
}

async fn prepare(
    service: &FlightSql,
    client: Arc<Client>,
    request: ActionCreatePreparedStatementRequest,
) -> Result<Bytes> {
    check_no_transaction(request.transaction_id.as_deref())?;
    let statement = PreparedStatement::new(client, &request.query).await?;
    let dataset_schema = match statement.schema() {
        none if none.fields().is_empty() => Bytes::new(),
        schema => encode(&schema)?,
    };
    let parameter_schema = match statement.parameter_schema() {
        none if none.fields().is_empty() => Bytes::new(),
        schema => encode(&schema)?,
    };
    let prepared_statement_handle = service.keep_statement(statement)?.bytes();
    Ok(packed(&ActionCreatePreparedStatementResult {
        prepared_statement_handle,
        dataset_schema,
        parameter_schema,
    }))
}

/// Cancels the queries of all tickets in `info`.
async fn cancel(
    service: &FlightSql,
    client: &Client,
    info: Option<FlightInfo>,
) -> Result<Cancelled> {
    let mut ended = Cancelled::Done;
    let mut found = false;
    for endpoint in info.map(|info| info.endpoint).unwrap_or_default() {
        let ticket = endpoint.ticket.unwrap_or_default().ticket;
        if let Ok(Command::TicketStatementQuery(ticket)) = command(&ticket)
            && let Some(handle) = Handle::read(&ticket.statement_handle)
            && let Some(cancelled) = service.cancel_query(handle, client).await?
        {
            found = true;
            if cancelled == Cancelled::Begun {
                ended = cancelled;
            }
        }
    }
    match found {
        true => Ok(ended),
        false => Err(Error::not_found("no query of this FlightInfo is known; it may have ended")
            .with_sqlstate("26000")),
    }
}

/// The command in a descriptor or ticket.
///
/// # Errors
/// Bytes that are no command.
pub(crate) fn command(bytes: &[u8]) -> Result<Command> {
    let wrong = || Error::invalid("the command cannot be read").with_sqlstate("08P01");
    let any = Any::decode(bytes).map_err(|source| wrong().with_source(source))?;
    Command::try_from(any).map_err(|source| wrong().with_source(source))
}

fn unpack<T: ProstMessageExt>(body: &[u8]) -> Result<T> {
    let any = Any::decode(body).map_err(unreadable)?;
    let unpacked = any.unpack().ok().flatten();
    unpacked.ok_or_else(|| {
        Error::invalid("the body of the action is not what it says").with_sqlstate("08P01")
    })
}

fn packed(message: &impl ProstMessageExt) -> Bytes {
    message.as_any().encode_to_vec().into()
}

fn unreadable(source: prost::DecodeError) -> Error {
    Error::invalid("the message cannot be read").with_sqlstate("08P01").with_source(source)
}
