//! A PostgreSQL server of a test's own, from the programs that are installed here.
//!
//! It lives in a temporary folder, on a free port of this machine, and lets everybody in. A shell that
//! waits for the end of the test's process stops it and removes the folder, however that process ends.

use std::fs::Permissions;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Certificate;

/// Its superuser.
const ACCOUNT: &str = "stoa";

/// As whom the server runs where the tests run as root, which it refuses to be.
const OWNER: &str = "postgres";

/// A running server; stopped and removed when it is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    home: PathBuf,
    port: u16,
    settings: Vec<String>,
    databases: AtomicU32,
    guard: Option<Child>,
}

impl PostgresServer {
    /// The one that all tests of this process share, each with a database of its own.
    ///
    /// Prints `skipped: …` and gives `None` where PostgreSQL is not installed.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<PostgresServer>> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&["fsync=off", "max_connections=400"])).as_ref()
    }

    /// Starts one with `settings` of its configuration, such as `fsync=off`.
    ///
    /// Prints `skipped: …` and gives `None` where PostgreSQL is not installed.
    ///
    /// # Panics
    /// Where it is installed and does not start.
    pub fn start(settings: &[&str]) -> Option<Self> {
        let server = Self::create(settings)?;
        server.begin();
        Some(server)
    }

    /// Starts one that takes only connections over TLS, with this certificate.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub fn start_with_tls(certificate: &Certificate) -> Option<Self> {
        let mut server = Self::create(&["fsync=off", "ssl=on"])?;
        for (setting, from) in
            [("ssl_cert_file", &certificate.cert), ("ssl_key_file", &certificate.key)]
        {
            let to = server.home.join(setting);
            let mut install = Command::new("install");
            if is_root(&server.home) {
                install.args(["-o", OWNER]);
            }
            let installed = install.args(["-m", "600"]).arg(from).arg(&to).status();
            assert!(installed.expect("install runs").success());
            server.settings.push(format!("{setting}={}", to.display()));
        }
        let only_tls = "hostssl all all all trust\n";
        std::fs::write(server.home.join("data/pg_hba.conf"), only_tls).expect("it is ours");
        server.begin();
        Some(server)
    }

    fn create(settings: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: PostgreSQL is not installed");
            return None;
        };
        let home = new_home();
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let guard = Some(guard(&programs, &home));
        let (port, databases) = (free_port(), AtomicU32::new(0));
        let server = Self { programs, home, port, settings, databases, guard };
        server.make();
        Some(server)
    }

    fn make(&self) {
        let data = self.data();
        let locale = ["-E", "UTF8", "--locale=C.UTF-8"];
        let arguments = ["-D", &data, "-U", ACCOUNT, "-A", "trust", "--no-sync"];
        self.run("initdb", &[&arguments[..], &locale[..]].concat());
    }

    /// Replaces a server that was stopped by a new one, on the same port: nothing is left of the old
    /// one's databases.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub fn make_anew(&self) {
        std::fs::remove_dir_all(self.home.join("data")).expect("it was stopped");
        self.databases.store(0, Ordering::Relaxed);
        self.make();
    }

    /// Makes a new database; gives its URL.
    ///
    /// # Panics
    /// Where the server refuses.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let port = self.port.to_string();
        self.run("createdb", &["-h", "127.0.0.1", "-p", &port, "-U", ACCOUNT, &name]);
        format!("postgres://{ACCOUNT}@127.0.0.1:{port}/{name}")
    }

    /// The port, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again after [`Self::stop`] or [`Self::kill`], on the same port.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn begin(&self) {
        let mut options =
            format!("-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''", self.port);
        for setting in &self.settings {
            options.push_str(&format!(" -c {setting}"));
        }
        let log = self.home.join("log").display().to_string();
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-s", "-l", &log, "-o", &options, "start"]);
    }

    /// Stops it in order, with all connections.
    ///
    /// # Panics
    /// Where it does not stop.
    pub fn stop(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-s", "-m", "fast", "stop"]);
    }

    /// Kills all of its processes at once, as a crash does.
    ///
    /// # Panics
    /// Where it is not running.
    pub fn kill(&self) {
        let file = self.home.join("data/postmaster.pid");
        let text = std::fs::read_to_string(&file).expect("the server runs");
        let server = text.lines().next().expect("the first line is the process").to_owned();
        signal("STOP", std::slice::from_ref(&server));
        let mut all = children_of(&server);
        all.push(server);
        signal("KILL", &all);
        // Those that are left would keep a new server from starting.
        while all.iter().any(|process| is_running(process)) {
            std::thread::yield_now();
        }
        // A process that nobody has waited for yet counts as running to a new server.
        let _ = std::fs::remove_file(file);
    }

    fn data(&self) -> String {
        self.home.join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = unprivileged(&self.home);
        command.arg(self.programs.join(program)).args(arguments);
        let log = std::fs::File::create(self.home.join("run.log")).expect("a log file");
        let errors = log.try_clone().expect("a log file");
        // Not a pipe: the server would keep it open.
        let status = command.stdin(Stdio::null()).stdout(log).stderr(errors).status();
        let text = |name| std::fs::read_to_string(self.home.join(name)).unwrap_or_default();
        let is_done = status.expect("PostgreSQL's programs run").success();
        assert!(is_done, "{program}: {}{}", text("run.log"), text("log"));
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }
}

