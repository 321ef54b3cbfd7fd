//! Statements on an engine in this process.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use stoa_error::{Error, Result};
use stoa_query::{Engine, Outcome, Session, SessionOptions};

use super::backend::Reply;

/// A session on an engine of our own.
pub struct LocalBackend {
    engine: Arc<Engine>,
    session: Arc<Session>,
}

impl LocalBackend {
    /// Starts a session.
    pub fn new(engine: Arc<Engine>) -> Self {
        let options = SessionOptions {
            protocol: "shell",
            application: "stoa sql".to_owned(),
            ..SessionOptions::default()
        };
        let session = engine.session(options);
        Self { engine, session }
    }

    pub(super) fn warehouse(&self) -> &url::Url {
        &self.engine.options().warehouse
    }

    /// Brings what was written into files.
    pub(super) async fn close(&self) {
        self.engine.shutdown(Duration::ZERO).await;
    }

    pub(super) fn cancel(&self) {
        self.session.cancel();
    }

    pub(super) async fn run(&self, statement: &str) -> Result<Reply> {
        let mut parsed = self.session.parse(statement).await?.into_iter();
        let statement = match (parsed.next(), parsed.next()) {
            (Some(statement), None) => statement,
            _ => return Err(Error::internal("the text is not one statement")),
        };
        Ok(match self.session.run_one(statement).await? {
            Outcome::Rows(rows) => Reply::Rows { schema: rows.schema(), batches: rows.boxed() },
            Outcome::Done(done) => Reply::Done { tag: done.tag, notices: done.notices },
            Outcome::CopyIn(copy) => Reply::CopyIn(Box::new(copy)),
        })
    }
}
