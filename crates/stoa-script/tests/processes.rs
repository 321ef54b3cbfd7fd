//! Programs as processes: rows through them, and what is left of them afterwards.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use rustix::process::{Pid, Signal, kill_process};
use stoa_error::{Error, Result};
use stoa_script::{Allowed, Guard, Script, SessionFiles};

/// Long enough for a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    directory: tempfile::TempDir,
    guard: Guard,
    allowed: Allowed,
    files: SessionFiles,
}

/// The example `guard`, which cargo has built beside this test.
fn guard_binary() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let binary = own.parent().unwrap().parent().unwrap().join("examples/guard");
    assert!(binary.is_file(), "build it: cargo build -p stoa-script --examples");
    binary
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("scripts")).unwrap();
        let guard = Guard::new(guard_binary(), directory.path().to_owned());
        let commands = ["/bin/sh", "/bin/cat", "/usr/bin/env", "/usr/bin/head"].map(PathBuf::from);
        let listed = [commands.as_slice(), &[directory.path().join("scripts")]].concat();
        let allowed = Allowed::resolved(&listed).unwrap();
        Self { directory, guard, allowed, files: SessionFiles::default() }
    }

    fn start(&self, command: &str, rows: BoxStream<'static, Result<Vec<u8>>>) -> Script {
        let launch = self.allowed.launch(command, &self.files).unwrap();
        Script::start(&self.guard, &launch, rows, false).unwrap()
    }

    async fn run(&self, command: &str, rows: &str) -> Result<String> {
        let rows = rows.to_owned().into_bytes();
        all(self.start(command, stream::iter([Ok(rows)]).boxed())).await
    }

    /// Folders of programs.
    fn folders(&self) -> usize {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let is_folder = |name: String| name.starts_with("stoa-script-");
        entries.filter(|entry| is_folder(name_of(&entry.as_ref().unwrap().path()))).count()
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

async fn all(mut script: Script) -> Result<String> {
    let mut text = String::new();
    while let Some(lines) = script.lines().await {
        text.push_str(&String::from_utf8_lossy(&lines?));
    }
    Ok(text)
}

/// Processes whose command lines have `mark`, without this one.
fn processes(mark: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(process) = name_of(&entry.path()).parse::<i32>() else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if process != own && String::from_utf8_lossy(&line).contains(mark) {
            found.push(process);
        }
    }
    found
}

/// Children of this process that nobody has taken in.
fn zombies() -> usize {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let is_ours = |stat: &String| {
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
        let mut fields = fields.split_ascii_whitespace();
        fields.next() == Some("Z") && fields.next() == Some(&own)
    };
    stats.filter(is_ours).count()
}

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = stoa_env::clock::monotonic();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        stoa_env::timer::sleep(Duration::from_millis(10)).await;
    }
}

