//! Functions that are declared by their operands' types and computed row by row.
//!
//! In: a call by name, with operands of any type. Out: the same call, its operands cast to what the
//! function takes, as PostgreSQL does implicitly: literals of no type yet to anything, numbers to wider
//! ones. **Invariants:** a function sees no other types than those declared; where one operand is NULL, so is the
//! result, unless the declaration says otherwise; a value has at most [`VALUE_BYTES_MAX`] bytes.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, Decimal256Array, ListArray, StringBuilder,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal256Type, Field, Float64Type, Int32Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType, i256,
};
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, ScalarUDF};

use super::call::{Operation, columns, failure, function};
use super::casts;
use super::json_kind::JsonKind;
use super::made_texts::{Texts, VALUE_BYTES_MAX, too_large};
use super::numeric::NUMERIC;
use super::operand_text;
use super::operators::type_name;
use super::refused::{self, told};
use super::unify::Branch;
use crate::scope::Scope;

/// The type of an operand or of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    /// A value of any type, as a text.
    Shown,
    Texts,
    /// Lists of lists of texts.
    Groups,
    Bytes,
    Boolean,
    Integer,
    /// What PostgreSQL takes for `integer` and not for `bigint`.
    Int4,
    Bigint,
    Double,
    Numeric,
    Date,
    Time,
    Timestamp,
    Instant,
    Interval,
}

impl Type {
    pub(super) fn arrow(self) -> DataType {
        let list = |of: DataType| DataType::List(Arc::new(Field::new_list_field(of, true)));
        match self {
            Self::Text | Self::Shown => DataType::Utf8,
            Self::Texts => list(DataType::Utf8),
            Self::Groups => list(list(DataType::Utf8)),
            Self::Bytes => DataType::Binary,
            Self::Boolean => DataType::Boolean,
            Self::Integer | Self::Int4 => DataType::Int32,
            Self::Bigint => DataType::Int64,
            Self::Double => DataType::Float64,
            Self::Numeric => NUMERIC,
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Microsecond),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        }
    }

    /// Whether PostgreSQL converts a value of another type without being asked.
    fn takes(self, of: &DataType) -> bool {
        let rank = |of: &DataType| match of {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt16 => Some(0),
            DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Some(1),
            of if of.is_decimal() => Some(2),
            DataType::Float32 => Some(3),
            DataType::Float64 => Some(4),
            _ => None,
        };
        let is_list = |of: &DataType| {
            use DataType::{FixedSizeList, LargeList, List};
            matches!(of, List(_) | LargeList(_) | FixedSizeList(..))
        };
        match self {
            Self::Text => of.is_string(),
            Self::Shown => true,
            Self::Int4 => rank(of) == Some(0),
            Self::Texts | Self::Groups => is_list(of),
            Self::Bytes => {
                matches!(of, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
            }
            // Lengths and places are `bigint` in Stoa, where PostgreSQL has `integer`.
            Self::Integer | Self::Bigint => matches!(rank(of), Some(0 | 1)),
            Self::Numeric => matches!(rank(of), Some(0..=2)),
            Self::Double => rank(of).is_some(),
            Self::Timestamp => {
                matches!(of, DataType::Timestamp(_, None) | DataType::Date32)
            }
            Self::Instant => matches!(of, DataType::Timestamp(..) | DataType::Date32),
            Self::Interval => matches!(of, DataType::Interval(_) | DataType::Duration(_)),
            other => other.arrow() == *of,
        }
    }
}

/// A function: its operands' types and what it computes.
pub(super) struct Declared {
    pub(super) name: &'static str,
    /// PostgreSQL's name, where the function has another one in plans.
    pub(super) called: &'static str,
    pub(super) takes: &'static [Type],
    /// Operands that must be given.
    pub(super) needed: usize,
    pub(super) makes: Type,
    /// Whether the result is a JSON value.
    pub(super) json: Option<JsonKind>,
    pub(super) compute: fn(&Row<'_>) -> Result<ArrayRef>,
}

/// A function that needs all its operands, is called in plans as in SQL, and makes no JSON.
pub(super) const fn declared(
    name: &'static str,
    takes: &'static [Type],
    makes: Type,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    Declared { name, called: name, takes, needed: takes.len(), makes, json: None, compute }
}

/// Its operands, as columns of the declared types.
pub(super) struct Row<'a> {
    pub(super) columns: &'a [ArrayRef],
    pub(super) rows: usize,
    pub(super) function: &'a Declared,
}

