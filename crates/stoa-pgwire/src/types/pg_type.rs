//! The wire types with their OIDs (`pg_type.dat` of PostgreSQL).

/// A scalar type, or an array of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PgType {
    Bool,
    Bytea,
    /// The one-byte `"char"` of system catalogs.
    Char,
    Name,
    Int8,
    Int2,
    Int4,
    Text,
    Oid,
    Json,
    Float4,
    Float8,
    Unknown,
    Bpchar,
    Varchar,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Timetz,
    Numeric,
    Regproc,
    Regclass,
    Regtype,
    Regnamespace,
    Regrole,
    Uuid,
    Jsonb,
    /// Small numbers whose places are counted from 0, of system catalogs.
    Int2vector,
    /// OIDs whose places are counted from 0, of system catalogs.
    Oidvector,
    /// A row without a type of its own: `ROW(1, 'a')`.
    Record,
    /// An array of the scalar type named.
    Array(Element),
}

/// An element type of an array; each scalar type that has an array type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Element(usize);

struct Row {
    of: PgType,
    name: &'static str,
    oid: u32,
    array_oid: u32,
    /// Bytes of the binary form; -1 where it varies.
    length: i16,
}

const fn row(of: PgType, name: &'static str, oid: u32, array_oid: u32, length: i16) -> Row {
    Row { of, name, oid, array_oid, length }
}

const TYPES: [Row; 32] = [
    row(PgType::Bool, "boolean", 16, 1000, 1),
    row(PgType::Bytea, "bytea", 17, 1001, -1),
    row(PgType::Char, "\"char\"", 18, 1002, 1),
    row(PgType::Name, "name", 19, 1003, 64),
    row(PgType::Int8, "bigint", 20, 1016, 8),
    row(PgType::Int2, "smallint", 21, 1005, 2),
    row(PgType::Int2vector, "int2vector", 22, 1006, -1),
    row(PgType::Int4, "integer", 23, 1007, 4),
    row(PgType::Regproc, "regproc", 24, 1008, 4),
    row(PgType::Text, "text", 25, 1009, -1),
    row(PgType::Oid, "oid", 26, 1028, 4),
    row(PgType::Oidvector, "oidvector", 30, 1013, -1),
    row(PgType::Json, "json", 114, 199, -1),
    row(PgType::Float4, "real", 700, 1021, 4),
    row(PgType::Float8, "double precision", 701, 1022, 8),
    row(PgType::Unknown, "unknown", 705, 0, -2),
    row(PgType::Bpchar, "character", 1042, 1014, -1),
    row(PgType::Varchar, "character varying", 1043, 1015, -1),
    row(PgType::Date, "date", 1082, 1182, 4),
    row(PgType::Time, "time without time zone", 1083, 1183, 8),
    row(PgType::Timestamp, "timestamp without time zone", 1114, 1115, 8),
    row(PgType::Timestamptz, "timestamp with time zone", 1184, 1185, 8),
    row(PgType::Interval, "interval", 1186, 1187, 16),
    row(PgType::Timetz, "time with time zone", 1266, 1270, 12),
    row(PgType::Numeric, "numeric", 1700, 1231, -1),
    row(PgType::Record, "record", 2249, 2287, -1),
    row(PgType::Regclass, "regclass", 2205, 2210, 4),
    row(PgType::Regtype, "regtype", 2206, 2211, 4),
    row(PgType::Uuid, "uuid", 2950, 2951, 16),
    row(PgType::Jsonb, "jsonb", 3802, 3807, -1),
    row(PgType::Regnamespace, "regnamespace", 4089, 4090, 4),
    row(PgType::Regrole, "regrole", 4096, 4097, 4),
];

impl PgType {
    fn row(self) -> Option<&'static Row> {
        match self {
            Self::Array(element) => TYPES.get(element.0),
            scalar => TYPES.iter().find(|row| row.of == scalar),
        }
    }

    /// The type's OID.
    pub(crate) fn oid(self) -> u32 {
        match (self, self.row()) {
            (Self::Array(_), Some(row)) => row.array_oid,
            (_, Some(row)) => row.oid,
            (_, None) => 705,
        }
    }

    /// The type with this OID, if this server knows it.
    pub(crate) fn from_oid(oid: u32) -> Option<Self> {
        TYPES.iter().enumerate().find_map(|(index, row)| {
            if row.oid == oid {
                Some(row.of)
            } else if row.array_oid == oid && oid != 0 {
                Some(Self::Array(Element(index)))
            } else {
                None
            }
        })
    }

    /// Bytes of the binary form; negative where it varies.
    pub(crate) fn length(self) -> i16 {
        match self {
            Self::Array(_) => -1,
            scalar => scalar.row().map_or(-1, |row| row.length),
        }
    }

    /// The SQL name, for messages.
    pub(crate) fn name(self) -> String {
        let name = self.row().map_or("unknown", |row| row.name);
        match self {
            Self::Array(_) => format!("{name}[]"),
            _ => name.to_owned(),
        }
    }

    /// The array type over this scalar; `None` for arrays and types without one.
    pub(crate) fn array(self) -> Option<Self> {
        let index = TYPES.iter().position(|row| row.of == self && row.array_oid != 0)?;
        Some(Self::Array(Element(index)))
    }

    /// Whether it is an array that is written in another way, and counted from 0.
    pub(crate) fn is_vector(self) -> bool {
        matches!(self, Self::Int2vector | Self::Oidvector)
    }

    /// The type of an array's elements; `None` for scalars.
    pub(crate) fn element(self) -> Option<Self> {
        match self {
            Self::Int2vector => Some(Self::Int2),
            Self::Oidvector => Some(Self::Oid),
            Self::Array(element) => TYPES.get(element.0).map(|row| row.of),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oids_lead_back_to_their_types() {
        for row in &TYPES {
            assert_eq!(PgType::from_oid(row.oid), Some(row.of));
            if let Some(array) = row.of.array() {
                assert_eq!(PgType::from_oid(row.array_oid), Some(array));
                assert_eq!(array.element(), Some(row.of));
                assert_eq!(array.oid(), row.array_oid);
            }
        }
        assert_eq!(PgType::from_oid(0), None);
    }
}
