//! What of the session's settings this protocol must know: reported values, zone, timeout.

use std::time::Duration;

use stoa_query::{Session, reported_settings};
use stoa_sql::intervals::IntervalStyle;

use crate::encode::Style;
use crate::types::zone::Zone;
use crate::wire::backend::Output;

/// A copy of the settings that matter here; renewed after each SET.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// What the client was told of each of [`reported_settings`].
    reported: Vec<Option<String>>,
    /// How values are written.
    pub(crate) style: Style,
    /// Longest time of a statement.
    pub(crate) statement_timeout: Option<Duration>,
}

impl Settings {
    /// Reads the session's settings and reports those that changed.
    pub(crate) fn renew(&mut self, session: &Session, output: &mut Output) {
        self.reported.resize(reported_settings().count(), None);
        for (name, told) in reported_settings().zip(&mut self.reported) {
            let Ok(value) = session.setting(name) else { continue };
            if told.as_deref() != Some(value.as_str()) {
                output.parameter_status(name, &value);
                *told = Some(value);
            }
        }
        let zone = Zone::parse(&session.engine_zone());
        let intervals = session.setting("intervalstyle").ok();
        let intervals = intervals.and_then(|name| IntervalStyle::named(&name));
        self.style =
            Style { zone: zone.unwrap_or_default(), intervals: intervals.unwrap_or_default() };
        self.statement_timeout = session.statement_timeout();
    }
}
