//! Settings of a session: `SET`, `RESET`, `SHOW name`.
//!
//! In: names and values. Out: the same, checked. PostgreSQL's settings that clients send at start
//! are known and kept; those of the engine (`datafusion.…`) go to its configuration; any other
//! name is an error, so that a typing mistake does not pass in silence.

use std::collections::BTreeMap;

use stoa_error::{Error, Result};

/// Known settings with their defaults, sorted by name. Values are text, as in PostgreSQL.
const KNOWN: &[(&str, &str, &str)] = &[
    ("application_name", "", "name of the client, shown with its queries"),
    ("bytea_output", "hex", "how binary values are written as text"),
    ("client_encoding", "UTF8", "always UTF8"),
    ("client_min_messages", "notice", "accepted"),
    ("datestyle", "ISO, MDY", "always ISO"),
    ("default_transaction_isolation", "read committed", "accepted"),
    ("default_transaction_read_only", "off", "accepted"),
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
    ("transaction_isolation", "read committed", "each statement reads one snapshot"),
    ("transaction_read_only", "off", "accepted"),
];

/// Settings that differ from their defaults.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, String>,
}

impl Settings {
    /// Sets `name`; `None` resets it.
    ///
    /// # Errors
    /// Unknown names (42704), values that the setting does not take (22023).
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let (known, default, _) = find(name)?;
        match value {
            None => {
                self.values.remove(known);
            }
            Some(value) => {
                check(known, default, value)?;
                self.values.insert(known, value.to_owned());
            }
        }
        Ok(())
    }

    /// Resets all settings.
    pub(crate) fn reset_all(&mut self) {
        self.values.clear();
    }

    /// The value of `name`.
    pub(crate) fn get(&self, name: &str) -> Result<String> {
        let (known, default, _) = find(name)?;
        Ok(self.values.get(known).map_or(default, String::as_str).to_owned())
    }

    /// All settings as (name, value, description).
    pub(crate) fn all(&self) -> Vec<(&'static str, String, &'static str)> {
        KNOWN
            .iter()
            .map(|(name, default, what)| {
                (*name, self.values.get(name).map_or(*default, String::as_str).to_owned(), *what)
            })
            .collect()
    }
}

fn find(name: &str) -> Result<(&'static str, &'static str, &'static str)> {
    KNOWN.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(name)).copied().ok_or_else(|| {
        Error::not_found(format!("unrecognized configuration parameter \"{name}\""))
            .with_sqlstate("42704")
            .with_hint("SHOW ALL lists the settings")
    })
}

fn check(name: &str, default: &str, value: &str) -> Result<()> {
    let fits = match name {
        "client_encoding" | "server_encoding" => {
            matches!(value.to_ascii_lowercase().as_str(), "utf8" | "utf-8" | "unicode")
        }
        "standard_conforming_strings" | "integer_datetimes" | "password_encryption" => {
            value.eq_ignore_ascii_case(default)
        }
        "short_path" | "result_reuse" => {
            matches!(value.to_ascii_lowercase().as_str(), "on" | "off")
        }
        "statement_timeout" => value.parse::<u64>().is_ok(),
        "datestyle" => value.to_ascii_lowercase().contains("iso"),
        "server_version" | "server_version_num" | "max_index_keys" => false,
        _ => true,
    };
    match fits {
        true => Ok(()),
        false => {
            Err(Error::invalid(format!("invalid value for parameter \"{name}\": \"{value}\""))
                .with_sqlstate("22023")
                .with_hint(format!("the only value supported is \"{default}\"")))
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
    fn unknown_names_and_wrong_values_are_refused() {
        let mut settings = Settings::default();
        assert_eq!(settings.set("serch_path", Some("x")).unwrap_err().sqlstate(), "42704");
        assert_eq!(
            settings.set("client_encoding", Some("LATIN1")).unwrap_err().sqlstate(),
            "22023"
        );
    }
}
