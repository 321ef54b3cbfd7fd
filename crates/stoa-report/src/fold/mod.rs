//! Large groupings out of chunks: rows are put into groups and added up where they are, packed and coded, and never
//! become batches.
//!
//! ```text
//! row group ─filter─► rows ─keys, as codes─► local groups ─counts, sums─► all groups ─► states for the engine to merge
//! ```
//! In: the row groups of a scan ([`FileScan`]), a [`Fold`]. Out: batches of keys and of *states* (counts, sums, least and
//! greatest values). A group may come more than once: whoever takes the batches merges states.
//!
//! What is computed of one column is computed once per different value where there are few
//! ([`Chunk::different`](crate::chunk::Chunk::different)); sums of products and the like in 64 bits where the bounds of
//! the values show that they fit. All else is left to the engine's expressions ([`RowExpression`]), on the rows that count.
//!
//! **Invariant:** expressions are evaluated only on values of rows that count, or again so, if an error came of others.
//! Not here: the plan that asks for it (`stoa-query`).

mod groups;
mod local;
mod numbers;
mod operand;
mod state;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use stoa_error::{Error, Result};

pub use numbers::{Number, NumberOp};

use crate::chunk::Chunk;
use crate::fold::groups::Groups;
use crate::fold::local::LocalGroups;
use crate::fold::operand::{Evaluated, Evaluator};
use crate::rows::ChunkRows;
use crate::scan::{ChunkScan, FileScan};

/// Groups that are kept at most before they are given.
const GROUPS_MAX: usize = 64 << 10;

/// Bytes of their keys and states, about.
const BYTES_MAX: usize = 64 << 20;

/// Groups that are looked up before it is judged whether that is worth it.
const TRIAL_GROUPS: u64 = 16 << 10;

/// An expression that the engine computes.
pub trait RowExpression: Send + Sync + std::fmt::Debug {
    /// The columns that it needs, as indexes into those of the scan, ascending.
    fn columns(&self) -> &[usize];

    /// Its value for each of some rows. `rows` has [`Self::columns`].
    ///
    /// # Errors
    /// Those of computing it.
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef>;
}

/// What is grouped by, or added up.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A column, by index.
    Column(usize),
    /// Whole numbers (unscaled ones of decimals), and the same as an expression, for values that may not fit 64 bits.
    Number(Number, Arc<dyn RowExpression>),
    /// Anything else.
    Expression(Arc<dyn RowExpression>),
}

/// What is kept of each group. Operands are indexes into [`Fold::operands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Its rows.
    Rows,
    /// Rows with a value.
    Values(usize),
    /// The sum of whole numbers; 0 of none.
    Sum(usize),
    /// The least value; NULL of none.
    Least(usize),
    /// The greatest value; NULL of none.
    Greatest(usize),
}

/// A grouping of the rows of a scan.
#[derive(Clone, Debug)]
pub struct Fold {
    /// Rows count for which all of these are true.
    pub conditions: Vec<Arc<dyn RowExpression>>,
    /// What makes a group; without any, all rows are one. Not floating point.
    pub keys: Vec<Operand>,
    /// What measures are of.
    pub operands: Vec<Operand>,
    /// What is kept, a column of the batches each.
    pub measures: Vec<Measure>,
    /// Names and types of the batches' columns: keys, then measures.
    pub schema: SchemaRef,
}

/// A grouping under way.
pub struct Folder {
    fold: Arc<Fold>,
    evaluator: Evaluator,
    local: LocalGroups,
    groups: Groups,
    /// Measures that differ, in the order of the groups' states.
    measures: Vec<Measure>,
    /// Which of them each of the fold's is.
    shown: Vec<usize>,
    looked_up: u64,
    found: u64,
    /// Batches that wait to be given.
    full: Vec<RecordBatch>,
}

impl Folder {
    /// Nothing yet of a scan.
    ///
    /// # Errors
    /// `Internal` where the parts of the fold do not fit each other.
    pub fn new(fold: Arc<Fold>, scan: &ChunkScan) -> Result<Self> {
        Self::over(fold, Arc::clone(&scan.schema))
    }

