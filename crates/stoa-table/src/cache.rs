//! A bounded map from the location of an immutable file to what it holds.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Keeps the most recently used values up to a total cost. Values are of immutable files, so they
/// are never stale.
#[derive(Debug)]
pub(crate) struct Cache<V> {
    inner: Mutex<Inner<V>>,
    cost_max: usize,
}

#[derive(Debug)]
struct Inner<V> {
    entries: HashMap<String, Entry<V>>,
    cost: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    cost: usize,
    used: u64,
}

impl<V> Cache<V> {
    /// Holds values of at most `cost_max` together.
    pub(crate) fn new(cost_max: usize) -> Self {
        let inner = Inner { entries: HashMap::new(), cost: 0, clock: 0 };
        Self { inner: Mutex::new(inner), cost_max }
    }

    /// The value of `location`, if it is here.
    pub(crate) fn get(&self, location: &str) -> Option<Arc<V>> {
        let mut inner = self.inner.lock();
        inner.clock += 1;
        let now = inner.clock;
        let entry = inner.entries.get_mut(location)?;
        entry.used = now;
        Some(entry.value.clone())
    }

    /// Keeps `value`, dropping the least recently used ones if need be. A value larger than the
    /// whole cache is not kept.
    pub(crate) fn put(&self, location: &str, value: V, cost: usize) -> Arc<V> {
        let value = Arc::new(value);
        if cost > self.cost_max {
            return value;
        }
        let mut inner = self.inner.lock();
        inner.clock += 1;
        let entry = Entry { value: value.clone(), cost, used: inner.clock };
        inner.cost += cost;
        if let Some(old) = inner.entries.insert(location.to_owned(), entry) {
            inner.cost -= old.cost;
        }
        if inner.cost > self.cost_max {
            inner.shrink(self.cost_max - self.cost_max / 4);
        }
        value
    }
}

impl<V> Inner<V> {
    /// Drops the longest unused entries until the cost is at most `target`. Shrinking by a quarter
    /// at a time makes the sort rare.
    fn shrink(&mut self, target: usize) {
        let mut ages: Vec<(u64, String)> =
            self.entries.iter().map(|(key, entry)| (entry.used, key.clone())).collect();
        ages.sort_unstable();
        // The newest entry stays: it is what the caller just asked for.
        ages.pop();
        for (_, key) in ages {
            if self.cost <= target {
                break;
            }
            if let Some(entry) = self.entries.remove(&key) {
                self.cost -= entry.cost;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_go_first_and_the_bound_holds() {
        let cache = Cache::new(100);
        for n in 0..10 {
            cache.put(&n.to_string(), n, 10);
        }
        assert_eq!(cache.get("0").as_deref(), Some(&0));
        cache.put("10", 10, 10);
        assert_eq!(cache.get("0").as_deref(), Some(&0));
        assert_eq!(cache.get("1"), None);
        assert_eq!(cache.get("10").as_deref(), Some(&10));
        assert_eq!(*cache.put("huge", 11, 101), 11);
        assert_eq!(cache.get("huge"), None);
        assert!(cache.inner.lock().cost <= 100);
    }
}
