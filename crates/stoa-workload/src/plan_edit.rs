//! Changes of one plan: its pools, triggers and mappings.

use std::collections::BTreeSet;

use stoa_error::{Error, Result};

use crate::change::{PoolSettings, PoolTarget};
use crate::destination::no_mapping;
use crate::failure::{exists, state};
use crate::mapping::Mapping;
use crate::plan::{PlanPool, ResourcePlan, parent_of};
use crate::trigger::Trigger;

impl ResourcePlan {
    pub(crate) fn must_have_pool(&self, path: &str) -> Result<()> {
        if self.pools.contains_key(path) { Ok(()) } else { Err(no_pool(path, &self.name)) }
    }

    fn must_have_pool_of(&self, mapping: &Mapping) -> Result<()> {
        mapping.pool.as_deref().map_or(Ok(()), |path| self.must_have_pool(path))
    }

    fn pool_mut(&mut self, path: &str) -> Result<&mut PlanPool> {
        let name = &self.name;
        self.pools.get_mut(path).ok_or_else(|| no_pool(path, name))
    }

    pub(crate) fn create_pool(&mut self, path: &str, settings: &PoolSettings) -> Result<()> {
        let missing = |what: &str| {
            Error::invalid(format!("{what} should be specified for a pool")).with_sqlstate("42601")
        };
        let alloc_fraction =
            checked_fraction(settings.alloc_fraction.ok_or_else(|| missing("ALLOC_FRACTION"))?)?;
        let parallelism = settings.parallelism.ok_or_else(|| missing("QUERY_PARALLELISM"))?;
        if self.pools.contains_key(path) {
            return Err(exists("pool", path).with_hint("ALTER POOL changes it"));
        }
        if settings.path.is_some() {
            return Err(Error::invalid("a new pool has its path already").with_sqlstate("42601"));
        }
        self.must_have_parent(path)?;
        let mut pool =
            PlanPool { alloc_fraction, parallelism, policy: None, triggers: Default::default() };
        settings.policy.apply(&mut pool.policy);
        self.pools.insert(path.to_owned(), pool);
        Ok(())
    }

    fn must_have_parent(&self, path: &str) -> Result<()> {
        match parent_of(path) {
            Some(parent) if !self.pools.contains_key(parent) => {
                Err(no_pool(parent, &self.name).with_detail("it would be the parent"))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn alter_pool(&mut self, path: &str, settings: &PoolSettings) -> Result<()> {
        let fraction = settings.alloc_fraction.map(checked_fraction).transpose()?;
        let pool = self.pool_mut(path)?;
        pool.alloc_fraction = fraction.unwrap_or(pool.alloc_fraction);
        pool.parallelism = settings.parallelism.unwrap_or(pool.parallelism);
        settings.policy.apply(&mut pool.policy);
        match &settings.path {
            Some(to) if to != path => self.move_pool(path, to),
            _ => Ok(()),
        }
    }

    /// Gives a pool and those below it another path, wherever they are named.
    fn move_pool(&mut self, from: &str, to: &str) -> Result<()> {
        if self.pools.contains_key(to) {
            return Err(exists("pool", to));
        }
        if is_below(to, from) {
            return Err(Error::invalid(format!("pool \"{from}\" cannot be below itself"))
                .with_sqlstate("22023"));
        }
        self.must_have_parent(to)?;
        let moved = |path: &str| match path.strip_prefix(from) {
            Some(rest) if path == from || is_below(path, from) => format!("{to}{rest}"),
            _ => path.to_owned(),
        };
        let pools = std::mem::take(&mut self.pools).into_iter();
        self.pools = pools.map(|(path, pool)| (moved(&path), pool)).collect();
        self.default_pool = self.default_pool.as_deref().map(moved);
        for mapping in &mut self.mappings {
            mapping.pool = mapping.pool.as_deref().map(moved);
        }
        Ok(())
    }

    pub(crate) fn drop_pool(&mut self, path: &str) -> Result<()> {
        self.must_have_pool(path)?;
        if self.pools.keys().any(|other| is_below(other, path)) {
            return Err(
                state(format!("pool \"{path}\" has pools below it")).with_hint("drop these first")
            );
        }
        if self.default_pool.as_deref() == Some(path) {
            return Err(state(format!("pool \"{path}\" is the default pool of the plan"))
                .with_hint(
                    "ALTER RESOURCE PLAN name SET DEFAULT POOL = …, or UNSET DEFAULT POOL",
                ));
        }
        if self.mappings.iter().any(|mapping| mapping.pool.as_deref() == Some(path)) {
            return Err(state(format!("mappings name pool \"{path}\""))
                .with_hint("drop or alter these mappings first"));
        }
        self.pools.remove(path);
        Ok(())
    }

    pub(crate) fn trigger_mut(&mut self, name: &str) -> Result<&mut Trigger> {
        let plan = &self.name;
        self.triggers.get_mut(name).ok_or_else(|| {
            Error::not_found(format!("resource plan \"{plan}\" has no trigger \"{name}\""))
                .with_sqlstate("42704")
                .with_hint(format!("SHOW RESOURCE PLAN {plan} lists triggers"))
        })
    }

    pub(crate) fn triggers_of(&mut self, target: &PoolTarget) -> Result<&mut BTreeSet<String>> {
        match target {
            PoolTarget::Unmanaged => Ok(&mut self.unmanaged_triggers),
            PoolTarget::Pool(path) => Ok(&mut self.pool_mut(path)?.triggers),
        }
    }

    pub(crate) fn drop_trigger(&mut self, name: &str) -> Result<()> {
        self.trigger_mut(name)?;
        self.triggers.remove(name);
        self.unmanaged_triggers.remove(name);
        for pool in self.pools.values_mut() {
            pool.triggers.remove(name);
        }
        Ok(())
    }

    pub(crate) fn create_mapping(&mut self, mapping: &Mapping) -> Result<()> {
        if self.mapping_at(mapping.kind, &mapping.name).is_some() {
            let kind = mapping.kind.name().to_lowercase();
            return Err(exists(&format!("mapping of the {kind}"), &mapping.name)
                .with_hint("ALTER … MAPPING changes it"));
        }
        self.must_have_pool_of(mapping)?;
        self.mappings.push(mapping.clone());
        self.mappings.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Ok(())
    }

    pub(crate) fn alter_mapping(&mut self, mapping: &Mapping) -> Result<()> {
        let at = self.mapping_at(mapping.kind, &mapping.name);
        let at = at.ok_or_else(|| no_mapping(mapping.kind, &mapping.name, &self.name))?;
        self.must_have_pool_of(mapping)?;
        self.mappings[at] = mapping.clone();
        Ok(())
    }
}

/// Whether a pool is below another one.
fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

/// Hive takes any number and complains when the plan is enabled.
fn checked_fraction(fraction: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok(fraction);
    }
    Err(Error::invalid(format!("ALLOC_FRACTION is from 0 to 1, not {fraction}"))
        .with_sqlstate("22023")
        .with_hint("it is the pool's share of what the pool above it has"))
}

fn no_pool(path: &str, plan: &str) -> Error {
    Error::not_found(format!("resource plan \"{plan}\" has no pool \"{path}\""))
        .with_sqlstate("42704")
        .with_hint(format!("SHOW RESOURCE PLAN {plan} lists pools"))
}
