//! What the program makes is for its own account, whatever the umask.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Place, Server, wait_for};

/// The program under a umask that allows everything.
fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command_of("sh".as_ref());
    let program = env!("CARGO_BIN_EXE_stoa");
    command.args(["-c", "umask 000; exec \"$@\"", "sh", program]).args(arguments);
    command
}

fn run(place: &Place, arguments: &[&str]) {
    let ran = command(place, arguments).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

fn server_command(place: &Place, arguments: &[&str]) -> Command {
    let free_ports =
        ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "none"];
    let mut all = vec!["server", "--warehouse", "w"];
    all.extend(free_ports);
    all.extend(arguments);
    command(place, &all)
}

fn server(place: &Place, arguments: &[&str]) -> Server {
    Server::run(server_command(place, arguments))
}

/// Ends a server; gives its log.
fn log_of(server: Server) -> String {
    server.signal(rustix::process::Signal::TERM);
    let (status, log) = server.wait();
    assert!(status.success(), "{log}");
    log
}

fn answered(server: &Server, sql: &str) {
    let (status, body) = server.post_sql(sql).unwrap();
    assert_eq!(status, 200, "{sql}: {body}");
}

/// Asserts that nobody else may reach `path` and what is below; gives the names that are there.
fn private(path: &Path) -> Vec<String> {
    let found = std::fs::symlink_metadata(path).unwrap();
    let mode = found.permissions().mode() & 0o777;
    let expected = if found.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(mode, expected, "{} has mode {mode:o}", path.display());
    let mut names = vec![path.file_name().unwrap().to_string_lossy().into_owned()];
    if found.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            names.extend(private(&entry.unwrap().path()));
        }
    }
    names
}

fn has(names: &[String], ending: &str) -> bool {
    names.iter().any(|name| name.ends_with(ending))
}

#[test]
fn commands_make_files_for_one_account() {
    let place = Place::new();
    let rows = "n,day\n1,2026-01-01\n2,2026-01-02\n";
    place.write("rows.csv", rows);
    let create = "CREATE TABLE t (n bigint, day date) PARTITIONED BY (day)";
    let insert = "INSERT INTO t VALUES (3, DATE '2026-01-03')";
    run(&place, &["sql", "--warehouse", "in/w", "-c", create, "-c", insert]);
    run(&place, &["load", "rows.csv", "--into", "t", "--warehouse", "in/w"]);
    let names = private(&place.path("in"));
    for ending in ["catalog.db", ".orc", ".metadata.json", ".avro"] {
        assert!(has(&names, ending), "{ending}: {names:?}");
    }
}

#[test]
fn without_a_spill_folder_spilled_rows_are_for_one_account() {
    let place = Place::new();
    std::fs::create_dir(place.path("tmp")).unwrap();
    let server = || {
        let mut command = server_command(&place, &[]);
        command.env("TMPDIR", place.path("tmp"));
        Server::run(command)
    };
    let folders = || {
        let found =
            std::fs::read_dir(place.path("tmp")).unwrap().map(|entry| entry.unwrap().path());
        let of_spilled = |path: &PathBuf| path.to_string_lossy().contains("stoa-spill-");
        found.filter(of_spilled).collect::<Vec<_>>()
    };
    let killed = server();
    let made = folders();
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(has(&private(&made[0]), "lock"));
    killed.signal(rustix::process::Signal::KILL);
    killed.wait();
    assert_eq!(folders(), made);

    // The next one removes what a killed one had spilled.
    let running = server();
    let now = folders();
    assert_eq!(now.len(), 1, "{now:?}");
    assert_ne!(now, made);
    log_of(running);
}

#[test]
fn a_server_makes_files_for_one_account_and_tells_of_others() {
    let place = Place::new();
    let server_of_all = || server(&place, &["--spill-dir", "spill", "--disk-cache", "cache"]);
    let running = server_of_all();
    answered(&running, "CREATE TABLE t (n bigint)");
    answered(&running, "INSERT INTO t VALUES (1)");
    answered(&running, "FLUSH TABLE t");
    answered(&running, "INSERT INTO t VALUES (2)");
    let names = private(&place.path("w"));
    for ending in ["catalog.db", "catalog.db-wal", "catalog.db-shm", ".orc", "LOCK"] {
        assert!(has(&names, ending), "{ending}: {names:?}");
    }
    private(&place.path("spill"));
    // The cache is opened in the background.
    wait_for("the cache", || place.path("cache/lock").exists().then_some(()));
    private(&place.path("cache"));
    let log = log_of(running);
    assert!(!log.contains("other accounts"), "{log}");
    private(&place.path("w"));

    // What others may reach from before is told, not changed.
    let chmod = |name: &str, mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path(name), permissions).unwrap();
    };
    chmod("w", 0o755);
    chmod("w/catalog.db", 0o640);
    chmod("cache", 0o711);
    let log = log_of(server_of_all());
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("other accounts")).collect();
    assert_eq!(warnings.iter().filter(|line| line.contains("0755")).count(), 1, "{log}");
    assert_eq!(warnings.iter().filter(|line| line.contains("0711")).count(), 1, "{log}");
    assert!(warnings.iter().any(|line| line.contains("catalog.db") && line.contains("0640")));
}
