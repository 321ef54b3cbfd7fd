//! Connections from peers: who they are, what they ask, and their answers.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use parking_lot::Mutex;
use stoa_cluster::lease::Holder;
use stoa_env::{clock, task, timer};
use stoa_error::Result;
use stoa_listen::{Door, Guarded, Limits};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::directory::Handler;
use crate::frame::{FrameReader, FrameType, Header};
use crate::hello::{Hello, Verdict};
use crate::identity::{fingerprint_of, hex};
use crate::options::PeerOptions;
use crate::queue::{Queue, Writing};
use crate::registry::{Entry, Registry};
use crate::shared::Shared;
use crate::slots::{Slot, Slots};
use crate::tls::Use;
use crate::traffic::Traffic;
use crate::{error_text, failure, pulse};

/// Lookups in the directory at once: strangers must not keep it busy.
const LOOKUPS_MAX: usize = 16;
/// How often the log reports refused connections, at most.
const TELL_INTERVAL: Duration = Duration::from_secs(10);
/// How long a peer gets to read the last answers.
const PART_TIMEOUT: Duration = Duration::from_secs(1);

type Stream = TlsStream<Guarded<TcpStream>>;

/// How far the server is with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Open,
    /// No new requests.
    Draining,
    /// No more answers.
    Ended,
}

/// Serves peers until `shutdown` completes, then lets running requests end within the grace.
///
/// # Errors
/// Internal: TLS cannot be set up. Failures of single connections end those only.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    registry: Arc<Registry>,
    listener: TcpListener,
    handler: Arc<dyn Handler>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    let options = &shared.options;
    let limits = Limits { login_timeout: options.open_timeout, ..options.limits.clone() };
    let door = Door::new("peers", options.connections_max, limits);
    let (phase, phases) = watch::channel(Phase::Open);
    let (alive, mut all_gone) = mpsc::channel(1);
    let server = Arc::new(Server {
        acceptor: shared.acceptor(Use::Calls)?,
        shared: Arc::clone(&shared),
        registry,
        handler,
        lookups: Semaphore::new(LOOKUPS_MAX),
        told: Mutex::default(),
        phases,
    });
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    // A refused connection gets no explanation: anyone may have opened it.
                    if let Ok(socket) = door.let_in(socket, peer).await {
                        let (server, alive) = (Arc::clone(&server), alive.clone());
                        task::spawn(async move {
                            server.connection(socket).await;
                            drop(alive);
                        });
                    }
                }
                Err(error) => {
                    // Out of file descriptors, mostly: those in use must end first.
                    tracing::warn!(%error, "cannot accept a connection from a peer");
                    timer::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    drop((listener, alive));
    phase.send_replace(Phase::Draining);
    let _: Result<Option<()>, _> = timer::timeout(options.shutdown_grace, all_gone.recv()).await;
    phase.send_replace(Phase::Ended);
    let _: Option<()> = all_gone.recv().await;
    Ok(())
}

struct Server {
    acceptor: TlsAcceptor,
    shared: Arc<Shared>,
    registry: Arc<Registry>,
    handler: Arc<dyn Handler>,
    lookups: Semaphore,
    /// When the log last reported a refusal.
    told: Mutex<Option<Instant>>,
    phases: watch::Receiver<Phase>,
}

/// A connection from a member.
struct Connection {
    from: Holder,
    queue: Queue,
    traffic: Traffic,
    slots: Arc<Slots>,
    /// Bytes of the largest answer that the peer takes.
    answer_bytes_max: usize,
}

impl Server {
    async fn connection(&self, socket: Guarded<TcpStream>) {
        let address = socket.guest().address();
        let limit = self.shared.options.open_timeout;
        // Boxed, so that a connection does not hold room for its start all its life.
        let opening = timer::timeout(limit, Box::pin(self.open(socket)));
        let opened = tokio::select! {
            biased;
            opened = opening => opened,
            () = reached(self.phases.clone(), Phase::Draining) => return,
        };
        match opened {
            Ok(Ok(Some((connection, entry, stream)))) => {
                self.run(&connection, &entry, stream).await
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::debug!(%address, %error, "a connection to the peers' port failed")
            }
            Err(_) => tracing::debug!(%address, "a connection to the peers' port took too long"),
        }
    }

