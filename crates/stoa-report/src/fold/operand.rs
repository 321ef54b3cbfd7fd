//! Values of operands for the rows of a row group that count.
//!
//! In: chunks of the scan's columns, rows. Out: values, as far as they can stay packed and coded.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::concat::concat;
use stoa_error::{Error, Result};

use super::numbers::Number;
use super::{Operand, RowExpression};
use crate::chunk::Chunk;
use crate::rows::ChunkRows;
use crate::scan::BatchColumns;

/// Different values of a column for which an expression is computed once each.
const DIFFERENT_MAX: usize = 4096;

/// The values of an operand.
pub(super) enum Evaluated {
    /// Those of a column, by row.
    Rows(Arc<Chunk>),
    /// One for each code of a column.
    Coded { of: Arc<Chunk>, values: Arc<Chunk> },
    /// Those of a column of whole numbers, by row, and as much more for each.
    Shifted(Arc<Chunk>, i64),
    /// By position among the rows that count.
    Positions(Arc<Chunk>),
}

/// Values of which each row has one: those of a chunk, at its row or at another place.
pub(super) enum Places<'a> {
    Rows,
    Positions,
    Codes(&'a Chunk),
}

impl Evaluated {
    /// Appends codes that tell apart the values of the rows that count; how many codes there are. Two codes may be of
    /// the same value.
    pub(super) fn codes(&self, rows: &ChunkRows<'_>, codes: &mut Vec<u32>) -> u32 {
        match self {
            Self::Rows(chunk) | Self::Coded { of: chunk, .. } | Self::Shifted(chunk, _) => {
                chunk.codes(rows, codes)
            }
            Self::Positions(chunk) => chunk.codes(&ChunkRows::Range(0..rows.len()), codes),
        }
    }

    /// A chunk that has NULL where the values have, and where in it that of each row is.
    pub(super) fn nulls(&self) -> (&Chunk, Places<'_>) {
        match self {
            Self::Rows(chunk) | Self::Shifted(chunk, _) => (chunk, Places::Rows),
            Self::Coded { of, values } => (values, Places::Codes(of)),
            Self::Positions(chunk) => (chunk, Places::Positions),
        }
    }

    /// The chunk that has the values, and where in it that of each row is.
    pub(super) fn values(&self) -> (Arc<Chunk>, Places<'_>) {
        match self {
            Self::Rows(chunk) => (Arc::clone(chunk), Places::Rows),
            Self::Coded { of, values } => (Arc::clone(values), Places::Codes(of)),
            Self::Shifted(chunk, by) => (Arc::new(chunk.shifted(*by)), Places::Rows),
            Self::Positions(chunk) => (Arc::clone(chunk), Places::Positions),
        }
    }
}

impl Places<'_> {
    /// Where the values of rows at some positions are.
    pub(super) fn of(&self, positions: &[u32], rows: &ChunkRows<'_>) -> Vec<u32> {
        match self {
            Self::Rows => positions.iter().map(|at| rows.at(*at as usize) as u32).collect(),
            Self::Positions => positions.to_vec(),
            Self::Codes(of) => {
                let at: Vec<u32> =
                    positions.iter().map(|at| rows.at(*at as usize) as u32).collect();
                let mut codes = Vec::with_capacity(at.len());
                of.codes(&ChunkRows::List(&at), &mut codes);
                codes
            }
        }
    }
}

/// Evaluates operands over one row group after the other.
pub(super) struct Evaluator {
    /// The scan's columns.
    schema: SchemaRef,
    /// Of the row group, the columns of the scan's batches.
    chunks: Vec<Arc<Chunk>>,
}

