//! A disk that behaves as badly as disks do.
//!
//! What is written is seen at once by whoever reads, and is durable after a sync. A power cut keeps
//! any part of what was not synced: page by page, in any order, a page torn at any byte; names
//! likewise. A failed sync leaves its pages readable but counted as clean, so that no later sync
//! writes them (what Linux does). Any operation can be made to fail, or to be the process's last.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stoa_error::{Condition, Error, Result};

use super::file::{Change, File, Keeps};
use super::random::SimRandom;
use crate::storage::disk::{Disk, DiskFile, DiskStorage};
use crate::storage::{LogStorage, StorageLock};

/// What changes a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A file is made.
    Create,
    /// Bytes are written.
    Write,
    /// A file's length is set.
    SetLen,
    /// A file is synced.
    Sync,
    /// A file is renamed.
    Rename,
    /// A file is removed.
    Remove,
    /// The directory is synced.
    SyncNames,
}

/// What happens at a chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails; a write may have happened in part, a failed sync forgets its pages.
    Error,
    /// The process dies in the middle of it: this and every later operation fails.
    Death,
}

/// A simulated disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Mutex<World>>);

#[derive(Debug)]
struct World {
    random: SimRandom,
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending_names: Vec<NameChange>,
    operations: Vec<Operation>,
    faults: BTreeMap<usize, Fault>,
    faulted: bool,
    capacity: Option<u64>,
    /// Counts restarts; handles of an earlier process are dead.
    life: u64,
    dead: bool,
    locked: bool,
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, usize),
    Rename(String, String, usize),
    Remove(String),
}

impl SimDisk {
    /// An empty disk whose faults depend on `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(World {
            random: SimRandom::new(seed),
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            operations: Vec::new(),
            faults: BTreeMap::new(),
            faulted: false,
            capacity: None,
            life: 0,
            dead: false,
            locked: false,
        })))
    }

    /// Storage for a log on this disk.
    pub fn storage(&self) -> Arc<dyn LogStorage> {
        let life = self.0.lock().life;
        Arc::new(DiskStorage::new(Arc::new(SimDirectory { disk: self.clone(), life })))
    }

    /// The operations since the disk was made or restarted last.
    pub fn operations(&self) -> Vec<Operation> {
        self.0.lock().operations.clone()
    }

    /// Lets operation number `operation`, counted from 0 since the last restart, have a fault.
    pub fn inject(&self, operation: usize, fault: Fault) {
        self.0.lock().faults.insert(operation, fault);
    }

    /// Whether a fault has happened since the last restart.
    pub fn has_faulted(&self) -> bool {
        self.0.lock().faulted
    }

    /// Bounds the bytes of all files; a write over it fails half-way. `None` is unbounded.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.0.lock().capacity = bytes;
    }

    /// Ends the process as SIGKILL does: what was written is still there, durable or not.
    pub fn kill(&self) {
        self.0.lock().restart();
    }

    /// Cuts the power: of what was not synced, any part may be gone.
    pub fn power_cut(&self) {
        let mut world = self.0.lock();
        let keeps = match world.random.below(4) {
            0 => Keeps::Nothing,
            1 => Keeps::Everything,
            _ => Keeps::SomePages,
        };
        world.lose(keeps);
        world.restart();
    }

    /// The names of all files.
    pub fn names(&self) -> Vec<String> {
        self.0.lock().names.keys().cloned().collect()
    }

    /// A file's contents as seen by readers; nothing where there is none.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let world = self.0.lock();
        let file = world.names.get(name).and_then(|&index| world.files.get(index))?;
        Some(file.seen.clone())
    }

    /// Replaces a file's contents, durably, as a damaged disk would.
    pub fn overwrite(&self, name: &str, contents: Vec<u8>) {
        let mut world = self.0.lock();
        let index = world.names.get(name).copied();
        if let Some(file) = index.and_then(|index| world.files.get_mut(index)) {
            *file = File::durable(contents);
        }
    }

    /// Takes a file away, durably.
    pub fn lose_file(&self, name: &str) {
        let mut world = self.0.lock();
        world.names.remove(name);
        world.durable_names.remove(name);
    }
}

impl World {
    fn restart(&mut self) {
        self.life += 1;
        self.dead = false;
        self.locked = false;
        self.operations.clear();
        self.faults.clear();
        self.faulted = false;
    }

    fn lose(&mut self, keeps: Keeps) {
        for change in std::mem::take(&mut self.pending_names) {
            if keeps.keeps_one(&mut self.random) {
                change.apply(&mut self.durable_names);
            }
        }
        self.names = self.durable_names.clone();
        for file in &mut self.files {
            file.lose(keeps, &mut self.random);
        }
    }

