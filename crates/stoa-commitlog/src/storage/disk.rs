//! Segments as files of one directory, on a real or a simulated disk.
//!
//! ```text
//! 000…7.log.tmp ─┐
//! 000…3.spare ───┴─header, fsync──► rename to 000…7.log ──fsync directory──► frames may follow
//!       ▲                                                    │ released
//!       └──────────────────────── rename ◄───────────────────┘
//! ```
//! A few released segments are kept as spares, since writing over blocks that a file has is synced
//! faster than growing it: that needs no change of the file system's own records. What an earlier
//! use left in them lies behind the blank that ends the log, and its sequences are lower.
//!
//! Nothing refers to a `.tmp` file; the next opening removes it. `LOCK` belongs to the disk.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use stoa_error::{Error, Result};

use crate::frame;

use super::error::disk_error;
use super::{
    LogStorage, SegmentBytes, SegmentWriter, StorageKind, StorageLock, file_name, number_of,
};

const UNFINISHED: &str = ".tmp";
const SPARE: &str = ".spare";
const DAMAGED: &str = ".damaged";

/// Most spares: with segments of 64 MiB a quarter of a GiB, about what one flush releases.
const SPARES_MAX: usize = 4;
const COPY_BYTES: usize = 1 << 20;

/// What a disk does, as far as a log needs it. Durable is only what a sync covered.
pub(crate) trait Disk: Debug + Send + Sync {
    fn place(&self) -> String;
    fn lock(&self) -> Result<StorageLock>;
    fn names(&self) -> io::Result<Vec<String>>;
    /// Makes an empty file, in place of one that exists.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renamings and removals durable.
    fn sync_names(&self) -> io::Result<()>;
}

/// An open file.
pub(crate) trait DiskFile: Send {
    fn len(&self) -> io::Result<u64>;
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Makes contents and length durable.
    fn sync(&self) -> io::Result<()>;
}

/// A log on a disk.
#[derive(Debug)]
pub(crate) struct DiskStorage {
    disk: Arc<dyn Disk>,
    place: String,
}

impl DiskStorage {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        let place = disk.place();
        Self { disk, place }
    }

    fn failed<'a>(&'a self, what: &'a str, name: &'a str) -> impl Fn(io::Error) -> Error + 'a {
        move |source| disk_error(&self.place, what, name, source)
    }

    fn copy(&self, from: &str, to: &str) -> Result<()> {
        let source = self.disk.open(from).map_err(self.failed("open", from))?;
        let target = self.disk.create(to).map_err(self.failed("create", to))?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut offset = 0;
        loop {
            let count = source.read_at(offset, &mut buffer).map_err(self.failed("read", from))?;
            let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else { break };
            target.write_at(offset, read).map_err(self.failed("write", to))?;
            offset += count as u64;
        }
        target.sync().map_err(self.failed("sync", to))
    }

    fn sync_names(&self) -> Result<()> {
        self.disk.sync_names().map_err(self.failed("sync the directory", ""))
    }

    fn names(&self) -> Result<Vec<String>> {
        self.disk.names().map_err(self.failed("list", ""))
    }

    /// A file for a new segment, and its name so far: a spare, or an empty one.
    fn take_file(&self, number: u64) -> Result<(Box<dyn DiskFile>, String)> {
        if let Some(spare) = self.names()?.into_iter().find(|name| name.ends_with(SPARE)) {
            let file = self.disk.open(&spare).map_err(self.failed("open", &spare))?;
            return Ok((file, spare));
        }
        let name = format!("{}{UNFINISHED}", file_name(number));
        let file = self.disk.create(&name).map_err(self.failed("create", &name))?;
        Ok((file, name))
    }

    fn free_name(&self, number: u64) -> Result<String> {
        let names = self.names()?;
        let first = format!("{}{DAMAGED}", file_name(number));
        let others = (2..).map(|n: u64| format!("{first}{n}"));
        let mut candidates = std::iter::once(first.clone()).chain(others);
        Ok(candidates.find(|name| !names.contains(name)).unwrap_or(first))
    }
}

