//! `POST /v1/sql`: runs the statements, answers with the last one's result.
//!
//! All statements are parsed before the first one runs. Each is run to its end before the next;
//! the first error ends the request, and what earlier statements changed stays. When the client
//! goes away, the query is dropped, which cancels it. With `session`, the statements run in a session that was
//! opened before (`sessions`); with `keep`, the rows stay here for pages and downloads (`kept`).

use std::sync::Arc;
use std::time::Instant;

use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use stoa_env::clock;
use stoa_error::{Error, Result};
use stoa_query::{Outcome, RowStream, Session, SessionOptions};

use crate::app::{App, Flight};
use crate::asker::Asker;
use crate::body::{Completed, ResultBody, Rows};
use crate::parameters::checked;
use crate::problem::Problem;
use crate::request::{SqlParameters, SqlRequest, StatementText};
use crate::{body, format, scalar};

pub(crate) async fn run(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<SqlParameters>, QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let began = clock::monotonic();
    let body = body.map_err(|rejection| unreadable(&rejection))?;
    let request = SqlRequest::read(checked(parameters)?, &headers, &body)?;
    let flight = app.flights.start()?;
    // Before the statement: what is taken away while it runs counts, too.
    let standing = match request.keep {
        true => asker.session(&app.engine).standing().await?,
        false => None,
    };
    let outcome = match &request.session {
        Some(id) => {
            let turn = app.sessions.turn(id, asker.user()).await?;
            outcome_of_last(&turn.session, &request).await?
        }
        None => {
            let session = app.engine.session(SessionOptions {
                application: request.application.clone(),
                namespace: request.namespace.clone(),
                ..asker.options()
            });
            outcome_of_last(&session, &request).await?
        }
    };
    let answer_with = |rows| match request.keep {
        true => Rows::Kept(app.results.keep(asker.user(), standing, rows)),
        false => Rows::Live(rows),
    };
    answer(outcome, answer_with, &request, began, flight).await
}

fn unreadable(rejection: &BytesRejection) -> Problem {
    let status = rejection.status();
    let error = Error::invalid(rejection.body_text());
    let error = match status {
        StatusCode::PAYLOAD_TOO_LARGE => error.with_sqlstate("54000").with_hint(
            "load large amounts of rows with `stoa load`, COPY … FROM a file, or the PostgreSQL \
             protocol's COPY FROM STDIN",
        ),
        _ => error,
    };
    Problem::with_status(error, status)
}

async fn outcome_of_last(session: &Session, request: &SqlRequest) -> Result<Outcome> {
    for statement in &request.statements {
        session.parse(&statement.text).await.map_err(|error| statement.place(error))?;
    }
    let mut last = None;
    for statement in &request.statements {
        if let Some(Outcome::Rows(rows)) = last.take() {
            finish(rows).await?;
        }
        last = Some(execute(session, statement, request).await?);
    }
    last.ok_or_else(|| Error::internal("a request without statements was run"))
}

async fn execute(
    session: &Session,
    statement: &StatementText,
    request: &SqlRequest,
) -> Result<Outcome> {
    let place = |error| statement.place(error);
    let parsed = session.parse(&statement.text).await.map_err(place)?.into_iter().next();
    let parsed = parsed.ok_or_else(|| Error::internal("a statement was lost in parsing"))?;
    let hints = request.parameters.iter().map(scalar::type_hint).collect();
    let prepared = session.prepare(parsed, hints).await.map_err(place)?;
    let values = scalar::bind(&request.parameters, prepared.parameter_types())?;
    session.execute(&prepared, values).await.map_err(place)
}

/// Runs a query whose rows nobody wants, for its errors.
async fn finish(mut rows: RowStream) -> Result<()> {
    while let Some(batch) = rows.next().await {
        batch?;
    }
    Ok(())
}

async fn answer(
    outcome: Outcome,
    answer_with: impl FnOnce(RowStream) -> Rows,
    request: &SqlRequest,
    began: Instant,
    flight: Flight,
) -> Result<Response, Problem> {
    let encoder = format::encoder(request.format);
    let mut response = match outcome {
        Outcome::Rows(rows) => {
            let rows = answer_with(rows);
            let id = rows.query_id();
            let body = ResultBody::new(rows, encoder, request.max_rows, began, flight);
            let mut response = body.into_body().await?.into_response();
            response.headers_mut().insert("stoa-query-id", HeaderValue::from(id));
            response
        }
        Outcome::Done(completion) => {
            let completed = Completed { completion, elapsed: began.elapsed() };
            let tag = HeaderValue::from_str(&completed.completion.tag);
            let mut response = body::completed(completed, encoder)?.into_response();
            if let Ok(tag) = tag {
                response.headers_mut().insert("stoa-command", tag);
            }
            response
        }
        Outcome::CopyIn(_) => {
            return Err(Error::unsupported("COPY … FROM STDIN is not possible over HTTP")
                .with_hint(
                    "use COPY … FROM 'file' for a file the server sees, `stoa load`, or the \
                     PostgreSQL protocol",
                )
                .into());
        }
    };
    let headers = response.headers_mut();
    let content_type = HeaderValue::from_static(request.format.content_type());
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}