fn endless() -> BoxStream<'static, Result<Vec<u8>>> {
    stream::repeat_with(|| Ok(b"row\n".repeat(1000))).boxed()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_go_through() {
    let place = Place::new();
    assert_eq!(place.run("cat", "a\nb\n").await.unwrap(), "a\nb\n");
    assert_eq!(place.run("cat", "").await.unwrap(), "");
    assert_eq!(place.run("sh -c 'cat; printf end'", "a\n").await.unwrap(), "a\nend");
    // More than pipes hold, in both directions at once.
    let rows = "0123456789abcdef\n".repeat(500_000);
    assert_eq!(place.run("cat", &rows).await.unwrap(), rows);
    // Nothing is expanded: no shell.
    let said = place.run("sh -c 'echo $1' x '$(id);*>y'", "").await.unwrap();
    assert_eq!(said, "$(id);*>y\n");
    until("no program runs", || place.guard.running() == 0).await;
    assert_eq!((place.folders(), zombies()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_have_nothing_of_the_server() {
    let mut place = Place::new();
    let secret = place.directory.path().join("scripts/data.txt");
    std::fs::write(&secret, "words\n").unwrap();
    place.allowed.add(&mut place.files, secret.to_str().unwrap()).unwrap();
    // Files that the server has open.
    let _open = std::fs::File::open(&secret).unwrap();
    let names = place.run("sh -c 'env | cut -d= -f1 | sort | tr \"\\n\" \" \"'", "").await.unwrap();
    assert_eq!(names, "HOME LANG PATH PWD TMPDIR ");
    // 3 is the folder that is listed.
    let descriptors = place.run("sh -c 'exec ls /proc/self/fd'", "").await.unwrap();
    assert_eq!(descriptors, "0\n1\n2\n3\n");
    let folder = place.run("sh -c 'pwd; stat -c %a .; ls; cat data.txt'", "").await.unwrap();
    let lines: Vec<&str> = folder.lines().collect();
    assert!(name_of(Path::new(lines[0])).starts_with("stoa-script-"), "{folder}");
    assert_eq!(lines[1..], ["700", "data.txt", "words"]);
    assert!(secret.is_file(), "the link went, not the file");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_say_what_the_program_said() {
    let place = Place::new();
    let error = place.run("sh -c 'cat > /dev/null; echo bad luck >&2; exit 3'", "a\n").await;
    let error = error.unwrap_err();
    assert_eq!(error.sqlstate(), "38000");
    assert!(error.message().ends_with("failed with exit code 3"), "{error}");
    assert_eq!(error.detail(), Some("its last messages: bad luck"));
    // Only the end of many messages, and they stop nobody.
    let loud =
        "sh -c 'i=0; while [ $i -lt 20000 ]; do echo message $i >&2; i=$((i+1)); done; exit 1'";
    let error = place.run(loud, "").await.unwrap_err();
    let detail = error.detail().unwrap();
    assert!(detail.len() < 2000 && detail.ends_with("message 19999"), "{detail}");
    let error = place.run("sh -c 'kill -9 $$'", "").await.unwrap_err();
    assert!(error.message().ends_with("was ended by signal 9"), "{error}");
    let error = all(place.start("sh -c 'exec 0<&-; exit 0'", endless())).await.unwrap_err();
    assert!(error.message().contains("ended before it had read all its rows"), "{error}");
    let launch = place.allowed.launch("head -n 2", &place.files).unwrap();
    let partly = Script::start(&place.guard, &launch, endless(), true).unwrap();
    assert_eq!(all(partly).await.unwrap(), "row\nrow\n");
    // An error of the rows is the error.
    let rows = stream::iter([Ok(b"a\n".to_vec()), Err(Error::invalid("no more"))]).boxed();
    assert_eq!(all(place.start("cat", rows)).await.unwrap_err().message(), "no more");
    let error = place.run("sh -c 'cat /dev/zero'", "").await.unwrap_err();
    assert_eq!(error.sqlstate(), "54000");
    until("no program runs", || place.guard.running() == 0).await;
    assert_eq!((place.folders(), zombies()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_read_is_not_fed() {
    let place = Place::new();
    let fed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&fed);
    let rows = stream::repeat_with(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(vec![b'\n'; 64 << 10])
    });
    let mut script = place.start("cat", rows.boxed());
    let mut chunks = 0;
    while chunks < 50 {
        script.lines().await.unwrap().unwrap();
        chunks += 1;
    }
    // 50 chunks were read, the rest is in pipes.
    assert!(fed.load(std::sync::atomic::Ordering::Relaxed) < 60);
}

/// What a program does that wants to stay: it ignores signals, leaves its group and its session, and loses its parent.
const STAYS: &str =
    "sh -c 'trap \"\" TERM HUP INT; (setsid sh -c \"sleep MARK; true\" &) ; sleep MARK'";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_when_nobody_reads() {
    let place = Place::new();
    let mark = format!("{}11", std::process::id());
    let mut script = place.start(&STAYS.replace("MARK", &mark), endless());
    {
        let reading = script.lines();
        tokio::pin!(reading);
        // The shell, its sleep, the other session's shell and its sleep.
        let there = until("it is there", || processes(&mark).len() >= 5);
        tokio::select! {
            _ = &mut reading => panic!("it writes nothing"),
            () = there => {}
        }
    }
    drop(script);
    until("nothing of it is there", || processes(&mark).is_empty()).await;
    until("no program runs", || place.guard.running() == 0).await;
    assert_eq!((place.folders(), zombies()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_when_the_program_ends() {
    let place = Place::new();
    let mark = format!("{}22", std::process::id());
    let leaves = format!("sh -c 'setsid sleep {mark} & echo done'");
    assert_eq!(place.run(&leaves, "").await.unwrap(), "done\n");
    assert_eq!(processes(&mark), Vec::<i32>::new());
    until("no program runs", || place.guard.running() == 0).await;
    assert_eq!((place.folders(), zombies()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_when_the_server_is_killed() {
    let place = Place::new();
    let mark = format!("{}33", std::process::id());
    // A server that starts a guard, and is killed: no destructor runs.
    let folder = place.directory.path().join("stoa-script-left");
    let program = STAYS.replace("MARK", &mark);
    let program = program.trim_start_matches("sh -c ").trim_matches('\'').to_owned();
    let (guard, folder_shown) = (guard_binary(), folder.display().to_string());
    let line = format!(
        "'{}' script-guard $$ '{folder_shown}' /bin/sh 0 sh -c '{program}' & wait",
        guard.display()
    );
    let mut server =
        Command::new("/bin/sh").arg("-c").arg(line).stdin(Stdio::null()).spawn().unwrap();
    until("it is there", || processes(&mark).len() >= 5 && folder.is_dir()).await;
    let server_id = Pid::from_raw(server.id().cast_signed()).unwrap();
    kill_process(server_id, Signal::KILL).unwrap();
    server.wait().unwrap();
    until("nothing of it is there", || processes(&mark).is_empty()).await;
    assert!(!folder.exists());
}
