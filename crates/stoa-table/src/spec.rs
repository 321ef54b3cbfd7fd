//! What a table shall look like: schema, partitioning, order, properties, and changes of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use arrow_schema::{DataType, Field, SchemaRef};
use stoa_error::{Error, Result};

use crate::DeclaredType;

/// A partition or sort transform of Iceberg's specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transform {
    /// The value itself.
    Identity,
    /// Years since 1970.
    Year,
    /// Months since 1970-01.
    Month,
    /// Days since 1970-01-01.
    Day,
    /// Hours since 1970-01-01 00:00.
    Hour,
    /// Murmur3 hash modulo this many buckets (at least 1).
    Bucket(u32),
    /// Number rounded down to a multiple of this width, or text cut to this many characters.
    Truncate(u32),
    /// Always NULL.
    Void,
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("identity"),
            Self::Year => f.write_str("year"),
            Self::Month => f.write_str("month"),
            Self::Day => f.write_str("day"),
            Self::Hour => f.write_str("hour"),
            Self::Bucket(buckets) => write!(f, "bucket[{buckets}]"),
            Self::Truncate(width) => write!(f, "truncate[{width}]"),
            Self::Void => f.write_str("void"),
        }
    }
}

impl FromStr for Transform {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let number = |prefix: &str| -> Option<u32> {
            lower.strip_prefix(prefix)?.strip_suffix(']')?.parse().ok().filter(|n| *n > 0)
        };
        Ok(match lower.as_str() {
            "identity" => Self::Identity,
            "year" | "years" => Self::Year,
            "month" | "months" => Self::Month,
            "day" | "days" | "date" => Self::Day,
            "hour" | "hours" | "date_hour" => Self::Hour,
            "void" => Self::Void,
            _ => match (number("bucket["), number("truncate[")) {
                (Some(buckets), _) => Self::Bucket(buckets),
                (_, Some(width)) => Self::Truncate(width),
                _ => {
                    return Err(Error::invalid(format!("unknown transform {text:?}")).with_hint(
                        "transforms are identity, year, month, day, hour, bucket[N], \
                         truncate[W] and void",
                    ));
                }
            },
        })
    }
}

/// One part of a table's partitioning.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionTerm {
    /// The source column.
    pub column: String,
    /// What is done to its values.
    pub transform: Transform,
}

impl PartitionTerm {
    /// Partitions by `transform` of `column`.
    pub fn new(column: impl Into<String>, transform: Transform) -> Self {
        Self { column: column.into(), transform }
    }

    /// The partition field's name, as Iceberg's Java and Spark choose it.
    pub fn field_name(&self) -> String {
        let column = &self.column;
        match self.transform {
            Transform::Identity => column.clone(),
            Transform::Year => format!("{column}_year"),
            Transform::Month => format!("{column}_month"),
            Transform::Day => format!("{column}_day"),
            Transform::Hour => format!("{column}_hour"),
            Transform::Bucket(_) => format!("{column}_bucket"),
            Transform::Truncate(_) => format!("{column}_trunc"),
            Transform::Void => format!("{column}_null"),
        }
    }
}

impl fmt::Display for PartitionTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_term(f, &self.column, self.transform)
    }
}

/// One part of a table's sort order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortTerm {
    /// The source column.
    pub column: String,
    /// What is done to its values before they are compared.
    pub transform: Transform,
    /// Largest first.
    pub descending: bool,
    /// NULL before all values.
    pub nulls_first: bool,
}

impl SortTerm {
    /// Ascending by the values of `column`, NULL first (Iceberg's default).
    pub fn ascending(column: impl Into<String>) -> Self {
        Self {
            column: column.into(),
            transform: Transform::Identity,
            descending: false,
            nulls_first: true,
        }
    }
}

impl fmt::Display for SortTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_term(f, &self.column, self.transform)?;
        f.write_str(if self.descending { " DESC" } else { " ASC" })?;
        f.write_str(if self.nulls_first { " NULLS FIRST" } else { " NULLS LAST" })
    }
}

