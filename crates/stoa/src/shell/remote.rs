//! Statements on a server, over HTTP: `POST /v1/sql`, answered as an Arrow stream.

use std::collections::VecDeque;
use std::pin::Pin;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use reqwest::header;
use serde::Deserialize;
use stoa_error::{Error, ErrorKind, Result};

use super::backend::Reply;

const ARROW: &str = "application/vnd.apache.arrow.stream";

/// A server, by its URL.
pub struct RemoteBackend {
    url: String,
    client: reqwest::Client,
}

impl RemoteBackend {
    /// Talks to `http://host:port` or `https://host:port`.
    ///
    /// # Errors
    /// Invalid: no such URL; unavailable: nobody answers there, or nobody who is trusted.
    pub async fn connect(url: &str, client: reqwest::Client) -> Result<Self> {
        let url = url.trim_end_matches('/').to_owned();
        let backend = Self { url, client };
        let health = backend.client.get(format!("{}/health", backend.url)).send().await;
        let health = health.map_err(|e| backend.unreachable(e))?;
        match health.status().is_success() {
            true => Ok(backend),
            false => Err(problem_of(health).await),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Runs a statement that has no rows, or whose rows do not matter.
    ///
    /// # Errors
    /// Those of the statement; unavailable: nobody answers.
    pub async fn execute(&self, statement: &str) -> Result<()> {
        if let Reply::Rows { mut batches, .. } = self.run(statement).await? {
            while batches.next().await.transpose()?.is_some() {}
        }
        Ok(())
    }

    pub(super) async fn run(&self, statement: &str) -> Result<Reply> {
        let response = self
            .client
            .post(format!("{}/v1/sql?application=stoa+sql", self.url))
            .header(header::ACCEPT, ARROW)
            .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
            .body(statement.to_owned())
            .send()
            .await
            .map_err(|e| self.unreachable(e))?;
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok());
        let is_arrow = header("content-type").is_some_and(|value| value.starts_with(ARROW));
        if !response.status().is_success() || !is_arrow {
            return Err(problem_of(response).await);
        }
        if let Some(tag) = header("stoa-command") {
            return Ok(Reply::Done { tag: tag.to_owned(), notices: Vec::new() });
        }
        let mut batches = ArrowStream::new(response.bytes_stream().boxed());
        let schema = batches.read_schema().await?;
        let batches = stream::unfold(batches, |mut batches| async move {
            let next = batches.next_batch().await?;
            Some((next, batches))
        });
        Ok(Reply::Rows { schema, batches: batches.boxed() })
    }

    fn unreachable(&self, error: reqwest::Error) -> Error {
        unreachable(&self.url, &error)
    }
}

fn unreachable(url: &str, error: &reqwest::Error) -> Error {
    if error.is_builder() {
        return Error::invalid(format!("{url:?} is not the URL of a server"))
            .with_hint("write http://HOST:PORT or https://HOST:PORT");
    }
    let cause = root_cause(error);
    if let Some(hint) = tls_hint(&cause) {
        return Error::unavailable(format!("no encrypted connection to {url}"))
            .with_detail(cause)
            .with_hint(hint);
    }
    Error::unavailable(format!("no server answers at {url}")).with_detail(cause).with_hint(
        "start one with `stoa server`, or open a warehouse directly with --warehouse DIR",
    )
}

/// What to do about a handshake that failed, by what it says.
fn tls_hint(cause: &str) -> Option<&'static str> {
    if cause.contains("CertificateRequired") {
        return Some(
            "the server asks for a certificate: give --tls-client-cert and --tls-client-key",
        );
    }
    if cause.contains("peer certificate") {
        return Some(
            "--tls-ca FILE names the authority that issued the server's certificate; the host in the \
             URL must be one of the certificate's names",
        );
    }
    let is_plain = cause.contains("InvalidContentType");
    is_plain.then_some("if the server has no certificate, write http:// in place of https://")
}

