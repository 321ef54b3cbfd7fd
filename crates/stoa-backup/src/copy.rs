//! Copying files from one store to another, with their checksums.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use futures::{Stream, StreamExt};
use object_store::{ObjectStoreExt, PutPayload};
use stoa_error::{Error, ErrorKind, Result};
use stoa_store::{Location, Stores, Upload, from_object_store};

/// Files that are copied at once.
pub(crate) const AT_ONCE: usize = 8;

/// Larger files are written in parts.
const PART_BYTES: usize = 8 << 20;

/// Parts of one file that are on their way at once.
const PARTS_AT_ONCE: usize = 2;

/// How far a backup, a restore or a check is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files that are done.
    pub files: usize,
    /// All files.
    pub files_total: usize,
    /// Bytes that were copied or read.
    pub bytes: u64,
}

/// What the bytes of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: u64,
    pub(crate) crc32c: u32,
}

/// Adds up a CRC-32C.
struct Sum {
    digest: Digest,
    bytes: u64,
}

impl Sum {
    fn new() -> Self {
        Self { digest: Digest::new(CrcAlgorithm::Crc32Iscsi), bytes: 0 }
    }

    fn add(&mut self, part: &[u8]) {
        self.digest.update(part);
        self.bytes += part.len() as u64;
    }

    fn content(self) -> Content {
        // The upper half of a CRC-32 is 0.
        Content { bytes: self.bytes, crc32c: self.digest.finalize() as u32 }
    }
}

/// The size of a file, or `None` where there is none.
pub(crate) async fn size_of(place: &Location, literal: &str) -> Result<Option<u64>> {
    match place.store.head(&place.path).await {
        Ok(meta) => Ok(Some(meta.size)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(source) => Err(from_object_store(literal, source)),
    }
}

/// What the file at `literal` holds.
///
/// # Errors
/// `NotFound` where it is gone; `Unavailable` where the store fails.
pub(crate) async fn content_of(stores: &Stores, literal: &str) -> Result<Content> {
    let place = stores.resolve(literal)?;
    let failed = |source| from_object_store(literal, source);
    let mut parts = place.store.get(&place.path).await.map_err(failed)?.into_stream();
    let mut sum = Sum::new();
    while let Some(part) = parts.next().await {
        sum.add(&part.map_err(failed)?);
    }
    Ok(sum.content())
}

/// The bytes of a small file.
pub(crate) async fn read(stores: &Stores, literal: &str) -> Result<Bytes> {
    let place = stores.resolve(literal)?;
    let get = async { place.store.get(&place.path).await?.bytes().await };
    get.await.map_err(|source| from_object_store(literal, source))
}

/// Writes a small new file, durable when this returns.
pub(crate) async fn write(stores: &Stores, literal: &str, bytes: Bytes) -> Result<Content> {
    let place = stores.resolve(literal)?;
    let mut sum = Sum::new();
    sum.add(&bytes);
    place.put_new(&bytes).await.map_err(|source| from_object_store(literal, source))?;
    Ok(sum.content())
}

/// Copies a file to a place where there is none; durable when this returns.
///
/// # Errors
/// `NotFound` where the file is gone; `AlreadyExists` where another one is there; `Unavailable` where a store fails.
pub(crate) async fn copy(stores: &Stores, from: &str, to: &str) -> Result<Content> {
    let source = stores.resolve(from)?;
    let target = stores.resolve(to)?;
    let unread = |error| from_object_store(from, error);
    let unwritten = |error| from_object_store(to, error);
    let found = source.store.get(&source.path).await.map_err(unread)?;
    let size = found.meta.size;
    if size <= PART_BYTES as u64 {
        return write(stores, to, found.bytes().await.map_err(unread)?).await;
    }
    if size_of(&target, to).await?.is_some() {
        return Err(Error::already_exists(format!("{to} is there already")));
    }
    let mut upload = Upload::begin(&target.store, &target.path).await.map_err(unwritten)?;
    let sent = send(found.into_stream(), &mut upload, &unread, &unwritten).await;
    let sent = sent.and_then(|content| match content.bytes == size {
        true => Ok(content),
        false => Err(Error::new(
            ErrorKind::Unavailable,
            format!("{from} has {size} bytes, of which {} could be read", content.bytes),
        )),
    });
    if sent.is_err() {
        // Waited for, as the process may end next. What the store says to it is of no use beside the first error.
        let _ = upload.abort().await;
        return sent;
    }
    upload.complete().await.map_err(unwritten)?;
    sent
}

/// Sends what is read in parts.
async fn send(
    mut read: impl Stream<Item = object_store::Result<Bytes>> + Unpin,
    upload: &mut Upload,
    unread: &impl Fn(object_store::Error) -> Error,
    unwritten: &impl Fn(object_store::Error) -> Error,
) -> Result<Content> {
    let (mut sum, mut part, mut bytes) = (Sum::new(), Vec::new(), 0);
    while let Some(piece) = read.next().await {
        let piece = piece.map_err(unread)?;
        sum.add(&piece);
        bytes += piece.len();
        part.push(piece);
        if bytes >= PART_BYTES {
            bytes = 0;
            let full = PutPayload::from_iter(std::mem::take(&mut part));
            upload.put_part(full, PARTS_AT_ONCE).await.map_err(unwritten)?;
        }
    }
    if !part.is_empty() {
        upload.put_part(PutPayload::from_iter(part), PARTS_AT_ONCE).await.map_err(unwritten)?;
    }
    Ok(sum.content())
}
