//! Conditions of a plan as those of reports.
//!
//! **Invariant:** a condition is one only where it compares a column with a value of the column's own type, so that
//! the report judges as the plan would.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, ScalarFunction};
use datafusion::logical_expr::{Expr, Operator};
use stoa_semantics::parameters::index_of;

use crate::reuse::report::{Operand, ShapeTest};

/// Where the values of conditions come from: parameters of these types, then constants.
pub(super) struct Operands<'a> {
    pub(super) types: &'a [DataType],
    pub(super) constants: Vec<ScalarValue>,
}

/// A column of the table by its position, and what is asked of it.
pub(super) type Found = (usize, ShapeTest);

/// How a plan's columns are those of a table: the position of one, and its type.
pub(super) type Resolve<'a> = &'a dyn Fn(&Expr) -> Option<(usize, DataType)>;

impl Operands<'_> {
    /// The conditions that `expr` is, all of which must hold; `None` where it is something else.
    pub(super) fn conditions(&mut self, expr: &Expr, resolve: Resolve<'_>) -> Option<Vec<Found>> {
        let one = |found: Option<Found>| found.map(|found| vec![found]);
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                let mut found = self.conditions(left, resolve)?;
                found.extend(self.conditions(right, resolve)?);
                Some(found)
            }
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
                let (mut column, mut values) = (None, Vec::new());
                self.equalities(expr, resolve, &mut column, &mut values)?;
                Some(vec![(column?, ShapeTest::OneOf(values))])
            }
            Expr::BinaryExpr(compared) => one(self.comparison(compared, resolve)),
            Expr::Between(Between { expr, negated: false, low, high }) => {
                let (column, of) = resolve(expr)?;
                let test = ShapeTest::Between(self.operand(low, &of)?, self.operand(high, &of)?);
                Some(vec![(column, test)])
            }
            Expr::InList(InList { expr, list, negated }) => {
                let (column, of) = resolve(expr)?;
                let values = list.iter().map(|value| self.operand(value, &of));
                let values = values.collect::<Option<Vec<_>>>()?;
                Some(match negated {
                    false => vec![(column, ShapeTest::OneOf(values))],
                    true => values.into_iter().map(|v| (column, ShapeTest::NotEqual(v))).collect(),
                })
            }
            Expr::ScalarFunction(call) => one(self.any(call, resolve)),
            Expr::IsNull(inner) => Some(vec![(resolve(inner)?.0, ShapeTest::IsNull)]),
            Expr::IsNotNull(inner) => Some(vec![(resolve(inner)?.0, ShapeTest::IsNotNull)]),
            Expr::Not(inner) => one(self.truth(inner, false, resolve)),
            Expr::Column(_) => one(self.truth(expr, true, resolve)),
            _ => None,
        }
    }

    /// `column = value OR column = value OR …`, all of one column.
    fn equalities(
        &mut self,
        expr: &Expr,
        resolve: Resolve<'_>,
        column: &mut Option<usize>,
        values: &mut Vec<Operand>,
    ) -> Option<()> {
        let (of, found) = match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                self.equalities(left, resolve, column, values)?;
                return self.equalities(right, resolve, column, values);
            }
            Expr::BinaryExpr(compared) => match self.comparison(compared, resolve)? {
                (of, ShapeTest::Equal(value)) => (of, vec![value]),
                _ => return None,
            },
            Expr::InList(InList { negated: false, .. }) => {
                match self.conditions(expr, resolve)?.pop()? {
                    (of, ShapeTest::OneOf(values)) => (of, values),
                    _ => return None,
                }
            }
            _ => return None,
        };
        values.extend(found);
        (*column.get_or_insert(of) == of).then_some(())
    }

    /// `column = ANY ($1)`, as the engine has it.
    fn any(&self, call: &ScalarFunction, resolve: Resolve<'_>) -> Option<Found> {
        let [Expr::Placeholder(place), column] = call.args.as_slice() else { return None };
        (call.name() == "array_has").then_some(())?;
        let (column, of) = resolve(column)?;
        let number = index_of(&place.id)?;
        let DataType::List(element) = self.types.get(number)? else { return None };
        compares_as_is(element.data_type(), &of).then_some(())?;
        Some((column, ShapeTest::OneOf(vec![Operand::Parameter(number)])))
    }

    /// A column of truth values that must be `wanted`.
    fn truth(&mut self, expr: &Expr, wanted: bool, resolve: Resolve<'_>) -> Option<Found> {
        let (column, of) = resolve(expr)?;
        let value = self.constant(&ScalarValue::Boolean(Some(wanted)), &of)?;
        Some((column, ShapeTest::Equal(value)))
    }

    fn comparison(&mut self, compared: &BinaryExpr, resolve: Resolve<'_>) -> Option<Found> {
        let BinaryExpr { left, op, right } = compared;
        let ((column, of), value, mirrored) = match resolve(left) {
            Some(column) => (column, right, false),
            None => (resolve(right)?, left, true),
        };
        let value = self.operand(value, &of)?;
        let test = match (op, mirrored) {
            (Operator::Eq, _) => ShapeTest::Equal(value),
            (Operator::NotEq, _) => ShapeTest::NotEqual(value),
            (Operator::Lt, false) | (Operator::Gt, true) => ShapeTest::Less(value),
            (Operator::LtEq, false) | (Operator::GtEq, true) => ShapeTest::LessOrEqual(value),
            (Operator::Gt, false) | (Operator::Lt, true) => ShapeTest::Greater(value),
            (Operator::GtEq, false) | (Operator::LtEq, true) => ShapeTest::GreaterOrEqual(value),
            _ => return None,
        };
        Some((column, test))
    }

    fn operand(&mut self, expr: &Expr, column: &DataType) -> Option<Operand> {
        match expr {
            Expr::Literal(value, _) => self.constant(value, column),
            Expr::Placeholder(place) => {
                let number = index_of(&place.id)?;
                compares_as_is(self.types.get(number)?, column).then_some(())?;
                Some(Operand::Parameter(number))
            }
            _ => None,
        }
    }

    fn constant(&mut self, value: &ScalarValue, column: &DataType) -> Option<Operand> {
        compares_as_is(&value.data_type(), column).then_some(())?;
        self.constants.push(value.clone());
        Some(Operand::Parameter(self.types.len() + self.constants.len() - 1))
    }
}

/// Whether values of one type are compared with a column of the other without a cast that could change them.
fn compares_as_is(value: &DataType, column: &DataType) -> bool {
    value == column || value.is_integer() && column.is_integer()
}