/// The folder of the newest server that is installed; Debian keeps it off the path.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .filter_map(io::Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(number)?;
    Some(newest.join("bin"))
}

/// A new folder that belongs to whom the server runs as.
fn new_home() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("stoa-postgres-{}-{number}", std::process::id());
    let home = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir(&home).expect("a temporary folder");
    std::fs::set_permissions(&home, Permissions::from_mode(0o755)).expect("the folder is ours");
    if is_root(&home) {
        let owned = Command::new("chown").arg(OWNER).arg(&home).status();
        assert!(owned.expect("chown runs").success(), "there is no account {OWNER}");
    }
    home
}

/// Whether this process, which has made the folder's content or could have, is root.
fn is_root(home: &Path) -> bool {
    let probe = home.join("probe");
    let root = std::fs::write(&probe, "").is_ok()
        && std::fs::metadata(&probe).is_ok_and(|metadata| metadata.uid() == 0);
    let _ = std::fs::remove_file(probe);
    root
}

/// What runs the command that its arguments are, not as root.
fn unprivileged(home: &Path) -> Command {
    let mut command = match is_root(home) {
        false => Command::new("env"),
        true => {
            let mut command = Command::new("setpriv");
            let owner = [format!("--reuid={OWNER}"), format!("--regid={OWNER}")];
            command.args(owner).arg("--clear-groups");
            command
        }
    };
    command.current_dir("/");
    command
}

/// Waits for the end of its input, which is that of this process or of the server's owner.
fn guard(programs: &Path, home: &Path) -> Child {
    let script = r#"read -r _; "$1/pg_ctl" -D "$2/data" -s -m immediate stop; rm -rf "$2""#;
    let mut command = unprivileged(home);
    command.args(["sh", "-c", &format!("trap '' INT TERM HUP; {script}"), "sh"]);
    command.arg(programs).arg(home);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("a shell runs")
}

/// Not one of those that the system gives to connections: while the server is down, a client that
/// tries to reach it could be given the server's own port.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(7);
    let ports = (0..10_000).map(|_| first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)));
    let port = ports
        .filter_map(|number| u16::try_from(15_000 + number % 10_000).ok())
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    port.expect("a port is free")
}

fn signal(name: &str, processes: &[String]) {
    let _ = Command::new("kill").arg(format!("-{name}")).args(processes).status();
}

fn children_of(process: &str) -> Vec<String> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.filter_map(io::Result::ok)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| status_of(name).is_some_and(|(_, parent)| parent == process))
        .collect()
}

fn is_running(process: &str) -> bool {
    status_of(process).is_some_and(|(state, _)| state != "Z")
}

/// State and parent of a process.
fn status_of(process: &str) -> Option<(String, String)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned);
    Some((fields.next()?, fields.next()?))
}
