//! `SET` and `RESET`, and what settings do to the engine's configuration.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use datafusion::common::config::ConfigOptions;
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry;
use stoa_error::{Error, ErrorKind, Result};
use stoa_sql::intervals::IntervalStyle;

use super::{Planner, Session, SessionPool};
use crate::engine::DEFAULT_NAMESPACE;
use crate::settings::{self, Settings, as_boolean};
use stoa_semantics::errors::from_datafusion;
use stoa_semantics::{
    HIVE_COMPARISONS_KEY, HiveComparisons, INTERVAL_STYLE_KEY, TextStyle, engine_zone,
};

/// The value of `dialect` with which statements are HiveQL.
const HIVE: &str = "hive";

/// What the settings will be after a transaction that has changed some.
#[derive(Debug)]
pub(super) struct BlockSettings {
    /// After ROLLBACK: as they were before.
    before: Settings,
    /// After COMMIT: without those of SET LOCAL.
    committed: Settings,
}

impl Session {
    /// Sets a setting, as `SET` does; `None` resets it to what the session began with.
    ///
    /// # Errors
    /// No such setting (42704), or a value it does not take (22023).
    pub fn set(&self, name: &str, value: Option<&str>) -> Result<()> {
        if self.set_of_transaction(name, value)? {
            return Ok(());
        }
        self.change(name, false, |settings| settings.set(name, value))
    }

    /// Sets a setting until the transaction ends, as `SET LOCAL` does.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub(crate) fn set_local(&self, name: &str, value: Option<&str>) -> Result<()> {
        if self.set_of_transaction(name, value)? {
            return Ok(());
        }
        self.change(name, true, |settings| settings.set(name, value))
    }

    /// Sets what a setting has at the start of the session, to which `RESET` goes back.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn begin_with(&self, name: &str, value: &str) -> Result<()> {
        self.change(name, false, |settings| settings.begin(name, value))
    }

    /// Settings with which another session, of whatever daemon, means the same by a statement as this one.
    ///
    /// # Errors
    /// 0A000: temporary tables and an open transaction are of this session only.
    pub fn settings_for_another(&self) -> Result<Vec<(String, String)>> {
        let own = match (self.temporary.is_empty(), self.block.is_open()) {
            (true, false) => return Ok(self.settings.lock().changed()),
            (false, _) => "has temporary tables",
            (true, true) => "is in a transaction",
        };
        Err(Error::unsupported(format!("the session of the statement {own}"))
            .with_hint("use its tickets and prepared statements on the daemon that gave them"))
    }

    /// Resets all settings to what the session began with.
    ///
    /// # Errors
    /// None but `Internal`: what the session began with was taken once.
    pub(crate) fn reset_all(&self) -> Result<()> {
        let mut settings = self.settings.lock();
        self.note_change(&settings, false, &|settings| {
            settings.reset_all();
            Ok(())
        })?;
        settings.reset_all();
        self.apply(&settings)
    }

    /// Changes one setting; nothing where the engine does not take it.
    fn change(
        &self,
        name: &str,
        is_local: bool,
        change: impl Fn(&mut Settings) -> Result<()>,
    ) -> Result<()> {
        let is_engines = settings::is_engine_option(name);
        if is_engines {
            check_engine_option(name)?;
        }
        let mut settings = self.settings.lock();
        let before = settings.clone();
        change(&mut settings)?;
        let applied = self.apply(&settings);
        match applied {
            Ok(()) => self.note_change(&before, is_local, &change),
            Err(_) => {
                *settings = before;
                applied
            }
        }
    }

    /// Notes a change of settings, which were `before`, for the end of the transaction.
    fn note_change(
        &self,
        before: &Settings,
        is_local: bool,
        change: &dyn Fn(&mut Settings) -> Result<()>,
    ) -> Result<()> {
        if !self.block.is_open() {
            return Ok(());
        }
        let mut noted = self.block_settings.lock();
        let noted = noted.get_or_insert_with(|| BlockSettings {
            before: before.clone(),
            committed: before.clone(),
        });
        match is_local {
            true => Ok(()),
            false => change(&mut noted.committed),
        }
    }

    /// Makes the settings those that stay after a transaction, which was committed or given up.
    pub(super) fn end_block_settings(&self, is_committed: bool) {
        let Some(noted) = self.block_settings.lock().take() else { return };
        let mut settings = self.settings.lock();
        *settings = if is_committed { noted.committed } else { noted.before };
        // They were taken before.
        if let Err(error) = self.apply(&settings) {
            tracing::warn!(%error, "settings were not restored after a transaction");
        }
    }

    /// Carries the settings over to where they have an effect.
    pub(super) fn apply(&self, settings: &Settings) -> Result<()> {
        let planner = self.planner();
        let mut options = self.engine.base_options().clone();
        options.catalog.default_schema = first_namespace(&settings.get("search_path")?);
        options.execution.time_zone = Some(engine_zone(&settings.get("timezone")?));
        let intervals = IntervalStyle::named(&settings.get("intervalstyle")?).unwrap_or_default();
        options.extensions.insert(TextStyle { intervals });
        let speaks_hive = settings.get("dialect")? == HIVE;
        if speaks_hive {
            options.extensions.insert(HiveComparisons);
        }
        self.speaks_hive.store(speaks_hive, Ordering::Relaxed);
        for (name, value) in settings.of_engine() {
            let set = options.set(name, value);
            set.map_err(|error| wrong_option(&options, name, value, error))?;
        }
        check_bounds(&options)?;
        if !same_options(planner.state.config_options(), &options) {
            let mut state = (*planner.state).clone();
            *state.config_mut().options_mut() = options;
            let sum = stoa_semantics::sum_of_session(speaks_hive);
            state.register_udaf(sum).map_err(from_datafusion)?;
            let planner = Planner::new(state, &self.engine);
            *self.planner.lock() = planner.with_temporary(&self.temporary);
        }
        let is_on = |name: &str| settings.get(name).map(|value| value == "on");
        self.short_path.store(is_on("short_path")?, Ordering::Relaxed);
        self.plan_templates.store(is_on("plan_templates")?, Ordering::Relaxed);
        let read_only = as_boolean(&settings.get("default_transaction_read_only")?);
        self.read_only.store(read_only == Some(true), Ordering::Relaxed);
        let application = settings.get("application_name")?;
        *self.pool.lock() = SessionPool::find(self.runner.pools(), &self.options, &application);
        Ok(())
    }
}

