//! Files of JSON lines, one entry a line, oldest first; their names begin with the time at which they were begun.
//!
//! **Invariants:** at most [`SEGMENTS_MAX`] files of about [`SEGMENT_BYTES_MAX`], none older than [`AGE_MS_MAX`]. A line
//! that was cut off when the machine failed is left out.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_env::{clock, private_files, random};

use super::Entry;

const SEGMENT_BYTES_MAX: u64 = 4 << 20;
const SEGMENTS_MAX: usize = 16;
/// A week.
const AGE_MS_MAX: i64 = 7 * 24 * 3_600_000;
const ENDING: &str = ".ndjson";

/// The files in one directory. Several servers may share it, each with files of its own.
pub(super) struct Segments {
    directory: PathBuf,
    current: Mutex<Option<(File, u64)>>,
}

impl Segments {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, current: Mutex::default() }
    }

    /// # Errors
    /// The operating system's; the entries are not in the files then.
    pub(super) fn append(&self, entries: &[Arc<Entry>]) -> std::io::Result<()> {
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry.as_ref())?;
            lines.push(b'\n');
        }
        let mut current = self.current.lock();
        let is_full = current.as_ref().is_none_or(|(_, bytes)| *bytes >= SEGMENT_BYTES_MAX);
        if is_full {
            *current = None;
            private_files::create_directories(&self.directory)?;
            self.tidy()?;
            *current = Some((self.begin()?, 0));
        }
        if let Some((file, bytes)) = current.as_mut() {
            file.write_all(&lines)?;
            *bytes += lines.len() as u64;
        }
        Ok(())
    }

    fn begin(&self) -> std::io::Result<File> {
        let name = format!("{:013}-{:08x}{ENDING}", clock::unix_ms(), random::u64() as u32);
        private_files::options().append(true).create_new(true).open(self.directory.join(name))
    }

    /// Makes room for one more.
    fn tidy(&self) -> std::io::Result<()> {
        let oldest = clock::unix_ms() - AGE_MS_MAX;
        let all = self.all();
        let extra = (all.len() + 1).saturating_sub(SEGMENTS_MAX);
        for (number, (begun, path)) in all.iter().enumerate() {
            // A file is as old as its last entry, which is older than the first one of the next.
            let ended = all.get(number + 1).map_or(i64::MAX, |(next, _)| *next);
            if number < extra || (*begun < oldest && ended < oldest) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// When each was begun, and where it is; oldest first.
    fn all(&self) -> Vec<(i64, PathBuf)> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut all: Vec<_> =
            entries.filter_map(|entry| Some((begun(&entry.path())?, entry.path()))).collect();
        all.sort();
        all
    }

    /// Entries that are wanted, newest first; files that ended before `from` are not read.
    pub(super) fn newest_first(
        &self,
        from: Option<i64>,
        is_wanted: impl Fn(&Entry) -> bool,
    ) -> impl Iterator<Item = Entry> {
        let all = self.all();
        let ends: Vec<i64> =
            all.iter().skip(1).map(|(begun, _)| *begun).chain([i64::MAX]).collect();
        let files = all.into_iter().zip(ends).rev();
        let files = files.filter(move |(_, end)| from.is_none_or(|from| *end >= from));
        files.flat_map(|((_, path), _)| read(&path).into_iter().rev()).filter(move |e| is_wanted(e))
    }
}

/// When a file was begun; `None` if it is none of these.
fn begun(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?;
    name.split_once('-')?.0.parse().ok()
}

fn read(path: &Path) -> Vec<Entry> {
    let text = std::fs::read(path).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
