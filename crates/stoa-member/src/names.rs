//! Names of leases.

/// What the names of logs' leases begin with.
const PREFIX: &str = "log/";

/// The log whose lease has this name.
pub(crate) fn log_of(lease: &str) -> Option<&str> {
    lease.strip_prefix(PREFIX)
}

/// The name of a log's lease.
pub(crate) fn lease_of(log: &str) -> String {
    format!("{PREFIX}{log}")
}
