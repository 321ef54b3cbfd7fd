//! A `stoa server` as a child process, for as long as a measurement or a test needs it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde::Deserialize;
use stoa_error::{Error, Result};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::measure::ServerProbe;
use crate::write::ServerAddress;

/// How long a server may take to say that it listens.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(60);

/// A running server; dropping it kills the process.
pub struct ServerProcess {
    child: Child,
    listening: Listening,
}

/// The line of JSON that `stoa server` prints.
#[derive(Debug, Deserialize)]
struct Listening {
    http_port: u16,
    pg_port: u16,
    flight_port: u16,
    pid: u32,
}

impl ServerProcess {
    /// Starts `program server ARGUMENTS` on free ports of the loopback address, and waits until it
    /// listens. Its log goes to this process's stderr.
    ///
    /// # Errors
    /// Unavailable if it ends, says something else, or takes longer than a minute.
    pub async fn start<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> Result<Self> {
        Self::start_with(program, arguments, &[]).await
    }

    /// As [`Self::start`], with `variables` in the server's environment.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_with<S: AsRef<OsStr>>(
        program: &Path,
        arguments: &[S],
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let started = Self::start_within(program, arguments, variables, START_LIMIT).await?;
        started.ok_or_else(|| Error::unavailable("the server did not listen within a minute"))
    }

    /// As [`Self::start_with`]; `None` if the server does not listen within `limit`. It is killed then and has ended.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_within<S: AsRef<OsStr>>(
        program: &Path,
        arguments: &[S],
        variables: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Option<Self>> {
        let mut child = Command::new(program)
            .envs(variables.iter().copied())
            .arg("server")
            .args([
                "--http-port",
                "0",
                "--pg-port",
                "0",
                "--flight-port",
                "0",
                "--hive-port",
                "none",
            ])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| {
                Error::unavailable(format!("cannot start {} server", program.display()))
                    .with_source(e)
            })?;
        let line = match stoa_env::timer::timeout(limit, first_line(&mut child)).await {
            Ok(Ok(line)) => line,
            failed => {
                // Until it has ended it holds its commit log, which the next one would not get.
                let killed = child.kill().await;
                killed.map_err(|e| Error::internal("cannot kill the server").with_source(e))?;
                return match failed {
                    Ok(Err(error)) => Err(error),
                    _ => Ok(None),
                };
            }
        };
        let listening = serde_json::from_str(&line).map_err(|e| {
            Error::unavailable("the server did not say that it listens")
                .with_detail(format!("its first line is {line:?}"))
                .with_source(e)
        })?;
        Ok(Some(Self { child, listening }))
    }

    /// Port of the PostgreSQL protocol.
    pub fn pg_port(&self) -> u16 {
        self.listening.pg_port
    }

    /// Port of Arrow Flight SQL.
    pub fn flight_port(&self) -> u16 {
        self.listening.flight_port
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.listening.pid
    }

    /// Where HTTP answers, without a slash at the end.
    pub fn http_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.listening.http_port)
    }

    /// Measures this server.
    pub fn probe(&self) -> ServerProbe {
        ServerProbe { pid: Some(self.pid()), http_url: Some(self.http_url()) }
    }

    /// Where its clients find it.
    pub fn address(&self) -> ServerAddress {
        ServerAddress {
            host: "127.0.0.1".to_owned(),
            pg_port: self.pg_port(),
            http_url: self.http_url(),
            flight_port: self.listening.flight_port,
        }
    }

    /// Kills the server (SIGKILL), if it has not ended, and waits for its end.
    ///
    /// # Errors
    /// Internal if the signal cannot be sent.
    pub async fn kill(mut self) -> Result<()> {
        let killed = self.child.kill().await;
        killed.map_err(|e| Error::internal("cannot kill the server").with_source(e))
    }

    /// Asks the server to end (SIGTERM), without waiting.
    ///
    /// # Errors
    /// Internal if the signal cannot be sent.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Stops the server (SIGSTOP): it does nothing until it is thawed.
    ///
    /// # Errors
    /// Internal if the signal cannot be sent.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets a frozen server go on (SIGCONT).
    ///
    /// # Errors
    /// Internal if the signal cannot be sent.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = rustix::process::Pid::from_raw(self.listening.pid as i32)
            .ok_or_else(|| Error::internal("process id 0"))?;
        rustix::process::kill_process(pid, signal)
            .map_err(|e| Error::internal(format!("cannot signal process {pid:?}")).with_source(e))
    }

    /// Waits until the server has ended by itself.
    ///
    /// # Errors
    /// Internal if the process cannot be waited for.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        self.child
            .wait()
            .await
            .map_err(|e| Error::internal("cannot wait for the server").with_source(e))
    }

    /// Asks the server to end and waits for it.
    ///
    /// # Errors
    /// Those of [`Self::terminate`] and [`Self::wait`].
    pub async fn stop(mut self) -> Result<ExitStatus> {
        self.terminate()?;
        self.wait().await
    }
}

async fn first_line(child: &mut Child) -> Result<String> {
    let stdout = child.stdout.take().ok_or_else(|| Error::internal("stdout is not a pipe"))?;
    let mut line = String::new();
    let mut reader = BufReader::new(stdout);
    match reader.read_line(&mut line).await {
        Err(e) => Err(Error::unavailable("cannot read what the server says").with_source(e)),
        Ok(0) => Err(Error::unavailable("the server ended before it listened")
            .with_hint("its messages are above")),
        Ok(_) => Ok(line),
    }
}