/// The error of a request that got no whole answer.
pub fn unreachable_or_broken(url: &str, error: reqwest::Error) -> Error {
    if error.is_connect() || error.is_builder() {
        unreachable(url, &error)
    } else {
        broken_off(error)
    }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// An error as a server says it.
#[derive(Debug, Deserialize)]
struct Document {
    error: Problem,
}

#[derive(Debug, Deserialize)]
struct Problem {
    code: String,
    kind: String,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    position: Option<usize>,
}

/// The error that a server answered with.
pub async fn problem_of(response: reqwest::Response) -> Error {
    let status = response.status();
    let bytes = match response.bytes().await {
        Ok(bytes) => bytes,
        Err(error) => return broken_off(error),
    };
    match serde_json::from_slice::<Document>(&bytes) {
        Ok(document) => document.error.into_error(),
        Err(error) => {
            Error::unavailable(format!("unexpected answer {status}: not from a Stoa server"))
                .with_source(error)
                .with_hint("is this the HTTP port of a Stoa server?")
        }
    }
}

/// The error in a server's own words.
pub fn problem_in(document: &[u8]) -> Error {
    match serde_json::from_slice::<Document>(document) {
        Ok(document) => document.error.into_error(),
        Err(error) => Error::corrupt("the server's error is not JSON").with_source(error),
    }
}

impl Problem {
    fn into_error(self) -> Error {
        let mut error = Error::new(kind_named(&self.kind), self.message);
        if let Some(detail) = self.detail {
            error = error.with_detail(detail);
        }
        if let Some(hint) = self.hint {
            error = error.with_hint(hint);
        }
        if let Some(position) = self.position {
            error = error.with_position(position);
        }
        // Five letters per failed statement: what an error needs is a name that lives on.
        error.with_sqlstate(self.code.leak())
    }
}

fn kind_named(name: &str) -> ErrorKind {
    let kinds = [
        ErrorKind::Invalid,
        ErrorKind::Unsupported,
        ErrorKind::NotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::Forbidden,
        ErrorKind::Conflict,
        ErrorKind::Exhausted,
        ErrorKind::Unavailable,
        ErrorKind::Cancelled,
        ErrorKind::Timeout,
        ErrorKind::Corrupt,
    ];
    kinds.into_iter().find(|kind| kind.name() == name).unwrap_or(ErrorKind::Internal)
}

fn broken_off(error: reqwest::Error) -> Error {
    Error::unavailable("the server aborted the answer")
        .with_detail(root_cause(&error))
        .with_hint("see the server's log or its console for the reason")
}

type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// Decodes a body as it comes in.
struct ArrowStream {
    body: Body,
    decoder: StreamDecoder,
    ready: VecDeque<RecordBatch>,
    done: bool,
}

impl ArrowStream {
    fn new(body: Body) -> Self {
        Self { body, decoder: StreamDecoder::new(), ready: VecDeque::new(), done: false }
    }

    async fn read_schema(&mut self) -> Result<SchemaRef> {
        loop {
            if let Some(schema) = self.decoder.schema() {
                return Ok(schema);
            }
            if !self.read_chunk().await? {
                return Err(Error::unavailable("the server's answer has no columns"));
            }
        }
    }

    async fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        while self.ready.is_empty() && !self.done {
            match self.read_chunk().await {
                Ok(true) => {}
                Ok(false) => self.done = true,
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
        self.ready.pop_front().map(Ok)
    }

    /// Decodes one more chunk of the body; `false` at the end of a complete stream.
    async fn read_chunk(&mut self) -> Result<bool> {
        let Some(chunk) = self.body.next().await else {
            self.decoder.finish().map_err(undecodable)?;
            return Ok(false);
        };
        let mut buffer = Buffer::from(chunk.map_err(broken_off)?);
        while !buffer.is_empty() {
            if let Some(batch) = self.decoder.decode(&mut buffer).map_err(undecodable)? {
                self.ready.push_back(batch);
            }
        }
        Ok(true)
    }
}

fn undecodable(error: ArrowError) -> Error {
    Error::unavailable("the server's answer cannot be read").with_source(error)
}
