//! Which rows of a batch a predicate keeps, judged by the columns that it tests.
//!
//! In: decoded predicate columns, one after the other. Out: which rows may match, so that the other columns are decoded for
//! these at most. **Invariant:** a row that the predicate keeps is kept; a test that is not understood keeps all rows. NULL
//! matches no comparison.

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray};
use arrow_buffer::{BooleanBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::filter::{FilterBuilder, FilterPredicate};

use super::plan::{Plan, PlanChild};
use crate::predicate::{CompareOp, Literal};
use crate::prune::{Condition, Test};

/// A predicate over the columns of a batch.
#[derive(Debug)]
pub(crate) struct RowFilter {
    parts: Vec<Part>,
}

/// One of the conditions that must all hold.
#[derive(Debug)]
pub(crate) struct Part {
    node: Node,
    columns: Vec<usize>,
}

#[derive(Debug)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Constant(bool),
    /// A test of the column at an index of the batch.
    Test(usize, Test),
}

/// Of more than this share of the rows, all from the first to the last one are kept: to leave out the others costs more than
/// it saves whoever gets them.
const FILTERED_SHARE_MAX: f64 = 0.75;

impl RowFilter {
    /// The filter of a condition; `None` if no column that is read is tested, so that nothing
    /// could be left out.
    pub(crate) fn new(condition: &Condition, plan: &Plan) -> Option<Self> {
        if plan.is_wrapped {
            return None;
        }
        let conditions = match condition {
            Condition::And(conditions) => conditions.as_slice(),
            one => std::slice::from_ref(one),
        };
        let part = |condition| {
            let mut columns = Vec::new();
            let node = Node::new(condition, plan, &mut columns);
            columns.sort_unstable();
            columns.dedup();
            Part { node, columns }
        };
        let parts: Vec<Part> = conditions.iter().map(part).collect();
        parts.iter().any(|part| !part.columns.is_empty()).then_some(Self { parts })
    }

    /// Conditions that must all hold.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl Part {
    /// Indexes of the columns tested, none twice.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().copied()
    }

    /// Which rows may match; `arrays` holds the columns tested.
    pub(crate) fn evaluate(&self, arrays: &[Option<ArrayRef>]) -> Mask {
        self.node.evaluate(arrays)
    }
}

/// Rows that may match.
pub(crate) enum Mask {
    All,
    None,
    Some(BooleanBuffer),
}

/// Rows of a batch that are kept.
pub(crate) struct Kept {
    /// From the first to the last of them.
    pub(crate) span: Range<usize>,
    /// Which rows of the span they are; `None` = all.
    pub(crate) filter: Option<FilterPredicate>,
}

impl Mask {
    /// Rows that may match both.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::All, mask) | (mask, Self::All) => mask,
            (Self::Some(a), Self::Some(b)) => Self::Some(&a & &b),
        }
    }

    /// Whether no row may match.
    pub(crate) fn is_none(&self) -> bool {
        match self {
            Self::All => false,
            Self::None => true,
            Self::Some(mask) => mask.count_set_bits() == 0,
        }
    }

    /// What is kept of `rows` rows.
    pub(crate) fn kept(self, rows: usize) -> Kept {
        let mask = match self {
            Self::All => return Kept { span: 0..rows, filter: None },
            Self::None => return Kept { span: 0..0, filter: None },
            Self::Some(mask) => mask,
        };
        let mut slices = mask.set_slices();
        let Some((start, end)) = slices.next() else { return Kept { span: 0..0, filter: None } };
        let end = slices.last().map_or(end, |(_, end)| end);
        let mask = mask.slice(start, end - start);
        let few = mask.count_set_bits() as f64 <= FILTERED_SHARE_MAX * mask.len() as f64;
        // The filter is used for each column.
        let filter = || FilterBuilder::new(&BooleanArray::new(mask, None)).optimize().build();
        Kept { span: start..end, filter: few.then(filter) }
    }
}

impl Node {
    fn new(condition: &Condition, plan: &Plan, columns: &mut Vec<usize>) -> Self {
        let mut all = |parts: &[Condition]| {
            parts.iter().map(|part| Self::new(part, plan, columns)).collect::<Vec<_>>()
        };
        match condition {
            Condition::And(parts) => Self::And(all(parts)),
            Condition::Or(parts) => Self::Or(all(parts)),
            Condition::Constant(value) => Self::Constant(*value),
            Condition::Test { column, test } => {
                let is_it = |child: &PlanChild| matches!(child, PlanChild::Read(node) if node.column == *column);
                match plan.root.children.iter().position(is_it) {
                    Some(index) => {
                        columns.push(index);
                        Self::Test(index, test.clone())
                    }
                    None => Self::Constant(true),
                }
            }
        }
    }

