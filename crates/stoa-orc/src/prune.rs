//! Whether rows may match a predicate, by statistics and bloom filters.
//!
//! In: a [`Predicate`] and the statistics of a stripe or row group. Out: `false` only if no row
//! can match. **Invariant:** when in doubt (statistics missing, of another type, or from a writer
//! with a known bug), the answer is `true`.
//! Not here: filtering rows; that is the caller's, who knows the rest of the condition.

mod compare;
mod span;
mod trust;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub(crate) use trust::{Level, Trust};

use crate::bloom::{BloomIndex, hash_bytes, hash_double, hash_long};
use crate::decode::plan::Plan;
use crate::metadata::FileMetadata;
use crate::predicate::{ColumnRef, CompareOp, Literal, Predicate};
use crate::schema::{FIELD_ID_KEY, TypeKind};
use crate::statistics::{ColumnStatistics, ValueStatistics};
use compare::{bounds_of, compare};

/// A predicate over the columns of one file.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    /// The same for all rows: true where nothing is known.
    Constant(bool),
    Test {
        column: u32,
        test: Test,
    },
}

/// What is asked of a column.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Compare(CompareOp, Literal),
    In(Vec<Literal>),
    IsNull,
    IsNotNull,
}

impl Predicate {
    /// Whether one of some rows may match, by what is known of their columns; for files of other formats, whose
    /// statistics the caller trusts. `statistics` gives `None` for a column of which nothing is known.
    pub fn may_match(&self, statistics: &impl Fn(ColumnRef) -> Option<ColumnStatistics>) -> bool {
        let judged = |column: ColumnRef, test: Test| {
            let Some(known) = statistics(column) else { return true };
            test.may_match(None, true, &known, &|_| true)
        };
        match self {
            Self::And(parts) => parts.iter().all(|part| part.may_match(statistics)),
            Self::Or(parts) => parts.iter().any(|part| part.may_match(statistics)),
            Self::Compare { column, op, value } => {
                judged(*column, Test::Compare(*op, value.clone()))
            }
            Self::In { column, values } => judged(*column, Test::In(values.clone())),
            Self::IsNull(column) => judged(*column, Test::IsNull),
            Self::IsNotNull(column) => judged(*column, Test::IsNotNull),
        }
    }
}

/// Where statistics of a column are found.
pub(crate) trait Evidence {
    /// Its statistics, if they may be trusted.
    fn statistics(&self, column: u32) -> Option<ColumnStatistics>;

    /// Its bloom filters and which of them to ask, if they may be trusted.
    fn bloom(&self, column: u32) -> Option<(&BloomIndex, usize)>;
}

impl Condition {
    /// Finds the columns of a predicate. A column that is wanted and not in the file is NULL; one
    /// inside a list, map or union is not judged.
    pub(crate) fn new(predicate: &Predicate, file: &FileMetadata, plan: &Plan) -> Self {
        let of = |column: &ColumnRef, test: Test| match find(*column, file, plan) {
            ResolvedColumn::Column(column) if is_row_level(file, column) => {
                Self::Test { column, test }
            }
            ResolvedColumn::Missing => Self::Constant(matches!(test, Test::IsNull)),
            _ => Self::Constant(true),
        };
        let all = |parts: &[Predicate]| {
            parts.iter().map(|part| Self::new(part, file, plan)).collect::<Vec<_>>()
        };
        match predicate {
            Predicate::And(parts) => Self::And(all(parts)),
            Predicate::Or(parts) => Self::Or(all(parts)),
            Predicate::Compare { column, op, value } => {
                of(column, Test::Compare(*op, value.clone()))
            }
            Predicate::In { column, values } => of(column, Test::In(values.clone())),
            Predicate::IsNull(column) => of(column, Test::IsNull),
            Predicate::IsNotNull(column) => of(column, Test::IsNotNull),
        }
    }

