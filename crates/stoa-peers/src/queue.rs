//! What waits to be sent over a connection, and its writer.
//!
//! Whoever has a frame reserves room for it. While nothing is being written, the caller writes it at once, which costs no
//! switch to another task. Otherwise the frame is appended, and a task writes all that has come meanwhile in one piece; the
//! task also goes on where the socket takes no more at the moment.
//!
//! ```text
//!          frame, nothing waits            socket is full, others came, ping
//!  Idle ───────────────────────► Busy: by whoever brought it ───────────────► Busy: by the task ─┐
//!   ▲ └─────────── ping ──────────────────────────────────────────────────────────▲              │
//!   └──────────────── all is written ◄───────────────────────────────────────────────────────────┘
//! ```
//! **Invariants:** one writes at a time, whoever has the [`Output`]. Frames go out in the order of their coming. Whoever
//! leaves something behind wakes the task.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

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

/// Where a connection is written.
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Something waits for the task.
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
    state: State,
    /// None while somebody writes.
    output: Option<Output>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Somebody writes, or the task is woken to do so.
    #[default]
    Busy,
    /// All is written.
    Idle,
    /// The task ends when all is written.
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

    /// Writes a frame, or appends it to those that wait. Nothing happens once the queue is closed.
    pub(crate) fn push(&self, header: Header, body: Bytes, room: Room, traffic: &Traffic) {
        let frame = Frame { header, body, room };
        let mut waiting = self.waiting.lock();
        if waiting.state == State::Closed {
            return;
        }
        waiting.bytes += u64::from(frame.room.0);
        let is_idle = waiting.state == State::Idle;
        if is_idle {
            waiting.state = State::Busy;
        }
        let is_small = frame.body.len() <= COPIED_BYTES_MAX;
        match waiting.output.take_if(|_| is_idle && is_small) {
            Some(mut output) => {
                drop(waiting);
                output.copy(frame);
                output.write_now(self, traffic);
                self.leave(output);
            }
            None => {
                waiting.frames.push(frame);
                drop(waiting);
                if is_idle {
                    self.ready.notify_one();
                }
            }
        }
    }

    pub(crate) fn ping(&self) {
        self.change(|waiting| waiting.ping = true);
    }

    pub(crate) fn pong(&self) {
        self.change(|waiting| waiting.pong = true);
    }

    /// Lets the task end once it has written all.
    pub(crate) fn finish(&self) {
        self.change(|waiting| waiting.state = State::Finishing);
    }

    /// Lets nothing in any more, and forgets what waits.
    pub(crate) fn close(&self) {
        self.room.close();
        let mut waiting = self.waiting.lock();
        waiting.state = State::Closed;
        let left = (std::mem::take(&mut waiting.frames), waiting.output.take());
        drop(waiting);
        drop(left);
        self.ready.notify_one();
    }

    /// Whether nothing waits to be written.
    pub(crate) fn is_empty(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.bytes == 0 && !waiting.ping && !waiting.pong
    }

    /// Changes what waits, for the task.
    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.waiting.lock();
        if waiting.state == State::Closed {
            return;
        }
        let is_idle = waiting.state == State::Idle;
        if is_idle {
            waiting.state = State::Busy;
        }
        change(&mut waiting);
        drop(waiting);
        if is_idle {
            self.ready.notify_one();
        }
    }

    /// Gives the output back after a write that did not wait. What is left is the task's.
    fn leave(&self, output: Output) {
        let mut waiting = self.waiting.lock();
        if waiting.state == State::Closed {
            drop(waiting);
            return;
        }
        let is_done = output.is_done() && waiting.is_empty() && waiting.state != State::Finishing;
        if is_done {
            waiting.state = State::Idle;
        }
        waiting.output = Some(output);
        drop(waiting);
        if !is_done {
            self.ready.notify_one();
        }
    }

    /// Writes what is left to it, until the queue is finished or closed.
    pub(crate) async fn write_to(&self, writer: Writer, traffic: &Traffic) -> io::Result<()> {
        let mut frames = Vec::new();
        let mut own = Some(Output::new(writer));
        loop {
            let mut output = match own.take().map_or_else(|| self.turn(), Turn::Write) {
                Turn::Write(output) => output,
                Turn::Wait => {
                    self.ready.notified().await;
                    continue;
                }
                Turn::Closed => return Ok(()),
            };
            output.flush(self, traffic).await?;
            loop {
                match self.take(&mut frames, output) {
                    Taken::Signs { ping, pong, output: taken } => {
                        output = taken;
                        for (due, sign) in [(ping, FrameType::Ping), (pong, FrameType::Pong)] {
                            if due {
                                Header::sign(sign).put(&mut output.buffer);
                            }
                        }
                        for frame in frames.drain(..) {
                            output.put(frame, self, traffic).await?;
                        }
                        output.flush(self, traffic).await?;
                    }
                    Taken::Nothing => break,
                    Taken::Finished(mut output) => return output.writer.shutdown().await,
                    Taken::Closed => return Ok(()),
                }
            }
        }
    }

    /// Whether the task is to write.
    fn turn(&self) -> Turn {
        let mut waiting = self.waiting.lock();
        match waiting.state {
            State::Closed => Turn::Closed,
            State::Idle => Turn::Wait,
            // Whoever has it wakes the task if something is left.
            State::Busy | State::Finishing => waiting.output.take().map_or(Turn::Wait, Turn::Write),
        }
    }

    /// What waits, for the task; where nothing does, the output is left for the next frame.
    fn take(&self, frames: &mut Vec<Frame>, output: Output) -> Taken {
        let mut waiting = self.waiting.lock();
        if waiting.state == State::Closed {
            return Taken::Closed;
        }
        if !waiting.is_empty() {
            std::mem::swap(&mut waiting.frames, frames);
            let ping = std::mem::take(&mut waiting.ping);
            let pong = std::mem::take(&mut waiting.pong);
            return Taken::Signs { ping, pong, output };
        }
        if waiting.state == State::Finishing {
            return Taken::Finished(output);
        }
        waiting.state = State::Idle;
        waiting.output = Some(output);
        Taken::Nothing
    }

    fn has_written(&self, bytes: u32) {
        self.waiting.lock().bytes -= u64::from(bytes);
        self.room.add_permits(bytes as usize);
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && !self.ping && !self.pong
    }
}

