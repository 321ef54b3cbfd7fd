//! The types of the protocol, and how Arrow's types map to them.
//!
//! In: an Arrow field, or an OID a client sent. Out: a [`PgType`] with OID, length and modifier.
//!
//! **Invariant:** every Arrow type has a wire type; what PostgreSQL has no type for (structs, maps,
//! unions, lists of such) travels as `json`.
//! Not here: bytes (see `encode` and `decode`).

mod arrow;
pub(crate) mod calendar;
pub(crate) mod decode;
pub(crate) mod numeric;
mod pg_type;
pub(crate) mod zone;

pub(crate) use arrow::{field_type, is_oid_field, is_record, to_arrow, type_modifier};
pub(crate) use pg_type::PgType;
