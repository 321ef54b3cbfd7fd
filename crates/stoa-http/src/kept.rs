//! What stays on the server between requests: sessions, and results, so that pages and downloads never run a
//! statement again.
//!
//! In: the rows of a query, and who asked. Out: the same rows, from any row on, as often as they are asked for.
//!
//! ```text
//!  RowStream ─► keeper (a task) ─► chunks: the first in memory, the rest in a file without a name
//!                  ▲ wanted rows          │
//!                  └──── pages, downloads ◄┘
//! ```
//! The keeper reads ahead up to [`KeptOptions::ahead_bytes`], and further only as rows are asked for. A query that
//! nobody wants more rows of ends after [`KeptOptions::unwanted_ms_max`]; what was read of it stays: it is *cut*.
//!
//! **Invariants:** a result is given to the role that ran the statement only, by an id that nobody can guess, and only while
//! the role can read all that it could read then (`results` asks for that). Bytes,
//! number and age of results are bounded; files have no name, so nothing is left behind by a crash. A result that was
//! cut is never taken for a complete one: who reads to its end gets an error, unless they ask for a part.
//!
//! Not here: routes (`results`, `sessions`), formats (`format`).

mod chunks;
mod keeper;
mod result;
mod sessions;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stoa_env::random;
use stoa_error::{Error, Result};
use stoa_query::{RowStream, Standing};

use crate::options::KeptOptions;
pub(crate) use result::{Kept, Page, Reader};
pub(crate) use sessions::Sessions;

/// All results that are kept.
pub(crate) struct Results {
    options: KeptOptions,
    /// Where large ones are written.
    directory: PathBuf,
    budget: Arc<Budget>,
    all: Mutex<HashMap<String, Arc<Kept>>>,
}

impl Results {
    pub(crate) fn new(options: KeptOptions, directory: PathBuf) -> Self {
        let budget = Arc::new(Budget { bytes: AtomicU64::new(0), bytes_max: options.bytes_max });
        Self { options, directory, budget, all: Mutex::default() }
    }

    /// Keeps what `rows` gives, for `owner`, who could read `standing` when it was asked for; its first page. If that is dropped before its end, the result goes,
    /// and the query is cancelled.
    pub(crate) fn keep(
        self: &Arc<Self>,
        owner: &str,
        standing: Option<Standing>,
        rows: RowStream,
    ) -> Page {
        self.make_room();
        let id = id();
        let reader = Reader { owner: owner.to_owned(), standing };
        let kept =
            Kept::new(id.clone(), reader, rows, &self.options, &self.directory, &self.budget);
        let kept = Arc::new(kept);
        self.all.lock().insert(id, Arc::clone(&kept));
        Page::first(kept, self)
    }

    /// The result `id` of `owner`.
    ///
    /// # Errors
    /// Not found: there is none, none any more, or it is another role's.
    pub(crate) fn of(&self, id: &str, owner: &str) -> Result<Arc<Kept>> {
        let kept = self.all.lock().get(id).filter(|kept| kept.owner() == owner).cloned();
        let kept = kept.ok_or_else(|| {
            let minutes = self.options.unread_ms_max / 60_000;
            Error::not_found("the server does not keep this result").with_hint(format!(
                "results are kept for {minutes} minutes after they were last read; run the statement again"
            ))
        })?;
        kept.touch();
        Ok(kept)
    }

    /// Lets go of a result; whether it was there.
    pub(crate) fn remove(&self, id: &str) -> bool {
        self.all.lock().remove(id).is_some()
    }

    /// Lets go of results that were not read for long.
    pub(crate) fn tidy(&self) {
        let age_max = Duration::from_millis(self.options.unread_ms_max);
        self.all.lock().retain(|_, kept| is_read(kept) || kept.unread_for() < age_max);
    }

    /// Lets go of those that were not read for longest, until a new one has room.
    fn make_room(&self) {
        let mut all = self.all.lock();
        while all.len() >= self.options.results_max || self.budget.is_half_used() {
            let idle = all.iter().filter(|(_, kept)| !is_read(kept));
            let oldest = idle.max_by_key(|(_, kept)| kept.unread_for()).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return };
            all.remove(&oldest);
        }
    }
}

/// Whether somebody besides the registry holds it.
fn is_read(kept: &Arc<Kept>) -> bool {
    Arc::strong_count(kept) > 1
}

/// Bytes of all results together.
struct Budget {
    bytes: AtomicU64,
    bytes_max: u64,
}

impl Budget {
    /// Whether there was room for `bytes` more, which are taken then.
    fn take(&self, bytes: u64) -> bool {
        let fits = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn is_half_used(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.bytes_max / 2
    }
}

/// 128 random bits, in hexadecimal digits.
fn id() -> String {
    random::bytes::<16>().iter().map(|byte| format!("{byte:02x}")).collect()
}
