//! Row groups that count as a whole: all of their rows meet the conditions, and are of one group.
//!
//! In: the bounds and totals of a file's row groups. Out: groups as an answer to [`Report::partial`] has them. The columns of
//! such row groups are neither read nor kept, and however many there are, they cost a look at their bounds each. In a table
//! sorted by account and day, most row groups of a large account are of one day.
//!
//! **Invariant:** what is taken is exactly what the rows would come to: bounds and totals are those that Stoa itself has
//! written, of files without deleted rows; nothing is taken of floating-point numbers, whose sums depend on the order, nor of
//! sums that do not fit.

use std::sync::Arc;

use arrow_buffer::NullBuffer;

use crate::aggregate::Groups;
use crate::chunk::Chunk;
use crate::files::FileTail;
use crate::report::{Aggregate, Function, Report, ValueKind, kind_of};
use crate::zones::Zones;

/// What row groups that count as a whole come to.
pub(crate) struct Wholes<'a> {
    report: &'a Report,
    groups: Vec<Whole>,
}

/// A group: some row groups one after another that have the same key.
struct Whole {
    /// Of [`Report::group_by`].
    key: Vec<i64>,
    /// Of [`Report::aggregates`].
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Rows that count.
    values: u64,
    sum: i128,
    best: Option<i128>,
}

impl<'a> Wholes<'a> {
    /// `None` where no row group of a report can count as a whole.
    pub(crate) fn of(report: &'a Report) -> Option<Self> {
        let kind = |column: usize| report.columns.get(column).and_then(|of| kind_of(&of.data_type));
        let is_number = |column| matches!(kind(column), Some(ValueKind::Int | ValueKind::Decimal));
        let may_be_taken = |aggregate: &Aggregate| match aggregate.function {
            Function::Count => true,
            _ => aggregate.column.is_some_and(is_number),
        };
        let is_possible = report.grouped
            && report.group_by.iter().copied().all(is_number)
            && report.aggregates.iter().all(may_be_taken);
        is_possible.then(|| Self { report, groups: Vec::new() })
    }

    /// Whether nothing was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Takes those out of a file's row `groups` that count as a whole; how many rows they have. `zones` are those of the
    /// report's columns.
    pub(crate) fn take(
        &mut self,
        groups: &mut Vec<u32>,
        tail: &FileTail,
        zones: &[Arc<Zones>],
    ) -> u64 {
        let mut taken = 0;
        groups.retain(|group| {
            let group = *group as usize;
            let Some(place) = tail.groups.get(group) else { return true };
            let Some(whole) = self.whole(group, u64::from(place.rows), zones) else { return true };
            let is_left = !self.add(whole);
            taken += if is_left { 0 } else { u64::from(place.rows) };
            is_left
        });
        taken
    }

    /// What a row group comes to, if it counts as a whole.
    fn whole(&self, group: usize, rows: u64, zones: &[Arc<Zones>]) -> Option<Whole> {
        let zone = |column: usize| zones.get(column)?.of_group(group);
        let meets = self.report.conditions.iter().all(|condition| {
            zone(condition.column).is_some_and(|zone| zone.all_match(&condition.test))
        });
        if !meets {
            return None;
        }
        let key = |column: &usize| i64::try_from(zone(*column)?.one_number()?).ok();
        let key = self.report.group_by.iter().map(key).collect::<Option<_>>()?;
        let state = |aggregate: &Aggregate| {
            let (mut sum, mut best) = (0, None);
            let Some(column) = aggregate.column else {
                return Some(State { values: rows, sum, best });
            };
            let totals = zones.get(column)?.totals()?;
            let values = totals.values(group)?;
            match aggregate.function {
                Function::Count => {}
                Function::Sum | Function::Mean => sum = totals.sum(group)?,
                Function::Min | Function::Max if values == 0 => {}
                Function::Min => best = Some(zone(column)?.numbers()?.0),
                Function::Max => best = Some(zone(column)?.numbers()?.1),
            }
            Some(State { values: u64::from(values), sum, best })
        };
        let states = self.report.aggregates.iter().map(state).collect::<Option<_>>()?;
        Some(Whole { key, states })
    }

    /// Adds what a row group comes to; whether all sums fit.
    fn add(&mut self, whole: Whole) -> bool {
        let Some(last) = self.groups.last_mut().filter(|last| last.key == whole.key) else {
            self.groups.push(whole);
            return true;
        };
        let functions = self.report.aggregates.iter().map(|aggregate| aggregate.function);
        let pairs = || last.states.iter().zip(&whole.states);
        let Some(sums) = pairs()
            .map(|(state, more)| state.sum.checked_add(more.sum))
            .collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        for (((state, more), function), sum) in
            last.states.iter_mut().zip(&whole.states).zip(functions).zip(sums)
        {
            state.values += more.values;
            state.sum = sum;
            state.best = match function {
                Function::Min => state.best.into_iter().chain(more.best).min(),
                _ => state.best.into_iter().chain(more.best).max(),
            };
        }
        true
    }

    /// Adds what was taken to the groups of its report; whether there is room for it.
    pub(crate) fn add_to(&self, groups: &mut Groups<'_>) -> bool {
        let mut columns = Vec::new();
        let numbers = |values: Vec<i64>| Arc::new(Chunk::of_numbers(values, None));
        for index in 0..self.report.group_by.len() {
            let keys = self.groups.iter().filter_map(|whole| whole.key.get(index).copied());
            columns.push(numbers(keys.collect()));
        }
        for (index, aggregate) in self.report.aggregates.iter().enumerate() {
            let states = || self.groups.iter().filter_map(|whole| whole.states.get(index));
            let counts = || numbers(states().map(|state| state.values as i64).collect());
            match aggregate.function {
                Function::Count => columns.push(counts()),
                Function::Sum | Function::Mean => {
                    let sums = states().map(|state| state.sum).collect();
                    columns.extend([counts(), Arc::new(Chunk::of_wide(sums, None))]);
                }
                Function::Min | Function::Max => {
                    let best = states().map(|state| state.best.unwrap_or_default()).collect();
                    let valid = states().map(|state| state.best.is_some()).collect();
                    columns.push(Arc::new(Chunk::of_wide(best, Some(NullBuffer::new(valid)))));
                }
            }
        }
        groups.merge_chunks(self.groups.len(), columns) == Some(true)
    }
}
