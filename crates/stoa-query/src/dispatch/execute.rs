//! Execution of prepared statements, each a query of the registry.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use futures::StreamExt;
use futures::future::BoxFuture;
use stoa_error::{Error, Result, Subject};
use stoa_sql::pointing::point;

use super::prepare::{Prepared, Way};
use crate::session::Session;
use crate::session::outcome::{Completion, RowStream};
use crate::session::statement::Statement;
use crate::statements::outcome::{Outcome, Ran};

/// The error with its place, unless it is about a value: that may be one of a table.
fn placed(error: Error, text: &str) -> Error {
    match error.subject() {
        Some(Subject::Literal(_)) => error,
        _ => point(error, text),
    }
}

impl Session {
    /// Executes a prepared statement. Values are cast to the parameters' types.
    ///
    /// # Errors
    /// A wrong number of parameters (08P01), values that do not fit (22P02), and what execution
    /// finds before the first row. Later errors come with the rows.
    pub fn execute<'a>(
        &'a self,
        prepared: &'a Prepared,
        parameters: Vec<ScalarValue>,
    ) -> BoxFuture<'a, Result<Outcome>> {
        Box::pin(async move {
            self.must_be_open()?;
            // A report asks for the policy beside its table's pointer.
            if !matches!(prepared.way, Way::Report(..)) {
                self.caller.refresh().await?;
            }
            let statement = &prepared.statement;
            let mut guard = self.start_query(statement.text(), statement.fingerprint.as_ref());
            self.remember(guard.cancel_token().clone());
            let run: BoxFuture<'_, Result<Ran>> = Box::pin(self.run(prepared, parameters, &guard));
            let result = match statement.transaction() {
                // What was begun to be committed cannot be called back.
                Some(_) => guard.run_to_its_end(run).await,
                None => guard.run(run).await,
            };
            match result {
                Ok(Ran::Stream(stream)) => {
                    let block = self.block.is_open().then(|| Arc::clone(&self.block));
                    Ok(Outcome::Rows(RowStream::new(stream, guard, block)))
                }
                Ok(Ran::Done(completion)) => {
                    guard.ended_after(completion.rows);
                    Ok(Outcome::Done(completion))
                }
                Ok(Ran::CopyIn(copy)) => Ok(Outcome::CopyIn(copy.with_guard(guard))),
                Err(error) => {
                    let error = placed(error, statement.text());
                    self.block.fail();
                    guard.end(Err(&error));
                    Err(error)
                }
            }
        })
    }

    /// Parses, plans and executes one statement.
    ///
    /// # Errors
    /// As [`Session::parse`], [`Session::prepare`] and [`Session::execute`].
    pub fn run_one(&self, statement: Statement) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            let prepared = self.prepare(statement, Vec::new()).await?;
            self.execute(&prepared, Vec::new()).await
        })
    }

    /// Runs all statements of a text one after another and returns the last one's outcome; rows
    /// of those before are read and dropped.
    ///
    /// # Errors
    /// The first error; statements before it have taken effect.
    pub fn sql<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<Outcome>> {
        Box::pin(async move { self.run_all(self.parse(sql).await?).await })
    }

    /// As [`Session::sql`], for a text of Stoa's SQL, whatever the session speaks.
    ///
    /// # Errors
    /// As [`Session::sql`].
    pub fn stoa_sql<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<Outcome>> {
        Box::pin(async move { self.run_all(self.parse_sql(sql).await?).await })
    }

    async fn run_all(&self, statements: Vec<Statement>) -> Result<Outcome> {
        let mut last = Outcome::Done(Completion::of(""));
        for statement in statements {
            if let Outcome::Rows(mut rows) = last {
                while let Some(batch) = rows.next().await {
                    batch?;
                }
            }
            last = self.run_one(statement).await?;
        }
        Ok(last)
    }
}
