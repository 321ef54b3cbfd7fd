//! What is asked for: columns, conditions, groups, aggregates, order.

use arrow_schema::{DataType, SchemaRef, TimeUnit};
use stoa_error::{Error, Result};

/// How the values of a column are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Integers, dates (days), timestamps (microseconds), booleans (0 and 1).
    Int,
    /// Decimals: unscaled values, at the column's scale.
    Decimal,
    /// Strings, by bytes.
    Text,
    /// Floating point: summed only.
    Float,
}

/// The kind of an Arrow type; `None` for types that reports cannot use.
pub fn kind_of(data_type: &DataType) -> Option<ValueKind> {
    match data_type {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Date32
        | DataType::Timestamp(TimeUnit::Microsecond, _) => Some(ValueKind::Int),
        DataType::Decimal128(..) => Some(ValueKind::Decimal),
        DataType::Utf8 => Some(ValueKind::Text),
        DataType::Float32 | DataType::Float64 => Some(ValueKind::Float),
        _ => None,
    }
}

/// A column of the table that a report reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Position in the table's schema.
    pub position: usize,
    /// Iceberg field id.
    pub field_id: i32,
    /// Type in the table's schema.
    pub data_type: DataType,
}

/// A condition that every row of the answer meets.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Index into [`Report::columns`].
    pub column: usize,
    /// What is asked of its value.
    pub test: Test,
}

/// What is asked of a value. NULL meets none but [`Test::IsNull`].
///
/// Numbers are those of [`ValueKind::Int`] or unscaled ones of [`ValueKind::Decimal`]; bounds are
/// inclusive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// `low <= value <= high`.
    Between(i128, i128),
    /// One of these, ascending and distinct.
    OneOf(Vec<i128>),
    /// Another number than this.
    NotEqual(i128),
    /// None of these, ascending and distinct.
    NoneOf(Vec<i128>),
    /// A text in a range of texts.
    TextBetween {
        /// Lower end and whether it belongs to the range.
        low: Option<(Box<str>, bool)>,
        /// Upper end and whether it belongs to the range.
        high: Option<(Box<str>, bool)>,
    },
    /// One of these texts, ascending and distinct.
    TextOneOf(Vec<Box<str>>),
    /// Another text than this.
    TextNotEqual(Box<str>),
    /// None of these texts, ascending and distinct.
    TextNoneOf(Vec<Box<str>>),
    /// No value.
    IsNull,
    /// Any value.
    IsNotNull,
}

/// What is computed over the rows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Rows; with a column, those where it is not NULL.
    Count,
    /// Sum; an error where it does not fit its type; NULL over no value.
    Sum,
    /// Least value; NULL over no value. Not for floating point.
    Min,
    /// Greatest value; NULL over no value. Not for floating point.
    Max,
    /// Mean: of integers as a decimal, of floating point as a double; of nothing else.
    Mean,
}

/// A function and its column (an index into [`Report::columns`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// What is computed.
    pub function: Function,
    /// Over which column; `None` only for [`Function::Count`].
    pub column: Option<usize>,
}

/// Something to show or to order by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A column (index into [`Report::columns`]), which is one of [`Report::group_by`] where rows
    /// are grouped.
    Column(usize),
    /// An aggregate (index into [`Report::aggregates`]).
    Aggregate(usize),
}

/// One key of the answer's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Ordered by what.
    pub by: Item,
    /// Greatest first.
    pub descending: bool,
    /// NULL before all values.
    pub nulls_first: bool,
}

/// A report: names resolved, values bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Columns that are read, each once.
    pub columns: Vec<Column>,
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    /// Whether rows are grouped, if only into one group for all.
    pub grouped: bool,
    /// The columns (indexes into `columns`) that make a group.
    pub group_by: Vec<usize>,
    /// What is computed per group.
    pub aggregates: Vec<Aggregate>,
    /// The columns of the answer.
    pub items: Vec<Item>,
    /// Their names and types. Types fit the items' kinds.
    pub schema: SchemaRef,
    /// Order of the answer; none if empty.
    pub order: Vec<Order>,
    /// Rows left out at the start of the answer.
    pub offset: usize,
    /// Most rows of the answer.
    pub limit: Option<usize>,
}

impl Report {
    /// The conditions on the column of a field id, with their indexes.
    pub(crate) fn conditions_on(&self, field_id: i32) -> impl Iterator<Item = (usize, &Condition)> {
        self.conditions.iter().enumerate().filter(move |(_, condition)| {
            let column = self.columns.get(condition.column);
            column.is_some_and(|column| column.field_id == field_id)
        })
    }

    /// Rows that must be kept until the last was seen, of an answer that is rows of the table; `None`
    /// where there is no limit, or rows are grouped.
    pub(crate) fn rows_kept(&self) -> Option<usize> {
        let limit = self.limit.filter(|_| !self.grouped)?;
        Some(self.offset.saturating_add(limit))
    }

    /// Whether its parts fit each other: indexes, kinds, widths.
    ///
    /// # Errors
    /// `Internal` where one does not. Left out, it would give another answer.
    pub(crate) fn check(&self) -> Result<()> {
        let has = |column: usize| column < self.columns.len();
        let is_shown = |item: &Item| match item {
            Item::Column(column) => has(*column),
            Item::Aggregate(index) => *index < self.aggregates.len(),
        };
        let part = if !self.conditions.iter().all(|condition| self.is_judged(condition)) {
            "a condition"
        } else if !self.group_by.iter().all(|column| has(*column)) {
            "a group key"
        } else if !self.aggregates.iter().all(|aggregate| aggregate.column.is_none_or(has)) {
            "an aggregate"
        } else if !self.items.iter().chain(self.order.iter().map(|o| &o.by)).all(is_shown) {
            "an item"
        } else if self.items.len() != self.schema.fields().len() {
            "a column of the answer"
        } else {
            return Ok(());
        };
        Err(Error::internal(format!("{part} of a report fits none of its columns"))
            .with_hint("run the statement with SET short_path = off; please report it"))
    }

    /// Whether a condition is one that its column's values can meet or not.
    fn is_judged(&self, condition: &Condition) -> bool {
        let Some(column) = self.columns.get(condition.column) else { return false };
        let Some(kind) = kind_of(&column.data_type) else { return false };
        match &condition.test {
            Test::IsNull | Test::IsNotNull => true,
            Test::OneOf(values) if values.is_empty() => true,
            Test::Between(..) | Test::OneOf(_) | Test::NotEqual(_) | Test::NoneOf(_) => {
                matches!(kind, ValueKind::Int | ValueKind::Decimal)
            }
            Test::TextBetween { .. }
            | Test::TextOneOf(_)
            | Test::TextNotEqual(_)
            | Test::TextNoneOf(_) => kind == ValueKind::Text,
        }
    }
}
