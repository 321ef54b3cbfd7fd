//! The types there are (GetTypeInfo).

use arrow_array::RecordBatch;
use stoa_error::Result;

use crate::small_table::{Cell, Of, small_table};

const COLUMNS: [(&str, Of); 18] = [
    ("TYPE_NAME", Of::Text),
    ("DATA_TYPE", Of::Int),
    ("PRECISION", Of::Int),
    ("LITERAL_PREFIX", Of::Text),
    ("LITERAL_SUFFIX", Of::Text),
    ("CREATE_PARAMS", Of::Text),
    ("NULLABLE", Of::SmallInt),
    ("CASE_SENSITIVE", Of::Bool),
    ("SEARCHABLE", Of::SmallInt),
    ("UNSIGNED_ATTRIBUTE", Of::Bool),
    ("FIXED_PREC_SCALE", Of::Bool),
    ("AUTO_INCREMENT", Of::Bool),
    ("LOCAL_TYPE_NAME", Of::Text),
    ("MINIMUM_SCALE", Of::SmallInt),
    ("MAXIMUM_SCALE", Of::SmallInt),
    ("SQL_DATA_TYPE", Of::Int),
    ("SQL_DATETIME_SUB", Of::Int),
    ("NUM_PREC_RADIX", Of::Int),
];

/// `java.sql.DatabaseMetaData.typeNullable`.
const NULLABLE: i32 = 1;
/// `java.sql.DatabaseMetaData.typeSearchable`.
const SEARCHABLE: i32 = 3;

/// Name, number in `java.sql.Types`, digits, and whether it is a number.
const TYPES: [(&str, i32, Option<i32>, bool); 16] = [
    ("BOOLEAN", 16, None, false),
    ("TINYINT", -6, Some(3), true),
    ("SMALLINT", 5, Some(5), true),
    ("INT", 4, Some(10), true),
    ("BIGINT", -5, Some(19), true),
    ("FLOAT", 6, Some(7), true),
    ("DOUBLE", 8, Some(15), true),
    ("DECIMAL", 3, Some(38), true),
    ("STRING", 12, None, false),
    ("VARCHAR", 12, None, false),
    ("CHAR", 1, None, false),
    ("DATE", 91, None, false),
    ("TIMESTAMP", 93, None, false),
    ("BINARY", -2, None, false),
    ("ARRAY", 2003, None, false),
    ("STRUCT", 2002, None, false),
];

/// The answer to GetTypeInfo.
///
/// # Errors
/// None but Internal.
pub(crate) fn type_info() -> Result<RecordBatch> {
    let rows = TYPES.map(|(name, number, digits, is_number)| {
        let is_text = matches!(name, "STRING" | "VARCHAR" | "CHAR");
        vec![
            name.into(),
            number.into(),
            digits.into(),
            is_text.then_some("'").into(),
            is_text.then_some("'").into(),
            Cell::Null,
            NULLABLE.into(),
            is_text.into(),
            SEARCHABLE.into(),
            (!is_number).into(),
            false.into(),
            false.into(),
            Cell::Null,
            0.into(),
            0.into(),
            Cell::Null,
            Cell::Null,
            is_number.then_some(10).into(),
        ]
    });
    small_table(&COLUMNS, &rows)
}
