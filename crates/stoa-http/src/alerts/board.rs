//! Which alerts are on. A machine without I/O: conditions and times in, changes out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use stoa_figures::Alert;

/// How long a condition must be gone before its alert goes off.
const OFF_AFTER: Duration = Duration::from_secs(5);

/// Something that is wrong at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// The rule.
    pub(crate) alert: &'static str,
    /// The daemon it is about; empty where there is no cluster.
    pub(crate) about: String,
    /// What is wrong.
    pub(crate) summary: String,
    /// Whether it may pass by itself, so that an alert waits.
    pub(crate) may_pass: bool,
    /// Since when it is so, milliseconds since 1970-01-01 UTC; `None` where nobody knows better than who looks.
    pub(crate) since_unix_ms: Option<i64>,
}

/// An alert that went on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) alert: Alert,
    pub(crate) is_on: bool,
}

/// All alerts, by rule and what they are about.
#[derive(Debug)]
pub(crate) struct Board {
    after: Duration,
    entries: BTreeMap<(&'static str, String), Entry>,
}

#[derive(Debug)]
struct Entry {
    alert: Alert,
    began: Instant,
    last_seen: Instant,
    is_on: bool,
}

impl Board {
    /// Conditions that may pass are alerts after they have lasted for `after`.
    pub(crate) fn new(after: Duration) -> Self {
        Self { after, entries: BTreeMap::new() }
    }

    /// Those that are on.
    pub(crate) fn on(&self) -> Vec<Alert> {
        self.entries.values().filter(|entry| entry.is_on).map(|entry| entry.alert.clone()).collect()
    }

    /// Takes note of all that is wrong now.
    pub(crate) fn see(&mut self, found: Vec<Condition>, now: Instant, unix_ms: i64) -> Vec<Change> {
        let mut changes = Vec::new();
        for condition in found {
            let after = if condition.may_pass { self.after } else { Duration::ZERO };
            let key = (condition.alert, condition.about.clone());
            let entry = self.entries.entry(key).or_insert_with(|| Entry {
                alert: Alert {
                    since_unix_ms: condition.since_unix_ms.unwrap_or(unix_ms),
                    ..Alert::default()
                },
                began: now,
                last_seen: now,
                is_on: false,
            });
            let since_unix_ms = entry.alert.since_unix_ms;
            entry.alert = Alert {
                alert: condition.alert.to_owned(),
                about: condition.about,
                since_unix_ms,
                summary: condition.summary,
            };
            entry.last_seen = now;
            if !entry.is_on && now.duration_since(entry.began) >= after {
                entry.is_on = true;
                changes.push(Change { alert: entry.alert.clone(), is_on: true });
            }
        }
        self.entries.retain(|_, entry| {
            // One that never went on is forgotten at once: it must last without a gap.
            let gone_for = now.duration_since(entry.last_seen);
            let is_over = gone_for > Duration::ZERO && (!entry.is_on || gone_for >= OFF_AFTER);
            if is_over && entry.is_on {
                changes.push(Change { alert: entry.alert.clone(), is_on: false });
            }
            !is_over
        });
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(alert: &'static str, may_pass: bool) -> Condition {
        let (about, summary) = ("00aa".to_owned(), "it is so".to_owned());
        Condition { alert, about, summary, may_pass, since_unix_ms: None }
    }

    /// What happens when conditions are there in seconds of a time.
    fn changes(at: &[(&'static str, bool, std::ops::Range<u64>)]) -> Vec<(u64, String)> {
        let mut board = Board::new(Duration::from_secs(10));
        let start = stoa_env::clock::monotonic();
        let mut all = Vec::new();
        for second in 0..60 {
            let there = at.iter().filter(|(.., range)| range.contains(&second));
            let found = there.map(|(alert, may_pass, _)| condition(alert, *may_pass));
            let now = start + Duration::from_secs(second);
            for change in board.see(found.collect(), now, second as i64 * 1000) {
                let sign = if change.is_on { "+" } else { "-" };
                all.push((second, format!("{sign}{}", change.alert.alert)));
            }
        }
        all
    }

    fn check(at: &[(&'static str, bool, std::ops::Range<u64>)], wanted: &[(u64, &str)]) {
        let wanted: Vec<_> = wanted.iter().map(|(at, text)| (*at, (*text).to_owned())).collect();
        assert_eq!(changes(at), wanted, "{at:?}");
    }

    #[test]
    fn an_alert_goes_on_once_and_off_once() {
        check(&[("a", false, 3..20)], &[(3, "+a"), (24, "-a")]);
        check(&[("a", true, 3..20)], &[(13, "+a"), (24, "-a")]);
        check(&[("a", false, 3..99)], &[(3, "+a")]);
    }

    #[test]
    fn what_passes_is_no_alert() {
        check(&[("a", true, 3..12)], &[]);
        check(&[("a", true, 3..12), ("a", true, 13..22)], &[]);
    }

    #[test]
    fn an_alert_that_comes_back_soon_has_not_gone() {
        let ranges = [("a", false, 3..10), ("a", false, 13..20)];
        check(&ranges, &[(3, "+a"), (24, "-a")]);
        let ranges = [("a", false, 3..10), ("a", false, 16..20)];
        check(&ranges, &[(3, "+a"), (14, "-a"), (16, "+a"), (24, "-a")]);
    }
}
