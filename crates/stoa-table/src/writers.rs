//! Which writers of this process are at work.
//!
//! All files that a writer makes have its id in their names, so they are known before anything refers
//! to them. **Invariant:** a file of a writer at work is no orphan, whatever its age is by the clock,
//! which may jump.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

/// The writers of a warehouse.
#[derive(Debug, Default)]
pub(crate) struct Writers(Mutex<HashSet<Uuid>>);

/// A writer at work, until this is dropped: its files are in the table then, or of no use.
#[derive(Debug)]
pub(crate) struct AtWork {
    writers: Arc<Writers>,
    id: Uuid,
}

impl Writers {
    /// A writer with a new `id` begins.
    pub(crate) fn begin(self: &Arc<Self>, id: Uuid) -> Arc<AtWork> {
        self.0.lock().insert(id);
        Arc::new(AtWork { writers: Arc::clone(self), id })
    }

    /// Who is at work now. To be asked after files were listed and before it is read what the tables
    /// refer to: a writer that ended before has committed its files, or given them up.
    pub(crate) fn now(&self) -> Working {
        Working(self.0.lock().iter().map(Uuid::to_string).collect())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.writers.0.lock().remove(&self.id);
    }
}

/// The writers that were at work at one point in time.
#[derive(Debug, Default)]
pub(crate) struct Working(Vec<String>);

impl Working {
    /// Whether one of them makes the file at `location`.
    pub(crate) fn makes(&self, location: &str) -> bool {
        let name = location.rsplit('/').next().unwrap_or(location);
        self.0.iter().any(|id| name.contains(id.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_while_their_writer_is_at_work() {
        let writers = Arc::new(Writers::default());
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let at_work = writers.begin(one);
        let makes = |id: Uuid| writers.now().makes(&format!("t/data/day=1/00001-{id}.orc"));
        assert!(makes(one) && !makes(other));
        assert!(writers.now().makes(&format!("t/metadata/snap-7-0-{one}.avro")));
        assert!(!writers.now().makes(&format!("{one}/data/00001-{other}.orc")));
        let shared = Arc::clone(&at_work);
        drop(at_work);
        assert!(makes(one));
        drop(shared);
        assert!(!makes(one));
    }
}
