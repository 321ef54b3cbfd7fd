//! Types of columns, as Hive calls them.

use arrow_schema::{DataType, Field, Fields};
use stoa_query::{DeclaredType, NUMERIC};
use stoa_thrift::{Column, TypeId};

/// Where a column's comment is kept among its field's metadata.
const COMMENT_KEY: &str = "comment";
/// Hive's decimals have no more digits.
const PRECISION_MAX: u8 = 38;
/// What decimals without a scale of their own are announced with: Hive's largest precision, and the scale of its
/// quotients. Values have the digits that they have.
const NUMERIC_SCALE: i8 = 18;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnType {
    pub(crate) id: TypeId,
    /// Length of a text; precision of a decimal.
    size: Option<i32>,
    scale: Option<i32>,
}

impl ColumnType {
    /// The type of a column of the engine.
    pub(crate) fn of(field: &Field) -> Self {
        match DeclaredType::of(field) {
            Some(DeclaredType::Varchar(Some(length))) => Self::text(TypeId::Varchar, length),
            Some(DeclaredType::Char(length)) => Self::text(TypeId::Char, length),
            Some(DeclaredType::Varchar(None) | DeclaredType::SmallInt) | None => {
                Self::of_data(field.data_type())
            }
        }
    }

    fn text(id: TypeId, length: impl TryInto<i32>) -> Self {
        Self { id, size: length.try_into().ok(), scale: None }
    }

    fn decimal(precision: u8, scale: i8) -> Self {
        let (size, scale) = (precision.min(PRECISION_MAX).into(), scale.max(0).into());
        Self { id: TypeId::Decimal, size: Some(size), scale: Some(scale) }
    }

    fn of_data(data_type: &DataType) -> Self {
        let id = match data_type {
            of if *of == NUMERIC => return Self::decimal(PRECISION_MAX, NUMERIC_SCALE),
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => return Self::decimal(*precision, *scale),
            DataType::UInt64 => return Self::decimal(20, 0),
            DataType::Dictionary(_, values) => return Self::of_data(values),
            DataType::RunEndEncoded(_, values) => return Self::of(values),
            DataType::Boolean => TypeId::Boolean,
            DataType::Int8 => TypeId::TinyInt,
            DataType::Int16 | DataType::UInt8 => TypeId::SmallInt,
            DataType::Int32 | DataType::UInt16 => TypeId::Int,
            DataType::Int64 | DataType::UInt32 => TypeId::BigInt,
            DataType::Float16 | DataType::Float32 => TypeId::Float,
            DataType::Float64 => TypeId::Double,
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => TypeId::Binary,
            DataType::Date32 | DataType::Date64 => TypeId::Date,
            DataType::Timestamp(..) => TypeId::Timestamp,
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_) => TypeId::Array,
            DataType::Struct(_) => TypeId::Struct,
            DataType::Map(..) => TypeId::Map,
            DataType::Null
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Interval(_)
            | DataType::Duration(_)
            | DataType::Union(..) => TypeId::String,
        };
        Self { id, size: None, scale: None }
    }

    fn qualifiers(self) -> Vec<(&'static str, i32)> {
        match (self.id, self.size) {
            (TypeId::Decimal, Some(precision)) => {
                vec![("precision", precision), ("scale", self.scale.unwrap_or_default())]
            }
            (_, Some(length)) => vec![("characterMaximumLength", length)],
            _ => Vec::new(),
        }
    }

    /// The number of the type in `java.sql.Types`.
    pub(crate) fn jdbc_type(self) -> i32 {
        match self.id {
            TypeId::Boolean => 16,
            TypeId::TinyInt => -6,
            TypeId::SmallInt => 5,
            TypeId::Int => 4,
            TypeId::BigInt => -5,
            TypeId::Float => 6,
            TypeId::Double => 8,
            TypeId::String | TypeId::Varchar => 12,
            TypeId::Char => 1,
            TypeId::Timestamp => 93,
            TypeId::Date => 91,
            TypeId::Binary => -2,
            TypeId::Decimal => 3,
            TypeId::Array => 2003,
            TypeId::Struct => 2002,
            TypeId::Map => 2000,
            TypeId::Union => 1111,
            TypeId::Null => 0,
        }
    }

    /// How many digits or characters a value has at most; `None` where that has no meaning.
    pub(crate) fn column_size(self) -> Option<i32> {
        match self.id {
            TypeId::TinyInt => Some(3),
            TypeId::SmallInt => Some(5),
            TypeId::Int | TypeId::Date => Some(10),
            TypeId::BigInt => Some(19),
            TypeId::Float => Some(7),
            TypeId::Double => Some(15),
            TypeId::Timestamp => Some(29),
            TypeId::String | TypeId::Binary => Some(i32::MAX),
            _ => self.size,
        }
    }

    /// How many digits behind the point; `None` where that has no meaning.
    pub(crate) fn decimal_digits(self) -> Option<i32> {
        match self.id {
            TypeId::TinyInt | TypeId::SmallInt | TypeId::Int | TypeId::BigInt => Some(0),
            TypeId::Float => Some(7),
            TypeId::Double => Some(15),
            TypeId::Timestamp => Some(9),
            _ => self.scale,
        }
    }
}

