//! The parent of a program: makes its folder, starts it, and ends all that came of it.
//!
//! ```text
//! stoa script-guard SERVER FOLDER PROGRAM FILES name path … word word …
//! ```
//! It ends when the program ends, with its exit code; when it is asked to (SIGTERM); and when the server is gone, however
//! that came. In each case it ends all descendants of the program first (SIGKILL), and removes the folder. Descendants that
//! lose their parent become the guard's children (`PR_SET_CHILD_SUBREAPER`), so none escapes by leaving its process group or
//! session.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getppid, kill_process, set_child_subreaper, wait,
};
use tokio::signal::unix::{SignalKind, signal};

/// The first operand of the binary with which it is a guard.
pub const GUARD_WORD: &str = "script-guard";

/// The exit code of a guard whose program was ended from outside.
const ENDED: u8 = 143;
/// The exit code of a guard that cannot do its work.
const FAILED: u8 = 125;
/// The exit codes of programs that cannot be started and that are not there, as shells have them.
const NOT_STARTED: u8 = 126;

/// How often it looks whether the server is there.
const LOOK: Duration = Duration::from_millis(100);

/// All variables that a program has, beside `HOME` and `TMPDIR`: its folder.
const VARIABLES: [(&str, &str); 2] =
    [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8")];

/// What a guard is told.
struct Orders {
    server: Pid,
    folder: PathBuf,
    program: PathBuf,
    files: Vec<(OsString, PathBuf)>,
    words: Vec<OsString>,
}

impl Orders {
    fn read(operands: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut operands = operands.into_iter();
        let mut number = || operands.next()?.to_str()?.parse::<i32>().ok();
        let server = Pid::from_raw(number()?)?;
        let folder = PathBuf::from(operands.next()?);
        let program = PathBuf::from(operands.next()?);
        let count = operands.next()?.to_str()?.parse::<usize>().ok()?;
        let mut files = Vec::new();
        for _ in 0..count {
            files.push((operands.next()?, PathBuf::from(operands.next()?)));
        }
        let words: Vec<OsString> = operands.collect();
        (!words.is_empty()).then_some(Self { server, folder, program, files, words })
    }
}

/// Runs a guard: all operands behind [`GUARD_WORD`]. Its standard streams are the program's.
pub fn guard(operands: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(orders) = Orders::read(operands) else {
        return failed("this command is the server's own");
    };
    match run(&orders) {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("stoa: {why}");
    ExitCode::from(FAILED)
}

fn run(orders: &Orders) -> std::io::Result<u8> {
    keep_descriptors_from_programs()?;
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(watch(orders));
    end_children();
    let _ = fs::remove_dir_all(&orders.folder);
    code
}

/// Rust closes what it opened itself when it starts a program. What the server was started with may still be open.
#[allow(unsafe_code)]
fn keep_descriptors_from_programs() -> std::io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
    // SAFETY: the call marks descriptors from 3 on; it reads and writes no memory, and closes none in this process.
    match unsafe { libc::close_range(3, libc::c_uint::MAX, flags) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

async fn watch(orders: &Orders) -> std::io::Result<u8> {
    // Before the program is there, so that nothing that happens to it is missed.
    let mut asked = signal(SignalKind::terminate())?;
    let mut ended = signal(SignalKind::child())?;
    let mut look = stoa_env::timer::interval(LOOK);
    let program = match start(orders) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("stoa: cannot run {}: {error}", orders.words[0].display());
            return Ok(NOT_STARTED);
        }
    };
    loop {
        tokio::select! {
            _ = asked.recv() => return Ok(ENDED),
            // Whoever loses its parent gets another one.
            _ = look.tick() => if getppid() != Some(orders.server) { return Ok(ENDED) },
            _ = ended.recv() => if let Some(code) = reap(program) { return Ok(code) },
        }
    }
}

/// Starts the program in its folder.
fn start(orders: &Orders) -> std::io::Result<Pid> {
    fs::DirBuilder::new().mode(0o700).create(&orders.folder)?;
    for (name, path) in &orders.files {
        symlink(path, orders.folder.join(Path::new(name).file_name().unwrap_or(name)))?;
    }
    let mut command = Command::new(&orders.program);
    command.arg0(&orders.words[0]).args(&orders.words[1..]).current_dir(&orders.folder);
    command.env_clear().envs(VARIABLES);
    command.env("HOME", &orders.folder).env("TMPDIR", &orders.folder);
    let child = command.spawn()?;
    // Its end is seen by `reap`, which sees that of all others, too. Its streams are the guard's own.
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

/// Takes in what has ended; the exit code of the program, if it is among it.
fn reap(program: Pid) -> Option<u8> {
    while let Ok(Some((ended, status))) = wait(WaitOptions::NOHANG) {
        if ended == program {
            return Some(code_of(status));
        }
    }
    None
}

/// As shells have it: 128 and the signal, if a signal ended it.
fn code_of(status: WaitStatus) -> u8 {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => i32::from(FAILED),
    };
    u8::try_from(code).unwrap_or(FAILED)
}

/// Ends all descendants, and takes them in.
fn end_children() {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => continue,
            // None is left.
            Err(_) => return,
            Ok(None) => {}
        }
        // Children of those that end here are the guard's with the next round.
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        let _ = wait(WaitOptions::empty());
    }
}

/// The processes whose parent is this one.
fn children() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let of_entry = |entry: fs::DirEntry| {
        let process = entry.file_name().to_str()?.parse::<i32>().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name may hold spaces and parentheses; the parent is the second field behind it (proc(5)).
        let (_, fields) = stat.rsplit_once(')')?;
        let parent = fields.split_ascii_whitespace().nth(1)?.parse::<i32>().ok()?;
        if parent == own { Pid::from_raw(process) } else { None }
    };
    entries.flatten().filter_map(of_entry).collect()
}
