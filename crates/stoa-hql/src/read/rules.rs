//! What holds for each family: by its schema, by the question, by the hour.

use super::reader::Compaction;
use crate::cell::FamilyId;
use crate::scan::{QualifierFilter, ScanSpec};
use crate::schema::{ColumnFamily, TableSchema};

/// What holds for one family.
#[derive(Clone, Debug, Default)]
pub(super) struct FamilyRule {
    /// Whether its cells matter at all.
    pub(super) read: bool,
    /// Versions that are seen, if there is a limit.
    pub(super) versions: Option<u32>,
    /// Cells that are older are not seen.
    pub(super) oldest: i64,
    /// Whether values are added up.
    pub(super) counter: bool,
    /// Whether versions come from the oldest to the newest.
    pub(super) oldest_first: bool,
    /// Which qualifiers are returned.
    pub(super) wanted: Vec<QualifierFilter>,
    /// Conditions on qualifiers of this family, by their number.
    pub(super) asked: Vec<(usize, QualifierFilter)>,
}

/// The rule of each family id.
pub(super) struct Rules(Vec<FamilyRule>);

impl Rules {
    /// The rules of a query at `now_ns`.
    pub(super) fn of_query(schema: &TableSchema, spec: &ScanSpec, now_ns: i64) -> Self {
        Self::of_families(schema, |family| {
            let columns = spec.columns.iter().filter(|column| column.family == family.id);
            let mut wanted: Vec<_> = columns.map(|column| column.qualifier.clone()).collect();
            if spec.columns.is_empty() || wanted.contains(&QualifierFilter::Any) {
                wanted = vec![QualifierFilter::Any];
            }
            let conditions = spec.predicates.iter().enumerate();
            let asked: Vec<_> = conditions
                .filter(|(_, predicate)| predicate.column.family == family.id)
                .map(|(index, predicate)| (index, predicate.column.qualifier.clone()))
                .collect();
            FamilyRule {
                read: !wanted.is_empty() || !asked.is_empty(),
                versions: family.options.version_limit(),
                oldest: oldest(family, now_ns),
                counter: family.options.is_counter(),
                oldest_first: family.options.is_oldest_first(),
                wanted,
                asked,
            }
        })
    }

    /// The rules of a compaction at `now_ns`.
    pub(super) fn of_compaction(schema: &TableSchema, kind: Compaction, now_ns: i64) -> Self {
        Self::of_families(schema, |family| {
            let full = kind != Compaction::Partial;
            FamilyRule {
                read: true,
                versions: family.options.version_limit().filter(|_| full),
                oldest: oldest(family, now_ns),
                counter: full && family.options.is_counter(),
                oldest_first: full && family.options.is_oldest_first(),
                wanted: vec![QualifierFilter::Any],
                asked: Vec::new(),
            }
        })
    }

    /// The rule of a family; families that are not in the schema are not read.
    pub(super) fn get(&self, family: FamilyId) -> &FamilyRule {
        &self.0[usize::from(family)]
    }

    /// Whether all values of all families are seen and returned.
    pub(super) fn are_open(&self, schema: &TableSchema) -> bool {
        let open = |rule: &FamilyRule| {
            rule.wanted == [QualifierFilter::Any]
                && rule.asked.is_empty()
                && rule.versions.is_none()
                && rule.oldest == i64::MIN
                && !rule.counter
                && !rule.oldest_first
        };
        schema.families.iter().all(|family| !family.deleted && open(self.get(family.id)))
    }

    fn of_families(schema: &TableSchema, rule: impl Fn(&ColumnFamily) -> FamilyRule) -> Self {
        let mut rules = vec![FamilyRule::default(); usize::from(FamilyId::MAX) + 1];
        for family in schema.living() {
            rules[usize::from(family.id)] = rule(family);
        }
        Self(rules)
    }
}

/// The oldest timestamp that the family's TTL lets see.
fn oldest(family: &ColumnFamily, now_ns: i64) -> i64 {
    let Some(seconds) = family.options.ttl_limit_s() else { return i64::MIN };
    let ns = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000_000);
    now_ns.saturating_sub(ns)
}
