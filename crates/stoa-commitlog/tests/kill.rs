//! A real process is killed while it writes, again and again, and its log is read each time.
//!
//! The process is this test itself, started with a directory in its environment. It prints what
//! was acknowledged; the test kills it after so many lines and compares.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use stoa_commitlog::sim::SimRandom;
use stoa_commitlog::{CommitLog, Durability, LogOptions, LogPosition, local_storage, plan_repair};
use stoa_error::Condition;

const DIRECTORY: &str = "STOA_COMMITLOG_KILL_TEST";
const LARGE_DIRECTORY: &str = "STOA_COMMITLOG_LARGE_TEST";
const LARGE_BYTES: usize = 512 << 20;
const KILLS: u64 = 40;
const WRITERS: u64 = 4;

fn options() -> LogOptions {
    LogOptions { segment_bytes: 64 << 10, unsynced_bytes_max: 32 << 10, ..LogOptions::disk() }
}

/// What writer `writer` of process `life` appends as its row `row`.
fn payload(life: u64, writer: u64, row: u64) -> Vec<u8> {
    let mut random = SimRandom::new(life << 40 | writer << 32 | row);
    let size = if random.chance(2) { random.below(200_000) } else { random.below(300) };
    let mut bytes = format!("{life} {writer} {row} ").into_bytes();
    bytes.extend((0..size).map(|_| random.bits() as u8));
    bytes
}

/// The process that is killed; an ordinary run of the tests passes over it.
#[test]
fn writes_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let (log, recovery) =
        CommitLog::open_blocking(local_storage(&directory).unwrap(), options()).unwrap();
    let log = Arc::new(log);
    let life = recovery.epoch;
    for writer in 0..WRITERS {
        let log = log.clone();
        stoa_env::task::spawn_thread("writer", move || write(&log, life, writer)).unwrap();
    }
    // The killer closes this end only after the kill.
    let _ = std::io::stdin().read(&mut [0]);
}

/// The process that is killed with so much memory that its end takes a while.
#[test]
fn holds_much_memory_until_it_is_killed() {
    let Some(directory) = std::env::var_os(LARGE_DIRECTORY).map(PathBuf::from) else { return };
    let log = CommitLog::open_blocking(local_storage(&directory).unwrap(), options()).unwrap();
    let memory = vec![1_u8; LARGE_BYTES];
    say("ready");
    let _ = std::io::stdin().read(&mut [0]);
    drop((log, memory));
}

#[test]
fn the_log_of_a_killed_process_can_be_opened_at_once() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "holds_much_memory_until_it_is_killed", "--nocapture"])
            .env(LARGE_DIRECTORY, directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("ready")));
        let open = || CommitLog::open_blocking(local_storage(directory.path()).unwrap(), options());
        let refused = open().err().unwrap();
        assert!(refused.is(Condition::ObjectInUse), "{refused}");
        let detail = refused.detail().unwrap_or_default();
        assert!(detail.contains(&format!("process {} holds", child.id())), "{detail}");
        child.kill().unwrap();
        // Not waited for, as little as by the script of somebody who kills and starts a server.
        let (log, recovery) = open().unwrap();
        assert_eq!(recovery.epoch, 2);
        drop(log);
        child.wait().unwrap();
    }
}

fn write(log: &CommitLog, life: u64, writer: u64) {
    let durability = if writer == 0 { Durability::Relaxed } else { Durability::Sync };
    for row in 0.. {
        let payload = payload(life, writer, row);
        let (left, right) = payload.split_at(payload.len() / 2);
        let appended = log.append_blocking(&[left, right], durability).unwrap();
        let position = appended.wait().unwrap();
        say(&format!("acked {position} {life} {writer} {row}"));
        if writer == 1 && row % 50 == 49 {
            let durable = log.durable();
            say(&format!("releasing {durable}"));
            log.release_blocking(durable).unwrap();
        }
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// What a killed process had said.
#[derive(Default)]
struct Said {
    acked: BTreeMap<u64, Vec<u8>>,
    released: u64,
}

impl Said {
    fn note(&mut self, line: &str) -> bool {
        // The test harness writes to the same stream, at times in front of a line.
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers = |words: &[&str]| -> Vec<u64> {
            words.iter().map(|word| word.parse().unwrap()).collect()
        };
        let sequence = |word: &str| word.parse::<LogPosition>().unwrap().sequence;
        match words.iter().position(|word| ["acked", "releasing"].contains(word)) {
            Some(at) if words[at] == "acked" && words.len() == at + 5 => {
                let row = numbers(&words[at + 2..]);
                self.acked.insert(sequence(words[at + 1]), payload(row[0], row[1], row[2]));
                true
            }
            Some(at) if words[at] == "releasing" && words.len() == at + 2 => {
                self.released = self.released.max(sequence(words[at + 1]));
                false
            }
            _ => false,
        }
    }
}

fn run_and_kill(directory: &Path, acks: u64, said: &mut Said) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["writes_until_it_is_killed", "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = 0;
    while seen < acks {
        let line = lines.next().expect("the process writes until it is killed").unwrap();
        seen += u64::from(said.note(&line));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it died, the last line perhaps in part.
    for line in lines.map_while(Result::ok) {
        said.note(&line);
    }
}

#[test]
fn a_killed_process_leaves_all_that_it_acknowledged() {
    if std::env::var_os(DIRECTORY).is_some() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut random = SimRandom::new(7);
    let mut said = Said::default();
    let mut torn = 0;
    for _ in 0..KILLS {
        run_and_kill(directory.path(), 1 + random.below(300), &mut said);
        let storage = local_storage(directory.path()).unwrap();
        assert!(plan_repair(&storage).unwrap().is_none());
        let (log, recovery) = CommitLog::open_blocking(storage, options()).unwrap();
        torn += u64::from(recovery.torn.is_some());
        check(&log, recovery.last.sequence, &said);
        log.close_blocking().unwrap();
    }
    println!("{KILLS} kills, {torn} torn tails, {} acknowledged", said.acked.len());
    assert!(said.acked.len() > 1000 && said.released > 0);
}

fn check(log: &CommitLog, last: u64, said: &Said) {
    assert!(said.acked.last_key_value().is_none_or(|(&acked, _)| acked <= last));
    let mut next = said.released + 1;
    for frame in log.replay(log.id().at(said.released)).unwrap() {
        let (position, bytes) = frame.unwrap();
        assert_eq!(position.sequence, next);
        match said.acked.get(&next) {
            Some(payload) => assert_eq!(bytes, payload),
            None => assert_eq!(bytes, rebuilt(&bytes), "a frame that was never appended"),
        }
        next += 1;
    }
    assert_eq!(next, last + 1);
}

/// The payload that begins as `bytes` do.
fn rebuilt(bytes: &[u8]) -> Vec<u8> {
    let words = bytes.split(|&byte| byte == b' ').take(3);
    let numbers: Vec<u64> =
        words.map(|word| std::str::from_utf8(word).unwrap().parse().unwrap()).collect();
    payload(numbers[0], numbers[1], numbers[2])
}
