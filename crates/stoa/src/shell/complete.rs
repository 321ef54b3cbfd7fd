//! What Tab offers: keywords, tables, columns, and the shell's own commands.

use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;

use super::meta::NAMES;

/// Names of tables and columns, sorted, each once.
#[derive(Debug, Default)]
pub struct Names(Mutex<Vec<String>>);

impl Names {
    /// Gives the names, as three text columns: namespace, table, column.
    pub(super) const QUERY: &'static str = "SELECT CAST(table_schema AS text), \
         CAST(table_name AS text), CAST(column_name AS text) FROM information_schema.columns \
         WHERE table_schema NOT IN ('information_schema', 'pg_catalog')";

    /// The names in a batch of that query's result.
    pub(super) fn of_batch(batch: &RecordBatch) -> Vec<String> {
        let columns = batch.columns().iter().filter_map(|column| column.as_string_opt::<i32>());
        columns.flat_map(|column| column.iter().flatten().map(str::to_owned)).collect()
    }

    /// Takes the names in place of those known so far.
    pub(super) fn replace(&self, mut names: Vec<String>) {
        names.sort_unstable();
        names.dedup();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Where the word that ends at `end` begins, and what it may become.
    pub(super) fn complete(&self, line: &str, end: usize) -> (usize, Vec<String>) {
        let head = &line[..end];
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '\\';
        let begin = head
            .rfind(|c| !is_part(c))
            .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        let word = &head[begin..];
        if word.is_empty() {
            return (begin, Vec::new());
        }
        if word.starts_with('\\') {
            let commands = NAMES.iter().filter(|name| name.starts_with(word));
            return (begin, commands.map(|name| (*name).to_owned()).collect());
        }
        let lower = word.to_lowercase();
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<String> =
            names.iter().filter(|name| name.to_lowercase().starts_with(&lower)).cloned().collect();
        let upper = word.to_uppercase();
        let as_typed = |keyword: &str| match word.chars().any(char::is_uppercase) {
            true => keyword.to_owned(),
            false => keyword.to_lowercase(),
        };
        found.extend(KEYWORDS.iter().filter(|k| k.starts_with(&upper)).map(|k| as_typed(k)));
        (begin, found)
    }
}

const KEYWORDS: [&str; 96] = [
    "ADD",
    "ALTER",
    "ANALYZE",
    "AND",
    "ANY",
    "AS",
    "ASC",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "CASE",
    "CAST",
    "COLUMN",
    "COMMENT",
    "COPY",
    "COUNT",
    "CREATE",
    "CROSS",
    "CURRENT_DATE",
    "DATE",
    "DAY",
    "DECIMAL",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTRACT",
    "FALSE",
    "FETCH",
    "FILTER",
    "FIRST",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "HOUR",
    "IF",
    "ILIKE",
    "IN",
    "INNER",
    "INSERT",
    "INTEGER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MONTH",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PARTITIONED",
    "RENAME",
    "RIGHT",
    "SCHEMA",
    "SELECT",
    "SET",
    "SHOW",
    "STORED",
    "SUM",
    "TABLE",
    "TABLES",
    "TEXT",
    "THEN",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "UNION",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
    "YEAR",
    "SNAPSHOTS",
    "FILES",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, begin: usize, expected: &[&str]) {
        let names = Names::default();
        names.replace(vec!["ad_report".into(), "account_id".into(), "day".into(), "day".into()]);
        assert_eq!(
            names.complete(line, line.len()),
            (begin, expected.iter().map(|s| (*s).into()).collect())
        );
    }

    #[test]
    fn names_come_before_keywords_and_case_follows_the_typist() {
        check("SELECT acc", 7, &["account_id"]);
        check("sel", 0, &["select"]);
        check("SEL", 0, &["SELECT"]);
        check("select da", 7, &["day", "date", "day"]);
        check("select sum(ad_", 11, &["ad_report"]);
        check("\\tim", 0, &["\\timing"]);
        check("select ", 7, &[]);
        check("select 日本acc", 7, &[]);
    }
}
