//! Answers that were computed on some rows of a table each, put together.
//!
//! In: answers to [`Report::partial`]: a row per group, with its keys and what each aggregate has come to. Out: groups
//! as if all rows had been added here.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::{Groups, RowAddress, Run, cell, compare};
use crate::chunk::Chunk;
use crate::report::Function;
use crate::rows::ChunkRows;

/// The columns of one answer, each once, in their order.
type Columns = std::vec::IntoIter<Arc<Chunk>>;

impl Groups<'_> {
    /// Adds the groups of an answer to [`Report::partial`](crate::Report::partial). Whether there is room for them;
    /// `None` where it is no such answer.
    pub(crate) fn merge(&mut self, answer: &RecordBatch) -> Option<bool> {
        let columns = answer.columns().iter().map(|column| Chunk::of(column).map(Arc::new));
        self.merge_chunks(answer.num_rows(), columns.collect::<Option<_>>()?)
    }

    /// The same, of an answer whose columns are chunks.
    pub(crate) fn merge_chunks(&mut self, rows: usize, columns: Vec<Arc<Chunk>>) -> Option<bool> {
        if rows == 0 {
            return Some(true);
        }
        let mut columns = columns.into_iter();
        let none = Arc::new(Chunk::of_numbers(Vec::new(), None));
        let without = vec![none; self.report.columns.len()];
        let mut keys = without.clone();
        for key in &self.report.group_by {
            *keys.get_mut(*key)? = columns.next()?;
        }
        let first_source = self.sources.len() as u32;
        self.sources.push(keys);
        if self.find_groups(first_source, &ChunkRows::Range(0..rows)).is_none() {
            return Some(false);
        }
        let runs = std::mem::take(&mut self.runs);
        let added = self.merge_aggregates(&runs, &mut columns, &without);
        self.runs = runs;
        added?;
        for source in first_source..self.sources.len() as u32 {
            self.keep(source);
        }
        columns.next().is_none().then_some(true)
    }

    fn merge_aggregates(
        &mut self,
        runs: &[Run],
        columns: &mut Columns,
        without: &[Arc<Chunk>],
    ) -> Option<()> {
        let width = self.report.aggregates.len();
        for (index, aggregate) in self.report.aggregates.iter().copied().enumerate() {
            let chunk = columns.next()?;
            let of_group = |run: &Run| (run.group as usize * width + index, run.rows.clone());
            match (aggregate.function, aggregate.column) {
                (Function::Count, _) | (Function::Sum | Function::Mean, _) => {
                    let sums = match aggregate.function {
                        Function::Count => None,
                        _ => Some(columns.next()?),
                    };
                    for (state, rows) in runs.iter().map(of_group) {
                        let state = self.states.get_mut(state)?;
                        for row in rows {
                            state.values += u64::try_from(chunk.number(row)).ok()?;
                            let Some(sums) = sums.as_ref().filter(|sums| !sums.is_null(row)) else {
                                continue;
                            };
                            let sum = state.sum.checked_add(sums.number(row));
                            state.overflows |= sum.is_none();
                            state.sum = sum.unwrap_or(state.sum);
                        }
                    }
                }
                (Function::Min | Function::Max, Some(column)) => {
                    let wanted = match aggregate.function {
                        Function::Min => Ordering::Less,
                        _ => Ordering::Greater,
                    };
                    let source = self.sources.len() as u32;
                    let mut chunks = without.to_vec();
                    *chunks.get_mut(column)? = chunk.clone();
                    self.sources.push(chunks);
                    for (at, rows) in runs.iter().map(of_group) {
                        for row in rows.filter(|row| !chunk.is_null(*row)) {
                            let row = row as u32;
                            let best = self.states.get(at)?.best;
                            let is_better = best.is_none_or(|best| {
                                let of_best = self.cell_at(best, column);
                                compare(&cell(&chunk, row), &of_best, false) == wanted
                            });
                            if is_better {
                                self.states.get_mut(at)?.best = Some(RowAddress { source, row });
                            }
                        }
                    }
                }
                (Function::Min | Function::Max, None) => return None,
            }
        }
        Some(())
    }
}
