//! The queries that ended, as a stream shows them: of many that end in a second, those that somebody may look for.
//!
//! In: what the registry remembers at each update. Out: which of it to show, newest first, as runs of what was shown
//! before and new ones. A server that answers thousands of reports a second forgets most of them within a tenth of a
//! second; a list of all of them could not be read, and would take most of what a page receives.

use std::collections::HashSet;

use stoa_query::{QueryInfo, QueryState};

/// New ones in an update, after the first.
const NEW_MAX: usize = 32;
/// Of these, those that took longest.
const SLOWEST_MAX: usize = 12;

/// What a stream has shown.
#[derive(Default)]
pub(super) struct Ended {
    /// Whose the shown ones are, newest first, by the order in which they were sent.
    shown: Vec<Shown>,
    /// All that the registry remembered at the last update.
    known: HashSet<u64>,
    is_begun: bool,
}

struct Shown {
    user: String,
}

/// What to show now.
pub(super) struct Update {
    /// Newest first.
    pub(super) new: Vec<QueryInfo>,
    /// What is shown after them, of what was before: places and how many from there.
    pub(super) kept: Vec<(usize, usize)>,
    /// Whether that is something else than before.
    pub(super) is_changed: bool,
}

impl Ended {
    /// Chooses among `recent` (newest first); `may_see` tells whose queries may be seen now, and `most` how many.
    pub(super) fn look(
        &mut self,
        recent: Vec<QueryInfo>,
        most: usize,
        may_see: impl Fn(&str) -> bool,
    ) -> Update {
        let ids: HashSet<u64> = recent.iter().map(|query| query.id).collect();
        let seen = |query: &QueryInfo| !self.known.contains(&query.id) && may_see(&query.user);
        let mut new: Vec<QueryInfo> = recent.into_iter().filter(seen).collect();
        if self.is_begun {
            new = chosen(new);
        }
        new.truncate(most);
        let (places, before) = (most - new.len(), self.shown.len());
        let is_kept = |(_, shown): &(usize, &Shown)| may_see(&shown.user);
        let kept: Vec<usize> = self
            .shown
            .iter()
            .enumerate()
            .filter(is_kept)
            .map(|(place, _)| place)
            .take(places)
            .collect();
        let shown = new.iter().map(|query| Shown { user: query.user.clone() });
        let mut old: Vec<Option<Shown>> = self.shown.drain(..).map(Some).collect();
        let shown: Vec<Shown> =
            shown.chain(kept.iter().filter_map(|place| old.get_mut(*place)?.take())).collect();
        self.shown = shown;
        self.known = ids;
        self.is_begun = true;
        Update { is_changed: !new.is_empty() || kept.len() < before, new, kept: runs(&kept) }
    }
}

/// Failures first, then what took longest, then the newest; in their order.
fn chosen(new: Vec<QueryInfo>) -> Vec<QueryInfo> {
    if new.len() <= NEW_MAX {
        return new;
    }
    let mut ranked: Vec<usize> = (0..new.len()).collect();
    ranked.sort_by_key(|place| std::cmp::Reverse(new.get(*place).map(|query| query.elapsed_us)));
    let is_failed =
        |place: &usize| new.get(*place).is_some_and(|query| query.state != QueryState::Finished);
    let mut taken: HashSet<usize> = (0..new.len()).filter(is_failed).take(NEW_MAX).collect();
    for place in ranked.into_iter().take(SLOWEST_MAX).chain(0..new.len()) {
        if taken.len() < NEW_MAX {
            taken.insert(place);
        }
    }
    let all = new.into_iter().enumerate();
    all.filter(|(place, _)| taken.contains(place)).map(|(_, query)| query).collect()
}

fn runs(places: &[usize]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for place in places {
        match runs.last_mut() {
            Some((from, count)) if *from + *count == *place => *count += 1,
            _ => runs.push((*place, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_runs() {
        assert_eq!(runs(&[0, 1, 2, 4, 6, 7]), [(0, 3), (4, 1), (6, 2)]);
        assert_eq!(runs(&[]), []);
    }
}
