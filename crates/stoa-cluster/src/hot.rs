//! Buckets that many reports want at once, such as the last hour: more homes, and the choice among them.
//!
//! In: how many requests each bucket got and how large it is, how much memory there is, and the time. Out: how many homes
//! it has, from 1 to [`HOMES_MAX`]. All numbers are whole, so the same inputs give the same answers. While memory has room,
//! it is better filled with what others have as well than left empty: each report that is forwarded costs more than a local
//! one. A copy that does not fit costs more still, as it is read again and again. How much memory a bucket takes is not known,
//! only how large it is in files; so it is learnt: where copies are read again and again, buckets are taken to be twice as
//! large as they were thought to be.
//!
//! **Invariants:** the rate at which a home is added is at least twice the one at which it is taken away, and
//! a bucket loses a home only after calm windows in a row: a rate near a limit does not flap. A bucket gets
//! a second home only while those that have one take at most half of the memory with it.
//!
//! Each daemon counts the requests that it routes, so daemons may see different numbers of homes for a
//! while. That costs a cold read at most.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::placement::HOMES_MAX;
use crate::{DaemonId, Monotonic, TableId};

/// When a bucket is hot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotOptions {
    /// Over which time requests are counted.
    pub window: Duration,
    /// Requests per window from which a bucket has two homes; from three times as many, three.
    pub second_home_at: u64,
    /// The same while memory has room.
    pub second_home_with_room_at: u64,
    /// Windows in a row with less than half of that, after which it loses a home.
    pub calm_windows: u32,
}

impl Default for HotOptions {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10),
            second_home_at: 1000,
            second_home_with_room_at: 100,
            calm_windows: 6,
        }
    }
}

/// What happens to buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotEvent {
    /// Reports were routed by this bucket.
    Requests {
        /// The table.
        table: TableId,
        /// The bucket.
        bucket: u32,
        /// How many.
        count: u64,
        /// Bytes of the bucket in files.
        bytes: u64,
    },
    /// A report that was routed by this bucket had to be read from files, here or where it was sent.
    Read {
        /// The table.
        table: TableId,
        /// The bucket.
        bucket: u32,
    },
    /// Time has passed; send it at least once per window.
    Tick,
}

/// This daemon's memory for buckets, bytes. That of the others, who may get the copies, is taken to be like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// In all.
    pub bytes_max: u64,
    /// In use.
    pub bytes: u64,
}

impl Room {
    /// What buckets that have another home may take. The other half is for those that have none.
    fn for_copies(self) -> u64 {
        self.bytes_max / 2
    }

    /// What may be filled only because it is empty.
    fn unused(self) -> u64 {
        self.for_copies().saturating_sub(self.bytes)
    }
}

/// Bytes in memory per byte in files, at first and at least: packed values take more than compressed ones.
const SWELL_MIN: u64 = 2;
/// At most. Nobody has that: it is a bound for what is learnt.
const SWELL_MAX: u64 = 64;
/// Windows without copies that are read again and again, after which less memory is tried.
const QUIET_WINDOWS: u32 = 60;

/// A bucket that has another number of homes from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomesChanged {
    /// The table.
    pub table: TableId,
    /// The bucket.
    pub bucket: u32,
    /// How many homes.
    pub homes: usize,
}

/// Rates of buckets. Holds only those that had requests lately.
#[derive(Clone, Debug)]
pub struct HotBuckets {
    options: HotOptions,
    buckets: BTreeMap<(TableId, u32), Heat>,
    window_end: Option<Monotonic>,
    room: Room,
    /// Bytes in memory per byte in files.
    swell: u64,
    /// Windows since it was learnt that it is more.
    quiet: u32,
}

#[derive(Clone, Copy, Debug)]
struct Heat {
    count: u64,
    /// Requests of this window that had to be read.
    reads: u64,
    /// In files.
    bytes: u64,
    homes: usize,
    /// It has got a home in the last window, which is to read it first.
    is_new: bool,
    calm: u32,
}

impl HotBuckets {
    /// Nothing is hot.
    pub fn new(options: HotOptions) -> Self {
        let room = Room { bytes_max: u64::MAX, bytes: u64::MAX };
        let (swell, quiet) = (SWELL_MIN, 0);
        Self { options, buckets: BTreeMap::new(), window_end: None, room, swell, quiet }
    }

    /// Notes how much memory there is. Before the first time, there is enough for hot buckets and none to fill.
    pub fn note_room(&mut self, room: Room) {
        self.room = room;
    }

