//! One process of a program: rows in, lines out, at the same time.
//!
//! **Invariants:** no more is read than is asked for, and nothing more is fed while the program does not read. When a
//! [`Script`] is dropped, its program ends, whatever it does, and is taken in: no zombie stays.

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::{BoxStream, StreamExt};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use stoa_error::{Error, ErrorKind, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::allowed::Launch;
use crate::guard::GUARD_WORD;

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;
/// The longest line that a program may write, bytes.
const LINE_BYTES_MAX: usize = 16 << 20;
/// How much of the end of stderr an error tells, bytes.
const TAIL_BYTES: usize = 1 << 10;
/// Programs that may run at the same time.
const RUNNING_MAX: usize = 256;
/// How long a guard has to end its program, before it is ended itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// How guards are started.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The binary that is a guard with [`GUARD_WORD`].
    binary: PathBuf,
    /// Where the folders of programs are made.
    folder: PathBuf,
    running: Arc<AtomicUsize>,
}

impl Guard {
    /// Guards are this binary; programs run in folders within `folder`.
    pub fn new(binary: PathBuf, folder: PathBuf) -> Self {
        Self { binary, folder, running: Arc::default() }
    }

    /// Programs that run now.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }
}

/// Whether all rows were fed.
enum Fed {
    All,
    /// The program reads no more.
    Refused,
}

type Feeding = Pin<Box<dyn Future<Output = Result<Fed>> + Send>>;

/// A program that runs.
pub struct Script {
    process: Process,
    /// What it is called in messages.
    command: String,
    partial: bool,
    feeding: Option<Feeding>,
    is_refused: bool,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// What was read and not yet given on.
    read: BytesMut,
    tail: BytesMut,
}

impl Script {
    /// Starts a program; `rows` are the bytes that it reads. It may end before it has read all of them if `partial`.
    ///
    /// # Errors
    /// 53000 if too many run; `Unavailable` if the operating system refuses it.
    pub fn start(
        guard: &Guard,
        launch: &Launch,
        rows: BoxStream<'static, Result<Vec<u8>>>,
        partial: bool,
    ) -> Result<Self> {
        let command = launch.words.join(" ");
        let mut process = Process::start(guard, launch)?;
        let child = process.child.as_mut();
        let streams =
            child.map(|child| (child.stdin.take(), child.stdout.take(), child.stderr.take()));
        let Some((Some(stdin), stdout, stderr)) = streams else {
            return Err(Error::internal("a program has no standard streams"));
        };
        Ok(Self {
            process,
            command,
            partial,
            feeding: Some(Box::pin(feed(stdin, rows))),
            is_refused: false,
            stdout,
            stderr,
            read: BytesMut::new(),
            tail: BytesMut::new(),
        })
    }

    /// What the program wrote next: whole lines with their ends, the last one perhaps without; `None` when it has ended
    /// well.
    ///
    /// # Errors
    /// 38000: it failed, or ended before it had read all rows; 54000: a line is too long; an error of the rows.
    pub async fn lines(&mut self) -> Option<Result<Bytes>> {
        loop {
            match self.step().await {
                Err(error) => return Some(Err(error)),
                Ok(Step::Lines(lines)) => return Some(Ok(lines)),
                Ok(Step::On) => {}
                Ok(Step::End) => return self.end().await.transpose(),
            }
        }
    }

    async fn step(&mut self) -> Result<Step> {
        let Self { feeding, stdout, stderr, read, tail, .. } = self;
        if feeding.is_none() && stdout.is_none() && stderr.is_none() {
            return Ok(Step::End);
        }
        let cannot = |e| Error::unavailable("cannot read what a program writes").with_source(e);
        tokio::select! {
            fed = async { feeding.as_mut()?.await.into() }, if feeding.is_some() => {
                let fed: Option<Result<Fed>> = fed;
                *feeding = None;
                self.is_refused = matches!(fed.transpose()?, Some(Fed::Refused));
            }
            count = read_some(stdout, read, READ_BYTES), if stdout.is_some() => {
                if count.map_err(cannot)? == 0 {
                    *stdout = None;
                    if !read.is_empty() {
                        return Ok(Step::Lines(read.split().freeze()));
                    }
                }
                return lines_of(read);
            }
            count = read_some(stderr, tail, TAIL_BYTES), if stderr.is_some() => {
                if count.map_err(cannot)? == 0 {
                    *stderr = None;
                }
                let extra = tail.len().saturating_sub(TAIL_BYTES);
                let _ = tail.split_to(extra);
            }
        }
        Ok(Step::On)
    }

    /// Waits for the end of a program that writes no more.
    async fn end(&mut self) -> Result<Option<Bytes>> {
        let Some(status) = self.process.end().await? else { return Ok(None) };
        if !status.success() {
            return Err(self.failure(&how(status)));
        }
        if self.is_refused && !self.partial {
            let error = self.failure("ended before it had read all its rows");
            return Err(error.with_hint(
                "let it read to the end, or SET hive.exec.script.allow.partial.consumption=true",
            ));
        }
        Ok(None)
    }

