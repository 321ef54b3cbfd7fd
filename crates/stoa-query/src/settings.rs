//! Settings of a session: `SET`, `RESET`, `SHOW name`.
//!
//! In: names and values. Out: the same, checked. PostgreSQL's settings that clients send at start
//! are declared (`declared`) with the types of their values (`value`); those of the engine (`datafusion.…`)
//! go to its configuration; any other name is an error, so that a typing mistake does not pass in silence.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use stoa_error::{Error, Result};

pub(crate) use self::declared::SettingRow;
use self::declared::{Effect, SESSION_SETTINGS, SessionSetting};
pub use self::declared::{reported_settings, session_settings_markdown};
pub(crate) use self::value::as_boolean;

mod declared;
mod value;

/// What begins the names of the engine's own options.
const ENGINE: &str = "datafusion.";

/// Settings of the engine that have a name of their own here.
const ALIASES: &[(&str, &str)] = &[("datafusion.execution.time_zone", "TimeZone")];

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
        let known = known_name(name)?;
        match value {
            None => {
                self.values.remove(&known);
            }
            Some(value) => {
                let value = checked(&known, &of_alias(name, value))?;
                self.values.insert(known, value);
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

    /// The value of `name` as `SHOW` gives it; an option of the engine is here only if it was set.
    pub(crate) fn get(&self, name: &str) -> Result<String> {
        let name = known_name(name)?;
        match self.value(&name) {
            Some(value) if name.starts_with(ENGINE) => Ok(value.to_owned()),
            value => {
                find(&name).map(|setting| setting.kind.shown(value.unwrap_or(setting.default)))
            }
        }
    }

    /// The setting `statement_timeout`; `None` is no limit.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        let milliseconds = self.value("statement_timeout")?.parse().ok()?;
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// All settings as (name, value as `SHOW` gives it, description).
    pub(crate) fn all(&self) -> Vec<(&'static str, String, &'static str)> {
        let row = |row: SettingRow| {
            let setting = row.setting;
            (setting.name, setting.kind.shown(&row.value), setting.docs)
        };
        self.rows().into_iter().map(row).collect()
    }

    /// All settings with their values as they are kept.
    pub(crate) fn rows(&self) -> Vec<SettingRow> {
        let row = |setting: &'static SessionSetting| {
            let name = setting.name;
            let began = self.began.get(name).map_or(setting.default, String::as_str);
            let value = self.value(name).unwrap_or(setting.default);
            SettingRow { setting, value: value.to_owned(), reset: began.to_owned() }
        };
        SESSION_SETTINGS.iter().map(row).collect()
    }

    /// The engine's options that were set, with their names there.
    pub(crate) fn of_engine(&self) -> impl Iterator<Item = (&str, &str)> {
        let began = self.began.iter().filter(|(name, _)| !self.values.contains_key(*name));
        let all = began.chain(&self.values).filter(|(name, _)| name.starts_with(ENGINE));
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// All that were set, as they are kept.
    pub(crate) fn changed(&self) -> Vec<(String, String)> {
        let mut changed = self.began.clone();
        changed.extend(self.values.clone());
        changed.into_iter().collect()
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).or_else(|| self.began.get(name)).map(String::as_str)
    }
}

/// A value as the setting takes it that `name` is another name for: the engine counts offsets of zones to the east, a
/// session's time zone, as PostgreSQL's, to the west.
fn of_alias<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    let is_alias = ALIASES.iter().any(|(alias, _)| alias.eq_ignore_ascii_case(name));
    match (is_alias, value.split_at_checked(1)) {
        (true, Some(("+", east))) => format!("-{east}").into(),
        (true, Some(("-", west))) => format!("+{west}").into(),
        _ => value.into(),
    }
}

/// The name of a setting as it is shown; `None` for options of the engine.
pub(crate) fn shown_name(name: &str) -> Option<&'static str> {
    find(&known_name(name).ok()?).ok().map(|setting| setting.name)
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
        false => find(&lower).map(|setting| setting.name.to_owned()),
    }
}

