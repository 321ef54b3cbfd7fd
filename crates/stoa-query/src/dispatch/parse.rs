//! Texts as statements: recognised as one that was planned before, or parsed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use stoa_error::Result;
use stoa_sql::ValueRows;
use stoa_sql::fingerprint::{Fingerprint, SharedFingerprint};

use super::hiveql::{self, HiveOptions};
use crate::reuse::forms::{FormKinds, KnownStatement};
use crate::run::memory;
use crate::session::Session;
use crate::session::statement::{Statement, StatementForm};

/// Bytes of texts that are parsed where they arrive, if they are not deep either.
const SHORT_TEXT: usize = 4096;

/// The statements of a text; those that read the system catalog are rewritten for the engine.
///
/// # Errors
/// As [`stoa_sql::parse`].
pub(crate) fn statements(sql: &str) -> Result<Vec<Statement>> {
    statements_of(sql, Fingerprint::shared(sql))
}

/// As [`statements`], for a text whose fingerprint was taken. It is its statement's: several have none together.
///
/// # Errors
/// As [`stoa_sql::parse`].
pub(crate) fn statements_of(
    sql: &str,
    fingerprint: Option<SharedFingerprint>,
) -> Result<Vec<Statement>> {
    let own = |text: &str| match &fingerprint {
        Some(whole) => Some(Arc::clone(whole)),
        None if text == sql.trim() => None,
        None => Fingerprint::shared(text),
    };
    let parsed = stoa_sql::parse(sql, stoa_pg_catalog::parse)?.into_iter();
    let with_own = |parsed: stoa_sql::Statement| {
        let fingerprint = own(&parsed.text);
        Statement::of(parsed, fingerprint)
    };
    Ok(parsed.map(with_own).collect())
}

impl Session {
    /// Parses a text of any number of statements; an empty text gives one empty statement. Long ones are
    /// parsed on the threads that plan. If the session speaks HiveQL, they are translated before.
    ///
    /// # Errors
    /// Syntax errors (42601), with their place; texts that are too long (54000) or too complex (54001);
    /// 53200 where a long text takes more memory than there is; 57014 as for [`Session::prepare`].
    pub fn parse<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<Vec<Statement>>> {
        Box::pin(async move {
            match self.speaks_hive() {
                true => self.parse_hiveql(sql, HiveOptions::default()).await,
                false => self.parse_sql(sql).await,
            }
        })
    }

    /// Parses a text of any number of statements of HiveQL.
    ///
    /// # Errors
    /// As [`Session::parse`]; 0A000 for what Hive has and Stoa has not.
    pub fn parse_hiveql<'a>(
        &'a self,
        sql: &'a str,
        options: HiveOptions,
    ) -> BoxFuture<'a, Result<Vec<Statement>>> {
        Box::pin(async move {
            let is_short = sql.len() <= SHORT_TEXT;
            let known = self.reuse.translations();
            if let Some(text) = is_short.then(|| known.find(sql, options)).flatten() {
                return self.parse_sql(&text).await;
            }
            let translated = match is_short {
                true => hiveql::translated(sql, options).inspect(|_| known.learn(sql, options)),
                false => {
                    let _memory = memory::of_text(self.runner.memory(), sql)?;
                    let text = sql.to_owned();
                    self.shown_planning(sql, async move { hiveql::translated(&text, options) })
                        .await
                }
            };
            let translated =
                translated.inspect_err(|error| self.record_failure(sql, None, error))?;
            self.parse_sql(&translated).await
        })
    }

    /// Parses a text of any number of statements of Stoa's SQL, whatever the session speaks.
    ///
    /// # Errors
    /// As [`Session::parse`].
    pub fn parse_sql<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<Vec<Statement>>> {
        Box::pin(async move {
            if ValueRows::may_be(sql)
                && let Some(statement) = self.parse_value_rows(sql).await?
            {
                return Ok(vec![statement]);
            }
            let context = self.options_context();
            let kinds = FormKinds {
                reports: self.takes_short_path(),
                plans: self.plan_templates.load(Ordering::Relaxed),
            };
            // The only time that it is taken: it goes along with the statement until that has ended.
            let fingerprint = Fingerprint::shared(sql);
            let find = |fingerprint| self.reuse.forms().find(&context, fingerprint, kinds);
            if let Some(known) = fingerprint.as_ref().and_then(find) {
                let form = match known {
                    KnownStatement::Report(report) => StatementForm::Report(report),
                    KnownStatement::Lifted(lifted) => StatementForm::Lifted(lifted),
                };
                let text = sql.trim().trim_end_matches(';').to_owned();
                return Ok(vec![Statement { text, fingerprint, form, rows: None, memory: None }]);
            }
            self.parse_text(sql, fingerprint.clone()).await.inspect_err(|error| {
                self.record_failure(sql, fingerprint.as_ref(), error);
            })
        })
    }

    /// A long INSERT of literals; `None` where it is something else, or is wrong.
    async fn parse_value_rows(&self, sql: &str) -> Result<Option<Statement>> {
        let memory = memory::of_text(self.runner.memory(), sql)?;
        let text = sql.trim().trim_end_matches(';').trim_end().to_owned();
        let read = async move {
            let Some(rows) = ValueRows::of(&text) else { return Ok(None) };
            let head = rows.with_first_row(&text).map(|head| statements_of(head, None));
            // What is wrong with it is told of the whole text.
            let Some(Ok(mut head)) = head else { return Ok(None) };
            let rows = Some(Arc::new(rows));
            Ok(head.pop().map(|head| Statement { text, rows, memory, ..head }))
        };
        self.shown_planning(sql, read).await
    }

    async fn parse_text(
        &self,
        sql: &str,
        fingerprint: Option<SharedFingerprint>,
    ) -> Result<Vec<Statement>> {
        if sql.len() <= SHORT_TEXT && stoa_sql::measure(sql)?.is_small {
            return statements_of(sql, fingerprint);
        }
        let memory = memory::of_text(self.runner.memory(), sql)?;
        let text = sql.to_owned();
        let parsed = self.shown_planning(sql, async move { statements_of(&text, fingerprint) });
        let mut statements = parsed.await?;
        statements.iter_mut().for_each(|statement| statement.memory.clone_from(&memory));
        Ok(statements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprints(sql: &str, taken: Option<SharedFingerprint>) -> Vec<Option<SharedFingerprint>> {
        let parsed = statements_of(sql, taken).unwrap().into_iter();
        parsed.map(|statement| statement.fingerprint).collect()
    }

    #[test]
    fn a_fingerprint_is_taken_once_and_goes_along() {
        let sql = " SELECT a FROM t WHERE b = 1 ; ";
        let taken = Fingerprint::shared(sql).unwrap();
        let found = fingerprints(sql, Some(Arc::clone(&taken)));
        assert!(found[0].as_ref().is_some_and(|found| Arc::ptr_eq(found, &taken)));
    }

    #[test]
    fn each_statement_has_the_fingerprint_of_its_own_text() {
        for sql in [
            "SELECT a FROM t WHERE b = 1",
            "  SELECT a FROM t WHERE b = 'x;y' ;\n",
            "SELECT 1; SELECT 'a', 2; SHOW TABLES",
            "-- first\nSELECT 1; SELECT 2",
            "SELECT 1 -- one",
            "SELECT 1;;",
            "INSERT INTO t VALUES (1)",
            "",
        ] {
            for statement in statements(sql).unwrap() {
                let own = Fingerprint::shared(statement.text());
                assert_eq!(statement.fingerprint, own, "{sql}");
            }
        }
    }
}
