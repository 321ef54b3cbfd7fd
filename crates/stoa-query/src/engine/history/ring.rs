//! Samples in a file of fixed size, in which the newest take the places of the oldest.
//!
//! ```text
//!  header, 64 bytes: "StoaHist", version, bytes of a record, (seconds, places) of each step, CRC-32C
//!  600 places for steps of 1 s, 360 of 10 s, 1440 of 60 s, 1008 of 600 s
//!  place: time (ms since 1970), 26 numbers (NaN for none), CRC-32C, 4 bytes of 0
//! ```
//! Little-endian throughout. A sample of a step of `s` seconds that ended at `t` is at place `t / s` modulo the places of
//! the step, so a file that was left at any moment needs no repair.
//!
//! **Invariants:** a place is written in one write and counts only with its checksum: what was torn is left out, with a
//! warning. A file that is none of these, or of another version, is put aside under another name. A server has its file
//! to itself as long as it runs (a lock); the next one takes the first that is free.
//!
//! Nothing is synced: after a failure of the machine the newest samples may be missing.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use stoa_env::{clock, private_files};
use stoa_figures::Sample;

use super::levels::{Levels, STEPS, Step};

const MAGIC: [u8; 8] = *b"StoaHist";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;
const NUMBERS: usize = 26;
const RECORD_BYTES: usize = 8 + 8 * NUMBERS + 8;
/// Servers that may have a file in one directory at the same time.
const SERVERS_MAX: usize = 256;
/// Samples that a clock which went back left in the future.
const AHEAD_MS_MAX: i64 = 60_000;

/// The file of one server.
#[derive(Debug)]
pub(super) struct Ring {
    file: File,
    path: PathBuf,
    /// A disk that takes nothing is told of once.
    has_failed: AtomicBool,
}

impl Ring {
    /// The first file of `directory` that no other server has; `levels` get what is in it. `None`, with a warning, where
    /// there can be none: samples are in memory only then.
    pub(super) fn open(directory: &Path, levels: &mut Levels) -> Option<Self> {
        match Self::try_open(directory, levels) {
            Ok(ring) => Some(ring),
            Err(error) => {
                tracing::warn!(
                    %error,
                    directory = %directory.display(),
                    "the history of figures is kept in memory only"
                );
                None
            }
        }
    }

    fn try_open(directory: &Path, levels: &mut Levels) -> io::Result<Self> {
        private_files::create_directories(directory)?;
        for number in 0..SERVERS_MAX {
            let path = directory.join(format!("history-{number}.ring"));
            let Some(file) = locked(&path)? else { continue };
            let mut bytes = Vec::new();
            // One byte more shows that a file is longer than these are.
            (&file).take(file_bytes() as u64 + 1).read_to_end(&mut bytes)?;
            if bytes.is_empty() {
                return Self::begin(file, path);
            }
            if !bytes.starts_with(&header()) || bytes.len() > file_bytes() {
                let aside = path.with_extension("unreadable");
                std::fs::rename(&path, &aside)?;
                tracing::warn!(
                    file = %path.display(),
                    now = %aside.display(),
                    "a file is no history of figures of this version: it was put aside"
                );
                let Some(file) = locked(&path)? else { continue };
                return Self::begin(file, path);
            }
            let damaged = read(&bytes, clock::unix_ms(), levels);
            if damaged > 0 || bytes.len() < file_bytes() {
                tracing::warn!(
                    file = %path.display(),
                    samples = damaged,
                    missing_bytes = file_bytes() - bytes.len(),
                    "a part of the history of figures was damaged: it is left out"
                );
            }
            file.set_len(file_bytes() as u64)?;
            return Ok(Self { file, path, has_failed: AtomicBool::new(false) });
        }
        Err(io::Error::other(format!("{SERVERS_MAX} servers have files there")))
    }

    fn begin(file: File, path: PathBuf) -> io::Result<Self> {
        file.write_all_at(&header(), 0)?;
        file.set_len(file_bytes() as u64)?;
        Ok(Self { file, path, has_failed: AtomicBool::new(false) })
    }

    /// Puts samples into their places; blocks. What cannot be written is told of once, and is in memory only.
    pub(super) fn write(&self, samples: &[Sample]) {
        for sample in samples {
            let Some(offset) = offset_of(sample) else { continue };
            match self.file.write_all_at(&encoded(sample), offset) {
                Ok(()) => self.has_failed.store(false, Ordering::Relaxed),
                Err(error) if !self.has_failed.swap(true, Ordering::Relaxed) => tracing::warn!(
                    %error,
                    file = %self.path.display(),
                    "the history of figures cannot be written"
                ),
                Err(_) => {}
            }
        }
    }
}

/// The file, if no other process has it.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let mut options = private_files::options();
    let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn file_bytes() -> usize {
    HEADER_BYTES + STEPS.iter().map(|step| step.kept * RECORD_BYTES).sum::<usize>()
}

