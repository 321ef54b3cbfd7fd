//! Types that SQL declares and Iceberg does not have: `varchar(n)`, `char(n)`, `smallint`.
//!
//! They are stored as the wider type (`string`, `int`). What was declared is a property of the table, by the column's
//! field id: it stays with a column that is renamed, and goes with one that is dropped. Other engines ignore it. Whoever
//! writes rows here keeps to it: [`Limits`] are applied where rows become rows of the table, on every path.
//!
//! Not here: what the types are called in SQL (`stoa-sql`), casts (`stoa-semantics`).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use iceberg::spec::{Schema as IcebergSchema, TableMetadata};
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use stoa_orc::with_one_nan;

use crate::schema::{FIELD_ID_KEY, to_arrow};

/// What such properties begin with; the field id follows.
const PREFIX: &str = "stoa.declared-type.";

/// Metadata of an Arrow field: the declared type of its column, as [`DeclaredType`] writes it.
pub const DECLARED_TYPE_KEY: &str = "stoa.declared-type";

/// A declared type that is narrower than what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeclaredType {
    /// A text of so many characters at most; `None` for any number.
    Varchar(Option<u32>),
    /// A text of so many characters at most, in which blanks at the end do not count: they are not stored.
    Char(u32),
    /// An integer of two bytes.
    SmallInt,
}

impl DeclaredType {
    /// The declared type of a column, unless it is what is stored.
    pub fn of(field: &Field) -> Option<Self> {
        let declared = Self::from_text(field.metadata().get(DECLARED_TYPE_KEY)?)?;
        (*field.data_type() == declared.stored()).then_some(declared)
    }

    /// The type from its name, as it is written in a property.
    pub fn from_text(text: &str) -> Option<Self> {
        let length = |prefix: &str| {
            text.strip_prefix(prefix)?.strip_prefix('(')?.strip_suffix(')')?.parse().ok()
        };
        match text {
            "smallint" => Some(Self::SmallInt),
            "character varying" => Some(Self::Varchar(None)),
            _ => length("character varying")
                .map(|length| Self::Varchar(Some(length)))
                .or_else(|| length("character").map(Self::Char)),
        }
    }

    /// The type in which values are stored.
    fn stored(self) -> DataType {
        match self {
            Self::Varchar(_) | Self::Char(_) => DataType::Utf8,
            Self::SmallInt => DataType::Int32,
        }
    }

    /// PostgreSQL's `atttypmod`: the length and four; -1 where there is none.
    pub fn modifier(self) -> i32 {
        match self {
            Self::Varchar(Some(length)) | Self::Char(length) => {
                i32::try_from(length).map_or(-1, |length| length.saturating_add(4))
            }
            Self::Varchar(None) | Self::SmallInt => -1,
        }
    }

    /// `field` with this type declared.
    #[must_use]
    pub fn declare(self, mut field: Field) -> Field {
        field.metadata_mut().insert(DECLARED_TYPE_KEY.to_owned(), self.to_string());
        field
    }
}

impl fmt::Display for DeclaredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Varchar(None) => f.write_str("character varying"),
            Self::Varchar(Some(length)) => write!(f, "character varying({length})"),
            Self::Char(length) => write!(f, "character({length})"),
            Self::SmallInt => f.write_str("smallint"),
        }
    }
}

/// Whether every value of `from` is one of `to`; `None` is the stored type.
pub(crate) fn holds_all(to: Option<DeclaredType>, from: Option<DeclaredType>) -> bool {
    use DeclaredType::{Char, SmallInt, Varchar};
    match (to, from) {
        (None | Some(Varchar(None)), _) => true,
        (Some(Varchar(Some(to))), Some(Varchar(Some(from)) | Char(from)))
        | (Some(Char(to)), Some(Char(from))) => to >= from,
        (Some(SmallInt), Some(SmallInt)) => true,
        (Some(_), _) => false,
    }
}

