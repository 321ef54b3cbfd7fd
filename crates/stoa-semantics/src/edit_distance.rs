//! `levenshtein(a, b)`: how many letters to change, to add or to leave out.
//!
//! Its time grows with the product of the lengths, and nothing interrupts it: as in PostgreSQL, texts are of 255
//! letters at most.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::utils::datafusion_strsim;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::call::{Operation, columns, failure};
use super::operators::name;

const LETTERS_MAX: usize = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct EditDistance;

impl Operation for EditDistance {
    fn name(&self) -> &str {
        "levenshtein"
    }

    fn result(&self, types: &[DataType]) -> Result<DataType> {
        let is_text = |of: &DataType| of.is_string() || of.is_null();
        if types.len() == 2 && types.iter().all(is_text) {
            return Ok(DataType::Int32);
        }
        let types: Vec<&str> = types.iter().map(name).collect();
        let message = format!("function levenshtein({}) does not exist", types.join(", "));
        Err(failure("42883", message))
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let columns = columns(operands, rows)?;
        let [a, b] = columns.as_slice() else {
            return Err(failure("42883", "two operands wanted"));
        };
        let (a, b) = (cast(a, &DataType::Utf8)?, cast(b, &DataType::Utf8)?);
        let pairs = a.as_string::<i32>().iter().zip(b.as_string::<i32>());
        let distances = pairs.map(|pair| match pair {
            (Some(a), Some(b)) => distance(a, b).map(Some),
            _ => Ok(None),
        });
        Ok(Arc::new(distances.collect::<Result<Int32Array>>()?))
    }
}

fn distance(a: &str, b: &str) -> Result<i32> {
    let is_long = |text: &str| text.chars().nth(LETTERS_MAX).is_some();
    if is_long(a) || is_long(b) {
        let message =
            format!("levenshtein argument exceeds maximum length of {LETTERS_MAX} characters");
        return Err(failure("22023", message));
    }
    // At most as many as a text has letters.
    Ok(i32::try_from(datafusion_strsim::levenshtein(a, b)).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_refused() {
        assert_eq!(distance("kitten", "sitting").unwrap(), 3);
        assert_eq!(distance("", "äöü").unwrap(), 3);
        let long = "ä".repeat(LETTERS_MAX);
        assert_eq!(distance(&long, "").unwrap(), 255);
        let error = distance(&format!("{long}x"), "").unwrap_err().to_string();
        assert!(error.contains("maximum length of 255 characters"), "{error}");
    }
}