    /// Finds out who it is; `None` if the client was told why it is refused.
    async fn open(
        &self,
        socket: Guarded<TcpStream>,
    ) -> io::Result<Option<(Arc<Connection>, Entry, Stream)>> {
        let address = socket.guest().address();
        let mut stream = self.acceptor.accept(socket).await?;
        let certificates = stream.get_ref().1.peer_certificates();
        let certificate = certificates.and_then(|certificates| certificates.first());
        let fingerprint = certificate.map(fingerprint_of);
        let fingerprint = fingerprint.ok_or(io::ErrorKind::PermissionDenied)?;
        let hello = Hello::read(&mut stream).await?;
        let options = &self.shared.options;
        loop {
            let forgotten = self.registry.forgotten();
            let Some(from) = self.who(fingerprint).await else {
                let why = format!("certificate {} is of no living member", hex(&fingerprint));
                self.tell(&format!("{address}: {why}"));
                return refuse(stream, options, Verdict::Stranger).await;
            };
            let own = Hello::of(options, Verdict::Welcome);
            if let Err(why) = own.common(&hello) {
                self.tell(&format!("daemon {} at {address}: {why}", from.daemon));
                return refuse(stream, options, Verdict::Protocol).await;
            }
            let taken_by_peer = usize::try_from(hello.frame_bytes_max).unwrap_or(usize::MAX);
            // It goes with the connection, also if this is dropped.
            let Some(entry) = self.registry.enter(from.daemon, forgotten) else { continue };
            let connection = Connection {
                from,
                queue: Queue::new(options.queued_bytes_max),
                traffic: Traffic::default(),
                slots: Slots::new(options.requests_max, options.request_bytes_max),
                answer_bytes_max: options.frame_bytes_max.min(taken_by_peer),
            };
            stream.get_ref().0.guest().known();
            own.write(&mut stream).await?;
            return Ok(Some((Arc::new(connection), entry, stream)));
        }
    }

    async fn who(&self, fingerprint: [u8; 32]) -> Option<Holder> {
        let _one_of_few = self.lookups.acquire().await.ok()?;
        self.shared.directory.who(fingerprint).await
    }

    /// Logs a refusal, unless another was logged a short time ago.
    fn tell(&self, why: &str) {
        let now = clock::monotonic();
        let mut told = self.told.lock();
        if told.is_some_and(|told| now.duration_since(told) < TELL_INTERVAL) {
            return;
        }
        *told = Some(now);
        drop(told);
        tracing::warn!(why, "a connection to the peers' port is refused");
    }

    /// Carries requests and answers until the connection ends.
    async fn run(&self, connection: &Arc<Connection>, entry: &Entry, stream: Stream) {
        let options = &self.shared.options;
        let (reader, writer) = tokio::io::split(stream);
        let writing = Arc::clone(connection);
        let write = async move { writing.queue.write_to(Box::new(writer), &writing.traffic).await };
        let mut writing = Writing::begin(write);
        let drained = async {
            reached(self.phases.clone(), Phase::Draining).await;
            connection.slots.idle().await;
            connection.queue.finish();
        };
        let mut drained = std::pin::pin!(drained);
        let mut reading = std::pin::pin!(self.read(connection, reader));
        tokio::select! {
            biased;
            read = &mut reading => if let Err(error) = read {
                tracing::debug!(daemon = %connection.from.daemon, %error, "the connection of a peer broke");
            },
            () = entry.ended() => {}
            _ = writing.ended() => {}
            () = pulse::stops(&connection.traffic, &connection.queue, options) => {
                tracing::info!(daemon = %connection.from.daemon, "a peer gives no sign of life");
            }
            () = &mut drained => {
                // A socket that is closed before the peer has read may take the last answers with it.
                let parted = async { tokio::join!(writing.ended(), &mut reading) };
                let _ = timer::timeout(PART_TIMEOUT, parted).await;
            }
            () = reached(self.phases.clone(), Phase::Ended) => {}
        }
        connection.queue.close();
    }

    async fn read(&self, connection: &Arc<Connection>, reader: ReadHalf<Stream>) -> io::Result<()> {
        let options = &self.shared.options;
        let mut frames = FrameReader::new(reader, options.frame_bytes_max, &connection.traffic);
        while let Some(header) = frames.header().await? {
            self.frame(connection, &mut frames, header).await?;
        }
        Ok(())
    }

