//! A report that several daemons answer together: each on the row groups of some parts of the table.
//!
//! ```text
//! report ─► Report::partial ─► run_parts (some parts here) ────────┐
//!                          └─► run_parts (other parts elsewhere) ─►─┴─ combine ─► answer
//! ```
//!
//! **Invariant:** all of them read the same version of the table, so that each row group is of one part, everywhere.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use stoa_error::{Error, Result};
use stoa_ingest::FreshRows;
use stoa_table::Table;

use crate::aggregate::Groups;
use crate::memory::{Memory, Taken};
use crate::outcome::{Answer, Missing, Outcome};
use crate::output::answer;
use crate::position::PartSet;
use crate::report::{Aggregate, Function, Item, Report, ValueKind, kind_of};
use crate::reports::Reports;
use crate::run::Scope;
use crate::work::ReportWork;

/// Digits of a decimal of 128 bits.
const DIGITS_MAX: u8 = 38;

impl Report {
    /// A report whose answers on some rows each can be put together by [`Reports::combine`]: all keys, then how many
    /// values each aggregate has and what they come to, without order and limit. `None` for a report that is not grouped,
    /// and for one that adds up floating-point numbers, whose sum depends on their order.
    pub fn partial(&self) -> Option<Self> {
        if !self.grouped {
            return None;
        }
        let type_of = |column: usize| self.columns.get(column).map(|column| &column.data_type);
        let (mut aggregates, mut types) = (Vec::new(), Vec::new());
        for key in &self.group_by {
            types.push(type_of(*key)?.clone());
        }
        for Aggregate { function, column } in self.aggregates.iter().copied() {
            let is_sum = matches!(function, Function::Sum | Function::Mean);
            if is_sum || function == Function::Count {
                aggregates.push(Aggregate { function: Function::Count, column });
                types.push(DataType::Int64);
            }
            if is_sum {
                let of = type_of(column?)?;
                let scale = match (kind_of(of)?, of) {
                    (ValueKind::Int, _) => 0,
                    (ValueKind::Decimal, DataType::Decimal128(_, scale)) => *scale,
                    _ => return None,
                };
                aggregates.push(Aggregate { function: Function::Sum, column });
                types.push(DataType::Decimal128(DIGITS_MAX, scale));
            }
            if matches!(function, Function::Min | Function::Max) {
                aggregates.push(Aggregate { function, column });
                types.push(type_of(column?)?.clone());
            }
        }
        let keys = self.group_by.iter().copied().map(Item::Column);
        let items = keys.chain((0..aggregates.len()).map(Item::Aggregate)).collect();
        let fields = types.into_iter().map(|of| Field::new("", of, true));
        Some(Self {
            aggregates,
            items,
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            order: Vec::new(),
            offset: 0,
            limit: None,
            ..self.clone()
        })
    }
}

impl Reports {
    /// Answers a report on the row groups of some parts of a version, and on `fresh` rows. `None` as for
    /// [`Reports::run`], or where the table has no parts for this report.
    ///
    /// # Errors
    /// As [`Reports::run`].
    pub async fn run_parts(
        &self,
        table: &Table,
        fresh: &FreshRows,
        report: &Report,
        (first_sort_column, parts): (i32, &PartSet),
        memory: &dyn Memory,
    ) -> Result<Option<Answer>> {
        let scope = Scope { missing: Missing::Read, parts: Some((first_sort_column, parts)) };
        match self.run_in(table, fresh, report, memory, scope).await? {
            Outcome::Done(answer) => Ok(Some(answer)),
            Outcome::Beyond | Outcome::Cold => Ok(None),
        }
    }

    /// Puts answers to [`Report::partial`] together; `None` where that is beyond a bound of
    /// [`ReportOptions`](crate::ReportOptions).
    ///
    /// # Errors
    /// A sum that does not fit its type (22003); `Internal`: an answer is not one to that report.
    pub async fn combine(
        &self,
        report: &Report,
        answers: &[Answer],
        memory: &dyn Memory,
    ) -> Result<Option<Answer>> {
        let mut taken = Taken::new(memory, self.options.bytes_max);
        let mut groups = Groups::new(report, self.options.answer_rows_max);
        let mut work = ReportWork::default();
        for answer in answers {
            let misfit = || Error::internal("a part of a report was answered as another one");
            let has_room = groups.merge(&answer.batch).ok_or_else(misfit)?;
            if !has_room || !taken.resize(groups.memory_bytes()) {
                return Ok(None);
            }
            work.add(&answer.work);
            tokio::task::yield_now().await;
        }
        let Some(batch) = answer(report, &groups, &mut taken).await? else { return Ok(None) };
        drop(groups);
        taken.resize(batch.get_array_memory_size());
        Ok(Some(Answer { batch, work }))
    }
}