#[derive(Clone, Copy)]
pub(super) struct Call(pub(super) &'static Declared);

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
            || self.0.takes == other.0.takes && self.0.name == other.0.name
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
        self.0.takes.len().hash(state);
    }
}

impl Operation for Call {
    fn name(&self) -> &str {
        self.0.name
    }

    fn makes_nulls(&self) -> bool {
        true
    }

    fn json(&self) -> Option<JsonKind> {
        self.0.json
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        // The registry has one function of each name; which of them is called is decided later.
        let takes_as_many =
            |declared: &&Declared| (declared.needed..=declared.takes.len()).contains(&types.len());
        let of_the_name = all().filter(|declared| declared.name == self.0.name);
        match std::iter::once(self.0).chain(of_the_name).find(takes_as_many) {
            Some(declared) => Ok(declared.makes.arrow()),
            None => Err(does_not_exist(self.0, types)),
        }
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let typed = columns.iter().zip(self.0.takes).map(|(column, takes)| {
            let to = takes.arrow();
            if *column.data_type() == to {
                return Ok(Arc::clone(column));
            }
            arrow::compute::cast(column, &to)
        });
        let columns = typed.collect::<std::result::Result<Vec<_>, _>>()?;
        (self.0.compute)(&Row { columns: &columns, rows, function: self.0 })
    }
}

fn does_not_exist(function: &Declared, types: &[DataType]) -> DataFusionError {
    let types: Vec<String> = types.iter().map(type_name).collect();
    let message = format!("function {}({}) does not exist", function.called, types.join(", "));
    let hint = "No function matches the given name and argument types. \
        You might need to add explicit type casts.";
    refused::refusal("42883", message, hint)
}

/// All functions that are declared here, for the registry.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    all().map(|declared| function(Call(declared)))
}

/// The function of a name of its own.
pub(super) fn named(name: &str) -> Option<&'static Declared> {
    all().find(|declared| declared.name == name)
}

/// All declarations, by what they are about; they are made known once.
static ALL: OnceLock<&'static [&'static [Declared]]> = OnceLock::new();

/// Makes the functions known that there are.
pub(super) fn register(all: &'static [&'static [Declared]]) {
    // The second time, they are the same.
    let _ = ALL.set(all);
}

fn all() -> impl Iterator<Item = &'static Declared> {
    ALL.get().into_iter().flat_map(|parts| parts.iter()).flat_map(|part| part.iter())
}

/// The call with operands of the declared types; of several functions of one name, the one that takes them.
///
/// # Errors
/// Operands that no function of the name takes (42883).
pub(super) fn rewrite(call: ScalarFunction, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    let candidates = || all().filter(|declared| declared.name == call.func.name());
    let Some(first) = candidates().next() else {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    };
    let branches = call
        .args
        .iter()
        .map(|arg| Ok(Branch::of(arg, told(arg, &arg.get_type(&scope.schema)?))))
        .collect::<Result<Vec<_>>>()?;
    let fits = |declared: &&Declared| {
        (declared.needed..=declared.takes.len()).contains(&branches.len())
            && branches
                .iter()
                .zip(declared.takes)
                .all(|(branch, takes)| branch.is_unknown || takes.takes(&branch.of))
    };
    let Some(declared) = candidates().find(fits) else {
        let types = call.args.iter().zip(&branches);
        let types: Vec<_> = types
            .map(|(arg, branch)| match branch.is_unknown {
                true => DataType::Null,
                false => told(arg, &branch.of),
            })
            .collect();
        return Err(does_not_exist(first, &types));
    };
    let ScalarFunction { args, .. } = call;
    let mut is_changed = false;
    let args = args.into_iter().zip(declared.takes);
    let args = args
        .map(|(arg, takes)| {
            let (from, to) = (arg.get_type(&scope.schema)?, takes.arrow());
            is_changed |= from != to;
            if *takes == Type::Shown && from == DataType::Boolean {
                return Ok(operand_text::shown(arg));
            }
            casts::to_type(arg, &from, &to, scope.options)
        })
        .collect::<Result<Vec<_>>>()?;
    let call = super::call::call(Call(declared), args);
    Ok(Transformed::new_transformed(call, is_changed))
}