/// A column of a result.
pub(crate) fn column(field: &Field) -> Column {
    let of = ColumnType::of(field);
    Column {
        name: field.name().clone(),
        type_id: of.id,
        qualifiers: of.qualifiers(),
        comment: comment(field).map(str::to_owned),
    }
}

/// What a column is for.
pub(crate) fn comment(field: &Field) -> Option<&str> {
    field.metadata().get(COMMENT_KEY).map(String::as_str)
}

/// The name of a column's type, as `DESCRIBE` shows it.
pub(crate) fn type_name(field: &Field) -> String {
    let of = ColumnType::of(field);
    match (of.id, of.size, field.data_type()) {
        (TypeId::Decimal, Some(size), _) => {
            format!("decimal({size},{})", of.scale.unwrap_or_default())
        }
        (TypeId::Varchar, Some(length), _) => format!("varchar({length})"),
        (TypeId::Char, Some(length), _) => format!("char({length})"),
        (
            _,
            _,
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::ListView(item)
            | DataType::LargeListView(item),
        ) => format!("array<{}>", type_name(item)),
        (_, _, DataType::Struct(fields)) => format!("struct<{}>", members(fields)),
        (_, _, DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                format!("map<{},{}>", type_name(&pair[0]), type_name(&pair[1]))
            }
            _ => simple_name(of.id).to_owned(),
        },
        _ => simple_name(of.id).to_owned(),
    }
}

fn members(fields: &Fields) -> String {
    let members = fields.iter().map(|field| format!("{}:{}", field.name(), type_name(field)));
    members.collect::<Vec<_>>().join(",")
}

fn simple_name(id: TypeId) -> &'static str {
    match id {
        TypeId::Boolean => "boolean",
        TypeId::TinyInt => "tinyint",
        TypeId::SmallInt => "smallint",
        TypeId::Int => "int",
        TypeId::BigInt => "bigint",
        TypeId::Float => "float",
        TypeId::Double => "double",
        TypeId::String => "string",
        TypeId::Timestamp => "timestamp",
        TypeId::Binary => "binary",
        TypeId::Array => "array",
        TypeId::Map => "map",
        TypeId::Struct => "struct",
        TypeId::Union => "uniontype",
        TypeId::Decimal => "decimal",
        TypeId::Null => "void",
        TypeId::Date => "date",
        TypeId::Varchar => "varchar",
        TypeId::Char => "char",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::TimeUnit;

    use super::*;

    #[test]
    fn types_have_hives_names() {
        let field = |of: DataType| Field::new("x", of, true);
        let list = DataType::List(Arc::new(field(DataType::Int64)));
        for (of, name) in [
            (DataType::Utf8View, "string"),
            (DataType::Int64, "bigint"),
            (DataType::Int16, "smallint"),
            (DataType::Decimal128(9, 2), "decimal(9,2)"),
            (NUMERIC, "decimal(38,18)"),
            (DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), "timestamp"),
            (list.clone(), "array<bigint>"),
            (DataType::Struct(vec![field(list)].into()), "struct<x:array<bigint>>"),
        ] {
            assert_eq!(type_name(&field(of)), name);
        }
    }
}
