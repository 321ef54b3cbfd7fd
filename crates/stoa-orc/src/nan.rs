//! Floating-point columns with one NaN.
//!
//! IEEE 754 has many of them, of either sign, and processors make negative ones (of ∞ - ∞). PostgreSQL and Java know one,
//! equal to itself and above all numbers. What compares, sorts and groups by bits does so, too, if there is only one.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, cast::AsArray, make_array};
use arrow_data::ArrayData;
use arrow_schema::DataType;

/// A value, or the one NaN.
#[inline]
pub fn one_nan_32(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value }
}

/// A value, or the one NaN.
#[inline]
pub fn one_nan_64(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

/// `array` with the one NaN in the place of all others, also within lists, maps and records; `None` where it is so already.
pub fn with_one_nan(array: &dyn Array) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::Float32 => {
            let is_other = |v: f32| v.is_nan() && v.to_bits() != f32::NAN.to_bits();
            replaced::<Float32Type>(array, is_other, one_nan_32)
        }
        DataType::Float64 => {
            let is_other = |v: f64| v.is_nan() && v.to_bits() != f64::NAN.to_bits();
            replaced::<Float64Type>(array, is_other, one_nan_64)
        }
        of if of.is_nested() && has_floats(of) => with_children(array.to_data()),
        _ => None,
    }
}

fn replaced<T: ArrowPrimitiveType>(
    array: &dyn Array,
    is_other: impl Fn(T::Native) -> bool,
    one: impl Fn(T::Native) -> T::Native,
) -> Option<ArrayRef> {
    let array = array.as_primitive_opt::<T>()?;
    // No short cut: this is one comparison for many values.
    let is_any = array.values().iter().fold(false, |is_any, value| is_any | is_other(*value));
    let replaced: PrimitiveArray<T> = is_any.then(|| array.unary(one))?;
    Some(Arc::new(replaced))
}

fn has_floats(of: &DataType) -> bool {
    match of {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_floats(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| has_floats(field.data_type())),
        _ => false,
    }
}

fn with_children(array: ArrayData) -> Option<ArrayRef> {
    let mut is_any = false;
    let children = array.child_data().iter().map(|child| {
        let one = with_one_nan(&make_array(child.clone()));
        is_any |= one.is_some();
        one.map_or_else(|| child.clone(), |one| one.to_data())
    });
    let children: Vec<ArrayData> = children.collect();
    // Children of as many values each: what was valid still is.
    let array = is_any.then(|| array.into_builder().child_data(children).build().ok())?;
    array.map(make_array)
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Float64Builder, ListBuilder};
    use arrow_array::{Float32Array, Float64Array, Int64Array};

    use super::*;

    #[test]
    fn all_nans_become_one() {
        let others = [-f64::NAN, f64::from_bits(f64::NAN.to_bits() | 1), f64::INFINITY, -0.0, 1.0];
        let array = Float64Array::from(others.to_vec());
        let one = with_one_nan(&array).unwrap();
        let bits: Vec<u64> =
            one.as_primitive::<Float64Type>().values().iter().map(|v| v.to_bits()).collect();
        let expected = [f64::NAN, f64::NAN, f64::INFINITY, -0.0, 1.0].map(f64::to_bits);
        assert_eq!(bits, expected);
        assert!(with_one_nan(&one).is_none());
        assert!(with_one_nan(&Int64Array::from(vec![1])).is_none());
        let array = Float32Array::from(vec![Some(-f32::NAN), None]);
        let one = with_one_nan(&array).unwrap();
        assert_eq!(one.as_primitive::<Float32Type>().value(0).to_bits(), f32::NAN.to_bits());
        assert!(one.is_null(1));
    }

    #[test]
    fn lists_of_a_slice_keep_their_places() {
        let mut lists = ListBuilder::new(Float64Builder::new());
        lists.append_value([Some(1.0)]);
        lists.append_null();
        lists.append_value([Some(-f64::NAN), None, Some(2.0)]);
        let lists: ArrayRef = Arc::new(lists.finish());
        let slice = lists.slice(1, 2);
        let one = with_one_nan(&slice).unwrap();
        assert_eq!(one.len(), 2);
        assert!(one.is_null(0));
        let last = one.as_list::<i32>().value(1);
        let last = last.as_primitive::<Float64Type>();
        assert_eq!(last.value(0).to_bits(), f64::NAN.to_bits());
        assert!(last.is_null(1));
        assert_eq!(last.value(2), 2.0);
    }
}
