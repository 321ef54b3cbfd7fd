//! Iceberg's partition transforms: on Arrow arrays, on single values, and as path text.
//!
//! Results: year, month, hour and bucket are `Int`, day is `Date`, truncate and identity keep the
//! source's type. NULL stays NULL under every transform; void makes everything NULL.

mod array;
mod murmur3;
mod scalar;
mod text;

#[cfg(test)]
mod tests;

use iceberg::spec::{PrimitiveType, Transform as IcebergTransform, Type};
use stoa_error::{Error, Result};

pub(crate) use array::literal_at;
pub use array::transform_array;
pub(crate) use scalar::transform_literal;
pub(crate) use text::{partition_path, value_text};

use crate::Transform;

impl Transform {
    pub(crate) fn to_iceberg(self) -> IcebergTransform {
        match self {
            Self::Identity => IcebergTransform::Identity,
            Self::Year => IcebergTransform::Year,
            Self::Month => IcebergTransform::Month,
            Self::Day => IcebergTransform::Day,
            Self::Hour => IcebergTransform::Hour,
            Self::Bucket(buckets) => IcebergTransform::Bucket(buckets),
            Self::Truncate(width) => IcebergTransform::Truncate(width),
            Self::Void => IcebergTransform::Void,
        }
    }

    /// `None` for a transform that this version does not know; such a field prunes nothing.
    pub(crate) fn from_iceberg(transform: IcebergTransform) -> Option<Self> {
        Some(match transform {
            IcebergTransform::Identity => Self::Identity,
            IcebergTransform::Year => Self::Year,
            IcebergTransform::Month => Self::Month,
            IcebergTransform::Day => Self::Day,
            IcebergTransform::Hour => Self::Hour,
            IcebergTransform::Bucket(buckets) => Self::Bucket(buckets),
            IcebergTransform::Truncate(width) => Self::Truncate(width),
            IcebergTransform::Void => Self::Void,
            IcebergTransform::Unknown => return None,
        })
    }

    /// Whether a larger value never has a smaller result.
    pub(crate) fn keeps_order(self) -> bool {
        !matches!(self, Self::Bucket(_) | Self::Void)
    }

    /// The type of the result for a source of type `source`.
    ///
    /// # Errors
    /// `Invalid` where the transform does not take that type.
    pub(crate) fn result_type(self, column: &str, source: &Type) -> Result<PrimitiveType> {
        let result = match self {
            Self::Bucket(0) | Self::Truncate(0) => None,
            _ => self.to_iceberg().result_type(source).ok(),
        };
        result.and_then(|result| result.as_primitive_type().cloned()).ok_or_else(|| {
            Error::invalid(format!("column {column:?} of type {source} cannot take {self}"))
                .with_sqlstate("42P17")
                .with_hint("day, month, year and hour take dates or timestamps; hour no dates")
        })
    }
}
