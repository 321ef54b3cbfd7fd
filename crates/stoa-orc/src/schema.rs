//! Types: the ORC type tree and its Arrow counterpart.
//!
//! In: types from a footer, or an Arrow schema. Out: the other one.
//! **Invariant:** a [`TypeTree`] is a valid tree in pre-order whose index is the column id.
//! Not here: what a reader takes out of a file (`decode::plan`).

mod from_arrow;
mod to_arrow;
mod tree;

#[cfg(test)]
mod tests;

pub use crate::proto::TypeKind;
pub(crate) use to_arrow::arrow_type;
pub use to_arrow::{ArrowOptions, StringOutput, TimestampOutput};
pub use tree::{OrcType, TypeTree};

/// Arrow field metadata key of the Iceberg field id.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// Names and values of type attributes (Iceberg specification, appendix A, ORC).
pub mod attribute {
    /// Field id.
    pub const ID: &str = "iceberg.id";
    /// `true` if the column may not be NULL.
    pub const REQUIRED: &str = "iceberg.required";
    /// Unit of a timestamp: [`MICROS`] or [`NANOS`].
    pub const TIMESTAMP_UNIT: &str = "iceberg.timestamp-unit";
    /// Microseconds.
    pub const MICROS: &str = "MICROS";
    /// Nanoseconds.
    pub const NANOS: &str = "NANOS";
    /// What a BIGINT means: [`TIME`] or `LONG`.
    pub const LONG_TYPE: &str = "iceberg.long-type";
    /// Microseconds since midnight.
    pub const TIME: &str = "TIME";
    /// What a BINARY means: [`UUID`], [`FIXED`] or `BINARY`.
    pub const BINARY_TYPE: &str = "iceberg.binary-type";
    /// 16 bytes of a UUID.
    pub const UUID: &str = "UUID";
    /// As many bytes as [`LENGTH`] says.
    pub const FIXED: &str = "FIXED";
    /// Length of a [`FIXED`] in bytes.
    pub const LENGTH: &str = "iceberg.length";
}
