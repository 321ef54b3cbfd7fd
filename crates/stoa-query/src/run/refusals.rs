//! What was refused since the start: logins by their password, statements by a bound or a right.
//!
//! In: how tries to log in and statements ended. Out: [`RefusalStatus`], which `/metrics`, `/v1/status` and
//! `system.refusals` show. Not here: connections, which are refused before there is a session
//! (`stoa-listen`).

use std::sync::atomic::{AtomicU64, Ordering};

/// What was refused since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusalStatus {
    /// Tries to log in with a wrong password, or as a role that may not (28P01).
    pub logins_failed: u64,
    /// Tries that were not looked at, after too many that failed (53400).
    pub logins_paused: u64,
    /// Statements that were too long, too complex, or had too large a result (54000, 54001).
    pub too_large: u64,
    /// Statements for which there was too little memory (53200).
    pub out_of_memory: u64,
    /// Statements without a right on what they name, files of the server among it (42501).
    pub denied: u64,
}

/// How many statements were refused.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    too_large: AtomicU64,
    out_of_memory: AtomicU64,
    denied: AtomicU64,
}

impl Statements {
    /// Counts a statement that ended with an error.
    pub(crate) fn count(&self, sqlstate: &str) {
        let counter = match sqlstate {
            "54000" | "54001" => &self.too_large,
            "53200" => &self.out_of_memory,
            "42501" => &self.denied,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> RefusalStatus {
        RefusalStatus {
            too_large: self.too_large.load(Ordering::Relaxed),
            out_of_memory: self.out_of_memory.load(Ordering::Relaxed),
            denied: self.denied.load(Ordering::Relaxed),
            ..RefusalStatus::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_by_why() {
        let statements = Statements::default();
        for sqlstate in ["54000", "54001", "53200", "42501", "42P01", "XX000"] {
            statements.count(sqlstate);
        }
        let expected =
            RefusalStatus { too_large: 2, out_of_memory: 1, denied: 1, ..RefusalStatus::default() };
        assert_eq!(statements.status(), expected);
    }
}
