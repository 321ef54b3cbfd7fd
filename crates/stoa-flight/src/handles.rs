//! What the server keeps for clients under random names: sessions, statements, queries.
//!
//! **Invariant:** bounded. When full, the one that was not used for longest goes; what nobody used
//! for [`Handles::idle_max`] goes, too. Not a cache of `quick_cache`: that may drop what was used just
//! now for something else, and a client cannot get it back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use stoa_env::{clock, random};

/// Bytes of a handle.
const HANDLE_BYTES: usize = 16;

/// A name that nobody can guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle([u8; HANDLE_BYTES]);

impl Handle {
    fn new() -> Self {
        let number = u128::from(random::u64()) << 64 | u128::from(random::u64());
        Self(number.to_be_bytes())
    }

    pub(crate) fn bytes(self) -> Bytes {
        Bytes::copy_from_slice(&self.0)
    }

    /// As a token: hexadecimal digits.
    pub(crate) fn text(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// `None` for what no handle looks like.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// As [`Self::read`], for [`Self::text`].
    pub(crate) fn read_text(text: &str) -> Option<Self> {
        if text.len() != 2 * HANDLE_BYTES || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()))
    }
}

/// Things under handles.
pub(crate) struct Handles<T> {
    things: Mutex<HashMap<Handle, Kept<T>>>,
    count_max: usize,
    idle_max: Duration,
}

struct Kept<T> {
    thing: Arc<T>,
    used: Instant,
}

impl<T> Handles<T> {
    pub(crate) fn new(count_max: usize, idle_max: Duration) -> Self {
        Self { things: Mutex::default(), count_max: count_max.max(1), idle_max }
    }

    pub(crate) fn insert(&self, thing: T) -> Handle {
        let handle = Handle::new();
        let mut things = self.things.lock();
        if things.len() >= self.count_max
            && let Some(oldest) = things.iter().min_by_key(|(_, kept)| kept.used)
        {
            let oldest = *oldest.0;
            things.remove(&oldest);
        }
        things.insert(handle, Kept { thing: Arc::new(thing), used: clock::monotonic() });
        handle
    }

    /// What is kept under a handle, which counts as used now.
    pub(crate) fn get(&self, handle: Handle) -> Option<Arc<T>> {
        let mut things = self.things.lock();
        let kept = things.get_mut(&handle)?;
        kept.used = clock::monotonic();
        Some(Arc::clone(&kept.thing))
    }

    pub(crate) fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        self.things.lock().remove(&handle).map(|kept| kept.thing)
    }

    /// Lets go of that one of the chosen which was not used for longest; `false` where there is none.
    pub(crate) fn remove_oldest(&self, is_chosen: impl Fn(&T) -> bool) -> bool {
        let mut things = self.things.lock();
        let chosen = things.iter().filter(|(_, kept)| is_chosen(&kept.thing));
        let oldest = chosen.min_by_key(|(_, kept)| kept.used).map(|(handle, _)| *handle);
        oldest.is_some_and(|oldest| things.remove(&oldest).is_some())
    }

    /// Lets go of what nobody used lately, unless somebody is using it.
    pub(crate) fn forget_idle(&self) {
        let now = clock::monotonic();
        self.things.lock().retain(|_, kept| {
            Arc::strong_count(&kept.thing) > 1
                || now.saturating_duration_since(kept.used) < self.idle_max
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_as_it_was_written() {
        let handle = Handle::new();
        assert_eq!(Handle::read(&handle.bytes()), Some(handle));
        assert_eq!(Handle::read_text(&handle.text()), Some(handle));
        for wrong in ["", "0", "+0000000000000000000000000000000", "zz"] {
            assert_eq!(Handle::read_text(wrong), None, "{wrong}");
            assert_eq!(Handle::read(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn the_longest_unused_goes_first() {
        let handles = Handles::new(2, Duration::from_secs(60));
        let first = handles.insert("first");
        let second = handles.insert("second");
        assert!(handles.get(first).is_some());
        let third = handles.insert("third");
        assert_eq!(handles.get(second), None);
        assert_eq!(handles.get(first).as_deref(), Some(&"first"));
        assert_eq!(handles.remove(third).as_deref(), Some(&"third"));
        assert_eq!(handles.get(third), None);
    }

    #[test]
    fn the_oldest_of_a_kind_goes_when_asked() {
        let handles = Handles::new(10, Duration::from_secs(60));
        let (odd, even) = (handles.insert(1), handles.insert(2));
        let later = handles.insert(4);
        assert!(handles.remove_oldest(|number| number % 2 == 0));
        assert_eq!(handles.get(even), None);
        assert!(handles.remove_oldest(|number| number % 2 == 0));
        assert!(!handles.remove_oldest(|number| number % 2 == 0));
        assert_eq!((handles.get(later), handles.get(odd).as_deref()), (None, Some(&1)));
    }

    #[test]
    fn what_is_in_use_is_not_forgotten() {
        let handles = Handles::new(10, Duration::ZERO);
        let (used, idle) = (handles.insert(1), handles.insert(2));
        let held = handles.get(used);
        handles.forget_idle();
        assert_eq!(held, handles.get(used));
        assert_eq!(handles.get(idle), None);
    }
}
