//! Files of which *every* row matches a predicate: what can be removed without being read.
//!
//! A file is covered when no row of it can match the opposite; the opposite is judged by the same
//! bounds that prune scans, so in doubt a file is not covered.

use std::collections::HashSet;

use stoa_orc::{CompareOp, Predicate};

use super::ScanFile;
use super::plan::{comparable_columns, partition_may_match, statistics_may_match};
use crate::Table;

/// A predicate and its opposite, to judge files by.
#[derive(Debug)]
pub(crate) struct Coverage {
    predicate: Predicate,
    opposite: Predicate,
    columns: HashSet<i32>,
}

impl Coverage {
    pub(crate) fn new(table: &Table, predicate: Predicate) -> Self {
        let opposite = opposite(&predicate);
        Self { predicate, opposite, columns: comparable_columns(table.metadata()) }
    }

    pub(crate) fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// Whether a row of `file` may match.
    pub(crate) fn may_match(&self, file: &ScanFile) -> bool {
        self.may(file, &self.predicate)
    }

    /// Whether every row of `file` matches, as far as partition and column bounds tell.
    pub(crate) fn covers(&self, file: &ScanFile) -> bool {
        !self.may(file, &self.opposite)
    }

    /// Whether every row that could be in the partition of `file` matches.
    pub(crate) fn covers_partition(&self, file: &ScanFile) -> bool {
        !partition_may_match(file, &self.opposite)
    }

    fn may(&self, file: &ScanFile, predicate: &Predicate) -> bool {
        partition_may_match(file, predicate) && statistics_may_match(file, predicate, &self.columns)
    }
}

/// What rows match for which `predicate` is not true: false or, because of NULL, unknown.
fn opposite(predicate: &Predicate) -> Predicate {
    match predicate {
        Predicate::And(parts) => Predicate::Or(parts.iter().map(opposite).collect()),
        Predicate::Or(parts) => Predicate::And(parts.iter().map(opposite).collect()),
        Predicate::Compare { column, op, value } => {
            let (column, op, value) = (*column, opposite_op(*op), value.clone());
            let compare = Predicate::Compare { column, op, value };
            Predicate::Or(vec![compare, Predicate::IsNull(column)])
        }
        Predicate::In { column, values } => {
            let other = values.iter().map(|value| Predicate::Compare {
                column: *column,
                op: CompareOp::NotEq,
                value: value.clone(),
            });
            Predicate::Or(vec![Predicate::And(other.collect()), Predicate::IsNull(*column)])
        }
        Predicate::IsNull(column) => Predicate::IsNotNull(*column),
        Predicate::IsNotNull(column) => Predicate::IsNull(*column),
    }
}

fn opposite_op(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::NotEq,
        CompareOp::NotEq => CompareOp::Eq,
        CompareOp::Lt => CompareOp::GtEq,
        CompareOp::LtEq => CompareOp::Gt,
        CompareOp::Gt => CompareOp::LtEq,
        CompareOp::GtEq => CompareOp::Lt,
    }
}
