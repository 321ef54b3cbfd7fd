//! `text [NOT] LIKE ANY (array)` and `ALL`, also ILIKE: a text beside patterns that are computed.
//!
//! Not here: arrays that are written out (`stoa-sql` writes a LIKE for each pattern).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar, StringArray};
use arrow::compute::kernels::comparison::{ilike, like, nilike, nlike};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::error::Result;

use super::declared::{Declared, Row, Type, declared};
use Type::{Boolean, Text, Texts};

const TAKES: &[Type] = &[Text, Texts];

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("like_any", TAKES, Boolean, |row| compared(row, |a, b| like(a, b), true)),
    declared("like_all", TAKES, Boolean, |row| compared(row, |a, b| like(a, b), false)),
    declared("not_like_any", TAKES, Boolean, |row| compared(row, |a, b| nlike(a, b), true)),
    declared("not_like_all", TAKES, Boolean, |row| compared(row, |a, b| nlike(a, b), false)),
    declared("ilike_any", TAKES, Boolean, |row| compared(row, |a, b| ilike(a, b), true)),
    declared("ilike_all", TAKES, Boolean, |row| compared(row, |a, b| ilike(a, b), false)),
    declared("not_ilike_any", TAKES, Boolean, |row| compared(row, |a, b| nilike(a, b), true)),
    declared("not_ilike_all", TAKES, Boolean, |row| compared(row, |a, b| nilike(a, b), false)),
];

type Compare = fn(&ArrayRef, &Scalar<StringArray>) -> std::result::Result<BooleanArray, ArrowError>;

/// Whether one of the comparisons holds (`any`), or all do; NULL where that is not known.
fn compared(row: &Row<'_>, compare: Compare, any: bool) -> Result<ArrayRef> {
    let (texts, lists) = (&row.columns[0], row.columns[1].as_list::<i32>());
    let of = |at: usize| -> Result<Option<bool>> {
        if lists.is_null(at) {
            return Ok(None);
        }
        let text = texts.slice(at, 1);
        let patterns = arrow::compute::cast(&lists.value(at), &DataType::Utf8)?;
        let mut known = Some(!any);
        for pattern in patterns.as_string::<i32>() {
            let Some(pattern) = pattern else {
                known = None;
                continue;
            };
            let pattern = Scalar::new(StringArray::from(vec![pattern]));
            let holds = compare(&text, &pattern)?;
            match holds.is_valid(0).then(|| holds.value(0)) {
                Some(holds) if holds == any => return Ok(Some(any)),
                Some(_) => {}
                None => known = None,
            }
        }
        Ok(known)
    };
    Ok(Arc::new((0..row.rows).map(of).collect::<Result<BooleanArray>>()?))
}