/// A value as it is kept.
///
/// # Errors
/// 22023 for what the setting does not take, 55P02 where it cannot be set.
fn checked(name: &str, value: &str) -> Result<String> {
    if name.starts_with(ENGINE) {
        return Ok(value.to_owned());
    }
    let setting = find(name)?;
    if setting.effect == Effect::Internal {
        return Err(Error::invalid(format!("parameter \"{name}\" cannot be changed"))
            .with_sqlstate("55P02"));
    }
    let kept = setting.kind.read(setting.name, value)?;
    if setting.effect == Effect::OneValue && kept != setting.default {
        let hint = format!("the only value supported is \"{}\"", setting.default);
        return Err(value::invalid(setting.name, value).with_hint(hint));
    }
    Ok(kept)
}

fn find(name: &str) -> Result<&'static SessionSetting> {
    SESSION_SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name)).ok_or_else(
        || {
            Error::not_found(format!("unrecognized configuration parameter \"{name}\""))
                .with_sqlstate("42704")
                .with_hint("SHOW ALL lists the settings")
        },
    )
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
        assert_eq!(settings.get("timezone").unwrap(), "<+01>-01");
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

    #[test]
    fn a_zone_is_one_that_there_is() {
        let mut settings = Settings::default();
        for zone in ["Europe/Berlin", "utc", "+02:00", "PST8PDT", "GMT"] {
            settings.set("timezone", Some(zone)).unwrap();
        }
        for (written, shown) in [
            ("europe/berlin", "Europe/Berlin"),
            ("utc", "UTC"),
            ("+02:00", "<-02>+02"),
            ("2", "<+02>-02"),
        ] {
            settings.set("timezone", Some(written)).unwrap();
            assert_eq!(settings.get("timezone").unwrap(), shown);
        }
        let error = settings.set("timezone", Some("Nowhere/Land")).unwrap_err();
        assert_eq!(error.sqlstate(), "22023");
    }

    #[test]
    fn times_have_units() {
        let mut settings = Settings::default();
        assert_eq!(settings.statement_timeout(), None);
        for (written, shown, milliseconds) in
            [("30s", "30s", 30_000), ("1500", "1500ms", 1500), ("1.5min", "90s", 90_000)]
        {
            settings.set("Statement_Timeout", Some(written)).unwrap();
            assert_eq!(settings.get("statement_timeout").unwrap(), shown);
            assert_eq!(settings.statement_timeout(), Some(Duration::from_millis(milliseconds)));
        }
        settings.set("statement_timeout", Some("0")).unwrap();
        assert_eq!(settings.statement_timeout(), None);
    }

    #[test]
    fn what_has_one_value_keeps_it() {
        let mut settings = Settings::default();
        for (name, value) in [
            ("client_encoding", "utf-8"),
            ("standard_conforming_strings", "yes"),
            ("integer_datetimes", "on"),
            ("password_encryption", "SCRAM-SHA-256"),
        ] {
            settings.set(name, Some(value)).unwrap();
        }
        for (name, value, code) in [
            ("standard_conforming_strings", "off", "22023"),
            ("server_version", "16.6", "55P02"),
            ("max_index_keys", "32", "55P02"),
            ("default_transaction_isolation", "serializable", "0A000"),
        ] {
            assert_eq!(settings.set(name, Some(value)).unwrap_err().sqlstate(), code, "{name}");
        }
        assert_eq!(settings.get("client_encoding").unwrap(), "UTF8");
    }

    #[test]
    fn settings_are_sorted_and_named_once() {
        let names: Vec<_> = SESSION_SETTINGS.iter().map(|s| s.name.to_lowercase()).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
    }

    #[test]
    fn the_reference_page_is_current() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        let found = std::fs::read_to_string(page).unwrap_or_default();
        let written = session_settings_markdown();
        assert!(found == written, "docs/settings.md is not current; it must be:\n{written}");
    }
}
