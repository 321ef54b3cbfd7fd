//! What waits to be sent over a connection, and its writer.
//!
//! Whoever has a frame reserves room for it, then appends it; the writer takes all that is there, and
//! writes it at once.

use std::future::Future;
use std::io;

use bytes::Bytes;
use parking_lot::Mutex;
use stoa_env::task;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use crate::frame::{FrameType, HEADER_BYTES, Header};
use crate::traffic::Traffic;

/// Bytes written at once; TLS buffers as many.
const WRITE_BYTES: usize = 64 << 10;
/// Bodies up to this size are copied beside others.
const COPIED_BYTES_MAX: usize = 32 << 10;

pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Something waits for the writer.
    ready: Notify,
    /// Bytes that may yet wait.
    room: Semaphore,
    bytes_max: u32,
}

#[derive(Default)]
struct Waiting {
    frames: Vec<Frame>,
    /// However often it was asked for, one is enough.
    ping: bool,
    pong: bool,
    /// Bytes that are not written.
    bytes: u64,
    writer: Writer,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Writer {
    /// It looks here again by itself.
    #[default]
    Busy,
    /// It must be woken.
    Idle,
    /// It ends when all is written.
    Finishing,
    /// Nothing is written any more.
    Closed,
}

struct Frame {
    header: Header,
    body: Bytes,
    room: Room,
}

/// The task that writes what comes; it ends when this is dropped.
pub(crate) struct Writing(JoinHandle<io::Result<()>>);

impl Writing {
    pub(crate) fn begin(write: impl Future<Output = io::Result<()>> + Send + 'static) -> Self {
        Self(task::spawn(write))
    }

    /// Waits until it has ended. Not to be asked again then.
    pub(crate) async fn ended(&mut self) -> io::Result<()> {
        (&mut self.0).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Room in the queue for one frame.
#[must_use = "it is given back only by the writer"]
pub(crate) struct Room(u32);

impl Queue {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self {
            waiting: Mutex::default(),
            ready: Notify::new(),
            room: Semaphore::new(bytes_max),
            bytes_max: u32::try_from(bytes_max).unwrap_or(u32::MAX),
        }
    }

    /// Room for a frame with a body of `length` bytes, if there is any now.
    pub(crate) fn room_now(&self, length: usize) -> Option<Room> {
        let bytes = self.counted(length);
        self.room.try_acquire_many(bytes).ok()?.forget();
        Some(Room(bytes))
    }

    /// Waits for room for a frame with a body of `length` bytes; `None` once the queue is closed.
    pub(crate) async fn room(&self, length: usize) -> Option<Room> {
        let bytes = self.counted(length);
        self.room.acquire_many(bytes).await.ok()?.forget();
        Some(Room(bytes))
    }

    fn counted(&self, length: usize) -> u32 {
        let bytes = length.saturating_add(HEADER_BYTES);
        u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max)
    }

    /// Appends a frame. Nothing happens once the queue is closed.
    pub(crate) fn push(&self, header: Header, body: Bytes, room: Room) {
        self.change(|waiting| {
            waiting.bytes += u64::from(room.0);
            waiting.frames.push(Frame { header, body, room });
        });
    }

    pub(crate) fn ping(&self) {
        self.change(|waiting| waiting.ping = true);
    }

    pub(crate) fn pong(&self) {
        self.change(|waiting| waiting.pong = true);
    }

    /// Lets the writer end once it has written all.
    pub(crate) fn finish(&self) {
        self.change(|waiting| waiting.writer = Writer::Finishing);
    }

    /// Lets nothing in any more, and forgets what waits.
    pub(crate) fn close(&self) {
        self.room.close();
        let mut waiting = self.waiting.lock();
        waiting.writer = Writer::Closed;
        let frames = std::mem::take(&mut waiting.frames);
        drop(waiting);
        drop(frames);
        self.ready.notify_one();
    }

    /// Whether nothing waits to be written.
    pub(crate) fn is_empty(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.bytes == 0 && !waiting.ping && !waiting.pong
    }

    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.waiting.lock();
        if waiting.writer == Writer::Closed {
            return;
        }
        let idle = waiting.writer == Writer::Idle;
        if idle {
            waiting.writer = Writer::Busy;
        }
        change(&mut waiting);
        drop(waiting);
        if idle {
            self.ready.notify_one();
        }
    }

    /// Writes all that comes, until the queue is finished or closed.
    pub(crate) async fn write_to(
        &self,
        writer: impl AsyncWrite + Unpin,
        traffic: &Traffic,
    ) -> io::Result<()> {
        let mut output = Output { writer, buffer: Vec::new(), room: 0, queue: self, traffic };
        let mut frames = Vec::new();
        loop {
            match self.take(&mut frames) {
                Taken::Signs { ping, pong } => {
                    for (due, sign) in [(ping, FrameType::Ping), (pong, FrameType::Pong)] {
                        if due {
                            Header::sign(sign).put(&mut output.buffer);
                        }
                    }
                    for frame in frames.drain(..) {
                        output.put(frame).await?;
                    }
                    output.flush().await?;
                }
                Taken::Nothing => self.ready.notified().await,
                Taken::Finished => return output.writer.shutdown().await,
                Taken::Closed => return Ok(()),
            }
        }
    }

    fn take(&self, frames: &mut Vec<Frame>) -> Taken {
        let mut waiting = self.waiting.lock();
        if waiting.writer == Writer::Closed {
            return Taken::Closed;
        }
        if !waiting.frames.is_empty() || waiting.ping || waiting.pong {
            std::mem::swap(&mut waiting.frames, frames);
            let ping = std::mem::take(&mut waiting.ping);
            let pong = std::mem::take(&mut waiting.pong);
            return Taken::Signs { ping, pong };
        }
        if waiting.writer == Writer::Finishing {
            return Taken::Finished;
        }
        waiting.writer = Writer::Idle;
        Taken::Nothing
    }

    fn has_written(&self, bytes: u32) {
        self.waiting.lock().bytes -= u64::from(bytes);
        self.room.add_permits(bytes as usize);
    }
}

enum Taken {
    /// Frames, and signs of life.
    Signs {
        ping: bool,
        pong: bool,
    },
    Nothing,
    Finished,
    Closed,
}

/// Frames on their way to the socket.
struct Output<'a, W> {
    writer: W,
    buffer: Vec<u8>,
    /// Of the frames in the buffer.
    room: u32,
    queue: &'a Queue,
    traffic: &'a Traffic,
}

impl<W: AsyncWrite + Unpin> Output<'_, W> {
    async fn put(&mut self, frame: Frame) -> io::Result<()> {
        frame.header.put(&mut self.buffer);
        if frame.body.len() <= COPIED_BYTES_MAX {
            self.buffer.extend_from_slice(&frame.body);
            self.room = self.room.saturating_add(frame.room.0);
        } else {
            self.write().await?;
            for part in frame.body.chunks(WRITE_BYTES) {
                self.writer.write_all(part).await?;
                self.traffic.has_written(part.len());
            }
            self.queue.has_written(frame.room.0);
        }
        if self.buffer.len() >= WRITE_BYTES - COPIED_BYTES_MAX {
            self.write().await?;
        }
        Ok(())
    }

    async fn write(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.writer.write_all(&self.buffer).await?;
        self.traffic.has_written(self.buffer.len());
        self.buffer.clear();
        self.queue.has_written(std::mem::take(&mut self.room));
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.write().await?;
        self.writer.flush().await
    }
}