    fn evaluate(&self, arrays: &[Option<ArrayRef>]) -> Mask {
        match self {
            Self::Constant(true) => Mask::All,
            Self::Constant(false) => Mask::None,
            Self::And(parts) => {
                let of_parts = parts.iter().map(|part| part.evaluate(arrays));
                of_parts.fold(Mask::All, Mask::and)
            }
            Self::Or(parts) => {
                let mut result = Mask::None;
                for part in parts {
                    result = match (result, part.evaluate(arrays)) {
                        (Mask::All, _) | (_, Mask::All) => return Mask::All,
                        (Mask::None, mask) | (mask, Mask::None) => mask,
                        (Mask::Some(a), Mask::Some(b)) => Mask::Some(&a | &b),
                    };
                }
                result
            }
            Self::Test(index, test) => match arrays.get(*index) {
                Some(Some(array)) => evaluate(test, array),
                _ => Mask::All,
            },
        }
    }
}

fn evaluate(test: &Test, array: &ArrayRef) -> Mask {
    if let (Test::Compare(..) | Test::In(_), Some(coded)) =
        (test, array.as_dictionary_opt::<Int32Type>())
    {
        return evaluate_coded(test, coded);
    }
    let mask = match test {
        Test::IsNull => match array.nulls() {
            Some(nulls) => return Mask::Some(!nulls.inner()),
            // Unions and dictionaries hide their NULLs: only a plain array without is certain.
            None if is_plain(array.data_type()) => return Mask::None,
            None => return Mask::All,
        },
        Test::IsNotNull => match array.nulls() {
            Some(nulls) => return Mask::Some(nulls.inner().clone()),
            None => return Mask::All,
        },
        Test::Compare(op, value) => compare(array, *op, value),
        Test::In(values) => {
            let mut any: Option<BooleanBuffer> = None;
            for value in values {
                let Some(mask) = compare(array, CompareOp::Eq, value) else { return Mask::All };
                any = Some(any.map_or(mask.clone(), |any| &any | &mask));
            }
            match any {
                Some(any) => Some(any),
                None => return Mask::None,
            }
        }
    };
    match (mask, array.nulls()) {
        (None, _) => Mask::All,
        (Some(mask), None) => Mask::Some(mask),
        (Some(mask), Some(nulls)) => Mask::Some(&mask & nulls.inner()),
    }
}

/// Tests each entry once.
fn evaluate_coded(test: &Test, coded: &DictionaryArray<Int32Type>) -> Mask {
    let matches: Vec<bool> = match evaluate(test, coded.values()) {
        Mask::All => return coded.nulls().map_or(Mask::All, |n| Mask::Some(n.inner().clone())),
        Mask::None => return Mask::None,
        Mask::Some(mask) => mask.iter().collect(),
    };
    // Without entries, all rows are NULL.
    let Some(last) = matches.len().checked_sub(1) else { return Mask::None };
    // Keys of NULLs may be anything.
    let keys = coded.keys().values();
    let mask = BooleanBuffer::collect_bool(keys.len(), |row| {
        matches[(keys[row].max(0) as usize).min(last)]
    });
    Mask::Some(match coded.nulls() {
        Some(nulls) => &mask & nulls.inner(),
        None => mask,
    })
}

fn is_plain(data_type: &DataType) -> bool {
    data_type.is_primitive()
        || matches!(data_type, DataType::Boolean | DataType::Utf8 | DataType::Utf8View)
}

