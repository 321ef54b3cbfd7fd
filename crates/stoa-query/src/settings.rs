//! Settings of a session: `SET`, `RESET`, `SHOW name`.
//!
//! In: names and values. Out: the same, checked. PostgreSQL's settings that clients send at start
//! are known and kept; those of the engine (`datafusion.…`) go to its configuration; any other
//! name is an error, so that a typing mistake does not pass in silence.

use std::collections::BTreeMap;

use stoa_error::{Error, Result};

use crate::dialect::Isolation;

/// Known settings with their defaults, sorted by name. Values are text, as in PostgreSQL.
const KNOWN: &[(&str, &str, &str)] = &[
    ("application_name", "", "name of the client, shown with its queries"),
    ("bytea_output", "hex", "how binary values are written as text"),
    ("client_encoding", "UTF8", "always UTF8"),
    ("client_min_messages", "notice", "accepted"),
    ("datestyle", "ISO, MDY", "always ISO"),
    ("default_transaction_isolation", "read committed", "isolation of new transactions"),
    ("default_transaction_read_only", "off", "whether new transactions refuse writes"),
    ("extra_float_digits", "1", "floats are always written exactly"),
    ("idle_in_transaction_session_timeout", "0", "accepted"),
    ("integer_datetimes", "on", "always on"),
    ("intervalstyle", "postgres", "accepted"),
    ("lock_timeout", "0", "accepted"),
    ("max_identifier_length", "63", "names may be longer"),
    ("max_index_keys", "32", "there are no indexes"),
    ("password_encryption", "scram-sha-256", "always scram-sha-256"),
    ("plan_templates", "on", "whether plans are used again with other values: on or off"),
    ("result_reuse", "on", "whether answers are given again while nothing has changed: on or off"),
    ("row_security", "off", "accepted"),
    ("search_path", "public", "namespace of names without one"),
    ("server_encoding", "UTF8", "always UTF8"),
    (
        "server_version",
        concat!("16.6 (Stoa ", env!("CARGO_PKG_VERSION"), ")"),
        "version of PostgreSQL whose protocol is spoken",
    ),
    ("server_version_num", "160006", "the same as a number"),
    ("session_authorization", "", "accepted"),
    ("short_path", "on", "whether reports that are recognised skip the planner: on or off"),
    ("standard_conforming_strings", "on", "always on"),
    ("statement_timeout", "0", "longest time of a statement, milliseconds; 0 = no limit"),
    ("synchronize_seqscans", "on", "accepted"),
    ("timezone", "UTC", "zone of timestamps that have one"),
    ("transaction_isolation", "read committed", "isolation of the transaction"),
    ("transaction_read_only", "off", "whether the transaction refuses writes"),
];

/// What begins the names of the engine's own options.
const ENGINE: &str = "datafusion.";

/// Settings of the engine that have a name of their own here.
const ALIASES: &[(&str, &str)] = &[("datafusion.execution.time_zone", "timezone")];

/// Settings that differ from their defaults, those of the engine among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// What the connection began with: `RESET` goes back to these.
    began: BTreeMap<String, String>,
    /// What was set since.
    values: BTreeMap<String, String>,
}

impl Settings {
    /// Sets `name`; `None` resets it.
    ///
    /// # Errors
    /// Unknown names (42704), values that the setting does not take (22023).
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let name = known_name(name)?;
        match value {
            None => {
                self.values.remove(&name);
            }
            Some(value) => {
                let value = checked(&name, value)?;
                self.values.insert(name, value);
            }
        }
        Ok(())
    }

    /// Sets what `name` has at the start of the connection.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub(crate) fn begin(&mut self, name: &str, value: &str) -> Result<()> {
        let name = known_name(name)?;
        let value = checked(&name, value)?;
        self.values.remove(&name);
        self.began.insert(name, value);
        Ok(())
    }

    /// Resets all settings to what the connection began with.
    pub(crate) fn reset_all(&mut self) {
        self.values.clear();
    }

    /// The value of `name`; an option of the engine is here only if it was set.
    pub(crate) fn get(&self, name: &str) -> Result<String> {
        let name = known_name(name)?;
        match self.value(&name) {
            Some(value) => Ok(value.to_owned()),
            None => find(&name).map(|(_, default, _)| default.to_owned()),
        }
    }

    /// All settings as (name, value, description).
    pub(crate) fn all(&self) -> Vec<(&'static str, String, &'static str)> {
        KNOWN
            .iter()
            .map(|(name, default, what)| {
                (*name, self.value(name).unwrap_or(default).to_owned(), *what)
            })
            .collect()
    }

    /// The engine's options that were set, with their names there.
    pub(crate) fn of_engine(&self) -> impl Iterator<Item = (&str, &str)> {
        let began = self.began.iter().filter(|(name, _)| !self.values.contains_key(*name));
        let all = began.chain(&self.values).filter(|(name, _)| name.starts_with(ENGINE));
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).or_else(|| self.began.get(name)).map(String::as_str)
    }
}

/// Whether `name` is that of an option of the engine.
pub(crate) fn is_engine_option(name: &str) -> bool {
    known_name(name).is_ok_and(|name| name.starts_with(ENGINE))
}