    /// How many homes a bucket has.
    pub fn homes(&self, table: TableId, bucket: u32) -> usize {
        self.buckets.get(&(table, bucket)).map_or(1, |heat| heat.homes)
    }

    /// Takes an event in.
    pub fn on(&mut self, event: HotEvent, now: Monotonic) -> Vec<HomesChanged> {
        let changed = self.end_windows(now);
        match event {
            HotEvent::Requests { table, bucket, count, bytes } => {
                let heat = Heat { count: 0, reads: 0, bytes, homes: 1, is_new: false, calm: 0 };
                let heat = self.buckets.entry((table, bucket)).or_insert(heat);
                heat.count = heat.count.saturating_add(count);
                heat.bytes = bytes;
            }
            HotEvent::Read { table, bucket } => {
                if let Some(heat) = self.buckets.get_mut(&(table, bucket)) {
                    heat.reads = heat.reads.saturating_add(1);
                }
            }
            HotEvent::Tick => {}
        }
        changed
    }

    fn end_windows(&mut self, now: Monotonic) -> Vec<HomesChanged> {
        let mut changed = vec![];
        let mut end = self.window_end.unwrap_or(now + self.options.window);
        // After a long pause everything is calm by then.
        let windows_max = self.options.calm_windows.saturating_mul(HOMES_MAX as u32);
        let mut windows = 0;
        while end <= now {
            if windows == windows_max {
                end = now;
            } else {
                windows += 1;
                changed.extend(self.end_window());
            }
            end = end + self.options.window.max(Duration::from_millis(1));
        }
        self.window_end = Some(end);
        changed
    }

    fn end_window(&mut self) -> Vec<HomesChanged> {
        let mut changed = self.learn();
        let swell = self.swell;
        let copies = self.buckets.values().filter(|heat| heat.homes > 1);
        let copied = copies.map(|heat| heat.bytes_in_memory(swell)).fold(0, u64::saturating_add);
        let mut room_for_hot = self.room.for_copies().saturating_sub(copied);
        let mut unused = self.room.unused();
        let mut by_count: Vec<_> = self.buckets.iter_mut().collect();
        by_count.sort_by_key(|(key, heat)| (Reverse(heat.count), **key));
        for ((table, bucket), heat) in by_count {
            let mut options = self.options;
            let bytes = heat.bytes_in_memory(swell);
            if bytes <= unused {
                options.second_home_at =
                    options.second_home_at.min(options.second_home_with_room_at);
            }
            let before = heat.homes;
            heat.end_window(options, bytes <= room_for_hot);
            if before == 1 && heat.homes > 1 {
                room_for_hot -= bytes;
                unused = unused.saturating_sub(bytes);
            }
            if heat.homes != before {
                changed.push(HomesChanged { table: *table, bucket: *bucket, homes: heat.homes });
            }
        }
        let calm_windows = self.options.calm_windows;
        self.buckets.retain(|_, heat| heat.homes > 1 || heat.calm <= calm_windows);
        changed
    }

    /// Learns how much memory buckets take: more than was thought where copies are read as often as would have given them
    /// another home. Of these, only so many stay as fit then, those first that are read least.
    fn learn(&mut self) -> Vec<HomesChanged> {
        let reads_max = self.options.second_home_with_room_at;
        let copies = self.buckets.iter_mut().filter(|(_, heat)| heat.homes > 1);
        let mut copies: Vec<_> = copies.collect();
        if !copies.iter().any(|(_, heat)| heat.is_read_again(reads_max)) {
            self.quiet = self.quiet.saturating_add(1);
            if self.quiet >= QUIET_WINDOWS {
                (self.swell, self.quiet) = ((self.swell / 2).max(SWELL_MIN), 0);
            }
            return vec![];
        }
        (self.swell, self.quiet) = ((self.swell * 2).min(SWELL_MAX), 0);
        copies.sort_by_key(|(key, heat)| (heat.reads, **key));
        let mut room = self.room.for_copies();
        let mut changed = vec![];
        for ((table, bucket), heat) in copies {
            match room.checked_sub(heat.bytes_in_memory(self.swell)) {
                Some(left) => room = left,
                None => {
                    (heat.homes, heat.calm) = (1, 0);
                    changed.push(HomesChanged { table: *table, bucket: *bucket, homes: 1 });
                }
            }
        }
        changed
    }
}

impl Heat {
    fn bytes_in_memory(&self, swell: u64) -> u64 {
        self.bytes.saturating_mul(swell)
    }