enum Turn {
    Write(Output),
    Wait,
    Closed,
}

enum Taken {
    /// Frames, and signs of life.
    Signs {
        ping: bool,
        pong: bool,
        output: Output,
    },
    Nothing,
    Finished(Output),
    Closed,
}

/// Frames on their way to the socket.
struct Output {
    writer: Writer,
    buffer: Vec<u8>,
    /// Bytes of the buffer that the writer has taken.
    taken: usize,
    /// Of the frames in the buffer.
    room: u32,
    /// Why a write that did not wait failed.
    failure: Option<io::Error>,
}

impl Output {
    fn new(writer: Writer) -> Self {
        Self { writer, buffer: Vec::new(), taken: 0, room: 0, failure: None }
    }

    /// Whether nothing is left of a write that did not wait.
    fn is_done(&self) -> bool {
        self.buffer.is_empty() && self.failure.is_none()
    }

    /// Copies a small frame into the buffer.
    fn copy(&mut self, frame: Frame) {
        frame.header.put(&mut self.buffer);
        self.buffer.extend_from_slice(&frame.body);
        self.room = self.room.saturating_add(frame.room.0);
    }

    /// Writes the buffer as far as the socket takes it without a wait.
    fn write_now(&mut self, queue: &Queue, traffic: &Traffic) {
        // The task asks again where this has to wait.
        let mut context = Context::from_waker(Waker::noop());
        while let Some(rest) = self.buffer.get(self.taken..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut self.writer).poll_write(&mut context, rest) {
                Poll::Ready(Ok(0)) => self.failure = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => {
                    self.taken += written;
                    continue;
                }
                Poll::Ready(Err(error)) => self.failure = Some(error),
                Poll::Pending => {}
            }
            return;
        }
        match Pin::new(&mut self.writer).poll_flush(&mut context) {
            Poll::Ready(Ok(())) => self.has_written(queue, traffic),
            Poll::Ready(Err(error)) => self.failure = Some(error),
            Poll::Pending => {}
        }
    }

    async fn put(&mut self, frame: Frame, queue: &Queue, traffic: &Traffic) -> io::Result<()> {
        if frame.body.len() <= COPIED_BYTES_MAX {
            self.copy(frame);
        } else {
            frame.header.put(&mut self.buffer);
            self.write(queue, traffic).await?;
            for part in frame.body.chunks(WRITE_BYTES) {
                self.writer.write_all(part).await?;
                traffic.has_written(part.len());
            }
            queue.has_written(frame.room.0);
        }
        if self.buffer.len() >= WRITE_BYTES - COPIED_BYTES_MAX {
            self.write(queue, traffic).await?;
        }
        Ok(())
    }

    async fn write(&mut self, queue: &Queue, traffic: &Traffic) -> io::Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(rest) = self.buffer.get(self.taken..) {
            self.writer.write_all(rest).await?;
        }
        self.has_written(queue, traffic);
        Ok(())
    }

    async fn flush(&mut self, queue: &Queue, traffic: &Traffic) -> io::Result<()> {
        self.write(queue, traffic).await?;
        self.writer.flush().await
    }

    /// The buffer is written.
    fn has_written(&mut self, queue: &Queue, traffic: &Traffic) {
        if self.buffer.is_empty() {
            return;
        }
        traffic.has_written(self.buffer.len());
        self.buffer.clear();
        self.taken = 0;
        queue.has_written(std::mem::take(&mut self.room));
    }
}
