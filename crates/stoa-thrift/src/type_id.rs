//! Types of Thrift's values, and of Hive's columns.

/// The type of a value on the wire (Thrift's binary protocol).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One byte, 0 or 1.
    Bool = 2,
    /// One byte.
    Byte = 3,
    /// Eight bytes, IEEE 754.
    Double = 4,
    /// Two bytes.
    I16 = 6,
    /// Four bytes; enumerations as well.
    I32 = 8,
    /// Eight bytes.
    I64 = 10,
    /// A length and so many bytes, of text or not.
    Bytes = 11,
    /// Fields up to a zero byte.
    Struct = 12,
    /// Two types, a count, and so many pairs.
    Map = 13,
    /// A type, a count, and so many values.
    Set = 14,
    /// As [`Self::Set`].
    List = 15,
}

impl Kind {
    /// The type with this code; `None` for codes that are not values.
    pub(crate) fn of(code: u8) -> Option<Self> {
        Some(match code {
            2 => Self::Bool,
            3 => Self::Byte,
            4 => Self::Double,
            6 => Self::I16,
            8 => Self::I32,
            10 => Self::I64,
            11 => Self::Bytes,
            12 => Self::Struct,
            13 => Self::Map,
            14 => Self::Set,
            15 => Self::List,
            _ => return None,
        })
    }

    /// Bytes of a value, if all have the same number.
    pub(crate) fn width(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Byte => Some(1),
            Self::I16 => Some(2),
            Self::I32 => Some(4),
            Self::Double | Self::I64 => Some(8),
            Self::Bytes | Self::Struct | Self::Map | Self::Set | Self::List => None,
        }
    }
}

/// The type of a column, as `TTypeId` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Their names say it.
pub enum TypeId {
    Boolean = 0,
    TinyInt = 1,
    SmallInt = 2,
    Int = 3,
    BigInt = 4,
    Float = 5,
    Double = 6,
    String = 7,
    Timestamp = 8,
    Binary = 9,
    Array = 10,
    Map = 11,
    Struct = 12,
    Union = 13,
    Decimal = 15,
    Null = 16,
    Date = 17,
    Varchar = 18,
    Char = 19,
}
