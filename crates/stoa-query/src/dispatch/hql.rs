//! HQL statements as queries of the engine: registered, counted, cancelled.
//!
//! Not here: the language (`stoa-hql`), where the cells are (`stoa-cells`), HTTP.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::future::BoxFuture;
use stoa_error::{Error, ErrorKind, Result};
use stoa_hql::{Files, MemoryBudget, Output, Session, SessionOptions};

use crate::engine::Engine;

impl Engine {
    /// A session of HQL over the tables of cells, which sees `files`. Long lines of what it loads take
    /// the engine's memory.
    pub fn hql_session(&self, files: Arc<dyn Files>, options: SessionOptions) -> Session {
        let budget = HqlMemory::of(self.memory_pool());
        Session::new(Arc::new(self.cells().clone()), files, options)
            .with_memory_budget(Arc::new(budget))
    }

    /// Runs one statement of HQL, visible in [`Engine::queries`].
    ///
    /// # Errors
    /// As [`Session::run_text`]; `Cancelled` (57014); 57P01 while the engine ends.
    pub fn run_hql<'a>(
        &'a self,
        session: &'a mut Session,
        text: &'a str,
        user: &'a str,
        out: &'a mut dyn Output,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.must_be_open()?;
            let guard = self.start_query(text, user, "hql");
            let mut counted = Counted { out, lines: 0 };
            let result = guard.run(session.run_text(text, &mut counted)).await;
            guard.progress().rows.store(counted.lines, Ordering::Relaxed);
            guard.ended(result)
        })
    }
}

/// The engine's memory, for a session of HQL.
struct HqlMemory(MemoryReservation);

impl HqlMemory {
    fn of(pool: &Arc<dyn MemoryPool>) -> Self {
        Self(MemoryConsumer::new("lines of load files").register(pool))
    }
}

impl MemoryBudget for HqlMemory {
    fn take(&self, bytes: usize) -> Result<()> {
        self.0.try_grow(bytes).map_err(|_| {
            let text = format!("memory_limit has no room for {bytes} bytes more of a line");
            Error::new(ErrorKind::Exhausted, text).with_sqlstate("53200")
        })
    }

    fn give_back(&self, bytes: usize) {
        // What was taken is there to be given back.
        let _ = self.0.try_shrink(bytes);
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