/// Whether a property is one of these, which `ALTER COLUMN` alone may set.
pub(crate) fn is_declared_type(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// The property of the column with this id.
pub(crate) fn key_of(field_id: i32) -> String {
    format!("{PREFIX}{field_id}")
}

/// The properties for the columns of a new table.
pub(crate) fn of_columns(columns: &Schema, made: &IcebergSchema) -> HashMap<String, String> {
    let declared = |field: &arrow_schema::FieldRef| {
        let id = made.field_by_name(field.name())?.id;
        Some((key_of(id), DeclaredType::of(field)?.to_string()))
    };
    columns.fields().iter().filter_map(declared).collect()
}

/// The Arrow schema of a version of a table: field ids, comments, and declared types.
pub(crate) fn schema_of(metadata: &TableMetadata) -> Result<SchemaRef> {
    Ok(declared(to_arrow(metadata.current_schema())?, metadata.properties()))
}

/// `schema` with the types that the properties declare of its columns.
fn declared(schema: SchemaRef, properties: &HashMap<String, String>) -> SchemaRef {
    if !properties.keys().any(|key| is_declared_type(key)) {
        return schema;
    }
    let field = |field: &Arc<Field>| {
        let id = field.metadata().get(FIELD_ID_KEY)?;
        let text = properties.get(&format!("{PREFIX}{id}"))?;
        let declared = DeclaredType::from_text(text)?;
        Some(Arc::new(declared.declare(field.as_ref().clone())))
    };
    let fields = schema.fields().iter().map(|of| field(of).unwrap_or_else(|| Arc::clone(of)));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// What a table's columns do not let in: what their declared types do not, and all NaNs but one.
#[derive(Clone, Debug)]
pub struct Limits(Vec<(usize, DeclaredType)>);

impl Limits {
    /// Those of a table's columns.
    pub fn of(schema: &Schema) -> Self {
        let limit = |(place, field): (usize, &Arc<Field>)| match DeclaredType::of(field)? {
            DeclaredType::Varchar(None) => None,
            declared => Some((place, declared)),
        };
        Self(schema.fields().iter().enumerate().filter_map(limit).collect())
    }

    /// The rows of `batch`, which has the table's columns, within the limits: blanks beyond the length of a text are cut
    /// off, as in PostgreSQL, and there is [one NaN](with_one_nan).
    ///
    /// # Errors
    /// A text that is too long (22001), a number out of range (22003).
    pub fn apply(&self, table: &TableIdent, batch: RecordBatch) -> Result<RecordBatch> {
        let mut columns: Option<Vec<ArrayRef>> = None;
        for (place, declared) in &self.0 {
            let Some(column) = batch.columns().get(*place) else { continue };
            let within = within(column, *declared).map_err(|error| {
                let schema = batch.schema();
                let name = schema.fields().get(*place).map_or("", |field| field.name());
                error.with_detail(format!("column \"{name}\" of table {table}"))
            })?;
            if let Some(within) = within {
                columns.get_or_insert_with(|| batch.columns().to_vec())[*place] = within;
            }
        }
        for (place, column) in batch.columns().iter().enumerate() {
            if let Some(column) = with_one_nan(column) {
                columns.get_or_insert_with(|| batch.columns().to_vec())[place] = column;
            }
        }
        match columns {
            None => Ok(batch),
            Some(columns) => RecordBatch::try_new(batch.schema(), columns).map_err(|source| {
                Error::internal(format!("table {table}: values within limits do not fit"))
                    .with_source(source)
            }),
        }
    }
}

/// The values within the limit; `None` where all are as they are.
fn within(column: &ArrayRef, declared: DeclaredType) -> Result<Option<ArrayRef>> {
    let (length, keeps_blanks) = match declared {
        DeclaredType::Varchar(None) => return Ok(None),
        DeclaredType::SmallInt => {
            let Some(numbers) = column.as_primitive_opt::<Int32Type>() else { return Ok(None) };
            return match numbers.iter().flatten().any(|of| i16::try_from(of).is_err()) {
                true => Err(Error::invalid("smallint out of range").with_sqlstate("22003")),
                false => Ok(None),
            };
        }
        DeclaredType::Varchar(Some(length)) => (length as usize, true),
        DeclaredType::Char(length) => (length as usize, false),
    };
    let Some(texts) = column.as_string_opt::<i32>() else { return Ok(None) };
    // There are at most as many characters as bytes.
    let is_plain = |text: &str| text.len() <= length && (keeps_blanks || !text.ends_with(' '));
    if texts.iter().flatten().all(is_plain) {
        return Ok(None);
    }
    let cut = |text: &'_ str| -> Result<String> {
        let text = if keeps_blanks { text } else { text.trim_end_matches(' ') };
        match text.char_indices().nth(length) {
            None => Ok(text.to_owned()),
            Some((end, _)) if text[end..].bytes().all(|byte| byte == b' ') => {
                Ok(text[..end].to_owned())
            }
            Some(_) => Err(Error::invalid(format!("value too long for type {declared}"))
                .with_sqlstate("22001")),
        }
    };
    let cut: StringArray =
        texts.iter().map(|text| text.map(cut).transpose()).collect::<Result<_>>()?;
    Ok(Some(Arc::new(cut)))
}

#[cfg(test)]
mod tests {
    use arrow_array::Int32Array;

    use super::*;

    fn texts(texts: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(texts.to_vec()))
    }

    #[test]
    fn types_are_read_as_they_are_written() {
        for declared in [
            DeclaredType::Varchar(None),
            DeclaredType::Varchar(Some(3)),
            DeclaredType::Char(1),
            DeclaredType::SmallInt,
        ] {
            assert_eq!(DeclaredType::from_text(&declared.to_string()), Some(declared));
        }
        assert_eq!(DeclaredType::from_text("character(x)"), None);
    }

    #[test]
    fn longer_texts_are_refused_unless_only_blanks_are_beyond() {
        let check = |declared, given: &str, expected: Option<&str>| {
            let found = within(&texts(&[given]), declared).map(|cut| {
                cut.map_or_else(|| given.to_owned(), |cut| cut.as_string::<i32>().value(0).into())
            });
            assert_eq!(found.ok().as_deref(), expected, "{declared} {given:?}");
        };
        let varchar = DeclaredType::Varchar(Some(3));
        check(varchar, "abc", Some("abc"));
        check(varchar, "äöü", Some("äöü"));
        check(varchar, "ab  ", Some("ab "));
        check(varchar, "abcd", None);
        let char = DeclaredType::Char(3);
        check(char, "ab ", Some("ab"));
        check(char, "abc   ", Some("abc"));
        check(char, "abcd", None);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let numbers = |number: i32| -> ArrayRef { Arc::new(Int32Array::from(vec![number])) };
        assert!(within(&numbers(32_767), DeclaredType::SmallInt).is_ok());
        let error = within(&numbers(32_768), DeclaredType::SmallInt).unwrap_err();
        assert_eq!(error.sqlstate(), "22003");
    }

    #[test]
    fn types_widen_only() {
        use DeclaredType::{Char, SmallInt, Varchar};
        assert!(holds_all(None, Some(Varchar(Some(3)))));
        assert!(holds_all(Some(Varchar(Some(5))), Some(Char(5))));
        assert!(!holds_all(Some(Varchar(Some(2))), Some(Varchar(Some(3)))));
        assert!(!holds_all(Some(Char(9)), Some(Varchar(Some(3)))));
        assert!(!holds_all(Some(SmallInt), None));
    }
}