impl Evaluator {
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self { schema, chunks: Vec::new() }
    }

    /// Goes on to another row group.
    pub(super) fn begin(&mut self, chunks: Vec<Arc<Chunk>>) {
        self.chunks = chunks;
    }

    fn chunk(&self, column: usize) -> Result<&Arc<Chunk>> {
        self.chunks.get(column).ok_or_else(|| Error::internal("a grouping misses a column"))
    }

    /// The values of an operand for some rows.
    pub(super) fn evaluate(&self, operand: &Operand, rows: &ChunkRows<'_>) -> Result<Evaluated> {
        match operand {
            Operand::Column(column) => self.chunk(*column).cloned().map(Evaluated::Rows),
            Operand::Number(number, expression) => match self.numbers(number, rows) {
                Some(numbers) => Ok(numbers),
                None => self.expression(expression, rows),
            },
            Operand::Expression(expression) => self.expression(expression, rows),
        }
    }

    /// The rows, of some, for which a condition is true; `None` for all.
    pub(super) fn kept(
        &self,
        condition: &Arc<dyn RowExpression>,
        rows: &ChunkRows<'_>,
    ) -> Result<Option<Vec<u32>>> {
        let (values, places) = match self.expression(condition, rows)? {
            Evaluated::Coded { of, values } => (values, Some(of)),
            Evaluated::Positions(values) => (values, None),
            _ => return Err(Error::internal("a condition is a column")),
        };
        let is_true = |at: usize| !values.is_null(at) && values.number(at) != 0;
        let mut list = Vec::with_capacity(rows.len());
        match places {
            Some(of) => {
                let kept: Vec<bool> = (0..values.rows()).map(is_true).collect();
                let mut codes = Vec::with_capacity(rows.len());
                of.codes(rows, &mut codes);
                let each = rows.iter().zip(&codes);
                list.extend(
                    each.filter(|(_, code)| kept[**code as usize]).map(|(row, _)| row as u32),
                );
            }
            None => {
                let each = rows.iter().enumerate();
                list.extend(each.filter(|(at, _)| is_true(*at)).map(|(_, row)| row as u32));
            }
        }
        Ok((list.len() < rows.len()).then_some(list))
    }

    /// Whole numbers, if they are sure to fit 64 bits.
    fn numbers(&self, number: &Number, rows: &ChunkRows<'_>) -> Option<Evaluated> {
        let ends = |column: usize| self.chunks.get(column)?.ends();
        number.ends(&ends)?;
        if let Some((column, by)) = number.shifted() {
            return Some(Evaluated::Shifted(Arc::clone(self.chunks.get(column)?), by));
        }
        let values = number.values(rows.len(), &mut |column| {
            let mut values = Vec::with_capacity(rows.len());
            self.chunks.get(column)?.whole_numbers(rows, &mut values).then_some(values)
        })?;
        let mut columns = Vec::new();
        number.columns(&mut columns);
        let with_nulls = columns.iter().filter_map(|column| self.chunks.get(*column));
        let nulls = with_nulls.filter(|chunk| chunk.has_nulls()).fold(None, |nulls, chunk| {
            let valid = rows.iter().map(|row| !chunk.is_null(row));
            NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::from_iter(valid)))
        });
        Some(Evaluated::Positions(Arc::new(Chunk::of_numbers(values, nulls))))
    }

    fn expression(
        &self,
        expression: &Arc<dyn RowExpression>,
        rows: &ChunkRows<'_>,
    ) -> Result<Evaluated> {
        if let [column] = expression.columns() {
            let of = self.chunk(*column)?;
            let different = of.different(DIFFERENT_MAX.min(rows.len() / 2));
            // Of those, some may not be among the rows, and an error may come of them.
            if let Some(different) = different
                && let Ok(values) = self.compute(expression, &[Arc::new(different)], None)
            {
                return Ok(Evaluated::Coded { of: Arc::clone(of), values: Arc::new(values) });
            }
        }
        let chunks = expression.columns().iter().map(|column| self.chunk(*column).cloned());
        let chunks = chunks.collect::<Result<Vec<_>>>()?;
        let values = self.compute(expression, &chunks, Some(rows))?;
        Ok(Evaluated::Positions(Arc::new(values)))
    }

    /// The values of an expression whose columns are `chunks`, for some rows of theirs, or all.
    fn compute(
        &self,
        expression: &Arc<dyn RowExpression>,
        chunks: &[Arc<Chunk>],
        rows: Option<&ChunkRows<'_>>,
    ) -> Result<Chunk> {
        let misfit = |e: ArrowError| {
            Error::internal("a grouping computes of columns that its scan does not give")
                .with_source(e)
        };
        let schema = self.schema.project(expression.columns()).map_err(misfit)?;
        let all = ChunkRows::Range(0..chunks.first().map_or(0, |chunk| chunk.rows()));
        let rows = rows.unwrap_or(&all);
        let mut columns = BatchColumns::new(Arc::new(nullable(&schema)), rows.len())?;
        let mut pieces: Vec<ArrayRef> = Vec::new();
        let mut given = 0;
        // Several only where texts are very long.
        while given < rows.len() || pieces.is_empty() {
            given += columns.add(chunks, &rows.part(given..rows.len()))?;
            let batch: RecordBatch = columns.take()?;
            let values = expression.evaluate(&batch)?;
            if values.len() != batch.num_rows() {
                return Err(Error::internal("an expression has not one value for each row"));
            }
            pieces.push(values);
        }
        let values = match pieces.as_slice() {
            [one] => Arc::clone(one),
            pieces => {
                let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
                concat(&pieces).map_err(misfit)?
            }
        };
        let chunk = Chunk::of(&values);
        chunk.ok_or_else(|| Error::internal(format!("a grouping by {}", values.data_type())))
    }
}

/// The same columns, of which any may be NULL: one of the different values of a column is.
fn nullable(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Schema::new(fields.collect::<Vec<_>>())
}
