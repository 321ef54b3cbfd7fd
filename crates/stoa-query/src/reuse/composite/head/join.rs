//! Joins of rows that are all there.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch, UInt32Array, UInt32Builder,
};
use arrow::compute::{cast, filter, take};
use arrow::datatypes::{DataType, Int64Type, SchemaRef, UInt32Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::error::Result as EngineResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use foldhash::fast::RandomState;

use super::{Computation, batch_of, internal};

/// Bytes of a pair of rows, before any column of it.
const PAIR_BYTES: usize = 8;

/// Keys, condition, and which rows without a partner stay.
pub(super) struct Join {
    on: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    condition: Option<JoinFilter>,
    kind: JoinType,
    null_equality: NullEquality,
    columns: Option<Vec<usize>>,
    schema: SchemaRef,
}

/// Rows of both sides that belong together, by their numbers.
#[derive(Default)]
struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Join {
    /// That of an operator, and what it reads; `None` for other operators.
    pub(super) fn of(
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Option<(Self, [&Arc<dyn ExecutionPlan>; 2])> {
        let join = |kind, condition: Option<&JoinFilter>, columns: Option<Vec<usize>>| Self {
            on: Vec::new(),
            condition: condition.cloned(),
            kind,
            null_equality: NullEquality::NullEqualsNothing,
            columns,
            schema: plan.schema(),
        };
        if let Some(cross) = plan.downcast_ref::<CrossJoinExec>() {
            return Some((join(JoinType::Inner, None, None), [cross.left(), cross.right()]));
        }
        if let Some(nested) = plan.downcast_ref::<NestedLoopJoinExec>() {
            let columns = nested.projection().as_ref().map(|columns| columns.to_vec());
            let join = join(*nested.join_type(), nested.filter(), columns);
            return join.is_known().then_some((join, [nested.left(), nested.right()]));
        }
        let hash = plan.downcast_ref::<HashJoinExec>()?;
        let columns = hash.projection.as_ref().map(|columns| columns.to_vec());
        let on = hash.on().to_vec();
        let (left, right) = (hash.left().schema(), hash.right().schema());
        for (one, other) in &on {
            let (one, other) = (one.data_type(&left).ok()?, other.data_type(&right).ok()?);
            (one == other && is_key(&one)).then_some(())?;
        }
        let join = Self {
            on,
            null_equality: hash.null_equality(),
            ..join(*hash.join_type(), hash.filter(), columns)
        };
        let is_plain = !hash.null_aware && hash.fetch().is_none() && join.is_known();
        is_plain.then_some((join, [hash.left(), hash.right()]))
    }

    fn is_known(&self) -> bool {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftSemi, Right, RightAnti, RightSemi};
        matches!(
            self.kind,
            Inner | Left | Right | Full | LeftSemi | LeftAnti | RightSemi | RightAnti
        )
    }

    /// The joined rows.
    ///
    /// # Errors
    /// Those of expressions; too many pairs.
    pub(super) fn compute(
        &self,
        left: &RecordBatch,
        right: &RecordBatch,
        computation: &mut Computation<'_>,
    ) -> EngineResult<RecordBatch> {
        let mut pairs = match self.on.is_empty() {
            true => all_pairs(left, right, computation)?,
            false => self.equal_pairs(left, right, computation)?,
        };
        if let Some(condition) = &self.condition {
            pairs = pairs.that_meet(condition, left, right)?;
        }
        let (lefts, rights) = self.chosen(pairs, left.num_rows(), right.num_rows());
        let rows = lefts.as_ref().or(rights.as_ref()).map_or(0, Array::len);
        let sides = [(left, lefts), (right, rights)];
        let taken = sides.iter().filter_map(|(batch, rows)| Some((batch, rows.as_ref()?)));
        let columns = taken.flat_map(|(batch, rows)| {
            batch.columns().iter().map(move |column| Ok(take(column, rows, None)?))
        });
        let columns = columns.collect::<EngineResult<Vec<ArrayRef>>>()?;
        let columns = match &self.columns {
            Some(chosen) => {
                let column = |at: &usize| columns.get(*at).cloned();
                let chosen = chosen.iter().map(column).collect::<Option<Vec<_>>>();
                chosen.ok_or_else(|| internal("a join lacks a column"))?
            }
            None => columns,
        };
        batch_of(&self.schema, columns, rows)
    }

    /// The rows of each side that the answer has, in its order; `None` for a side that it does not have.
    fn chosen(
        &self,
        pairs: Pairs,
        lefts: usize,
        rights: usize,
    ) -> (Option<UInt32Array>, Option<UInt32Array>) {
        let partnered = |rows: &[u32], count: usize| {
            let mut has = vec![false; count];
            rows.iter().for_each(|row| has[*row as usize] = true);
            has
        };
        let those = |has: Vec<bool>, wanted: bool| {
            let rows = has.into_iter().zip(0_u32..).filter(|(has, _)| *has == wanted);
            UInt32Array::from_iter_values(rows.map(|(_, row)| row))
        };
        match self.kind {
            JoinType::LeftSemi | JoinType::LeftAnti => {
                let has = partnered(&pairs.left, lefts);
                return (Some(those(has, self.kind == JoinType::LeftSemi)), None);
            }
            JoinType::RightSemi | JoinType::RightAnti => {
                let has = partnered(&pairs.right, rights);
                return (None, Some(those(has, self.kind == JoinType::RightSemi)));
            }
            _ => {}
        }
        let alone = |wanted: bool, rows: &[u32], count: usize| match wanted {
            true => those(partnered(rows, count), false),
            false => UInt32Array::from_iter_values(std::iter::empty()),
        };
        let keeps_left = matches!(self.kind, JoinType::Left | JoinType::Full);
        let keeps_right = matches!(self.kind, JoinType::Right | JoinType::Full);
        let left_alone = alone(keeps_left, &pairs.left, lefts);
        let right_alone = alone(keeps_right, &pairs.right, rights);
        let (mut left, mut right) = (UInt32Builder::new(), UInt32Builder::new());
        left.append_slice(&pairs.left);
        right.append_slice(&pairs.right);
        left.append_slice(left_alone.values());
        right.append_nulls(left_alone.len());
        left.append_nulls(right_alone.len());
        right.append_slice(right_alone.values());
        (Some(left.finish()), Some(right.finish()))
    }

    fn equal_pairs(
        &self,
        left: &RecordBatch,
        right: &RecordBatch,
        computation: &mut Computation<'_>,
    ) -> EngineResult<Pairs> {
        let keys = |batch: &RecordBatch, of_left: bool| {
            let key = |(left, right): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
                let key = if of_left { left } else { right };
                key.evaluate(batch)?.into_array(batch.num_rows())
            };
            self.on.iter().map(key).collect::<EngineResult<Vec<_>>>()
        };
        let (left_keys, right_keys) = (keys(left, true)?, keys(right, false)?);
        if let ([left], [right]) = (left_keys.as_slice(), right_keys.as_slice())
            && self.null_equality == NullEquality::NullEqualsNothing
            && left.data_type().is_integer()
        {
            let (left, right) = (cast(left, &DataType::Int64)?, cast(right, &DataType::Int64)?);
            let (left, right) = (left.as_primitive_opt(), right.as_primitive_opt());
            if let (Some(left), Some(right)) = (left, right) {
                return matched(numbers(left), numbers(right), computation);
            }
        }
        let types = left_keys.iter().map(|key| SortField::new(key.data_type().clone()));
        let converter = RowConverter::new(types.collect())?;
        let (lefts, rights) =
            (converter.convert_columns(&left_keys)?, converter.convert_columns(&right_keys)?);
        let counts = |keys: &[ArrayRef], row: usize| {
            self.null_equality == NullEquality::NullEqualsNull
                || keys.iter().all(|key| key.is_valid(row))
        };
        let lefts = lefts.iter().enumerate();
        let lefts = lefts.map(|(row, key)| counts(&left_keys, row).then_some(key));
        let rights = rights.iter().enumerate();
        let rights = rights.map(|(row, key)| counts(&right_keys, row).then_some(key));
        matched(lefts, rights, computation)
    }
}

