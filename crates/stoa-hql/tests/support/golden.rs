//! Runs `golden/*.hql` over a store and compares with `golden/*.out`: what every store must pass.
//!
//! Another crate's test takes it in with `#[path = "../../stoa-hql/tests/support/golden.rs"]` and
//! gives a function that makes an empty store.
//!
//! Each script starts with an empty store whose clock is set by hand to [`START_NS`], sees copies of
//! the files in `golden/data`, and is run as `--test-mode` does: lines are echoed, errors end
//! nothing. Hints are printed, too. What came out is written to a folder, to be looked at and copied
//! when an expectation changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stoa_hql::{
    CellStore, LocalFiles, Output, Session, SessionOptions, Shell, ShellOptions, TextLines, Zone,
};

/// 2020-01-01 00:00:00 UTC: where the manual clock of a store must start.
pub const START_NS: i64 = 1_577_836_800_000_000_000;

/// Keeps results and notices in one order.
#[derive(Default)]
struct Transcript(Vec<u8>);

impl Output for Transcript {
    fn write(&mut self, bytes: &[u8]) -> stoa_error::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn notice(&mut self, text: &str) -> stoa_error::Result<()> {
        self.write(text.as_bytes())
    }

    fn progress(&mut self, text: &str) -> stoa_error::Result<()> {
        self.write(text.as_bytes())
    }
}

/// Runs every script but those named over a store of its own; fails with the first line of each that
/// differs.
pub async fn check<F>(written: &Path, but: &[&str], mut empty_store: impl FnMut() -> F)
where
    F: Future<Output = Arc<dyn CellStore>>,
{
    fs::create_dir_all(written).unwrap();
    let mut failures = Vec::new();
    let mut scripts: Vec<PathBuf> =
        fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|end| end == "hql"));
    let name = |path: &PathBuf| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    scripts.retain(|path| !name(path).is_some_and(|name| but.contains(&name.as_str())));
    scripts.sort();
    assert!(scripts.len() > 10, "the scripts are missing");
    for script in scripts {
        let found = transcript(&script, empty_store().await).await;
        let name = script.with_extension("out");
        let expected = fs::read_to_string(&name).unwrap_or_default();
        let name = name.file_name().unwrap();
        fs::write(written.join(name), &found).unwrap();
        if found != expected {
            let line = found.lines().zip(expected.lines()).take_while(|(a, b)| a == b).count();
            let (found, expected) = (found.lines().nth(line), expected.lines().nth(line));
            let place = format!("{} line {}", name.to_string_lossy(), line + 1);
            failures.push(format!("{place}:\n  found    {found:?}\n  expected {expected:?}"));
        }
    }
    let hint = format!("what was printed is in {}", written.display());
    assert!(failures.is_empty(), "{}\n{hint}", failures.join("\n"));
}

fn golden() -> PathBuf {
    // Beside this file, whichever crate takes it in.
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.join("stoa-hql/tests/golden")
}

async fn transcript(script: &Path, store: Arc<dyn CellStore>) -> String {
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(golden().join("data")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let options = SessionOptions { zone: Zone::Utc, silent: true, ..SessionOptions::default() };
    let session = Session::new(store, Arc::new(LocalFiles::new(folder.path())), options);
    let options = ShellOptions { batch: true, test_mode: true, ..ShellOptions::default() };
    let text = fs::read_to_string(script).unwrap();
    let mut out = Transcript::default();
    Shell::new(session, options).run(&mut TextLines::new(&text), &mut out).await.unwrap();
    let text = String::from_utf8_lossy(&out.0).into_owned();
    text.replace(&folder.path().display().to_string(), "")
}