impl Row<'_> {
    /// Whether an operand is there and not NULL.
    pub(super) fn has(&self, operand: usize, row: usize) -> bool {
        self.columns.get(operand).is_some_and(|column| column.is_valid(row))
    }

    /// Whether no operand that is given is NULL.
    pub(super) fn is_whole(&self, row: usize) -> bool {
        self.columns.iter().all(|column| column.is_valid(row))
    }

    pub(super) fn text(&self, operand: usize, row: usize) -> Option<&str> {
        let column = self.columns.get(operand)?;
        column.is_valid(row).then(|| column.as_string::<i32>().value(row))
    }

    pub(super) fn bytes(&self, operand: usize, row: usize) -> Option<&[u8]> {
        let column = self.columns.get(operand)?;
        column.is_valid(row).then(|| column.as_binary::<i32>().value(row))
    }

    pub(super) fn integer(&self, operand: usize, row: usize) -> Option<i64> {
        let column = self.columns.get(operand)?;
        if column.is_null(row) {
            return None;
        }
        Some(match column.data_type() {
            DataType::Int32 => i64::from(column.as_primitive::<Int32Type>().value(row)),
            _ => column.as_primitive::<Int64Type>().value(row),
        })
    }

    pub(super) fn double(&self, operand: usize, row: usize) -> Option<f64> {
        let column = self.columns.get(operand)?;
        column.is_valid(row).then(|| column.as_primitive::<Float64Type>().value(row))
    }

    /// The digits of a number of [`NUMERIC`].
    pub(super) fn numeric(&self, operand: usize, row: usize) -> Option<i256> {
        let column = self.columns.get(operand)?;
        column.is_valid(row).then(|| column.as_primitive::<Decimal256Type>().value(row))
    }

    pub(super) fn boolean(&self, operand: usize, row: usize) -> Option<bool> {
        let column = self.columns.get(operand)?;
        column.is_valid(row).then(|| column.as_boolean().value(row))
    }

    /// Days of a date, since 1970.
    pub(super) fn date(&self, operand: usize, row: usize) -> Option<i64> {
        let column = self.columns.get(operand)?;
        column.is_valid(row).then(|| column.as_primitive::<Date32Type>().value(row).into())
    }

    /// Microseconds of a timestamp.
    pub(super) fn micros(&self, operand: usize, row: usize) -> Option<i64> {
        let column = self.columns.get(operand)?;
        column.is_valid(row).then(|| column.as_primitive::<TimestampMicrosecondType>().value(row))
    }

    pub(super) fn interval(&self, operand: usize, row: usize) -> Option<IntervalMonthDayNano> {
        let column = self.columns.get(operand)?;
        column.is_valid(row).then(|| column.as_primitive::<IntervalMonthDayNanoType>().value(row))
    }

    /// The elements of a list of texts.
    pub(super) fn texts(&self, operand: usize, row: usize) -> Option<Vec<Option<String>>> {
        let column = self.columns.get(operand)?;
        if column.is_null(row) {
            return None;
        }
        let elements = column.as_list::<i32>().value(row);
        Some(elements.as_string::<i32>().iter().map(|of| of.map(str::to_owned)).collect())
    }

    /// The elements of a list of lists of texts.
    pub(super) fn groups(&self, operand: usize, row: usize) -> Option<Vec<Vec<Option<String>>>> {
        let column = self.columns.get(operand)?;
        if column.is_null(row) {
            return None;
        }
        let groups = column.as_list::<i32>().value(row);
        let texts = |group: Option<ArrayRef>| match group {
            Some(group) => {
                group.as_string::<i32>().iter().map(|of| of.map(str::to_owned)).collect()
            }
            None => Vec::new(),
        };
        Some(groups.as_list::<i32>().iter().map(texts).collect())
    }

    /// A column of what `of` makes of each row without NULL.
    pub(super) fn each<T, A>(&self, of: impl Fn(usize) -> Result<Option<T>>) -> Result<ArrayRef>
    where
        A: Array + FromIterator<Option<T>> + 'static,
    {
        let value = |row: usize| match self.is_whole(row) {
            true => of(row),
            false => Ok(None),
        };
        Ok(Arc::new((0..self.rows).map(value).collect::<Result<A>>()?))
    }

    /// A column of texts.
    pub(super) fn each_text(
        &self,
        of: impl Fn(usize) -> Result<Option<String>>,
    ) -> Result<ArrayRef> {
        let mut texts = Texts::of(self.function.called);
        for row in 0..self.rows {
            texts.append(if self.is_whole(row) { of(row)? } else { None })?;
        }
        Ok(Arc::new(texts.finish()))
    }

    /// A column of texts, also of rows with NULL.
    pub(super) fn each_text_or_null(
        &self,
        of: impl Fn(usize) -> Result<Option<String>>,
    ) -> Result<ArrayRef> {
        let mut texts = Texts::of(self.function.called);
        for row in 0..self.rows {
            texts.append(of(row)?)?;
        }
        Ok(Arc::new(texts.finish()))
    }

    /// A column of bytes.
    pub(super) fn each_bytes(
        &self,
        of: impl Fn(usize) -> Result<Option<Vec<u8>>>,
    ) -> Result<ArrayRef> {
        let mut values = BinaryBuilder::new();
        let mut total = 0;
        for row in 0..self.rows {
            let value = if self.is_whole(row) { of(row)? } else { None };
            self.count(&mut total, value.as_ref().map_or(0, Vec::len))?;
            values.append_option(value);
        }
        Ok(Arc::new(values.finish()))
    }

    /// A column of numbers of [`NUMERIC`], by their digits.
    pub(super) fn each_numeric(
        &self,
        of: impl Fn(usize) -> Result<Option<i256>>,
    ) -> Result<ArrayRef> {
        let value = |row: usize| if self.is_whole(row) { of(row) } else { Ok(None) };
        let values = (0..self.rows).map(value).collect::<Result<Decimal256Array>>()?;
        Ok(Arc::new(values.with_data_type(NUMERIC)))
    }

    /// Counts the bytes of a value: its own, and all of a column, whose offsets have 31 bits.
    pub(super) fn count(&self, total: &mut usize, bytes: usize) -> Result<()> {
        *total = total.saturating_add(bytes);
        if bytes > VALUE_BYTES_MAX || *total > i32::MAX as usize {
            return Err(too_large(self.function.called));
        }
        Ok(())
    }

    /// A column of lists of texts; where `is_strict`, NULL for rows with one.
    pub(super) fn each_list(
        &self,
        is_strict: bool,
        of: impl Fn(usize) -> Result<Option<Vec<Option<String>>>>,
    ) -> Result<ArrayRef> {
        let mut lists = arrow::array::ListBuilder::new(StringBuilder::new());
        let mut total = 0;
        for row in 0..self.rows {
            let list = if !is_strict || self.is_whole(row) { of(row)? } else { None };
            match list {
                Some(items) => {
                    let bytes: usize =
                        items.iter().map(|item| 8 + item.as_ref().map_or(0, String::len)).sum();
                    self.count(&mut total, bytes)?;
                    items.into_iter().for_each(|item| lists.values().append_option(item));
                    lists.append(true);
                }
                None => lists.append(false),
            }
        }
        Ok(Arc::new(lists.finish()))
    }

    /// A column of lists of lists of texts.
    pub(super) fn each_groups(
        &self,
        of: impl Fn(usize) -> Result<Option<Vec<Vec<Option<String>>>>>,
    ) -> Result<ArrayRef> {
        let inner = arrow::array::ListBuilder::new(StringBuilder::new());
        let mut lists = arrow::array::ListBuilder::new(inner);
        let mut total = 0;
        for row in 0..self.rows {
            let groups = if self.is_whole(row) { of(row)? } else { None };
            let Some(groups) = groups else {
                lists.append(false);
                continue;
            };
            for group in groups {
                let bytes: usize =
                    group.iter().map(|item| 8 + item.as_ref().map_or(0, String::len)).sum();
                self.count(&mut total, bytes)?;
                for item in group {
                    lists.values().values().append_option(item);
                }
                lists.values().append(true);
            }
            lists.append(true);
        }
        let lists: ListArray = lists.finish();
        Ok(Arc::new(lists))
    }
}

/// An integer argument that is to be positive.
pub(super) fn invalid_parameter(name: &str, value: i64) -> DataFusionError {
    failure("22023", format!("invalid value for parameter \"{name}\": {value}"))
}
