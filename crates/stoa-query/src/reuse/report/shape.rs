//! A report with places for its values.

use arrow::datatypes::{DataType, SchemaRef};
use stoa_report::{Aggregate, Column, Item, Order};

use crate::reuse::template::TableForm;

/// A report whose values are not known yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReportShape {
    /// The table as it was when the shape was made.
    pub(crate) table: TableForm,
    pub(crate) columns: Vec<Column>,
    pub(crate) conditions: Vec<ShapeCondition>,
    pub(crate) grouped: bool,
    pub(crate) group_by: Vec<usize>,
    pub(crate) aggregates: Vec<Aggregate>,
    pub(crate) items: Vec<Item>,
    /// Names and types of the answer's columns, as the planner has them.
    pub(crate) schema: SchemaRef,
    pub(crate) order: Vec<Order>,
    pub(crate) limit: Option<Operand>,
    pub(crate) offset: Option<Operand>,
    /// Literals that are part of the shape, as in `ORDER BY 2`: another value is another shape.
    pub(crate) pinned: Vec<(usize, String)>,
    /// Types of the parameters `$1`, `$2`, ….
    pub(crate) parameter_types: Vec<DataType>,
}

/// A condition with places for its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShapeCondition {
    /// Index into the columns.
    pub(crate) column: usize,
    pub(crate) test: ShapeTest,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ShapeTest {
    Equal(Operand),
    NotEqual(Operand),
    Less(Operand),
    LessOrEqual(Operand),
    Greater(Operand),
    GreaterOrEqual(Operand),
    Between(Operand, Operand),
    OneOf(Vec<Operand>),
    NoneOf(Vec<Operand>),
    IsNull,
    IsNotNull,
}

/// Where a value comes from, or a list of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A literal of the statement, perhaps behind a minus.
    Literal { number: usize, negated: bool },
    /// A parameter, counted from 0.
    Parameter(usize),
}