    /// Whether it was read `reads_max` times or more, and was not to be read first. Of requests that others answered from
    /// memory, some may be read without harm.
    fn is_read_again(&self, reads_max: u64) -> bool {
        !self.is_new && self.reads >= reads_max.max(self.count / 4)
    }

    /// `fits`: whether there is memory for it at a second home.
    fn end_window(&mut self, options: HotOptions, fits: bool) {
        let count = std::mem::take(&mut self.count);
        (self.reads, self.is_new) = (0, false);
        let limit = |homes| match homes {
            0 | 1 => 0,
            2 => options.second_home_at,
            _ => options.second_home_at.saturating_mul(3),
        };
        let homes_max = if self.homes > 1 || fits { HOMES_MAX } else { 1 };
        if let Some(homes) = (self.homes + 1..=homes_max).rev().find(|homes| count >= limit(*homes))
        {
            (self.homes, self.is_new, self.calm) = (homes, true, 0);
            return;
        }
        let is_calm = self.homes == 1 && count == 0 || count < limit(self.homes) / 2;
        self.calm = if is_calm { self.calm.saturating_add(1) } else { 0 };
        if self.homes > 1 && self.calm >= options.calm_windows {
            (self.homes, self.calm) = (self.homes - 1, 0);
        }
    }
}

