//! A table whose names and values are like no others, so that any answer can be searched for what
//! its reader may not know.
//!
//! For tests of protocols: a superuser runs [`SETUP`], and for each of [`Granted::all`] its
//! statements; whatever the role `ann` is told then goes through the checks.

/// Makes the table, without roles.
pub const SETUP: [&str; 3] = [
    "CREATE SCHEMA vault",
    "CREATE TABLE vault.ledger (open_a text, open_b text, hidden_c text)",
    "INSERT INTO vault.ledger VALUES ('canary_a', 'canary_b', 'canary_c')",
];

/// Statements that ask for its columns, in different ways.
pub const QUERIES: [&str; 7] = [
    "SELECT * FROM vault.ledger",
    "SELECT open_a FROM vault.ledger",
    "SELECT open_b, open_a FROM vault.ledger ORDER BY open_b",
    "SELECT max(hidden_c) FROM vault.ledger",
    "SELECT open_a FROM vault.ledger WHERE hidden_c IS NOT NULL",
    "EXPLAIN ANALYZE SELECT open_b FROM vault.ledger",
    "SELECT * FROM information_schema.columns",
];

/// The columns of the table.
pub const COLUMNS: [&str; 3] = ["open_a", "open_b", "hidden_c"];

/// What the columns hold.
const VALUES: [&str; 3] = ["canary_a", "canary_b", "canary_c"];

/// The columns that `ann` may read.
#[derive(Clone, Copy, Debug)]
pub struct Granted([bool; 3]);

impl Granted {
    /// All that can be granted.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|bits| Self([0, 1, 2].map(|column| bits >> column & 1 == 1)))
    }

    /// What a superuser says so that it is granted, and nothing else.
    pub fn statements(self) -> Vec<String> {
        let names: Vec<&str> =
            self.columns().filter(|(_, has)| *has).map(|(name, _)| name).collect();
        let mut statements = vec!["REVOKE ALL ON vault.ledger FROM ann".to_owned()];
        if !names.is_empty() {
            let names = names.join(", ");
            statements.push(format!("GRANT SELECT ({names}) ON vault.ledger TO ann"));
        }
        statements
    }

    /// The columns, and whether each is granted.
    pub fn columns(self) -> impl Iterator<Item = (&'static str, bool)> {
        COLUMNS.into_iter().zip(self.0)
    }

    /// Whether nothing is granted.
    pub fn is_nothing(self) -> bool {
        self.0 == [false; 3]
    }

    /// Checks that an answer to `what` shows no value of a column that is not granted.
    ///
    /// # Panics
    /// If it does.
    pub fn check_values(self, what: &str, told: &str) {
        for (value, has) in VALUES.into_iter().zip(self.0) {
            assert!(has || !told.contains(value), "{self:?} {what}: {told}");
        }
    }

    /// Checks that an answer to `what` shows no name of a column that is not granted.
    ///
    /// # Panics
    /// If it does.
    pub fn check_names(self, what: &str, told: &str) {
        for (name, has) in self.columns() {
            assert!(has || !told.contains(name), "{self:?} {what}: {told}");
        }
    }
}
