//! `POST /v1/hql`: runs statements of HQL.
//!
//! The body is their text; the answer is what they print, as plain text. The first error ends the
//! request; if something was printed before, the answer is broken off. A shell sends and takes
//! frames instead (`Content-Type: application/vnd.stoa.hql`, see `stoa_hql::wire`): then files that a
//! statement reads come with it, and one that it writes goes back, so that they are files of the
//! shell's machine. Files of the server are never opened.
//!
//! A session of HQL waits for files and for whoever takes its results: each request has a thread of
//! its own until it is done.

mod files;
mod output;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde::Deserialize;
use stoa_env::task;
use stoa_error::{Error, ErrorKind, Result};
use stoa_hql::lang::Splitter;
use stoa_hql::lang::ast::Statement;
use stoa_hql::wire::{Frame, FrameDecoder, FrameKind, MEDIA_TYPE};
use stoa_hql::{BufferOutput, Files, NoFiles, Output, SessionOptions, TimestampFormat, Zone};
use tokio::sync::mpsc;

use crate::app::App;
use crate::asker::Asker;
use crate::parameters::checked;
use crate::problem::{self, Problem};
use files::RequestFiles;
use output::{Answer, Frames, Text};

/// Answers, or frames of a request, on their way.
const QUEUE: usize = 16;

/// Longest text of statements, bytes.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// The parameters after `?`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HqlParameters {
    /// The namespace to start in; `/` if not given.
    namespace: Option<String>,
    /// `default`, `nanoseconds` or `usecs`.
    timestamp_format: Option<String>,
    /// `utc`, which is the default, `local`: the server's, or the name of a zone.
    zone: Option<String>,
    /// Leave out statistics and progress; only for frames, plain text never has them.
    silent: Option<bool>,
}

impl HqlParameters {
    fn options(&self, framed: bool) -> Result<SessionOptions> {
        let zone = Zone::from_name(self.zone.as_deref().unwrap_or("utc"))?;
        let format = self.timestamp_format.as_deref().map(TimestampFormat::from_name);
        Ok(SessionOptions {
            timestamp_format: format.transpose()?.unwrap_or_default(),
            zone,
            silent: !framed || self.silent == Some(true),
        })
    }
}

pub(crate) async fn run(
    State(app): State<Arc<App>>,
    asker: Asker,
    parameters: Result<Query<HqlParameters>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    // HQL knows tables as a whole, and makes and drops them.
    asker.session(&app.engine).must_be_superuser("use HQL").await?;
    let parameters = checked(parameters)?;
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let framed = content_type.is_some_and(|value| value.starts_with(MEDIA_TYPE));
    let options = parameters.options(framed)?;
    let (answers, mut answered) = mpsc::channel(QUEUE);
    let (statements, files): (Vec<String>, Arc<dyn Files>) = match framed {
        true => {
            let (statement, rest) = first_frame(body).await?;
            (vec![statement], Arc::new(RequestFiles::new(rest, answers.clone())))
        }
        false => (split(&read_text(body).await?), Arc::new(NoFiles)),
    };
    let work = HqlRun {
        flight: app.flights.start()?,
        app: Arc::clone(&app),
        user: asker.user().to_owned(),
        namespace: parameters.namespace.unwrap_or_default(),
        statements,
        options,
        files,
        answers,
        framed,
    };
    let runtime = tokio::runtime::Handle::current();
    task::spawn_blocking(move || {
        let _entered = runtime.enter();
        futures::executor::block_on(work.run());
    });
    let first = match answered.recv().await {
        Some(Answer::Failed(error)) if !framed => return Err(error.into()),
        first => first,
    };
    let media_type = if framed { MEDIA_TYPE } else { "text/plain; charset=utf-8" };
    let rest = stream::unfold(answered, |mut answered| async move {
        answered.recv().await.map(|answer| (answer, answered))
    });
    let answer = stream::iter(first).chain(rest).map(move |answer| encoded(answer, framed));
    let mut response = Body::from_stream(answer).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    Ok(response)
}

/// The bytes of an answer; an error breaks plain text off.
fn encoded(answer: Answer, framed: bool) -> Result<Bytes> {
    match answer {
        Answer::Frame(frame) if framed => frame.encode(),
        Answer::Frame(frame) => Ok(frame.content),
        Answer::Failed(error) if framed => {
            let document = serde_json::json!({ "error": problem::to_json(&error) });
            Frame::new(FrameKind::Error, document.to_string()).encode()
        }
        Answer::Failed(error) => Err(error),
    }
}