    async fn frame<R: AsyncRead + Unpin>(
        &self,
        connection: &Arc<Connection>,
        frames: &mut FrameReader<'_, R>,
        header: Header,
    ) -> io::Result<()> {
        match header.frame {
            FrameType::Request => {
                let slot = match connection.slots.take_now(header.length) {
                    Some(slot) => slot,
                    None => connection.paused(connection.slots.take(header.length)).await,
                };
                let body = frames.body(header.length).await?;
                if *self.phases.borrow() != Phase::Open {
                    let refused = connection.answer(header.id, Err(failure::shutting_down()));
                    connection.paused(refused).await;
                    return Ok(());
                }
                let request = Request { connection: Arc::clone(connection), id: header.id, slot };
                let handler = Arc::clone(&self.handler);
                match frames.has_more() {
                    true => drop(task::spawn(request.handle(handler, header.kind, body))),
                    false => request.handle_soon(handler.as_ref(), header.kind, body),
                }
            }
            FrameType::Ping => {
                frames.skip(header.length).await?;
                connection.queue.pong();
            }
            FrameType::Pong | FrameType::Other => frames.skip(header.length).await?,
            FrameType::Answer | FrameType::Failure => {
                let text = "the peer sends answers over a connection for requests";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
        Ok(())
    }
}

impl Connection {
    /// Waits for something while nothing is read.
    async fn paused<T>(&self, wait: impl Future<Output = T>) -> T {
        self.traffic.pause(true);
        let done = wait.await;
        self.traffic.pause(false);
        done
    }

    /// Sends an answer; gives it back where there is no room for it now.
    fn answer_now(&self, id: u64, answer: Result<Bytes>) -> Option<(Header, Bytes)> {
        let (header, body) = self.answer_frame(id, answer);
        let Some(room) = self.queue.room_now(header.length) else { return Some((header, body)) };
        self.queue.push(header, body, room, &self.traffic);
        None
    }

    async fn answer(&self, id: u64, answer: Result<Bytes>) {
        let (header, body) = self.answer_frame(id, answer);
        self.send(header, body).await;
    }

    /// Waits for room for a frame, and sends it.
    async fn send(&self, header: Header, body: Bytes) {
        let room = match self.queue.room_now(header.length) {
            Some(room) => Some(room),
            None => self.queue.room(header.length).await,
        };
        if let Some(room) = room {
            self.queue.push(header, body, room, &self.traffic);
        }
    }

    fn answer_frame(&self, id: u64, answer: Result<Bytes>) -> (Header, Bytes) {
        let max = self.answer_bytes_max;
        let (frame, body) = match answer {
            Ok(body) if body.len() <= max => (FrameType::Answer, body),
            Ok(body) => {
                let error = failure::too_large("an answer", body.len(), max);
                (FrameType::Failure, error_text::encode(&error))
            }
            Err(error) => (FrameType::Failure, error_text::encode(&error)),
        };
        (Header { frame, kind: 0, id, length: body.len() }, body)
    }
}

/// A request that runs.
struct Request {
    connection: Arc<Connection>,
    id: u64,
    slot: Slot,
}

impl Request {
    /// Handles a request here if nothing has to be waited for, as for most that are answered from memory: that costs no task.
    /// Else it becomes one.
    fn handle_soon(self, handler: &dyn Handler, kind: u16, body: Bytes) {
        let from = self.connection.from;
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut answer = handler.handle(from, kind, body);
            // The task asks again.
            let ended = answer.poll_unpin(&mut Context::from_waker(Waker::noop()));
            (answer, ended)
        }));
        let (id, connection) = (self.id, &self.connection);
        let unsent = match begun {
            Ok((answer, Poll::Pending)) => {
                task::spawn(self.finish(answer));
                return;
            }
            Ok((_, Poll::Ready(answer))) => connection.answer_now(id, answer),
            Err(_) => connection.answer_now(id, Err(failure::no_answer())),
        };
        if let Some((header, body)) = unsent {
            let Self { connection, slot, .. } = self;
            // The place is given back when the answer has room: answers that wait are bounded by it.
            task::spawn(async move {
                connection.send(header, body).await;
                drop(slot);
            });
        }
    }

    async fn handle(self, handler: Arc<dyn Handler>, kind: u16, body: Bytes) {
        let from = self.connection.from;
        self.finish(async move { handler.handle(from, kind, body).await }).await;
    }

    async fn finish(self, answer: impl Future<Output = Result<Bytes>> + Send) {
        let Self { connection, id, slot } = self;
        // A bug in the handler is the end of this request only; the panic is logged where it happens.
        let answer = AssertUnwindSafe(answer).catch_unwind().await;
        let answer = answer.unwrap_or_else(|_| Err(failure::no_answer()));
        connection.answer(id, answer).await;
        drop(slot);
    }
}

async fn refuse<T>(
    mut stream: Stream,
    options: &PeerOptions,
    verdict: Verdict,
) -> io::Result<Option<T>> {
    Hello::of(options, verdict).write(&mut stream).await?;
    stream.shutdown().await?;
    Ok(None)
}

async fn reached(mut phases: watch::Receiver<Phase>, phase: Phase) {
    // A sender that is gone means the same.
    let _ = phases.wait_for(|now| *now >= phase).await;
}
