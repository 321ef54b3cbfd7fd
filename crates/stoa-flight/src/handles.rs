//! What the server keeps for clients under random names: sessions, statements, queries.
//!
//! ```text
//! handle = number of the daemon that gave it, 4 bytes │ random, 16 bytes       (big-endian)
//! ```
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

/// Digits of the daemon's number in a handle's text; the others are the secret's.
const DAEMON_DIGITS: usize = 8;
const SECRET_DIGITS: usize = 32;

/// A name that nobody can guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle {
    daemon: u32,
    secret: u128,
}

impl Handle {
    fn new(daemon: u32) -> Self {
        let secret = u128::from(random::u64()) << 64 | u128::from(random::u64());
        Self { daemon, secret }
    }

    /// The number of the daemon that gave it, if its sender speaks the truth.
    pub(crate) fn daemon(self) -> u32 {
        self.daemon
    }

    pub(crate) fn bytes(self) -> Bytes {
        [self.daemon.to_be_bytes().as_slice(), &self.secret.to_be_bytes()].concat().into()
    }

    /// As a token: hexadecimal digits.
    pub(crate) fn text(self) -> String {
        format!("{:08x}{:032x}", self.daemon, self.secret)
    }

    /// `None` for what no handle looks like.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (daemon, secret) = bytes.split_first_chunk()?;
        let secret = u128::from_be_bytes(secret.try_into().ok()?);
        Some(Self { daemon: u32::from_be_bytes(*daemon), secret })
    }

    /// As [`Self::read`], for [`Self::text`].
    pub(crate) fn read_text(text: &str) -> Option<Self> {
        let is_text = text.bytes().all(|b| b.is_ascii_hexdigit());
        if text.len() != DAEMON_DIGITS + SECRET_DIGITS || !is_text {
            return None;
        }
        let (daemon, secret) = text.split_at(DAEMON_DIGITS);
        let daemon = u32::from_str_radix(daemon, 16).ok()?;
        u128::from_str_radix(secret, 16).ok().map(|secret| Self { daemon, secret })
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

    /// Keeps a thing under a new handle of the daemon with a number, which is this one.
    pub(crate) fn insert(&self, daemon: u32, thing: T) -> Handle {
        let handle = Handle::new(daemon);
        self.insert_as(handle, thing);
        handle
    }

    /// Keeps a thing under a handle that another daemon gave.
    pub(crate) fn insert_as(&self, handle: Handle, thing: T) {
        let mut things = self.things.lock();
        self.make_room(&mut things);
        things.insert(handle, Kept { thing: Arc::new(thing), used: clock::monotonic() });
    }

    fn make_room(&self, things: &mut HashMap<Handle, Kept<T>>) {
        if things.len() >= self.count_max
            && let Some(oldest) = things.iter().min_by_key(|(_, kept)| kept.used)
        {
            let oldest = *oldest.0;
            things.remove(&oldest);
        }
    }

    /// What is kept under a handle that another daemon gave: `thing`, unless somebody was sooner.
    pub(crate) fn get_or_insert(&self, handle: Handle, thing: T) -> Arc<T> {
        let mut things = self.things.lock();
        if let Some(kept) = things.get(&handle) {
            return Arc::clone(&kept.thing);
        }
        self.make_room(&mut things);
        let thing = Arc::new(thing);
        things.insert(handle, Kept { thing: Arc::clone(&thing), used: clock::monotonic() });
        thing
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
        let handle = Handle::new(u32::MAX - 1);
        assert_eq!(Handle::read(&handle.bytes()), Some(handle));
        assert_eq!((handle.bytes().len(), handle.daemon()), (20, u32::MAX - 1));
        assert_eq!(Handle::read_text(&handle.text()), Some(handle));
        for wrong in ["", "0", "+000000000000000000000000000000000000000", "zz"] {
            assert_eq!(Handle::read_text(wrong), None, "{wrong}");
            assert_eq!(Handle::read(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn the_first_thing_under_a_handle_stays() {
        let handles = Handles::new(2, Duration::from_secs(60));
        let elsewhere = Handle::new(7);
        assert_eq!(*handles.get_or_insert(elsewhere, "first"), "first");
        assert_eq!(*handles.get_or_insert(elsewhere, "second"), "first");
        assert_eq!(handles.get(elsewhere).as_deref(), Some(&"first"));
    }

    #[test]
    fn the_longest_unused_goes_first() {
        let handles = Handles::new(2, Duration::from_secs(60));
        let first = handles.insert(0, "first");
        let second = handles.insert(0, "second");
        assert!(handles.get(first).is_some());
        let third = handles.insert(0, "third");
        assert_eq!(handles.get(second), None);
        assert_eq!(handles.get(first).as_deref(), Some(&"first"));
        assert_eq!(handles.remove(third).as_deref(), Some(&"third"));
        assert_eq!(handles.get(third), None);
    }

    #[test]
    fn the_oldest_of_a_kind_goes_when_asked() {
        let handles = Handles::new(10, Duration::from_secs(60));
        let (odd, even) = (handles.insert(0, 1), handles.insert(0, 2));
        let later = handles.insert(0, 4);
        assert!(handles.remove_oldest(|number| number % 2 == 0));
        assert_eq!(handles.get(even), None);
        assert!(handles.remove_oldest(|number| number % 2 == 0));
        assert!(!handles.remove_oldest(|number| number % 2 == 0));
        assert_eq!((handles.get(later), handles.get(odd).as_deref()), (None, Some(&1)));
    }

    #[test]
    fn what_is_in_use_is_not_forgotten() {
        let handles = Handles::new(10, Duration::ZERO);
        let (used, idle) = (handles.insert(0, 1), handles.insert(0, 2));
        let held = handles.get(used);
        handles.forget_idle();
        assert_eq!(held, handles.get(used));
        assert_eq!(handles.get(idle), None);
    }
}