    /// Whether rows with this evidence may match.
    pub(crate) fn may_match(&self, file: &FileMetadata, evidence: &impl Evidence) -> bool {
        match self {
            Self::And(parts) => parts.iter().all(|part| part.may_match(file, evidence)),
            Self::Or(parts) => parts.iter().any(|part| part.may_match(file, evidence)),
            Self::Constant(value) => *value,
            Self::Test { column, test } => {
                let statistics = evidence.statistics(*column).unwrap_or_else(unknown);
                let kind = file.types.get(*column).map(|ty| ty.kind);
                let is_top = file.types.types()[0].children.contains(column);
                let bloom = |value: &Literal| {
                    let hash = kind.and_then(|kind| hash(kind, value));
                    match (evidence.bloom(*column), hash) {
                        (Some((index, group)), Some(hash)) => index.may_contain(group, hash),
                        _ => true,
                    }
                };
                test.may_match(kind, is_top, &statistics, &bloom)
            }
        }
    }

    /// Calls `visit` with each column tested and whether a bloom filter could help.
    pub(crate) fn for_each_column(&self, visit: &mut impl FnMut(u32, bool)) {
        match self {
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.for_each_column(visit));
            }
            Self::Constant(_) => {}
            Self::Test { column, test } => {
                let bloom = matches!(test, Test::Compare(CompareOp::Eq, _) | Test::In(_));
                visit(*column, bloom);
            }
        }
    }
}

enum ResolvedColumn {
    Column(u32),
    /// The file does not have it.
    Missing,
    Unknown,
}

fn find(column: ColumnRef, file: &FileMetadata, plan: &Plan) -> ResolvedColumn {
    match column {
        ColumnRef::Id(column) if (column as usize) < file.types.len() => {
            ResolvedColumn::Column(column)
        }
        ColumnRef::Id(_) => ResolvedColumn::Unknown,
        ColumnRef::Field(id) => match field_of(&plan.schema, id) {
            // As the rows are read, so they are judged.
            Some(field) => {
                plan.column_of(field).map_or(ResolvedColumn::Missing, ResolvedColumn::Column)
            }
            // One that is not read: an id of the file's own says which one it is.
            None => {
                let column = file.types.column_of_field(id).filter(|_| plan.has_ids);
                column.map_or(ResolvedColumn::Unknown, ResolvedColumn::Column)
            }
        },
    }
}

/// The top-level field of a schema with an Iceberg field id.
fn field_of(schema: &arrow_schema::Schema, id: i32) -> Option<usize> {
    schema.fields().iter().position(|field| {
        field.metadata().get(FIELD_ID_KEY).is_some_and(|text| text.parse() == Ok(id))
    })
}

/// Whether a column has at most one value per row: all ancestors are structs.
fn is_row_level(file: &FileMetadata, column: u32) -> bool {
    let types = &file.types;
    let mut at = 0;
    while at != column {
        let Some(ty) = types.get(at) else { return false };
        if ty.kind != TypeKind::Struct {
            return false;
        }
        let below = |child: &&u32| (**child..types.subtree_end(**child)).contains(&column);
        let Some(child) = ty.children.iter().find(below) else { return false };
        at = *child;
    }
    true
}

impl Test {
    /// Whether a column of `kind` may pass, which is one of the file's rows themselves if `is_top`; `bloom` says
    /// whether a value may be there at all.
    fn may_match(
        &self,
        kind: Option<TypeKind>,
        is_top: bool,
        statistics: &ColumnStatistics,
        bloom: &impl Fn(&Literal) -> bool,
    ) -> bool {
        // Java writes "0 values, no NULL" where it knows nothing (ORC-1553).
        let all_null = statistics.values == Some(0) && statistics.has_null;
        match self {
            // A NULL parent makes a NULL that the column's own statistics do not count.
            Self::IsNull => statistics.has_null || !is_top || statistics.values.is_none(),
            Self::IsNotNull => !all_null,
            Self::Compare(op, Literal::Boolean(value)) => {
                !all_null && may_be_boolean(*op, *value, statistics)
            }
            Self::Compare(op, value) => {
                !all_null
                    && may_compare(*op, value, kind, &statistics.bounds)
                    && (*op != CompareOp::Eq || bloom(value))
            }
            Self::In(values) => {
                !all_null
                    && values.iter().any(|value| {
                        may_compare(CompareOp::Eq, value, kind, &statistics.bounds) && bloom(value)
                    })
            }
        }
    }
}

