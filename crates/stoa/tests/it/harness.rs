//! Runs the binary and looks at what it says.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use stoa_env::clock::monotonic;

/// Nothing here takes longer than this unless it hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A directory to run in.
pub struct Place {
    dir: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program, ready to run here with nothing of the caller's environment that matters.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_of(env!("CARGO_BIN_EXE_stoa").as_ref());
        command.args(arguments);
        command
    }

    /// Any program, made ready as [`Self::command`] does.
    pub fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("STOA_") {
                command.env_remove(name);
            }
        }
        command.current_dir(self.dir.path()).env("HOME", self.dir.path());
        command.env_remove("RUST_BACKTRACE").stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        output(self.command(arguments))
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let feeding = stoa_env::task::spawn_thread("feed", move || {
            // A program that ends early closes its side.
            let _ = stdin.write_all(input.as_bytes());
        });
        let output = child.wait_with_output().unwrap();
        feeding.unwrap().join().unwrap();
        ran(output)
    }

    /// Runs and expects success; gives what it printed.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "stoa {arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Rows of a query on the warehouse in this place, as CSV without header.
    pub fn query(&self, sql: &str) -> String {
        self.ok(&["sql", "--warehouse", "w", "--format", "csv", "--no-header", "-c", sql])
    }
}

fn output(mut command: Command) -> Ran {
    ran(command.output().unwrap())
}

fn ran(output: std::process::Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a program at a terminal of 24 lines and 80 columns, with all that is typed there before it reads the
/// first line; gives how it ended and what the terminal has shown.
pub fn at_terminal(mut command: Command, typed: &str) -> (ExitStatus, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let mut master = File::from(master);
    master.write_all(typed.as_bytes()).unwrap();
    command.env("TERM", "xterm").stdin(terminal.try_clone().unwrap());
    let mut child = command.stdout(terminal).stderr(Stdio::null()).spawn().unwrap();
    // Holds copies of the terminal, which would never end then.
    drop(command);
    let (sender, shown) = std::sync::mpsc::channel();
    let reading = stoa_env::task::spawn_thread("terminal", move || {
        let mut shown = Vec::new();
        // The end of a terminal is an error.
        let _ = master.read_to_end(&mut shown);
        sender.send(String::from_utf8_lossy(&shown).into_owned()).unwrap();
    });
    let ended = wait_for("the shell leaves", || child.try_wait().unwrap());
    reading.unwrap().join().unwrap();
    (ended, shown.recv().unwrap())
}

/// Waits until `fact` gives something.
pub fn wait_for<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let begin = monotonic();
    loop {
        if let Some(found) = fact() {
            return found;
        }
        assert!(begin.elapsed() < LIMIT, "waited too long: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// All files below a directory.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub listening: Value,
    stderr: std::sync::mpsc::Receiver<String>,
}

impl Server {
    /// Starts `stoa server --warehouse w` on free ports and waits for its line.
    pub fn start(place: &Place, arguments: &[&str]) -> Self {
        let free_ports =
            ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "0"];
        let mut all = vec!["server", "--warehouse", "w"];
        all.extend(free_ports);
        all.extend(arguments);
        Self::run(place.command(&all))
    }

    /// Starts a command that becomes a server, and waits for its line.
    pub fn run(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = child.stderr.take().unwrap();
        let (sender, stderr) = std::sync::mpsc::channel();
        let read = move || {
            let mut text = String::new();
            let _ = log.read_to_string(&mut text);
            let _ = sender.send(text);
        };
        stoa_env::task::spawn_thread("log", read).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let listening =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("the server said {line:?}: {e}"));
        Self { child, listening, stderr }
    }

    pub fn http_port(&self) -> u16 {
        self.listening["http_port"].as_u64().unwrap().try_into().unwrap()
    }

    pub fn pg_port(&self) -> u16 {
        self.listening["pg_port"].as_u64().unwrap().try_into().unwrap()
    }

    pub fn http_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.http_port())
    }

    /// Status and body of a GET; None if nobody answers.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        self.request(&format!(
            "GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ))
    }

    /// Status and body (CSV) of a statement.
    pub fn post_sql(&self, sql: &str) -> Option<(u16, String)> {
        post_sql(self.http_port(), sql)
    }

    fn request(&self, text: &str) -> Option<(u16, String)> {
        request(self.http_port(), text)
    }

    /// The server's standard input, if it is piped.
    pub fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        send_signal(&self.child, signal);
    }

    /// Waits until the process has ended; gives its status and log.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = wait_for("the server's end", || self.child.try_wait().unwrap());
        let log = self.stderr.recv().unwrap();
        (status, log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status and body (CSV) of a statement on the server that has the port.
pub fn post_sql(port: u16, sql: &str) -> Option<(u16, String)> {
    request(
        port,
        &format!(
            "POST /v1/sql?format=csv HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{sql}",
            sql.len()
        ),
    )
}

/// Sends a request to a port of this machine; status and body, None if nobody answers.
pub fn request(port: u16, text: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(text.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Some((status, body.to_owned()))
}

pub fn send_signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}