/// Rows whose value compares like this; `None` if array and value are not compared here.
fn compare(array: &ArrayRef, op: CompareOp, value: &Literal) -> Option<BooleanBuffer> {
    Some(match (array.data_type(), value) {
        (DataType::Int8, Literal::Int(v)) => integers::<Int8Type>(array, op, *v),
        (DataType::Int16, Literal::Int(v)) => integers::<Int16Type>(array, op, *v),
        (DataType::Int32, Literal::Int(v)) => integers::<Int32Type>(array, op, *v),
        (DataType::Int64, Literal::Int(v)) => integers::<Int64Type>(array, op, *v),
        (DataType::Date32, Literal::Date(v)) => integers::<Date32Type>(array, op, i64::from(*v)),
        (DataType::Timestamp(TimeUnit::Microsecond, _), Literal::TimestampMicros(v)) => {
            integers::<TimestampMicrosecondType>(array, op, *v)
        }
        (DataType::Timestamp(TimeUnit::Nanosecond, _), Literal::TimestampMicros(v)) => {
            let values = array.as_primitive::<TimestampNanosecondType>().values();
            let v = i128::from(*v) * 1000;
            ordered(values, op, |nanos| i128::from(*nanos), v)
        }
        (DataType::Decimal128(_, scale), Literal::Decimal(v, from)) => {
            let by = u32::try_from(i32::from(*scale) - i32::from(*from)).ok()?;
            let v = v.checked_mul(10i128.checked_pow(by)?)?;
            ordered(array.as_primitive::<Decimal128Type>().values(), op, |value| *value, v)
        }
        (DataType::Float32, Literal::Float(v)) => {
            floats(array.as_primitive::<Float32Type>().values(), op, *v, |value| f64::from(*value))
        }
        (DataType::Float64, Literal::Float(v)) => {
            floats(array.as_primitive::<Float64Type>().values(), op, *v, |value| *value)
        }
        (DataType::Utf8, Literal::String(v)) => {
            let array = array.as_string::<i32>();
            texts(array.len(), op, v, |row| array.value(row))
        }
        (DataType::Utf8View, Literal::String(v)) => {
            let array = array.as_string_view();
            texts(array.len(), op, v, |row| array.value(row))
        }
        _ => return None,
    })
}

/// Whether an ordering of value and literal answers the comparison.
#[inline]
fn holds(op: CompareOp, ordering: Ordering) -> bool {
    match op {
        CompareOp::Eq => ordering.is_eq(),
        CompareOp::NotEq => ordering.is_ne(),
        CompareOp::Lt => ordering.is_lt(),
        CompareOp::LtEq => ordering.is_le(),
        CompareOp::Gt => ordering.is_gt(),
        CompareOp::GtEq => ordering.is_ge(),
    }
}

/// One loop per operator, so that each is a plain comparison.
fn ordered<T, V: Ord + Copy>(
    values: &[T],
    op: CompareOp,
    of: impl Fn(&T) -> V,
    v: V,
) -> BooleanBuffer {
    let count = values.len();
    match op {
        CompareOp::Eq => BooleanBuffer::collect_bool(count, |row| of(&values[row]) == v),
        CompareOp::NotEq => BooleanBuffer::collect_bool(count, |row| of(&values[row]) != v),
        CompareOp::Lt => BooleanBuffer::collect_bool(count, |row| of(&values[row]) < v),
        CompareOp::LtEq => BooleanBuffer::collect_bool(count, |row| of(&values[row]) <= v),
        CompareOp::Gt => BooleanBuffer::collect_bool(count, |row| of(&values[row]) > v),
        CompareOp::GtEq => BooleanBuffer::collect_bool(count, |row| of(&values[row]) >= v),
    }
}

fn integers<T: ArrowPrimitiveType>(array: &ArrayRef, op: CompareOp, v: i64) -> BooleanBuffer
where
    T::Native: Into<i64>,
{
    ordered(array.as_primitive::<T>().values(), op, |value| (*value).into(), v)
}

/// Keeps a row if the comparison holds by IEEE 754 or by total order: engines differ in zeros and
/// NaN.
fn floats<T: arrow_buffer::ArrowNativeType>(
    values: &ScalarBuffer<T>,
    op: CompareOp,
    v: f64,
    to_f64: impl Fn(&T) -> f64,
) -> BooleanBuffer {
    BooleanBuffer::collect_bool(values.len(), |row| {
        let value = to_f64(&values[row]);
        let ieee = value.partial_cmp(&v).map_or(op == CompareOp::NotEq, |o| holds(op, o));
        ieee || holds(op, value.total_cmp(&v))
    })
}

fn texts<'a>(
    count: usize,
    op: CompareOp,
    v: &str,
    value: impl Fn(usize) -> &'a str,
) -> BooleanBuffer {
    match op {
        CompareOp::Eq => BooleanBuffer::collect_bool(count, |row| value(row) == v),
        CompareOp::NotEq => BooleanBuffer::collect_bool(count, |row| value(row) != v),
        _ => BooleanBuffer::collect_bool(count, |row| holds(op, value(row).cmp(v))),
    }
}
