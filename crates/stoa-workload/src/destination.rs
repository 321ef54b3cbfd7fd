//! Where the queries of a session go by the mappings of a plan.

use stoa_error::Error;

use crate::mapping::MappingKind;
use crate::plan::ResourcePlan;

/// Where the queries of a session go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination<'a> {
    /// Into the pool of this path.
    Pool(&'a str),
    /// Into no pool of the plan.
    Unmanaged,
    /// Nowhere: no mapping of the session leads to the pool that it asks for.
    Refused,
}

impl ResourcePlan {
    /// Where queries of `user` go, who is a member of `groups`, through the program `application`.
    ///
    /// As in Hive, the mapping of a user counts before that of a program, whatever their order, and that of a group
    /// before both if its order is lower. Whoever none names goes into the default pool, if there is one. Whoever asks
    /// for the pool `wanted` chooses among the mappings of his own.
    pub fn destination(
        &self,
        user: &str,
        application: &str,
        groups: &[impl AsRef<str>],
        wanted: Option<&str>,
    ) -> Destination<'_> {
        let of = |kind, name: &str| {
            let found = self.mapping_at(kind, name).and_then(|at| self.mappings.get(at));
            found.filter(|mapping| wanted.is_none() || mapping.pool.as_deref() == wanted)
        };
        let mut found = of(MappingKind::User, user);
        if found.is_none() && !application.is_empty() {
            found = of(MappingKind::Application, application);
        }
        for group in groups {
            let group = of(MappingKind::Group, group.as_ref());
            found = match (group, found) {
                (Some(group), Some(other)) if group.order >= other.order => Some(other),
                (Some(group), _) => Some(group),
                (None, found) => found,
            };
        }
        let pool = match found {
            Some(mapping) => &mapping.pool,
            None if wanted.is_some() => return Destination::Refused,
            None => &self.default_pool,
        };
        pool.as_deref().map_or(Destination::Unmanaged, Destination::Pool)
    }

    pub(crate) fn mapping_at(&self, kind: MappingKind, name: &str) -> Option<usize> {
        self.mappings.iter().position(|mapping| mapping.kind == kind && mapping.name == name)
    }
}

pub(crate) fn no_mapping(kind: MappingKind, name: &str, plan: &str) -> Error {
    let kind = kind.name().to_lowercase();
    Error::not_found(format!("resource plan \"{plan}\" has no mapping of the {kind} \"{name}\""))
        .with_sqlstate("42704")
        .with_hint(format!("SHOW RESOURCE PLAN {plan} lists mappings"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Mapping;

    #[test]
    fn users_count_before_programs_and_groups_by_their_order() {
        let mut plan = ResourcePlan::new("p", None);
        let mapping = |kind, name: &str, pool: Option<&str>, order| Mapping {
            kind,
            name: name.to_owned(),
            pool: pool.map(str::to_owned),
            order,
        };
        plan.mappings = vec![
            mapping(MappingKind::User, "ann", Some("a"), 2),
            mapping(MappingKind::Application, "dbt", Some("b"), 1),
            mapping(MappingKind::Group, "bi", Some("c"), 1),
            mapping(MappingKind::Group, "it", None, 3),
            mapping(MappingKind::Group, "all", Some("d"), 2),
        ];
        let check = |user: &str, application: &str, groups: &[&str], expected: Destination<'_>| {
            let found = plan.destination(user, application, groups, None);
            assert_eq!(found, expected, "{user} {application} {groups:?}");
        };
        check("ann", "dbt", &[], Destination::Pool("a"));
        check("ann", "", &["all", "it"], Destination::Pool("a"));
        check("ann", "", &["it", "bi"], Destination::Pool("c"));
        check("bob", "dbt", &["bi"], Destination::Pool("b"));
        check("bob", "psql", &["it"], Destination::Unmanaged);
        check("bob", "psql", &["it", "all"], Destination::Pool("d"));
        check("bob", "", &["none"], Destination::Pool("default"));
        let asks = |user: &str, groups: &[&str], pool: &str, expected: Destination<'_>| {
            let found = plan.destination(user, "dbt", groups, Some(pool));
            assert_eq!(found, expected, "{user} {groups:?} {pool}");
        };
        asks("ann", &["bi", "all"], "a", Destination::Pool("a"));
        asks("ann", &["bi", "all"], "b", Destination::Pool("b"));
        asks("ann", &["bi", "all"], "d", Destination::Pool("d"));
        asks("ann", &["bi"], "d", Destination::Refused);
        asks("bob", &["it"], "default", Destination::Refused);
        plan.default_pool = None;
        assert_eq!(plan.destination("bob", "", &[] as &[&str], None), Destination::Unmanaged);
    }
}