/// Refuses what belongs to all sessions.
fn check_engine_option(name: &str) -> Result<()> {
    let name = name.to_ascii_lowercase();
    let is_shared = ["datafusion.catalog.", "datafusion.runtime."];
    match is_shared.iter().any(|prefix| name.starts_with(prefix)) {
        true => Err(Error::new(ErrorKind::Forbidden, format!("{name} cannot be changed"))
            .with_sqlstate("42501")),
        false => Ok(()),
    }
}

/// A value that an option of the engine does not take, or no option.
fn wrong_option(options: &ConfigOptions, name: &str, value: &str, error: DataFusionError) -> Error {
    if !options.entries().iter().any(|entry| entry.key.eq_ignore_ascii_case(name)) {
        let said = format!("unrecognized configuration parameter \"{name}\"");
        return Error::not_found(said).with_sqlstate("42704");
    }
    Error::invalid(format!("invalid value for parameter \"{name}\": \"{value}\""))
        .with_sqlstate("22023")
        .with_detail(from_datafusion(error).message().to_owned())
}

/// Refuses sizes with which a statement would take more than its share, or never end.
fn check_bounds(options: &ConfigOptions) -> Result<()> {
    let (execution, optimizer) = (&options.execution, &options.optimizer);
    for (name, value, least, most) in [
        ("execution.batch_size", execution.batch_size.get(), 1, 1 << 17),
        ("execution.target_partitions", execution.target_partitions, 0, 256),
        ("execution.planning_concurrency", execution.planning_concurrency, 0, 256),
        ("optimizer.max_passes", optimizer.max_passes, 1, 16),
    ] {
        if !(least..=most).contains(&value) {
            let said =
                format!("{value} is outside the valid range for parameter \"datafusion.{name}\"");
            return Err(Error::invalid(said)
                .with_sqlstate("22023")
                .with_hint(format!("give a number from {least} to {most}")));
        }
    }
    Ok(())
}

fn same_options(one: &ConfigOptions, other: &ConfigOptions) -> bool {
    let values = |options: &ConfigOptions| {
        let entries = options.entries().into_iter();
        entries.map(|entry| (entry.key, entry.value)).collect::<Vec<_>>()
    };
    values(one) == values(other)
}

/// The options of the engine that differ from those it was started with, written so that no two lists
/// of them are written alike; whether there are none but namespace, time zone, interval style and dialect: reports that
/// are recognised compare values of one kind only.
pub(super) fn difference(base: &ConfigOptions, options: &ConfigOptions) -> (String, bool) {
    let (mut text, mut is_plain) = (String::new(), true);
    let by_key = |options: &ConfigOptions| {
        let entries = options.entries().into_iter();
        entries.map(|entry| (entry.key, entry.value)).collect::<BTreeMap<_, _>>()
    };
    let (base, options) = (by_key(base), by_key(options));
    for (key, value) in &options {
        if base.get(key) == Some(value) {
            continue;
        }
        is_plain &= matches!(
            key.as_str(),
            "datafusion.catalog.default_schema"
                | "datafusion.execution.time_zone"
                | INTERVAL_STYLE_KEY
                | HIVE_COMPARISONS_KEY
        );
        let length = value.as_ref().map(String::len);
        let value = value.as_deref().unwrap_or_default();
        text.push_str(&format!("{key}={length:?}:{value};"));
    }
    (text, is_plain)
}

/// The first namespace of a search path that is not the user's own; lower case unless quoted.
fn first_namespace(path: &str) -> String {
    let mut rest = path;
    while !rest.trim_start().is_empty() {
        let name;
        (name, rest) = next_name(rest.trim_start());
        if !name.is_empty() && name != "$user" && name != "pg_catalog" {
            return name;
        }
    }
    DEFAULT_NAMESPACE.to_owned()
}

/// The name that a list begins with, and what comes behind its comma.
fn next_name(list: &str) -> (String, &str) {
    let Some(quoted) = list.strip_prefix('"') else {
        let (name, rest) = list.split_once(',').unwrap_or((list, ""));
        return (name.trim().to_lowercase(), rest);
    };
    let (mut name, mut rest) = (String::new(), quoted);
    while let Some((part, behind)) = rest.split_once('"') {
        name.push_str(part);
        rest = behind;
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => break,
        }
    }
    (name, rest.split_once(',').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use stoa_sql::path_of;

    use super::*;

    #[test]
    fn a_search_path_begins_with_a_namespace() {
        for (path, first) in [
            ("sales", "sales"),
            ("Sales, public", "sales"),
            ("\"$user\", public", "public"),
            ("$user, pg_catalog , \"Sales\"", "Sales"),
            ("\"a, b\", c", "a, b"),
            ("\"say \"\"x\"\"\"", "say \"x\""),
            ("", "public"),
            (" , ", "public"),
        ] {
            assert_eq!(first_namespace(path), first, "{path}");
        }
        for name in ["sales", "Sales", "a, b", "say \"x\"", "ü"] {
            assert_eq!(first_namespace(&path_of(name)), name);
        }
    }
}
