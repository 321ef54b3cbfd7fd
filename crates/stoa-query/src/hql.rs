//! HQL statements as queries of the engine: registered, counted, cancelled.
//!
//! Not here: the language (`stoa-hql`), where the cells are (`stoa-cells`), HTTP.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stoa_error::{Error, Result};
use stoa_hql::{Files, Output, Session, SessionOptions};

use crate::engine::Engine;

impl Engine {
    /// A session of HQL over the tables of cells, which sees `files`.
    pub fn hql_session(&self, files: Arc<dyn Files>, options: SessionOptions) -> Session {
        Session::new(Arc::new(self.cells().clone()), files, options)
    }

    /// Runs one statement of HQL, visible in [`Engine::queries`].
    ///
    /// # Errors
    /// As [`Session::run_text`]; `Cancelled` (57014); 57P01 while the engine ends.
    pub async fn run_hql(
        &self,
        session: &mut Session,
        text: &str,
        user: &str,
        out: &mut dyn Output,
    ) -> Result<()> {
        if self.is_closing() {
            return Err(Error::unavailable("the server is shutting down").with_sqlstate("57P01"));
        }
        let mut guard = self.start_query(text, user, "hql");
        let cancelled = guard.cancel_token().clone();
        let mut counted = Counted { out, lines: 0 };
        let result = tokio::select! {
            result = stoa_store::charged(guard.charge(), session.run_text(text, &mut counted)) => result,
            () = cancelled.cancelled() => Err(Error::new(
                stoa_error::ErrorKind::Cancelled,
                "the statement was cancelled",
            )),
        };
        guard.progress().rows.store(counted.lines, Ordering::Relaxed);
        guard.end(result.as_ref().map(|_| ()));
        result
    }
}

/// Counts lines of results.
struct Counted<'a> {
    out: &'a mut dyn Output,
    lines: u64,
}

impl Output for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.out.write(bytes)
    }

    fn notice(&mut self, text: &str) -> Result<()> {
        self.out.notice(text)
    }

    fn progress(&mut self, text: &str) -> Result<()> {
        self.out.progress(text)
    }
}