fn header() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((RECORD_BYTES as u32).to_le_bytes());
    for step in STEPS {
        bytes.extend((step.seconds as u32).to_le_bytes());
        bytes.extend((step.kept as u32).to_le_bytes());
    }
    bytes.resize(HEADER_BYTES - 4, 0);
    let crc = crc_fast::crc32_iscsi(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

/// The steps with the offset of their first place.
fn areas() -> impl Iterator<Item = (Step, usize)> {
    STEPS.into_iter().scan(HEADER_BYTES, |offset, step| {
        let begin = *offset;
        *offset += step.kept * RECORD_BYTES;
        Some((step, begin))
    })
}

fn place_of(unix_ms: i64, step: Step) -> usize {
    usize::try_from(unix_ms.div_euclid(step.ms()).rem_euclid(step.kept as i64)).unwrap_or_default()
}

/// Where a sample belongs; `None` for one of another step.
fn offset_of(sample: &Sample) -> Option<u64> {
    let (step, begin) = areas().find(|(step, _)| step.seconds == sample.step_s)?;
    Some((begin + place_of(sample.unix_ms, step) * RECORD_BYTES) as u64)
}

/// Gives `levels` the samples of a file that are not too old; returns how many were damaged.
fn read(bytes: &[u8], now_ms: i64, levels: &mut Levels) -> usize {
    let mut damaged = 0;
    for (step, begin) in areas() {
        let mut samples = Vec::new();
        for place in 0..step.kept {
            let at = begin + place * RECORD_BYTES;
            let Some(record) = bytes.get(at..at + RECORD_BYTES) else { break };
            if record.iter().all(|byte| *byte == 0) {
                continue;
            }
            match decoded(record, step) {
                Some(sample) if place_of(sample.unix_ms, step) == place => samples.push(sample),
                _ => damaged += 1,
            }
        }
        let kept_ms = step.ms() * step.kept as i64;
        samples
            .retain(|sample| (now_ms - kept_ms..=now_ms + AHEAD_MS_MAX).contains(&sample.unix_ms));
        samples.sort_by_key(|sample| sample.unix_ms);
        samples.into_iter().for_each(|sample| levels.remember(sample));
    }
    damaged
}

fn encoded(sample: &Sample) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(RECORD_BYTES);
    bytes.extend(sample.unix_ms.to_le_bytes());
    numbers(sample).iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    let crc = crc_fast::crc32_iscsi(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes.extend([0; 4]);
    bytes
}

fn decoded(record: &[u8], step: Step) -> Option<Sample> {
    let (sealed, rest) = record.split_at_checked(8 + 8 * NUMBERS)?;
    let (crc, padding) = rest.split_first_chunk::<4>()?;
    if crc_fast::crc32_iscsi(sealed) != u32::from_le_bytes(*crc) || padding != [0; 4] {
        return None;
    }
    let (time, numbers) = sealed.split_first_chunk::<8>()?;
    let mut all = [0.0; NUMBERS];
    for (number, bytes) in all.iter_mut().zip(numbers.as_chunks::<8>().0) {
        *number = f64::from_le_bytes(*bytes);
    }
    Some(sample_of(i64::from_le_bytes(*time), step.seconds, &all))
}

/// The numbers of a sample in the order of the file.
fn numbers(sample: &Sample) -> [f64; NUMBERS] {
    let maybe = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let count = |value: Option<u64>| maybe(value.map(|count| count as f64));
    [
        sample.per_second,
        sample.reused_per_second,
        sample.failed as f64,
        sample.running as f64,
        maybe(sample.p50_ms),
        maybe(sample.p95_ms),
        maybe(sample.p99_ms),
        maybe(sample.short_p99_ms),
        maybe(sample.planned_p99_ms),
        maybe(sample.reused_p99_ms),
        maybe(sample.wait_p99_ms),
        sample.computing as f64,
        sample.waiting as f64,
        sample.cache_bytes as f64,
        maybe(sample.hit_ratio),
        count(sample.fresh_rows),
        maybe(sample.rows_per_second),
        count(sample.appends_waiting),
        maybe(sample.process_cpu_ratio),
        maybe(sample.machine_cpu_ratio),
        maybe(sample.process_read_per_second),
        maybe(sample.process_written_per_second),
        maybe(sample.disk_read_per_second),
        maybe(sample.disk_written_per_second),
        maybe(sample.received_per_second),
        maybe(sample.sent_per_second),
    ]
}

/// The reverse of [`numbers`].
fn sample_of(unix_ms: i64, step_s: u64, numbers: &[f64; NUMBERS]) -> Sample {
    let maybe = |at: usize| Some(numbers[at]).filter(|number| number.is_finite());
    // What is no number of a sample was not written by this.
    let number = |at: usize| maybe(at).unwrap_or_default();
    let count = |at: usize| number(at) as u64;
    Sample {
        unix_ms,
        step_s,
        per_second: number(0),
        reused_per_second: number(1),
        failed: count(2),
        running: count(3),
        p50_ms: maybe(4),
        p95_ms: maybe(5),
        p99_ms: maybe(6),
        short_p99_ms: maybe(7),
        planned_p99_ms: maybe(8),
        reused_p99_ms: maybe(9),
        wait_p99_ms: maybe(10),
        computing: count(11),
        waiting: count(12),
        cache_bytes: count(13),
        hit_ratio: maybe(14),
        fresh_rows: maybe(15).map(|rows| rows as u64),
        rows_per_second: maybe(16),
        appends_waiting: maybe(17).map(|writes| writes as u64),
        process_cpu_ratio: maybe(18),
        machine_cpu_ratio: maybe(19),
        process_read_per_second: maybe(20),
        process_written_per_second: maybe(21),
        disk_read_per_second: maybe(22),
        disk_written_per_second: maybe(23),
        received_per_second: maybe(24),
        sent_per_second: maybe(25),
    }
}

#[cfg(test)]
mod tests;