    /// Counts an operation; the fault it shall have.
    fn begin(&mut self, life: u64, operation: Operation) -> io::Result<Option<Fault>> {
        if self.dead || life != self.life {
            return Err(io::Error::other("simulated: the process is dead"));
        }
        let fault = self.faults.get(&self.operations.len()).copied();
        self.operations.push(operation);
        self.dead = fault == Some(Fault::Death);
        self.faulted |= fault.is_some();
        Ok(fault)
    }

    /// An operation that happens or not, with nothing in between.
    fn begin_whole(&mut self, life: u64, operation: Operation) -> io::Result<()> {
        match self.begin(life, operation)? {
            None => Ok(()),
            Some(fault) => {
                let happened = fault == Fault::Death && self.random.chance(50);
                if happened { Ok(()) } else { Err(broken()) }
            }
        }
    }

    fn used_bytes(&self) -> u64 {
        let in_use = self.names.values().filter_map(|&index| self.files.get(index));
        in_use.map(|file| file.seen.len() as u64).sum()
    }

    fn file(&mut self, index: usize) -> io::Result<&mut File> {
        self.files.get_mut(index).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl NameChange {
    fn apply(self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, index) => {
                names.insert(name, index);
            }
            Self::Rename(from, to, index) => {
                names.remove(&from);
                names.insert(to, index);
            }
            Self::Remove(name) => {
                names.remove(&name);
            }
        }
    }
}

/// The directory of a log, as one process has it open.
#[derive(Debug)]
struct SimDirectory {
    disk: SimDisk,
    life: u64,
}

struct SimFile {
    disk: SimDisk,
    life: u64,
    index: usize,
}

impl SimDirectory {
    fn world(&self) -> MutexGuard<'_, World> {
        self.disk.0.lock()
    }

    fn file(&self, index: usize) -> Box<dyn DiskFile> {
        Box::new(SimFile { disk: self.disk.clone(), life: self.life, index })
    }
}

struct SimLock(SimDisk, u64);

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut world = self.0.0.lock();
        if world.life == self.1 {
            world.locked = false;
        }
    }
}

impl Disk for SimDirectory {
    fn place(&self) -> String {
        "simulated".to_owned()
    }

    fn lock(&self) -> Result<StorageLock> {
        let mut world = self.world();
        if world.life != self.life || std::mem::replace(&mut world.locked, true) {
            return Err(Error::unavailable("another process has the log simulated open")
                .with_condition(Condition::ObjectInUse));
        }
        Ok(StorageLock::held_by(SimLock(self.disk.clone(), self.life)))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.world().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.world();
        world.begin_whole(self.life, Operation::Create)?;
        let index = world.files.len();
        world.files.push(File::default());
        world.names.insert(name.to_owned(), index);
        world.pending_names.push(NameChange::Create(name.to_owned(), index));
        Ok(self.file(index))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let index = self.world().names.get(name).copied();
        index.map(|index| self.file(index)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.world();
        world.begin_whole(self.life, Operation::Rename)?;
        let index = world.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        world.names.insert(to.to_owned(), index);
        world.pending_names.push(NameChange::Rename(from.to_owned(), to.to_owned(), index));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.world();
        world.begin_whole(self.life, Operation::Remove)?;
        world.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        world.pending_names.push(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut world = self.world();
        world.begin_whole(self.life, Operation::SyncNames)?;
        for change in std::mem::take(&mut world.pending_names) {
            change.apply(&mut world.durable_names);
        }
        Ok(())
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().file(self.index)?.seen.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut world = self.disk.0.lock();
        let seen = &world.file(self.index)?.seen;
        let rest = usize::try_from(offset).ok().and_then(|at| seen.get(at..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.disk.0.lock();
        let fault = world.begin(self.life, Operation::Write)?;
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let grows = (offset + bytes.len()).saturating_sub(world.file(self.index)?.seen.len());
        let left = world.capacity.map(|capacity| capacity.saturating_sub(world.used_bytes()));
        let full = left.is_some_and(|left| grows as u64 > left);
        let partial = fault.is_some() || full;
        let count =
            if partial { world.random.below(bytes.len() as u64) as usize } else { bytes.len() };
        let written = bytes.get(..count).unwrap_or_default().to_vec();
        world.file(self.index)?.change(Change::Write { offset, bytes: written });
        match (fault, full) {
            (Some(_), _) => Err(broken()),
            (None, true) => Err(io::ErrorKind::StorageFull.into()),
            (None, false) => Ok(()),
        }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut world = self.disk.0.lock();
        world.begin_whole(self.life, Operation::SetLen)?;
        let len = usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        world.file(self.index)?.change(Change::SetLen(len));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.disk.0.lock();
        match world.begin(self.life, Operation::Sync)? {
            None => {
                world.file(self.index)?.sync();
                Ok(())
            }
            Some(Fault::Death) => Err(broken()),
            Some(Fault::Error) => {
                let mut random = world.random.clone();
                world.file(self.index)?.fail_sync(&mut random);
                world.random = random;
                Err(broken())
            }
        }
    }
}

fn broken() -> io::Error {
    io::Error::other("simulated: input/output error")
}
