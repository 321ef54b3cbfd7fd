//! Statements on a server, over HTTP: `POST /v1/hql` with frames of `stoa_hql::wire`.
//!
//! Files that a statement names are files of this machine: those that it reads are sent along, the
//! one that it writes comes back. **Invariant:** a server cannot make this side open a file that the
//! statement does not name.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use reqwest::header;
use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_hql::lang::parse;
use stoa_hql::wire::{CHUNK_BYTES, Frame, FrameDecoder, FrameKind, MEDIA_TYPE};
use stoa_hql::{Files, Output, ReadFile, Statements};
use tokio::sync::mpsc;

use crate::shell::{RemoteBackend, problem_of, unreachable_or_broken};

/// Parts of files on their way.
const QUEUE: usize = 8;

/// A session on a server; it keeps the namespace, the server forgets it after each statement.
pub struct RemoteStatements {
    url: String,
    client: reqwest::Client,
    files: Arc<dyn Files>,
    namespace: String,
    parameters: Vec<(&'static str, String)>,
}

impl RemoteStatements {
    /// Talks to `http://host:port` or `https://host:port`; `parameters` are those of `POST /v1/hql`.
    ///
    /// # Errors
    /// Invalid: no such URL; unavailable: nobody answers there.
    pub async fn connect(
        url: &str,
        client: reqwest::Client,
        files: Arc<dyn Files>,
        namespace: String,
        parameters: Vec<(&'static str, String)>,
    ) -> Result<Self> {
        // Says well what is wrong with an address.
        RemoteBackend::connect(url, client.clone()).await?;
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { url, client, files, namespace, parameters })
    }

    async fn answers(&mut self, text: &str, out: &mut dyn Output) -> Result<()> {
        let statement = parse(text)?;
        let inputs = statement.input_files().into_iter().map(str::to_owned).collect();
        // Made only when something comes: a statement that fails leaves no file.
        let output = statement.output_file().map(str::to_owned);
        let body = message(text, inputs, Arc::clone(&self.files))?;
        let mut parameters = self.parameters.clone();
        parameters.push(("namespace", self.namespace.clone()));
        let request = self.client.post(format!("{}/v1/hql", self.url)).query(&parameters);
        let request = request.header(header::CONTENT_TYPE, MEDIA_TYPE).body(body);
        let response =
            request.send().await.map_err(|error| unreachable_or_broken(&self.url, error))?;
        if !response.status().is_success() {
            return Err(problem_of(response).await);
        }
        let mut answer = Answer { files: &self.files, output, file: None };
        let mut decoder = FrameDecoder::default();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            decoder.push(&chunk.map_err(|error| unreachable_or_broken(&self.url, error))?);
            while let Some(frame) = decoder.next_frame()? {
                if let Some(namespace) = answer.take(&frame, out)? {
                    self.namespace = namespace;
                    return answer.finish();
                }
            }
        }
        Err(Error::unavailable("the server aborted the answer")
            .with_hint("the server's log says why"))
    }
}

#[async_trait]
impl Statements for RemoteStatements {
    async fn run_text(&mut self, text: &str, out: &mut dyn Output) -> Result<()> {
        self.answers(text, out).await
    }

    fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    async fn pause(&mut self, time: Duration) {
        stoa_env::timer::sleep(time).await;
    }
}

/// An answer as it comes.
struct Answer<'a> {
    files: &'a Arc<dyn Files>,
    output: Option<String>,
    file: Option<Box<dyn Write + Send>>,
}

impl Answer<'_> {
    /// Passes a part on; the session's namespace if it was the last one.
    fn take(&mut self, frame: &Frame, out: &mut dyn Output) -> Result<Option<String>> {
        match frame.kind {
            FrameKind::Result => out.write(&frame.content)?,
            FrameKind::Notice => out.notice(frame.text()?)?,
            FrameKind::Progress => out.progress(frame.text()?)?,
            FrameKind::FileBytes => self.file()?.write_all(&frame.content).map_err(not_written)?,
            FrameKind::Done => return Ok(Some(frame.text()?.to_owned())),
            FrameKind::Error => return Err(crate::shell::problem_in(&frame.content)),
            FrameKind::Statement | FrameKind::FileLength | FrameKind::File | FrameKind::FileEnd => {
                return Err(Error::corrupt("the server sent what only a shell sends"));
            }
        }
        Ok(None)
    }

    fn file(&mut self) -> Result<&mut Box<dyn Write + Send>> {
        let Some(name) = &self.output else {
            return Err(Error::corrupt("the server sent a file that the statement does not name"));
        };
        if self.file.is_none() {
            self.file = Some(self.files.create(name)?);
        }
        self.file.as_mut().ok_or_else(|| Error::internal("a file that was made is gone"))
    }

    /// Ends the file, which is there even if it is empty.
    fn finish(&mut self) -> Result<()> {
        match self.output.is_some() {
            true => self.file()?.flush().map_err(not_written),
            false => Ok(()),
        }
    }
}

fn not_written(error: std::io::Error) -> Error {
    Error::unavailable("the file cannot be written").with_sqlstate("58030").with_source(error)
}

/// A statement with the files that it reads, as the body of a request.
fn message(text: &str, inputs: Vec<String>, files: Arc<dyn Files>) -> Result<reqwest::Body> {
    let statement = Frame::new(FrameKind::Statement, text.to_owned()).encode()?;
    let (parts, taken) = mpsc::channel::<Result<Bytes>>(QUEUE);
    // Opened before anything is sent: a file that is not there is no matter of the server.
    let opened = inputs.into_iter().map(|name| Ok((files.open(&name)?, name)));
    let opened = opened.collect::<Result<Vec<_>>>()?;
    task::spawn_blocking(move || {
        for (file, name) in opened {
            let sent = send_file(&name, file, &parts);
            if let Err(error) = sent {
                // Nobody may be there to hear it.
                let _ = parts.blocking_send(Err(error));
                return;
            }
        }
    });
    let files =
        stream::unfold(
            taken,
            |mut taken| async move { taken.recv().await.map(|part| (part, taken)) },
        );
    Ok(reqwest::Body::wrap_stream(stream::iter([Ok(statement)]).chain(files)))
}

fn send_file(name: &str, mut file: ReadFile, parts: &mpsc::Sender<Result<Bytes>>) -> Result<()> {
    let send = |frame: Frame| {
        let gone = |_| Error::unavailable("the server takes no more of the file");
        parts.blocking_send(frame.encode()).map_err(gone)
    };
    // So that the server can tell how far a load has come.
    if let Some(length) = file.length {
        send(Frame::file_length(length))?;
    }
    send(Frame::new(FrameKind::File, name.to_owned()))?;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let read = file.bytes.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
        read.map_err(|e| Error::unavailable(format!("cannot read {name}")).with_source(e))?;
        if chunk.is_empty() {
            return send(Frame::new(FrameKind::FileEnd, Bytes::new()));
        }
        send(Frame::new(FrameKind::FileBytes, chunk))?;
    }
}
