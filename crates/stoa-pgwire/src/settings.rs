//! What of the session's settings this protocol must know: reported values, zone, timeout.

use std::time::Duration;

use stoa_query::Session;

use crate::encode::Style;
use crate::types::zone::Zone;
use crate::wire::backend::Output;

/// Settings whose values clients are told, at start and when they change.
const REPORTED: [&str; 11] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "integer_datetimes",
    "IntervalStyle",
    "search_path",
    "server_encoding",
    "server_version",
    "standard_conforming_strings",
    "TimeZone",
];

/// A copy of the settings that matter here; renewed after each SET.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    reported: [Option<String>; REPORTED.len()],
    /// How values are written.
    pub(crate) style: Style,
    /// Longest time of a statement.
    pub(crate) statement_timeout: Option<Duration>,
}

impl Settings {
    /// Reads the session's settings and reports those that changed.
    pub(crate) fn renew(&mut self, session: &Session, output: &mut Output) {
        for (name, told) in REPORTED.iter().zip(&mut self.reported) {
            let Ok(value) = session.setting(name) else { continue };
            if told.as_deref() != Some(value.as_str()) {
                output.parameter_status(name, &value);
                *told = Some(value);
            }
        }
        let zone = session.setting("timezone").ok().and_then(|name| Zone::parse(&name));
        self.style = Style { zone: zone.unwrap_or_default() };
        self.statement_timeout = session
            .setting("statement_timeout")
            .ok()
            .and_then(|value| value.parse().ok())
            .filter(|millis| *millis > 0)
            .map(Duration::from_millis);
    }
}
