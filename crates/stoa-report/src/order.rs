//! The order of an answer, and of its first rows only as many as it shows.
//!
//! In: groups, or rows that are their own groups. Out: their numbers in the answer's order, cut as it
//! says. **Invariants:** what is equal stays in the order of the table; of an answer with a limit no
//! more than about twice its rows are kept; others on the thread have their turn in between.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::aggregate::{Cell, Groups, RowAddress, compare};
use crate::report::{Item, Order};

/// Groups that are sorted or merged without a pause.
const SORTED_AT_ONCE: usize = 4096;

/// Rows beyond those of the answer that are kept before they are looked through.
const SPARE_ROWS: usize = 1024;

impl Groups<'_> {
    /// Adds rows of which the `wanted` first ones in the answer's order are kept; whether any may be one
    /// of them.
    pub(crate) fn add_first(
        &mut self,
        places: impl Iterator<Item = RowAddress>,
        wanted: usize,
    ) -> bool {
        let mut is_needed = false;
        for place in places.take(if wanted == 0 { 0 } else { usize::MAX }) {
            // Among equal ones those that came before are first.
            if self.worst.is_some_and(|worst| self.compare_rows(place, worst) != Ordering::Less) {
                continue;
            }
            self.places.push(place);
            is_needed = true;
            if self.places.len() >= 2 * wanted + SPARE_ROWS {
                self.keep_first(wanted);
            }
        }
        is_needed
    }

    fn keep_first(&mut self, wanted: usize) {
        let mut places = std::mem::take(&mut self.places);
        let (_, worst, _) =
            places.select_nth_unstable_by(wanted - 1, |a, b| self.compare_rows(*a, *b));
        self.worst = Some(*worst);
        places.truncate(wanted);
        self.places = places;
    }

    /// The groups in the answer's order, cut as it says.
    pub(crate) async fn ordered(&self) -> Vec<usize> {
        let mut groups: Vec<usize> = (0..self.len()).collect();
        let end = self.report.limit.map_or(groups.len(), |limit| {
            self.report.offset.saturating_add(limit).min(groups.len())
        });
        if !self.report.order.is_empty() {
            if 0 < end && end < groups.len() {
                groups.select_nth_unstable_by(end - 1, |a, b| self.compare_groups(*a, *b));
                groups.truncate(end);
            }
            groups = self.sorted(groups).await;
        }
        groups.truncate(end);
        groups.drain(..self.report.offset.min(end));
        groups
    }

    async fn sorted(&self, mut groups: Vec<usize>) -> Vec<usize> {
        if groups.len() <= SORTED_AT_ONCE {
            groups.sort_unstable_by(|a, b| self.compare_groups(*a, *b));
            return groups;
        }
        let mut runs = VecDeque::new();
        for run in groups.chunks_mut(SORTED_AT_ONCE) {
            run.sort_unstable_by(|a, b| self.compare_groups(*a, *b));
            runs.push_back(run.to_vec());
            tokio::task::yield_now().await;
        }
        while let Some(first) = runs.pop_front() {
            let Some(second) = runs.pop_front() else { return first };
            runs.push_back(self.merged(first, second).await);
        }
        groups
    }

    async fn merged(&self, first: Vec<usize>, second: Vec<usize>) -> Vec<usize> {
        let mut merged = Vec::with_capacity(first.len() + second.len());
        let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
        loop {
            let is_first = match (first.peek(), second.peek()) {
                (Some(a), Some(b)) => self.compare_groups(*a, *b) != Ordering::Greater,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return merged,
            };
            merged.extend(if is_first { first.next() } else { second.next() });
            if merged.len().is_multiple_of(SORTED_AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// No two are equal: where keys are, the one that came first is less.
    fn compare_groups(&self, a: usize, b: usize) -> Ordering {
        let by_key =
            self.report.order.iter().map(|order| {
                compare_cells(&self.cell(a, order.by), &self.cell(b, order.by), order)
            });
        let mut by_key = by_key.filter(|ordering| ordering.is_ne());
        by_key.next().unwrap_or_else(|| self.places[a].cmp(&self.places[b]))
    }

    /// The same of rows without groups, of which some are not kept.
    fn compare_rows(&self, a: RowAddress, b: RowAddress) -> Ordering {
        let by_key = self.report.order.iter().map(|order| match order.by {
            Item::Column(column) => {
                compare_cells(&self.cell_at(a, column), &self.cell_at(b, column), order)
            }
            Item::Aggregate(_) => Ordering::Equal,
        });
        let mut by_key = by_key.filter(|ordering| ordering.is_ne());
        by_key.next().unwrap_or_else(|| a.cmp(&b))
    }
}

fn compare_cells(a: &Cell<'_>, b: &Cell<'_>, order: &Order) -> Ordering {
    match (*a == Cell::Null, *b == Cell::Null) {
        (false, false) => compare(a, b, order.descending),
        _ => compare(a, b, order.nulls_first),
    }
}