    fn failure(&self, how: &str) -> Error {
        let command: String = self.command.chars().take(200).collect();
        let error =
            Error::invalid(format!("the program \"{command}\" {how}")).with_sqlstate("38000");
        let said = String::from_utf8_lossy(&self.tail);
        match said.trim() {
            "" => error,
            said => error.with_detail(format!("its last messages: {said}")),
        }
    }
}

enum Step {
    /// Something happened.
    On,
    Lines(Bytes),
    /// All streams are at their ends.
    End,
}

async fn read_some(
    from: &mut Option<impl AsyncReadExt + Unpin>,
    into: &mut BytesMut,
    bytes: usize,
) -> std::io::Result<usize> {
    let Some(from) = from else { return Ok(0) };
    into.reserve(bytes);
    from.read_buf(into).await
}

/// Takes the whole lines out of what was read.
fn lines_of(read: &mut BytesMut) -> Result<Step> {
    if let Some(end) = read.iter().rposition(|byte| *byte == b'\n') {
        return Ok(Step::Lines(read.split_to(end + 1).freeze()));
    }
    if read.len() > LINE_BYTES_MAX {
        let message = format!("a program wrote a line of more than {LINE_BYTES_MAX} bytes");
        return Err(Error::invalid(message)
            .with_sqlstate("54000")
            .with_hint("have it write a line break after each row"));
    }
    Ok(Step::On)
}

async fn feed(mut stdin: ChildStdin, mut rows: BoxStream<'static, Result<Vec<u8>>>) -> Result<Fed> {
    while let Some(bytes) = rows.next().await {
        match stdin.write_all(&bytes?).await {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Ok(Fed::Refused);
            }
            Err(error) => {
                return Err(Error::unavailable("cannot write to a program").with_source(error));
            }
        }
    }
    Ok(Fed::All)
}

fn how(status: ExitStatus) -> String {
    match status.code() {
        Some(126) => "could not be started".to_owned(),
        Some(code) if code > 128 => format!("was ended by signal {}", code - 128),
        Some(code) => format!("failed with exit code {code}"),
        None => "was ended from outside".to_owned(),
    }
}

/// The guard of a program.
struct Process {
    child: Option<Child>,
    folder: PathBuf,
    running: Arc<AtomicUsize>,
}

impl Process {
    fn start(guard: &Guard, launch: &Launch) -> Result<Self> {
        let running = Arc::clone(&guard.running);
        if running.fetch_add(1, Ordering::Relaxed) >= RUNNING_MAX {
            running.fetch_sub(1, Ordering::Relaxed);
            let message = format!("{RUNNING_MAX} programs run already");
            return Err(Error::new(ErrorKind::Exhausted, message).with_hint("try again later"));
        }
        let folder = guard.folder.join(format!("stoa-script-{}", stoa_env::random::uuid()));
        let mut process = Self { child: None, folder: folder.clone(), running };
        let mut command = Command::new(&guard.binary);
        command.arg(GUARD_WORD).arg(std::process::id().to_string());
        command.arg(&folder).arg(&launch.program).arg(launch.files.len().to_string());
        for (name, path) in &launch.files {
            command.arg(name).arg(path);
        }
        command.args(launch.words.iter().map(OsString::from));
        // In a group of its own: a key that ends the server at a terminal is not for the program.
        command.env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| {
            Error::unavailable(format!("cannot start {}", guard.binary.display())).with_source(e)
        })?;
        process.child = Some(child);
        Ok(process)
    }

    /// Waits for its end; `None` if it was seen before.
    async fn end(&mut self) -> Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else { return Ok(None) };
        let status = child
            .wait()
            .await
            .map_err(|e| Error::unavailable("cannot tell how a program ended").with_source(e))?;
        self.child = None;
        Ok(Some(status))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let running = Arc::clone(&self.running);
        let Some(mut child) = self.child.take() else {
            running.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        let process = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        // It has not been waited for, so the number is still its own.
        let ask = |signal| process.map(|process| kill_process(process, signal));
        let _ = ask(Signal::TERM);
        let folder = std::mem::take(&mut self.folder);
        let taken_in = async move {
            if stoa_env::timer::timeout(PATIENCE, child.wait()).await.is_err() {
                tracing::warn!("a program did not end when it was asked to");
                let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
                let _ = group.map(|group| kill_process_group(group, Signal::KILL));
                let _ = child.wait().await;
            }
            // The guard has removed it, if it was not killed.
            let _ = std::fs::remove_dir_all(folder);
            running.fetch_sub(1, Ordering::Relaxed);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(_) => drop(stoa_env::task::spawn(taken_in)),
            // The process ends: its guards see that.
            Err(_) => drop(taken_in),
        }
    }
}