fn unknown() -> ColumnStatistics {
    ColumnStatistics { has_null: true, ..Default::default() }
}

/// Whether a boolean may compare like this: by the number of true values.
fn may_be_boolean(op: CompareOp, value: bool, statistics: &ColumnStatistics) -> bool {
    let ValueStatistics::Boolean { true_count: Some(true_count) } = statistics.bounds else {
        return true;
    };
    let has_true = true_count > 0;
    let has_false = statistics.values.is_none_or(|values| values != true_count);
    match (op, value) {
        (CompareOp::Eq, true) | (CompareOp::NotEq, false) => has_true,
        (CompareOp::Eq, false) | (CompareOp::NotEq, true) => has_false,
        _ => true,
    }
}

/// Whether a value within `bounds` may compare like this.
fn may_compare(
    op: CompareOp,
    value: &Literal,
    kind: Option<TypeKind>,
    bounds: &ValueStatistics,
) -> bool {
    // CHAR compares without trailing spaces, its statistics may have them.
    if kind == Some(TypeKind::Char) {
        return true;
    }
    let Some(bounds) = bounds_of(bounds) else { return true };
    let lower = bounds.lower.as_ref().and_then(|lower| compare(lower, value));
    let upper = bounds.upper.as_ref().and_then(|upper| compare(upper, value));
    match op {
        CompareOp::Eq => {
            !matches!(lower, Some(Ordering::Greater)) && !matches!(upper, Some(Ordering::Less))
        }
        CompareOp::NotEq => {
            let one_value = lower == Some(Ordering::Equal) && upper == Some(Ordering::Equal);
            !(one_value && bounds.is_exact)
        }
        // Zero has two signs that some engines order: a bound of zero is never a border.
        CompareOp::Lt if !bounds.is_float => {
            !matches!(lower, Some(Ordering::Greater | Ordering::Equal))
        }
        CompareOp::Gt if !bounds.is_float => {
            !matches!(upper, Some(Ordering::Less | Ordering::Equal))
        }
        CompareOp::Lt | CompareOp::LtEq => !matches!(lower, Some(Ordering::Greater)),
        CompareOp::Gt | CompareOp::GtEq => !matches!(upper, Some(Ordering::Less)),
    }
}

/// The hash of a value in the bloom filters of a column of `kind`.
fn hash(kind: TypeKind, value: &Literal) -> Option<u64> {
    Some(match (kind, value) {
        (TypeKind::Byte | TypeKind::Short | TypeKind::Int | TypeKind::Long, Literal::Int(v)) => {
            hash_long(*v)
        }
        (TypeKind::Date, Literal::Date(days)) => hash_long(i64::from(*days)),
        (TypeKind::String | TypeKind::Varchar, Literal::String(text)) => {
            hash_bytes(text.as_bytes())
        }
        (TypeKind::Binary, Literal::Binary(bytes)) => hash_bytes(bytes),
        (TypeKind::Timestamp | TypeKind::TimestampInstant, Literal::TimestampMicros(micros)) => {
            hash_long(micros.div_euclid(1000))
        }
        // Zeros of both signs are equal, but hash differently.
        (TypeKind::Float | TypeKind::Double, Literal::Float(v)) if *v != 0.0 && !v.is_nan() => {
            hash_double(*v)
        }
        _ => return None,
    })
}
