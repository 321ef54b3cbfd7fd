//! Where entries are, and the files they are in.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use stoa_env::private_files;

use super::segment::{DiskKey, entries_of};

/// The bound is split into so many segments, where their sizes allow.
const SEGMENTS: u64 = 64;

/// Sizes of a segment, bytes. Offsets have 32 bits.
const SEGMENT_BYTES: RangeInclusive<u64> = 64 << 10..=2 << 30;

/// Where the entries of a folder are.
#[derive(Default)]
pub(super) struct Index {
    folder: PathBuf,
    bytes_max: u64,
    segment_bytes: u64,
    places: HashMap<u64, EntryExtent>,
    /// By number, which is by age.
    segments: BTreeMap<u32, Segment>,
    /// The one that is appended to.
    current: Option<u32>,
    next: u32,
    bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct EntryExtent {
    segment: u32,
    offset: u32,
    bytes: u32,
}

struct Segment {
    file: Arc<File>,
    path: PathBuf,
    bytes: u64,
}

/// An entry that the index has.
pub(super) struct IndexedEntry {
    place: EntryExtent,
    file: Arc<File>,
    /// Whether it soon goes.
    pub(super) is_old: bool,
}

impl IndexedEntry {
    /// The entry's bytes; `None` where they cannot be read.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.place.bytes as usize];
        self.file.read_exact_at(&mut bytes, self.place.offset.into()).ok()?;
        Some(bytes)
    }
}

