//! `SET` and `RESET`, and what settings do to the engine's configuration.

use std::sync::atomic::Ordering;

use datafusion::execution::session_state::SessionState;
use stoa_error::{Error, ErrorKind, Result};

use super::{Planner, Ran, Session};
use crate::dialect::normalise;
use crate::engine::DEFAULT_NAMESPACE;
use crate::error::from_datafusion;
use crate::outcome::Completion;

impl Session {
    pub(super) fn run_set(&self, name: Option<&str>, value: Option<&str>) -> Result<Ran> {
        match name {
            Some(name) => self.set(name, value)?,
            None => {
                self.settings.lock().reset_all();
                self.apply("search_path");
                self.apply("timezone");
                self.apply("short_path");
                self.apply("plan_templates");
            }
        }
        let tag = if value.is_some() { "SET" } else { "RESET" };
        Ok(Ran::Done(Completion::of(tag)))
    }

    /// Carries a setting over to the engine's configuration.
    pub(super) fn apply(&self, name: &str) {
        let name = name.to_ascii_lowercase();
        let Ok(value) = self.setting(&name) else { return };
        match name.as_str() {
            "application_name" => {
                let (user, protocol) = (&self.options.user, self.options.protocol);
                *self.pool.lock() = self.engine.pools.find(user, &value, protocol);
            }
            "search_path" => {
                let first = first_namespace(&value);
                self.change_state(|state| {
                    state.config_mut().options_mut().catalog.default_schema.clone_from(&first);
                });
            }
            "short_path" => {
                self.short_path.store(value.eq_ignore_ascii_case("on"), Ordering::Relaxed);
            }
            "plan_templates" => {
                self.plan_templates.store(value.eq_ignore_ascii_case("on"), Ordering::Relaxed);
            }
            "timezone" => self.change_state(|state| {
                state.config_mut().options_mut().execution.time_zone = Some(value.clone());
            }),
            _ => {}
        }
    }

    pub(super) fn set_engine_option(&self, option: &str, value: Option<&str>) -> Result<()> {
        let name = format!("datafusion.{option}");
        let Some(value) = value else {
            return Err(Error::unsupported(format!("cannot reset {name}"))
                .with_hint("set it to the value you want"));
        };
        if option.starts_with("catalog.") || option.starts_with("runtime.") {
            return Err(Error::new(ErrorKind::Forbidden, format!("{name} cannot be changed"))
                .with_sqlstate("42501"));
        }
        // Other rules for plans are not those of templates, nor of answers to others.
        self.short_path.store(false, Ordering::Relaxed);
        self.plan_templates.store(false, Ordering::Relaxed);
        self.settings.lock().set("result_reuse", Some("off"))?;
        let mut result = Ok(());
        self.change_state(|state| result = state.config_mut().options_mut().set(&name, value));
        result.map_err(from_datafusion)
    }

    fn change_state(&self, change: impl FnOnce(&mut SessionState)) {
        let mut planner = self.planner.lock();
        let mut state = (*planner.state).clone();
        change(&mut state);
        *planner = Planner::new(state);
    }
}

/// The first namespace of a search path that is not the user's own.
fn first_namespace(path: &str) -> String {
    path.split(',')
        .map(|name| name.trim().trim_matches('"'))
        .find(|name| !name.is_empty() && *name != "$user" && *name != "pg_catalog")
        .map_or_else(
            || DEFAULT_NAMESPACE.to_owned(),
            |name| normalise(&datafusion::sql::sqlparser::ast::Ident::new(name)),
        )
}
