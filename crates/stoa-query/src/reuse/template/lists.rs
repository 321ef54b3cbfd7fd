//! Lists in the places of values.
//!
//! A form is planned with one place where its statements have a list, whatever the list's length: `column IN ($1)`,
//! which the engine writes as `column = $1`, and `column = ANY ($1)`, which is a call of its own.
//!
//! **Invariant:** a list means in a plan what it means in the statement, NULL in it included.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray};
use arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::expr::{BinaryExpr, InList, ScalarFunction};
use datafusion::logical_expr::{Expr, Operator};
use stoa_semantics::parameters::{fit, index_of};

/// The values of one call that are lists, by place.
pub(super) struct Lists {
    /// In the places of one value.
    of_values: HashMap<usize, Vec<Expr>>,
    /// In the places of an array.
    of_arrays: HashMap<usize, Vec<Expr>>,
}

impl Lists {
    /// `None` where there is none. Arrays that are NULL are no lists.
    pub(super) fn of(values: &[ScalarValue], types: &[DataType]) -> Option<Self> {
        let (mut of_values, mut of_arrays) = (HashMap::new(), HashMap::new());
        for (index, (value, of)) in values.iter().zip(types).enumerate() {
            let ScalarValue::List(list) = value else { continue };
            let Some(items) = items(list.is_valid(0).then(|| list.value(0))) else { continue };
            match of {
                DataType::List(_) => of_arrays.insert(index, items),
                _ => of_values.insert(index, items),
            };
        }
        (!of_values.is_empty() || !of_arrays.is_empty()).then_some(Self { of_values, of_arrays })
    }

    /// An expression with the lists that are in its own places.
    pub(super) fn put(&self, expr: Expr) -> EngineResult<Transformed<Expr>> {
        Ok(match expr {
            Expr::BinaryExpr(compared) => match self.listed(&compared) {
                Some(list) => Transformed::yes(Expr::InList(list)),
                None => Transformed::no(Expr::BinaryExpr(compared)),
            },
            Expr::InList(InList { expr, list, negated }) => {
                let is_listed = |item: &Expr| self.of_value(item).is_some();
                if !list.iter().any(is_listed) {
                    return Ok(Transformed::no(Expr::InList(InList { expr, list, negated })));
                }
                let put = |item: Expr| self.of_value(&item).cloned().unwrap_or_else(|| vec![item]);
                let list = list.into_iter().flat_map(put).collect();
                Transformed::yes(Expr::InList(InList { expr, list, negated }))
            }
            Expr::ScalarFunction(call) => {
                let found = any_of(&call)
                    .and_then(|(place, of)| Some((self.of_arrays.get(&index_of(place)?)?, of)));
                match found {
                    // Nothing is one of none.
                    Some((list, _)) if list.is_empty() => {
                        Transformed::yes(Expr::Literal(ScalarValue::from(false), None))
                    }
                    Some((list, of)) => {
                        let (expr, list) = (Box::new(of.clone()), list.to_vec());
                        Transformed::yes(Expr::InList(InList { expr, list, negated: false }))
                    }
                    None => Transformed::no(Expr::ScalarFunction(call)),
                }
            }
            expr => Transformed::no(expr),
        })
    }

    /// `column = $1`, or `<>`, with a list in the place.
    fn listed(&self, compared: &BinaryExpr) -> Option<InList> {
        let negated = match compared.op {
            Operator::Eq => false,
            Operator::NotEq => true,
            _ => return None,
        };
        let (left, right) = (compared.left.as_ref(), compared.right.as_ref());
        let (of, list) = match self.of_value(right) {
            Some(list) => (left, list),
            None => (right, self.of_value(left)?),
        };
        Some(InList { expr: Box::new(of.clone()), list: list.clone(), negated })
    }

    fn of_value(&self, expr: &Expr) -> Option<&Vec<Expr>> {
        let Expr::Placeholder(place) = expr else { return None };
        self.of_values.get(&index_of(&place.id)?)
    }
}

/// A list of values as the place of one `wanted` value wants them; of integers, also those that the type does not hold.
/// `None` where one does not fit exactly.
pub(super) fn fitting(list: &Arc<ListArray>, wanted: &DataType) -> Option<ScalarValue> {
    let needs_reading =
        matches!(wanted, DataType::Timestamp(..) | DataType::Binary | DataType::FixedSizeBinary(_));
    let of_wanted = DataType::List(Arc::new(Field::new_list_field(wanted.clone(), true)));
    let list = ScalarValue::List(Arc::clone(list));
    let is_integers = element_type(&list).is_some_and(DataType::is_integer);
    let fits =
        |list: &ScalarValue| list.data_type() == of_wanted || is_integers && wanted.is_integer();
    (!needs_reading).then_some(())?;
    fit(list, &of_wanted).ok().filter(fits)
}

/// Whether all lists in places of one value are of the type that a plan compares with.
pub(super) fn have_types(values: &[ScalarValue], types: &[DataType]) -> bool {
    values.iter().zip(types).all(|(value, of)| {
        matches!(of, DataType::List(_)) || element_type(value).is_none_or(|element| element == of)
    })
}

/// Whether a list has a value in it that is not NULL.
pub(super) fn has_value(list: &ScalarValue) -> bool {
    let ScalarValue::List(list) = list else { return false };
    let elements = list.is_valid(0).then(|| list.value(0));
    elements.is_some_and(|elements| elements.null_count() < elements.len())
}

fn element_type(value: &ScalarValue) -> Option<&DataType> {
    match value {
        ScalarValue::List(list) => match list.data_type() {
            DataType::List(field) => Some(field.data_type()),
            _ => None,
        },
        _ => None,
    }
}

/// `column = ANY ($1)`: its place and its column.
pub(super) fn any_of(call: &ScalarFunction) -> Option<(&str, &Expr)> {
    let [Expr::Placeholder(place), of @ Expr::Column(_)] = call.args.as_slice() else {
        return None;
    };
    (call.name() == "array_has").then_some((place.id.as_str(), of))
}

fn items(elements: Option<ArrayRef>) -> Option<Vec<Expr>> {
    let elements = elements?;
    let item =
        |index| ScalarValue::try_from_array(&elements, index).map(|v| Expr::Literal(v, None));
    (0..elements.len()).map(item).collect::<EngineResult<_>>().ok()
}