impl Index {
    /// Makes the folder, and keeps other processes out until the file is closed.
    pub(super) fn lock_folder(folder: &Path) -> io::Result<File> {
        private_files::create_directories(folder)?;
        let mut options = private_files::options();
        let lock = options.create(true).truncate(false).write(true).open(folder.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(TryLockError::WouldBlock) => {
                Err(io::Error::other("another process uses the folder"))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Finds the entries of a folder. They can be found one segment after another.
    pub(super) fn load(index: &Mutex<Self>, folder: &Path, bytes_max: u64) -> io::Result<()> {
        let mut segments = Vec::new();
        for file in std::fs::read_dir(folder)? {
            let file = file?;
            segments.extend(number_of(&file.file_name()).map(|number| (number, file.path())));
        }
        segments.sort_unstable();
        {
            let mut index = index.lock();
            index.folder = folder.to_owned();
            index.bytes_max = bytes_max;
            index.segment_bytes =
                (bytes_max / SEGMENTS).clamp(*SEGMENT_BYTES.start(), *SEGMENT_BYTES.end());
            index.next = segments.last().map_or(0, |(number, _)| number + 1);
        }
        // The newest first: where the bound is lower than it was, the oldest are not even read.
        for (number, path) in segments.into_iter().rev() {
            let file = File::open(&path)?;
            let bytes = file.metadata()?.len();
            let has_room = index.lock().bytes.saturating_add(bytes) <= bytes_max;
            if !has_room || bytes > *SEGMENT_BYTES.end() {
                std::fs::remove_file(&path)?;
                continue;
            }
            let entries = entries_of(&file, bytes);
            index.lock().add(number, Segment { file: Arc::new(file), path, bytes }, entries);
        }
        Ok(())
    }

    fn add(&mut self, number: u32, segment: Segment, entries: Vec<(u64, u64, u64)>) {
        self.bytes += segment.bytes;
        self.segments.insert(number, segment);
        for (hash, offset, bytes) in entries {
            let place = EntryExtent { segment: number, offset: offset as u32, bytes: bytes as u32 };
            let known = self.places.entry(hash).or_insert(place);
            // Of two the later counts.
            if known.segment <= number {
                *known = place;
            }
        }
    }

    pub(super) fn find(&self, key: &DiskKey) -> Option<IndexedEntry> {
        let place = *self.places.get(&key.hash())?;
        let segment = self.segments.get(&place.segment)?;
        let newer = self.segments.range(place.segment..).count();
        // Nothing goes before the bound is near.
        let is_near = self.bytes > self.bytes_max / 4 * 3;
        let is_old = is_near && newer > self.segments.len().div_ceil(2);
        Some(IndexedEntry { place, file: segment.file.clone(), is_old })
    }

    /// Forgets an entry that turned out to be none.
    pub(super) fn forget(&mut self, key: &DiskKey, found: &IndexedEntry) {
        let hash = key.hash();
        if self.places.get(&hash) == Some(&found.place) {
            self.places.remove(&hash);
        }
    }

    /// Writes an entry; false for one that is too large. For one thread only; the lock is free
    /// while the disk works.
    pub(super) fn append(index: &Mutex<Self>, key: &DiskKey, entry: &[u8]) -> io::Result<bool> {
        let bytes = entry.len() as u64;
        let (number, file, offset) = {
            let mut index = index.lock();
            if bytes > index.segment_bytes.min(index.bytes_max) {
                return Ok(false);
            }
            let (number, offset) = index.room_for(bytes)?;
            let Some(segment) = index.segments.get(&number) else { return Ok(false) };
            (number, segment.file.clone(), offset)
        };
        let written = file.write_all_at(entry, offset);
        if written.is_err() {
            // For the bound's sake; no entry is there in any case.
            let _ = file.set_len(offset);
        }
        let mut index = index.lock();
        if written.is_err() {
            index.give_back(number, bytes);
        } else if index.segments.contains_key(&number) {
            let place = EntryExtent { segment: number, offset: offset as u32, bytes: bytes as u32 };
            index.places.insert(key.hash(), place);
        }
        written.map(|()| true)
    }

    /// Takes room in the current segment or a new one, and lets go of old ones for it.
    fn room_for(&mut self, bytes: u64) -> io::Result<(u32, u64)> {
        while self.bytes + bytes > self.bytes_max {
            let Some(oldest) = self.segments.keys().next().copied() else { break };
            self.drop_segment(oldest)?;
            self.places.retain(|_, place| place.segment != oldest);
        }
        let has_room = |segment: &Segment| segment.bytes + bytes <= self.segment_bytes;
        let number = match self.current {
            Some(number) if self.segments.get(&number).is_some_and(has_room) => number,
            _ => self.begin_segment()?,
        };
        let Some(segment) = self.segments.get_mut(&number) else {
            return Err(io::Error::other("a segment is gone"));
        };
        let offset = segment.bytes;
        segment.bytes += bytes;
        self.bytes += bytes;
        Ok((number, offset))
    }

    fn give_back(&mut self, number: u32, bytes: u64) {
        if let Some(segment) = self.segments.get_mut(&number) {
            segment.bytes -= bytes;
            self.bytes -= bytes;
        }
    }

    fn begin_segment(&mut self) -> io::Result<u32> {
        let number = self.next;
        let path = self.folder.join(format!("chunks-{number:08}.seg"));
        let mut options = private_files::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path)?;
        self.next += 1;
        self.current = Some(number);
        self.segments.insert(number, Segment { file: Arc::new(file), path, bytes: 0 });
        Ok(number)
    }

    fn drop_segment(&mut self, number: u32) -> io::Result<()> {
        let Some(segment) = self.segments.remove(&number) else { return Ok(()) };
        self.bytes -= segment.bytes;
        if self.current == Some(number) {
            self.current = None;
        }
        match std::fs::remove_file(&segment.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Deletes all entries.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.places.clear();
        let numbers: Vec<u32> = self.segments.keys().copied().collect();
        numbers.into_iter().try_for_each(|number| self.drop_segment(number))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn entries(&self) -> u64 {
        self.places.len() as u64
    }
}

fn number_of(name: &std::ffi::OsStr) -> Option<u32> {
    name.to_str()?.strip_prefix("chunks-")?.strip_suffix(".seg")?.parse().ok()
}