fn write_term(f: &mut fmt::Formatter<'_>, column: &str, transform: Transform) -> fmt::Result {
    match transform {
        Transform::Identity => f.write_str(column),
        Transform::Bucket(buckets) => write!(f, "bucket({buckets}, {column})"),
        Transform::Truncate(width) => write!(f, "truncate({width}, {column})"),
        other => write!(f, "{other}({column})"),
    }
}

/// A table to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSpec {
    /// Columns; field ids are assigned anew, whatever the fields carry.
    pub schema: SchemaRef,
    /// Partition fields, outermost first; empty for none.
    pub partition_by: Vec<PartitionTerm>,
    /// Order of rows inside a file; empty for none.
    pub sort_by: Vec<SortTerm>,
    /// The columns that identify a row (Iceberg's identifier fields), which are not null; empty for none.
    pub identifiers: Vec<String>,
    /// Table properties, Iceberg's and Stoa's.
    pub properties: BTreeMap<String, String>,
    /// Kept as the property `comment`.
    pub comment: Option<String>,
}

impl TableSpec {
    /// An unpartitioned, unsorted table with the columns of `schema`.
    pub fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            partition_by: Vec::new(),
            sort_by: Vec::new(),
            identifiers: Vec::new(),
            properties: BTreeMap::new(),
            comment: None,
        }
    }
}

/// Where a new column goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColumnPosition {
    /// Before all others.
    First,
    /// Right after this one.
    After(String),
    /// After all others.
    #[default]
    Last,
}

/// A change of a table's metadata. Data files are not touched.
#[derive(Clone, Debug, PartialEq)]
pub enum TableChange {
    /// Adds a column; it must be nullable, because older files do not have it.
    AddColumn {
        /// Name, type, and comment (metadata key `comment`).
        field: Field,
        /// Where.
        position: ColumnPosition,
    },
    /// Removes a column. Its field id is never used again.
    DropColumn(String),
    /// Renames a column; the field id stays.
    RenameColumn {
        /// The name so far.
        from: String,
        /// The name from now on.
        to: String,
    },
    /// Promotes a column: int to long, float to double, decimal to more digits.
    ChangeType {
        /// The column.
        column: String,
        /// The wider type.
        data_type: DataType,
        /// What is declared of it beyond that; it must hold all that was declared before.
        declared: Option<DeclaredType>,
    },
    /// Allows NULL in a column.
    SetNullable(String),
    /// Sets or removes what a column holds where no value is given.
    SetDefault {
        /// The column.
        column: String,
        /// The text of an expression; `None` removes it.
        default: Option<String>,
    },
    /// Sets or removes a column's comment.
    SetColumnComment {
        /// The column.
        column: String,
        /// The comment; `None` removes it.
        comment: Option<String>,
    },
    /// Sets properties.
    SetProperties(BTreeMap<String, String>),
    /// Removes properties; ones not set are no error.
    UnsetProperties(Vec<String>),
    /// Changes nothing unless this property has this value: `Conflict` then.
    RequireProperty {
        /// The property.
        key: String,
        /// What it must be.
        value: String,
    },
    /// Orders files written from now on; empty for no order.
    SetSortOrder(Vec<SortTerm>),
    /// Partitions files written from now on; empty for no partitioning.
    SetPartitioning(Vec<PartitionTerm>),
    /// Gives a snapshot a name, under which it stays until the name is dropped.
    CreateTag {
        /// The name.
        name: String,
        /// The snapshot; the current one if `None`.
        snapshot_id: Option<i64>,
    },
    /// Takes a snapshot's name away.
    DropTag(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_read_back_as_they_print() {
        for transform in [
            Transform::Identity,
            Transform::Year,
            Transform::Month,
            Transform::Day,
            Transform::Hour,
            Transform::Bucket(16),
            Transform::Truncate(3),
            Transform::Void,
        ] {
            assert_eq!(transform.to_string().parse::<Transform>().unwrap(), transform);
        }
        for wrong in ["bucket[0]", "bucket[x]", "truncate[", "weekly"] {
            assert!(wrong.parse::<Transform>().is_err(), "{wrong}");
        }
    }
}
