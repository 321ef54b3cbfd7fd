//! What a session prints, as parts of an answer.

use stoa_error::{Error, Result};
use stoa_hql::Output;
use stoa_hql::wire::{CHUNK_BYTES, Frame, FrameKind};
use tokio::sync::mpsc;

/// A part of an answer, or its end.
#[derive(Debug)]
pub(super) enum Answer {
    Frame(Frame),
    Failed(Error),
}

/// Everything, in frames. Called on a thread that may wait.
pub(super) struct Frames {
    answers: mpsc::Sender<Answer>,
    results: Vec<u8>,
}

/// Results only.
pub(super) struct Text(Frames);

impl Frames {
    pub(super) fn new(answers: mpsc::Sender<Answer>) -> Self {
        Self { answers, results: Vec::new() }
    }

    fn send(&self, kind: FrameKind, content: Vec<u8>) -> Result<()> {
        send(&self.answers, Frame::new(kind, content))
    }

    /// Sends what is held back; the order of results and notices stays.
    fn flush(&mut self) -> Result<()> {
        match self.results.is_empty() {
            true => Ok(()),
            false => {
                let results = std::mem::take(&mut self.results);
                self.send(FrameKind::Result, results)
            }
        }
    }
}

/// Sends a part of an answer, waiting until there is room.
///
/// # Errors
/// Unavailable where whoever asked is gone.
pub(super) fn send(answers: &mpsc::Sender<Answer>, frame: Frame) -> Result<()> {
    answers
        .blocking_send(Answer::Frame(frame))
        .map_err(|_| Error::unavailable("the client is gone").with_sqlstate("08006"))
}

impl Output for Frames {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        for part in bytes.chunks(CHUNK_BYTES) {
            self.results.extend_from_slice(part);
            if self.results.len() >= CHUNK_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn notice(&mut self, text: &str) -> Result<()> {
        self.flush()?;
        self.send(FrameKind::Notice, text.into())
    }

    fn progress(&mut self, text: &str) -> Result<()> {
        self.flush()?;
        if text.is_empty() { Ok(()) } else { self.send(FrameKind::Progress, text.into()) }
    }
}

impl Text {
    pub(super) fn new(answers: mpsc::Sender<Answer>) -> Self {
        Self(Frames::new(answers))
    }
}

impl Output for Text {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write(bytes)
    }

    fn notice(&mut self, _text: &str) -> Result<()> {
        Ok(())
    }

    fn progress(&mut self, _text: &str) -> Result<()> {
        self.0.flush()
    }
}
