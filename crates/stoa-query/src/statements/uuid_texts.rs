//! Statements that write texts into columns of UUIDs.

use arrow::datatypes::{DataType, Schema};
use datafusion::sql::parser::Statement as EngineStatement;

/// A statement on a table of these columns whose texts for UUIDs are cast; `None` where it has none.
pub(super) fn typed(parsed: &EngineStatement, schema: &Schema) -> Option<EngineStatement> {
    let uuids = schema.fields().iter().filter(|field| is_uuid(field.data_type()));
    let uuids: Vec<String> = uuids.map(|field| field.name().clone()).collect();
    if uuids.is_empty() {
        return None;
    }
    let columns: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    stoa_sql::uuid_texts::typed(parsed, &columns, &uuids)
}

fn is_uuid(of: &DataType) -> bool {
    *of == DataType::FixedSizeBinary(16)
}
