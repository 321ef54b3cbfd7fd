//! The one form in which the values of all protocols are compared.
//!
//! It is Arrow's display of a value: `true`, `1.5`, `2025-06-01T10:00:00Z`, `00ff`, `[1, NULL]`. NULL
//! is `NULL`, a text without characters `(empty)`. Values of `numeric` without a scale have no zeros at
//! their end. What comes as Arrow batches is shown by [`cells`], what comes as text is read again as a
//! value of its type by [`Cell`].

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, TimeUnit};

/// `numeric` without a scale, as results have it.
const NUMERIC: DataType = DataType::Decimal256(76, 38);

/// What kind of value a text shows, as far as the forms of protocols differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// One whose text is the same everywhere.
    Text,
    /// `t` or `true`.
    Boolean,
    /// A `real`.
    Real,
    /// A `double precision`.
    Double,
    /// `\x00ff`.
    Bytes,
    /// Hexadecimal digits, perhaps with hyphens.
    Uuid,
    /// A time of day.
    Time,
    /// A timestamp without a zone.
    Timestamp,
    /// A timestamp with its offset.
    TimestampTz,
    /// PostgreSQL's text of an array, `{1,NULL,"a b"}`.
    Array(Box<Cell>),
}

impl Cell {
    /// The kind of a type by its OID in PostgreSQL.
    pub fn of_oid(oid: u32) -> Self {
        match oid {
            16 => Self::Boolean,
            17 => Self::Bytes,
            700 => Self::Real,
            701 => Self::Double,
            1083 => Self::Time,
            1114 => Self::Timestamp,
            1184 => Self::TimestampTz,
            2950 => Self::Uuid,
            1000 => Self::array(Self::Boolean),
            1001 => Self::array(Self::Bytes),
            1021 => Self::array(Self::Real),
            1022 => Self::array(Self::Double),
            1115 => Self::array(Self::Timestamp),
            1183 => Self::array(Self::Time),
            1185 => Self::array(Self::TimestampTz),
            2951 => Self::array(Self::Uuid),
            1003 | 1005 | 1007 | 1009 | 1015 | 1016 | 1028 | 1182 | 1231 => Self::array(Self::Text),
            _ => Self::Text,
        }
    }

    /// The kind of a type by its name in SQL; of `array<t>` that of `t`.
    pub fn named(name: &str) -> Self {
        match name {
            "boolean" => Self::Boolean,
            "real" => Self::Real,
            "double precision" => Self::Double,
            "time" => Self::Time,
            "timestamp" => Self::Timestamp,
            "timestamp with time zone" => Self::TimestampTz,
            "uuid" => Self::Uuid,
            "bytea" => Self::Bytes,
            other => match other.strip_prefix("array<").and_then(|name| name.strip_suffix('>')) {
                Some(element) => Self::array(Self::named(element)),
                None => Self::Text,
            },
        }
    }

    fn array(element: Self) -> Self {
        Self::Array(Box::new(element))
    }

    /// The text of a value in the form of this module; a text that cannot be read stays as it is.
    pub fn shown(&self, text: &str) -> String {
        match self {
            Self::Text => text.to_owned(),
            Self::Boolean => boolean(text).to_owned(),
            Self::Real => display(text, |text| {
                Some(Arc::new(Float32Array::from(vec![text.parse::<f32>().ok()?])))
            }),
            Self::Double => display(text, |text| {
                Some(Arc::new(Float64Array::from(vec![text.parse::<f64>().ok()?])))
            }),
            Self::Bytes => text.strip_prefix("\\x").unwrap_or(text).to_owned(),
            Self::Uuid => text.replace('-', ""),
            Self::Time => read_as(text, &DataType::Time64(TimeUnit::Microsecond)),
            Self::Timestamp => read_as(text, &DataType::Timestamp(TimeUnit::Microsecond, None)),
            Self::TimestampTz => {
                let utc = Some("+00:00".into());
                read_as(text, &DataType::Timestamp(TimeUnit::Microsecond, utc))
            }
            Self::Array(element) => match items(text) {
                Some(items) => list(items.iter().map(|item| match item {
                    Some(item) => element.shown(item),
                    None => "NULL".to_owned(),
                })),
                None => text.to_owned(),
            },
        }
    }

    /// The cell of a value or of NULL.
    pub fn cell(&self, text: Option<&str>) -> String {
        match text {
            None => "NULL".to_owned(),
            Some(text) => named_if_empty(self.shown(text)),
        }
    }
}

/// The cells of a batch, row by row.
///
/// # Panics
/// If a column is of a type that Arrow cannot show.
pub fn cells(batch: &RecordBatch) -> Vec<Vec<String>> {
    let columns: Vec<Vec<String>> = batch.columns().iter().map(column_cells).collect();
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|cells| cells[row].clone()).collect())
        .collect()
}