    /// Nothing yet of rows with these columns.
    fn over(fold: Arc<Fold>, schema: SchemaRef) -> Result<Self> {
        if fold.schema.fields().len() != fold.keys.len() + fold.measures.len() {
            return Err(Error::internal("a grouping has other columns than it makes"));
        }
        let mut measures: Vec<Measure> = Vec::new();
        let shown = fold.measures.iter().map(|measure| {
            measures.iter().position(|known| known == measure).unwrap_or_else(|| {
                measures.push(*measure);
                measures.len() - 1
            })
        });
        let shown = shown.collect();
        Ok(Self {
            evaluator: Evaluator::new(schema),
            local: LocalGroups::default(),
            groups: Groups::new(&measures),
            measures,
            shown,
            fold,
            looked_up: 0,
            found: 0,
            full: Vec::new(),
        })
    }

    /// Adds the rows of the next row groups of a file; whether there are more. Others on this thread have their turn
    /// on the way.
    ///
    /// # Errors
    /// Those of reading the file and of expressions; 22003 for a sum of more than 128 bits.
    pub async fn add(&mut self, file: &mut FileScan) -> Result<bool> {
        let Some(rows) = file.next_rows().await? else { return Ok(false) };
        let all = match &rows.list {
            Some(list) => ChunkRows::of(list),
            None => ChunkRows::Range(0..rows.rows),
        };
        self.add_group(rows.chunks, all)?;
        tokio::task::yield_now().await;
        Ok(true)
    }

    /// Adds some rows of a row group.
    fn add_group(&mut self, chunks: Vec<Arc<Chunk>>, all: ChunkRows<'_>) -> Result<()> {
        self.evaluator.begin(chunks);
        let fold = Arc::clone(&self.fold);
        let mut kept: Option<Vec<u32>> = None;
        for condition in &fold.conditions {
            let rows = kept.as_ref().map_or_else(|| all.clone(), |kept| ChunkRows::of(kept));
            if rows.is_empty() {
                break;
            }
            if let Some(fewer) = self.evaluator.kept(condition, &rows)? {
                kept = Some(fewer);
            }
        }
        let rows = kept.as_ref().map_or(all, |kept| ChunkRows::of(kept));
        match rows.is_empty() {
            true => Ok(()),
            false => self.add_rows(&rows),
        }
    }

    fn add_rows(&mut self, rows: &ChunkRows<'_>) -> Result<()> {
        let fold = Arc::clone(&self.fold);
        let keys = fold.keys.iter().map(|key| self.evaluator.evaluate(key, rows));
        let keys = keys.collect::<Result<Vec<Evaluated>>>()?;
        self.local.find(&keys, rows);
        let operands = fold.operands.iter().map(|operand| self.evaluator.evaluate(operand, rows));
        let operands = operands.collect::<Result<Vec<Evaluated>>>()?;
        let states = self.local.measure(&self.measures, &operands, rows)?;
        let count = self.local.len();
        // Where hardly any group comes again, looking for it is for nothing.
        let is_worth_it = self.looked_up < TRIAL_GROUPS || self.found > self.looked_up / 4;
        if !is_worth_it {
            let mut each = Groups::new(&self.measures);
            each.add_new(&self.local, &keys, rows, &fold, states)?;
            let batch = each.batch(&fold, &self.shown)?;
            self.full.extend(batch);
            return Ok(());
        }
        self.looked_up += count as u64;
        self.found += self.groups.add(&self.local, &keys, rows, &fold, states)? as u64;
        if self.groups.len() >= GROUPS_MAX || self.groups.memory_bytes() >= BYTES_MAX {
            self.give_all()?;
        }
        Ok(())
    }

    /// Moves all groups to what is given next.
    ///
    /// # Errors
    /// `Internal` where values do not fit the fold's schema.
    pub fn give_all(&mut self) -> Result<()> {
        let groups = std::mem::replace(&mut self.groups, Groups::new(&self.measures));
        let batch = groups.batch(&self.fold, &self.shown)?;
        self.full.extend(batch);
        Ok(())
    }

    /// A batch that is to be given by now.
    pub fn take(&mut self) -> Option<RecordBatch> {
        self.full.pop()
    }

    /// Memory that groups take, about, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let given = self.full.iter().map(RecordBatch::get_array_memory_size).sum::<usize>();
        given + self.groups.memory_bytes()
    }
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Folder({} groups)", self.groups.len())
    }
}