/// The keys of a column of whole numbers.
fn numbers(keys: &PrimitiveArray<Int64Type>) -> impl ExactSizeIterator<Item = Option<i64>> + '_ {
    keys.iter()
}

/// Rows with equal keys; those without a key have no partner.
fn matched<K: Copy + Eq + Hash>(
    left: impl ExactSizeIterator<Item = Option<K>>,
    right: impl ExactSizeIterator<Item = Option<K>>,
    computation: &mut Computation<'_>,
) -> EngineResult<Pairs> {
    let mut pairs = Pairs::default();
    // The smaller side is put into a table: the other may be all of a large dimension.
    if left.len() <= right.len() {
        Partners::of(left).find(right, &mut pairs.left, &mut pairs.right, computation)?;
    } else {
        Partners::of(right).find(left, &mut pairs.right, &mut pairs.left, computation)?;
    }
    Ok(pairs)
}

/// The rows of one side by key: the last one of each, and the one before each.
struct Partners<K> {
    last: HashMap<K, u32, RandomState>,
    before: Vec<Option<u32>>,
}

impl<K: Copy + Eq + Hash> Partners<K> {
    fn of(keys: impl ExactSizeIterator<Item = Option<K>>) -> Self {
        let mut last = HashMap::with_capacity_and_hasher(keys.len(), RandomState::default());
        let before = keys.zip(0_u32..).map(|(key, row)| last.insert(key?, row)).collect();
        Self { last, before }
    }