/// A name as settings are kept under.
///
/// # Errors
/// Unknown names (42704); those of the engine it knows itself.
fn known_name(name: &str) -> Result<String> {
    let lower = name.to_ascii_lowercase();
    if let Some((_, name)) = ALIASES.iter().find(|(alias, _)| *alias == lower) {
        return Ok((*name).to_owned());
    }
    match lower.starts_with(ENGINE) {
        true => Ok(lower),
        false => find(&lower).map(|(known, ..)| known.to_owned()),
    }
}

/// A value as it is kept: switches are `on` or `off`, however they are written.
fn checked(name: &str, value: &str) -> Result<String> {
    if name.starts_with(ENGINE) {
        return Ok(value.to_owned());
    }
    let (known, default, _) = find(name)?;
    if SWITCHES.contains(&known) {
        return switch(value)
            .map(str::to_owned)
            .ok_or_else(|| wrong_value(name, value).with_hint("write on or off"));
    }
    check(known, default, value)?;
    Ok(value.to_owned())
}

/// Settings that are on or off.
const SWITCHES: &[&str] = &["plan_templates", "result_reuse", "short_path"];

fn switch(value: &str) -> Option<&'static str> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some("on"),
        "off" | "false" | "no" | "0" | "f" | "n" => Some("off"),
        _ => None,
    }
}

fn wrong_value(name: &str, value: &str) -> Error {
    Error::invalid(format!("invalid value for parameter \"{name}\": \"{value}\""))
        .with_sqlstate("22023")
}

fn find(name: &str) -> Result<(&'static str, &'static str, &'static str)> {
    KNOWN.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(name)).copied().ok_or_else(|| {
        Error::not_found(format!("unrecognized configuration parameter \"{name}\""))
            .with_sqlstate("42704")
            .with_hint("SHOW ALL lists the settings")
    })
}

/// A value as PostgreSQL reads one of a setting that is on or off.
pub(crate) fn as_boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

fn check(name: &str, default: &str, value: &str) -> Result<()> {
    let fits = match name {
        "client_encoding" | "server_encoding" => {
            matches!(value.to_ascii_lowercase().as_str(), "utf8" | "utf-8" | "unicode")
        }
        "standard_conforming_strings" | "integer_datetimes" | "password_encryption" => {
            value.eq_ignore_ascii_case(default)
        }
        "default_transaction_read_only" | "transaction_read_only" => as_boolean(value).is_some(),
        "default_transaction_isolation" | "transaction_isolation" => {
            match Isolation::named(value) {
                Some(isolation) => {
                    isolation.check()?;
                    true
                }
                None => false,
            }
        }
        "statement_timeout" => value.parse::<u64>().is_ok(),
        "datestyle" => value.split(',').any(|part| part.trim().eq_ignore_ascii_case("iso")),
        "server_version" | "server_version_num" | "max_index_keys" => false,
        _ => true,
    };
    match fits {
        true => Ok(()),
        false => {
            let hint = format!("the only value supported is \"{default}\"");
            Err(wrong_value(name, value).with_hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_kept_and_reset() {
        let mut settings = Settings::default();
        settings.set("Application_Name", Some("psql")).unwrap();
        assert_eq!(settings.get("application_name").unwrap(), "psql");
        settings.set("application_name", None).unwrap();
        assert_eq!(settings.get("application_name").unwrap(), "");
    }

    #[test]
    fn what_is_reset_is_as_the_connection_began() {
        let mut settings = Settings::default();
        settings.begin("search_path", "sales").unwrap();
        settings.begin("datafusion.x.y", "1").unwrap();
        settings.set("Search_Path", Some("other")).unwrap();
        settings.set("datafusion.x.y", Some("2")).unwrap();
        settings.set("DataFusion.Execution.Time_Zone", Some("+01:00")).unwrap();
        assert_eq!(settings.of_engine().collect::<Vec<_>>(), [("datafusion.x.y", "2")]);
        assert_eq!(settings.get("timezone").unwrap(), "+01:00");
        settings.set("search_path", None).unwrap();
        assert_eq!(settings.get("search_path").unwrap(), "sales");
        settings.reset_all();
        assert_eq!(settings.get("timezone").unwrap(), "UTC");
        assert_eq!(settings.of_engine().collect::<Vec<_>>(), [("datafusion.x.y", "1")]);
    }

    #[test]
    fn switches_are_on_or_off() {
        let mut settings = Settings::default();
        for (written, kept) in [("TRUE", "on"), ("0", "off"), ("On", "on"), ("no", "off")] {
            settings.set("plan_templates", Some(written)).unwrap();
            assert_eq!(settings.get("plan_templates").unwrap(), kept);
        }
        let error = settings.set("plan_templates", Some("perhaps")).unwrap_err();
        assert_eq!(error.sqlstate(), "22023");
        assert_eq!(settings.get("plan_templates").unwrap(), "off");
    }

    #[test]
    fn unknown_names_and_wrong_values_are_refused() {
        let mut settings = Settings::default();
        assert_eq!(settings.set("serch_path", Some("x")).unwrap_err().sqlstate(), "42704");
        assert_eq!(
            settings.set("client_encoding", Some("LATIN1")).unwrap_err().sqlstate(),
            "22023"
        );
    }
}
