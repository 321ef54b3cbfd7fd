//! What a reader may leave out: a condition over columns, judged against statistics.
//!
//! In: a [`Predicate`] (from a table scan) and statistics. Out: whether rows *may* match.
//! **Invariant:** pruning never drops a row that the condition keeps; when in doubt, keep.
//! A predicate that does not name something (a function, a join) is simply not here: the caller
//! leaves it out of an [`Predicate::And`], which only widens what is read.

/// How a column is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnRef {
    /// ORC column id: pre-order position in the type tree, root = 0.
    Id(u32),
    /// Iceberg field id (type attribute `iceberg.id`).
    Field(i32),
}

/// A value to compare with, in the unit of the ORC type it is compared to.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// BOOLEAN.
    Boolean(bool),
    /// TINYINT, SMALLINT, INT, BIGINT.
    Int(i64),
    /// FLOAT, DOUBLE.
    Float(f64),
    /// DECIMAL: unscaled value and scale (digits after the point).
    Decimal(i128, i8),
    /// STRING, VARCHAR, CHAR.
    String(String),
    /// BINARY.
    Binary(Vec<u8>),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// TIMESTAMP, TIMESTAMP_INSTANT: microseconds since 1970-01-01 00:00:00 (wall clock or UTC).
    TimestampMicros(i64),
}

/// How a column is compared with a value. NULL compares as unknown, that is: does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
}

/// A condition over columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// Every part holds; empty = always.
    And(Vec<Predicate>),
    /// At least one part holds; empty = never.
    Or(Vec<Predicate>),
    /// `column op value`
    Compare {
        /// Left side.
        column: ColumnRef,
        /// Operator.
        op: CompareOp,
        /// Right side.
        value: Literal,
    },
    /// `column IN (values)`
    In {
        /// Left side.
        column: ColumnRef,
        /// The values; empty = never.
        values: Vec<Literal>,
    },
    /// `column IS NULL`
    IsNull(ColumnRef),
    /// `column IS NOT NULL`
    IsNotNull(ColumnRef),
}

impl Predicate {
    /// The condition that every row meets.
    pub fn always() -> Self {
        Self::And(Vec::new())
    }

    /// Whether this is [`Predicate::always`].
    pub fn is_always(&self) -> bool {
        matches!(self, Self::And(parts) if parts.iter().all(Self::is_always))
    }

    /// Both `self` and `other`, flattened.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut parts = match self {
            Self::And(parts) => parts,
            one => vec![one],
        };
        match other {
            Self::And(more) => parts.extend(more),
            one => parts.push(one),
        }
        Self::And(parts)
    }

    /// Calls `visit` for every column named, in order, repeats included.
    pub fn for_each_column(&self, visit: &mut impl FnMut(ColumnRef)) {
        match self {
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.for_each_column(visit));
            }
            Self::Compare { column, .. } | Self::In { column, .. } => visit(*column),
            Self::IsNull(column) | Self::IsNotNull(column) => visit(*column),
        }
    }
}