/// The home that a request goes to: the less busy of two, taken from `homes` by the request's number (power of two
/// choices). `in_flight` tells how many requests of ours a daemon has not answered, and `None` for one
/// that gets none now. `None`: run it here.
pub fn choose(
    homes: &[DaemonId],
    request: u64,
    in_flight: impl Fn(DaemonId) -> Option<u64>,
) -> Option<DaemonId> {
    let open: Vec<_> = homes.iter().filter_map(|home| Some((*home, in_flight(*home)?))).collect();
    let at = |offset: u64| {
        let index = (request.wrapping_add(offset)).checked_rem(open.len() as u64)?;
        open.get(index as usize)
    };
    let (first, second) = (at(0)?, at(1)?);
    Some(if second.1 < first.1 { second.0 } else { first.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId([1; 16]);

    fn requests(bucket: u32, count: u64) -> HotEvent {
        HotEvent::Requests { table: TABLE, bucket, count, bytes: 10 }
    }

    fn run(hot: &mut HotBuckets, window: u64, count: u64) -> usize {
        let now = |seconds| Monotonic(Duration::from_secs(seconds));
        hot.on(requests(3, count), now(window * 10 + 1));
        hot.on(HotEvent::Tick, now(window * 10 + 10));
        hot.homes(TABLE, 3)
    }

    #[test]
    fn homes_come_at_once_and_go_after_a_while() {
        let mut hot = HotBuckets::new(HotOptions::default());
        hot.on(HotEvent::Tick, Monotonic::default());
        let rates = [10, 1200, 900, 600, 1100, 5000, 100, 100, 100, 100, 100];
        let homes: Vec<_> = rates.iter().zip(0..).map(|(c, w)| run(&mut hot, w, *c)).collect();
        assert_eq!(homes, [1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3]);
        assert_eq!(
            (11..23).map(|w| run(&mut hot, w, 0)).collect::<Vec<_>>(),
            [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]
        );
        assert_eq!(run(&mut hot, 40, 0), 1);
        assert!(hot.buckets.len() <= 1);
    }

    #[test]
    fn homes_come_sooner_while_there_is_room() {
        let mut hot = HotBuckets::new(HotOptions::default());
        hot.on(HotEvent::Tick, Monotonic::default());
        hot.note_room(Room { bytes_max: 1000, bytes: 400 });
        let homes: Vec<_> = [50, 99, 100, 120, 300, 60].into_iter().zip(0..).collect();
        let homes: Vec<_> = homes.into_iter().map(|(c, w)| run(&mut hot, w, c)).collect();
        assert_eq!(homes, [1, 1, 2, 2, 3, 3]);
        // It is full: what is not hot enough goes after a while, as it would have gone without any requests.
        hot.note_room(Room { bytes_max: 1000, bytes: 1000 });
        let homes: Vec<_> = (6..18).map(|w| run(&mut hot, w, 300)).collect();
        assert_eq!(homes, [3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 1, 1]);
    }

    #[test]
    fn no_more_gets_a_second_home_than_fits() {
        let now = |seconds| Monotonic(Duration::from_secs(seconds));
        let with_second_home = |room: Room, count: fn(u32) -> u64| -> Vec<u32> {
            let mut hot = HotBuckets::new(HotOptions::default());
            hot.on(HotEvent::Tick, now(0));
            hot.note_room(room);
            for window in 0..5 {
                for bucket in 0..256 {
                    hot.on(requests(bucket, count(bucket)), now(window * 10 + 1));
                }
                hot.on(HotEvent::Tick, now(window * 10 + 10));
            }
            (0..256).filter(|bucket| hot.homes(TABLE, *bucket) > 1).collect()
        };
        // The hottest ones, in half of the memory, whether it is in use or not.
        let full = Room { bytes_max: 200, bytes: 200 };
        assert_eq!(with_second_home(full, |b| 1000 + u64::from(b)), [251, 252, 253, 254, 255]);
        assert_eq!(with_second_home(full, |b| 100 + u64::from(b)), [0; 0]);
        let empty = Room { bytes_max: 200, bytes: 0 };
        assert_eq!(with_second_home(empty, |b| 100 + u64::from(b)), [251, 252, 253, 254, 255]);
        let small = Room { bytes_max: 20, bytes: 0 };
        assert_eq!(with_second_home(small, |_| 100_000), [0; 0]);
        let large = Room { bytes_max: 1 << 20, bytes: 1000 };
        assert_eq!(with_second_home(large, |_| 100).len(), 256);
    }

    /// Memory holds a fifth of what buckets of these bytes in files promise: copies are given up until they fit.
    #[test]
    fn copies_that_are_read_again_and_again_are_given_up() {
        let now = |seconds| Monotonic(Duration::from_secs(seconds));
        let mut hot = HotBuckets::new(HotOptions::default());
        hot.on(HotEvent::Tick, now(0));
        hot.note_room(Room { bytes_max: 800, bytes: 800 });
        let window = |hot: &mut HotBuckets, number: u64, fitting: usize| -> Vec<u32> {
            let copied: Vec<u32> = (0..256).filter(|b| hot.homes(TABLE, *b) > 1).collect();
            for bucket in 0..256 {
                // A copy that fits is not asked for here.
                let is_here = copied.contains(&bucket);
                let count = if is_here && copied.len() <= fitting { 0 } else { 1200 };
                hot.on(requests(bucket, count), now(number * 10 + 1));
                for _ in 0..count * u64::from(is_here) {
                    hot.on(HotEvent::Read { table: TABLE, bucket }, now(number * 10 + 1));
                }
            }
            hot.on(HotEvent::Tick, now(number * 10 + 10));
            (0..256).filter(|bucket| hot.homes(TABLE, *bucket) > 1).collect()
        };
        // All are read in the first window, as they must be. Then only where they do not fit.
        let counts: Vec<usize> = (0..6).map(|n| window(&mut hot, n, 5).len()).collect();
        assert_eq!(counts, [20, 20, 10, 5, 5, 5]);
        // What is calm goes, and others come; never more than fit, until much later.
        let later: Vec<usize> = (6..60).map(|n| window(&mut hot, n, 5).len()).collect();
        assert!(later.iter().all(|count| *count <= 5), "{later:?}");
        assert!(later.contains(&5));
        let much_later: Vec<usize> = (60..200).map(|n| window(&mut hot, n, 5).len()).collect();
        assert!(much_later.contains(&10), "more is tried: {much_later:?}");
        assert!(much_later.iter().filter(|count| **count > 5).count() < 10, "{much_later:?}");
    }

    #[test]
    fn after_a_pause_everything_is_calm() {
        let mut hot = HotBuckets::new(HotOptions::default());
        hot.on(HotEvent::Tick, Monotonic::default());
        assert_eq!(run(&mut hot, 0, 9000), 3);
        hot.on(HotEvent::Tick, Monotonic(Duration::from_secs(1 << 40)));
        assert_eq!(hot.homes(TABLE, 3), 1);
    }

    #[test]
    fn the_less_busy_of_two_is_chosen() {
        let homes: Vec<_> = (0..3).map(DaemonId::from_bits).collect();
        let busy = |d: DaemonId| [Some(5), Some(2), Some(9)][d.bits() as usize];
        assert_eq!(choose(&homes, 0, busy), Some(homes[1]));
        assert_eq!(choose(&homes, 1, busy), Some(homes[1]));
        assert_eq!(choose(&homes, 2, busy), Some(homes[0]));
        let away = |d: DaemonId| (d.bits() == 2).then_some(9);
        assert_eq!(choose(&homes, 0, away), Some(homes[2]));
        assert_eq!(choose(&homes, 0, |_| None), None);
        assert_eq!(choose(&[], 0, busy), None);
    }
}