    /// Adds pairs of a row of this side and one of another.
    fn find(
        &self,
        others: impl Iterator<Item = Option<K>>,
        own: &mut Vec<u32>,
        other: &mut Vec<u32>,
        computation: &mut Computation<'_>,
    ) -> EngineResult<()> {
        for (key, row) in others.zip(0_u32..) {
            let mut partner = key.and_then(|key| self.last.get(&key).copied());
            while let Some(found) = partner {
                computation.take(PAIR_BYTES)?;
                own.push(found);
                other.push(row);
                partner = self.before.get(found as usize).copied().flatten();
            }
        }
        Ok(())
    }
}

impl Pairs {
    /// Those for which a condition is true.
    fn that_meet(
        self,
        condition: &JoinFilter,
        left: &RecordBatch,
        right: &RecordBatch,
    ) -> EngineResult<Self> {
        let (lefts, rights) = (UInt32Array::from(self.left), UInt32Array::from(self.right));
        let columns = condition.column_indices().iter().map(|column| {
            let (batch, rows) = match column.side {
                JoinSide::Left => (left, &lefts),
                JoinSide::Right => (right, &rights),
                JoinSide::None => return Err(internal("a join's condition is of no side")),
            };
            Ok(take(batch.column(column.index), rows, None)?)
        });
        let columns = columns.collect::<EngineResult<Vec<ArrayRef>>>()?;
        let batch = batch_of(condition.schema(), columns, lefts.len())?;
        let met = condition.expression().evaluate(&batch)?.into_array(batch.num_rows())?;
        let met = met.as_boolean_opt().ok_or_else(|| internal("a condition is none"))?;
        let kept = |rows: &UInt32Array| -> EngineResult<Vec<u32>> {
            let kept = filter(rows, met)?;
            let kept = kept.as_primitive_opt::<UInt32Type>();
            Ok(kept.map(|kept| kept.values().to_vec()).unwrap_or_default())
        };
        Ok(Self { left: kept(&lefts)?, right: kept(&rights)? })
    }
}

fn all_pairs(
    left: &RecordBatch,
    right: &RecordBatch,
    computation: &mut Computation<'_>,
) -> EngineResult<Pairs> {
    let (lefts, rights) = (left.num_rows(), right.num_rows());
    computation.take(lefts.saturating_mul(rights).saturating_mul(PAIR_BYTES))?;
    let numbers = |count: usize| (0_u32..).take(count);
    let mut pairs = Pairs::default();
    for row in numbers(lefts) {
        pairs.left.extend(std::iter::repeat_n(row, rights));
        pairs.right.extend(numbers(rights));
    }
    Ok(pairs)
}

/// Types whose values are equal where their bytes are.
fn is_key(of: &DataType) -> bool {
    of.is_integer()
        || matches!(
            of,
            DataType::Boolean
                | DataType::Utf8
                | DataType::Date32
                | DataType::Timestamp(..)
                | DataType::Decimal128(..)
        )
}