impl LogStorage for DiskStorage {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Appendable
    }

    fn lock(&self) -> Result<StorageLock> {
        let lock = self.disk.lock()?;
        let names = self.names()?;
        for name in names.iter().filter(|name| name.ends_with(UNFINISHED)) {
            self.disk.remove(name).map_err(self.failed("remove", name))?;
        }
        // What names an earlier process has changed must not change back any more: a spare that
        // became a segment again would be one too many.
        self.sync_names()?;
        Ok(lock)
    }

    fn segments(&self) -> Result<Vec<u64>> {
        let mut numbers: Vec<u64> =
            self.names()?.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn segment_name(&self, number: u64) -> String {
        format!("{}/{}", self.place, file_name(number))
    }

    fn open(&self, number: u64) -> Result<Box<dyn SegmentBytes>> {
        let name = file_name(number);
        let file = self.disk.open(&name).map_err(self.failed("open", &name))?;
        let len = file.len().map_err(self.failed("measure", &name))?;
        Ok(Box::new(FileBytes { file, len, name, place: self.place.clone() }))
    }

    fn create(&self, number: u64, header: &[u8]) -> Result<Box<dyn SegmentWriter>> {
        let name = file_name(number);
        let (file, unfinished) = self.take_file(number)?;
        let blank = [header, &[0; frame::HEADER_BYTES]].concat();
        file.write_at(0, &blank).map_err(self.failed("write", &unfinished))?;
        file.sync().map_err(self.failed("sync", &unfinished))?;
        self.disk.rename(&unfinished, &name).map_err(self.failed("rename", &unfinished))?;
        self.sync_names()?;
        Ok(Box::new(FileWriter {
            file,
            end: header.len() as u64,
            synced: true,
            name,
            place: self.place.clone(),
        }))
    }

    fn settle(&self, number: u64, bytes: u64, unproven: u64) -> Result<()> {
        let name = file_name(number);
        let file = self.disk.open(&name).map_err(self.failed("open", &name))?;
        file.set_len(bytes).map_err(self.failed("cut", &name))?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut offset = unproven;
        while offset < bytes {
            let want = usize::try_from(bytes - offset).unwrap_or(COPY_BYTES).min(COPY_BYTES);
            let place = buffer.get_mut(..want).unwrap_or_default();
            let count = file.read_at(offset, place).map_err(self.failed("read", &name))?;
            let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else { break };
            file.write_at(offset, read).map_err(self.failed("write", &name))?;
            offset += count as u64;
        }
        file.sync().map_err(self.failed("sync", &name))
    }

    fn set_aside(&self, number: u64, keep: u64) -> Result<String> {
        let name = file_name(number);
        let copy = self.free_name(number)?;
        if keep == 0 {
            self.disk.rename(&name, &copy).map_err(self.failed("rename", &name))?;
            self.sync_names()?;
            return Ok(copy);
        }
        self.copy(&name, &copy)?;
        self.sync_names()?;
        self.settle(number, keep, keep)?;
        Ok(copy)
    }

    fn remove(&self, number: u64) -> Result<()> {
        let name = file_name(number);
        let spares = self.names()?.iter().filter(|name| name.ends_with(SPARE)).count();
        let removed = if spares < SPARES_MAX {
            self.disk.rename(&name, &format!("{number:020}{SPARE}"))
        } else {
            self.disk.remove(&name)
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(self.failed("remove", &name)(error));
            }
            _ => {}
        }
        // One by one, so that a crash cannot leave a gap.
        self.sync_names()
    }
}

struct FileBytes {
    file: Box<dyn DiskFile>,
    len: u64,
    name: String,
    place: String,
}

impl SegmentBytes for FileBytes {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.file
            .read_at(offset, buffer)
            .map_err(|source| disk_error(&self.place, "read", &self.name, source))
    }
}

struct FileWriter {
    file: Box<dyn DiskFile>,
    end: u64,
    synced: bool,
    name: String,
    place: String,
}

impl SegmentWriter for FileWriter {
    fn append(&mut self, bytes: &[u8], blank: usize) -> Result<()> {
        self.synced = false;
        self.file
            .write_at(self.end, bytes)
            .map_err(|source| disk_error(&self.place, "write", &self.name, source))?;
        self.end += bytes.len().saturating_sub(blank) as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if self.synced {
            return Ok(());
        }
        self.file.sync().map_err(|source| disk_error(&self.place, "sync", &self.name, source))?;
        self.synced = true;
        Ok(())
    }

    fn takes_more(&self) -> bool {
        true
    }
}
