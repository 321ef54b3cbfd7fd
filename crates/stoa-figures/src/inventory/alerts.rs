//! Alerts that are on.

use crate::figure::Figure;
use crate::group::Group;
use crate::seen::Shape;

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alert {
    /// The rule.
    pub alert: String,
    /// What it is about: a daemon, or empty for the one that is asked.
    pub about: String,
    /// Since when, milliseconds since 1970-01-01 UTC.
    pub since_unix_ms: i64,
    /// What is wrong.
    pub summary: String,
}

type This = Figure<Alert>;

const FIGURES: &[This] = &[
    This::key("alert", "The rule.", |s| &s.alert),
    This::key("about", "The daemon it is about; empty for the one that is asked.", |s| &s.about),
    This::time("since_unix_ms", "Since when.", |s| s.since_unix_ms),
    This::text("summary", "What is wrong.", |s| &s.summary),
    This::flag("is_on", "Whether it is on: resolved ones are not listed.", |_| true)
        .metric("stoa_alert_on"),
];

/// Alerts that are on.
pub static ALERTS: Group<Alert> = Group::new(
    "alerts",
    "Alert",
    "Alerts that are on, as the daemon that is asked sees them. `alert_webhook` sends them to people.",
    Shape::Many,
    FIGURES,
)
.in_status()
.for_everyone();
