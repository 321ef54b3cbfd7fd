//! Rows that are written and acknowledged together: eight integers each, 36 bytes.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_error::{Error, Result};

/// Bytes of a row's values: one 64-bit and seven 32-bit integers.
pub const PARCEL_BYTES_PER_ROW: u64 = 36;

/// The columns after `parcel` and `place`.
const VALUES: [&str; 6] = ["day", "account", "campaign", "impressions", "clicks", "cost"];

/// A number of rows with one acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Tells it from all others of its table.
    pub number: i64,
    /// Rows, at least 1.
    pub rows: i32,
}

/// The columns of a table of parcels, as `CREATE TABLE` takes them.
pub fn columns_sql() -> String {
    let values = VALUES.map(|name| format!(", {name} INT NOT NULL")).concat();
    format!("parcel BIGINT NOT NULL, place INT NOT NULL{values}")
}

/// The same as an Arrow schema.
pub fn table_schema() -> SchemaRef {
    let parcel = Field::new("parcel", DataType::Int64, false);
    let others = ["place"].into_iter().chain(VALUES);
    let others = others.map(|name| Field::new(name, DataType::Int32, false));
    Arc::new(Schema::new([parcel].into_iter().chain(others).collect::<Vec<_>>()))
}

impl Parcel {
    /// One value of one row: any number, but always the same, below `limit`.
    fn value(self, place: i32, column: u64, limit: u64) -> i32 {
        let seed = (self.number as u64) << 24 ^ (place as u64) << 4 ^ column;
        let mixed = (seed ^ seed >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33).rem_euclid(limit) as i32
    }

    /// The six values of a row.
    fn row(self, place: i32) -> [i32; 6] {
        [
            16_000 + self.value(place, 0, 400),
            self.value(place, 1, 100_000),
            self.value(place, 2, 1_000),
            self.value(place, 3, 10_000),
            self.value(place, 4, 100),
            self.value(place, 5, 1_000_000),
        ]
    }

    /// Sum of column `cost`.
    pub fn cost(self) -> i64 {
        self.sum(5)
    }

    /// Sum of column `campaign`.
    pub fn campaign(self) -> i64 {
        self.sum(2)
    }

    fn sum(self, column: usize) -> i64 {
        (0..self.rows).map(|place| i64::from(self.row(place)[column])).sum()
    }

    /// One batch.
    ///
    /// # Errors
    /// Internal, which would be a bug here.
    pub fn batch(self) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_value(self.number, self.rows as usize)),
            Arc::new(Int32Array::from_iter_values(0..self.rows)),
        ];
        let rows: Vec<[i32; 6]> = (0..self.rows).map(|place| self.row(place)).collect();
        for column in 0..VALUES.len() {
            let values = rows.iter().map(|row| row[column]);
            columns.push(Arc::new(Int32Array::from_iter_values(values)));
        }
        RecordBatch::try_new(table_schema(), columns)
            .map_err(|e| Error::internal("a parcel is no batch").with_source(e))
    }

    /// Rows as lines of values with `separator` between them.
    pub fn lines(self, separator: char) -> String {
        let mut text = String::new();
        for place in 0..self.rows {
            let _ = write!(text, "{}{separator}{place}", self.number);
            for value in self.row(place) {
                let _ = write!(text, "{separator}{value}");
            }
            text.push('\n');
        }
        text
    }

    /// Rows as JSON objects, one per line.
    pub fn json_lines(self) -> String {
        let mut text = String::new();
        for place in 0..self.rows {
            let _ = write!(text, "{{\"parcel\":{},\"place\":{place}", self.number);
            for (name, value) in VALUES.iter().zip(self.row(place)) {
                let _ = write!(text, ",\"{name}\":{value}");
            }
            text.push_str("}\n");
        }
        text
    }

    /// One `INSERT` statement of HQL: the parcel is a row, each place a cell whose value is the cost.
    pub fn insert_cells(self, table: &str) -> String {
        let mut text = format!("INSERT INTO {table} VALUES ");
        for place in 0..self.rows {
            let comma = if place == 0 { "" } else { ", " };
            let cost = self.row(place)[5];
            let _ = write!(text, "{comma}('{}', 'c:{place}', '{cost}')", self.number);
        }
        text
    }

    /// One `INSERT` statement.
    pub fn insert(self, table: &str) -> String {
        let mut text = format!("INSERT INTO {table} VALUES ");
        for place in 0..self.rows {
            let comma = if place == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}({}, {place}", self.number);
            for value in self.row(place) {
                let _ = write!(text, ", {value}");
            }
            text.push(')');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;

    use super::*;

    #[test]
    fn every_form_says_the_same() {
        let parcel = Parcel { number: 7, rows: 3 };
        let batch = parcel.batch().unwrap();
        assert_eq!(batch.schema(), table_schema());
        let cost: i64 = batch
            .column(7)
            .as_primitive::<Int32Type>()
            .values()
            .iter()
            .map(|v| i64::from(*v))
            .sum();
        assert_eq!(parcel.cost(), cost);
        let lines = parcel.lines(',');
        assert_eq!(lines.lines().count(), 3);
        for (line, json) in lines.lines().zip(parcel.json_lines().lines()) {
            let object: serde_json::Value = serde_json::from_str(json).unwrap();
            let names = table_schema();
            let values = names.fields().iter().map(|field| object[field.name()].to_string());
            assert_eq!(line, values.collect::<Vec<_>>().join(","));
            assert!(parcel.insert("t").contains(&format!("({})", line.replace(',', ", "))));
        }
    }

    #[test]
    fn parcels_differ() {
        let costs = (0..1000).map(|number| Parcel { number, rows: 5 }.cost());
        assert!(costs.collect::<std::collections::BTreeSet<_>>().len() > 990);
    }
}
