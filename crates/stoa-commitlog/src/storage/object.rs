//! Segments as objects: put whole, under a number that must not exist.
//!
//! ```text
//! writer A, epoch 1:  1 (claim)  2  3  4        5? refused: A is fenced, its log stops
//! writer B, epoch 2:                      5 (claim)  6  7
//! ```
//! An opening puts an empty segment under the next number. Whoever wrote before needs that very
//! number next and is refused. The claims of the last openings are kept after everything around
//! them was released, so that a writer that slept for long is refused too.
//!
//! A refused put may have been one's own, whose answer was lost: the object is read and compared. Where there is no
//! object, the store was busy with another put of the same name (S3 answers 409), and the put is repeated.
//!
//! A store that cannot be reached, or whose answer is lost, is asked again for some time: appends wait meanwhile.
//! That is safe, as the number is put once at most, whoever puts it.
//!
//! A store that puts where it should refuse would lose the fence without a word. So an opening first puts
//! an object twice, and does not use a store that takes it twice.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use stoa_env::clock::monotonic;
use stoa_error::{Error, ErrorKind, Result};
use tokio::runtime::Handle;

use super::error::object_error;
use super::{
    LogStorage, SegmentBytes, SegmentWriter, StorageKind, StorageLock, file_name, number_of,
};

/// An object that is put twice, to see whether the store refuses.
const PROOF: &str = "put-if-absent";

/// The first wait before a put is repeated; doubles each time.
const WAIT_MIN: Duration = Duration::from_millis(50);

/// The longest.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A log under `prefix` of an object store that knows put-if-absent. A store that cannot be reached is asked again
/// for `patience` before an append fails and the log stops.
///
/// `runtime` drives the store's requests; it must have threads of its own, as the log's calls
/// block while they wait for it.
pub fn object_storage(
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    runtime: Handle,
    patience: Duration,
) -> Arc<dyn LogStorage> {
    Arc::new(ObjectStorage { shared: Arc::new(Shared { store, prefix, runtime, patience }) })
}

struct ObjectStorage {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    runtime: Handle,
    patience: Duration,
}

impl Shared {
    fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    fn put(&self, path: &Path, bytes: Bytes, mode: PutMode) -> object_store::Result<()> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.store.put_opts(path, PutPayload::from_bytes(bytes), options);
        self.runtime.block_on(put).map(drop)
    }

    fn get(&self, path: &Path) -> object_store::Result<Bytes> {
        self.runtime.block_on(async { self.store.get(path).await?.bytes().await })
    }

    fn delete(&self, path: &Path) -> Result<()> {
        match self.runtime.block_on(self.store.delete(path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(object_error("remove", path.as_ref(), source)),
        }
    }

    /// Puts `bytes` unless there is an object of other bytes. Asks again while the store cannot be reached.
    fn put_once(&self, path: &Path, bytes: Bytes) -> Result<()> {
        let (began, mut wait, mut is_told) = (monotonic(), WAIT_MIN, false);
        loop {
            let error = match self.try_put(path, &bytes) {
                Ok(()) => break,
                Err(error) if error.kind() != ErrorKind::Unavailable => return Err(error),
                Err(error) if began.elapsed() + wait > self.patience => return Err(error),
                Err(error) => error,
            };
            if !std::mem::replace(&mut is_told, true) {
                tracing::warn!(%error, %path, "the store of the commit log fails; appends wait for it");
            }
            self.runtime.block_on(async { stoa_env::timer::sleep(wait).await });
            wait = (wait * 2).min(WAIT_MAX);
        }
        if is_told {
            let waited_ms = began.elapsed().as_millis();
            tracing::info!(%path, waited_ms, "the store of the commit log is back");
        }
        Ok(())
    }

    /// Puts `bytes`, or finds that they are there. `Conflict` where others are; `Unavailable` where it may be tried again.
    fn try_put(&self, path: &Path, bytes: &Bytes) -> Result<()> {
        let refused = match self.put(path, bytes.clone(), PutMode::Create) {
            Ok(()) => return Ok(()),
            Err(source @ object_store::Error::AlreadyExists { .. }) => source,
            Err(source) => return Err(object_error("put", path.as_ref(), source)),
        };
        match self.get(path) {
            Ok(there) if there == bytes => Ok(()),
            Ok(_) => Err(object_error("put", path.as_ref(), refused)
                .with_hint("another daemon has taken this log over")),
            Err(object_store::Error::NotFound { .. }) => {
                Err(Error::unavailable(format!("{path} cannot be put: the store is busy with it"))
                    .with_hint("look whether the store answers 409 to each conditional put"))
            }
            Err(source) => Err(object_error("read", path.as_ref(), source)),
        }
    }

    /// Makes sure that the store refuses to put what is there.
    fn prove_put_if_absent(&self) -> Result<()> {
        let path = self.path(PROOF);
        for bytes in [&b"1"[..], b"2"] {
            match self.put(&path, Bytes::from_static(bytes), PutMode::Create) {
                Ok(()) => {}
                Err(object_store::Error::AlreadyExists { .. }) => return Ok(()),
                Err(source) => return Err(object_error("put", path.as_ref(), source)),
            }
        }
        Err(Error::unsupported(format!(
            "{} puts objects that exist: it ignores If-None-Match, and could not tell two writers apart",
            self.store
        ))
        .with_hint("keep commit logs on a local disk, or in a store with conditional writes"))
    }
}