/// One request, run on a thread of its own.
struct HqlRun {
    app: Arc<App>,
    /// Who asks: the statements are theirs, to be seen and ended.
    user: String,
    flight: crate::app::Flight,
    namespace: String,
    statements: Vec<String>,
    options: SessionOptions,
    files: Arc<dyn Files>,
    answers: mpsc::Sender<Answer>,
    framed: bool,
}

impl HqlRun {
    async fn run(self) {
        let mut out: Box<dyn Output> = match self.framed {
            true => Box::new(Frames::new(self.answers.clone())),
            false => Box::new(Text::new(self.answers.clone())),
        };
        let answer = match self.run_statements(out.as_mut()).await {
            Ok(namespace) => Answer::Frame(Frame::new(FrameKind::Done, namespace)),
            Err(error) => {
                problem::log(&error);
                Answer::Failed(error)
            }
        };
        // Whoever asked may be gone.
        if self.framed || matches!(answer, Answer::Failed(_)) {
            let _ = self.answers.blocking_send(answer);
        }
        drop(self.flight);
    }

    async fn run_statements(&self, out: &mut dyn Output) -> Result<String> {
        let engine = &self.app.engine;
        let mut session = engine.hql_session(Arc::clone(&self.files), self.options);
        if !self.namespace.is_empty() && self.namespace != "/" {
            let mut nothing = BufferOutput::default();
            let used = session.run(Statement::Use(self.namespace.clone()), &mut nothing).await;
            if let Err(error) = used {
                // Somebody dropped it: whoever was there may leave.
                let leaves = self.statements.first().is_some_and(|text| leaves_namespace(text));
                if error.kind() != ErrorKind::NotFound || !leaves {
                    return Err(error.with_hint("USE \"/\" goes to the root"));
                }
            }
        }
        for statement in &self.statements {
            engine.run_hql(&mut session, statement, &self.user, out).await?;
        }
        // An empty frame hands on what is still held back.
        out.progress("")?;
        Ok(session.namespace().to_string())
    }
}

/// Whether a statement goes to another namespace, wherever one is.
fn leaves_namespace(text: &str) -> bool {
    matches!(stoa_hql::lang::parse(text), Ok(Statement::Use(path)) if path.starts_with('/'))
}

fn split(text: &str) -> Vec<String> {
    let mut splitter = Splitter::new();
    splitter.push(text);
    let mut statements = Vec::new();
    while let Some(statement) = splitter.next_statement() {
        statements.push(statement);
    }
    statements.extend(splitter.take_rest());
    statements
}

async fn read_text(body: Body) -> Result<String> {
    let bytes = axum::body::to_bytes(body, TEXT_BYTES_MAX).await.map_err(|e| {
        Error::invalid("the body broke off, or is longer than 16 MiB")
            .with_sqlstate("54000")
            .with_source(e)
    })?;
    String::from_utf8(bytes.into())
        .map_err(|e| Error::invalid("the statements are not UTF-8 text").with_source(e))
}

/// The statement, and what comes behind it.
async fn first_frame(body: Body) -> Result<(String, mpsc::Receiver<Result<Frame>>)> {
    let (frames, mut rest) = mpsc::channel(QUEUE);
    task::spawn(async move {
        if let Err(error) = decode(body, &frames).await {
            let _ = frames.send(Err(error)).await;
        }
    });
    match rest.recv().await.transpose()? {
        Some(frame) if frame.kind == FrameKind::Statement => Ok((frame.text()?.to_owned(), rest)),
        _ => Err(Error::invalid("the message does not begin with a statement")),
    }
}

/// Hands on the frames of a body until it ends, or nobody wants more.
async fn decode(body: Body, frames: &mpsc::Sender<Result<Frame>>) -> Result<()> {
    let mut chunks = body.into_data_stream();
    let mut decoder = FrameDecoder::default();
    while let Some(chunk) = chunks.next().await {
        let chunk =
            chunk.map_err(|e| Error::unavailable("the message broke off").with_source(e))?;
        decoder.push(&chunk);
        while let Some(frame) = decoder.next_frame()? {
            if frames.send(Ok(frame)).await.is_err() {
                return Ok(());
            }
        }
    }
    match decoder.is_empty() {
        true => Ok(()),
        false => Err(Error::invalid("the message ends within a frame")),
    }
}