fn column_cells(column: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(column, &options).expect("a type that can be shown");
    let has_no_scale = *column.data_type() == NUMERIC;
    let cell = |row| match formatter.value(row).to_string() {
        text if has_no_scale && column.is_valid(row) => without_zeros(&text).to_owned(),
        text => named_if_empty(text),
    };
    (0..column.len()).map(cell).collect()
}

/// Items as Arrow shows a list.
fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn named_if_empty(text: String) -> String {
    if text.is_empty() { "(empty)".to_owned() } else { text }
}

fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

fn boolean(text: &str) -> &str {
    match text {
        "t" => "true",
        "f" => "false",
        other => other,
    }
}

/// A value that `read` makes of the text, as Arrow shows it.
fn display(text: &str, read: impl Fn(&str) -> Option<ArrayRef>) -> String {
    match read(text) {
        Some(array) => column_cells(&array).swap_remove(0),
        None => text.to_owned(),
    }
}

/// The text as a value of a type, as Arrow shows it.
fn read_as(text: &str, data_type: &DataType) -> String {
    display(text, |text| {
        let texts = StringArray::from(vec![text]);
        cast(&texts, data_type).ok().filter(|array| array.is_valid(0))
    })
}

/// The items of PostgreSQL's text of an array of one dimension; `None` where it is none.
fn items(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    let mut characters = inner.chars().peekable();
    while characters.peek().is_some() {
        let (mut item, mut is_quoted, mut within) = (String::new(), false, false);
        while let Some(character) = characters.next_if(|next| within || *next != ',') {
            match character {
                '"' => (is_quoted, within) = (true, !within),
                '\\' => item.extend(characters.next()),
                '{' if !within => return None,
                other => item.push(other),
            }
        }
        characters.next();
        items.push(Some(item).filter(|item| is_quoted || item != "NULL"));
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{BooleanArray, Int32Array, ListArray};
    use arrow_schema::{Field, Schema};

    use super::*;

    #[test]
    fn texts_of_protocols_are_shown_alike() {
        let check = |cell: Cell, text: &str, expected: &str| {
            assert_eq!(cell.cell(Some(text)), expected, "{cell:?} {text}");
        };
        check(Cell::of_oid(16), "t", "true");
        check(Cell::named("boolean"), "false", "false");
        check(Cell::of_oid(701), "0", "0.0");
        check(Cell::of_oid(701), "1e+15", "1000000000000000.0");
        check(Cell::of_oid(701), "1e-16", "1e-16");
        check(Cell::of_oid(701), "Infinity", "inf");
        check(Cell::of_oid(701), "NaN", "NaN");
        check(Cell::of_oid(700), "1.5", "1.5");
        check(Cell::of_oid(17), "\\x00ff", "00ff");
        check(Cell::of_oid(17), "\\x", "(empty)");
        check(Cell::of_oid(1083), "10:20:30.5", "10:20:30.500");
        check(Cell::of_oid(1114), "1969-12-31 23:59:58.5", "1969-12-31T23:59:58.500");
        check(Cell::of_oid(1184), "2025-06-01 12:00:00+02", "2025-06-01T10:00:00Z");
        check(
            Cell::named("timestamp with time zone"),
            "2025-06-01T10:00:00Z",
            "2025-06-01T10:00:00Z",
        );
        check(Cell::of_oid(1114), "0044-03-15 12:00:00 BC", "0044-03-15 12:00:00 BC");
        check(
            Cell::of_oid(2950),
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        );
        check(Cell::of_oid(1016), "{1,NULL,3}", "[1, NULL, 3]");
        check(Cell::of_oid(1016), "{}", "[]");
        check(Cell::of_oid(1009), "{a,\"b, \\\"c\\\"\",\"NULL\",\"\"}", "[a, b, \"c\", NULL, ]");
        check(Cell::of_oid(1000), "{t,f}", "[true, false]");
        check(Cell::named("array<boolean>"), "{t}", "[true]");
        check(Cell::of_oid(25), "", "(empty)");
        assert_eq!(Cell::Text.cell(None), "NULL");
    }

    #[test]
    fn batches_are_shown_in_the_same_form() {
        let lists = vec![Some(vec![Some(1), None]), None];
        let numerics = cast(&StringArray::from(vec!["2.5", "30"]), &NUMERIC).unwrap();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![Some(1), None])),
            Arc::new(BooleanArray::from(vec![true, false])),
            Arc::new(StringArray::from(vec!["", "b"])),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
            numerics,
        ];
        let fields: Vec<Field> = columns
            .iter()
            .map(|column| Field::new("c", column.data_type().clone(), true))
            .collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        assert_eq!(
            cells(&batch),
            [["1", "true", "(empty)", "[1, NULL]", "2.5"], ["NULL", "false", "b", "NULL", "30"]]
        );
    }
}