impl fmt::Debug for ObjectStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectStorage").field("place", &self.place()).finish()
    }
}

impl LogStorage for ObjectStorage {
    fn place(&self) -> String {
        format!("{} {}", self.shared.store, self.shared.prefix)
    }

    fn kind(&self) -> StorageKind {
        StorageKind::PutIfAbsent
    }

    fn lock(&self) -> Result<StorageLock> {
        self.shared.prove_put_if_absent()?;
        Ok(StorageLock::none())
    }

    fn segments(&self) -> Result<Vec<u64>> {
        let shared = &self.shared;
        let listing = shared.store.list(Some(&shared.prefix)).try_collect::<Vec<_>>();
        let objects = shared
            .runtime
            .block_on(listing)
            .map_err(|source| object_error("list", shared.prefix.as_ref(), source))?;
        let directly = |path: &Path| path.parts_count() == shared.prefix.parts_count() + 1;
        let mut numbers: Vec<u64> = objects
            .iter()
            .filter(|object| directly(&object.location))
            .filter_map(|object| number_of(object.location.filename()?))
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn segment_name(&self, number: u64) -> String {
        self.shared.path(&file_name(number)).to_string()
    }

    fn open(&self, number: u64) -> Result<Box<dyn SegmentBytes>> {
        let path = self.shared.path(&file_name(number));
        let bytes =
            self.shared.get(&path).map_err(|source| object_error("read", path.as_ref(), source))?;
        Ok(Box::new(ObjectBytes(bytes)))
    }

    fn create(&self, number: u64, header: &[u8]) -> Result<Box<dyn SegmentWriter>> {
        Ok(Box::new(ObjectWriter {
            shared: self.shared.clone(),
            path: self.shared.path(&file_name(number)),
            pending: header.to_vec(),
            put: false,
        }))
    }

    fn settle(&self, number: u64, _bytes: u64, _unproven: u64) -> Result<()> {
        let name = self.segment_name(number);
        Err(Error::unsupported(format!("cannot cut {name}: objects arrive whole")))
    }

    fn set_aside(&self, number: u64, keep: u64) -> Result<String> {
        let path = self.shared.path(&file_name(number));
        let name = format!("{}.damaged", file_name(number));
        let copy = self.shared.path(&name);
        let read = self.shared.get(&path);
        let bytes = read.map_err(|source| object_error("read", path.as_ref(), source))?;
        let kept = usize::try_from(keep).unwrap_or(usize::MAX).min(bytes.len());
        let kept = bytes.slice(..kept);
        self.shared.put_once(&copy, bytes)?;
        if kept.is_empty() {
            self.shared.delete(&path)?;
            return Ok(name);
        }
        self.shared
            .put(&path, kept, PutMode::Overwrite)
            .map_err(|source| object_error("put", path.as_ref(), source))?;
        Ok(name)
    }

    fn remove(&self, number: u64) -> Result<()> {
        self.shared.delete(&self.shared.path(&file_name(number)))
    }
}

struct ObjectBytes(Bytes);

impl SegmentBytes for ObjectBytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let rest = self.0.get(from..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }
}

struct ObjectWriter {
    shared: Arc<Shared>,
    path: Path,
    pending: Vec<u8>,
    put: bool,
}

impl SegmentWriter for ObjectWriter {
    fn append(&mut self, bytes: &[u8], blank: usize) -> Result<()> {
        // An object ends where its bytes end: it arrives whole.
        let frames = bytes.len().saturating_sub(blank);
        self.pending.extend_from_slice(bytes.get(..frames).unwrap_or_default());
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if self.put {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.pending));
        self.shared.put_once(&self.path, bytes)?;
        self.put = true;
        Ok(())
    }

    fn takes_more(&self) -> bool {
        !self.put
    }
}
