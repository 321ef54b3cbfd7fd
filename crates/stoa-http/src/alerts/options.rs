//! When an alert goes on, and who is told.

use std::fmt;
use std::time::Duration;

/// Thresholds and receiver.
#[derive(Clone)]
pub struct AlertOptions {
    /// The URL that alerts are posted to; `None`: they are in logs, figures and events only. It may hold a secret.
    pub webhook: Option<String>,
    /// How long something must be wrong before an alert goes on, where it may pass by itself.
    pub after: Duration,
    /// Share of the disk of a local commit log that may be used, 0 to 1.
    pub disk_used_max: f64,
    /// Statements that may be refused within `after`.
    pub refused_max: u64,
}

impl Default for AlertOptions {
    fn default() -> Self {
        Self { webhook: None, after: Duration::from_secs(60), disk_used_max: 0.9, refused_max: 100 }
    }
}

impl fmt::Debug for AlertOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlertOptions")
            .field("webhook", &self.webhook.as_ref().map(|_| "…"))
            .field("after", &self.after)
            .field("disk_used_max", &self.disk_used_max)
            .field("refused_max", &self.refused_max)
            .finish()
    }
}
