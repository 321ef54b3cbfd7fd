//! A connection to a peer: how it is opened, and the calls that wait for answers over it.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use stoa_cluster::DaemonId;
use stoa_error::{Error, Result};
use tokio::io::{AsyncRead, ReadHalf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio_rustls::client::TlsStream;

use crate::directory::PeerAddress;
use crate::failure;
use crate::frame::{FrameReader, FrameType, Header};
use crate::hello::{Hello, Verdict};
use crate::options::PeerOptions;
use crate::queue::{Queue, Writing};
use crate::shared::Shared;
use crate::traffic::Traffic;
use crate::{error_text, pulse, tls};

/// A socket to a peer that is who it should be.
pub(crate) type Stream = TlsStream<TcpStream>;

/// A connection to a peer.
pub(crate) struct Connection {
    daemon: DaemonId,
    pub(crate) protocol: u16,
    pub(crate) build: String,
    /// Bytes of the largest request that the peer takes.
    request_bytes_max: usize,
    queue: Queue,
    pub(crate) traffic: Traffic,
    calls: Mutex<Calls>,
    closing: Notify,
    /// The peer has answered a request.
    answered: AtomicBool,
}

#[derive(Default)]
struct Calls {
    waiting: HashMap<u64, oneshot::Sender<Result<Bytes>>>,
    next: u64,
    /// Why the connection has ended.
    ended: Option<Error>,
}

/// Connects, proves who this is, and checks who the peer is.
///
/// # Errors
/// Unavailable (08001): there is nobody, or somebody else, or the peer refuses. The caller limits the time.
pub(crate) async fn open(shared: &Shared, peer: &PeerAddress) -> Result<(Arc<Connection>, Stream)> {
    let daemon = peer.holder.daemon;
    let failed = |why: &dyn fmt::Display| failure::cannot_connect(daemon, &peer.address, why);
    let connector = shared.connector(peer.fingerprint, tls::Use::Calls)?;
    let socket = TcpStream::connect(&peer.address).await.map_err(|e| failed(&e))?;
    // Many small frames are one write already.
    let _ = socket.set_nodelay(true);
    let stream = connector.connect(tls::server_name()?, socket).await;
    let mut stream = stream.map_err(|e| failed(&tls::why(&e)))?;
    let own = Hello::of(&shared.options, Verdict::Welcome);
    own.write(&mut stream).await.map_err(|e| failed(&e))?;
    let hello = Hello::read(&mut stream).await.map_err(|e| failed(&e))?;
    if hello.verdict != Verdict::Welcome && hello.verdict != Verdict::Protocol {
        return Err(failed(&hello.verdict));
    }
    let protocol = own.common(&hello).map_err(|e| failed(&e))?;
    if hello.verdict == Verdict::Protocol {
        return Err(failed(&hello.verdict));
    }
    let taken_by_peer = usize::try_from(hello.frame_bytes_max).unwrap_or(usize::MAX);
    let connection = Connection {
        daemon,
        protocol,
        build: hello.build,
        request_bytes_max: shared.options.frame_bytes_max.min(taken_by_peer),
        queue: Queue::new(shared.options.queued_bytes_max),
        traffic: Traffic::default(),
        calls: Mutex::default(),
        closing: Notify::new(),
        answered: AtomicBool::new(false),
    };
    Ok((Arc::new(connection), stream))
}

impl Connection {
    /// Sends a request, and waits for its answer. If this is dropped, the answer is ignored.
    ///
    /// # Errors
    /// The peer's own; or unavailable (08006): the connection has ended.
    pub(crate) async fn call(&self, kind: u16, body: Bytes) -> Result<Bytes> {
        let length = body.len();
        if length > self.request_bytes_max {
            return Err(failure::too_large("a request", length, self.request_bytes_max));
        }
        let room = match self.queue.room_now(length) {
            Some(room) => Some(room),
            None => self.queue.room(length).await,
        };
        let Some(room) = room else { return Err(self.why_ended()) };
        let (mut call, answer) = self.register()?;
        let header = Header { frame: FrameType::Request, kind, id: call.id, length };
        self.queue.push(header, body, room, &self.traffic);
        let answer = answer.await;
        call.waits = false;
        answer.unwrap_or_else(|_| Err(self.why_ended()))
    }

    fn register(&self) -> Result<(Call<'_>, oneshot::Receiver<Result<Bytes>>)> {
        let mut calls = self.calls.lock();
        if let Some(error) = &calls.ended {
            return Err(error.copied());
        }
        let (answer, waiting) = oneshot::channel();
        let id = calls.next;
        calls.next += 1;
        calls.waiting.insert(id, answer);
        Ok((Call { connection: self, id, waits: true }, waiting))
    }

    fn why_ended(&self) -> Error {
        let calls = self.calls.lock();
        let why = calls.ended.as_ref().map(Error::copied);
        why.unwrap_or_else(|| failure::lost(self.daemon, "it was closed"))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.calls.lock().ended.is_some()
    }

    /// Whether the peer has answered a request.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Ends the connection, and all calls that wait.
    pub(crate) fn close(&self, why: &str) {
        self.end(why);
        self.closing.notify_one();
    }

    fn end(&self, why: &str) {
        self.queue.close();
        let mut calls = self.calls.lock();
        calls.ended.get_or_insert_with(|| failure::lost(self.daemon, why));
        let waiting = std::mem::take(&mut calls.waiting);
        drop(calls);
        // Each finds out why by itself.
        drop(waiting);
    }

    /// Carries requests and answers until the connection ends.
    pub(crate) async fn run(self: &Arc<Self>, stream: Stream, options: &PeerOptions) {
        let (reader, writer) = tokio::io::split(stream);
        let connection = Arc::clone(self);
        let write =
            async move { connection.queue.write_to(Box::new(writer), &connection.traffic).await };
        let mut writing = Writing::begin(write);
        let _end = End(self);
        let why = tokio::select! {
            biased;
            read = self.read(reader, options.frame_bytes_max) => match read {
                Ok(()) => "the peer closed it".to_owned(),
                Err(error) => error.to_string(),
            },
            () = self.closing.notified() => "it was closed".to_owned(),
            written = writing.ended() => match written {
                Ok(()) => "it was closed".to_owned(),
                Err(error) => error.to_string(),
            },
            () = pulse::stops(&self.traffic, &self.queue, options) => "the peer gives no sign of life".to_owned(),
        };
        self.end(&why);
    }

    async fn read(&self, reader: ReadHalf<Stream>, frame_bytes_max: usize) -> io::Result<()> {
        let mut frames = FrameReader::new(reader, frame_bytes_max, &self.traffic);
        while let Some(header) = frames.header().await? {
            self.frame(&mut frames, header).await?;
        }
        Ok(())
    }

    async fn frame<R: AsyncRead + Unpin>(
        &self,
        frames: &mut FrameReader<'_, R>,
        header: Header,
    ) -> io::Result<()> {
        match header.frame {
            FrameType::Answer => {
                let body = frames.body(header.length).await?;
                self.answer(header.id, Ok(body));
            }
            FrameType::Failure => {
                let body = frames.body(header.length).await?;
                let unreadable = || Error::internal("a peer's error cannot be read");
                self.answer(header.id, Err(error_text::decode(&body).unwrap_or_else(unreadable)));
            }
            FrameType::Ping => {
                frames.skip(header.length).await?;
                self.queue.pong();
            }
            FrameType::Pong | FrameType::Other => frames.skip(header.length).await?,
            FrameType::Request => {
                let text = "the peer sends requests over a connection for answers";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
        Ok(())
    }

    fn answer(&self, id: u64, answer: Result<Bytes>) {
        if !self.answered.load(Ordering::Relaxed) {
            self.answered.store(true, Ordering::Relaxed);
        }
        let waiting = self.calls.lock().waiting.remove(&id);
        if let Some(waiting) = waiting {
            // Nobody waits for it if the call was dropped just now.
            let _ = waiting.send(answer);
        }
    }
}

/// Ends the connection when its task goes, for whatever reason: nobody would answer its calls.
struct End<'a>(&'a Connection);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end("this daemon has stopped it");
    }
}

/// A call that waits for its answer; forgotten when dropped.
struct Call<'a> {
    connection: &'a Connection,
    id: u64,
    waits: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.connection.calls.lock().waiting.remove(&self.id);
        }
    }
}
