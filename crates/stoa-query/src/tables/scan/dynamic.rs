//! Filters that operators above a scan make while they run: the keys of a join's other side, the least of the best
//! rows so far.
//!
//! In: the engine's dynamic filters over the columns of a scan. Out: for scans of chunks, bounds by which row groups
//! and packed values are left out, and which rows are kept. **Invariant:** rows are left out only by what a filter
//! says at that moment; the operator that made it judges all others again.

mod placing;

use std::any::Any;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNullExpr, Literal,
};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use parking_lot::Mutex;
use stoa_error::Result;
use stoa_orc::{ColumnRef, CompareOp, Predicate};
use stoa_report::{Condition, Members, RowJudge, ScanFilter};
use stoa_semantics::errors::from_datafusion;

pub(crate) use placing::place_filters;

use super::chunks::filter_of;
use super::selected::id_of;
use crate::tables::filter::{compare, compare_op, mirror};

/// A dynamic filter of one scan.
#[derive(Debug)]
pub(super) struct DynamicFilter {
    /// Over the scan's columns.
    filter: Arc<dyn PhysicalExpr>,
    /// The scan's columns.
    schema: Arc<Schema>,
    /// Those that the filter is about, ascending.
    columns: Vec<usize>,
    /// The filter over these alone.
    over_columns: Arc<dyn PhysicalExpr>,
    /// What was known when it was asked for the last time.
    compiled: Mutex<Option<Compiled>>,
}

/// A filter that is known, as scans judge it.
#[derive(Debug)]
struct Compiled {
    known: Arc<dyn PhysicalExpr>,
    filter: ScanFilter,
    is_all: bool,
}

impl DynamicFilter {
    pub(super) fn is_one(filter: &Arc<dyn PhysicalExpr>) -> bool {
        as_any(filter).is::<DynamicFilterPhysicalExpr>()
    }

    /// `None` for other filters.
    ///
    /// # Errors
    /// A filter over columns that the scan does not have.
    pub(super) fn of(
        filter: &Arc<dyn PhysicalExpr>,
        schema: &Arc<Schema>,
    ) -> EngineResult<Option<Self>> {
        if !Self::is_one(filter) {
            return Ok(None);
        }
        let mut columns: Vec<usize> = collect_columns(filter).iter().map(Column::index).collect();
        columns.sort_unstable();
        let over_columns = reassign_expr_columns(Arc::clone(filter), &schema.project(&columns)?)?;
        let schema = Arc::clone(schema);
        let (filter, compiled) = (Arc::clone(filter), Mutex::new(None));
        Ok(Some(Self { filter, schema, columns, over_columns, compiled }))
    }

    /// What is known by now, if anything.
    fn known(&self) -> EngineResult<Option<Arc<dyn PhysicalExpr>>> {
        let filter = as_any(&self.filter).downcast_ref::<DynamicFilterPhysicalExpr>();
        let known = filter.map(DynamicFilterPhysicalExpr::current).transpose()?;
        Ok(known.filter(|known| !is_true(known)))
    }
}

impl RowJudge for DynamicFilter {
    fn columns(&self) -> &[usize] {
        &self.columns
    }

    fn filter(&self) -> (ScanFilter, bool) {
        let Ok(Some(known)) = self.known() else { return (ScanFilter::All(Vec::new()), true) };
        let mut compiled = self.compiled.lock();
        match compiled.as_ref().filter(|last| Arc::ptr_eq(&last.known, &known)) {
            Some(last) => (last.filter.clone(), last.is_all),
            None => {
                let (filter, is_all) = Compiler { filter: self }.compile(&known);
                let filter_now = filter.clone();
                *compiled = Some(Compiled { known, filter, is_all });
                (filter_now, is_all)
            }
        }
    }

    fn keep(&self, rows: &RecordBatch) -> Result<Option<BooleanArray>> {
        if self.known().map_err(from_datafusion)?.is_none() {
            return Ok(None);
        }
        let kept = self.over_columns.evaluate(rows);
        let kept = kept.and_then(|kept| kept.into_array(rows.num_rows()));
        let kept = kept.map_err(from_datafusion)?;
        Ok(kept.as_any().downcast_ref::<BooleanArray>().cloned())
    }
}

fn as_any(expr: &Arc<dyn PhysicalExpr>) -> &dyn Any {
    expr.as_ref()
}

fn is_true(expr: &Arc<dyn PhysicalExpr>) -> bool {
    literal_of(expr) == Some(&ScalarValue::Boolean(Some(true)))
}

fn literal_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    as_any(expr).downcast_ref::<Literal>().map(Literal::value)
}

fn column_of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<ColumnRef> {
    let column = as_any(expr).downcast_ref::<Column>()?;
    let field = schema.fields().get(column.index())?;
    id_of(field.metadata()).map(ColumnRef::Field)
}

/// Makes filters of scans out of the engine's expressions.
struct Compiler<'a> {
    filter: &'a DynamicFilter,
}

