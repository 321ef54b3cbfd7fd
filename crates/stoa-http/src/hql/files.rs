//! The files that come with a request, and the one that goes back.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use stoa_error::{Error, Result};
use stoa_hql::wire::{CHUNK_BYTES, Frame, FrameKind};
use stoa_hql::{Files, ReadFile};
use tokio::sync::mpsc;

use super::output::{Answer, send};

/// Most bytes of a file that is not read as it comes.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Files by the names that the statement has for them.
pub(super) struct RequestFiles {
    coming: Arc<Mutex<mpsc::Receiver<Result<Frame>>>>,
    /// Files that came before the one that was asked for.
    kept: Mutex<HashMap<String, Vec<u8>>>,
    answers: mpsc::Sender<Answer>,
}

impl RequestFiles {
    pub(super) fn new(
        coming: mpsc::Receiver<Result<Frame>>,
        answers: mpsc::Sender<Answer>,
    ) -> Self {
        Self { coming: Arc::new(Mutex::new(coming)), kept: Mutex::default(), answers }
    }
}

impl Files for RequestFiles {
    fn open(&self, name: &str) -> Result<ReadFile> {
        if let Some(kept) = self.kept.lock().remove(name) {
            let length = Some(kept.len() as u64);
            return Ok(ReadFile { bytes: Box::new(io::Cursor::new(kept)), length });
        }
        let mut length = None;
        loop {
            let frame = self.coming.lock().blocking_recv().transpose()?;
            if let Some(frame) = frame.as_ref().filter(|frame| frame.kind == FrameKind::FileLength)
            {
                length = Some(frame.number()?);
                continue;
            }
            let Some(frame) = frame.filter(|frame| frame.kind == FrameKind::File) else {
                return Err(Error::not_found(format!(
                    "file \"{name}\" did not come with the request"
                ))
                .with_sqlstate("58P01")
                .with_hint("run the statement with `stoa hql`, which sends its files"));
            };
            let coming = Arc::clone(&self.coming);
            let mut reader = Coming { coming, chunk: Bytes::new(), ended: false };
            let found = frame.text()?.to_owned();
            if found == name {
                return Ok(ReadFile { bytes: Box::new(reader), length });
            }
            let mut bytes = Vec::new();
            let limit = KEPT_BYTES_MAX as u64 + 1;
            reader.by_ref().take(limit).read_to_end(&mut bytes).map_err(|e| {
                Error::unavailable(format!("file {found} did not come whole")).with_source(e)
            })?;
            if bytes.len() > KEPT_BYTES_MAX {
                return Err(Error::invalid(format!("file {found} is longer than 16 MiB"))
                    .with_sqlstate("54000"));
            }
            length = None;
            self.kept.lock().insert(found, bytes);
        }
    }

    fn create(&self, _name: &str) -> Result<Box<dyn Write + Send>> {
        Ok(Box::new(Going { answers: self.answers.clone(), held: Vec::new() }))
    }
}

/// A file as it comes.
struct Coming {
    coming: Arc<Mutex<mpsc::Receiver<Result<Frame>>>>,
    chunk: Bytes,
    ended: bool,
}

impl Read for Coming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() && !self.ended {
            let frame = self.coming.lock().blocking_recv().transpose();
            match frame.map_err(io::Error::other)? {
                Some(frame) if frame.kind == FrameKind::FileBytes => self.chunk = frame.content,
                Some(frame) if frame.kind == FrameKind::FileEnd => self.ended = true,
                _ => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        let length = buffer.len().min(self.chunk.len());
        self.chunk.split_to(length).copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

/// A file that goes back.
struct Going {
    answers: mpsc::Sender<Answer>,
    held: Vec<u8>,
}

impl Write for Going {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(CHUNK_BYTES);
        self.held.extend_from_slice(&bytes[..length]);
        if self.held.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        send(&self.answers, Frame::new(FrameKind::FileBytes, held)).map_err(io::Error::other)
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        // A session flushes what it writes; what is left here belongs to a statement that failed.
        let _ = self.flush();
    }
}
