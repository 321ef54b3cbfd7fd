//! Noticing that an object was overwritten between two reads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::ObjectMeta;
use object_store::path::Path;

/// The content of one object, by its ETag (or, where a store has none, time and size): set by the
/// first read, and all later ones must find the same. For a [`RangeReader`] and one object only.
///
/// [`RangeReader`]: crate::RangeReader
#[derive(Debug, Default)]
pub struct Pin {
    tag: OnceLock<Box<str>>,
    broken: AtomicBool,
}

impl Pin {
    /// What the object was called by the first answer; `None` before it.
    pub fn tag(&self) -> Option<&str> {
        self.tag.get().map(AsRef::as_ref)
    }

    /// Whether a read found another content than the first. It stays so.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Takes note of what `path` is by the answer to a read.
    pub(crate) fn check(&self, path: &Path, found: &ObjectMeta) -> object_store::Result<()> {
        let tag: Box<str> = match &found.e_tag {
            Some(tag) => tag.as_str().into(),
            None => format!("{}-{}", found.last_modified.timestamp_micros(), found.size).into(),
        };
        let known = self.tag.get_or_init(|| tag.clone());
        if *known == tag {
            return Ok(());
        }
        self.broken.store(true, Ordering::Release);
        let source = format!("it was {known} and is {tag}").into();
        Err(object_store::Error::Precondition { path: path.to_string(), source })
    }
}
