//! The catalog on a disk that fails: what was said to be done is there, what was said not to be
//! done is not, and the catalog serves again as soon as the disk does.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use stoa_catalog::{Catalog, TableIdent};
use stoa_error::Error;
use stoa_testkit::{Fault, FaultyDisk, Plan, call};

const KINDS: [(&str, u32); 3] = [("write", call::WRITE), ("sync", call::SYNC), ("any", call::ANY)];
const FAULTS: [Fault; 3] = [Fault::Eio, Fault::Enospc, Fault::Short];

/// Calls of one kind that a commit makes, and some more.
const CALLS_MAX: u64 = 12;

fn table() -> TableIdent {
    TableIdent::new("public", "t")
}

async fn open(dir: &Path) -> Catalog {
    Catalog::open(&dir.join("catalog.db"), "stoa").await.unwrap()
}

/// What the text says that the program was told to do: kind, fault, calls that succeed, whether one
/// call fails or all, whether the process dies at once.
struct Case {
    kind: usize,
    fault: usize,
    skip: u64,
    once: bool,
    dies: bool,
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        let numbers = 0..KINDS.len() as u64 * FAULTS.len() as u64 * CALLS_MAX * 4;
        numbers.map(|number| {
            let (number, once) = (number / 2, number % 2 == 0);
            let (number, dies) = (number / 2, number % 2 == 0);
            let (number, skip) = (number / CALLS_MAX, number % CALLS_MAX);
            let (kind, fault) = ((number % 3) as usize, (number / 3) as usize);
            Self { kind, fault, skip, once, dies }
        })
    }

    fn plan(&self) -> Plan<'static> {
        let (_, calls) = KINDS[self.kind];
        let times = u64::from(self.once);
        Plan { fault: FAULTS[self.fault], calls, part: "catalog.db", skip: self.skip, times }
    }

    fn text(&self) -> String {
        let Self { kind, fault, skip, once, dies } = self;
        format!("{kind} {fault} {skip} {} {}", u8::from(*once), u8::from(*dies))
    }

    fn parse(text: &str) -> Self {
        let numbers: Vec<u64> = text.split(' ').map(|part| part.parse().unwrap()).collect();
        let [kind, fault, skip, once, dies] = numbers[..] else { panic!("{text:?}") };
        let (kind, fault) = (kind as usize, fault as usize);
        Self { kind, fault, skip, once: once == 1, dies: dies == 1 }
    }
}

fn outcome(result: Result<(), Error>) -> &'static str {
    match result {
        Ok(()) => "done",
        Err(error) if error.sqlstate() == "08007" => {
            assert!(!error.is_retryable());
            "unknown"
        }
        Err(error) => {
            assert!(["53100", "58030", "57P03"].contains(&error.sqlstate()), "{error:?}");
            assert!(error.message().contains("catalog.db"), "{error:?}");
            "undone"
        }
    }
}

/// The program that the test below runs on the faulty disk, in the directory of the disk. By itself it
/// has no disk that fails: `cargo test -p stoa-catalog --test faults` runs both.
#[tokio::test]
#[ignore = "no test by itself: `cargo test -p stoa-catalog --test faults` runs it, once per case, as a process of its own"]
async fn program() {
    let here = std::env::current_dir().unwrap();
    let case = Case::parse(&std::fs::read_to_string("case").unwrap());
    let disk = FaultyDisk::at(&here);
    let catalog = open(&here).await;
    let from = catalog.pointer(&table()).await.unwrap();
    let number: u32 = from.parse().unwrap();
    disk.arm(&case.plan());
    let said = outcome(catalog.swap(&table(), &from, &(number + 1).to_string()).await);
    std::fs::write("said", format!("{number} {said}")).unwrap();
    if case.dies {
        // Nothing is closed: what is in the file now is what the next process finds.
        std::process::exit(0);
    }
    // The disk is ill for a while.
    for _ in 0..6 {
        let at = catalog.pointer(&table()).await.unwrap();
        let _ = catalog.swap(&table(), &at, &at).await;
        let _ = catalog.create_namespace("other", &BTreeMap::new()).await;
        let _ = catalog.drop_namespace("other").await;
    }
    disk.heal();
    // And the catalog serves on all of its connections.
    let at = catalog.pointer(&table()).await.unwrap();
    if said != "unknown" {
        let expected = if said == "done" { number + 1 } else { number };
        assert_eq!(at, expected.to_string());
    }
    let _ = catalog.drop_namespace("other").await;
    for _ in 0..12 {
        catalog.swap(&table(), &at, &at).await.unwrap();
        let (a, b) = (BTreeMap::new(), BTreeMap::new());
        let (one, two) =
            tokio::join!(catalog.create_namespace("a", &a), catalog.create_namespace("b", &b));
        one.and(two).unwrap();
        catalog.drop_namespace("a").await.unwrap();
        catalog.drop_namespace("b").await.unwrap();
    }
    std::process::exit(0);
}

#[tokio::test]
async fn what_is_said_of_a_commit_is_so_at_whichever_call_the_disk_fails() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().canonicalize().unwrap();
    let disk = FaultyDisk::new(&dir, dir.to_str().unwrap());
    let catalog = open(&dir).await;
    catalog.create_namespace("public", &BTreeMap::new()).await.unwrap();
    catalog.create_table(&table(), "0").await.unwrap();
    catalog.close().await;
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    #[expect(clippy::disallowed_methods, reason = "the size of a test is no setting")]
    let whole = std::env::var("STOA_DISK_FAULTS").is_ok_and(|size| size == "all");
    // A number that shares no factor with those of the kinds, so that each comes up.
    let step = if whole { 1 } else { 5 };
    for case in Case::all().step_by(step) {
        std::fs::write(dir.join("case"), case.text()).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "program", "--ignored", "--nocapture"]).current_dir(&dir);
        command.stdin(Stdio::null());
        disk.below(&mut command);
        let ran = command.output().unwrap();
        disk.heal();
        let text = || format!("{:?}: {}", case.plan(), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{}", text());
        let said = std::fs::read_to_string(dir.join("said")).unwrap();
        let (number, said) = said.split_once(' ').unwrap();
        let number: u32 = number.parse().unwrap();
        let catalog = open(&dir).await;
        let now: u32 = catalog.pointer(&table()).await.unwrap().parse().unwrap();
        catalog.close().await;
        match said {
            "done" => assert_eq!(now, number + 1, "{}", text()),
            "undone" => assert_eq!(now, number, "{}", text()),
            _ => assert!(now == number || now == number + 1, "{}", text()),
        }
        *seen.entry(said.to_owned()).or_default() += 1;
    }
    // The faults have hit what they were meant for.
    for said in ["done", "undone", "unknown"] {
        assert!(seen.get(said).is_some_and(|count| *count >= 4), "{seen:?}");
    }
}
