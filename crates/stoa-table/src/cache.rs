//! A bounded map from the location of an immutable file to what it holds.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache as WeightedCache;

/// How many values the cache is made for. So few are kept in one shard, and a single value may take
/// nearly all of the bound.
const VALUES_ESTIMATE: usize = 32;

/// Keeps values up to a total cost; what was asked for again stays longest, so that reading many files
/// once does not drive out those of every scan. Values are of immutable files, so they are never stale.
#[derive(Debug)]
pub(crate) struct Cache<V> {
    entries: WeightedCache<String, Entry<V>, Cost>,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    cost: usize,
}

impl<V> Clone for Entry<V> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), cost: self.cost }
    }
}

/// Weighs an entry by what it said that it costs.
#[derive(Clone, Debug)]
struct Cost;

impl<V> Weighter<String, Entry<V>> for Cost {
    fn weight(&self, _location: &String, entry: &Entry<V>) -> u64 {
        entry.cost as u64
    }
}

impl<V> Cache<V> {
    /// Holds values of at most `cost_max` together.
    pub(crate) fn new(cost_max: usize) -> Self {
        let entries = WeightedCache::with_weighter(VALUES_ESTIMATE, cost_max as u64, Cost);
        Self { entries }
    }

    /// The value of `location`, if it is here.
    pub(crate) fn get(&self, location: &str) -> Option<Arc<V>> {
        self.entries.get(location).map(|entry| entry.value)
    }

    /// Keeps `value`, dropping others if need be. A value as large as the whole cache is not kept.
    pub(crate) fn put(&self, location: &str, value: V, cost: usize) -> Arc<V> {
        let value = Arc::new(value);
        // What weighs nothing is never dropped.
        let entry = Entry { value: Arc::clone(&value), cost: cost.max(1) };
        self.entries.insert(location.to_owned(), entry);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_what_is_asked_for_again_stays() {
        let cache = Cache::new(100);
        cache.put("asked for", 0, 10);
        for n in 1..50 {
            assert_eq!(cache.get("asked for").as_deref(), Some(&0), "{n}");
            cache.put(&n.to_string(), n, 10);
            assert!(cache.entries.weight() <= 100);
        }
        assert!((1..10).contains(&(0..50).filter(|n| cache.get(&n.to_string()).is_some()).count()));
    }

    #[test]
    fn one_value_may_take_most_of_it_but_not_more_than_all() {
        let cache = Cache::new(1000);
        assert_eq!(*cache.put("large", 1, 900), 1);
        assert_eq!(cache.get("large").as_deref(), Some(&1));
        assert_eq!(*cache.put("huge", 2, 1001), 2);
        assert_eq!(cache.get("huge"), None);
    }

    #[test]
    fn what_costs_nothing_is_dropped_in_its_turn() {
        let cache = Cache::new(10);
        (0..100).for_each(|n| drop(cache.put(&n.to_string(), n, 0)));
        assert!(cache.entries.len() <= 10);
    }
}