impl Compiler<'_> {
    /// What of an expression scans can judge, and whether that is all of it.
    fn compile(&self, expr: &Arc<dyn PhysicalExpr>) -> (ScanFilter, bool) {
        if let Some(value) = literal_of(expr) {
            return match value {
                ScalarValue::Boolean(Some(false)) => (ScanFilter::Any(Vec::new()), true),
                value => (ScanFilter::All(Vec::new()), *value == ScalarValue::Boolean(Some(true))),
            };
        }
        if let Some(binary) = as_any(expr).downcast_ref::<BinaryExpr>() {
            match binary.op() {
                Operator::And => return self.all([binary.left(), binary.right()].into_iter()),
                Operator::Or => return self.any([binary.left(), binary.right()].into_iter()),
                _ => {}
            }
        }
        // Of a join in parts: each row has the part that its key belongs to, and no other part has the key.
        if let Some(case) = as_any(expr).downcast_ref::<CaseExpr>() {
            let parts = case.when_then_expr().iter().map(|(_, then)| then);
            return self.any(parts.chain(case.else_expr()));
        }
        if let Some(list) = as_any(expr).downcast_ref::<InListExpr>() {
            let several = as_any(list.expr()).downcast_ref::<ScalarFunctionExpr>();
            let members = match several {
                Some(keys) => self.members_of_each(list, keys.args()),
                None => self.members(list.expr(), list, |value| Some(value.clone())),
            };
            if let Some(members) = members {
                return (members, true);
            }
        }
        let predicate = self.predicate(expr);
        let filter = predicate.map(|predicate| {
            filter_of(&predicate, &mut |id, test| {
                let schema = &self.filter.schema;
                let of_id = |column: &usize| id_of(schema.field(*column).metadata()) == Some(id);
                let column = self.filter.columns.iter().copied().find(of_id)?;
                Some(Condition { column, test })
            })
        });
        match filter {
            // An empty one keeps all rows, because nothing could be told.
            Some(ScanFilter::All(parts)) if parts.is_empty() => (ScanFilter::All(parts), false),
            Some(filter) => (filter, true),
            // The engine compares several keys as records, one by one, which takes longer than joining them.
            None => (ScanFilter::All(Vec::new()), collect_columns(expr).len() > 1),
        }
    }

    fn all<'a>(
        &self,
        parts: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>,
    ) -> (ScanFilter, bool) {
        let (parts, are_all): (Vec<_>, Vec<_>) = parts.map(|part| self.compile(part)).unzip();
        (ScanFilter::All(parts), are_all.into_iter().all(|is_all| is_all))
    }

    fn any<'a>(
        &self,
        parts: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>,
    ) -> (ScanFilter, bool) {
        let (parts, are_all): (Vec<_>, Vec<_>) = parts.map(|part| self.compile(part)).unzip();
        (ScanFilter::Any(parts), are_all.into_iter().all(|is_all| is_all))
    }

    /// Several columns of records in a list: each column is one of the numbers that are there in its place.
    fn members_of_each(
        &self,
        list: &InListExpr,
        columns: &[Arc<dyn PhysicalExpr>],
    ) -> Option<ScanFilter> {
        let each = columns.iter().enumerate().filter_map(|(place, column)| {
            self.members(column, list, |record| match record {
                ScalarValue::Struct(record) => {
                    ScalarValue::try_from_array(record.columns().get(place)?, 0).ok()
                }
                _ => None,
            })
        });
        Some(ScanFilter::All(each.collect()))
    }

    /// A column that is one of many whole numbers, which are in the values of a list; no row is where it is NULL.
    fn members(
        &self,
        column: &Arc<dyn PhysicalExpr>,
        list: &InListExpr,
        number: impl Fn(&ScalarValue) -> Option<ScalarValue>,
    ) -> Option<ScanFilter> {
        let column = as_any(column).downcast_ref::<Column>()?.index();
        if list.negated() || !self.filter.columns.contains(&column) {
            return None;
        }
        let data_type = self.filter.schema.field(column).data_type();
        if !data_type.is_integer() && *data_type != DataType::Date32 {
            return None;
        }
        let mut values = Vec::with_capacity(list.list().len());
        for value in list.list() {
            let value = number(literal_of(value)?)?;
            if !value.is_null() {
                values.push(whole_number(&value)?);
            }
        }
        Some(ScanFilter::Member(column, Arc::new(Members::new(&values))))
    }

    /// A comparison as bounds can judge it.
    fn predicate(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Predicate> {
        let schema = self.filter.schema.as_ref();
        if let Some(is_null) = as_any(expr).downcast_ref::<IsNullExpr>() {
            return column_of(is_null.arg(), schema).map(Predicate::IsNull);
        }
        let binary = as_any(expr).downcast_ref::<BinaryExpr>()?;
        let (left, right) = (binary.left(), binary.right());
        let op: CompareOp = compare_op(*binary.op())?;
        match (column_of(left, schema), column_of(right, schema)) {
            (Some(column), None) => compare(column, op, literal_of(right)?, schema),
            (None, Some(column)) => compare(column, mirror(op), literal_of(left)?, schema),
            _ => None,
        }
    }
}

fn whole_number(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int8(value) => value.map(i64::from),
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => *value,
        _ => None,
    }
}
